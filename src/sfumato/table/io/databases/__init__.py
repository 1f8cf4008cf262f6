"""Tables in databases: which one is meant, its rows as Arrow batches, and the hash of what was read."""
