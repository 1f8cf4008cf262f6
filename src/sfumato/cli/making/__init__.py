"""Commands on the way to a release: from a table, or from several parties' tables."""
