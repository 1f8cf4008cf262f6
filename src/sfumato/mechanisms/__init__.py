"""Mechanisms propose releases: ``base`` is the contract, ``registry`` finds them by name, a folder is a family."""
