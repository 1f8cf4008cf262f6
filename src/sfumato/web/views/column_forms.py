"""What the page asks about one column: how a hierarchy is built, how its values are written, what is done to it first.

Light, for the server: the tasks check what was typed, with the code that reads project files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import SchemaError, on_one_line
from sfumato.schema import AS_TEXT, Column, Kind, Role
from sfumato.table.preparing.declared import Preparation, check_fits
from sfumato.web.describing import ColumnNow
from sfumato.web.form_fields import Field

# How a hierarchy can be built, in words for people, with the fields that each way asks for.


@dataclass(frozen=True)
class Method:
    """One way to build a hierarchy, named as in ``sfumato hierarchy build --method``, or to prepare a column."""

    name: str
    title: str
    why: str
    fields: tuple[Field, ...] = ()

    def settings(self, form: Mapping[str, object]) -> dict[str, str]:
        """Take this method's fields out of a form; empty ones are not given."""
        given = {field.name: str(form.get(self.field_id(field), "")).strip() for field in self.fields}
        return {name: text for name, text in given.items() if text}

    def field_id(self, field: Field) -> str:
        """Name of a field in the form, which holds the fields of all methods."""
        return f"{self.name}-{field.name}"


_MERGE = Field("merge", "Neighbours joined on each further level", "such as 2,2,5; empty: two, again and again")

METHODS = (
    Method(
        "auto",
        "Automatic",
        "Suits the kind: numbers at quantiles, dates by month, quarter and year, texts by the target.",
    ),
    Method(
        "ready",
        "Ready-made, from a public standard",
        "For ages, countries, postcodes, diagnoses, occupations: groups that readers know.",
        (
            Field(
                "ready",
                "What the values are",
                default="age",
                choices=(
                    ("age", "ages: bands of 5, 10 and 20 years"),
                    ("date", "dates: month, quarter, year, decade"),
                    ("country", "countries: sub-region and region of the UN"),
                    ("postcode", "postcodes: by their first characters"),
                    ("icd10", "diagnoses, ICD-10: category, block, chapter"),
                    ("icd9", "diagnoses, ICD-9: category, chapter"),
                    ("isced", "education, ISCED: level"),
                    ("isco", "occupations, ISCO: groups"),
                    ("nace", "industries, NACE: division, section"),
                ),
            ),
            Field(
                "unknown",
                "Values that are no such codes",
                default="refuse",
                choices=(("refuse", "refuse: say how many there are"), ("other", "put under “other”")),
            ),
            Field("country", "Country of postcodes", "two letters such as US or DE; empty: mask each character"),
        ),
    ),
    Method(
        "width",
        "Intervals of one width",
        "For numbers that people know in round steps, such as age in tens.",
        (
            Field("width", "Width of the finest intervals", "such as 5"),
            Field("start", "Where an interval begins", default="0"),
            _MERGE,
        ),
    ),
    Method(
        "quantile",
        "Intervals with equally many rows",
        "For numbers that are spread unevenly.",
        (Field("intervals", "Number of the finest intervals", default="16"), _MERGE),
    ),
    Method(
        "cuts",
        "Intervals at your own cuts",
        "For borders that mean something, such as 18 and 65.",
        (Field("cuts", "Where the finest intervals begin", "such as 0,18,40,65"), _MERGE),
    ),
    Method(
        "mask",
        "Mask characters from the right",
        "For codes in which the first characters say most, such as postcodes.",
        (Field("step", "Characters masked more on each level", default="1"),),
    ),
    Method("dates", "Month, quarter, year, decade", "For dates written as 2024-02-29."),
    Method(
        "groups",
        "Groups of neighbours in an order",
        "For texts with an order, such as small, medium, large.",
        (
            Field("order", "All values from lowest to highest", "separated by commas"),
            Field("sizes", "Neighbours joined on each level", "such as 2,2; empty: two"),
        ),
    ),
)


def method_named(name: str) -> Method | None:
    """Look a method up by its name."""
    return next((method for method in METHODS if method.name == name), None)


# How the values of a column are written: the formats to choose from, each with what an example means.

