"""Counting: the one place where rows are touched in bulk."""
