"""What is measured: columns, methods, classifiers, and the utility and protection of each combination."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reproductions.adult_hierarchies import adult_hierarchies
from reproductions.public_data import load_adult
from sfumato.audit.levels.registry import measured_level
from sfumato.audit.profile import ROWS_BELOW
from sfumato.audit.reading.columns import Columns
from sfumato.audit.reading.equivalence import classes_of_rows
from sfumato.evaluation.encoding import GeneralizedEncoder, Matrix
from sfumato.evaluation.utility import CrossValidatedUtility, cross_validated_utility
from sfumato.guarantees import KAnonymity, LDiversity, UniquePatterns
from sfumato.measures.loss import generalization_height
from sfumato.mechanisms.lattice.gain import GainRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.schema import Column, Kind, Role
from sfumato.table.coding import Table

Accuracies = NDArray[np.float64]
TARGET, SENSITIVE, PAPER_CLASS = "salary", "occupation", "sex"
K, L = 5, 3

PAPER, TEN, ARX = "paper", "ten attributes", "ARX"
COLUMNS = {
    PAPER: ("relationship", "marital-status", "workclass", "age", "race", "education", "native-country", "sex"),
    TEN: ("age", "workclass", "education", "marital-status", "relationship", "race", "sex", "hours-per-week"),
    ARX: ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"),
}

NAIVE_BAYES, CATEGORICAL_BAYES = "naive Bayes", "naive Bayes, categorical"
REGRESSION, FOREST = "logistic regression", "random forest"
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    NAIVE_BAYES: BernoulliNB,
    CATEGORICAL_BAYES: MultinomialNB,
    REGRESSION: lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    FOREST: partial(RandomForestClassifier, n_estimators=100, random_state=0, n_jobs=1, min_samples_leaf=2),
}

ORIGINAL, ORIGINAL_NUMERIC = "no anonymization", "no anonymization, age a number"
PLAIN, WEIGHTED = "plain recoding", "weighted by gain"
SLICED_BY_SEX, SLICED_BY_SALARY = "sliced by gain for sex", "sliced by gain for salary"
BY_INFORMATION, BY_CLASSES = "target information", "classification metric"
UNIFORM_TREE, TIERED_TREE, MONDRIAN = "tree, uniform", "tree, tiered", "Mondrian, gain"
NO_SECOND_ROUND = ", no regrouping"

_RECODERS: dict[str, Callable[..., GlobalRecoder]] = {
    PLAIN: GlobalRecoder,
    WEIGHTED: GainRecoder,
    BY_INFORMATION: partial(GlobalRecoder, loss="target_information"),
    BY_CLASSES: partial(GlobalRecoder, loss="classification"),
}
_SLICING: dict[str, Callable[..., GlobalRecoder]] = {
    SLICED_BY_SEX: partial(GainRecoder, slicing=True, gain_target=PAPER_CLASS, gain_correction="none"),
    SLICED_BY_SALARY: partial(GainRecoder, slicing=True, gain_correction="none"),
}
_IN_ONE_ROUND = {f"{name}{NO_SECOND_ROUND}": partial(build, regroup=False) for name, build in _RECODERS.items()}
SWAPPED = {
    "swapping, occupation": ((SENSITIVE,), 1.0),
    "swapping, low slice": (("workclass", "age", "race", "education", "native-country"), 1.0),
    "swapping, low slice, a fifth": (("workclass", "age", "race", "education", "native-country"), 0.2),
}
OVER_HIERARCHIES = _RECODERS | _SLICING | _IN_ONE_ROUND
WITHOUT_HIERARCHIES: dict[str, Callable[[], Any]] = {
    UNIFORM_TREE: partial(ErrorRiskTree, k=K, generalization="uniform"),
    TIERED_TREE: partial(ErrorRiskTree, k=K),
    MONDRIAN: partial(Mondrian, k=K, split="gain"),
}
METHODS = {
    PAPER: (
        ORIGINAL,
        ORIGINAL_NUMERIC,
        PLAIN,
        SLICED_BY_SEX,
        SLICED_BY_SALARY,
        WEIGHTED,
        BY_CLASSES,
        BY_INFORMATION,
        *SWAPPED,
    ),
    TEN: (ORIGINAL, SLICED_BY_SEX),
    ARX: (ORIGINAL, ORIGINAL_NUMERIC, *_RECODERS, *_IN_ONE_ROUND, *WITHOUT_HIERARCHIES),
}
SOUND = (PLAIN, WEIGHTED, BY_CLASSES, BY_INFORMATION)


MIDPOINTS = partial(GeneralizedEncoder, ranges="midpoint")


class CellEncoder(GeneralizedEncoder):
    """Every cell as it is written, ranges and sets too, gets a column of zeros and ones."""

    def __init__(self) -> None:
        super().__init__(sets="label")

    def fit(self, table: Table, columns: Mapping[str, Column]) -> GeneralizedEncoder:
        """Learn the cells, taking all columns as nominal."""
        super().fit(table, {n: replace(c, kind=Kind.CATEGORICAL, domain=None) for n, c in columns.items()})
        self._n_cells = np.nanmax(super().transform(table), axis=0).astype(int) + 1
        names = zip(self.feature_names_, self._n_cells, strict=True)
        self.feature_names_ = tuple(f"{name}, cell {place}" for name, n in names for place in range(n))
        self.is_categorical_ = np.full(len(self.feature_names_), False)
        self.is_piece_ = np.full(len(self.feature_names_), False)
        return self

    def transform(self, table: Table) -> Matrix:
        """Write a one for each cell of a row; none for a cell that was not learnt."""
        numbers = super().transform(table)
        return np.hstack([numbers[:, [j]] == np.arange(n) for j, n in enumerate(self._n_cells)]).astype(float)


class Remembering:
    """Another recoder, whose recodings are kept: all classifiers see the same folds."""

    def __init__(self, recoder: Any) -> None:
        self.recoder = recoder
        self._kept: dict[bytes, Any] = {}

    def recode(self, table: Table) -> Any:
        """Recode, unless these rows were recoded before."""
        key = hashlib.sha256(b"".join(column.codes.tobytes() for column in table.columns.values())).digest()
        if key not in self._kept:
            self._kept[key] = self.recoder.recode(table)
        return self._kept[key]


@dataclass(frozen=True)
class Job:
    """One line of a table."""

    case: str
    method: str


@dataclass(frozen=True)
class Held:
    """What a release of all rows holds, by the audit: over the columns that are coarsened, and over all of them."""

    levels: Mapping[str, int]
    n_suppressed: int
    k_of_slice: int
    l_of_slice: int
    k: int
    l: int  # noqa: E741  # the field's own name
    unique_fraction: float
    fraction_below_k: float
    height: float | None = None
    """Equation 4 divided by the number of cells; of hierarchies only, a suppressed row at the highest levels."""


@dataclass(frozen=True)
class Outcome:
    """Utility over the folds for each classifier, and what holds."""

    job: Job
    utilities: Mapping[str, CrossValidatedUtility]
    held: Held

    def accuracy(self, classifier: str) -> float:
        """Mean share of right predictions."""
        return 1 - self.utilities[classifier].error

    def auc(self, classifier: str) -> float:
        """Mean area under the ROC curve."""
        return self.utilities[classifier].auc or 0.0

    def accuracies(self, classifier: str) -> Accuracies:
        """Share of right predictions, fold by fold."""
        return np.array([1 - fold.error for fold in self.utilities[classifier].folds])


def standard_error(values: Accuracies) -> float:
    """Of the mean of independent values."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


