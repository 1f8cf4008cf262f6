"""What every guarantee declares, and the table of all that are known.

A guarantee is a frozen dataclass with the decorator :func:`declared`. Its fields are what stands in a manifest; the
form of each there follows from its type. Around them it says which of them is the level and which way is safe, what
it means in words, and by which names and which field of a form people ask for it. Everything else (reader and schema
of manifests, report, page, comparisons) takes it from :data:`GUARANTEES`. Mechanisms search by its levels over
:class:`sfumato.counting.counts.Counts`; the audit has its own way to measure them, and takes the data alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from enum import StrEnum
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_type_hints

from sfumato.counting import ROUNDING
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.guarantees.forms import Crowd
from sfumato.parameters import Parameter, ParameterSpec, parameter_of
from sfumato.schema import ROW

if TYPE_CHECKING:  # words and forms are wanted where no heavy library is loaded
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.counting.counts import AnyCounts

    Levels = NDArray[np.float64]
    Flags = NDArray[np.bool_]

LINKED = "That several rows of one person cannot be linked to each other by what they hold."
_COUNTED_ONCE = "Persons are counted, not rows: a person with several rows counts once."

LEAST_CROWD = 2
"""Fewest rows, or different values, that a promise is about: every row is one of at least 1, so 1 promises nothing."""

EVERY_SENSITIVE = ""
"""In a guarantee that is asked for: it is about every column with the role sensitive, each by itself."""

_MOST_ASKED = 1_000_000_000


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Refuse what is no whole number of at least 1, or another least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidParameterError(name, f"got {value!r}", allowed=f"a whole number of at least {least}")


def check_share(name: str, value: float) -> None:
    """Refuse what is no share, and all: every table keeps to it."""
    if not 0 <= value < 1:
        raise InvalidParameterError(name, f"got {value!r}", allowed="from 0 and below 1")


@dataclass(frozen=True)
class Level:
    """The number that is promised.

    Parameters
    ----------
    name : str
        Field of the guarantee, and parameter of the mechanisms that promise it.
    higher_is_safer : bool
        Whether a level found must be at least the promised one, or at most.
    allowed : str
        Values that people can ask for, in words.
    makes_sense : callable
        Whether a finite number is one of these.
    """

    name: str
    higher_is_safer: bool = True
    allowed: str = "a number"
    makes_sense: Callable[[float], bool] = lambda _: True


K = Level("k", True, f"a whole number from 2 to {_MOST_ASKED:,}", lambda k: 2 <= k <= _MOST_ASKED and k == int(k))
L = Level("l", True, f"a number above 1 and up to {_MOST_ASKED:,}", lambda l: 1 < l <= _MOST_ASKED)  # noqa: E741


@dataclass(frozen=True)
class GuaranteeWords:
    """What a kind of guarantee means, for people who were not there. ``docs/guarantees.md`` says the same at length.

    Parameters
    ----------
    title : str
    meaning : str
        What holds, in a sentence or two.
    found : str
        What the audit found, with places for ``level``, ``units`` (rows or persons) and the guarantee's own fields.
    against : str
        Whom it protects against.
    not_promised : tuple of str
        What people may believe it to promise, and it does not.
    """

    title: str
    meaning: str
    found: str
    against: str
    not_promised: tuple[str, ...]


KNOWS_ALL = "an attacker who knows all quasi-identifying values of a person in the table"


@dataclass(frozen=True)
class FormField:
    """A field of a form in which people say the level that they want.

    Parameters
    ----------
    symbol : str
        Letter that the literature uses.
    title, why : str
        Words beside the field.
    suggested : str
        Value to take where nothing speaks for another, and when.
    left_empty : str
        What may be so where nothing is promised.
    """

    symbol: str
    title: str
    why: str
    suggested: str
    left_empty: str


@dataclass(frozen=True)
class ReleaseFacts:
    """What a release shows of itself, so far as it matters to what its guarantees leave open.

    Parameters
    ----------
    smallest_class : int or None
        Rows of the smallest class of equal released rows; ``None`` where that is not stated.
    has_generalized_cells : bool
        Whether cells are ranges or sets of values.
    promises_anonymity : bool
        Whether k-anonymity is promised as well.
    """

    smallest_class: int | None = None
    has_generalized_cells: bool = False
    promises_anonymity: bool = False

    def with_smallest_class(self, sentence: str, *, apart: bool = False) -> str:
        """Add to a sentence how small classes are, where that is known; ``apart`` as a sentence of its own."""
        if self.smallest_class is None:
            return sentence
        start = ". The" if apart else "; the"
        rows = "row" if self.smallest_class == 1 else "rows"
        return f"{sentence}{start} smallest equivalence class of the release has {self.smallest_class:,} {rows}"


class SearchedBy(StrEnum):
    """What a search must count to keep a guarantee. A mechanism says which of these it counts."""

    VALUES = "values of a sensitive column in classes"
    PEOPLE = "people of a population table who fit classes"


class _OverColumns:
    """Every guarantee has this field, and each says where it is among its own."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class Guarantee(_OverColumns):
    """A promise about a released table, over named released columns; subclasses are frozen dataclasses.

    Parameters
    ----------
    unit : str
        What is counted: rows, or the persons whom the column of this name tells apart. A table of rows is one of
        persons in which every row is its own person.
    """

    kind: ClassVar[str]
    """Name in manifests, and where guarantees are told apart."""
    level: ClassVar[Level]
    words: ClassVar[GuaranteeWords]
    asked_as: ClassVar[tuple[str, ...]] = ()
    """Names by which a comparison is asked for it; several kinds may share one, ``kind`` itself means this one."""
    form_field: ClassVar[FormField | None] = None
    """Field of the page for its level; ``None`` where nobody asks for it by itself."""
    counts_persons: ClassVar[bool] = False
    """Whether persons can be its unit."""
    of_original: ClassVar[bool] = False
    """Whether the level is computed from columns and rows that are not released, whatever its unit is."""
    slack: ClassVar[float] = ROUNDING
    """How far a level may miss the promised one; nothing where levels are counts."""
    searched_by: ClassVar[SearchedBy | None] = None
    """What a mechanism must count to be asked for it; ``None``: it belongs to mechanisms that are made for it."""
    shorthand: ClassVar[Mapping[str, ParameterSpec]] = {}
    """Fields by which people ask mechanisms for it, as parameters of the same names, with their help and limits."""
    asked_by: ClassVar[tuple[Parameter, ...]] = ()
    """The same with their types and defaults; made by :func:`declared`."""
    compares_with_table: ClassVar[bool] = False
    """Whether a class's level depends on the rows outside it; spellings then count as values of their own, too."""
    absent_when_empty: ClassVar[tuple[str, ...]] = ()
    """Fields that a manifest has only where they say something."""

    unit: str = field(default=ROW, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or not (self.unit == ROW or (self.unit and self.counts_persons)):
            allowed = f"'{ROW}'" + (" or the column that tells persons apart" if self.counts_persons else "")
            raise InvalidParameterError("unit", f"got {self.unit!r}", allowed=allowed)
        for own in self.asked_by:
            own.check(getattr(self, own.name))

    @property
    def by_persons(self) -> bool:
        """Whether persons are counted."""
        return self.unit != ROW

    @property
    def name(self) -> str:
        """Its kind, and that persons are counted where they are."""
        return f"{self.kind} by persons" if self.by_persons else self.kind

    @property
    def rests_on_original(self) -> bool:
        """Whether the level is computed from what is not released, as persons are; it then has three digits."""
        return self.of_original or self.by_persons

    @property
    def explained(self) -> GuaranteeWords:
        """What it means for people, by its unit."""
        if not self.by_persons:
            return self.words
        meaning, not_promised = f"{self.words.meaning} {_COUNTED_ONCE}", (LINKED, *self.words.not_promised)
        return replace(self.words, title=f"{self.words.title} by persons", meaning=meaning, not_promised=not_promised)

    def _weighed(self) -> str:
        """Say how persons count in a group and in the table."""
        if not self.by_persons:
            return ""
        weighed = "where each person weighs 1 in a group and in the table, shared over the person's rows there"
        return f", {weighed}{self._by()}"

    def _by(self) -> str:
        """Say which column tells persons apart."""
        return f" (by '{self.unit}', which is not released)" if self.by_persons else ""

    def describe(self) -> str:
        """Say the promise in one sentence, as manifests state it.

        The audit compares it with the manifest's statement, letter by letter: another wording would make it refuse
        releases that were published before. What people are shown is :meth:`in_plain_words`.
        """
        raise NotImplementedError

    def in_plain_words(self) -> str:
        """Say the promise for people; it never claims more than :meth:`describe`."""
        return self.describe()

    def is_met_by(self, level: float) -> bool:
        """Whether a level measured on a table keeps the promise."""
        promised: float = getattr(self, self.level.name)
        return level >= promised - self.slack if self.level.higher_is_safer else level <= promised + self.slack

    def levels(self, counts: AnyCounts) -> Levels:
        """Level of each class, from counts of its column's values by its unit; raises where classes have none."""
        raise NotImplementedError(self.kind)

    def are_kept_by(self, counts: AnyCounts) -> Flags:
        """Whether classes keep the promise."""
        return self.are_met_by(self.levels(counts))

    def are_met_by(self, levels: Levels) -> Flags:
        """Whether levels, each of a class, keep the promise."""
        promised: float = getattr(self, self.level.name)
        return levels >= promised - self.slack if self.level.higher_is_safer else levels <= promised + self.slack

    def worst(self, levels: Levels) -> float:
        """Least safe of some levels."""
        return float(levels.min() if self.level.higher_is_safer else levels.max())

    @property
    def is_kept_by_growing(self) -> bool:
        """Whether a class keeps it as soon as one of the classes that make it up does, whatever the others hold.

        Then the rows of violating classes, which a search may leave out, never grow in number from a node of a lattice
        to one above it.
        """
        return False

    @property
    def is_monotone(self) -> bool:
        """Whether classes that all keep it keep it when they are joined.

        By rows all do. Weights of persons do not add up over classes, so by persons only what grows with a class does.
        """
        return self.is_kept_by_growing or not self.by_persons

    def implied(self) -> Guarantee | None:
        """Give a promise by rows that is kept by growing and that every class keeps which keeps this one, if known."""
        return None

    def in_short(self) -> str:
        """Say what is asked of a class in a few words."""
        return self.name

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        own: dict[str, Any] = asdict(self)
        said = {name: value for name, value in own.items() if value or name not in self.absent_when_empty}
        return {"kind": self.kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in said.items()}

    def left_open(self, facts: ReleaseFacts) -> Iterator[str]:
        """Say what the promise leaves open in this release, in sentences for the reader of a summary."""
        yield from ()

    @property
    def open_values(self) -> str:
        """Values of the columns that nothing is promised of, in a word; empty where there are none."""
        return ""


class MayLeaveOut(Guarantee):
    """A promise over all quasi-identifiers, or over ``protected`` ones only, which it then says plainly."""

    absent_when_empty: ClassVar[tuple[str, ...]] = ("protected",)
    protected: tuple[str, ...]

    @property
    def over(self) -> tuple[str, ...]:
        """Columns that the promise holds on."""
        return self.protected or self.columns

    def _check_protected(self) -> None:
        if not set(self.protected) <= set(self.columns):
            raise InvalidParameterError("protected", "but names other columns", allowed="some of the quasi-identifiers")
        for name in ("columns", "protected"):
            named = getattr(self, name)
            if len(set(named)) < len(named):
                raise InvalidParameterError(name, "but names a column twice", allowed="different columns")

    def _left_out(self) -> str:
        n_open = len(set(self.columns) - set(self.over))
        return f"; {n_open} further quasi-identifying columns are released and NOT PROTECTED" if n_open else ""


class AboutValues(MayLeaveOut):
    """A promise about the values of a sensitive column in every class, which searches count there."""

    counts_persons: ClassVar[bool] = True
    searched_by: ClassVar[SearchedBy | None] = SearchedBy.VALUES
    sensitive: str

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_protected()
        if not isinstance(self.sensitive, str):
            problem = f"got {self.sensitive!r}"
            raise InvalidParameterError("sensitive", problem, allowed="the name of a column, or names by commas")


@dataclass(frozen=True)
class CrowdGuarantee(Guarantee):
    """Promise of at least k rows of some sort."""

    level: ClassVar[Level] = K
    slack: ClassVar[float] = 0.0
    k: Crowd
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("k", self.k, LEAST_CROWD)


def _shown(self: Guarantee) -> str:
    """Show what differs from the defaults: ``Mondrian(privacy=[LDiversity(l=2)])``."""
    own = [(one.name, getattr(self, one.name)) for one in fields(self) if getattr(self, one.name) != one.default]
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in own)})"


