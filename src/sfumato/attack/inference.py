"""Attribute inference: how well the strongest of several attackers predicts a sensitive column from the release.

An attacker trains on people whose sensitive value is known and predicts that of others. The score is the share of
right predictions in cross-validation: with all quasi-identifiers of the original, with the released cells, and by the
most frequent value alone. The privacy breach increase [PBI17]_ is the percentage by which the second is above the
first.

Where released rows belong to people, the attacker trains on the released cells of some and predicts others by theirs.
Where they do not (values were moved in buckets, or rows drawn anew), the attacker trains on the released rows as they
stand and predicts the people of the original by the cells in which their values would be. These people's values went
into the release, so the score counts what it gives away about them, and is above that of a cross-validation.

References
----------
.. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
   Selection. Transactions on Data Privacy 10 (2017).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.attack.correspondence import ABSENT, Correspondence
from sfumato.audit.reading.values import GENERALIZED, TYPICAL, matching_ids
from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.tree import MISSING, TreeColumn, numeric_column
from sfumato.learning.fold_scores import SubsetScores, folds
from sfumato.learning.naive_bayes import NaiveBayesScores, Numeric
from sfumato.learning.trained_scores import TreeScores
from sfumato.mechanisms.breach.evidence import CONFIDENCE, estimate_breach
from sfumato.mechanisms.breach.tradeoff import breach_increase_percent
from sfumato.schema import Kind, Role
from sfumato.table.coding import CodedColumn
from sfumato.table.generalized import read_cell

# Scores of attackers that were trained once, for every release of the same original.
#
# Most of the time of an attack goes into the learners that know the original, and these are the same for every release
# of the same people. A score is found again by the cells, classes and folds that it was made of, so that it cannot be
# taken for another's.


Codes = NDArray[np.intp]
Scores = NDArray[np.float64]
Best = tuple[Scores, str]
"""Score of each fold, and the attacker that is the best."""


class KeptScores(Protocol):
    """Where scores are kept, as plain data by their key."""

    def load(self, key: str) -> Any:
        """Read what was kept, or ``None``."""

    def save(self, key: str, entry: Mapping[str, Any]) -> None:
        """Keep an entry, fit for JSON."""


class ScoresInMemory:
    """Scores of this process.

    Examples
    --------
    >>> kept = ScoresInMemory()
    >>> kept.save("key", {"attacker": "c45", "scores": [0.5]})
    >>> kept.load("key")
    {'attacker': 'c45', 'scores': [0.5]}
    """

    def __init__(self) -> None:
        self._entries: dict[str, Mapping[str, Any]] = {}

    def load(self, key: str) -> Any:
        """Read what was kept, or ``None``."""
        return self._entries.get(key)

    def save(self, key: str, entry: Mapping[str, Any]) -> None:
        """Keep an entry."""
        self._entries[key] = entry


def measured_once(
    kept: KeptScores,
    attackers: Sequence[str],
    columns: Sequence[TreeColumn],
    target: Codes,
    folds: Codes,
    measure: Callable[[Sequence[TreeColumn], Codes, Codes], Best],
) -> Best:
    """Take the scores that were kept, or measure and keep them."""
    key = key_of(attackers, columns, target, folds)
    known = best_in(kept.load(key), attackers, int(folds.max()) + 1)
    if known is not None:
        return known
    best, attacker = measure(columns, target, folds)
    kept.save(key, {"attacker": attacker, "scores": best.tolist()})
    return best, attacker


def key_of(attackers: Sequence[str], columns: Sequence[TreeColumn], target: Codes, folds: Codes) -> str:
    """SHA-256 over all that the scores depend on."""
    digest = hashlib.sha256("\n".join(attackers).encode())
    for codes in (target, folds):
        _add(digest, codes.astype("<i8"))
    for column in columns:
        digest.update(f"\n{column.n_values} {column.is_numeric}\n".encode())
        _add(digest, column.codes.astype("<i4"))
        _add(digest, (np.zeros(0) if column.numbers is None else column.numbers).astype("<f8"))
    return digest.hexdigest()


def _add(digest: Any, numbers: NDArray[Any]) -> None:
    digest.update(f"{len(numbers)}:".encode() + numbers.tobytes())


def best_in(entry: Any, attackers: Sequence[str], n_folds: int) -> Best | None:
    """Read scores; ``None`` where there are none, or what was kept is not what was asked for."""
    if not isinstance(entry, Mapping) or entry.get("attacker") not in attackers:
        return None
    scores = entry.get("scores")
    if not isinstance(scores, list) or len(scores) != n_folds or not all(map(_is_share, scores)):
        return None
    return np.array(scores, dtype=np.float64), str(entry["attacker"])


def _is_share(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) and 0.0 <= value <= 1.0


Ids = NDArray[np.int64]

ATTACKERS = ("naive-bayes", "naive-bayes-discretized", "c45")
N_FOLDS = 10
MOST_ROWS = 5_000
MOST_CLASSES = 20
_PARTS = 4
_FEWEST_ROWS = 20
_MOST_VALUES = 200
_MOST_COLUMNS_OF_TREES = 100

_ON_CELLS = "released cells and sensitive values of the same people"
_ON_OWN_VALUES = "released cells of people whose sensitive values, which were not released, come from the original"
_ON_ROWS = "released rows; tested on the people of the original, whose values they were made from"


@dataclass(frozen=True, eq=False, repr=False)
class InferredClasses:
    """A column to be inferred: its name, and the class of each of its distinct original values."""

    name: str
    class_of_value: Codes
    note: str


def attribute_inference(
    tables: Correspondence,
    *,
    include_target: bool = False,
    attackers: Sequence[str] = ATTACKERS,
    seed: int = 0,
    most_rows: int = MOST_ROWS,
    kept: KeptScores | None = None,
) -> list[dict[str, Any]]:
    """Try to infer every sensitive column of the original.

    Parameters
    ----------
    include_target : bool
        Whether to infer the target as well.
    attackers : sequence of str
        Of naive-bayes, naive-bayes-discretized and c45; the best one counts, with the original and with the release
        each. C4.5 is left out beside more than 100 columns.
    seed : int
        Of the folds and of the people drawn where there are more than ``most_rows``.
    kept : KeptScores or None
        Scores with the original from earlier attacks, to which those of this one are added.

    Returns
    -------
    list of dict
        For each column: ``majority``, ``with_original`` and ``with_release`` (shares of right predictions),
        ``breach_increase_percent`` with an ``interval`` of 95 % (of the corrected resampled t-test where rows belong to
        people, else of the share on the release alone), the ``attackers`` that were the best, ``trained_on`` and
        ``n_people``; or ``not_applicable`` with the reason.

    Notes
    -----
    A column of more than 20 numbers is inferred by quarters.
    """
    unknown = [attacker for attacker in attackers if attacker not in ATTACKERS]
    if unknown or not attackers:
        raise InvalidParameterError("attackers", f"got {list(attackers)}", allowed=f"some of {', '.join(ATTACKERS)}")
    roles = (Role.SENSITIVE, *((Role.TARGET,) if include_target else ()))
    names = [name for role in roles for name in tables.original.with_role(role)]
    found = []
    for name in names:
        attack = _Attack(tables, name, tuple(attackers), seed, most_rows, kept or ScoresInMemory())
        found.append({"column": name} | attack.result())
    return found


class _Attack:
    """One column to be inferred from the original and from the release."""

    def __init__(
        self,
        tables: Correspondence,
        name: str,
        attackers: tuple[str, ...],
        seed: int,
        most_rows: int,
        kept: KeptScores,
    ) -> None:
        self._tables, self._attackers, self._seed, self._most_rows = tables, attackers, seed, most_rows
        self._kept = kept
        self._random = np.random.default_rng(seed)
        self._wanted = inferred_classes(tables.original.coded(name), tables.original.describe(name).kind, name)
        self._values = tables.original.coded(name).codes
        self._known = [n for n in tables.quasi_identifiers if tables.source_of(n) not in (None, name)]

    def result(self) -> dict[str, Any]:
        """Plain data: scores, or why there are none."""
        belongs = self._tables.own_row is not None and not self._tables.is_moved(self._wanted.name)
        own = self._tables.own_row
        n_original = self._tables.original.n_rows
        people = np.flatnonzero(own != ABSENT) if belongs and own is not None else np.arange(n_original)
        people = self._drawn(people)
        target = self._wanted.class_of_value[self._values[people]]
        present, target = np.unique(target, return_inverse=True)
        if len(people) < _FEWEST_ROWS:
            return {"not_applicable": f"there are fewer than {_FEWEST_ROWS} people to learn from"}
        if not 2 <= len(present) <= _MOST_VALUES:
            problem = "one value only" if len(present) < 2 else f"more than {_MOST_VALUES} values"
            return {"not_applicable": f"the column has {problem}"}
        fold_of_row = folds(target, N_FOLDS, self._seed)
        known = self._original_columns(people)
        before, by_before = measured_once(self._kept, self._attackers, known, target, fold_of_row, self._best)
        if before.mean() <= 0:
            return {"not_applicable": "no attacker is ever right, even with the original"}
        common = {
            "n_values": len(present),
            "n_people": len(people),
            "majority": float(np.bincount(target).max() / len(target)),
            "with_original": float(before.mean()),
            "note": self._wanted.note,
        }
        if belongs and own is not None:
            after, by_after = self._with_release(own[people], known, target, fold_of_row, (before, by_before))
            return common | self._compared(after, before, (by_before, by_after))
        return self._from_rows(people, target, present, common, float(before.mean()), by_before)

    def _with_release(
        self, rows: Ids, known: Sequence[TreeColumn], target: Codes, fold_of_row: Codes, before: Best
    ) -> Best:
        """Train on released cells; where they are those of the original, it scores what the original does."""
        shown = self._released_columns(rows)
        keys = [key_of(self._attackers, columns, target, fold_of_row) for columns in (known, shown)]
        return before if keys[0] == keys[1] else self._best(shown, target, fold_of_row)

    def _drawn(self, rows: Ids) -> Ids:
        if len(rows) <= self._most_rows:
            return rows
        return np.sort(self._random.choice(rows, self._most_rows, replace=False))

    def _compared(self, after: Scores, before: Scores, best: tuple[str, str]) -> dict[str, Any]:
        is_released = self._wanted.name in self._tables.released
        found = estimate_breach(after, before, CONFIDENCE)
        return {
            "with_release": found.attack,
            "breach_increase_percent": round(found.increase, 6),
            "interval": [round(found.low, 6), round(found.high, 6)],
            "attackers": {"with_original": best[0], "with_release": best[1]},
            "trained_on": _ON_CELLS if is_released else _ON_OWN_VALUES,
        }

    def _from_rows(
        self, people: Ids, target: Codes, present: Codes, common: dict[str, Any], before: float, by_before: str
    ) -> dict[str, Any]:
        """Train on all released rows, test on all people: two folds, of which the second is held out."""
        name = self._wanted.name
        if name not in self._tables.released:
            reason = (
                "the column is not in the release, whose rows belong to nobody" if self._tables.is_synthetic else ""
            )
            return {"not_applicable": reason or "the column is not in the release, whose values were moved"}
        shown = self._shown_classes(present)
        rows = self._drawn(np.flatnonzero(shown >= 0))
        cells = [self._tables.column(n) for n in self._known]
        columns = []
        for n, column in zip(self._known, cells, strict=True):
            if column.cell_of_person is None:
                return {"not_applicable": "released cells overlap, and rows do not belong to people"}
            both = np.concatenate([column.cells[rows], column.cell_of_person[people]])
            columns.append(self._column(n, both))
        if len(np.unique(shown[rows])) < 2:
            return {"not_applicable": "the column has one value only in the release"}
        part = np.repeat([0, 1], [len(rows), len(people)])
        scores, by_after = self._best(columns, np.concatenate([shown[rows], target]), part, held_out=1)
        after = float(scores[1])
        half = 196 * float(np.sqrt(after * (1 - after) / len(people))) / before
        increase = breach_increase_percent(after, before)
        return common | {
            "with_release": after,
            "breach_increase_percent": round(increase, 6),
            "interval": [round(increase - half, 6), round(increase + half, 6)],
            "attackers": {"with_original": by_before, "with_release": by_after},
            "trained_on": _ON_ROWS,
        }

    def _shown_classes(self, present: Codes) -> Codes:
        """Class of each released row's sensitive value, -1 for a value that the people drawn do not have."""
        before = self._tables.original.coded(self._wanted.name).values
        after = self._tables.released.coded(self._wanted.name)
        known, shown = matching_ids(before, after.values)
        number = {int(present_class): i for i, present_class in enumerate(present)}
        class_of = {int(k): number.get(int(c), -1) for k, c in zip(known, self._wanted.class_of_value, strict=True)}
        return np.array([class_of.get(int(value), -1) for value in shown], dtype=np.intp)[after.codes]

    def _original_columns(self, people: Ids) -> list[TreeColumn]:
        original = self._tables.original
        names = [n for n in original.with_role(Role.QUASI_IDENTIFIER) if n != self._wanted.name]
        return [
            _tree_column(original.coded(n), original.describe(n).kind, original.coded(n).codes[people]) for n in names
        ]

    def _released_columns(self, rows: Ids) -> list[TreeColumn]:
        return [self._column(n, self._tables.released.coded(n).codes[rows]) for n in self._known]

    def _column(self, name: str, cells: NDArray[Any]) -> TreeColumn:
        """Released cells as an attacker learns from them: ranges of numbers by their middle, others as they are."""
        coded, recoding = self._tables.released.coded(name), self._tables.recodings.get(name)
        if recoding is not None and recoding.rule == GENERALIZED and recoding.kind is Kind.NUMERIC:
            middles = np.append(_middles(coded.values), np.nan)  # place -1 is the last: missing
            return numeric_column(middles[cells])
        is_value = recoding is None or recoding.rule == TYPICAL
        kind = self._tables.released.describe(name).kind if is_value else Kind.CATEGORICAL
        return _tree_column(coded, kind, cells)

    def _best(
        self, columns: Sequence[TreeColumn], target: Codes, fold_of_row: Codes, held_out: int | None = None
    ) -> tuple[Scores, str]:
        kinds = [a for a in self._attackers if a != "c45" or len(columns) <= _MOST_COLUMNS_OF_TREES]
        kinds = kinds or ["naive-bayes"]
        found = [_learner(kind, columns, target, fold_of_row).scores(range(len(columns))) for kind in kinds]
        means = [scores.mean() if held_out is None else scores[held_out] for scores in found]
        best = int(np.argmax(means))
        return found[best], kinds[best]


