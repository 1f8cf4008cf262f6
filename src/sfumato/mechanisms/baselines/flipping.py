"""Random flipping to k-anonymity: every row becomes equal to at least k - 1 others by changing bits of a few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.bitsets import distinct_rows, ones_by_class
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import KAnonymity
from sfumato.guarantees.forms import NOTHING
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.manifest_schema import PLAN_OR_NOTHING
from sfumato.measures.anonymity import anonymity_level
from sfumato.measures.separation import hamming_separation
from sfumato.mechanisms.base import Compared, Mechanism, MechanismInfo, Release
from sfumato.mechanisms.baselines.features import as_plan
from sfumato.mechanisms.estimator import Estimator
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.table.binarize import BinarizePlan, binarize
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table

# Distinct binary rows, and how many bits they add to those on which a cluster disagrees.
#
# A row with the bits x adds ``|x - union| + |common - x|`` disagreeing bits to a cluster whose members all have the
# bits ``common`` and any of which has those of ``union``. With one pattern for both this is the Hamming distance to
# it.


Bits = NDArray[Any]
"""Bits of a pattern, as the patterns that it is one of hold them."""
Added = NDArray[np.int32]
MOST_ADDED = np.iinfo(np.int32).max

_WORD = 64
_WORDS_AS_FAST_AS_ONES = 4
"""Ones of a sparse row in whose time a word of a packed one is compared, at least."""


@dataclass(slots=True)
class Cluster:
    """Which patterns a cluster holds and how often, the bits that all its members have, and those that any has."""

    members: list[tuple[int, int]]
    common: Bits
    union: Bits


class Patterns(Protocol):
    """Distinct rows, in their order."""

    def bits(self, pattern: int) -> Bits:
        """Bits of a pattern."""

    def keep(self, chosen: NDArray[np.intp]) -> Patterns:
        """Take some of them."""

    def in_both(self, one: Bits, other: Bits) -> Bits:
        """Bits that both have."""

    def in_any(self, one: Bits, other: Bits) -> Bits:
        """Bits that one or both have."""

    def added(self, common: Bits, union: Bits) -> Added:
        """Disagreeing bits that each pattern would add to a cluster."""

    def added_to(self, clusters: Sequence[Cluster], bits: Bits) -> Added:
        """Disagreeing bits that a pattern would add to each of some clusters."""


def patterns_of(rows: sp.csr_matrix) -> Patterns:
    """Pack the bits of distinct rows into words, or leave them sparse where they have few ones among many bits.

    Examples
    --------
    >>> patterns = patterns_of(sp.csr_matrix([[1, 1, 0], [0, 1, 1]]))
    >>> first = patterns.bits(0)
    >>> patterns.added(first, first).tolist()
    [0, 2]
    """
    n_words = -(-rows.shape[1] // _WORD)
    ones_of_a_row = rows.nnz / max(rows.shape[0], 1)
    if n_words <= max(1.0, ones_of_a_row / _WORDS_AS_FAST_AS_ONES):
        return PackedPatterns.of(rows)
    return SparsePatterns(rows)


def ones_of(rows: sp.csr_matrix, row: int) -> NDArray[np.int32]:
    """Places of the ones of a row."""
    found: NDArray[np.int32] = rows.indices[rows.indptr[row] : rows.indptr[row + 1]]
    return found


@dataclass(frozen=True, eq=False, repr=False)
class PackedPatterns:
    """Patterns as rows of 64-bit words."""

    words: NDArray[np.uint64]

    @classmethod
    def of(cls, rows: sp.csr_matrix) -> PackedPatterns:
        """Pack sparse rows."""
        n_words = max(1, -(-rows.shape[1] // _WORD))
        words = np.zeros((rows.shape[0], n_words), dtype=np.uint64)
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        bit = np.left_shift(np.uint64(1), (rows.indices % _WORD).astype(np.uint64))
        np.bitwise_or.at(words, (row, rows.indices // _WORD), bit)
        return cls(words)

    def bits(self, pattern: int) -> Bits:
        """Words of a pattern."""
        found: Bits = self.words[pattern]
        return found

    def keep(self, chosen: NDArray[np.intp]) -> PackedPatterns:
        """Take some of them."""
        return PackedPatterns(self.words[chosen])

    def in_both(self, one: Bits, other: Bits) -> Bits:
        """Bits that both have."""
        return one & other

    def in_any(self, one: Bits, other: Bits) -> Bits:
        """Bits that one or both have."""
        return one | other

    def added(self, common: Bits, union: Bits) -> Added:
        """Disagreeing bits that each pattern would add to a cluster."""
        return _n_ones((self.words ^ common) & ~(union ^ common))

    def added_to(self, clusters: Sequence[Cluster], bits: Bits) -> Added:
        """Disagreeing bits that a pattern would add to each of some clusters."""
        common, union = np.array([c.common for c in clusters]), np.array([c.union for c in clusters])
        return _n_ones((bits ^ common) & ~(union ^ common))


def _n_ones(words: NDArray[np.uint64]) -> Added:
    counts = np.bitwise_count(words)
    return counts[:, 0].astype(np.int32) if words.shape[1] == 1 else counts.sum(axis=1, dtype=np.int32)


class SparsePatterns:
    """Patterns as the places of their ones.

    With a weight of 1 for the bits of the union and 2 for the common ones, a row x adds ``|x| + |common| - weight of
    x`` bits.
    """

    def __init__(self, rows: sp.csr_matrix) -> None:
        self._rows, self._sizes = rows, np.diff(rows.indptr)

    def bits(self, pattern: int) -> Bits:
        """Places of the ones of a pattern."""
        return ones_of(self._rows, pattern)

    def keep(self, chosen: NDArray[np.intp]) -> SparsePatterns:
        """Take some of them."""
        return SparsePatterns(self._rows[chosen])

    def in_both(self, one: Bits, other: Bits) -> Bits:
        """Bits that both have."""
        return np.intersect1d(one, other, assume_unique=True)

    def in_any(self, one: Bits, other: Bits) -> Bits:
        """Bits that one or both have."""
        return np.union1d(one, other)

    def added(self, common: Bits, union: Bits) -> Added:
        """Disagreeing bits that each pattern would add to a cluster."""
        weights = np.zeros(self._rows.shape[1], dtype=np.int32)
        weights[union] = 1
        weights[common] = 2
        return np.asarray(self._sizes + np.int32(len(common)) - self._rows @ weights, dtype=np.int32)

    def added_to(self, clusters: Sequence[Cluster], bits: Bits) -> Added:
        """Disagreeing bits that a pattern would add to each of some clusters."""
        has = np.zeros(self._rows.shape[1], dtype=np.bool_)
        has[bits] = True
        added = [len(bits) - has[c.union].sum() + len(c.common) - has[c.common].sum() for c in clusters]
        return np.array(added, dtype=np.int32)


# Greedy k-member clustering of binary rows: groups of at least k rows that agree on as many bits as possible.


_REPORT_EVERY = 256


def k_member_clusters(
    matrix: sp.csc_matrix,
    k: int,
    rng: np.random.Generator,
    *,
    keep_frequent: bool = False,
    progress: Progress | None = None,
) -> NDArray[np.intp]:
    """Put every row into a cluster of at least k rows, greedily keeping the bits few on which a cluster disagrees.

    The greedy k-member algorithm of [Byun07]_ with Hamming distance, and as the information loss of a cluster the
    number of bits on which its members disagree. From a row drawn at random, the row farthest from it becomes the
    first seed. A seed takes in, one after the other, the k - 1 rows that add fewest disagreeing bits; the next seed is
    the row farthest from the last one taken. The fewer than k rows left over join the clusters to which they add
    fewest disagreeing bits.

    Parameters
    ----------
    matrix : csc_matrix
        Rows × bits, canonical 0/1, with at least k rows.
    keep_frequent : bool
        Whether rows that equal k - 1 others already are clusters of their own from the start, which is not in
        [Byun07]_: there, those that are left over when equal rows have been taken k by k end up among strangers.

    Returns
    -------
    array of int
        Cluster of each row, numbered from 0 in the order in which the clusters were made.

    Notes
    -----
    Equal rows are handled together, so the time is O(distinct rows × ones of the distinct rows) at worst, less when
    rows repeat: the row farthest from another one stays so until all its equals are taken. Distinct rows are looked at
    in the order of their bits, whatever the order of the rows.

    **Deviations.** [Byun07]_ does not say how ties are broken: a row equal to the one taken last goes first, then the
    row that comes first by its bits. It takes the leftover rows in random order; here they come in the order of their
    bits.
    """
    patterns, counts, inverse = _sorted_patterns(matrix)
    search = _Search(patterns, counts, k)
    if keep_frequent:
        search.keep_frequent()
    n_left = int(search.left.sum())
    last = int(np.searchsorted(np.cumsum(search.left), rng.integers(max(n_left, 1)), side="right"))
    n_clusters = n_left // k
    for made in range(n_clusters):
        last = search.grow(search.farthest_from(last))
        if progress and made % _REPORT_EVERY == 0:
            progress(made, n_clusters, "clusters made")
    search.place_leftovers()
    # where equal rows went to several clusters, earlier rows go to earlier clusters
    taken = sorted((pattern, number, n) for number, c in enumerate(search.clusters) for pattern, n in c.members)
    of_row = np.empty(len(inverse), dtype=np.intp)
    of_row[np.argsort(inverse, kind="stable")] = np.repeat([at for _, at, _ in taken], [n for _, _, n in taken])
    return of_row


def _sorted_patterns(matrix: sp.csc_matrix) -> tuple[sp.csr_matrix, NDArray[np.int64], NDArray[np.intp]]:
    """Distinct rows ordered by their ones, how often each occurs, and which one each row is."""
    distinct = distinct_rows(matrix)
    patterns = sp.csr_matrix(matrix, dtype=np.int32)[distinct.representatives]
    patterns.sort_indices()
    order = np.array(sorted(range(patterns.shape[0]), key=lambda i: ones_of(patterns, i).tolist()), dtype=np.intp)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return patterns[order], distinct.counts[order], rank[distinct.inverse]


class _Search:
    """Patterns with the rows that are still in no cluster."""

    def __init__(self, patterns: sp.csr_matrix, counts: NDArray[np.int64], k: int) -> None:
        self.k = k
        self.left = counts.copy()
        self.clusters: list[Cluster] = []
        self._patterns = self._rows = patterns_of(patterns)
        self._alive = np.arange(len(counts))
        self._is_used, self._n_used = np.zeros(len(counts), dtype=np.bool_), 0
        self._farthest: dict[int, int] = {}

    def keep_frequent(self) -> None:
        """Make a cluster of every pattern with at least k rows."""
        for pattern in np.flatnonzero(self.left >= self.k).tolist():
            bits = self._patterns.bits(pattern)
            self.clusters.append(Cluster([], bits, bits))
            self._put(self.clusters[-1], pattern, int(self.left[pattern]))

    def farthest_from(self, pattern: int) -> int:
        """Pattern with rows left that is farthest from a pattern in Hamming distance; the first of equals.

        It stays the farthest until it has no rows left, for the others only become fewer.
        """
        found = self._farthest.get(pattern)
        if found is None or not self.left[found]:
            if 2 * self._n_used >= len(self._alive):  # look no longer at patterns without rows
                self._alive = self._alive[~self._is_used]
                self._is_used, self._n_used = np.zeros(len(self._alive), dtype=np.bool_), 0
                self._rows = self._patterns.keep(self._alive)
            bits = self._patterns.bits(pattern)
            distance = self._rows.added(bits, bits)
            distance[self._is_used] = -1
            found = self._farthest[pattern] = int(self._alive[np.argmax(distance)])
        return found

    def grow(self, seed: int) -> int:
        """Make a cluster of k rows around a pattern; returns the pattern that was taken last."""
        bits = self._patterns.bits(seed)
        cluster = Cluster([], bits, bits)
        chosen, n_rows = seed, 0
        while True:
            n_taken = min(self.k - n_rows, int(self.left[chosen]))
            self._put(cluster, chosen, n_taken)
            n_rows += n_taken
            if n_rows == self.k:
                self.clusters.append(cluster)
                return chosen
            added = self._rows.added(cluster.common, cluster.union)
            added[self._is_used] = MOST_ADDED
            chosen = int(self._alive[np.argmin(added)])

    def place_leftovers(self) -> None:
        """Let each remaining row join the cluster to which it adds fewest disagreeing bits; the first of equals."""
        for pattern in np.flatnonzero(self.left).tolist():
            added = self._patterns.added_to(self.clusters, self._patterns.bits(pattern))
            self._put(self.clusters[int(np.argmin(added))], pattern, int(self.left[pattern]))

    def _put(self, cluster: Cluster, pattern: int, n: int) -> None:
        if cluster.members:
            bits = self._patterns.bits(pattern)
            cluster.common = self._patterns.in_both(cluster.common, bits)
            cluster.union = self._patterns.in_any(cluster.union, bits)
        cluster.members.append((pattern, n))
        self.left[pattern] -= n
        if not self.left[pattern]:
            self._is_used[np.searchsorted(self._alive, pattern)] = True
            self._n_used += 1


def flip_to_clusters(
    matrix: sp.csc_matrix,
    k: int,
    rng: np.random.Generator,
    *,
    keep_frequent: bool = False,
    progress: Progress | None = None,
) -> sp.csc_matrix:
    """Make all rows of every cluster of a greedy k-member clustering equal.

    A bit on which the members of a cluster disagree takes the value of one member, drawn anew for every bit: 1 with
    the probability that a member has it. For the clusters see
    :func:`k_member_clusters`.
    """
    of_row = k_member_clusters(matrix, k, rng, keep_frequent=keep_frequent, progress=progress)
    n_rows = matrix.shape[0]
    belongs = sp.csr_matrix((np.ones(n_rows, dtype=np.int64), (of_row, np.arange(n_rows))))
    ones = sp.csr_matrix(belongs @ matrix.astype(np.int64))  # clusters × bits: members that have the bit
    ones.sort_indices()
    sizes = np.repeat(np.bincount(of_row), np.diff(ones.indptr))
    becomes_one = rng.integers(sizes) < ones.data  # always, where all members have it
    patterns = sp.csr_matrix((becomes_one.astype(np.uint8), ones.indices, ones.indptr), shape=ones.shape)
    patterns.eliminate_zeros()
    released = sp.csc_matrix(patterns[of_row])
    released.sort_indices()
    return released


class RandomFlipper(Mechanism, Estimator):
    """Flip bits until every row is equal to at least k - 1 others on all features.

    The baseline RF of [kAC17]_: the rows are put into clusters of at least k by the greedy k-member algorithm of
    [Byun07]_ with Hamming distance, and a bit on which a cluster disagrees takes the value of a member drawn at random.
    All features and rows are kept, in their order; other columns travel along unchanged.

    Parameters
    ----------
    k : int, default=5
        Every row shares the values of all features with at least k - 1 others.
    random_state : int or None
        Seed of the first row and of the drawn members. The promise does not rest on it being secret, but whoever knows
        it can confirm a guess of the original, so it does not stand in the manifest; keep it to yourself. ``None``
        takes the key of the release, or the system's random numbers.
    keep_frequent : bool, default=False
        Whether rows that equal k - 1 others already are left alone: fewer cells are flipped, but it is not the
        paper's baseline. On Adult at k = 5, 8, 11: 0.33, 0.59, 0.81 % of the cells instead of 0.54, 0.82, 1.11 %.
    binarize : BinarizePlan, mapping or None
        How a mixed table becomes binary features.

    Attributes
    ----------
    flipped_fraction_ : float
        Fraction of the cells (rows × features) that were changed.

    Notes
    -----
    Time O(distinct rows × ones of the distinct rows) at worst: Adult (32,561 × 19) and PU1 (1,099 × 24,604) take well
    under a second.

    **Deviations.** [kAC17]_ says only that clustering is used and bits are flipped at random; the member is drawn for
    every bit apart. Features that exclude each other (bands of one column) are flipped one by one, so a released row
    may have two bands of one column or none. The class has no part in the clustering.

    References
    ----------
    .. [kAC17] Zhang, Mohammed, Dave, Al Hasan: Feature Selection for Classification under Anonymity Constraint.
       Transactions on Data Privacy 10 (2017) 1-25.
    .. [Byun07] Byun, Kamra, Bertino, Li: Efficient k-Anonymization Using Clustering Techniques. DASFAA 2007.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> flipper = RandomFlipper(k=3, random_state=0)
    >>> flipper.release(toy_containment_table()).manifest.perturbation
    {'kind': 'flipped', 'n_cells_changed': 6}
    """

    mechanism_name: ClassVar[str] = "random-flipping"
    hides_choices: ClassVar[bool] = True
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": ParameterSpec("every row equals at least k - 1 others on all features", at_least=2),
        "random_state": ParameterSpec(
            "secret seed of the flipping (default: the release's key, or random numbers)", stated=NOTHING
        ),
        "keep_frequent": ParameterSpec("do not change rows that already equal k - 1 others"),
        "binarize": ParameterSpec(
            "rules that turn mixed columns into binary features ([binarize] in the project)", stated=PLAN_OR_NOTHING
        ),
    }

    def __init__(
        self,
        k: int = 5,
        random_state: int | None = None,
        keep_frequent: bool = False,
        binarize: BinarizePlan | Mapping[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.random_state = random_state
        self.keep_frequent = keep_frequent
        self.binarize = binarize

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Flip the binary features of a table and describe the result.

        Raises
        ------
        PrivacyNotAchievableError
            If the table has fewer than k rows.
        """
        plan = as_plan(self.binarize)
        binary = binarize(table, plan) if isinstance(table, Table) else table
        self._check(binary)
        rng = self.hidden_rng(self.random_state)
        flipped = flip_to_clusters(binary.matrix, int(self.k), rng, keep_frequent=self.keep_frequent, progress=progress)
        n_changed = int((flipped != binary.matrix).nnz)
        self.flipped_fraction_ = n_changed / (binary.n_rows * len(binary.features))
        released = replace(binary, matrix=flipped)
        manifest = draft_manifest(
            table,
            released,
            mechanism=self.mechanism_name,
            parameters=self.get_params(deep=False)
            | {"k": int(self.k), "random_state": None, "binarize": plan.to_dict() if plan else None},
            guarantees=[KAnonymity(int(self.k), released.feature_names)],
            evidence={
                "utility": self._utility(binary, released),
                "risk": {"anonymity_level": anonymity_level(distinct_rows(released.matrix).counts)},
            },
        )
        changed = {"kind": "flipped", "n_cells_changed": n_changed}
        return Release(released, replace(manifest, perturbation=changed))

    def _check(self, binary: BinaryTable) -> None:
        self.check_parameters("k")
        seed = self.random_state
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63):
            raise InvalidParameterError("random_state", f"got {seed!r}", allowed="a whole number from 0, or None")
        if not isinstance(self.keep_frequent, bool):
            raise InvalidParameterError("keep_frequent", f"got {self.keep_frequent!r}", allowed="true or false")
        if self.k > binary.n_rows:
            raise PrivacyNotAchievableError(
                f"k-anonymity with k = {self.k} on {binary.n_rows:,} rows",
                best_level=binary.n_rows,
                hint="k is at most the row count",
            )
        if not binary.features:
            problem = "the table has no binary feature to release"
            raise SchemaError(problem, hint="give a column the role quasi-identifier, or change the binarization")

    def _utility(self, before: BinaryTable, after: BinaryTable) -> dict[str, Any]:
        found = {
            "n_features_released": len(after.features),
            "flipped_fraction": self.flipped_fraction_,
        }
        if before.companions.schema.target is None:
            return found
        return found | {
            "hamming_separation": _separation(after),
            "hamming_separation_before_flipping": _separation(before),
        }


def _separation(table: BinaryTable) -> float:
    target = table.target()
    return hamming_separation(ones_by_class(table.matrix, target.codes, target.n_distinct), target.counts)


DECLARATION = MechanismInfo(
    RandomFlipper,
    why="keeps all binary features and all rows, but falsifies cells; for tables with few distinct rows",
    promises="k-anonymity on all features",
    compared=Compared(({"k": 5},)),
    kind_of=lambda _: "perturbation",
    cost=20.0,
)