_DATES = (
    "DD.MM.YYYY",
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "DD-MM-YYYY",
    "MM-DD-YYYY",
    "YYYY/MM/DD",
    "YYYYMMDD",
    "mixed",
    "DD MMM YYYY",
    "MMM DD, YYYY",
    "DD.MM.YY from 1969",
    "DD/MM/YY from 1969",
    "MM/DD/YY from 1969",
)
_NUMBERS = ("1234,56", "1.234,56", "1,234.56", "1 234,56", "1'234.56")
_EXAMPLE = {"YYYY": "2021", "MMM": "Apr", "YY": "21", "MM": "04", "DD": "03"}
_MONTH_FIRST = {**_EXAMPLE, "MM": "03", "DD": "04"}  # the same digits, for who compares both orders
_DAY_FIRST_MEANS, _MONTH_FIRST_MEANS = "3 April 2021", "4 March 2021"
_TURNED = str.maketrans({"D": "M", "M": "D"})


@dataclass(frozen=True)
class FormatChoice:
    """One format to choose: its name, as a project file has it, and what it means."""

    name: str
    words: str


def format_choices(column: ColumnNow) -> dict[str, list[FormatChoice]]:
    """Give the formats to choose from, by heading: the present one and its likely rival first."""
    likely = [column.format] if column.format else []
    if column.doubt and (rival := turned(column.format)):
        likely.append(rival)
    named = {"Dates": _DATES, "Numbers": _NUMBERS, "Neither": (AS_TEXT,)}
    if column.kind == Kind.NUMERIC:
        named = {"Numbers": _NUMBERS, "Dates": _DATES, "Neither": (AS_TEXT,)}
    rest = {heading: [name for name in names if name not in likely] for heading, names in named.items()}
    found = {"Likely": likely, **rest} if likely else rest
    return {heading: [FormatChoice(name, meaning(name)) for name in names] for heading, names in found.items() if names}


def turned(format_name: str) -> str:
    """Give the format in which day and month have changed places; empty where a month has a name, or nothing would.

    Examples
    --------
    >>> turned("DD/MM/YYYY"), turned("MM/DD/YY HH:MM from 1969"), turned("DD MMM YYYY"), turned("1.234")
    ('MM/DD/YYYY', 'DD/MM/YY HH:MM from 1969', '', '')
    """
    days, clock, rest = format_name.partition(" HH:MM")
    if "MMM" in days or not days.startswith(("DD", "MM")):
        return ""
    return days.translate(_TURNED) + clock + rest


def meaning(format_name: str) -> str:
    """Say what a format makes of an example.

    Examples
    --------
    >>> meaning("DD/MM/YYYY"), meaning("MM/DD/YYYY"), meaning("1.234,56"), meaning("text")
    ('03/04/2021 is 3 April 2021', '03/04/2021 is 4 March 2021', '1.234,56 is 1234.56', 'leave the values as they are')
    """
    if format_name == AS_TEXT:
        return "leave the values as they are"
    if format_name == "mixed":
        return "several formats, where each date can be read in one way only"
    if "Y" not in format_name:
        return "serial numbers of a spreadsheet" if format_name == "excel" else f"{format_name} is 1234.56"
    written = format_name.partition(" from ")[0].partition(" HH:MM")[0].removesuffix(" 00:00")
    is_turned = _is_month_first(format_name)
    for sign, example in (_MONTH_FIRST if is_turned else _EXAMPLE).items():
        written = written.replace(sign, example)
    return f"{written} is {_MONTH_FIRST_MEANS if is_turned else _DAY_FIRST_MEANS}"


def _is_month_first(format_name: str) -> bool:
    return format_name.startswith("MM") and not format_name.startswith("MMM")


def doubt_in_words(column: ColumnNow) -> str:
    """Say what is a guess in the way in which a column was read, with an example; empty where nothing is."""
    if not column.doubt:
        return ""
    if column.format == "mixed":
        return f"A guess: {column.doubt}."
    read = meaning(column.format).replace(" is ", " is read as ")
    other = _DAY_FIRST_MEANS if _is_month_first(column.format) else _MONTH_FIRST_MEANS
    is_open = turned(column.format) and "no value" in column.doubt
    return f"A guess: {column.doubt}. So {read}{f'; it may mean {other}' if is_open else ''}."


# What can be done to a column before any mechanism sees it.

