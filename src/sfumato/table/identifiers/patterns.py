"""What can be told by its form: addresses of all kinds, phone numbers, places on the map, dates of birth."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from datetime import date

import numpy as np

from sfumato.schema import Kind
from sfumato.table.identifiers.cells import Cells, Finding

_HALF = 0.5
_MOST = 0.8
_FEWEST_VALUES = 3  # two values with an @ may be a yes and a no

_SIGNS = re.compile(r"\d|[@/]|www")  # without one of these a column of words has none of the forms
_EMAIL = re.compile(r"[^@\s,;]+@[^@\s,;]+\.[A-Za-z]{2,}")
_URL = re.compile(r"(https?://|www\.)\S+\.\S+", re.IGNORECASE)
_MAC = re.compile(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
_DEGREES = r"[-+]?\d{1,3}[.,]\d{3,}°?\s*[NSEWO]?"
_COORDINATES = re.compile(
    rf"\(?\s*{_DEGREES}\s*[,;/ ]\s*{_DEGREES}\s*\)?"
    r"|point\s*\(\s*[-+]?[\d.]+\s+[-+]?[\d.]+\s*\)"
    r"|\d{1,3}\s*°\s*\d{1,2}\s*['′].*\d{1,3}\s*°\s*\d{1,2}\s*['′].*",
    re.IGNORECASE,
)


def is_email(text: str) -> bool:
    """Whether a text has the form of an e-mail address."""
    return "@" in text and _EMAIL.fullmatch(text) is not None


def is_url(text: str) -> bool:
    """Whether a text has the form of an address of the web."""
    return _URL.fullmatch(text) is not None


def is_network_address(text: str) -> bool:
    """Whether a text is an IP or MAC address."""
    if text.count(".") != 3 and text.count(":") < 2 and text.count("-") != 5:
        return False
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _MAC.fullmatch(text) is not None
    return True


def is_coordinates(text: str) -> bool:
    """Whether a text is a latitude with a longitude."""
    return _COORDINATES.fullmatch(text) is not None


# Phone numbers have no form that is theirs alone: 9 to 15 digits, and a sign that they are dialled.


_PHONE = re.compile(r"\(?(\+|0)?[\d\s()./-]+")
_DATE_OR_DECIMAL = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}([ T].*)?|\d+\.\d+")


def is_phone(text: str) -> bool:
    """Whether a text can be a phone number: dialled from abroad, with its leading zero, or in three groups or more."""
    if not _PHONE.fullmatch(text) or not 9 <= sum(map(str.isdigit, text)) <= 15 or _DATE_OR_DECIMAL.fullmatch(text):
        return False
    return text[0] in "+0(" or len(re.findall(r"\d+", text)) >= 3


# Streets, by the words for them.


_STREET_WORDS = (
    "street|st|road|rd|avenue|ave|av|lane|ln|drive|dr|close|court|crescent|terrace|square|way|highway|blvd|"
    "rue|boulevard|bd|chemin|impasse|allee|quai|place|cours|passage|"
    "calle|c|avenida|avda|plaza|pza|paseo|camino|carretera|ronda|"
    "via|viale|corso|piazza|vicolo|largo|contrada|strada|"
    "rua|r|travessa|praca|estrada|alameda|"
    "ul|ulica|al|aleja|pl|plac|os|osiedle"
)
_STREET_ENDINGS = "strasse|str|weg|platz|gasse|allee|ring|damm|ufer|straat|laan|plein|gracht|dijk|kade|singel|hof"
_STREET = re.compile(rf"(?:\b(?:{_STREET_WORDS})|(?:{_STREET_ENDINGS}))\b")
_FEWEST_LETTERS, _MOST_BLANKS = 6, 9
_HOUSE_NUMBER = re.compile(r"(?<![\d.])\d{1,4}\s?[a-z]?\b")


def is_street_address(text: str) -> bool:
    """Whether a folded text has a word for a street and a house number, and is no sentence."""
    if _HOUSE_NUMBER.search(text) is None or not len(text) > _FEWEST_LETTERS or text.count(" ") > _MOST_BLANKS:
        return False
    return _STREET.search(text) is not None


# Dates of birth are whole dates over two generations; dates of visits lie within some years.


_DAY_FORMS = (
    re.compile(r"(?P<d>\d{1,2})([./-])\s?(?P<m>\d{1,2})\2\s?(?P<y>\d{4})(\s00:00(:00)?)?"),
    re.compile(r"(?P<y>\d{4})([./-])(?P<m>\d{1,2})\2(?P<d>\d{1,2})([ T]00:00(:00)?)?"),
)
_FEWEST_DATES = 20
_GENERATIONS_IN_DAYS = 35 * 365
_FIRST_BIRTH_YEAR = 1890


def day_of(text: str) -> date | None:
    """Read a whole date, the day before or after the month."""
    for form in _DAY_FORMS:
        found = form.fullmatch(text)
        if found:
            year, month, day = int(found["y"]), int(found["m"]), int(found["d"])
            if month > 12:
                month, day = day, month
            try:
                return date(year, month, day)
            except ValueError:
                return None
    return None


def birth_dates(cells: Cells, *, name_says_birth: bool = False) -> Finding | None:
    """Find whole dates that spread over generations, or that are dates of birth by the name of their column."""
    if cells.kind is Kind.NUMERIC or cells.n_distinct < (_FEWEST_VALUES if name_says_birth else _FEWEST_DATES):
        return None
    if cells.share(day_of) < _MOST:
        return None
    days = [day_of(text) for text in cells.texts]
    known = np.array([day.toordinal() for day in days if day is not None])
    share = len(known) / len(days)
    if share < _MOST:
        return None
    early, late = np.quantile(known, [0.05, 0.95])
    spread = late - early >= _GENERATIONS_IN_DAYS and early >= date(_FIRST_BIRTH_YEAR, 1, 1).toordinal()
    return Finding("full dates of birth", share) if spread or name_says_birth else None


_MOST_LATITUDE, _MOST_LONGITUDE = 90, 180
_EXACT = re.compile(r"[-+]?\d{1,3}[.,]\d{4,}")


def exact_degrees(cells: Cells) -> Finding | None:
    """Find a latitude or a longitude that is exact to about ten metres, in a column whose name says that it is one."""
    share = cells.share(_EXACT.fullmatch)
    return Finding("degrees with four decimals or more", share) if share >= _HALF else None


_FORMS: tuple[tuple[str, Callable[[str], bool], float, bool], ...] = (
    ("e-mail addresses", is_email, _HALF, False),
    ("web addresses", is_url, _HALF, False),
    ("network addresses", is_network_address, _HALF, False),
    ("coordinates", is_coordinates, _HALF, False),
    ("postal addresses", is_street_address, _HALF, True),
    ("phone numbers", is_phone, 0.6, False),
)


def forms(cells: Cells) -> Iterator[Finding]:
    """Find what has a form of its own, the plainest first."""
    if cells.kind is Kind.NUMERIC or cells.n_distinct < _FEWEST_VALUES or not _SIGNS.search(" ".join(cells.texts)):
        return
    for what, fits, enough, is_folded in _FORMS:
        share = cells.share(fits, cells.folded if is_folded else cells.texts)
        if share >= enough:
            yield Finding(what, share)
