"""Honest releases of tables with odd spellings are confirmed by our own audit, whatever mechanism, cells and format."""

import os

import pytest

from odd_spellings import case, outcome

RUNS = int(os.environ.get("SFUMATO_ODD_RUNS", "200"))
BATCHES = 10
"""Tests among which the runs are shared out; `make soak` has 5,000 runs."""


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_honest_release_of_odd_spellings_is_refused(tmp_path, batch):
    """Whatever is written is confirmed, at once and read again; whatever is not leaves nothing behind."""
    wrong, n_confirmed = [], 0
    for number in range(batch, RUNS, BATCHES):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = case(number)
        what, words = outcome(made, folder)
        n_confirmed += what == "confirmed"
        wrong += [f"{what}: {made}: {words}"] if words else []

    assert not wrong, "\n".join(wrong)
    assert n_confirmed > RUNS / BATCHES / 2  # so that the runs say something
