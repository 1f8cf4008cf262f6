"""Names of people, by the words in them.

The words are given and family names in eight languages (``name_words.txt``). Many of them are other words as well:
``Baker`` is a trade, ``April`` a month, ``Valencia`` a city. A column is one of names when most of its cells are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise

from sfumato.schema import Kind
from sfumato.table.column_names import folded
from sfumato.table.identifiers.cells import Cells, Finding

_FEWEST_VALUES = 12
_ENOUGH_WHOLE = 0.6
_ENOUGH_SINGLE = 0.6
_MOST_WORDS = 6

_NOT_A_WORD = re.compile(r"[\s,;.'\-]+")
_NAME = re.compile(r"[^\d\W_][^\d_()/:@!?]*")
_NO_NAMES = """
de la le du des van der den von zu zum zur vom da dos do das di del della dello y e ten ter t d el los las und jr
dr prof med dipl ing mr mrs ms miss sir herr frau hr fr mme mlle m sr sra srta dona sig ra dott ssa pan pani dhr mevr
"""
_PARTICLES = frozenset(_NO_NAMES.split())
"""Words of a name that name nobody by themselves: particles and titles."""


@dataclass(frozen=True)
class _Words:
    given: frozenset[str]
    family: frozenset[str]


@cache
def _words() -> _Words:
    text = resources.files(__package__).joinpath("name_words.txt").read_text(encoding="utf-8")
    _, _, lists = text.partition("[given]")
    given, _, family = lists.partition("[family]")
    return _Words(frozenset(given.split()), frozenset(family.split()))


def _is_family_name(word: str) -> bool:
    """Whether a word is a family name; the feminine of a Polish one is found by the masculine."""
    family = _words().family
    if word in family:
        return True
    return word.endswith(("ska", "cka", "dzka")) and f"{word[:-1]}i" in family


def is_full_name(text: str) -> bool:
    """Whether a folded text of several words has a given name and at most one word that no name is."""
    parts = _name_parts(text)
    if len(parts) < 2:
        return False
    given = sum(part in _words().given for part in parts)
    known = sum(part in _words().given or _is_family_name(part) for part in parts)
    return given >= 1 and known >= len(parts) - 1 and (len(parts) > 2 or known == 2 or given == 1)


def is_single_name(text: str) -> bool:
    """Whether a folded text is one given name or one family name."""
    parts = _name_parts(text)
    return len(parts) == 1 and (parts[0] in _words().given or _is_family_name(parts[0]))


_CAPITALS = re.compile(r"[A-ZÀ-Þ][\w'’-]+(?:,? +[A-ZÀ-Þ][\w'’-]+)+")


def is_known_name(word: str) -> bool:
    """Whether a folded word is a given or a family name of the list."""
    return word in _words().given or _is_family_name(word)


def full_name_in(text: str) -> bool:
    """Whether a text holds a given and a family name of the list next to each other, written as names are.

    Examples
    --------
    >>> full_name_in("seen by Anna Schmidt today"), full_name_in("Crohn disease, Chad"), full_name_in("ANNA SCHMIDT")
    (True, False, True)
    """
    if text.isupper():
        words = [folded(word.strip(",")) for word in text.split()]
        return len(words) == 2 and _are_two_names(*words)
    for run in _CAPITALS.findall(text):
        words = [folded(word.strip(",")) for word in run.split()]
        if any(_are_two_names(*pair) for pair in pairwise(words)):
            return True
    return False


def _are_two_names(first: str, second: str) -> bool:
    if min(len(first), len(second)) < 3:
        return False
    given = _words().given
    return (first in given and _is_family_name(second)) or (_is_family_name(first) and second in given)


def _name_parts(text: str) -> list[str]:
    """Words of what can be a name, without titles, particles and initials."""
    if not _NAME.fullmatch(text):
        return []
    parts = [part for part in _NOT_A_WORD.split(text) if len(part) > 1 and part not in _PARTICLES]
    return parts if len(parts) <= _MOST_WORDS else []


def person_names(cells: Cells) -> Finding | None:
    """Find names of people: given and family name together, or one of them by itself."""
    if cells.kind is not Kind.CATEGORICAL or cells.n_distinct < _FEWEST_VALUES:
        return None
    if cells.share(_NAME.fullmatch) < _ENOUGH_WHOLE:
        return None
    whole = cells.share(is_full_name, cells.folded)
    if whole >= _ENOUGH_WHOLE:
        return Finding("given and family names", whole)
    single = cells.share(is_single_name, cells.folded)
    return Finding("given or family names", single) if single >= _ENOUGH_SINGLE else None
