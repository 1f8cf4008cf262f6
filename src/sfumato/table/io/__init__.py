"""Files and frames, a module per format: ``read.read_table`` is the one door in, ``write`` the one way out."""
