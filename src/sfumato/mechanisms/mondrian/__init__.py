"""Mondrian: recursive division of the rows; :mod:`.mechanism` is the mechanism."""
