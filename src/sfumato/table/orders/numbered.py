"""Texts with a number that says their order: ``Grade 3``, ``Stage IIa``, ``ISCED 3-4``, ``2nd``, ``1 - bad``.

A number alone is no order: codes are numbered too. So the word before it has to be one that ranks (grade, stage,
quintile; not ward, group or type), and the words after it have to be a known scale that runs the same way, or stand
only at some numbers of a rating (``1 - not at all``, ``2``, ``3 - extremely``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from sfumato.table.column_names import folded
from sfumato.table.orders.intervals import order_of_intervals
from sfumato.table.orders.words import order_of_words

NO_SCALE = "the values are numbered, but their words are no known scale"
PARTS = "the values are numbered stages, but one of them is a part of another"

_RANKING = (  # longer phrases first
    r"isced 2011 level|isced 2011|isced level|isced|skill level|nyha class|nyha|asa class|asa|ckd stage|"
    r"grade|level|stage|step|tier|phase|year|rank|score|decile|quartile|quintile|tercile|tertile|q|"
    r"stufe|stadium|grad|niveau|dezil|quartil|quintil|jahr|pflegegrad|pflegestufe|stade|etape|degre|annee|"
    r"nivel|grado|estadio|etapa|fase|ano|livello|stadio|anno|grau|estagio|graad|kwartiel|kwintiel|jaar|"
    r"poziom|stopien|etap|faza|kwartyl|kwintyl|rok"
)
_PREFIXED = re.compile(rf"({_RANKING})[\s_:.#-]*(\S.*)")
_ROMAN = re.compile(r"((?:x{0,2})(?:ix|iv|v?i{0,3}))([a-d]?)(\d?)")
_ARABIC = re.compile(r"(\d{1,4})([a-d]?)(\d?)")
_ORDINAL = re.compile(r"(\d{1,3})\s?(?:st|nd|rd|th)(?: (?:grade|class|year|quarter|quartile|quintile|stage|degree))?")
_LABELLED = re.compile(r"\(?(\d{1,3})\)?(?:\s*[-–—:=.)]\s*|\s+(?=[^\W\d]))([^\d\s].*)")
_BARE = re.compile(r"\d{1,3}")
_VALUE_OF = {"i": 1, "v": 5, "x": 10}

Place = tuple[int, str, str]


def order_of_numbered(texts: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Put numbered texts in order, lowest first; with what they are, or nothing and why there is no order.

    Examples
    --------
    >>> order_of_numbered(["Stage III", "Stage IIb", "Stage IIa"])
    (('Stage IIa', 'Stage IIb', 'Stage III'), 'numbered stages')
    >>> order_of_numbered(["1 - bad", "3 - good", "2 - fair"])[0], order_of_numbered(["Ward 1", "Ward 2", "Ward 3"])[0]
    (('1 - bad', '2 - fair', '3 - good'), ())
    """
    plain = {text: folded(text).strip() for text in texts}
    order, said = _labelled(texts, plain)
    if order or said:
        return order, said
    ordinals = {text: _ORDINAL.fullmatch(own) for text, own in plain.items()}
    if all(ordinals.values()):
        places = {text: (int(found[1]), "", "") for text, found in ordinals.items() if found}
        return _by_places(places, "ordinal numbers")
    return _stages(plain)


def _stages(plain: dict[str, str]) -> tuple[tuple[str, ...], str]:
    found = {text: _PREFIXED.fullmatch(own) for text, own in plain.items()}
    prefixed = {text: match for text, match in found.items() if match}
    if prefixed and len(prefixed) < len(plain):
        return (), ""
    if len({match[1] for match in prefixed.values()}) > 1:
        return (), ""
    rest = {text: match[2] for text, match in prefixed.items()} or plain
    for form in (_ARABIC, _ROMAN):
        numbers = {text: form.fullmatch(own) for text, own in rest.items()}
        if not all(match and match[1] for match in numbers.values()):
            continue
        if not prefixed and (form is _ARABIC or sum(len(own) > 1 for own in rest.values()) < 2):
            return (), ""  # numbers alone, or letters that may be no numbers
        places = {text: (_size(match[1]), match[2], match[3]) for text, match in numbers.items() if match}
        return _by_places(places, "numbered stages")
    if not prefixed:
        return (), ""
    by_rest = {own: text for text, own in rest.items()}
    order, why = order_of_intervals(list(by_rest), of_numbers_alone=True)
    return tuple(by_rest[own] for own in order), why or ("numbered stages" if order else "")


def _by_places(places: dict[str, Place], what: str) -> tuple[tuple[str, ...], str]:
    order = sorted(places, key=lambda text: places[text])
    for before, after in pairwise(order):
        first, second = places[before], places[after]
        if first[0] == second[0] and ("" in (first[1], second[1]) or (first[1] == second[1] and not first[2])):
            return (), PARTS
        if first == second:
            return (), PARTS
    return tuple(order), what


def _size(number: str) -> int:
    if number.isdigit():
        return int(number)
    sizes = [_VALUE_OF[letter] for letter in number]
    return sum(-size if size < after else size for size, after in zip(sizes, [*sizes[1:], 0], strict=True))


def _labelled(texts: Sequence[str], plain: dict[str, str]) -> tuple[tuple[str, ...], str]:
    """Order numbers with words after them, where the words say that the numbers rank."""
    labelled = {text: match for text, own in plain.items() if (match := _LABELLED.fullmatch(own))}
    bare = [text for text, own in plain.items() if _BARE.fullmatch(own)]
    if not labelled or len(labelled) + len(bare) < len(texts):
        return (), ""
    if any(_ORDINAL.fullmatch(plain[text]) for text in labelled):
        return (), ""
    number_of = {text: int(match[1]) for text, match in labelled.items()} | {text: int(plain[text]) for text in bare}
    order = tuple(sorted(texts, key=lambda text: number_of[text]))
    if len(set(number_of.values())) < len(texts):
        return (), ""
    if bare:  # codes of a list all have words, or none has
        return order, "a rating"
    words = [labelled[text][2] for text in order]
    scale, what = order_of_words(words) if len(set(words)) == len(words) else ((), "")
    if scale in (tuple(words), tuple(words[::-1])):
        return order, f"numbered {what}"
    return (), NO_SCALE
