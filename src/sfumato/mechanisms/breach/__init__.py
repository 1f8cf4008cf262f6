"""Columns chosen by performance against privacy breach (E(S), PBI) [PBI17]_; :mod:`.selector` is the mechanism."""
