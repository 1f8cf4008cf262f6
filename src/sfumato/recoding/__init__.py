"""Mechanisms that coarsen values: a tree or a recursive division groups the rows, and cells become ranges and sets."""
