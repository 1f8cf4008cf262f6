"""Every kind of guarantee has words, and they say the figures."""

import re

import pytest

from sfumato.guarantees import GUARANTEES, ONE_ROW_CHANGED
from sfumato.report.guarantee_texts import guarantee_in_words, share_in_words

AGE = ["age"]
SAMPLES = {
    "k-anonymity": {"k": 5},
    "kk-anonymity": {"k": 5},
    "global-anonymity": {"k": 5},
    "containment": {"k": 5},
    "unique-patterns": {"max_unique_fraction": 0.25},
    "l-diversity": {"l": 3.0, "sensitive": "ill"},
    "t-closeness": {"t": 0.25, "sensitive": "ill"},
    "k-map": {"k_map": 5, "people": 1000},
    "delta-presence": {"delta_max": 0.25, "delta_min": 0.125, "people": 1000},
    "beta-likeness": {"beta": 1.5, "sensitive": "ill", "likeness": "enhanced"},
    "delta-disclosure": {"delta": 0.75, "sensitive": "ill"},
    "alpha-k-anonymity": {"alpha": 0.75, "k": 5, "sensitive": "ill"},
    "bucket-size": {"k": 5, "bucket": "group"},
    "bucket-diversity": {"l": 3, "bucket": "group", "sensitive": "ill"},
    "breach-bound": {"max_breach_increase": 12.0, "sensitive": "ill", "baseline": ["age", "sex"]},
    "privacy-gain": {"min_privacy_gain": 0.25, "removed": ["sex"], "n_values": {"age": 4, "sex": 2}},
    "differential-privacy": {"epsilon": 0.5, "neighbours": ONE_ROW_CHANGED},
}
UNITS = [(kind, "row") for kind in SAMPLES] + [(kind, "patient") for kind in SAMPLES if GUARANTEES[kind].counts_persons]


def test_every_kind_of_guarantee_has_words():
    assert set(GUARANTEES) == set(SAMPLES)
    assert all(guarantee.words.not_promised for guarantee in GUARANTEES.values())


@pytest.mark.parametrize(("kind", "unit"), UNITS)
def test_words_show_what_was_promised_and_found(kind, unit):
    entry = {"kind": kind, "unit": unit, "columns": AGE, **SAMPLES[kind], "audited": 7.125}
    found = guarantee_in_words(entry)

    promised = next(value for value in SAMPLES[kind].values() if isinstance(value, int | float))
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", found["found"])]
    assert promised in numbers
    assert kind == "differential-privacy" or 7.125 in numbers
    assert "{" not in found["found"] + found["statement"]
    assert found["kind"] == kind
    assert ("by persons" in found["title"]) == (unit != "row")
    assert unit == "row" or "person" in found["statement"]


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0 %"), (1e-9, "< 0.1 %"), (0.5, "50 %"), (0.9999, "> 99.9 %"), (1.0, "100 %"), (None, "–")],
)
def test_only_nothing_is_zero_percent_and_only_all_is_a_hundred(share, words):
    assert share_in_words(share).replace("\xa0", " ") == words
