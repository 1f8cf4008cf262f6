"""What names a person by its form, searched *inside* texts: addresses, numbers, devices, places, files, titles.

A remark that mentions a phone number gives it away as surely as a column of phone numbers, so no form has to fill its
cell. Forms are written for one text that holds many values, one a line: no pattern crosses a line.
"""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sfumato.table.column_names import folded
from sfumato.table.identifiers.names import full_name_in, is_known_name
from sfumato.table.identifiers.numbers import is_checked_number

Match = re.Match[str]


@dataclass(frozen=True)
class Form:
    """A form: what to call it, its pattern, what a match must also fulfil, and what it is searched in."""

    what: str
    pattern: re.Pattern[str]
    is_valid: Callable[[Match], bool] = lambda match: True
    is_folded: bool = False


def _form(
    what: str,
    *patterns: str,
    flags: int = 0,
    is_valid: Callable[[Match], bool] = lambda match: True,
    is_folded: bool = False,
) -> Form:
    return Form(what, re.compile("|".join(patterns), flags | re.MULTILINE), is_valid, is_folded)


# Numbers: of telephones, offices and accounts.

_DATE = re.compile(r"\(?(\d{1,4}[./-] ?\d{1,2}[./-] ?\d{1,4}|\d{8})\b(?![./-]\d).*")
_AMOUNT = re.compile(r"\d{1,3}([.,']\d{3})+([.,]\d+)?|\d+[.,]\d+")

_AMOUNTS = re.compile(r"\d{1,3}([.,']\d{3})+ ?[-/] ?\d{1,3}([.,']\d{3})+")


def _is_dialled(match: Match) -> bool:
    text = match[0]
    digits = sum(map(str.isdigit, text))
    fewest = 8 if text[0] == "+" else 9
    return fewest <= digits <= 15 and not _DATE.fullmatch(text) and not _AMOUNT.fullmatch(text)


def _is_office_number(match: Match) -> bool:
    """Nine digits in a row count nothing; with signs between them, or letters, the check digits decide."""
    text = match[0].strip()
    if text.isdigit():
        return True
    return not any(form.fullmatch(text) for form in (_DATE, _AMOUNT, _AMOUNTS)) and is_checked_number(text)


def _is_network_address(match: Match) -> bool:
    try:
        ipaddress.ip_address(match[0])
    except ValueError:
        return False
    return True


