"""How many examples a dear property is tried on: part of them in ``make test``, all of them in ``make soak``."""

import os

from hypothesis import settings


def part_of_the_examples(share, of=None):
    """Let a property have so large a share of its examples, which are the profile's unless their number is given."""
    n_examples = settings().max_examples if of is None else of
    return settings(max_examples=n_examples if "SFUMATO_ALL_EXAMPLES" in os.environ else round(share * n_examples))
