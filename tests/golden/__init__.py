"""Frozen results: hashes of what every mechanism releases, and the public names.

``python -m tests.golden --check`` makes everything again and says what differs; ``--write`` freezes it anew.
"""
