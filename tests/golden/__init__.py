"""Frozen results: hashes of what every mechanism releases, the public names, and releases of earlier versions.

``python -m tests.golden --check`` makes everything again and says what differs; ``--write`` freezes it anew.
"""