@cache
def table_of(case: str) -> Table:
    """Complete rows of adult.data with the roles of a case; what has none is not released."""
    table = load_adult("train", complete=True)
    roles = dict.fromkeys(table.schema.names(), Role.IDENTIFIER) | {SENSITIVE: Role.SENSITIVE, TARGET: Role.TARGET}
    return table.with_schema(table.schema.with_roles(roles | dict.fromkeys(COLUMNS[case], Role.QUASI_IDENTIFIER)))


def recoder_of(job: Job) -> Any:
    """Mechanism of a job; ``None`` where the rows are left as they are."""
    if job.method in WITHOUT_HIERARCHIES:
        return WITHOUT_HIERARCHIES[job.method]()
    if job.method in SWAPPED:
        return Swapping(*SWAPPED[job.method])
    if job.method not in OVER_HIERARCHIES:
        return None
    known = adult_hierarchies()
    privacy = [] if job.case == ARX else [LDiversity(L)]
    return OVER_HIERARCHIES[job.method](k=K, hierarchies={n: known[n] for n in COLUMNS[job.case]}, privacy=privacy)


def jobs() -> list[Job]:
    """All that is measured, the long ones first."""
    return [Job(case, method) for case, methods in METHODS.items() for method in reversed(methods)]


def classifiers_of(case: str) -> Sequence[str]:
    """Classifiers of the paper; there is no figure of a random forest for ARX."""
    return tuple(name for name in CLASSIFIERS if case != ARX or name != FOREST)


