"""The command line: it starts here, and a command is a module of :mod:`making` or :mod:`afterwards`; no algorithm."""
