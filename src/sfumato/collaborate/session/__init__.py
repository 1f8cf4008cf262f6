"""One party's way through a session: handshake, secure rounds, agreement, transcript; :mod:`.party` runs it."""
