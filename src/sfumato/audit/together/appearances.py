"""Whose row is in which class of a release: found from the original, row by row or by the cells that its values fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.claims import Claims
from sfumato.audit.original.assignment import BothBags, Pairs, TooManyPairsError
from sfumato.audit.original.cell_rules import cell_rules, codes_of, refuse_problems
from sfumato.audit.original.offered_rows import offered_rows
from sfumato.audit.reading.columns import AnyTable, Columns, group_rows
from sfumato.audit.reading.values import same_value
from sfumato.audit.together.levels import ABSENT, Appearances, Ids, Together
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import DifferentialPrivacy, KAnonymity, LDiversity


@dataclass(frozen=True)
class Promised:
    """What a release promises that is judged together with others, and what it promises besides.

    Parameters
    ----------
    k : int
        Persons of a class over ``columns``; 0 where nothing of the kind is promised.
    columns : tuple of str
        Quasi-identifiers over which classes are made.
    diversity : mapping of str to float
        Different values of sensitive columns in every class, of as many different persons.
    epsilon : float or None
        Of differential privacy.
    others : tuple of str
        Kinds of promises that are not judged together.
    """

    k: int
    columns: tuple[str, ...] = ()
    diversity: Mapping[str, float] = field(default_factory=dict)
    epsilon: float | None = None
    others: tuple[str, ...] = ()

    @property
    def has_classes(self) -> bool:
        """Whether there are classes of persons that can be judged together with others."""
        return self.k > 0

    @classmethod
    def of(cls, claims: Claims) -> Promised:
        """Take the promises out of a manifest.

        Entropy and recursive l-diversity are judged as distinct l-diversity, which they imply; t-closeness and limits
        of shares are not judged together.
        """
        k, columns, diversity, epsilon, others = 0, dict[str, None](), dict[str, float](), None, list[str]()
        for promise in claims.promises:
            guarantee = promise.guarantee
            if isinstance(guarantee, KAnonymity):
                k = max(k, int(guarantee.k))
                columns |= dict.fromkeys(guarantee.over)
            elif isinstance(guarantee, LDiversity):
                diversity[guarantee.sensitive] = max(float(guarantee.l), diversity.get(guarantee.sensitive, 0.0))
                if guarantee.variant != "distinct":
                    others.append(f"{guarantee.variant} l-diversity")
            elif isinstance(guarantee, DifferentialPrivacy):
                epsilon = float(guarantee.epsilon)
            else:
                others.append(guarantee.kind)
        return cls(k, tuple(columns), diversity if k else {}, epsilon, tuple(dict.fromkeys(others)))


@dataclass(frozen=True, eq=False)
class Named:
    """A name for each row, as codes from 0 of distinct names; equal names of two releases are the same thing."""

    codes: Ids
    names: tuple[bytes, ...]

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Named:
        """Keep these rows."""
        return Named(self.codes[rows], self.names)


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Released rows by the names of persons and of sensitive values, with their classes and what was promised."""

    persons: Named
    classes: Ids
    values: Mapping[str, Named]
    promised: Promised

    @property
    def n_persons(self) -> int:
        """Different persons among the rows."""
        return len(np.unique(self.persons.codes))


def named_rows(
    released: AnyTable, original: AnyTable, claims: Claims, person: str, *, rows: NDArray[np.intp] | None = None
) -> NamedRows:
    """Find whose each released row is, by the column of the original that identifies persons.

    Parameters
    ----------
    rows : ndarray of int or None
        Row of the original that each released row was made of, where that is known. Otherwise each row of the original
        is in the class whose cells its values fit.

    Raises
    ------
    SchemaError
        If the column is not there or has missing values: nobody can say in which releases these rows are.
    InvalidParameterError
        If it cannot be known whose rows a class holds.
    """
    before, after, promised = Columns(original), Columns(released), Promised.of(claims)
    groups = group_rows(after, promised.columns)
    if rows is not None:
        classes = groups.ids.astype(np.int64)
    else:
        offered = offered_rows(before, claims).rows
        classes = _classes_that_fit(after, before, claims, promised.columns, offered, groups.ids)
        rows, classes = offered[classes != ABSENT], classes[classes != ABSENT]
        if not np.array_equal(np.bincount(classes, minlength=len(groups.sizes)), groups.sizes):
            problem = "some rows that fit the cells of a class were left out of the release"
            raise InvalidParameterError("rows", problem, allowed="released or left out class by class")
    persons = names_of(before, person)
    check_named(persons, person)
    values = {name: names_of(before, name).take(rows) for name in promised.diversity}
    return NamedRows(persons.take(rows), classes, values, promised)


