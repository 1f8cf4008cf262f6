"""All parties of a session on one machine, each a process of its own; :mod:`.simulation` is the entry point."""
