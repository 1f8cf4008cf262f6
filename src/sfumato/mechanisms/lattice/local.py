"""Local recoding: different rows may be taken to different levels of the same hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.cells import cell_table
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import Guarantee, SearchedBy
from sfumato.manifest import AnyTable
from sfumato.measures.information import mutual_information_bits
from sfumato.measures.loss import suppressed_fraction
from sfumato.mechanisms.base import Compared, MechanismInfo, combinations
from sfumato.mechanisms.hierarchies.hierarchy import ROOT, Covered
from sfumato.mechanisms.lattice.base_levels import BaseLevels
from sfumato.mechanisms.lattice.lattice import LatticeProblem
from sfumato.mechanisms.lattice.levels import LevelRecoding
from sfumato.mechanisms.lattice.losses import CLASS_LOSSES
from sfumato.mechanisms.lattice.recoder import (
    SEARCH_PARAMETERS,
    WEIGHTS,
    HierarchyRecoder,
    is_about_target,
)
from sfumato.mechanisms.lattice.rounds import LOCAL_LOSSES, LocalResult, recode_in_rounds
from sfumato.mechanisms.time_limit import TimeLimit
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import Role
from sfumato.table.coding import Table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RoundRecoding(LevelRecoding):
    """Released labels of a table that was recoded in rounds, and how new rows find theirs.

    Parameters
    ----------
    distinct_codes : int array of shape (n, n_columns)
        Distinct rows of the table, by the codes of its quasi-identifiers.
    distinct_settings : int array of shape (n,)
        Level combination that each of them is released at.
    """

    distinct_codes: NDArray[np.intp]
    distinct_settings: NDArray[np.intp]

    @classmethod
    def of(cls, recoding: LevelRecoding, table: Table) -> RoundRecoding:
        """Remember where each distinct row of the recoded table went."""
        rows = np.column_stack([table.codes(recoding.names), recoding.setting_of_row]).astype(np.intp)
        distinct = np.unique(rows, axis=0)
        known = {field.name: getattr(recoding, field.name) for field in fields(LevelRecoding)}
        return cls(**known, distinct_codes=distinct[:, :-1], distinct_settings=distinct[:, -1])

    def settings_of_new(
        self, table: Table, fitted: tuple[tuple[Covered, Sequence[int | None]], ...]
    ) -> NDArray[np.intp]:
        """Take new rows to the first round that has a released class for them, else to the last round."""
        found = np.full(table.n_rows, len(self.levels) - 1, dtype=np.intp)
        codes = [table[name].codes for name in self.names]
        is_open = np.ones(table.n_rows, dtype=np.bool_)
        for setting, levels in enumerate(self.levels.tolist()):
            own = self.distinct_codes[self.distinct_settings == setting]
            new = np.flatnonzero(is_open)
            if not len(new):
                break
            both = np.zeros(len(own) + len(new), dtype=np.intp)
            for j, level in enumerate(levels):
                number: dict[str | None, int] = {}
                covered, places = fitted[j]
                own_labels = _numbered(self.covered[j], level, range(self.covered[j].level_codes.shape[1]), number)
                new_labels = _numbered(covered, level, places, number)
                labels = np.concatenate([own_labels[own[:, j]], new_labels[codes[j][new]]])
                both = np.unique(both * len(number) + labels, return_inverse=True)[1].reshape(-1)
            matched = new[np.isin(both[len(own) :], both[: len(own)])]
            found[matched] = setting
            is_open[matched] = False
        return found


def _numbered(
    covered: Covered, level: int, places: Sequence[int | None], number: dict[str | None, int]
) -> NDArray[np.intp]:
    """Give each place the number of its label; a place that the hierarchy does not cover has the label ``*``."""
    labels, codes = covered.labels[level], covered.level_codes[level]
    texts = [ROOT if place is None else labels[int(codes[place])] for place in places]
    return np.array([number.setdefault(text, len(number)) for text in texts], dtype=np.intp)


class LocalRecoder(HierarchyRecoder):
    """Take rows to levels of the hierarchies in rounds, so that most rows keep more detail than one level allows.

    Each round takes the combination of levels that costs least on the rows it releases; the other rows are left to the
    next round, and the last rows may be generalized to the top (``*`` in every quasi-identifier). **Every row is
    released.** Classes satisfy k, and l and t on request, over the whole release.

    Compared with ``global-recoding`` a column is not at one level in all rows: the release keeps far more detail, and
    labels of several levels stand in one column.

    Parameters
    ----------
    k : int, default=5
        Rows of a class.
    hierarchies : mapping or None
        Hierarchies (or paths of files) by column; others are read where the schema names a file, or built from the
        values.
    loss : {"certainty_penalty", "target_information"}, default="certainty_penalty"
        What a round minimizes on the rows that it releases: the mean share of values left open, or the bits about the
        target that rows lose when they are joined.
    privacy : sequence of Guarantee
        What else every class must keep: l-diversity, t-closeness, β-likeness, δ-disclosure privacy and (α,k)-anonymity
        of sensitive columns (all with the role sensitive, unless the guarantee names them, by commas). Classes are
        compared with the original table, whose distribution is that of the release, because every row is released.
    weights : {"equal", "gain"} or mapping, default="equal"
        Weight of each column in the certainty penalty: equal, by its information gain for the target (so that useful
        columns are coarsened last), or given by name.
    min_released_fraction : float, default=0.01
        Share of all rows that a round must release (a tenth of what is left, once that is less). Less gives more
        rounds and finer classes.
    max_values_checked : int, default=4,000,000,000
        Values to look at (distinct rows times columns), over all level combinations and rounds; then rounds take the
        best found so far. It is counted, not timed: the same table gives the same release.

    Attributes
    ----------
    search_ : LocalResult
        Levels of each round.
    recoding_ : RoundRecoding

    References
    ----------
    .. [PEK20] Prasser, Eicher, Spengler, Bild, Kuhn: Flexible data anonymization using ARX. Software: Practice and
       Experience 50 (2020). The rounds are those of ARX's ``optimizeIterativeFast``; see
       :mod:`sfumato.mechanisms.lattice.rounds` for what differs.

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> recoder = LocalRecoder(k=5).fit(admissions(n_rows=400).keep(["age", "sex", "insurance", "readmitted"]))
    >>> recoder.n_suppressed_, recoder.search_.proven
    (0, True)
    """

    mechanism_name: ClassVar[str] = "local-recoding"
    takes_both_roles: ClassVar[bool] = True  # where nothing is asked of its values
    counts_persons: ClassVar[bool] = True
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": ParameterSpec("rows of a class", at_least=2),
        "loss": ParameterSpec("what a round minimizes on the rows that it releases", LOCAL_LOSSES),
        "weights": ParameterSpec(
            "weights of columns in the certainty penalty: equal, gain, or by name", stated=WEIGHTS
        ),
        "hierarchies": SEARCH_PARAMETERS["hierarchies"],
        "min_released_fraction": ParameterSpec("share of the rows that a round releases", above=0, at_most=1),
        "max_values_checked": ParameterSpec(
            "values to check; then the best found so far is taken", at_least=1, at_most=10**12
        ),
    }
    searches: ClassVar[tuple[SearchedBy, ...]] = (SearchedBy.VALUES,)

    def __init__(
        self,
        k: int = 5,
        hierarchies: Mapping[str, Any] | None = None,
        loss: str = "certainty_penalty",
        weights: Literal["equal", "gain"] | Mapping[str, float] = "equal",
        min_released_fraction: float = 0.01,
        max_values_checked: int = 4_000_000_000,
        privacy: Sequence[Guarantee] = (),
    ) -> None:
        self.k = k
        self.hierarchies = hierarchies
        self.loss = loss
        self.weights = weights
        self.min_released_fraction = min_released_fraction
        self.max_values_checked = max_values_checked
        self.privacy = privacy

    def check_search(self) -> None:
        """Refuse limits that are none, and weights for a loss without parts by column."""
        self.check_parameters("min_released_fraction", "max_values_checked")
        if self.loss in CLASS_LOSSES and self.weights != "equal":
            allowed = f"left out for {self.loss}, which is not a sum over columns"
            raise InvalidParameterError("weights", "got some", allowed=allowed)

    def find_levels(
        self, problem: LatticeProblem, limit: TimeLimit, progress: Progress | None
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Search the levels of each round."""
        self.search_: LocalResult = recode_in_rounds(
            problem, float(self.min_released_fraction), int(self.max_values_checked), progress=progress
        )
        return np.array(self.search_.levels), self.search_.rounds

    def recode(
        self, table: AnyTable, *, progress: Progress | None = None, base: BaseLevels | None = None
    ) -> RoundRecoding:
        """Search the levels of each round and recode the rows; with a base no level below it is looked at."""
        checked = self.checked(table)
        self.recoding_ = recoding = RoundRecoding.of(super().recode(checked, progress=progress, base=base), checked)
        return recoding

    def utility(self, table: Table, recoding: LevelRecoding, released: Table) -> dict[str, Any]:
        """Say what the recoding cost."""
        found: dict[str, Any] = {
            "n_rounds": len(self.search_.levels),
            "suppressed_fraction": suppressed_fraction(recoding.n_suppressed, table.n_rows),
            "mean_share_of_values_left_open": recoding.certainty_penalty,
        }
        if self.loss in CLASS_LOSSES and table.schema.target is not None:
            before, after = (_target_bits(rows, table.schema.target) for rows in (table, released))
            found[self.loss] = max(1.0 - after / before, 0.0) if before > 0 else 0.0
        return found


def _target_bits(table: Table, target: str) -> float:
    """Information of the quasi-identifiers on the target."""
    names = table.schema.names(Role.QUASI_IDENTIFIER)
    cells = cell_table(table, [*names, target])
    of_cell = cells.project(names).find(cells.codes[:, :-1])
    counts = np.zeros((int(of_cell.max()) + 1, int(cells.codes[:, -1].max()) + 1), dtype=np.int64)
    np.add.at(counts, (of_cell, cells.codes[:, -1]), cells.counts)
    return mutual_information_bits(counts)


DECLARATION = MechanismInfo(
    LocalRecoder,
    why="labels of your own hierarchies, each row at the finest levels possible: keeps much detail and every row",
    promises="k-anonymity, with l-diversity, t-closeness, β-likeness, δ-disclosure privacy and (α,k)-anonymity on "
    "request",
    compared=Compared(combinations({"k": [5, 10], "weights": ["equal", "gain"]}), most_columns=100),
    cost=4.0,
    needs_target=is_about_target,
)
