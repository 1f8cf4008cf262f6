"""Releases of files larger than memory: searched on counts or a sample, written block by block."""