def check_named(persons: Named, column: str) -> None:
    """Refuse rows without a person.

    Raises
    ------
    SchemaError
        With how many there are.
    """
    is_missing = np.array([not name for name in persons.names], dtype=np.bool_)
    n_missing = int(is_missing[persons.codes].sum()) if len(is_missing) else 0
    if n_missing:
        problem = f"{n_missing:,} rows have no person, so nobody can say in which releases they are"
        raise SchemaError(problem, column=column, hint="fill it in, or leave these rows out")


def names_of(columns: Columns, name: str) -> Named:
    """Name each row's cell of a column by its value, however it is spelled; a missing one has the empty name."""
    column = columns.coded(name)
    return spelled_alike(column.values, column.codes)


def spelled_alike(values: pa.Array, codes: NDArray[np.integer]) -> Named:
    """Name each row's value, given by its place among some that may be one value in several spellings."""
    texts = pc.cast(values, pa.string()).to_pylist()
    spelled = [b"" if text is None else repr(same_value(text)).encode() for text in texts]
    names = tuple(dict.fromkeys(spelled))
    number = {own: i for i, own in enumerate(names)}
    return Named(np.array([number[own] for own in spelled], dtype=np.int64)[codes], names)


def judged_together(releases: Sequence[NamedRows]) -> Together:
    """Put the classes of several releases together, with persons and values numbered alike."""
    persons = numbered_alike([release.persons for release in releases])
    columns = dict.fromkeys(name for release in releases for name in release.values)
    values: list[dict[str, Ids]] = [{} for _ in releases]
    for name in columns:
        having = [i for i, release in enumerate(releases) if name in release.values]
        for i, codes in zip(having, numbered_alike([releases[i].values[name] for i in having]), strict=True):
            values[i][name] = codes
    return Together(
        [
            Appearances(own, release.classes, of_columns, max(release.promised.k, 1), release.promised.diversity)
            for own, release, of_columns in zip(persons, releases, values, strict=True)
        ]
    )


def are_same(one: NamedRows, other: NamedRows) -> bool:
    """Whether two releases show the same persons in the same classes under the same promises: they say it twice."""
    if one.promised != other.promised or len(one.classes) != len(other.classes):
        return False
    pairs = []
    for own in (one, other):
        names = own.persons.names
        pairs.append({(names[p], c) for p, c in zip(own.persons.codes.tolist(), own.classes.tolist(), strict=True)})
    return pairs[0] == pairs[1]


def n_in_common(release: NamedRows, others: Iterable[NamedRows]) -> int:
    """Persons of a release who are in some other one."""
    known = {other.persons.names[code] for other in others for code in np.unique(other.persons.codes)}
    return sum(1 for code in np.unique(release.persons.codes) if release.persons.names[code] in known)


def numbered_alike(named: Sequence[Named]) -> list[Ids]:
    """Give equal names of several releases the same number, from 0, as they are met first."""
    number: dict[bytes, int] = {}
    numbered = []
    for own in named:
        codes = np.array([number.setdefault(name, len(number)) for name in own.names], dtype=np.int64)
        numbered.append(codes[own.codes] if len(codes) else own.codes)
    return numbered


def _classes_that_fit(
    released: Columns, original: Columns, claims: Claims, names: Sequence[str], offered: NDArray[np.intp], groups: Ids
) -> Ids:
    """Class whose cells each offered row of the original fits, ``ABSENT`` where it fits none."""
    known = {rule.name: rule for rule in cell_rules(released, original, claims)}
    rules = [known[name] for name in names]
    refuse_problems(rules)
    before = [codes_of(original, rule.column)[offered] for rule in rules]
    after = [codes_of(released, rule.name) for rule in rules]
    try:
        found = Pairs.of(BothBags.of(rules, before, after)).group_of_originals(groups)
    except TooManyPairsError:
        problem = "classes and rows of the original fit in too many ways"
        raise InvalidParameterError("rows", problem, allowed="fewer") from None
    if found is None:
        problem = "some rows of the original fit the cells of several classes"
        raise InvalidParameterError("cells", problem, allowed="such that each row fits those of one class")
    return found
