"""Names of the months in the eight languages of the project, whole and shortened."""

from __future__ import annotations

import unicodedata
from functools import cache

_NAMES = {
    "English": "january february march april may june july august september october november december",
    "German": "januar februar märz april mai juni juli august september oktober november dezember",
    "French": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "Spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "Italian": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "Portuguese": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "Dutch": "januari februari maart april mei juni juli augustus september oktober november december",
    "Polish": "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
    "Polish, of the month": (
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia"
    ),
    "Austrian": "jänner feber märz april mai juni juli august september oktober november dezember",
}
_SHORTENED = "sept:9 setiembre:9 mrt:3 janv:1 fevr:2 avr:4 juil:7 maerz:3 jaenner:1"
_SHORT = 3


def month_of(name: str) -> int | None:
    """Give the number of a month by its name or its first three letters or more, in any letter case; else ``None``.

    Examples
    --------
    >>> month_of("avril"), month_of("Apr"), month_of("PAŹ"), month_of("brumaire")
    (4, 4, 10, None)
    """
    return _numbers().get(folded(name))


def folded(name: str) -> str:
    """Give a name in small letters without accents and without a full stop after it."""
    parts = unicodedata.normalize("NFKD", name.casefold().removesuffix("."))
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


@cache
def _numbers() -> dict[str, int]:
    """Numbers by folded names and all their shortened forms that mean one month only."""
    found: dict[str, set[int]] = {}
    for names in _NAMES.values():
        for number, name in enumerate(map(folded, names.split()), start=1):
            for length in range(_SHORT, len(name) + 1):
                found.setdefault(name[:length], set()).add(number)
    for entry in _SHORTENED.split():
        short, month = entry.split(":")
        found[short] = {int(month)}
    return {name: next(iter(numbers)) for name, numbers in found.items() if len(numbers) == 1}
