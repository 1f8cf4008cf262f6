"""What is measured: a session of three processes, gains of many splits, and classifiers before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from reproductions.breach.weka_folds import weka_folds
from reproductions.collaborate.kstar import kstar_classes
from reproductions.collaborate.rise import MISSING, Fit, fit, rises, text_gains
from reproductions.public_data import data_folder
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.scores import gains_of_removal, removal_order, score_features
from sfumato.collaborate.session.agreement import most_removed
from sfumato.collaborate.shared_schema import Counts, SharedSchema
from sfumato.collaborate.simulate.simulation import SimulationResult, simulate, split_rows
from sfumato.learning.c45.criteria import Entropy
from sfumato.learning.c45.descent import shares_of_leaves
from sfumato.learning.c45.estimators import C45Classifier, first_of_most, of_nodes_with_rows
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.pruning import collapse, prune
from sfumato.learning.c45.tree import TreeColumn
from sfumato.learning.fold_scores import folds
from sfumato.learning.naive_bayes import NaiveBayesScores
from sfumato.learning.trained_scores import feature_matrix
from sfumato.schema import Role
from sfumato.table.cells import as_text
from sfumato.table.coding import Table
from sfumato.table.io.read import read_table

Codes = NDArray[np.intp]
Classify = Callable[["Tumors", Sequence[str], Codes, int], Codes]

TARGET = "class"
N_FOLDS = 5
ALL_ROWS = (110, 135, 94)
TREE, BAYES, FOREST, KSTAR = "C4.5", "naive Bayes", "random forest", "K*"
UNKNOWN = "?"
DECLARED = {
    "age": ("<30", "30-59", ">=60"),
    "sex": ("male", "female"),
    "histologic-type": ("epidermoid", "adeno", "anaplastic"),
    "degree-of-diffe": ("well", "fairly", "poorly"),
}
"""Values as the file declares them; of all other features yes and no."""
CLASSES = (
    *("lung", "head and neck", "esophagus", "thyroid", "stomach", "duoden and sm.int", "colon", "rectum", "anus"),
    *("salivary glands", "pancreas", "gallbladder", "liver", "kidney", "bladder", "testis", "prostate", "ovary"),
    *("corpus uteri", "cervix uteri", "vagina", "breast"),
)
"""In the order in which the file declares them: of equally frequent ones C4.5 takes the first."""


class Rates(NamedTuple):
    """True and false positive rate, each the mean over the classes weighted by their rows, as Weka prints them."""

    true_positive: float
    false_positive: float


@dataclass(frozen=True)
class Split:
    """Three parties of one seed.

    Parameters
    ----------
    order : tuple of str
        Removal order of the parties' rows together, as far as half of the features.
    gains : mapping of str to tuple
        Gain of each party after each removal.
    """

    order: tuple[str, ...]
    gains: Mapping[str, tuple[float, ...]]

    def n_needed(self, threshold: float) -> int:
        """Count the removals after which every party reaches the threshold; 0 if half of the features do not do."""
        least = [min(of_parties) for of_parties in zip(*self.gains.values(), strict=True)]
        return next((n for n, gain in enumerate(least, start=1) if gain >= threshold), 0)


class Tumors:
    """Primary Tumor, 339 rows; a missing value is a value."""

    def __init__(self) -> None:
        table = read_table(data_folder() / "primary-tumor" / "primary-tumor.arff")
        self.table: Table = table.with_schema(table.schema.with_roles({TARGET: Role.TARGET}))  # type: ignore[union-attr]
        self.schema = SharedSchema.of_table(self.table)

    @cached_property
    def target(self) -> Codes:
        """Class of each row."""
        coded = self.table[TARGET]
        places = [CLASSES.index(name) for name in as_text(coded.values).to_pylist()]
        return np.array(places, dtype=np.intp)[coded.codes]

    @cached_property
    def columns(self) -> dict[str, TreeColumn]:
        """Features as classifiers see them."""
        coded = {name: self.table[name] for name in self.schema.names}
        return {name: TreeColumn(c.codes.astype(np.int32), c.n_distinct) for name, c in coded.items()}

    @cached_property
    def declared(self) -> dict[str, TreeColumn]:
        """Features as Table III was made: values as declared, "?" a further one of every feature but age."""
        found = {}
        for name in self.schema.names:
            values = (*DECLARED.get(name, ("yes", "no")), *((UNKNOWN,) if name != "age" else ()))
            texts = as_text(self.table[name].cells()).fill_null(UNKNOWN).to_pylist()
            found[name] = TreeColumn(np.array([values.index(text) for text in texts], dtype=np.int32), len(values))
        return found

    def fits(
        self,
        sizes: Sequence[int],
        removed: Sequence[str],
        printed: Sequence[Sequence[float]],
        threshold: float,
        n_splits: int,
        seed: int,
    ) -> dict[str, Fit]:
        """Compare the text's ρ, and the relative rise of what remains, with the printed gains of random parties."""
        columns = [self.declared[name] for name in self.schema.names]
        n_values = [c.n_values - (name != "age") for name, c in zip(self.schema.names, columns, strict=True)]
        codes = np.column_stack(
            [np.where(c.codes >= size, MISSING, c.codes) for c, size in zip(columns, n_values, strict=True)]
        )
        places = [self.schema.names.index(name) for name in removed]
        draw, ends = np.random.default_rng(seed), np.cumsum(sizes)
        forms = {"text": text_gains, "rise": rises}
        gains: dict[str, list[list[list[float]]]] = {name: [] for name in forms}
        for _ in range(n_splits):
            parts = np.split(draw.permutation(len(codes))[: ends[-1]], ends[:-1])
            for name, form in forms.items():
                gains[name].append([form(codes[rows], n_values, places) for rows in parts])
        return {name: fit(np.array(found), np.array(printed), threshold) for name, found in gains.items()}

    def texts(self, names: Sequence[str]) -> pa.Table:
        """Cells of some features as texts."""
        return pa.table({name: as_text(self.table[name].cells()).fill_null("?") for name in names})

    def counts(self, rows: Codes) -> dict[str, Counts]:
        """Count the values of each feature by class in some rows, over the values of all 339."""
        counted = self.schema.counts(self.table.take(rows))
        return dict(zip(self.schema.names, self.schema.matrices(counted), strict=True))

    def session(self, threshold: float, seed: int = 0) -> SimulationResult:
        """Let three processes with 110, 135 and 94 rows agree, as ``sfumato collaborate simulate`` does."""
        return simulate(self.table, Plan(threshold), sizes=ALL_ROWS, seed=seed, schema=self.schema)

    def splits(self, sizes: Sequence[int], n_seeds: int) -> Iterator[Split]:
        """Deal out rows at random, leaving out those that the sizes do not ask for."""
        for seed in range(n_seeds):
            chosen = np.sort(np.random.default_rng(seed).permutation(self.table.n_rows)[: sum(sizes)])
            parts = split_rows(len(chosen), parties=len(sizes), sizes=sizes, seed=seed)
            scores = score_features(self.counts(chosen))
            order = removal_order(scores)[: most_removed(len(scores))]
            own = {name: self.counts(chosen[rows]) for name, rows in parts.items()}
            yield Split(order, {name: gains_of_removal(order, counts) for name, counts in own.items()})

    def rates(self, learner: str, names: Sequence[str], seed: int | None) -> Rates:
        """Cross-validate a classifier on some features; seed None is Weka's folds of its seed 1."""
        fold_of_row = weka_folds(self.target, N_FOLDS) if seed is None else folds(self.target, N_FOLDS, seed)
        classify = (WEKA_LEARNERS if seed is None else LEARNERS)[learner]
        return weighted_rates(self.target, classify(self, names, fold_of_row, seed or 0))


