"""How many examples properties are tried on: part of them in ``make test``, all of them in ``make soak``."""

import os

from hypothesis import settings

ALL_EXAMPLES = 50
"""Of a property that says nothing else."""


def share_of_examples(share, of=ALL_EXAMPLES):
    """Give so large a share of a number of examples, or all of them where that is wanted."""
    return of if "SFUMATO_ALL_EXAMPLES" in os.environ else round(share * of)


def part_of_the_examples(share, of=None):
    """Let a dear property have so large a share of its examples, which are the usual ones unless a number is given."""
    return settings(max_examples=share_of_examples(share, of or max(ALL_EXAMPLES, settings().max_examples)))
