r"""Attacks with a control group: what a release gives away about the people in it, beyond what it says of everybody.

Each attack is made on people of the release and on *control* people, who come from the same population and whom the
release was made without. Success on control people is what anybody could learn about anybody; the rest is the risk
:math:`(r - r_0) / (1 - r_0)` of being in the release [AM23]_. Singling out, linkability and inference are the three
risks of WP216 [WP216]_. All use only the released cells, never the place of a row in the file.

- *Singling out*: a released row whose cells no other released row has makes a guess: "one person has these values".
  A person is singled out if the row covers the person and nobody else in a crowd of the person's own group. Both crowds
  have the same size.
- *Linkability*: two attackers know disjoint halves of a person's quasi-identifiers. Each picks one of the nearest
  released rows at random. The person is linked if both pick the same row.
- *Inference*: the attacker knows a person's quasi-identifiers and names the most frequent sensitive value among the
  nearest released rows.
- *Membership*: the attacker knows all of a person's values and decides whether the person is in the release. A person
  covered by few rows is more likely one of them than a person covered by many; a person covered by none is judged by
  the distance of the nearest rows. The measure is not the risk above but the *advantage*: the share of members called
  members less that of control people called so, by the threshold that separates *other* people best; 0 is guessing, 1
  knows everybody. Calling everybody a member names every member and has the advantage 0. **k-anonymity promises nothing
  about membership.**

Nearest is by covered columns, see :mod:`sfumato.attack.nearest`.

Notes
-----
Differences from anonymeter, the software of [AM23]_, which is made for synthetic rows of single values:

- Equality and Gower's distance become covering, because released cells are ranges, sets and ``*``. A number that is
  near but not covered counts as any other miss.
- Rows at the same distance are all nearest; anonymeter takes the first in the order of the file.
- Singling out counts people rather than guesses: anonymeter draws guesses over three columns until it has enough, and
  corrects the control's share for its size by a fitted curve. Here every guess over all columns is made, and both
  crowds have one size. A crowd smaller than the release makes control people easier to single out, so that the risk is
  understated; hold out half of the people to avoid it. Equal released rows are not one row: they protect each other.
- Inference names the most frequent value of all nearest rows, anonymeter that of one. Many numbers are inferred by
  quarters of the rows, not within 5 %.
- Intervals invert score tests, see :mod:`sfumato.attack.intervals`. Every draw has a seed.

References
----------
.. [AM23] Giomi, Boenisch, Wehmeyer, Tasnadi: A Unified Framework for Quantifying Privacy Risk in Synthetic Data.
   PoPETs 2023(2) 312-328.
.. [WP216] Article 29 Data Protection Working Party: Opinion 05/2014 on Anonymisation Techniques, WP216.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.attack.candidates import MatchedColumn, candidates_of
from sfumato.attack.controls import FEWEST_PEOPLE, counted_of, drawn_people, stacked, without_people_of
from sfumato.attack.correspondence import Correspondence
from sfumato.attack.inference import inferred_classes
from sfumato.attack.intervals import CONFIDENCE, area_under_curve, difference_interval, rate_interval, residual_risk
from sfumato.attack.nearest import DistancesToRows, is_nearest
from sfumato.attack.risk import NOT_APPLICABLE, attacked_rows
from sfumato.audit.reading.columns import Columns, Refinement
from sfumato.errors import ColumnNotFoundError, InvalidParameterError
from sfumato.manifest import AnyTable, Manifest
from sfumato.progress import Progress
from sfumato.schema import WITHHELD, Role

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]

MOST_PEOPLE = 2_000
SINGLING_OUT, LINKABILITY, INFERENCE, MEMBERSHIP = "singling_out", "linkability", "inference", "membership"
BY_ALL, BY_QUASI_IDENTIFIERS = "all released columns", "quasi-identifiers"
_WORDS = {
    SINGLING_OUT: "singled out by {by}",
    LINKABILITY: "two databases linked by {by}",
    INFERENCE: "{column} inferred",
    MEMBERSHIP: "called a member, and the advantage",
}

_MOST_IN_CROWD = 20_000
_MOST_COLUMNS = 50
_DECIMALS = 12
_TIE = 1e-9  # weight of the whole release's frequencies, which decide between equally frequent values
_NO_COLUMNS = "no released cell comes from a quasi-identifier of the original"
_ONE_COLUMN = "two attackers cannot know different columns: fewer than two quasi-identifiers were released"
_IN_PIECES = "values were moved within buckets, so that a released row is not about one person"
_NO_SENSITIVE = "the original has no sensitive column"
_NOT_RELEASED = "the column is not in the release"


def attack_with_controls(
    original: AnyTable,
    control: AnyTable,
    released: AnyTable,
    manifest: Manifest | None = None,
    *,
    include_target: bool = False,
    seed: int = 0,
    most_people: int = MOST_PEOPLE,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Attack people of a release and control people who are not in it, and compare.

    Parameters
    ----------
    original : Table or BinaryTable
        People whom the release was made of. People whose rows it left out count as people of the release.
    control : Table or BinaryTable
        Other people of the same population, with the same columns. Persons who are in the original too are left out,
        where a column tells persons apart.
    released : Table or BinaryTable
        For the risk before anything is done, the original itself; its identifiers are not used.
    manifest : Manifest or None
        Tells how columns were recoded; ``None`` takes all released cells as values.
    include_target : bool
        Whether to infer the target too.
    seed : int
        Of everything that is drawn.
    most_people : int
        People attacked in each group; more are drawn at random.

    Returns
    -------
    dict
        ``counted`` (``people``, or ``rows`` where an identifier repeats and nothing tells persons apart: a person's
        rows may then be in both groups), ``n_people`` (released and control), ``n_attacked`` in each group,
        ``n_crowd``, ``confidence``, ``seed`` and ``attacks``: for each ``attack`` what it is ``by``, ``what`` it does
        in words, ``released`` and ``control`` (``n_people``, ``n_success``, ``rate``, ``interval``), ``guessing``
        (success on released people without the release's rows; ``None`` for membership), ``risk`` (``value``,
        ``interval``; the value is ``None`` where the attack succeeds on every control person). Inference has the
        ``column``. Membership has no risk but the ``advantage`` and the ``auc`` (``value``, ``interval``). Where an
        attack does not apply, it has ``not_applicable`` with the reason. Fit for JSON; no cell value is in it.

    Raises
    ------
    InvalidParameterError
        If there are fewer than two people in a group, or a parameter is out of its range.
    ColumnNotFoundError
        If the control table lacks a column that the release was made of.
    SchemaError
        If released cells cannot be read beside the original's.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Schema
    >>> from sfumato.table.coding import Table
    >>> jobs = Schema.of([Column("job"), Column("town")])
    >>> people = Table.from_arrow(pa.table({"job": ["a", "b", "c"], "town": ["x", "y", "z"]}), jobs)
    >>> others = Table.from_arrow(pa.table({"job": ["d", "e", "f"], "town": ["x", "y", "z"]}), jobs)
    >>> found = attack_with_controls(people, others, people)["attacks"][0]
    >>> found["attack"], found["released"]["rate"], found["control"]["rate"], found["risk"]["value"]
    ('singling_out', 1.0, 0.0, 1.0)
    """
    if isinstance(most_people, bool) or not isinstance(most_people, int | np.integer) or most_people < FEWEST_PEOPLE:
        allowed = f"a whole number of at least {FEWEST_PEOPLE}"
        raise InvalidParameterError("most_people", f"got {most_people!r}", allowed=allowed)
    original, control = attacked_rows(original, manifest), attacked_rows(control, manifest)
    control = without_people_of(control, original)
    groups = _Groups(original, control, int(most_people), seed)
    tables = Correspondence(groups.people, released, manifest)
    _check_control_columns(control, original, tables)
    attacks = _Attacks(tables, groups, include_target, seed, progress)
    return {
        "counted": counted_of(original),
        "n_people": {"released": groups.n_released, "control": groups.n_control},
        "n_attacked": groups.n_attacked,
        "n_crowd": groups.n_crowd,
        "confidence": CONFIDENCE,
        "seed": seed,
        "attacks": attacks.results(),
    }


