"""A guarantee is declared whole, or not at all."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import pytest

from sfumato.errors import InvalidParameterError
from sfumato.guarantees import GUARANTEES, Guarantee, declared
from sfumato.guarantees.anonymity import GlobalAnonymity, KKAnonymity
from sfumato.guarantees.base import GuaranteeWords, L, Level
from sfumato.guarantees.buckets import BucketDiversity, BucketSize
from sfumato.guarantees.closeness import TCloseness
from sfumato.guarantees.containment import Containment
from sfumato.guarantees.differential_privacy import DifferentialPrivacy
from sfumato.guarantees.diversity import LDiversity
from sfumato.guarantees.forms import form_of_type


def words(found="Found: {level}. Promised: {m}."):
    return GuaranteeWords("a title", "a meaning", found, "somebody", ("anything else",))


@dataclass(frozen=True)
class Toy(Guarantee):
    kind: ClassVar[str] = "toy"
    level: ClassVar[Level] = Level("m")
    words: ClassVar[GuaranteeWords] = words()
    m: float
    columns: tuple[str, ...]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "k-anonymity"}, "another one is of this kind"),
        ({"level": Level("n")}, "its level is none of its fields"),
        ({"words": words("Promised: {n}.")}, "its words tell what is none of its fields"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(wrong, said):
    known = dict(GUARANTEES)
    with pytest.raises(TypeError, match=said):
        declared(type("Wrong", (Toy,), wrong))
    assert known == GUARANTEES


def test_which_way_is_safe_is_said_once():
    most = type("Most", (Toy,), {"level": Level("m", higher_is_safer=False)})
    exact = type("Exact", (Toy,), {"slack": 0.0})

    assert [Toy(2.0, ()).is_met_by(level) for level in (1.9, 2 - 1e-10, 2, 3)] == [False, True, True, True]
    assert [most(2.0, ()).is_met_by(level) for level in (1.9, 2, 2 + 1e-10, 3)] == [True, True, True, False]
    assert [exact(2.0, ()).is_met_by(level) for level in (2 - 1e-10, 2)] == [False, True]


@pytest.mark.parametrize(
    ("hint", "form"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (float | None, {"type": ["number", "null"]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Annotated[float, {"type": "number", "minimum": 1}], {"type": "number", "minimum": 1}),
        (
            Mapping[str, tuple[float, ...]],
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number"}}},
        ),
    ],
)
def test_the_form_of_a_field_follows_from_its_type(hint, form):
    assert form_of_type(hint) == form


@pytest.mark.parametrize(
    ("level", "words", "refused"),
    [(L, "a number above 1 and up to 1,000,000,000", 1), (TCloseness.level, "a number from 0 and below 1", 1)],
    ids=["l", "t"],
)
def test_the_words_for_a_level_leave_out_the_number_that_promises_nothing(level, words, refused):
    assert level.allowed == words
    assert not level.makes_sense(refused)


@pytest.mark.parametrize(
    ("name", "kind", "fields"),
    [
        *[("l", LDiversity, {"l": level}) for level in (0.5, 1, math.nan, math.inf)],
        ("l", LDiversity, {"l": 1, "variant": "entropy"}),
        ("l", LDiversity, {"l": 1, "variant": "recursive", "c": 2.0}),
        ("c", LDiversity, {"l": 2, "variant": "recursive"}),
        ("c", LDiversity, {"l": 2, "c": 1.0}),
        *[("c", LDiversity, {"l": 2, "variant": "recursive", "c": c}) for c in (0, -1, math.nan, math.inf)],
        *[("t", TCloseness, {"t": t}) for t in (-0.1, 1, math.nan)],
    ],
    ids=str,
)
def test_a_level_that_says_nothing_or_that_no_table_has_is_refused(name, kind, fields):
    with pytest.raises(InvalidParameterError, match=f"^{name} must"):
        kind(sensitive="ill", columns=(), **fields)


NAMES = tuple("abcdefgh")
STATED = {
    Containment(5, NAMES): (
        "whatever ones of a row an attacker knows among 8 binary columns, at least 5 rows have them all (nothing is "
        "promised about zeros)"
    ),
    Containment(5, NAMES[:2], ("ones", "both")): (
        "whatever revealing values of a row an attacker knows among 2 binary columns, at least 5 rows have them all "
        "(revealing are, by number of columns, 1: ones, 1: both)"
    ),
    KKAnonymity(5, NAMES): (
        "on 8 quasi-identifying columns every original row fits at least 5 released rows and every released row at "
        "least 5 original ones (which is not k-anonymity: fewer than 5 released rows may be equal)"
    ),
    GlobalAnonymity(5, NAMES): (
        "even to somebody who knows all original rows on 8 quasi-identifying columns, each of them can belong to at "
        "least 5 released rows (global (1,k)-anonymity)"
    ),
    BucketSize(columns=NAMES, bucket="group", k=5): (
        "what 'group' holds together are at least 5 rows, so that the values of a row in one slice of the columns can "
        "belong with those of any of 5 rows in another (which is not k-anonymity: a slice may hold values of the 8 "
        "quasi-identifying columns that nobody else has)"
    ),
    BucketDiversity(columns=NAMES, bucket="group", l=3, sensitive="ill", beside=("a",)): (
        "to somebody who knows a person's 8 quasi-identifying columns and takes all rows of the same 'group' and with "
        "the same values of 'a' as equally likely, no value of 'ill' is more probable than 1/3 (quasi-identifiers are "
        "released as they are: that a person is in the table is not hidden)"
    ),
    DifferentialPrivacy(0.5, NAMES): (
        "whatever the values of one row on the features are, any release has the same probability up to a factor of "
        "exp(0.5) (8 features were released; class sizes and the list of features are taken as known)"
    ),
}
"""Guarantees that people are shown in other words than those of the manifest, and those of the manifest."""
EVERY = pytest.mark.parametrize("guarantee", STATED, ids=lambda one: one.kind)


@EVERY
def test_the_statement_of_a_manifest_keeps_its_published_wording(guarantee):
    """The audit refuses a manifest whose statement differs by a letter, so earlier releases pin the wording."""
    assert guarantee.describe() == STATED[guarantee]


@EVERY
def test_plain_words_keep_every_number_every_name_and_the_warning(guarantee):
    stated, plain = guarantee.describe(), guarantee.in_plain_words()

    numbers = set(re.findall(r"\d[\d.]*", stated.replace("(1,k)", "")))
    assert numbers <= set(re.findall(r"\d[\d.]*", plain))
    assert ("not k-anonymity" in stated) == ("not k-anonymity" in plain)
    assert set(re.findall(r"'\w+'", stated)) == set(re.findall(r"'\w+'", plain))


def test_containment_says_in_plain_words_what_is_not_covered():
    by_ones, mixed, *_ = STATED

    assert by_ones.in_plain_words() == (
        "knowing any 1-values of a person in these 8 columns still leaves at least 5 matching rows. 0-values are not "
        "covered"
    )
    assert mixed.in_plain_words().endswith("the 1-values of 1, both values of 1. Other values are not covered")
