"""How large tests are: small in ``make test``, in full size in ``make soak``, which sets ``SFUMATO_FULL_SIZE``."""

import os

from hypothesis import HealthCheck, settings

IS_FULL = "SFUMATO_FULL_SIZE" in os.environ
USUAL_EXAMPLES = 50
"""Of a property that says nothing else, in full size."""
SHARE = 0.3
"""What ``make test`` tries of a number of examples."""
FEWEST = 4


def n_examples(n):
    """Give a number of examples as it is in full size, or the share of it that ``make test`` tries."""
    return n if IS_FULL else max(min(n, FEWEST), round(SHARE * n))


def examples(n):
    """Let a property have so many examples in full size."""
    return settings(max_examples=n_examples(n))


settings.register_profile(
    "sfumato",
    max_examples=n_examples(USUAL_EXAMPLES),
    derandomize=not IS_FULL,  # make test has the same examples every time, make soak draws them anew
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sfumato")
