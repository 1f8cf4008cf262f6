"""Tables in which one column holds identifiers: 23 kinds × 4 languages × 5 placements × 2 headers, 600 rows each.

Written from public descriptions of the formats and without a look at the rules that it judges. A run is one table:
age, sex, ward, a target ``y`` of two values, and the column with the identifiers under a header that says nothing
(``col7``) or something harmless (``diagnosis``). :func:`leaks` judges the released file; it shares no code with
``src``.

``LANGUAGES`` may be looked at while rules are written, ``HELD_OUT`` may not.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from identifiers import formats, words
from identifiers.formats import Maker, pick

N_ROWS = 600
LANGUAGES = ("en", "de", "fr", "es")
HELD_OUT = ("it", "pt", "nl", "pl")

KINDS: dict[str, tuple[Maker, ...]] = {
    "full name": (formats.full_name,),
    "foreign name": (formats.foreign_name,),
    "name with comma": (formats.name_with_comma,),
    "first name": (formats.given_name,),
    "street address": (formats.address, formats.full_address),
    "address without street word": (formats.address_without_street_word,),
    "phone": (formats.phone,),
    "email": (formats.email,),
    "profile url": (formats.url, formats.url_with_user),
    "handle": (formats.handle,),
    "login": (formats.login,),
    "bank number": (formats.iban, formats.card, formats.iban),
    "national number": (formats.national_number, formats.national_number_with_word, formats.insurance_number),
    "network address": (formats.mac_address, formats.mac_with_word, formats.ip_address),
    "imei": (formats.imei, formats.imei_with_word),
    "device name": (formats.device_name,),
    "plate": (formats.plate,),
    "file path": (formats.photo_path,),
    "coordinates": (formats.coordinates, formats.coordinates_in_degrees),
    "plus code": (formats.plus_code, formats.short_plus_code),
    "timestamp": (formats.timestamp, formats.local_timestamp),
    "short code": (
        formats.short_code,
        formats.letter_code,
        formats.short_code,
        formats.case_code,
        formats.hexadecimal_code,
        formats.universal_code,
        formats.short_code,
    ),
    "number key": (formats.five_digit_key, formats.five_digit_key, formats.long_number),
}
"""What is planted, and in which forms; the forms take turns over languages, placements and headers."""

HEADERS = {"neutral": words.NEUTRAL, "misleading": words.MISLEADING}


@dataclass(frozen=True)
class Run:
    """A table with one column of identifiers.

    Parameters
    ----------
    kind, language, placement, header : str
        What was planted, in which language, where, and under which kind of header.
    column : str
        Name of the column that holds the identifiers.
    columns : dict of str to tuple of str
        The whole table, cells as texts; the target is ``y``.
    identifiers : frozenset of str
        What must not be in a released file.
    """

    kind: str
    language: str
    placement: str
    header: str
    column: str
    columns: dict[str, tuple[str, ...]]
    identifiers: frozenset[str]

    @property
    def id(self) -> str:
        return "/".join((self.kind, self.language, self.placement, self.header))

    def csv(self) -> bytes:
        """Give the table as a CSV file in UTF-8."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        return file.getvalue().encode()


def runs(languages: Sequence[str] = LANGUAGES, kinds: Sequence[str] = tuple(KINDS)) -> Iterator[Run]:
    """Make all runs, always the same ones: ten of each kind and language."""
    for kind, language, placement, header in product(kinds, languages, PLACEMENTS, HEADERS):
        yield _run(kind, language, placement, header)


def sample(languages: Sequence[str] = LANGUAGES, kinds: Sequence[str] = tuple(KINDS)) -> Iterator[Run]:
    """Make one run of each kind in each placement; language and header are drawn, always the same ones."""
    for kind, placement in product(kinds, PLACEMENTS):
        draw = Random(f"sample of {kind}/{placement}")
        yield _run(kind, draw.choice(languages), placement, draw.choice(list(HEADERS)))


def _run(kind: str, language: str, placement: str, header: str) -> Run:
    places = zip((KINDS, words.LANGUAGES, PLACEMENTS, HEADERS), (kind, language, placement, header), strict=True)
    turn = sum(list(names).index(name) for names, name in places)
    draw = Random(f"{kind}/{language}/{placement}/{header}")
    maker = KINDS[kind][turn % len(KINDS[kind])]
    names = HEADERS[header][language].split("|")
    column, columns = names[turn % len(names)], _surroundings(draw, language)
    others = {text for cells in columns.values() for text in cells}.union(
        _CODES, _phrases(language), _categories(language), words.SENTENCES[language].split("|")
    )
    known = "|".join(map(_folded, others))
    identifiers: set[str] = set()

    def identifier() -> str:
        while True:  # a first name may be a word of an ordinary text, which the judge could not tell apart
            text = maker(draw, language)
            if _folded(text) not in known:
                identifiers.add(text)
                return text

    cells = PLACEMENTS[placement](draw, language, header, identifier)
    y = columns.pop("y")
    return Run(
        kind,
        language,
        placement,
        header,
        column,
        {**columns, column: tuple(cells), "y": y},
        frozenset(identifiers),
    )