def weighted_rates(target: Codes, predicted: Codes) -> Rates:
    """Rates of each class against all others, weighted by the rows of the class.

    Examples
    --------
    >>> weighted_rates(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]))
    Rates(true_positive=0.75, false_positive=0.08333333333333333)
    """
    true, false = 0.0, 0.0
    for place in np.unique(target):
        is_class, is_said = target == place, predicted == place
        share = float(is_class.mean())
        true += share * float(is_said[is_class].mean())
        false += share * float(is_said[~is_class].mean()) if share < 1 else 0.0
    return Rates(true, false)


def _by_tree(tumors: Tumors, names: Sequence[str], fold_of_row: Codes, seed: int) -> Codes:
    X, predicted = tumors.texts(names), np.empty_like(tumors.target)
    for fold in range(N_FOLDS):
        test = fold_of_row == fold
        model = C45Classifier().fit(X.filter(pa.array(~test)), tumors.target[~test])
        predicted[test] = model.predict(X.filter(pa.array(test)))
    return predicted


def _by_bayes(tumors: Tumors, names: Sequence[str], fold_of_row: Codes, seed: int) -> Codes:
    scores = NaiveBayesScores([tumors.columns[name] for name in names], tumors.target, fold_of_row)
    return np.asarray(scores.log_posteriors(range(len(names))).argmax(axis=1))


