"""What all feature selectors under a containment promise share: the scikit-learn contract and the way to a release."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.counting.bitsets import ONES, counted, distinct_rows, ones_by_class, revealing_items, support_of_each
from sfumato.errors import (
    ColumnNotFoundError,
    InvalidParameterError,
    NotBinaryError,
    PrivacyNotAchievableError,
    SchemaError,
)
from sfumato.guarantees import (
    REVEALING,
    ROW,
    Containment,
    Guarantee,
    KAnonymity,
    UniquePatterns,
)
from sfumato.guarantees.forms import word
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.measures.anonymity import anonymity_level, sample_unique_fraction
from sfumato.measures.containment import containment_level
from sfumato.measures.separation import distinguished_pairs, hamming_separation, pairs_separated_by_each
from sfumato.mechanisms.base import Mechanism, Needs, Release, declared_parameter
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import WITHHELD
from sfumato.table.binarize import Binarization, BinarizePlan, binarize
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table
from sfumato.table.persons import PersonCodes, person_codes

# Which columns a fitted selector keeps, as scikit-learn asks for it.


class ChosenColumns(SelectorMixin):  # type: ignore[misc]  # no types upstream
    """A selector that holds the places of its columns in ``selected_columns_``."""

    selected_columns_: NDArray[np.intp]
    n_features_in_: int

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "selected_columns_")
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.selected_columns_] = True
        return mask


@dataclass(frozen=True)
class Labelled:
    """A canonical binary matrix with its classes as codes: what a search works on.

    ``reveals`` says which values of each feature an attacker may know (see ``ProjectedRows``); None: the ones.
    ``target`` and ``source`` are the names that messages use. ``row_counts`` says how many rows each row of the matrix
    stands for; None: one. ``persons`` is the person of each row, by the column ``person``, where some have several: k
    then counts persons. What a feature is worth counts rows in any case.
    """

    matrix: sp.csc_matrix
    classes: NDArray[np.int32]
    n_classes: int
    reveals: NDArray[np.uint8] | None = None
    target: str | None = None
    source: str | None = None
    row_counts: NDArray[np.int64] | None = None
    persons: PersonCodes | None = None
    person: str | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0] if self.row_counts is None else self.row_counts.sum())

    @property
    def class_sizes(self) -> NDArray[np.int64]:
        """Number of rows of every class."""
        return counted(self.classes, self.row_counts, self.n_classes)

    def ones_by_class(self) -> NDArray[np.int64]:
        """Count the ones of every feature in every class (classes × features)."""
        return ones_by_class(self.matrix, self.classes, self.n_classes, self.row_counts)


@dataclass(frozen=True)
class Step:
    """One feature that a search looked at: its gain by the search's criterion, and the verdict."""

    feature: int
    gain: float
    accepted: bool


@dataclass(frozen=True)
class Selection:
    """What a search found: the features, the steps that led there, and how the search ended.

    ``ending`` is plain data for the manifest, such as whether the result is proven best and how far the bound is.
    """

    features: Sequence[int]
    steps: Sequence[Step] = ()
    ending: Mapping[str, Any] = field(default_factory=dict)


def weights_in_separation(data: Labelled) -> NDArray[np.int64]:
    """Pairs of rows of different classes that each feature separates: its weight in HamDist."""
    return pairs_separated_by_each(data.ones_by_class(), data.class_sizes)


