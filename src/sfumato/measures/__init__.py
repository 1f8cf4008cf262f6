"""Measures: pure functions of counts."""