def _surroundings(draw: Random, language: str) -> dict[str, tuple[str, ...]]:
    """Ordinary columns; y depends on the age, so that there is something to learn."""
    position = words.LANGUAGES.index(language)
    age = [draw.randrange(18, 95) for _ in range(N_ROWS)]
    yes, no = words.YES_NO[language].split("|")
    return {
        words.HEADERS["age"].split("|")[position]: tuple(map(str, age)),
        words.HEADERS["sex"].split("|")[position]: tuple(pick(draw, words.SEX[language]) for _ in range(N_ROWS)),
        words.HEADERS["department"].split("|")[position]: tuple(
            pick(draw, words.DEPARTMENTS[language]) for _ in range(N_ROWS)
        ),
        "y": tuple(yes if years + draw.gauss(0, 20) > 60 else no for years in age),
    }


# Placements.

_CODES = ("E11.9", "I10.0", "J45.9", "S72.0", "I50.1", "K80.2", "G43.9", "I25.1", "N18.3", "M54.5", "F32.1", "J44.0")
Identifier = Callable[[], str]


def _phrases(language: str) -> list[str]:
    """Give texts that many rows share: so many that a few identifiers are a small part of the distinct values."""
    return [text for texts in (words.PHRASES, words.ANSWERS, words.MARITAL) for text in texts[language].split("|")]


def _categories(language: str) -> list[str]:
    lists = (words.DIAGNOSES, words.DEPARTMENTS, words.INSURERS)
    return [text for texts in lists for text in texts[language].split("|")]


def _own_column(draw: Random, language: str, header: str, identifier: Identifier) -> list[str]:
    """One row a person, or one to four as in tables of visits; each form occurs under both kinds of header."""
    if (header == "neutral") is (words.LANGUAGES.index(language) % 2 == 0):
        return [identifier() for _ in range(N_ROWS)]
    cells: list[str] = []
    while len(cells) < N_ROWS:
        cells += [identifier()] * draw.randint(1, 4)
    draw.shuffle(cells)
    return cells[:N_ROWS]


def _among_phrases(draw: Random, language: str, header: str, identifier: Identifier) -> list[str]:
    cells = [identifier() for _ in range(N_ROWS * 30 // 100)]
    return _shuffled(draw, cells, _phrases(language))


def _rare(draw: Random, language: str, header: str, identifier: Identifier) -> list[str]:
    ordinary = _categories(language) if header == "misleading" else _phrases(language)
    return _shuffled(draw, [identifier() for _ in range(N_ROWS * 2 // 100)], ordinary)


def _in_sentences(draw: Random, language: str, header: str, identifier: Identifier) -> list[str]:
    cells = [pick(draw, words.SENTENCES[language]).format(x=identifier()) for _ in range(N_ROWS * 35 // 100)]
    return _shuffled(draw, cells, _phrases(language))


def _repeated_among_codes(draw: Random, language: str, header: str, identifier: Identifier) -> list[str]:
    cells: list[str] = []
    while len(cells) < N_ROWS * 40 // 100:
        cells += [identifier()] * draw.choice((2, 3))
    return _shuffled(draw, cells, _CODES if header == "neutral" else _categories(language))


def _shuffled(draw: Random, cells: list[str], ordinary: Sequence[str]) -> list[str]:
    cells += draw.choices(ordinary, k=N_ROWS - len(cells))
    draw.shuffle(cells)
    return cells


PLACEMENTS: dict[str, Callable[[Random, str, str, Identifier], list[str]]] = {
    "own column": _own_column,
    "30 % among phrases": _among_phrases,
    "2 % of the cells": _rare,
    "in sentences": _in_sentences,
    "repeated among codes": _repeated_among_codes,
}


# The judge.


def leaks(release_text: str, identifiers: Collection[str]) -> int:
    """Count the cells of a released CSV file that hold an identifier: alone, in a set ``{a|b}``, or within a text.

    Compared are the words of both, whatever marks are between them: signs of escape, of sets and of ranges do not hide
    an identifier, and ``1.5`` is not found in ``11.5``.
    """
    wanted = [_folded(text) for text in identifiers]
    cells = Counter(cell for row in csv.reader(io.StringIO(release_text)) for cell in row)
    return sum(n for cell, n in cells.items() if _holds(_folded(cell), wanted))


def held(text: str, identifiers: Collection[str]) -> int:
    """Count the identifiers that occur in a text, such as a manifest or what a command printed.

    Unlike in :func:`leaks` upper and lower case differ: ``max`` in a message is not Max.
    """
    plain = _in_words(text)
    return sum(_in_words(identifier) in plain for identifier in identifiers)


def _holds(cell: str, wanted: list[str]) -> bool:
    return any(text in cell for text in wanted)


def _folded(text: str) -> str:
    return _in_words(text.casefold())


def _in_words(text: str) -> str:
    """Give the words, each between two blanks; the T of a date and time is a blank."""
    plain = re.sub(r"(?<=\d)[Tt](?=\d\d:)", " ", unicodedata.normalize("NFC", text))
    return " ".join(["", *re.findall(r"\w+", plain), ""])