def _by_forest(tumors: Tumors, names: Sequence[str], fold_of_row: Codes, seed: int) -> Codes:
    X, _ = feature_matrix([tumors.columns[name] for name in names])
    predicted = np.empty_like(tumors.target)
    for fold in range(N_FOLDS):
        test = fold_of_row == fold
        model = RandomForestClassifier(n_estimators=100, random_state=seed).fit(X[~test], tumors.target[~test])
        predicted[test] = model.predict(X[test])
    return predicted


def _by_kstar(tumors: Tumors, names: Sequence[str], fold_of_row: Codes, seed: int) -> Codes:
    columns = [tumors.declared[name] for name in names]
    codes = np.column_stack([column.codes for column in columns])
    predicted = np.empty_like(tumors.target)
    for fold in range(N_FOLDS):
        train = fold_of_row != fold
        predicted[~train] = kstar_classes(codes, [column.n_values for column in columns], tumors.target, train)
    return predicted


def _by_declared_tree(tumors: Tumors, names: Sequence[str], fold_of_row: Codes, seed: int) -> Codes:
    """C4.5 with a branch for every declared value, in the order of their declaration, as J48 grows it."""
    columns, predicted = [tumors.declared[name] for name in names], np.empty_like(tumors.target)
    criterion = Entropy(len(CLASSES))
    for fold in range(N_FOLDS):
        test = fold_of_row == fold
        known = [TreeColumn(column.codes[~test], column.n_values) for column in columns]
        statistics = criterion.statistics(tumors.target[~test])
        tree = prune(collapse(grow(known, statistics, criterion), criterion), known, statistics)
        counts = of_nodes_with_rows(tree)
        reached = shares_of_leaves(tree, [TreeColumn(column.codes[test], column.n_values) for column in columns])
        answers = np.zeros((int(test.sum()), len(CLASSES)))
        shares = (counts / counts.sum(axis=1, keepdims=True))[reached.nodes] * reached.shares[:, None]
        np.add.at(answers, reached.rows, shares)
        predicted[test] = first_of_most(answers)
    return predicted


def _by_declared_bayes(tumors: Tumors, names: Sequence[str], fold_of_row: Codes, seed: int) -> Codes:
    scores = NaiveBayesScores([tumors.declared[name] for name in names], tumors.target, fold_of_row)
    return np.asarray(scores.log_posteriors(range(len(names))).argmax(axis=1))


LEARNERS: dict[str, Classify] = {TREE: _by_tree, BAYES: _by_bayes, FOREST: _by_forest, KSTAR: _by_kstar}
WEKA_LEARNERS: dict[str, Classify] = {
    TREE: _by_declared_tree,
    BAYES: _by_declared_bayes,
    FOREST: _by_forest,
    KSTAR: _by_kstar,
}
"""With the values that Table III was made with; see ``Tumors.declared``."""