_PHONE_WORD = r"(?:tele?|phone|fon|fax|mobile?|handy|m[oó]vil|cell|portable|telem[oó]vel|komórka|whatsapp)"
_ENDS_OF_DOMAINS = "com|org|net|info|io|me|eu|de|at|ch|fr|es|it|pt|nl|be|pl|uk|us|ca|br|mx|social"
_SIGNED = (
    _form(
        "e-mail addresses",
        r"[\w.+'-]+@[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}",
        r"[\w.+-]+ ?[\[(]at[\])] ?[\w-]+(?: ?[\[(]dot[\])] ?|\.)\w{2,}",
        flags=re.IGNORECASE,
    ),
    _form(
        "web addresses",
        r"(?:https?://|www\.)[^\s/]+\.\S+",
        rf"(?<![\w@.-])[\w-]+(?:\.[\w-]+)*\.(?:{_ENDS_OF_DOMAINS})/[\w@.~-]{{2,}}",
        flags=re.IGNORECASE,
    ),
    _form("@ names of users", r"(?<![\w.@/])@[^\W\d][\w.-]{2,}"),
    _form(
        "network addresses",
        r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])",
        r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{1,4}(?![\w:])",
        is_valid=_is_network_address,
    ),
    _form(
        "addresses of devices",
        r"(?<![\w:-])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![\w:-])",
        r"\b(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}\b",
    ),
)
_NUMBERS = (
    _form(
        "phone numbers",
        r"(?<![\w.,])(?:\+ ?|00)[1-9][\d ()./-]{6,20}\d(?![\w])",
        r"(?<![\w.,/+-])\(?0\d{1,4}\)?[ /.-]{0,3}\d[\d ./-]{3,}\d(?![\w])",
        r"(?<![\w.,-])\(?[2-9]\d{2}\)?[ .-]\d{3}[ .-]\d{4}(?![\w-])",
        r"(?<![\w.,-])[5-9]\d{2}[ .-]\d{2,3}[ .-]\d{2,3}(?:[ .-]\d{2})?(?![\w-])",
        rf"(?<!\w){_PHONE_WORD}\w*[^\w\n]{{0,4}}\d[\d ()./-]{{3,}}\d",
        flags=re.IGNORECASE,
        is_valid=lambda match: _is_dialled(match) or re.match(r"\w*[^\W\d_]", match[0]) is not None,
    ),
    _form("social security numbers", r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"),
    _form(
        "numbers given by an office",
        r"(?<![\w.,+-])\d{9,}(?![\w.,]\d)(?!\w)",
        r"(?<![\w.,+-])[A-Z0-9](?:[ ./-]?[A-Z0-9]){7,33}(?!\w)",
        is_valid=_is_office_number,
    ),
    _form(
        "numbers after the word for them",
        r"(?<!\w)(?:ssn|nhs|nir|dni|nif|nie|svnr|kvnr|pesel|imei|iban|mrn|passport|reisepass|passeport|pasaporte|"
        r"ausweis|(?:versicherten|patienten|fall|akten|personal|mitglieds)-?(?:nr|nummer|id)|patient id|n° ?dossier)"
        r"[^\w\n]{0,4}(?=[\w-]*\d)[\w-]{4,}",
        flags=re.IGNORECASE,
    ),
)
_PLACES = (
    _form(
        "coordinates",
        r"[-+]?\d{1,3}[.,]\d{3,} ?°? ?[NSEWO]? ?[,;/ ] ?[-+]?\d{1,3}[.,]\d{3,}",
        r"\d{1,3} ?° ?\d{1,2}(?:[.,]\d+)? ?['′’]",
        r"\bpoint ?\( ?[-+]?[\d.]+ +[-+]?[\d.]+",
        r"\bgeo:[-+]?\d+\.\d+,",
        flags=re.IGNORECASE,
    ),
    _form("plus codes of places", r"(?<!\w)[23456789CFGHJMPQRVWX]{4,8}\+[23456789CFGHJMPQRVWX]{2,3}(?!\w)"),
    _form(
        "exact times",
        r"\b\d{4}-\d{2}-\d{2}[T ]+(?!00:00)\d{1,2}:\d{2}",
        r"\b\d{1,2}[./-] ?\d{1,2}[./-] ?\d{2,4},? +(?:um |at |à |a las |alle |às |om |o )?"
        r"(?!00:00)\d{1,2}[:h.]\d{2}\b",
        r"\b(?:19|20)\d{6}[T_-]?\d{4,6}Z?\b",
    ),
    _form(
        "paths and names of files",
        r"(?<!\w)(?:[A-Za-z]:\\|\\\\)\S+",
        r"(?:^|(?<=[\s(:=]))(?:~|\.{1,2})?/(?:[\w.-]+/)+[\w.-]+",
        r"[\w()-]+\.(?:jpe?g|png|gif|tiff?|bmp|heic|dcm|pdf|docx?|xlsx?|mp[34]|wav|avi|mov)\b",
        flags=re.IGNORECASE,
    ),
    _form("names of somebody's device", r"\w+(?:['’]s|s)[ -](?:iphone|ipad|macbook|galaxy|pixel|laptop|pc|handy|phone|"
          r"tablet|watch|airpods)\b", r"\b(?:iphone|ipad|macbook|galaxy|pixel|laptop|pc|handy|tablet|watch|port[aá]til|"
          r"m[oó]vil|t[eé]l[eé]phone|ordinateur|ordenador)\w*(?: \w+)? (?:von|de|di|du|van|d['’]) ?[^\W\d_]{3,}",
          flags=re.IGNORECASE),
)  # fmt: skip

# Streets, with the house number next to the word for a street, on the side on which the language writes it.

_NUMBER_LAST = (
    r"(?:\b(?:calle|c/|avenida|avda|av|plaza|pza|paseo|camino|carretera|ronda|via|viale|corso|piazza|vicolo|largo|"
    r"contrada|strada|rua|travessa|praca|estrada|alameda|ul|ulica|aleja|plac|osiedle|os)\.? +"
    r"(?:[^\W\d_]+[.']? +){0,4}[^\W\d_]+|[^\W\d_]{2,}[ -]?(?:strasse|str|weg|platz|gasse|allee|ring|damm|ufer|"
    r"straat|laan|plein|gracht|dijk|kade|singel))"
)
_STREETS = (
    _form(
        "postal addresses",
        rf"{_NUMBER_LAST}\.?,? ?(?:n[.o]* ?)?\d{{1,4}} ?[a-z]?(?:/\d+)?(?![\w%.-]|,\d)",
        r"\b\d{1,5}[a-z]?,? (?:[^\W\d_]+['. ]+){1,3}(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|close|court|"
        r"crescent|terrace|square|way|highway|blvd|boulevard)\b",
        r"\b\d{1,4}(?: ?(?:bis|ter))?,? (?:rue|avenue|av|boulevard|bd|chemin|impasse|allee|quai|place|cours|passage|"
        r"route)\.? [^\W\d_]",
        r"\b[^\W\d_]{3,}[^\n,]{0,30} \d{1,4} ?[a-z]?, ?(?:[a-z]{1,2}-)?\d{4,5} [^\W\d_]{3,}",
        r"\b(?:am|im|an der|an den|auf der|auf dem|zum|zur|unter den|hinter der|in der) [^\W\d_]{4,} \d{1,3} ?[a-z]?$",
        r"[^\W\d_]{3,}[^\n]{0,40}, [^\n,]{2,30},? (?:[a-z]{1,2}\d[a-z\d]? \d[a-z]{2}|[a-z]{2} \d{5})\b",
        r", \d{4,5}(?:-\d{3}| [a-z]{2})? [^\W\d_]{3,}",
        is_folded=True,
    ),
)

# Titles before a name. After those that are other words as well, or a job's, a known name has to follow.

_TITLES = (
    r"Herrn?|Frau|Hr\.|Dr\.?|Prof\.?|Mr\.?|Mrs\.?|Mister|Mme\.?|Mlle\.?|Madame|Monsieur|Sra\.?|Srta\.?|Señora?|Doña|"
    r"Signora?|Sig\.ra|Dott\.?(?:ssa)?|Dra\.?|Pani|Dhr\.?|Mevr\.?|Mevrouw|Meneer|Senhora?|Enf\.|Schwester|Nurse|Sœur"
)
_DOUBTFUL_TITLES = r"M\.|Fr\.?|Sr\.?|Ms\.?|Miss|Sig\.?|Mag\.|Hr"
_BETWEEN = r"(?:(?:Dr\.?|med\.?|Prof\.?|von|van|der|de|la|del|da|dos|den|zu) +)*"
_NO_NAMES = {"med", "phil", "rer", "sc", "univ", "nat", "oec", "dent", "vet", "stat", "services", "mult", "habil"}


def _is_titled(match: Match) -> bool:
    certain, doubtful = match["certain"], match["doubtful"]
    name = folded(certain or doubtful)
    return name not in _NO_NAMES and (certain is not None or is_known_name(name))


_NAMES = (
    _form(
        "titles with names of people",
        rf"(?<![\w-])(?:{_TITLES}) +{_BETWEEN}(?P<certain>[A-ZÀ-Þ][\w'’-]{{2,}})",
        rf"(?<![\w-])(?:{_DOUBTFUL_TITLES}) +{_BETWEEN}(?P<doubtful>[A-ZÀ-Þ][\w'’-]{{2,}})",
        is_valid=_is_titled,
    ),
)

NAMES_BY_LIST = "given and family names"
"""What names are called that no form tells, but the list of names."""
FORMS: tuple[Form, ...] = (*_SIGNED, *_NUMBERS, *_PLACES, *_STREETS, *_NAMES)
"""From the plainest to the most doubtful."""


def forms_in(texts: Iterable[str]) -> Iterator[tuple[str, frozenset[int]]]:
    """Give every form that occurs, and the places of the texts that hold it; full names by the list of names last."""
    values = [" ".join(text.split()) for text in texts]
    joined, lowered = "\n".join(values), "\n".join(map(folded, values))
    starts: dict[bool, list[int]] = {}
    for form in FORMS:
        whole = lowered if form.is_folded else joined
        places = {match.start() for match in form.pattern.finditer(whole) if form.is_valid(match)}
        if places:
            lines = starts.setdefault(form.is_folded, _starts(whole))
            yield form.what, frozenset(_line_of(lines, place) for place in places)
    named = frozenset(place for place, text in enumerate(values) if full_name_in(text))
    if named:
        yield NAMES_BY_LIST, named


def _starts(whole: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", whole))]


def _line_of(starts: list[int], place: int) -> int:
    return bisect_right(starts, place) - 1
