"""Levels that count persons, where several rows may be one person's; the original says whose a row is."""
