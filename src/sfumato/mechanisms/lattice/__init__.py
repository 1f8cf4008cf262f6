"""Global recoding by searching the lattice of hierarchy levels; ``recoder`` and ``gain`` are mechanisms."""
