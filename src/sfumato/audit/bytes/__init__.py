"""Every byte of a released file is accounted for, format by format; :mod:`.files` is the entry point."""
