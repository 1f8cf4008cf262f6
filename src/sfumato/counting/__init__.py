"""Counting: the one place where rows are touched in bulk."""

ROUNDING = 1e-9
"""Slack for real-valued levels, so that a promise is not missed by the last bit of a logarithm."""