def measure(job: Job) -> Outcome:
    """Cross-validate one method with every classifier, and audit a release of all rows."""
    table, recoder = table_of(job.case), recoder_of(job)
    remembering = None if recoder is None else Remembering(recoder)
    has_ranges = job.method in WITHOUT_HIERARCHIES or job.method == ORIGINAL_NUMERIC
    utilities = {
        name: cross_validated_utility(
            table,
            remembering,
            classifier=CLASSIFIERS[name](),
            encoder=MIDPOINTS if has_ranges and name in (REGRESSION, FOREST) else CellEncoder,
        )
        for name in classifiers_of(job.case)
    }
    return Outcome(job, utilities, held_by(recoder, table))


def held_by(recoder: Any, table: Table) -> Held:
    """Release all rows and measure with the audit, which shares no code with the recoders."""
    released = table if recoder is None else recoder.release(table).table
    names = table.schema.names(Role.QUASI_IDENTIFIER)
    levels = getattr(recoder, "levels_", {})
    coarsened = tuple(levels) or names

    def k_and_l(over: tuple[str, ...]) -> tuple[int, int]:
        k = measured_level(KAnonymity(K, over), released)
        return int(k), 0 if SENSITIVE in over else int(measured_level(LDiversity(L, SENSITIVE, over), released))

    unique = measured_level(UniquePatterns(0.0, names), released)
    with classes_of_rows(Columns(released), names) as classes:
        below = classes.ask(ROWS_BELOW, k=K) / max(released.n_rows, 1)
    n_suppressed = table.n_rows - released.n_rows
    height = height_of(released, n_suppressed, names) if levels else None
    return Held(levels, n_suppressed, *k_and_l(coarsened), *k_and_l(names), unique, below, height)


def height_of(released: Table, n_suppressed: int, names: Sequence[str]) -> float:
    """Mean level of a cell (Equation 4 of the paper, over rows times columns), read off the released labels."""
    known = adult_hierarchies()
    total = 0
    for name in names:
        labels = released[name].values.to_pylist()
        levels = [[known[name].level_of(str(label))] for label in labels]
        counts = np.bincount(released[name].codes, minlength=len(labels))
        total += generalization_height(levels, counts) + n_suppressed * (known[name].n_levels - 1)
    return total / ((released.n_rows + n_suppressed) * len(names))


class Swapping:
    """Data swapping (section 2.2.4 of the paper): values of some columns are exchanged between random rows.

    A baseline without a guarantee: every value stays in the table, so that all counts of single columns are those of
    the original; only what belongs together is lost. Test rows stay as they are.
    """

    def __init__(self, columns: Sequence[str], share: float) -> None:
        self.columns, self.share = columns, share

    def recode(self, table: Table) -> Swapping:
        """Take no notice of the rows."""
        return self

    def recoded(self, table: Table) -> Table:
        """Exchange values among a share of the rows, each column by a permutation of its own."""
        rng = np.random.default_rng(0)
        rows = np.sort(rng.choice(table.n_rows, round(self.share * table.n_rows), replace=False))
        columns = dict(table.columns)
        for name in self.columns:
            codes = columns[name].codes.copy()
            codes[rows] = codes[rng.permutation(rows)]
            columns[name] = replace(columns[name], codes=codes)
        return Table(table.schema, columns, table.n_rows)

    generalized = as_cells = staticmethod(lambda table: table)
    names: tuple[str, ...] = ()
    certainty_penalty = 0.0

    def encodable(self) -> dict[str, Column]:
        """No column changed its kind."""
        return {}

    def release(self, table: Table) -> SimpleNamespace:
        """Give the swapped rows, for the audit's levels."""
        return SimpleNamespace(table=self.recoded(table))
