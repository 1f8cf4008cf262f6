"""What is measured: data sets, methods, encodings, and the utility and anonymity of each combination."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from reproductions.public_data import load_adult, load_cmc
from sfumato.audit.original.consistency import consistency
from sfumato.audit.reading.columns import Columns
from sfumato.evaluation.encoding import GeneralizedEncoder
from sfumato.evaluation.utility import CrossValidatedUtility, cross_validated_utility
from sfumato.guarantees import Guarantee
from sfumato.mechanisms.axes import align
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.presets import PRESETS
from sfumato.mechanisms.recoder import Cover, Recoder, Recoding
from sfumato.mechanisms.registry import build_mechanism
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.progress import Progress
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

LEVELS = (10, 20, 30)
ORIGINAL = "original"
CONTRA, CONTRA_AS_J48, ADULT = "Contra", "Contra, two numeric columns", "Adult"
DATA_SETS = (CONTRA, CONTRA_AS_J48, ADULT)
CONTRA_NUMERIC = ("wife-age", "wife-education", "husband-education", "children", "living-standard")
PAPER_DATA_SETS = (CONTRA, ADULT)
DEFAULT_ENCODING, LABELS = "midpoints, shares", "midpoints, labels"

C45_TREE = partial(ErrorRiskTree, splits="multiway")
BINARY_TREE = partial(ErrorRiskTree, splits="binary")
ERP = "paper:erp"
ERP_TIERED = "paper:erp-tiered"
ERP_LOWEST = "ours:erp-lowest"


def as_preset(k: int, *, preset: str, **other: Any) -> Recoder:
    """Make the paper's system, with some settings of another reading."""
    return build_mechanism("error-risk-tree", {**PRESETS[preset].parameters, "k": k, **other})


def with_leaves_of_k(k: int) -> Recoder:
    """Grow the tree with k rows in every leaf, so that nothing is left to prune."""
    return as_preset(k, preset=ERP, min_samples_leaf=k)


PAPER_METHODS: dict[str, Callable[[int], Recoder]] = {
    "Mondrian": partial(Mondrian, split="gain"),
    "ERP-only": partial(as_preset, preset=ERP),
    "proposed": partial(as_preset, preset=ERP_TIERED),
}
OTHER_READINGS: dict[str, Callable[[int], Recoder]] = {
    "ERP-only, leaves of k": with_leaves_of_k,
    "ERP-only, lowest rule": partial(as_preset, preset=ERP_LOWEST),
    "ERP-only, gain ratio": partial(as_preset, preset=ERP, criterion="entropy"),
    "proposed, gain ratio": partial(as_preset, preset=ERP_TIERED, criterion="entropy"),
    "ERP-only, multiway": partial(C45_TREE, generalization="uniform", refine=False),
    "proposed, multiway": partial(C45_TREE, refine=False),
}
OUR_METHODS: dict[str, Callable[[int], Recoder]] = {
    **OTHER_READINGS,
    "Mondrian, penalty": partial(Mondrian, split="penalty"),
    "Mondrian, median": partial(Mondrian, split="median"),
    "uniform, refined": partial(BINARY_TREE, generalization="uniform"),
    "tiered, refined": BINARY_TREE,
    "uniform, refined, multiway": partial(C45_TREE, generalization="uniform"),
    "tiered, refined, multiway": C45_TREE,
}
METHODS = PAPER_METHODS | OUR_METHODS
METHODS_WITH_OWN_CELLS = (*PAPER_METHODS, "ERP-only, multiway", "proposed, multiway")
METHODS_BY_ENCODING = (*PAPER_METHODS, "tiered, refined")


class WrittenCellEncoder(GeneralizedEncoder):
    """Every cell as it is written is a category, ranges too."""

    def __init__(self) -> None:
        super().__init__(sets="label")

    def fit(self, table: Table, columns: Mapping[str, Column]) -> GeneralizedEncoder:
        """Learn the cells, taking all columns as nominal."""
        return super().fit(table, {n: replace(c, kind=Kind.CATEGORICAL, domain=None) for n, c in columns.items()})


class OwnCells(Recoding):
    """A recoding that gives the rows of another table the ranges and sets of that table's own groups."""

    def generalized(self, table: Table) -> Table:
        """Divide the rows by the groups of the covered table, and cover each group's own values."""
        axes = tuple(align(axis, table[axis.name]) for axis in self.axes)
        return Recoding(axes, Cover.of_groups(self.part_of(axes)), self.part_of).recoded(table)


