"""Timings beside named peers; see README.md."""
