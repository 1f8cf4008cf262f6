"""Hierarchies that are ready for codes of public standards: ages, dates, countries, postcodes, diagnoses, occupations.

A ready hierarchy knows every code of its standard, so it needs nothing but the values of a column. Values that it does
not know are refused, or put under *other* where the caller asks for that; none is dropped. Its labels are words and
ranges of the standard, never values of other people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.mechanisms.hierarchies.builders import MASK, calendar_levels, is_date
from sfumato.mechanisms.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.table.column_names import folded

Labels = tuple[str, ...]
Placing = Callable[[str], Labels | None]

OTHER = "other"
"""Label of values that a ready hierarchy does not know, where they are not refused."""
UNKNOWN = ("refuse", OTHER)
"""What may be done with values that a ready hierarchy does not know."""

_TABLES = "sfumato.table.standards"
_OLDEST = 130


def ready_hierarchy(
    name: str, values: Sequence[str], *, unknown: str = "refuse", country: str | None = None
) -> Hierarchy:
    """Build the ready hierarchy of some values, trimmed texts.

    Parameters
    ----------
    name : {"age", "date", "country", "postcode", "icd10", "icd9", "isced", "isco", "nace"}
    unknown : {"refuse", "other"}
        What to do with values that are no codes of the standard.
    country : str or None
        Of postcodes: two letters of ISO 3166. ``None`` masks one character after the other.

    Raises
    ------
    SchemaError
        If values are not known and are to be refused; says how many, never which.

    Examples
    --------
    >>> ready_hierarchy("country", ["FR", "DE", "BR"]).labels[1:]
    (('Western Europe', 'South America'), ('*',))
    >>> ready_hierarchy("icd10", ["E11.9", "E10", "I21.0"]).labels[1:]
    (('E08-E14', 'I20-I25'), ('*',))
    """
    if name not in READY:
        raise InvalidParameterError("ready", f"got {name!r}", allowed=f"one of {', '.join(READY)}")
    if unknown not in UNKNOWN:
        raise InvalidParameterError("unknown", f"got {unknown!r}", allowed=f"one of {', '.join(UNKNOWN)}")
    if country is not None and name != "postcode":
        raise InvalidParameterError("country", f"got {country!r}", allowed="given for postcodes only")
    if not values:
        problem = "a column without values has no hierarchy"
        raise SchemaError(problem)
    if name == "date" and all(map(is_date, values)):
        return replace(calendar_levels(values), standard=name)
    place = _postcodes_of(country, values) if name == "postcode" else _PLACING[name]
    placed = {value: place(value) for value in values}
    n_levels = max((len(labels) for labels in placed.values() if labels), default=1)
    n_unknown = sum(labels is None for labels in placed.values())
    if n_unknown and (unknown == "refuse" or n_unknown == len(placed)):
        problem = f"{n_unknown:,} of {len(placed):,} values are no {READY[name]}"
        hint = f"put them under '{OTHER}' (unknown = {OTHER}), correct them, or take another method"
        raise SchemaError(problem, hint=hint)
    rows = [(value, *(labels or (OTHER,) * n_levels), ROOT) for value, labels in placed.items()]
    return replace(Hierarchy.from_rows(rows).joining_levels(), standard=name)


# Ages: bands of 5, 10 and 20 years.


def _age(value: str) -> Labels | None:
    match = re.fullmatch(r"(\d{1,3})(?:\.\d+)?", value)
    if match is None or int(match[1]) > _OLDEST:
        return None
    return tuple(f"[{low}, {low + width - 1}]" for width in (5, 10, 20) for low in [int(match[1]) // width * width])


def _date(value: str) -> Labels | None:
    return (value[:7], value[:4]) if is_date(value) else None


# Countries: ISO 3166-1, in the sub-regions and regions of the United Nations' standard M49; compared with the codes of
# regions in the repository lukes/ISO-3166-Countries-with-Regional-Codes, and for what it leaves out with M49.


@cache
def countries() -> Mapping[str, tuple[str, Labels, Labels]]:
    """For each country by its two letters: its three letters, its names, and its sub-regions and region."""
    found: dict[str, tuple[str, Labels, Labels]] = {}
    regions: Labels = ()
    for line in _lines("countries.txt"):
        if line.startswith("["):
            regions = tuple(line[1:-1].split(" | "))
        else:
            two, three, names = line.split(" ", 2)
            found[two] = (three, tuple(names.split(" / ")), regions)
    return found


@cache
def _regions_of_names() -> Mapping[str, Labels]:
    found: dict[str, Labels] = {}
    for two, (three, names, regions) in countries().items():
        for name in (two, three, *names):
            found[_country_key(name)] = regions
    return found


def _country_key(name: str) -> str:
    """Write codes in capital letters only (``no`` is no Norway), names without accents, signs and *the*."""
    if re.fullmatch(r"[A-Z]{2,3}", name):
        return name
    words = re.sub(r"[\W_]+", " ", folded(name).replace("&", " and ")).split()
    return " ".join(word for word in words if word != "the")


def _country(value: str) -> Labels | None:
    return _regions_of_names().get(_country_key(value))


# Diagnoses: ICD-10 and ICD-10-CM by category, block and chapter (sources: ``tables/icd10.txt``); ICD-9 by category and
# chapter, as in the R package icd.

_ICD10 = re.compile(r"([A-Z])([0-9A])([0-9A-Z])(?:\.?[0-9A-Z]{1,4}[-+*!]?|\.-)?")
_ICD9 = re.compile(r"(?:(\d{1,3})|V(\d{1,2})|(E\d{1,3}))(?:\.\d{1,2})?")
_ICD9_CHAPTERS = (
    (1, 139), (140, 239), (240, 279), (280, 289), (290, 319), (320, 389), (390, 459), (460, 519), (520, 579),
    (580, 629), (630, 679), (680, 709), (710, 739), (740, 759), (760, 779), (780, 799), (800, 999),
)  # fmt: skip

Place = tuple[str, int]


@cache
def icd10_blocks() -> tuple[tuple[str, str, Labels], ...]:
    """Blocks of ICD-10 as ranges, each with its chapter and the categories that do not lie in the range."""
    found = []
    for line in _lines("icd10.txt"):
        chapter, _, blocks = line[1:].partition("] ")
        number, _, span = chapter.partition(" ")
        for block in blocks.split():
            name, _, more = block.partition(":")
            found.append((name, f"{number} ({span})", tuple(more.split(",")) if more else ()))
    return tuple(found)


@cache
def _icd10_letters() -> Mapping[str, tuple[str, str]]:
    """Block and chapter of the categories that are not a letter and two digits."""
    ends = [(end, name, chapter) for name, chapter, _ in icd10_blocks() for end in name.split("-")]
    more = [(code, name, chapter) for name, chapter, codes in icd10_blocks() for code in codes]
    return {code: (name, chapter) for code, name, chapter in (*ends, *more) if not code[1:].isdigit()}


@cache
def _icd10_ranges() -> tuple[tuple[Place, Place, str, str], ...]:
    plain = [(name, chapter) for name, chapter, _ in icd10_blocks() if name.replace("-", "")[1:3].isdigit()]
    return tuple((_place(name[:3]), _place(name[4:]), name, chapter) for name, chapter in plain if name[1:3].isdigit())


def _place(category: str) -> Place:
    return category[0], int(category[1:])


def _icd10(value: str) -> Labels | None:
    code = value.upper()
    if _ICD10.fullmatch(code) is None:
        return None
    category = code[:3]
    if category in _icd10_letters():
        return (f"{category}.-", *_icd10_letters()[category])
    if not category[1:].isdigit():
        return None
    place = _place(category)
    for low, high, name, chapter in _icd10_ranges():
        if low <= place <= high:
            return f"{category}.-", name, chapter
    return None


def _icd9(value: str) -> Labels | None:
    match = _ICD9.fullmatch(value.upper())
    if match is None:
        return None
    if match[2]:
        return f"V{int(match[2]):02}.-", "V01-V91"
    if match[3]:
        return f"E{int(match[3][1:]):03}.-", "E000-E999"
    number = int(match[1])
    for low, high in _ICD9_CHAPTERS:
        if low <= number <= high:
            return f"{number:03}.-", f"{low:03}-{high:03}"
    return None


# Occupations, education and industries: by the first characters of the code.

_ISCED = re.compile(r"(?:isced\s*(?:2011|97|1997)?\s*(?:level)?\s*)?([0-8])(\d{0,2}|[a-c])", re.IGNORECASE)
_ISCED_GROUPS = ((2, "ISCED 0-2"), (4, "ISCED 3-4"), (8, "ISCED 5-8"))
_NACE = re.compile(r"([A-U]?)\s?(\d{2})(?:\.?(\d)(?:\.?(\d{1,2}))?)?")
_NACE_SECTIONS = (
    ("A", 1, 3), ("B", 5, 9), ("C", 10, 33), ("D", 35, 35), ("E", 36, 39), ("F", 41, 43), ("G", 45, 47), ("H", 49, 53),
    ("I", 55, 56), ("J", 58, 63), ("K", 64, 66), ("L", 68, 68), ("M", 69, 75), ("N", 77, 82), ("O", 84, 84),
    ("P", 85, 85), ("Q", 86, 88), ("R", 90, 93), ("S", 94, 96), ("T", 97, 98), ("U", 99, 99),
)  # fmt: skip


def _isced(value: str) -> Labels | None:
    match = _ISCED.fullmatch(value)
    if match is None:
        return None
    level = int(match[1])
    return f"ISCED {level}", next(name for last, name in _ISCED_GROUPS if level <= last)


def _isco(value: str) -> Labels | None:
    """Give unit group, minor group, sub-major group, major group: four to one digits; codes may be shorter."""
    return tuple(f"ISCO {value[:n]}" for n in (3, 2, 1)) if re.fullmatch(r"\d{1,4}", value) else None


def _nace(value: str) -> Labels | None:
    """Give class, group, division (two digits) and section (a letter) of NACE Rev. 2."""
    match = _NACE.fullmatch(value.upper())
    if match is None:
        return None
    division = int(match[2])
    for section, low, high in _NACE_SECTIONS:
        if low <= division <= high and match[1] in ("", section):
            group = f"NACE {match[2]}.{match[3]}" if match[3] else f"NACE {match[2]}"
            return group, f"NACE {match[2]}", f"NACE section {section}"
    return None


# Postcodes: by prefix, as countries give out their numbers. Leading zeros that a number has lost are written again.

_POSTCODES: Mapping[str, tuple[str, int, tuple[int, ...]]] = {
    "AT": (r"\d{4}", 4, (2, 1)),
    "AU": (r"\d{4}", 4, (2, 1)),
    "BE": (r"\d{4}", 4, (2, 1)),
    "BR": (r"\d{5}-?\d{3}", 8, (5, 3, 2, 1)),
    "CA": (r"[A-Z]\d[A-Z] ?\d[A-Z]\d", 6, (3, 1)),
    "CH": (r"\d{4}", 4, (2, 1)),
    "CZ": (r"\d{3} ?\d{2}", 5, (3, 2, 1)),
    "DE": (r"\d{5}", 5, (3, 2, 1)),
    "DK": (r"\d{4}", 4, (2, 1)),
    "ES": (r"\d{5}", 5, (3, 2)),
    "FI": (r"\d{5}", 5, (3, 2, 1)),
    "FR": (r"\d{5}", 5, (3, 2)),
    "IT": (r"\d{5}", 5, (3, 2, 1)),
    "JP": (r"\d{3}-?\d{4}", 7, (3, 2, 1)),
    "NL": (r"[1-9]\d{3}(?: ?[A-Z]{2})?", 6, (4, 2, 1)),
    "NO": (r"\d{4}", 4, (2, 1)),
    "PL": (r"\d{2}-?\d{3}", 5, (3, 2, 1)),
    "PT": (r"[1-9]\d{3}(?:-?\d{3})?", 7, (4, 2, 1)),
    "SE": (r"\d{3} ?\d{2}", 5, (3, 2, 1)),
    "US": (r"\d{5}(?:-?\d{4})?", 5, (5, 3, 1)),
}
_BRITISH = re.compile(r"([A-Z]{1,2})(\d[A-Z\d]?) ?(\d)[A-Z]{2}")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 -]{1,9}")


def _postcodes_of(country: str | None, values: Sequence[str]) -> Placing:
    known = (*sorted((*_POSTCODES, "GB")),)
    if country is None:
        longest = max(map(len, values))
        return lambda value: _masked_postcode(value, longest)
    if country.upper() == "GB":
        return _british_postcode
    if country.upper() not in _POSTCODES:
        raise InvalidParameterError("country", f"got {country!r}", allowed=f"one of {', '.join(known)}")
    form, width, prefixes = _POSTCODES[country.upper()]
    return lambda value: _national_postcode(value, form, width, prefixes)


def _national_postcode(value: str, form: str, width: int, prefixes: tuple[int, ...]) -> Labels | None:
    code = value.upper()
    if form.startswith(r"\d") and code.isdigit() and len(code) < width:
        code = code.zfill(width)  # a number has lost its zeros
    if re.fullmatch(form, code) is None:
        return None
    plain = re.sub(r"[ -]", "", code)
    return tuple(plain[:n] + MASK * (width - n) for n in prefixes)


def _british_postcode(value: str) -> Labels | None:
    """Sector, district (what stands before the blank) and area (its letters)."""
    match = _BRITISH.fullmatch(value.upper())
    if match is None:
        return None
    area, district, sector = match.groups()
    return f"{area}{district} {sector}{MASK}", f"{area}{district}{MASK}", f"{area}{MASK}"


def _masked_postcode(value: str, longest: int) -> Labels | None:
    if _PLAIN.fullmatch(value) is None or not any(map(str.isdigit, value)):
        return None
    return tuple(value[:n] + MASK * (longest - min(n, len(value))) for n in range(longest - 1, 0, -1))


def _lines(name: str) -> list[str]:
    text = (resources.files(_TABLES) / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


READY: Mapping[str, str] = {
    "age": "ages from 0 to 130",
    "date": "dates (written 2024-02-29)",
    "country": "countries of ISO 3166",
    "postcode": "postcodes",
    "icd10": "codes of ICD-10",
    "icd9": "codes of ICD-9",
    "isced": "levels of ISCED",
    "isco": "codes of ISCO",
    "nace": "codes of NACE",
}
"""Ready hierarchies and what their values are called."""

_PLACING: Mapping[str, Placing] = {
    "age": _age,
    "date": _date,
    "country": _country,
    "icd10": _icd10,
    "icd9": _icd9,
    "isced": _isced,
    "isco": _isco,
    "nace": _nace,
}


# Columns that are recognised, so that their automatic hierarchy is a ready one: by what they hold, and for short codes
# by their name too. What was measured, and why ages are not among them: decision 0071.

_FEWEST_RECOGNISED = 5
_FEWEST_KNOWN = 0.75
_COUNTRY_NAMES = re.compile(
    r" (country|countries|nation|nationality|citizenship|land|pays|pais|paese|kraj|herkunftsland) "
)
_DIAGNOSIS_NAMES = re.compile(
    r" (icd|icd 10|diag|diagnosis|diagnoses|dx|cause|code|diagnose|diagnostic|diagnostico|diagnosi)( \d+)? "
)
_POSTCODE_NAMES = re.compile(
    r" (zip|zip ?codes?|post ?codes?|postal|postal codes?|plz|postleitzahl|code postal|codigo postal|cap|cep|"
    r"codice postale|kod pocztowy) "
)
_SPELLED_BY_ONE_COUNTRY = ("GB", "CA", "NL", "PL", "BR", "JP", "PT", "SE")  # with letters or signs; CZ is as SE


@dataclass(frozen=True)
class Recognised:
    """A ready hierarchy that fits a column, with the settings of :func:`ready_hierarchy`."""

    name: str
    unknown: str = "refuse"
    country: str | None = None

    def hierarchy(self, values: Sequence[str]) -> Hierarchy:
        """Build it for the values of the column."""
        return ready_hierarchy(self.name, values, unknown=self.unknown, country=self.country)


def recognised_ready(words: str, values: Sequence[str], *, with_postcodes: bool = False) -> Recognised | None:
    """Name the ready hierarchy that fits the values of a column of texts; ``None`` for none.

    Countries and ICD-10 codes, where every value is one and there are at least five. Two-letter codes are countries
    only if the name of the column says so, and codes without a dot are diagnoses only then. Where the name says
    countries, three quarters of the values are enough, and the others are put under *other*.

    Parameters
    ----------
    words : str
        Name of the column as :func:`sfumato.table.column_names.folded_name` writes it.
    with_postcodes : bool
        Whether postcodes are recognised as well, where the name says so and every value has the form of one.

    Examples
    --------
    >>> recognised_ready(" native country ", ["France", "Peru", "Chad", "Japan", "South"])
    Recognised(name='country', unknown='other', country=None)
    """
    if len(values) < _FEWEST_RECOGNISED:
        return None
    says_country = _COUNTRY_NAMES.search(words) is not None
    n_countries = sum(_country(value) is not None for value in values)
    if n_countries == len(values):
        return Recognised("country") if says_country or any(len(value) > 3 for value in values) else None
    if says_country and n_countries >= _FEWEST_KNOWN * len(values):
        return Recognised("country", unknown=OTHER)
    if all(_icd10(value) is not None for value in values):
        n_dotted = sum("." in value for value in values)
        return Recognised("icd10") if 2 * n_dotted > len(values) or _DIAGNOSIS_NAMES.search(words) else None
    if with_postcodes and _POSTCODE_NAMES.search(words) and all(_masked_postcode(value, 10) for value in values):
        return Recognised("postcode", country=_country_of_postcodes(values))
    return None


def _country_of_postcodes(values: Sequence[str]) -> str | None:
    """Country whose way to write postcodes fits all values and no other country's; ``None`` if digits are all."""
    if all(value.isdigit() for value in values):
        return None
    for country in _SPELLED_BY_ONE_COUNTRY:
        place = _postcodes_of(country, values)
        if all(place(value) is not None for value in values):
            return country
    return None