def _learner(kind: str, columns: Sequence[TreeColumn], target: Codes, fold_of_row: Codes) -> SubsetScores:
    if kind == "c45":
        return TreeScores(columns, target, fold_of_row)
    numeric: Numeric = "gaussian" if kind == "naive-bayes" else "discretized"
    return NaiveBayesScores(columns, target, fold_of_row, numeric=numeric)


def inferred_classes(column: CodedColumn, kind: Kind, name: str) -> InferredClasses:
    """Take the values as classes, many numbers by quarters of the rows; missing is a class."""
    codes = np.arange(len(column.values))
    if kind is not Kind.NUMERIC or len(column.values) <= MOST_CLASSES:
        return InferredClasses(name, codes, "")
    numbers = column.numbers()
    cells = numbers[column.codes]
    cuts = np.unique(np.quantile(cells[~np.isnan(cells)], np.arange(1, _PARTS) / _PARTS))
    classes = np.where(np.isnan(numbers), len(cuts) + 1, np.searchsorted(cuts, numbers))
    return InferredClasses(name, classes.astype(np.intp), "a column of many numbers, inferred by quarters")


def _tree_column(column: CodedColumn, kind: Kind, cells: NDArray[Any]) -> TreeColumn:
    """Take cells of a column by their codes; -1 and missing values are missing."""
    if kind is Kind.NUMERIC:
        try:
            return numeric_column(np.append(column.numbers(), np.nan)[cells])
        except ValueError:
            pass  # released cells of a numeric column that are no numbers are categories
    n_values = len(column.values) - (column.missing_code is not None)
    codes = np.where(cells == (column.missing_code if column.missing_code is not None else MISSING), MISSING, cells)
    return TreeColumn(codes.astype(np.int32), max(n_values, 1))


def _middles(values: pa.Array) -> Scores:
    """Middle of the numbers that each distinct cell stands for; not-a-number for any and for missing."""
    cells = [read_cell(text) for text in pc.cast(values, pa.string()).to_pylist()]
    named = [[float(number) for number in (*cell.values, *(cell.bounds or ()))] for cell in cells]
    return np.array([float(np.mean(numbers)) if numbers else np.nan for numbers in named])
