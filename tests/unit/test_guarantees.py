"""A guarantee is declared whole, or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import pytest

from sfumato.guarantees import GUARANTEES, Guarantee, declared
from sfumato.guarantees.base import GuaranteeWords, L, Level
from sfumato.guarantees.closeness import TCloseness
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
