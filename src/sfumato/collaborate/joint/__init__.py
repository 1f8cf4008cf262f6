"""One k-anonymous table of all parties' rows together; :mod:`.search` finds it, :mod:`.party` takes part."""
