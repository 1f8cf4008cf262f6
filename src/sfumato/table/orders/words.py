"""Scales of words with a well-known order, in English, German, French, Spanish, Italian, Portuguese, Dutch and Polish.

They stand in ``scales.txt``. Words are compared in lower case, without accents, and with one blank for all that is
neither letter nor digit.

Left out on purpose: words whose order depends on who asks (seasons, smoking status, yes/no/maybe), and single letters
that are codes more often than grades (A, B, C).
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from sfumato.table.column_names import folded

_NOT_A_WORD = re.compile(r"[\W_]+")

SPELLED_TWICE = "the values are words of a known scale, but two of them are the same level"
DISAGREEING = "the values are words of several known scales, which order them differently"


def word_of(text: str) -> str:
    """Write a text as it is compared with the words of scales.

    Examples
    --------
    >>> word_of("Very-LOW "), word_of("Bachelor's"), word_of("Août")
    ('very low', 'bachelor s', 'aout')
    """
    return _NOT_A_WORD.sub(" ", folded(text)).strip()


@cache
def scales() -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]:
    """Every scale: what it is called, and the spellings of each of its levels, lowest first."""
    text = (resources.files("sfumato.table.orders") / "scales.txt").read_text(encoding="utf-8")
    found, name = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            name = line[1:-1]
        elif line and not line.startswith("#"):
            found.append((name, tuple(tuple(map(word_of, level.split(" / "))) for level in line.split(" < "))))
    return tuple(found)


@cache
def _levels_of_words() -> dict[str, dict[int, int]]:
    """For each word the scales that it is in, by number, with its level there."""
    found: dict[str, dict[int, int]] = {}
    for number, (_, levels) in enumerate(scales()):
        for level, spellings in enumerate(levels):
            for word in spellings:
                found.setdefault(word, {}).setdefault(number, level)
    return found


def order_of_words(texts: list[str]) -> tuple[tuple[str, ...], str]:
    """Put words of one scale in order, lowest first; with what the scale is, or nothing and why there is no order.

    All texts have to be levels of one scale, each another one. Where several scales have them all, these have to agree
    on what lies between what.

    Examples
    --------
    >>> order_of_words(["high", "low", "medium"])
    (('low', 'medium', 'high'), 'levels')
    >>> order_of_words(["low", "Low", "high"])[0], order_of_words(["red", "low", "high"])
    ((), ((), ''))
    """
    known = _levels_of_words()
    words = [word_of(text) for text in texts]
    fitting = set(known.get(words[0], ()))
    for word in words[1:]:
        fitting &= set(known.get(word, ()))
        if not fitting:
            return (), ""
    orders = {number: _in_order(texts, [known[word][number] for word in words]) for number in sorted(fitting)}
    if any(order is None for order in orders.values()):
        return (), SPELLED_TWICE
    first = next(iter(orders))
    chosen = orders[first]
    if chosen is None or any(order not in (chosen, chosen[::-1]) for order in orders.values()):
        return (), DISAGREEING
    return chosen, scales()[first][0]


def _in_order(texts: list[str], levels: list[int]) -> tuple[str, ...] | None:
    if len(set(levels)) < len(levels):
        return None
    return tuple(text for _, text in sorted(zip(levels, texts, strict=True)))
