"""Generalization hierarchies: what they are, how they are built and read, and how they fit a column."""
