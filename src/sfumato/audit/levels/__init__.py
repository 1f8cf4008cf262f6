"""A module for each family of guarantees: how much of it a release keeps, by the audit's own definitions."""
