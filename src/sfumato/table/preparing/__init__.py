"""Preparing columns right after a table is read: what may be declared, and how it is done."""
