"""Releases in buckets, within which values lose their rows: Anatomy and slicing."""
