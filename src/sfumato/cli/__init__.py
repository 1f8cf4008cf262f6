"""The command line: one module per command, no algorithm."""
