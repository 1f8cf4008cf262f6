"""Releases of files that are larger than memory: counted and written block by block."""