_SCOPE = Field(
    "scope",
    "The secret is the same in",
    default="release",
    choices=(
        ("release", "this release only"),
        ("project", "all releases of this project: recipients of two can join them"),
    ),
)
_BOUNDS = (
    Field("top", "Top: largest value", "such as 100000; larger ones become this one"),
    Field("bottom", "Bottom: smallest value", "such as 0; smaller ones become this one"),
    Field("round", "Round to multiples of", "such as 1000; largest and smallest must be multiples of it"),
)

LEFT_ALONE = Method("as-it-is", "Leave it as it is", "Nothing is done to the column before the mechanism.")
WAYS = (
    Method("numbers", "Limit or round numbers", "Hides how far values lie out. Fill in at least one field.", _BOUNDS),
    Method(
        "age",
        "Turn dates into ages",
        "Whole years on a day that you name.",
        (Field("age_at", "Age on this day", "such as 2026-01-01"), *_BOUNDS),
    ),
    Method(
        "shift",
        "Shift dates by a secret number of days",
        "All dates of a person (without such a column: of a row) move alike, so that the time between them stays.",
        (Field("shift_days", "At most so many days either way", "such as 30"), _SCOPE),
    ),
    Method(
        "masked",
        "Mask characters",
        "Keeps some characters at the ends; every other one is hidden.",
        (
            Field("keep_first", "First characters to keep", "such as 2 of a postcode", default="0"),
            Field("keep_last", "Last characters to keep", default="0"),
            Field("character", "Shown in place of the others", default="#"),
        ),
    ),
    Method(
        "pseudonym",
        "Replace by pseudonyms",
        "For an identifier that never repeats: only the project's key tells who is meant. No guarantee covers it.",
        (_SCOPE,),
    ),
    Method("drop", "Do not release this column", "It is left out before anything else is done."),
)
_PARTS = {"masked": "mask", "pseudonym": "pseudonym", "drop": "drop"}
"""Ways by the key of a project file under which they stand; the fields of the others are keys themselves."""
_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "numbers": {"top": 1},
    "age": {"age_at": "2026-01-01"},
    "shift": {"shift_days": 1},
    "masked": {"mask": {}},
    "pseudonym": {"pseudonym": True},
    "drop": {"drop": True},
}


def way_named(name: str) -> Method | None:
    """Look a way of preparing up by its name."""
    return next((way for way in WAYS if way.name == name), None)


def why_not(column: ColumnNow, way: Method) -> str:
    """Say why a way of preparing is not for the role or kind of a column; empty where it is."""
    asked = Preparation.of(column.name, _EXAMPLES[way.name])
    try:
        check_fits(Column(column.name, Role(column.role), Kind(column.kind)), asked)
    except SchemaError as error:
        return error.message.removeprefix(f"column '{on_one_line(column.name)}': ")
    return ""


def written_preparation(way: Method, form: Mapping[str, object]) -> dict[str, Any]:
    """Write what was typed for a way as a project file does, numbers still as texts.

    Examples
    --------
    >>> written_preparation(way_named("masked"), {"masked-keep_first": "2"})
    {'mask': {'keep_first': '2'}}
    """
    given: dict[str, Any] = way.settings(form)
    if way.name == "masked":
        return {"mask": given}
    scope = {"scope": given.pop("scope")} if given.get("scope") == "project" else {}
    given.pop("scope", None)
    return {**({_PARTS[way.name]: True} if way.name in _PARTS else given), **scope}


def typed_preparation(written: Mapping[str, Any]) -> dict[str, str]:
    """Give the fields of the form that say what a project file does, the way itself as ``way``.

    Examples
    --------
    >>> typed_preparation({"age_at": "2026-01-01", "top": 90})
    {'way': 'age', 'age-age_at': '2026-01-01', 'age-top': '90'}
    """
    keys = {"mask": "masked", "pseudonym": "pseudonym", "drop": "drop", "age_at": "age", "shift_days": "shift"}
    way = next((name for key, name in keys.items() if key in written), "numbers")
    fields = {**written.get("mask", {}), **{key: value for key, value in written.items() if key not in _PARTS.values()}}
    return {"way": way, **{f"{way}-{name}": str(value) for name, value in fields.items()}}
