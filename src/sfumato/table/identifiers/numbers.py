"""Numbers that an office has given to one person or account, told by their check digits.

The rules of most are python-stdnum's. Those it does not have are written here: the German health insurance number
(Anlage 1 of the Richtlinie nach § 290 SGB V), the Spanish and Portuguese social security numbers, the British national
insurance number (which has a form and no check digit) and the card number of the European health insurance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import cycle

from sfumato.schema import Kind
from sfumato.table.identifiers.cells import Cells, Finding

_ENOUGH = 0.8
_FEWEST_VALUES = 10  # one number in ten has the right check digit by chance
_MOST_PARTS = 12
_SHORTEST, _SHORTEST_OF_DIGITS, _FEWEST_DIGITS = 8, 9, 6
_SEPARATORS = str.maketrans("", "", " .-/")


@dataclass(frozen=True)
class _Number:
    """A kind of numbers: what to call it, the form that is looked at first, and the rule of its check digits."""

    what: str
    form: re.Pattern[str]
    is_valid: Callable[[str], bool]


def _kvnr(number: str) -> bool:
    """German health insurance: the letter as two digits, every second digit doubled, digits summed."""
    digits = f"{ord(number[0]) - 64:02d}{number[1:9]}"
    return sum(p // 10 + p % 10 for p in _weighted(digits, cycle((1, 2)))) % 10 == int(number[9])


def _afiliacion(number: str) -> bool:
    """Spanish social security: province and number modulo 97."""
    province, own = int(number[:2]), int(number[2:-2])
    return (province * (10**7 if own < 10**7 else 10**8) + own) % 97 == int(number[-2:])


def _niss(number: str) -> bool:
    """Portuguese social security: weights are the first ten primes, from the largest."""
    return 9 - sum(_weighted(number, (29, 23, 19, 17, 13, 11, 7, 5, 3, 2))) % 10 == int(number[10])


def _weighted(number: str, weights: Iterable[int]) -> list[int]:
    """Digits times their weights, as far as these go."""
    return [int(digit) * weight for digit, weight in zip(number, weights, strict=False)]


@cache
def _known() -> tuple[_Number, ...]:
    from stdnum import iban, luhn
    from stdnum.at import vnr
    from stdnum.be import nn
    from stdnum.br import cpf
    from stdnum.ca import sin
    from stdnum.ch import ssn as swiss
    from stdnum.cz import rc
    from stdnum.de import idnr
    from stdnum.dk import cpr
    from stdnum.es import dni, nie
    from stdnum.fi import hetu
    from stdnum.fr import nir
    from stdnum.gb import nhs
    from stdnum.ie import pps
    from stdnum.it import codicefiscale
    from stdnum.nl import bsn
    from stdnum.no import fodselsnummer
    from stdnum.pl import pesel
    from stdnum.pt import cc, nif
    from stdnum.ro import cnp
    from stdnum.se import personnummer
    from stdnum.tr import tckimlik
    from stdnum.us import ssn as american

    national, insurance = "national or tax numbers with valid check digits", "insurance numbers with valid check digits"
    table: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
        ("bank account numbers (IBAN)", r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", lambda n: iban.is_valid(n, False)),
        ("card numbers", r"[2-6]\d{12,18}", luhn.is_valid),
        ("health insurance numbers with valid check digits", r"[A-Z]\d{9}", _kvnr),
        ("national insurance numbers", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]\d{6}[A-D]", lambda n: True),
        ("health insurance card numbers", r"80\d{18}", lambda n: True),
        (national, r"\d{11}", idnr.is_valid),
        (national, r"\d{11}", pesel.is_valid),
        (national, r"\d{11}", cpf.is_valid),
        (national, r"\d{11}", tckimlik.is_valid),
        (national, r"\d{11}", fodselsnummer.is_valid),
        (national, r"\d{11}", nn.is_valid),
        (insurance, r"[12]\d{10}", _niss),
        (insurance, r"\d{11,12}", _afiliacion),
        (insurance, r"[12]\d{4}[0-9AB]{2}\d{8}", nir.is_valid),
        (insurance, r"756\d{10}", swiss.is_valid),
        (insurance, r"\d{10}", nhs.is_valid),
        (insurance, r"\d{10}", vnr.is_valid),
        (national, r"[0-9XYZ]\d{7}[A-Z]", lambda n: dni.is_valid(n) or nie.is_valid(n)),
        (national, r"[A-Z]{6}[0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]", codicefiscale.is_valid),
        (national, r"\d{9}", nif.is_valid),
        (national, r"\d{8,9}", bsn.is_valid),
        (national, r"\d{9}", sin.is_valid),
        (national, r"\d{9}[A-Z0-9]{2}\d", cc.is_valid),
        (national, r"[1-9]\d{12}", cnp.is_valid),
        (national, r"\d{9,10}", rc.is_valid),
        (national, r"\d{10}", cpr.is_valid),
        (national, r"(\d{2})?\d{6}\+?\d{4}", personnummer.is_valid),
        (national, r"\d{6}[+A]?\d{3}[0-9A-Y]", hetu.is_valid),
        (national, r"\d{7}[A-W][A-IW]?", pps.is_valid),
    )  # fmt: skip
    return (
        _Number("social security numbers", re.compile(r"\d{3}-\d{2}-\d{4}"), american.is_valid),
        *(_Number(what, re.compile(form), is_valid) for what, form, is_valid in table),
    )


def is_checked_number(text: str) -> bool:
    """Whether neighbouring parts of a text make a number with the check digits of one of the known kinds.

    Examples
    --------
    >>> is_checked_number("IBAN DE89 3704 0044 0532 0130 00"), is_checked_number("DE12 ABCD 1")
    (True, False)
    """
    parts = re.split(r"[ ./-]", text.upper())[:_MOST_PARTS]
    windows = ("".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))
    return any(
        number.form.fullmatch(window) and number.is_valid(window)
        for window in windows
        if len(window) >= (_SHORTEST_OF_DIGITS if window.isdigit() else _SHORTEST)
        and sum(map(str.isdigit, window)) >= _FEWEST_DIGITS
        for number in _known()
    )


def checked_numbers(cells: Cells) -> Iterator[Finding]:
    """Find numbers with the check digits of one of the known kinds, in any spelling with blanks, dots or hyphens."""
    if cells.n_distinct < _FEWEST_VALUES or not _may_hold_numbers(cells):
        return
    compact = tuple(text.translate(_SEPARATORS).upper() for text in cells.texts)
    for number in _known():
        spelled = cells.texts if "-" in number.form.pattern and "[" not in number.form.pattern else compact
        if cells.share(number.form.fullmatch, spelled) < _ENOUGH:
            continue
        share = cells.share(lambda text, n=number: n.form.fullmatch(text) and n.is_valid(text), spelled)  # type: ignore[misc]
        if share >= _ENOUGH:
            yield Finding(number.what, share)


def _may_hold_numbers(cells: Cells) -> bool:
    """Whether the longest value of some has digits enough, before thirty forms are tried on all of them."""
    shown = cells.texts[:: max(1, len(cells.texts) // 10)]
    if cells.kind is Kind.DATE:
        return False
    return sum(sum(map(str.isdigit, text)) >= 6 for text in shown) >= len(shown) / 2
