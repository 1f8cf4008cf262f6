"""Options that several commands share, and what they open: tables with roles, preparations, rows elsewhere."""