def _asked_by(guarantee: type[Guarantee]) -> tuple[Parameter, ...]:
    """Complete what a kind declares as its shorthand; its level is ``None`` where nobody asks for it."""
    hints, defaults = get_type_hints(guarantee), {one.name: one.default for one in fields(guarantee)}
    found = []
    for name, spec in guarantee.shorthand.items():
        must_be_given = defaults[name] is MISSING
        hint, default = (hints[name] | None, None) if must_be_given else (hints[name], defaults[name])
        found.append(parameter_of(name, hint, default, spec))
    return tuple(found)


GUARANTEES: dict[str, type[Guarantee]] = {}
"""Every kind that is known, in the order in which they are listed for people."""

_Declared = TypeVar("_Declared", bound=type[Guarantee])


def declared(guarantee: _Declared) -> _Declared:
    """Make a guarantee known, wherever guarantees are read, shown and asked for; a decorator.

    Raises
    ------
    TypeError
        If there is another one of this kind, or something in its declaration does not fit its fields.
    """
    kind, names = guarantee.kind, {one.name for one in fields(guarantee)}
    told = {place for _, place, _, _ in Formatter().parse(guarantee.words.found) if place}
    problems = {
        "another one is of this kind": kind in GUARANTEES,
        "its level is none of its fields": guarantee.level.name not in names,
        "its words tell what is none of its fields": not told <= {*names, "level", "units"},
        "people ask for it by what is none of its fields": not set(guarantee.shorthand) <= names,
        "it has no field 'columns'": "columns" not in names,
    }
    for problem, is_there in problems.items():
        if is_there:
            raise TypeError(f"guarantee '{kind}' ({guarantee.__name__}): {problem}")
    guarantee.asked_by = _asked_by(guarantee)
    guarantee.__repr__ = _shown  # type: ignore[assignment]  # in place of the one that a dataclass gets
    GUARANTEES[kind] = guarantee
    return guarantee


def guarantee_from_dict(data: dict[str, Any]) -> Guarantee:
    """Rebuild a guarantee from a manifest entry.

    Examples
    --------
    >>> guarantee_from_dict({"kind": "containment", "k": 5, "columns": ["a"]})
    Containment(k=5, columns=('a',))
    """
    own: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k != "kind"}
    try:
        return GUARANTEES[data["kind"]](**own)
    except (KeyError, TypeError) as exc:
        raise ManifestError(
            "a guarantee in the manifest is not one this version knows", hint=f"known: {', '.join(GUARANTEES)}"
        ) from exc
