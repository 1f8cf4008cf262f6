"""Microaggregation: clusters of near rows that all get the typical values of their cluster; see ``mdav``."""