class ContainmentSelector(ChosenColumns, Mechanism, BaseEstimator):  # type: ignore[misc]  # no types upstream
    """Base of selectors whose projection must stay k-anonymous by containment.

    A subclass supplies ``_search``. ``fit`` follows scikit-learn and counts rows; ``release`` turns a table into a
    :class:`~sfumato.mechanisms.base.Release`, and counts persons where a column tells them apart and some have several
    rows.
    """

    needs: ClassVar[Needs] = Needs.FEATURE_COUNTS
    counts_persons: ClassVar[bool] = True
    k: int
    binarize: BinarizePlan | Mapping[str, Any] | None
    max_unique_fraction: float | None = None

    @abstractmethod
    def _search(self, data: Labelled, progress: Progress | None) -> Selection:
        """Choose features whose projection keeps k."""

    def _check_parameters(self) -> None:
        self.check_parameters("k")

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the features of a 0/1 matrix (dense, sparse or a data frame) for the classes ``y``."""
        try:
            X, y = validate_data(self, X, y, accept_sparse="csc", dtype="numeric", ensure_min_samples=1)
        except ValueError as exc:
            if "could not convert" not in str(exc):
                raise
            problem = "the features hold text that is not a number"  # the original message quotes the cell
            raise NotBinaryError(problem, hint="binarize the table first (sfumato.binarize)") from None
        check_classification_targets(y)
        matrix = as_binary_matrix(X, getattr(self, "feature_names_in_", None))
        self.classes_, classes = np.unique(y, return_inverse=True)
        names = getattr(self, "feature_names_in_", range(matrix.shape[1]))
        reveals = self._revealing(lambda: [Feature(str(name), str(name)) for name in names])
        self._fit(Labelled(matrix, classes.astype(np.int32), len(self.classes_), reveals), None)
        return self

    def _revealing(self, features: Callable[[], Sequence[Feature]]) -> NDArray[np.uint8] | None:
        """Which values of each feature an attacker may know; a subclass with such a parameter says so."""
        return None

    def _fit(self, data: Labelled, progress: Progress | None) -> None:
        self._check_parameters()
        if data.n_rows and data.n_classes < 2:
            where = "" if data.source is None else f" in {data.source}"
            problem = f"the target has one class only{where}; a selection for classification needs at least two"
            raise SchemaError(problem, column=data.target, hint="choose another target column")
        most = data.n_rows if data.persons is None else len(np.unique(data.persons))
        if self.k > most:
            rows, count = ("rows", "row count") if data.persons is None else ("persons", "number of persons")
            raise PrivacyNotAchievableError(
                f"containment with k = {self.k} on {most:,} {rows}", best_level=most, hint=f"k is at most the {count}"
            )
        self.n_features_in_ = data.matrix.shape[1]
        found = self._search(data, progress)
        self.trace_ = list(found.steps)
        self.search_ = dict(found.ending)
        self.selected_columns_ = np.array(sorted(found.features), dtype=np.intp)
        self.containment_level_ = self._level(data)
        self._check_unique_fraction(data)

    def _level(self, data: Labelled) -> int:
        """Measure the promised level on the selected features."""
        chosen = data.matrix[:, self.selected_columns_]
        if data.reveals is not None:
            chosen = revealing_items(chosen, data.reveals[self.selected_columns_])
        return containment_level(chosen, data.row_counts, data.persons)

    def _check_unique_fraction(self, data: Labelled) -> None:
        if self.max_unique_fraction is None:
            return
        found = sample_unique_fraction(distinct_rows(data.matrix[:, self.selected_columns_], data.row_counts).counts)
        if found > self.max_unique_fraction:
            promise = UniquePatterns(self.max_unique_fraction, tuple(map(str, self.selected_columns_)))
            raise PrivacyNotAchievableError(
                promise.describe(),
                best_level=found,
                hint="allow more, raise k, or use greedy-containment",
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Select the binary features of a table and describe the result.

        Raises
        ------
        PrivacyNotAchievableError
            If no feature can be released at this k.
        """
        if isinstance(table, Table):
            table.schema.check_quasi_identifiers("to make features of")
        if isinstance(table, Table):
            binary = binarize(table, self._plan())
        else:  # columns beside the features that name people are left out
            schema = table.companions.schema
            kept = [c.name for c in schema if c.role not in WITHHELD]
            binary = replace(table, companions=table.companions.keep(kept)) if len(kept) < len(schema) else table
        return self._released(table, binary, progress, persons=person_codes(table))

    def binarization(self, outline: Table) -> Binarization:
        """Say what becomes of the columns of a large table; rows that are equal in it and in the target are alike."""
        return Binarization.of(outline, self._plan())

    def release_patterns(
        self,
        outline: Table,
        patterns: BinaryTable,
        *,
        offered: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Release the distinct rows of a large table as :meth:`release` does all rows; the table holds those.

        ``offered`` are the features to choose from where the patterns of all do not fit in memory; the manifest then
        says so, and calls nothing the best.
        """
        found = self._released(outline, patterns, progress, offered)
        return replace(found, table=found.table.to_table()) if isinstance(found.table, BinaryTable) else found

    def _released(
        self,
        table: AnyTable,
        binary: BinaryTable,
        progress: Progress | None,
        offered: Sequence[int] | None = None,
        persons: PersonCodes | None = None,
    ) -> Release:
        data, n_features = self._labelled(binary), len(binary.features)
        data = replace(data, persons=persons, person=table.coded_part.schema.person)
        if offered is not None:
            reveals = None if data.reveals is None else data.reveals[list(offered)]
            data = replace(data, matrix=data.matrix[:, list(offered)], reveals=reveals)
            binary = binary.select(offered)
        self._fit(data, progress)
        if not len(self.selected_columns_):
            raise self._nothing_found(data)
        released = binary.select(self.selected_columns_)
        evidence = self._evidence(data) | ({"search": self.search_} if self.search_ else {})
        if offered is not None:
            evidence = _among_offered(evidence, len(offered), n_features)
        return Release(
            released,
            draft_manifest(
                table,
                released,
                mechanism=self.mechanism_name,
                parameters=self._parameters(),
                guarantees=self._promises(data, released.feature_names),
                evidence=evidence,
            ),
        )

    def _labelled(self, table: BinaryTable) -> Labelled:
        target, source = table.target(), table.source
        return Labelled(
            table.matrix,
            target.codes,
            target.n_distinct,
            self._revealing(lambda: table.features),
            table.companions.schema.target,
            source.name if source else None,
            table.row_counts,
        )

    def _nothing_found(self, data: Labelled) -> PrivacyNotAchievableError:
        """Say what can be had: with a feature that is common enough, another search finds it."""
        best = int(support_of_each(data.matrix, data.row_counts, data.persons).max(initial=0))
        promise = f"a release of at least one of {data.matrix.shape[1]:,} features at k = {self.k}"
        if best >= self.k:
            hint = "the first feature tried breaks k; on_infeasible=skip goes on with the next"
            return PrivacyNotAchievableError(f"{promise} by this search", best_level=None, hint=hint)
        return PrivacyNotAchievableError(promise, best_level=best, hint="lower k, or binarize into broader bands")

    def _promises(self, data: Labelled, names: tuple[str, ...]) -> list[Guarantee]:
        """Name what holds: values revealing both ways everywhere make containment ordinary k-anonymity.

        Where persons are counted, the promise by rows follows, and stays beside it: a release alone can confirm it.
        """
        k = int(self.k)
        codes = np.full(len(names), ONES) if data.reveals is None else data.reveals[self.selected_columns_]
        words = tuple(REVEALING[code - 1] for code in codes.tolist())
        reveals = () if set(words) == {"ones"} else words
        is_equality = set(words) == {"both"}
        promised: list[Guarantee] = [KAnonymity(k, names) if is_equality else Containment(k, names, reveals)]
        if data.persons is not None:
            promised.append(replace(promised[0], unit=data.person or ROW))
        if self.max_unique_fraction is not None:
            promised.append(UniquePatterns(self.max_unique_fraction, names))
        return promised

    def _evidence(self, data: Labelled) -> dict[str, Any]:
        """Compute the utility kept (beside what all features have) and the risk left."""
        sizes = data.class_sizes
        chosen = self.selected_columns_
        level = self.containment_level_
        if data.reveals is not None or data.persons is not None:
            level = containment_level(data.matrix[:, chosen], data.row_counts)
        ones = data.ones_by_class()
        everything = distinct_rows(data.matrix, data.row_counts)
        kept = distinct_rows(data.matrix[:, chosen], data.row_counts)
        return {
            "utility": {
                "n_features_offered": data.matrix.shape[1],
                "n_features_released": len(chosen),
                "hamming_separation": hamming_separation(ones[:, chosen], sizes),
                "hamming_separation_of_all_features": hamming_separation(ones, sizes),
                "distinguished_pairs_fraction": distinguished_pairs(group_classes(kept.inverse, data)),
                "distinguished_pairs_fraction_of_all_features": distinguished_pairs(
                    group_classes(everything.inverse, data)
                ),
            },
            "risk": {
                "containment_level": level,
                "anonymity_level": anonymity_level(kept.counts),
                "unique_pattern_fraction": sample_unique_fraction(kept.counts),
                "unique_pattern_fraction_of_all_features": sample_unique_fraction(everything.counts),
            },
        }

    def _plan(self) -> BinarizePlan | None:
        plan = self.binarize
        return plan if plan is None or isinstance(plan, BinarizePlan) else BinarizePlan.from_dict(plan)

    def _parameters(self) -> dict[str, Any]:
        """Parameters for the manifest; what may name values that were not released is told only to be there."""
        parameters: dict[str, Any] = self.get_params(deep=False)
        if isinstance(parameters.get("reveals"), Mapping):
            parameters["reveals"] = DECLARED_BY_COLUMN
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}
        return plain | {"binarize": AUTOMATIC if self.binarize is None else DECLARED}


AUTOMATIC, DECLARED = "automatic", "declared; see recodings"
BINARIZE = ParameterSpec(
    "rules that turn mixed columns into binary features ([binarize] in the project)", stated=word(AUTOMATIC, DECLARED)
)
DECLARED_BY_COLUMN = "declared; see guarantees"
K = ParameterSpec("any 1-values that an attacker knows match at least k rows", at_least=2)

_ABOUT_ALL_FEATURES = ("bound", "bound_on", "gap", "gap_fraction", "separated_pairs_bound", "n_maximal_sets")
"""What a search states of all features."""


def _among_offered(evidence: Mapping[str, Any], n_offered: int, n_features: int) -> dict[str, Any]:
    """Say that some features only were offered, and nothing of all of them, which were never counted together."""
    parts = {
        heading: {name: value for name, value in figures.items() if not name.endswith("_of_all_features")}
        for heading, figures in evidence.items()
    }
    search = {name: value for name, value in evidence.get("search", {}).items() if name not in _ABOUT_ALL_FEATURES}
    said = (
        f"chosen among the {n_offered:,} most frequent of {n_features:,} features; distinct rows of more features do "
        "not fit in the memory given, and rarer ones may be better"
    )
    method = f"{search['method']}, {said}" if "method" in search else said
    return parts | {"search": search | {"method": method, "proven": False}}


def group_classes(groups: NDArray[np.intp], data: Labelled) -> NDArray[np.int64]:
    """Class counts of every group of rows (groups × classes)."""
    n_groups = int(groups.max(initial=-1)) + 1
    cells = counted(groups * data.n_classes + data.classes, data.row_counts, n_groups * data.n_classes)
    return cells.reshape(n_groups, data.n_classes)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a parameter that is none of the choices."""
    if value not in choices:
        listed = " or ".join(f"'{choice}'" for choice in choices)
        raise InvalidParameterError(name, f"got {value!r}", allowed=listed)


def check_choices(mechanism: Mechanism, *names: str) -> None:
    """Refuse parameters that are none of the choices that the mechanism declares for them."""
    for name in names:
        check_choice(name, getattr(mechanism, name), declared_parameter(type(mechanism), name).choices)


def revealing_codes(reveals: str | Mapping[str, str], features: Sequence[Feature]) -> NDArray[np.uint8]:
    """Code which values of each feature an attacker may know; a mapping may name features or their columns."""
    if isinstance(reveals, str):
        check_choice("reveals", reveals, REVEALING)
        return np.full(len(features), REVEALING.index(reveals) + 1, dtype=np.uint8)
    known = {feature.name for feature in features} | {feature.column for feature in features}
    for name, which in reveals.items():
        if name not in known:
            raise ColumnNotFoundError(name, sorted(known))
        check_choice(f"reveals of '{name}'", which, REVEALING)
    words = [reveals.get(f.name, reveals.get(f.column, "ones")) for f in features]
    return np.array([REVEALING.index(word) + 1 for word in words], dtype=np.uint8)
