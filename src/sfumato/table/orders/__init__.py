"""Texts that have an order: intervals, levels of known scales, numbered labels."""
