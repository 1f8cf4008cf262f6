"""Mechanisms that drop columns."""
