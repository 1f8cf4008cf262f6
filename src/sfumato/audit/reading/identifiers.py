"""Whether released texts hold what names a person by its form, in a column that nobody confirmed.

The patterns are the audit's own and plainer than those by which columns are withheld: what is certain by its form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.audit.reading.spelling import Values
from sfumato.audit.reading.values import is_text
from sfumato.schema import Kind

NAME = "identifiers"
_LETTERS_OF_BANKS = {letter: str(10 + place) for place, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"[\w.+-]+@[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}",  # e-mail
        r"(?i)(https?://|www\.)\S+\.\S+",  # web
        r"(?<![\w.])@[A-Za-z_][\w.]{2,}",  # user name
        r"(?<![\w:-])([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![\w:-])",  # device
        r"(?<![\w.,])(\+|00)[1-9]([ ()./-]?\d){7,14}(?!\w)",  # phone, from abroad
        r"(?<![\w.,])\(?0\d{2,4}\)?[ /-]{1,3}\d([ /-]?\d){4,9}(?!\w)",  # phone
        r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])",  # social security
        r"(?<![\w.,+\[({-])\d{9,}(?![\w.,\])}])",  # a number of an office
        r"(?<![\w.])\d{1,2}\.\d{4,}°?[ NS]*[,;] ?-?\d{1,3}\.\d{4,}",  # coordinates
        r"(?<!\w)[A-Za-z]:\\\S+\\\S+|(?i:[\w-]+\.(jpe?g|png|dcm|pdf|docx))\b",  # file
        r"(?<!\w)(Frau|Herrn?|Mrs|Mme|Sra|Dr|Prof)\.? [A-ZÀ-Þ][a-zà-ÿ]{2,}",  # title with a name
    )
)
_BANK_ACCOUNT = re.compile(r"(?<!\w)([A-Z]{2}\d{2})((?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?)(?!\w)")


def check_identifiers(released: Values, claims: Claims) -> Iterator[Check | Unchecked]:
    """Look through the texts of columns that nobody confirmed and nobody declared the values of.

    Parameters
    ----------
    released : mapping of str to arrays
        Distinct values of the columns, or cells.
    """
    found: dict[str, int] = {}
    for column in claims.columns:
        recoding = claims.recodings.get(column.name)
        kind = column.kind if recoding is None else recoding.kind
        if kind in (Kind.NUMERIC, Kind.DATE) or column.is_confirmed or column.domain is not None:
            continue
        n_values = sum(_n_naming(some) for some in released.get(column.name, ()) if is_text(some.type))
        found |= {column.name: n_values} if n_values else {}
    if not found:
        yield Check(NAME, True, "no released text has the form of an identifier, but in columns that were confirmed")
        return
    shown = ", ".join(f"{n:,} in '{name}'" for name, n in found.items())
    said = f"released values have the form of an e-mail address, a phone number, a name or another identifier: {shown}"
    yield Unchecked(NAME, f"{said}, and nobody has confirmed the column")


def _n_naming(values: pa.Array) -> int:
    texts = values.unique().drop_null().to_pylist() if len(values) else []
    return sum(any(pattern.search(text) for pattern in _PATTERNS) or _is_account(text) for text in texts)


def _is_account(text: str) -> bool:
    """Whether a text holds an IBAN: ISO 13616, the remainder of its number by 97 is 1."""
    for start, rest in _BANK_ACCOUNT.findall(text):
        digits = "".join(_LETTERS_OF_BANKS.get(sign, sign) for sign in (rest + start).replace(" ", ""))
        if int(digits) % 97 == 1:
            return True
    return False