class _Groups:
    """People drawn from both tables: first those of the release, then as many control people."""

    def __init__(self, original: AnyTable, control: AnyTable, most_people: int, seed: int) -> None:
        rows = [drawn_people(table, np.random.default_rng([seed, 0])) for table in (original, control)]
        self.n_released, self.n_control = map(len, rows)
        if min(self.n_released, self.n_control) < FEWEST_PEOPLE:
            problem = f"got {self.n_released:,} people of the release and {self.n_control:,} control people"
            raise InvalidParameterError("control", problem, allowed=f"at least {FEWEST_PEOPLE} of each")
        self.n_crowd = min(self.n_released, self.n_control, _MOST_IN_CROWD)
        self.n_attacked = min(self.n_crowd, most_people)
        self.people = stacked(original.take(rows[0][: self.n_crowd]), control.take(rows[1][: self.n_crowd]))

    @property
    def crowds(self) -> tuple[Ids, Ids]:
        """Rows of both groups among the people drawn."""
        return np.arange(self.n_crowd), np.arange(self.n_crowd, 2 * self.n_crowd)

    @property
    def attacked(self) -> Ids:
        """Rows of the people attacked, first those of the release."""
        return np.concatenate([crowd[: self.n_attacked] for crowd in self.crowds])


def _check_control_columns(control: AnyTable, original: AnyTable, tables: Correspondence) -> None:
    known = Columns(original)
    for name in tables.released.names:
        recoding = tables.recodings.get(name)
        source = recoding.column if recoding is not None else name
        if tables.released.describe(name).role in WITHHELD or source not in known:
            continue
        if source not in tables.original:
            raise ColumnNotFoundError(source, Columns(control).names, where="the control table")