class WithOwnCells(Recoder):
    """Another recoder, whose recodings generalize test rows by themselves."""

    mechanism_name = "own cells"

    def __init__(self, recoder: Recoder) -> None:
        self.recoder = recoder

    def recode(self, table: Table, *, progress: Progress | None = None) -> Recoding:
        """Recode as the other one does."""
        done = self.recoder.recode(table, progress=progress)
        return OwnCells(done.axes, done.cover, done.part_of, done.entry_of_row)

    def guarantees(self, table: Table) -> list[Guarantee]:
        """Promise what the other one does."""
        return self.recoder.guarantees(table)


ENCODERS: dict[str, Callable[[], GeneralizedEncoder]] = {
    DEFAULT_ENCODING: partial(GeneralizedEncoder, ranges="midpoint"),
    "bounds, shares": partial(GeneralizedEncoder, ranges="bounds"),
    LABELS: partial(GeneralizedEncoder, ranges="midpoint", sets="label"),
    "all labels": WrittenCellEncoder,
}


@dataclass(frozen=True)
class Job:
    """One line of a table at one k."""

    data: str
    method: str
    k: int = 0
    encoding: str = DEFAULT_ENCODING
    has_own_test_cells: bool = False


CONTRA_COMBINATIONS = tuple(
    Job(CONTRA, method, k, encoding, own)
    for method in PAPER_METHODS
    for own in (False, True)
    for encoding in ENCODERS
    for k in LEVELS
)
"""Every encoding with either reading of how test rows are generalized: what a reason about Contra may speak of."""


@dataclass(frozen=True)
class Held:
    """Levels of anonymity that the audit finds when all rows are recoded."""

    k: int
    kk: int
    global_1k: int


@dataclass(frozen=True)
class Outcome:
    """Utility over the folds, and what holds."""

    job: Job
    utility: CrossValidatedUtility
    held: Held | None

    @property
    def standard_error(self) -> float:
        """Of the mean error over the folds."""
        errors = [fold.error for fold in self.utility.folds]
        return float(np.std(errors, ddof=1) / np.sqrt(len(errors)))


@cache
def table_of(data: str) -> Table:
    """Table of a data set; every column but the target is a quasi-identifier."""
    table = load_adult("all", complete=True) if data == ADULT else load_cmc()
    numeric = CONTRA_NUMERIC if data == CONTRA else ()
    columns = [
        replace(
            c,
            role=c.role if c.role is Role.TARGET else Role.QUASI_IDENTIFIER,
            kind=Kind.NUMERIC if c.name in numeric else c.kind,
        )
        for c in table.schema
    ]
    return table.with_schema(Schema.of(columns, table.schema.missing))


def jobs() -> list[Job]:
    """All that is measured, the long ones first."""
    listed = []
    for data in reversed(DATA_SETS):
        listed += [Job(data, method, k) for method in METHODS for k in LEVELS]
        listed.append(Job(data, ORIGINAL, encoding=LABELS))
        if data in PAPER_DATA_SETS:
            listed += [Job(data, m, k, has_own_test_cells=True) for m in METHODS_WITH_OWN_CELLS for k in LEVELS]
            others = [encoding for encoding in ENCODERS if encoding != DEFAULT_ENCODING]
            listed += [Job(data, m, LEVELS[0], encoding) for m in METHODS_BY_ENCODING for encoding in others]
    return [*dict.fromkeys([*listed, *CONTRA_COMBINATIONS])]


def measure(job: Job) -> Outcome:
    """Cross-validate one method at one k, and audit a release of all rows."""
    table = table_of(job.data)
    recoder = None if job.method == ORIGINAL else METHODS[job.method](job.k)
    divided = WithOwnCells(recoder) if recoder is not None and job.has_own_test_cells else recoder
    utility = cross_validated_utility(table, divided, encoder=ENCODERS[job.encoding])
    is_in_main_table = job == Job(job.data, job.method, job.k)
    return Outcome(job, utility, held_by(recoder, table) if recoder is not None and is_in_main_table else None)


def held_by(recoder: Recoder, table: Table) -> Held:
    """Recode all rows and count, as the audit does, what the release is consistent with."""
    names = table.schema.names(Role.QUASI_IDENTIFIER)
    released = recoder.recode(table).recoded(table)
    found = consistency(
        Columns(released), Columns(table), names, generalized={name: table.schema[name] for name in names}
    )
    return Held(found.anonymity_level, found.level_kk, found.level_global)
