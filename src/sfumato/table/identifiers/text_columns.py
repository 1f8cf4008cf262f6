"""A text column is released only if its values look like categories, whatever its role.

The rules, first match wins:

1. somebody has confirmed the column, or declared its hierarchy or its values: it is released;
2. a value holds what names a person by its form (:mod:`sfumato.table.identifiers.forms`): it is withheld;
3. values of a public list (diagnoses, drugs, countries) are categories; the rules below judge the others;
4. values that fewer than five rows hold cover more than one row in a hundred: it is withheld, unless they are few next
   to the frequent ones and not written as names, codes or sentences are;
5. it has more than 20 values and a name that says nothing: it is withheld.

A set or a label that lists such values says who is in it, whatever k is; so does a column that is passed through.
Numbers and dates become ranges. Of them only those are withheld of which nearly every row has one of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError, on_one_line
from sfumato.schema import WITHHELD, Column, Kind, Role, shows_values
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.column_names import BIRTH_DATE_NAMES, DEGREES_NAMES, PEOPLE_NAMES, PLACE_NAMES, folded, folded_name
from sfumato.table.identifiers.cells import Cells, Finding
from sfumato.table.identifiers.codes import common_form, form_of
from sfumato.table.identifiers.forms import NAMES_BY_LIST, forms_in
from sfumato.table.identifiers.known_codes import is_known_code
from sfumato.table.identifiers.names import is_single_name
from sfumato.table.identifiers.recognise import recognise
from sfumato.table.weighted import OpenColumn

UNIQUE_FRACTION = 0.95
"""A column whose value is unique in this share of the rows that have one names people."""
MOST_UNRECOGNISED = 20
"""Values up to which a text column that nothing is known of is taken for one of categories."""
_FEWEST_ROWS = 20  # below this, counts say nothing
_FEW_ROWS = 5  # the default k: what fewer rows hold would be shown as the value of a group that is smaller
_MOST_RARE = 0.01
_MOST_RARE_OF_CATEGORIES = 0.1
_FEWEST_WORDS_OF_A_SENTENCE = 5
_FEWEST_RARE = 3  # one or two may be a word for "unknown"
_FEWEST_CODES = 3  # a rare category may be called H1N1
_WRITTEN = 0.8
_FEWEST_NAMES, _NAMES_FRACTION, _NAMES_FRACTION_OF_PLACES = 3, 0.05, 0.25
_MOST_LOOKED_THROUGH = 2_000  # of a column that is withheld anyway; the form is only its reason
_LONGEST = 60  # letters of a category, beyond which it is a sentence
_SHORTEST_CUT = 3  # letters from which the beginning of a category is one that was cut off
_NAMES_SHOWN = 5
_SHORTEST_OFFICE_NUMBER = 10_000_000


def unique_fraction(coded: CodedColumn) -> float:
    """Share of the rows with a value whose value no other row has; of a few rows it says nothing, and is 0."""
    n_missing = coded.n_missing
    n_present, n_distinct = coded.n_rows - n_missing, coded.n_distinct - coded.values.null_count
    if n_present < _FEWEST_ROWS or n_distinct < UNIQUE_FRACTION * n_present:
        return 0.0
    return (int(np.count_nonzero(coded.counts == 1)) - (n_missing == 1)) / n_present


def is_measurement(coded: CodedColumn, kind: Kind) -> bool:
    """Whether a numeric column has decimals: such numbers are measured, and recoded into ranges."""
    if kind is not Kind.NUMERIC:
        return False
    numbers = coded.numbers()
    present = numbers[np.isfinite(numbers)]
    return bool(np.any(present != np.floor(present)))


def uniqueness(coded: CodedColumn, kind: Kind) -> str:
    """Say that nearly every row has a value of its own, and of what form; an empty text where that is not so."""
    unique = unique_fraction(coded)
    if unique < UNIQUE_FRACTION or is_measurement(coded, kind):
        return ""
    form = "" if kind is Kind.NUMERIC else common_form(Cells.of(coded, kind))
    of = "rows with a value" if coded.n_missing else "rows"
    return f"{form}{', ' if form else ''}unique in {100 * unique:.1f} % of {of}"


def why_withheld(column: Column, coded: CodedColumn, *, is_recognised: bool = True) -> str:
    """Say why a column is not released unless somebody confirms it; an empty text where it is.

    Whether that matters depends on the role, see :func:`sfumato.schema.shows_values`.

    Parameters
    ----------
    is_recognised : bool
        Whether the column's name, or somebody, says what it is.
    """
    if column.confirmed or column.hierarchy or (column.domain and not column.is_order_recognised):
        return ""
    if isinstance(coded, OpenColumn):
        is_text = column.kind not in (Kind.NUMERIC, Kind.DATE)
        return "a text with too many distinct values to list" if is_text else ""
    name = folded_name(column.name)
    unique, seen = uniqueness(coded, column.kind), _recognised(coded, column.kind, name)
    if column.kind in (Kind.NUMERIC, Kind.DATE):
        return seen or unique or _exact_times(coded, column.kind)
    values = _Values.of(coded, name)
    is_counted = coded.n_rows - coded.n_missing >= _FEWEST_ROWS
    is_open = values.why_not_categories(is_recognised=is_recognised) if is_counted else ""
    if (is_open or unique) and len(values.texts) > _MOST_LOOKED_THROUGH:
        values = values.first(Cells.of(coded, column.kind))
    return seen or values.form() or unique or is_open or values.people_by_header()


def _exact_times(coded: CodedColumn, kind: Kind) -> str:
    """Say that a column of dates holds times of the day that few rows share; an empty text where it does not."""
    n_present, n_distinct = coded.n_rows - coded.n_missing, coded.n_distinct - coded.values.null_count
    is_counted = n_present >= _FEWEST_ROWS and not isinstance(coded, OpenColumn)
    if kind is not Kind.DATE or not is_counted or n_present >= _FEW_ROWS * n_distinct:
        return ""
    share = Cells.of(coded, kind).share(_TIME_OF_DAY.search)
    return str(Finding("exact times", share)) if share >= UNIQUE_FRACTION / 2 else ""


_TIME_OF_DAY = re.compile(r"[T ](?!00:00(:00)?$)\d{2}:\d{2}")


def _recognised(coded: CodedColumn, kind: Kind, name: str) -> str:
    """Say what kind of identifier most cells are; an empty text for none."""
    says_degrees = DEGREES_NAMES.search(name) is not None
    if kind is Kind.NUMERIC and not says_degrees and _is_short_number(coded):
        return ""
    says_birth = BIRTH_DATE_NAMES.search(name) is not None
    return str(recognise(coded, kind, name_says_birth=says_birth, name_says_degrees=says_degrees) or "")


def _is_short_number(coded: CodedColumn) -> bool:
    """Whether the largest value of a numeric column has fewer digits than any number of an office."""
    last = len(coded.values) - 1 - coded.values.null_count
    return last < 0 or float(coded.values[last].as_py()) < _SHORTEST_OFFICE_NUMBER


@dataclass(frozen=True, repr=False)
class _Values:
    """The distinct values of a text column, how many rows hold each, and the column's folded name."""

    texts: tuple[str, ...]
    rows: NDArray[np.int64]
    name: str

    @classmethod
    def of(cls, coded: CodedColumn, name: str) -> _Values:
        n_distinct = coded.n_distinct - coded.values.null_count
        texts = tuple(str(value).strip() for value in coded.values.slice(0, n_distinct).to_pylist())
        return cls(texts, coded.counts[:n_distinct], name)

    def first(self, cells: Cells) -> _Values:
        """Take the values of a sample: of so many, it tells what they are."""
        return _Values(cells.texts, np.asarray(cells.rows), self.name)

    @property
    def few(self) -> int:
        """Rows from which a value is frequent: five; below 250 rows one in fifty, and two at least."""
        return min(_FEW_ROWS, max(2, -(-int(self.rows.sum()) // 50)))

    @cached_property
    def is_rare(self) -> NDArray[np.bool_]:
        """Whether fewer rows than that hold a value."""
        return np.asarray(self.rows < self.few)

    def form(self) -> str:
        """Say what names a person by its form, in any value; names by a list in rare values or in many."""
        for what, places in forms_in(self.texts):
            hits = np.fromiter(places, dtype=np.int64)
            if what == NAMES_BY_LIST and not self._are_people(hits):
                continue
            return str(Finding(what, int(self.rows[hits].sum()) / int(self.rows.sum())))
        return ""

    def _are_people(self, hits: NDArray[np.int64]) -> bool:
        """Whether values with two names of the list are people: in rare values, or in many; places bear such names."""
        if PLACE_NAMES.search(self.name):
            return len(hits) >= max(_FEWEST_NAMES, _NAMES_FRACTION_OF_PLACES * len(self.texts))
        return bool(np.any(self.is_rare[hits])) or len(hits) >= max(_FEWEST_NAMES, _NAMES_FRACTION * len(self.texts))

    def people_by_header(self) -> str:
        """Say that values are written as names are, in a column whose name says that it is about people."""
        if not PEOPLE_NAMES.search(self.name) or len(self.texts) < _FEWEST_NAMES:
            return ""
        share = sum(_WRITTEN_AS_NAME.fullmatch(text) is not None for text in self.texts) / len(self.texts)
        return str(Finding("names of people, as the column's name says,", share)) if share >= _WRITTEN else ""

    def why_not_categories(self, *, is_recognised: bool) -> str:
        """Say why the values are no categories, going by how many rows hold each and by how they are written."""
        spelled = self._merged()
        is_known = np.array([is_known_code(text, self.name) for text in spelled.texts], dtype=bool)
        is_category = is_known | ~spelled.is_rare
        frequent = [text for text, is_one in zip(spelled.texts, is_category, strict=True) if is_one]
        misspelled = _misspelled(frequent)
        is_open = ~is_known & np.array([text not in misspelled for text in spelled.texts], dtype=bool)
        is_rare = spelled.is_rare & is_open
        rare = [text for text, is_one in zip(spelled.texts, is_rare, strict=True) if is_one]
        share = int(spelled.rows[is_rare].sum()) / int(spelled.rows.sum())
        if share > _MOST_RARE and len(rare) >= _FEWEST_RARE:
            is_few = 2 * len(rare) <= len(frequent) and share <= _MOST_RARE_OF_CATEGORIES
            if not is_few or _are_written_otherwise(rare, frequent):
                return f"{len(rare):,} of {len(spelled.texts):,} values are in fewer than {spelled.few} rows each"
        forms = set(map(form_of, frequent))
        n_codes = sum(_CODE.fullmatch(text) is not None and form_of(text) not in forms for text in rare)
        if n_codes >= _FEWEST_CODES:
            return f"{n_codes:,} values that few rows hold are codes"
        n_names = sum(is_single_name(folded(text)) for text in rare)
        if n_names >= max(_FEWEST_NAMES, len(rare) / 2):
            return f"{n_names:,} values that few rows hold are given or family names"
        if not is_recognised and int(is_open.sum()) > MOST_UNRECOGNISED:
            return f"{int(is_open.sum()):,} values, and nothing says what they are"
        return ""

    def _merged(self) -> _Values:
        """Count spellings that differ in blanks only as one value."""
        counted: dict[str, int] = {}
        for text, n_rows in zip(self.texts, self.rows.tolist(), strict=True):
            spelled = " ".join(text.split())
            counted[spelled] = counted.get(spelled, 0) + n_rows
        return _Values(tuple(counted), np.fromiter(counted.values(), dtype=np.int64), self.name)


def _misspelled(categories: Iterable[str]) -> set[str]:
    """Give what is left of categories when the end was cut off, or a letter was left out."""
    cut = {text[:n] for text in categories for n in range(_SHORTEST_CUT, len(text))}
    return cut | {text[:n] + text[n + 1 :] for text in categories for n in range(len(text)) if len(text) < _LONGEST}


_WRITTEN_AS_NAME = re.compile(r"[^\W\d_][\w'’.-]*(?:,? [^\W\d_][\w'’.-]*){1,3}")
_CODE = re.compile(
    r"(?=.*\d)(?=.*[^\W\d_])[\w./-]{4,}|[^\W\d_]{1,3}[- ][^\W\d_]{1,2}[- ]?\d{1,4}|\d{4,}|[a-z]+[._][a-z]+"
)
"""Letters with digits, a licence plate, a number, a login."""


def _are_written_otherwise(rare: Sequence[str], frequent: Sequence[str]) -> bool:
    """Whether rare values are written as names, codes or sentences are, and no frequent value is."""
    signs: tuple[Callable[[str], bool], ...] = (
        lambda text: any(map(str.isdigit, text)),
        str.istitle,
        lambda text: len(text.split()) >= _FEWEST_WORDS_OF_A_SENTENCE,
    )
    return any(any(map(sign, rare)) and not any(map(sign, frequent)) for sign in signs)


def check_text_columns(table: Table | BinaryTable, declared: Collection[str] = ()) -> None:
    """Refuse to release columns whose values do not look like categories and that nobody has confirmed.

    Parameters
    ----------
    declared : collection of str
        Columns that somebody has given a hierarchy, which lists their values.

    Raises
    ------
    SchemaError
        Names them, with what was seen of the first.
    """
    plain = table.coded_part
    asked = [column for column in plain.schema if column.role not in WITHHELD and column.name not in declared]
    found = {column.name: why for column in asked if (why := _why_refused(column, plain[column.name]))}
    if not found:
        return
    names = [f"'{on_one_line(name)}'" for name in found]
    first, *others = names[:_NAMES_SHOWN]
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    role, why = plain.schema[next(iter(found))].role, next(iter(found.values()))
    problem = f"column {first} may name people and would be released with the role {role} ({why})"
    if others:
        problem += f"; so would {', '.join(others)}{more}"
    hint = "give it the role identifier, or coarsen it first; if it names nobody, confirm it"
    raise SchemaError(problem, hint=hint, remedy=("confirmed",))


def _why_refused(column: Column, coded: CodedColumn) -> str:
    """Say why a column is withheld with the role that it has; of dates in ranges only exact times are."""
    is_text = column.kind not in (Kind.NUMERIC, Kind.DATE)
    if shows_values(column.role, column.kind) or (column.role is Role.TARGET and is_text):
        return why_withheld(column, coded)
    return "" if column.confirmed else _exact_times(coded, column.kind)