@dataclass(frozen=True, eq=False, repr=False)
class _Secret:
    """A sensitive column: how often each group of released rows shows each class of values, and whose class is which.

    The last classes are those of values that none of the people has: naming one is never right.
    """

    name: str
    known: tuple[str, ...]
    shown: sp.csr_matrix
    true: Ids
    note: str


class _Attacks:
    """One release and the people drawn, with every attack on them."""

    def __init__(
        self, tables: Correspondence, groups: _Groups, include_target: bool, seed: int, progress: Progress | None
    ) -> None:
        self._tables, self._groups, self._seed, self._progress = tables, groups, seed, progress
        roles = (Role.SENSITIVE, *((Role.TARGET,) if include_target else ()))
        self._wanted = [name for role in roles for name in tables.original.with_role(role)]

    def results(self) -> list[dict[str, Any]]:
        """Make every attack."""
        self._say(0, "singling out")
        singled = [self._singling_out(by) for by in (BY_ALL, BY_QUASI_IDENTIFIERS)]
        if self._why_not:
            others = [_not_applicable(LINKABILITY, BY_QUASI_IDENTIFIERS, self._why_not)]
            others += [_not_applicable(INFERENCE, BY_QUASI_IDENTIFIERS, self._why_not, name) for name in self._wanted]
            others.append(_not_applicable(MEMBERSHIP, BY_ALL, self._why_not))
        else:
            others = self._by_nearest_rows()
        self._say(self._groups.n_attacked * 2, "attacks")
        return [entry | {"what": _in_words(entry)} for entry in (*singled, *others)]

    @property
    def _why_not(self) -> str:
        """Why no attack applies, if none does."""
        if self._tables.is_in_pieces:
            return _IN_PIECES
        return "" if self._names and self._tables.released.n_rows else _NO_COLUMNS

    def _say(self, n_done: int, what: str) -> None:
        if self._progress is not None:
            self._progress(n_done, self._groups.n_attacked * 2, what)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """Released columns whose cells are about the person of their row, 50 at most, drawn at random."""
        tables = self._tables
        names = [
            name
            for name in tables.released.names
            if tables.source_of(name) is not None
            and not tables.is_moved(name)
            and tables.released.describe(name).role not in WITHHELD
        ]
        if len(names) <= _MOST_COLUMNS:
            return tuple(names)
        must = [name for name in names if name in self._wanted][:_MOST_COLUMNS]
        rest = [name for name in names if name not in must]
        random = np.random.default_rng([self._seed, 1])
        drawn = random.choice(len(rest), _MOST_COLUMNS - len(must), replace=False)
        return tuple(name for name in names if name in {*must, *(rest[i] for i in drawn)})

    @cached_property
    def _quasi_identifiers(self) -> tuple[str, ...]:
        return tuple(name for name in self._names if name in self._tables.quasi_identifiers)

    @cached_property
    def _columns(self) -> Mapping[str, MatchedColumn]:
        return {name: self._tables.column(name) for name in self._names}

    def _singling_out(self, by: str) -> dict[str, Any]:
        names = self._names if by == BY_ALL else self._quasi_identifiers
        if self._why_not or not names:
            return _not_applicable(SINGLING_OUT, by, self._why_not or _NO_COLUMNS)
        columns = [self._columns[name] for name in names]
        n, released = self._groups.n_attacked, self._tables.released.n_rows
        members, controls = (singled_out(columns, crowd, released)[:n] for crowd in self._groups.crowds)
        random = np.random.default_rng([self._seed, 2])
        mixed = [MatchedColumn(c.containing, c.places, random.permutation(np.sort(c.cells))) for c in columns]
        guessing = float(singled_out(mixed, self._groups.crowds[0], released)[:n].mean())
        return _compared(SINGLING_OUT, by, members, controls, guessing) | {"n_columns": len(names)}

    def _by_nearest_rows(self) -> list[dict[str, Any]]:
        """Make linkability, inference and membership in one pass over the people."""
        people, n = self._groups.attacked, self._groups.n_attacked
        rows = DistancesToRows(self._columns, self._tables.released.n_rows)
        halves, secrets = self._halves(), self._secrets(rows)
        sets = [*halves, self._names, *(secret.known for secret in secrets)]
        linked, scores = np.zeros(len(people)), np.zeros(len(people))
        guessed = np.zeros((len(secrets), len(people)), dtype=np.int64)
        sizes = rows.groups.sizes.astype(np.float64)
        for chunk, (one, other, every, *known) in rows.chunks(people, sets):
            scores[chunk] = _membership_scores(every, sizes)
            linked[chunk] = _chances_of_link(one, other, sizes)
            for number, (secret, distances) in enumerate(zip(secrets, known, strict=True)):
                guessed[number, chunk] = _most_frequent(secret.shown, distances)
            self._say(min(chunk.stop, len(people)), "nearest rows")
        found: list[dict[str, Any]] = []
        if all(halves):
            is_linked = np.random.default_rng([self._seed, 3]).random(len(people)) < linked
            guessing = 1 / max(self._tables.released.n_rows, 1)
            found.append(_compared(LINKABILITY, BY_QUASI_IDENTIFIERS, is_linked[:n], is_linked[n:], guessing))
        else:
            found.append(_not_applicable(LINKABILITY, BY_QUASI_IDENTIFIERS, _ONE_COLUMN))
        found += self._inferred(secrets, guessed)
        return [*found, _membership(scores[:n], scores[n:])]

    def _halves(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Deal the known columns out to two attackers in turn; features of one column go to the same."""
        sources = list(dict.fromkeys(self._tables.source_of(name) for name in self._quasi_identifiers))
        mine = set(sources[::2])
        one = tuple(n for n in self._quasi_identifiers if self._tables.source_of(n) in mine)
        return one, tuple(n for n in self._quasi_identifiers if n not in one)

    def _inferred(self, secrets: Sequence[_Secret], guessed: Ids) -> list[dict[str, Any]]:
        if not self._wanted:
            return [_not_applicable(INFERENCE, BY_QUASI_IDENTIFIERS, _NO_SENSITIVE)]
        n, by_name = self._groups.n_attacked, {secret.name: number for number, secret in enumerate(secrets)}
        found = []
        for name in self._wanted:
            if name not in by_name:
                found.append(_not_applicable(INFERENCE, BY_QUASI_IDENTIFIERS, _NOT_RELEASED, name))
                continue
            secret, guesses = secrets[by_name[name]], guessed[by_name[name]]
            is_right = guesses == secret.true
            overall = int(np.argmax(np.asarray(secret.shown.sum(axis=0)).ravel()))
            guessing = float((secret.true[:n] == overall).mean())
            entry = _compared(INFERENCE, BY_QUASI_IDENTIFIERS, is_right[:n], is_right[n:], guessing)
            found.append(entry | {"column": name} | ({"note": secret.note} if secret.note else {}))
        return found

    def _secrets(self, rows: DistancesToRows) -> list[_Secret]:
        released = {self._tables.source_of(name): name for name in reversed(self._tables.released.names)}
        return [self._secret(name, released[name], rows) for name in self._wanted if name in released]

    def _secret(self, name: str, shown_as: str, rows: DistancesToRows) -> _Secret:
        tables = self._tables
        column, coded = tables.column(shown_as), tables.original.coded(name)
        wanted = inferred_classes(coded, tables.original.describe(name).kind, name)
        read = column.containing
        class_of_place = np.zeros(read.n_places, dtype=np.int64)
        class_of_place[read.places] = wanted.class_of_value
        if (class_of_place[read.places] != wanted.class_of_value).any():
            class_of_place = np.arange(read.n_places)  # a 0/1 feature of several values: its own value is inferred
        each, groups, cells = np.ones(len(column.cells)), rows.groups, column.cells
        shown = sp.csr_matrix((each, (groups.ids, cells)), shape=(len(groups.sizes), read.n_cells))
        if tables.is_moved(shown_as):
            shown = _cells_by_bucket(groups.ids, tables.buckets.ids, column)
        shown = shown @ _classes_of_cells(column, class_of_place)
        known = tuple(n for n in self._quasi_identifiers if tables.source_of(n) != name)
        true = class_of_place[column.places[self._groups.attacked]]
        return _Secret(name, known, sp.csr_matrix(shown), true, wanted.note)


def singled_out(columns: Sequence[MatchedColumn], crowd: Ids, n_released: int) -> Flags:
    """Who in a crowd is covered, alone in the crowd, by a released row whose cells no other released row has."""
    refinement = Refinement(n_released)
    for column in columns:
        refinement.add(column.cells, column.containing.n_cells)
    classes = refinement.classes()
    alone = np.flatnonzero(classes.sizes[classes.ids] == 1)
    covered = candidates_of([_part(c, crowd, alone) for c in columns], len(crowd), len(alone)).per_row
    guesses = alone[covered == 1]
    found: Flags = candidates_of([_part(c, crowd, guesses) for c in columns], len(crowd), len(guesses)).per_person > 0
    return found


def _part(column: MatchedColumn, people: Ids, rows: Ids) -> MatchedColumn:
    return MatchedColumn(column.containing, column.places[people], column.cells[rows])


def _classes_of_cells(column: MatchedColumn, class_of_place: Ids) -> sp.csr_matrix:
    """Chance of each class in each released cell: the values that it covers are equally likely."""
    read = column.containing
    lengths = read.stops - read.starts
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places, cells = np.repeat(read.starts, lengths) + offsets, np.repeat(read.cells, lengths)
    n_places = np.bincount(cells, minlength=read.n_cells)
    foreign = np.flatnonzero(n_places == 0)
    n_classes = int(class_of_place.max(initial=-1)) + 1
    chances = np.concatenate([1 / n_places[cells], np.ones(len(foreign))])
    classes = np.concatenate([class_of_place[places], n_classes + np.arange(len(foreign))])
    at = np.concatenate([cells, foreign]), classes
    return sp.csr_matrix((chances, at), shape=(read.n_cells, n_classes + len(foreign)))


def _cells_by_bucket(group_of_row: Ids, bucket_of_row: Ids, column: MatchedColumn) -> sp.csr_matrix:
    """Count the cells to be expected in each group of rows: any cell of a row's bucket may be the row's."""
    each = np.ones(len(bucket_of_row))
    n_buckets = int(bucket_of_row.max(initial=-1)) + 1
    cells = sp.csr_matrix((each, (bucket_of_row, column.cells)), shape=(n_buckets, column.containing.n_cells))
    sizes = np.maximum(np.bincount(bucket_of_row, minlength=n_buckets), 1)
    n_groups = int(group_of_row.max(initial=-1)) + 1
    rows = sp.csr_matrix((each, (group_of_row, bucket_of_row)), shape=(n_groups, n_buckets))
    return sp.csr_matrix(rows @ sp.diags(1 / sizes) @ cells)


def _chances_of_link(one: NDArray[np.uint8], other: NDArray[np.uint8], sizes: Numbers) -> Numbers:
    """Chance that one of the nearest rows by one half, and one by the other half, are the same row."""
    by_one, by_other = is_nearest(one), is_nearest(other)
    chances: Numbers = ((by_one & by_other) @ sizes) / ((by_one @ sizes) * (by_other @ sizes))
    return chances


def _most_frequent(shown: sp.csr_matrix, distances: NDArray[np.uint8]) -> Ids:
    """Name the most frequent class among the nearest rows; ties: the most frequent in the whole release, the first."""
    votes = (shown.T @ is_nearest(distances).astype(np.float64).T).T
    overall = np.asarray(shown.sum(axis=0)).ravel()
    return np.asarray(np.argmax(votes + _TIE * overall / max(overall.sum(), 1), axis=1), dtype=np.int64)


def _membership_scores(distances: NDArray[np.uint8], sizes: Numbers) -> Numbers:
    """Score people: a smaller distance of the nearest rows is higher, then fewer of them."""
    n_nearest = is_nearest(distances) @ sizes
    scores: Numbers = 1 / n_nearest - distances.min(axis=1)
    return scores


def _membership(members: Numbers, controls: Numbers) -> dict[str, Any]:
    """Find the threshold on half of the people of each group and judge the other half by it."""
    threshold = best_threshold(members[::2], controls[::2])
    judged = members[1::2] >= threshold, controls[1::2] >= threshold
    n, n_0 = map(len, judged)
    n_called, n_called_0 = (int(np.count_nonzero(called)) for called in judged)
    advantage = n_called / max(n, 1) - n_called_0 / max(n_0, 1)
    return {
        "attack": MEMBERSHIP,
        "by": BY_ALL,
        "released": _rate(n_called, n),
        "control": _rate(n_called_0, n_0),
        "guessing": None,
        "is_better_than_guessing": None,
        "advantage": _estimate(advantage, difference_interval(n_called, n, n_called_0, n_0)),
        "auc": _estimate(*area_under_curve(members, controls)),
    }


def best_threshold(members: Numbers, controls: Numbers) -> float:
    """Score from which people are called members so that most members and fewest controls are; ties: the highest.

    Examples
    --------
    >>> best_threshold(np.array([3.0, 2.0, 1.0]), np.array([1.0, 1.0, 0.0])), best_threshold(np.ones(2), np.ones(2))
    (2.0, inf)
    """
    thresholds = np.append(np.unique(np.concatenate([members, controls])), np.inf)[::-1]
    called = [1 - np.searchsorted(np.sort(s), thresholds, side="left") / max(len(s), 1) for s in (members, controls)]
    return float(thresholds[int(np.argmax(np.round(called[0] - called[1], _DECIMALS)))])


def _compared(attack: str, by: str, members: Flags, controls: Flags, guessing: float) -> dict[str, Any]:
    (n, n_success), (n_0, n_success_0) = ((len(found), int(np.count_nonzero(found))) for found in (members, controls))
    value, interval = residual_risk(n_success, n, n_success_0, n_0)
    rate = n_success / max(n, 1)
    return {
        "attack": attack,
        "by": by,
        "released": _rate(n_success, n),
        "control": _rate(n_success_0, n_0),
        "guessing": round(guessing, _DECIMALS),
        "is_better_than_guessing": bool(rate > guessing),
        "risk": _estimate(value, interval),
    }


def _in_words(entry: Mapping[str, Any]) -> str:
    column = f"'{entry['column']}'" if "column" in entry else "sensitive value"
    return _WORDS[entry["attack"]].format(by=entry["by"], column=column)


def _estimate(value: float | None, interval: tuple[float, float]) -> dict[str, Any]:
    return {
        "value": None if value is None else round(value, _DECIMALS),
        "interval": [round(end, _DECIMALS) for end in interval],
    }


def _rate(n_success: int, n: int) -> dict[str, Any]:
    return {
        "n_people": n,
        "n_success": n_success,
        "rate": round(n_success / max(n, 1), _DECIMALS),
        "interval": [round(end, _DECIMALS) for end in rate_interval(n_success, n)],
    }


def _not_applicable(attack: str, by: str, reason: str, column: str | None = None) -> dict[str, Any]:
    return {"attack": attack, "by": by, NOT_APPLICABLE: reason} | ({"column": column} if column is not None else {})
