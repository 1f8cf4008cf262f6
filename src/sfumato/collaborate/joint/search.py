r"""One k-anonymous recoding of all parties' rows together, found without anybody seeing a count.

The search goes from above. It begins with one class, in which every cell is ``*``. In each class it divides the feature
that takes away most of the certainty penalty, among those whose values in the class have no rows or at least k, and
goes on with the parts until no feature of a class can be divided. A class is divided by itself, so that labels of
several levels stand in a column (local recoding).

What a division takes away is :math:`\sum_v n_v (p - p_v)` with the penalty p of the label and those of its parts: a sum
of secret counts with public factors. The parties compute it on shared secrets
(:mod:`sfumato.collaborate.shared_arithmetic`) together with the truth of :math:`n_v = 0 \vee n_v \ge k` for all v.

Notes
-----
*What is opened.* Whether all parties have more rows than ``max_rows``, whether they have fewer than k (then nothing
else), of every class which feature is divided next, or that none can be, and which parts of a division have no rows. No
count and no score is opened. The classes that were divided are unions of those that are left, and a part without rows
is one that the released table does not have, so these follow from the table; that a class was left whole, and that one
feature was taken before another, is what anybody can work out who knows the table and this search.

*Against whom.* As in :mod:`sfumato.collaborate.selection_only`: parties that follow the protocol, of which fewer than
half pool what they see.

*How exact.* Penalties are rounded to multiples of 2^-20; the search over the rows of all parties in one place makes the
same choices.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.collaborate.joint.generalization import GeneralizedColumn, Node, digest_of
from sfumato.collaborate.mpyc_channel import SECURITY_BITS, Accuse, ChannelRuntime, compute_together, is_prime
from sfumato.collaborate.shared_arithmetic import Residues, SharedArithmetic
from sfumato.collaborate.transport.channel import Channel
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError

Places = NDArray[np.intp]
Numbers = NDArray[np.int64]

STAGE = "joint k"
PENALTY_BITS = 20
MOST_CELLS = 4000
"""Parts of classes that are asked about at once."""


@dataclass(frozen=True)
class ClassOfRows:
    """A node of every feature, and which of this party's rows are in all of them."""

    nodes: tuple[Node, ...]
    rows: Places

    def divided(self, feature: int, places: Places) -> Iterator[ClassOfRows]:
        """Divide by a feature, given the place of every row's value."""
        own = places[self.rows]
        for child in self.nodes[feature].children:
            nodes = (*self.nodes[:feature], child, *self.nodes[feature + 1 :])
            yield ClassOfRows(nodes, self.rows[np.isin(own, child.places)])


@dataclass(frozen=True)
class Question:
    """Which feature of each of some classes to divide: cells are the parts into which one would be divided.

    Parameters
    ----------
    counts : array
        Of this party's rows in every cell; secret.
    pairs : array
        Pair of a class and a feature that a cell belongs to.
    factors : array
        Penalty that a row of the cell would lose, in multiples of 2^-20.
    class_of_pair, feature_of_pair : array
    """

    counts: Numbers
    pairs: Places
    factors: Numbers
    class_of_pair: Places
    feature_of_pair: Places
    n_classes: int

    @classmethod
    def of(
        cls, classes: Sequence[ClassOfRows], columns: Sequence[GeneralizedColumn], places: Sequence[Places]
    ) -> Question:
        """Count the parts of some classes."""
        counts: list[int] = []
        pairs: list[int] = []
        factors: list[int] = []
        owners: list[tuple[int, int]] = []
        for number, one in enumerate(classes):
            for feature, (node, column) in enumerate(zip(one.nodes, columns, strict=True)):
                if not node.children:
                    continue
                own = np.bincount(places[feature][one.rows], minlength=column.column.n_values)
                for child in node.children:
                    counts.append(int(own[list(child.places)].sum()))
                    pairs.append(len(owners))
                    factors.append(round((column.penalty(node) - column.penalty(child)) * 2**PENALTY_BITS))
                owners.append((number, feature))
        of_class, of_feature = np.array(owners, dtype=np.intp).reshape(-1, 2).T
        whole = np.array(counts, dtype=np.int64), np.array(pairs, dtype=np.intp), np.array(factors, dtype=np.int64)
        return cls(*whole, of_class, of_feature, len(classes))

    def cells_of(self, chosen: Sequence[int]) -> list[list[int]]:
        """Cells of the feature that is to be divided in each class; none where it is to be left whole."""
        pair = {
            (number, feature + 1): place
            for place, (number, feature) in enumerate(
                zip(self.class_of_pair.tolist(), self.feature_of_pair.tolist(), strict=True)
            )
        }
        ends = np.searchsorted(self.pairs, np.arange(len(self.class_of_pair) + 1)).tolist()
        return [
            list(range(ends[pair[number, feature]], ends[pair[number, feature] + 1])) if feature else []
            for number, feature in enumerate(chosen)
        ]


class Choice(NamedTuple):
    """Number of the feature to divide, from 1, or 0 for none, and which of its parts have rows in the union."""

    feature: int
    has_rows: Sequence[bool]


class TopDown:
    """The search: asks which features of some classes to divide, and divides them as it is told to."""

    def __init__(self, columns: Sequence[GeneralizedColumn], places: Sequence[Places], n_rows: int) -> None:
        self._columns, self._places = columns, places
        self._waiting = [ClassOfRows(tuple(column.root for column in columns), np.arange(n_rows))]
        self._asked: list[ClassOfRows] = []
        self.found: list[ClassOfRows] = []

    def question(self) -> Question | None:
        """Ask about as many classes as may be asked about at once, at least one; None if there are no more."""
        if not self._waiting:
            return None
        n_cells = np.cumsum([sum(len(node.children) for node in one.nodes) for one in self._waiting])
        n = max(1, int(np.searchsorted(n_cells, MOST_CELLS, side="right")))
        self._asked, self._waiting = self._waiting[:n], self._waiting[n:]
        return Question.of(self._asked, self._columns, self._places)

    def divide(self, choices: Sequence[Choice]) -> None:
        """Divide the classes that were asked about; a class of which no feature can be divided is one that is left."""
        for one, choice in zip(self._asked, choices, strict=True):
            if not choice.feature:
                self.found.append(one)
                continue
            parts = one.divided(choice.feature - 1, self._places[choice.feature - 1])
            self._waiting.extend(part for part, has_rows in zip(parts, choice.has_rows, strict=True) if has_rows)


def choices_of(question: Question, k: int) -> list[Choice]:
    """Choose from counts that are seen, as :func:`divide_together` chooses from secret ones; ties to the first."""
    is_small = (question.counts > 0) & (question.counts < k)
    scores = np.zeros(len(question.class_of_pair), dtype=np.int64)
    np.add.at(scores, question.pairs, question.counts * question.factors)
    scores[question.pairs[is_small]] = 0
    best, chosen = np.zeros(question.n_classes, dtype=np.int64), [0] * question.n_classes
    for score, number, feature in zip(scores, question.class_of_pair, question.feature_of_pair, strict=True):
        if score > best[number]:
            best[number], chosen[number] = score, int(feature) + 1
    cells = question.cells_of(chosen)
    return [Choice(one, [bool(question.counts[cell]) for cell in of]) for one, of in zip(chosen, cells, strict=True)]


def divide_pooled(columns: Sequence[GeneralizedColumn], places: Sequence[Places], k: int) -> list[ClassOfRows]:
    """Divide rows that are all in one place: what the parties come to, for comparison."""
    search = TopDown(columns, places, len(places[0]))
    while question := search.question():
        search.divide(choices_of(question, k))
    return search.found


@dataclass(frozen=True)
class JointTask:
    """All that is public, the same for all parties.

    Parameters
    ----------
    k : int
        Rows that every class of the union must have.
    max_rows : int
        At least the number of all parties' rows together.
    """

    columns: tuple[GeneralizedColumn, ...]
    k: int
    max_rows: int

    def __post_init__(self) -> None:
        for name, number, least in (("k", self.k, 2), ("max_rows", self.max_rows, 1)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise InvalidParameterError(name, f"got {number!r}", allowed=f"a whole number of at least {least}")

    @property
    def count_bits(self) -> int:
        """Bits of differences of counts, the sign included; also of numbers of parts."""
        most_parts = max(len(node.children) for column in self.columns for node in column.root.below())
        return max(self.max_rows + self.k, most_parts).bit_length() + 2

    @property
    def n_bits(self) -> int:
        """Bits of differences of scores, the sign included."""
        return self.count_bits + PENALTY_BITS

    @cached_property
    def modulus(self) -> int:
        """Prime p with enough bits for masks, and p % 4 = 3 as MPyC wants it."""
        candidate = (1 << self.n_bits + SECURITY_BITS + 2) + 3
        while not is_prime(candidate):
            candidate += 4
        return candidate

    @property
    def as_bytes(self) -> bytes:
        """All of it, for the parties to compare."""
        parameters = [digest_of(self.columns), self.k, self.max_rows, self.modulus]
        return b"sfumato joint k 1 " + json.dumps(parameters).encode()


def divide_together(
    channel: Channel,
    me: str,
    roster: Sequence[str],
    task: JointTask,
    places: Sequence[Places],
    *,
    timeout: float = 60.0,
    accuse: Accuse | None = None,
) -> list[ClassOfRows]:
    """Find the classes together with all other parties, who call this at the same time.

    Parameters
    ----------
    places : sequence of array
        Of each feature, the place of every own row's value in the shared column.

    Returns
    -------
    list of ClassOfRows
        Classes in an order that all parties share, each with this party's own rows. In the union every class has at
        least k.

    Raises
    ------
    PrivacyNotAchievableError
        If all parties together have fewer than k rows.
    InvalidParameterError
        If they have more than ``max_rows``.
    CollaborationError
        If a party has other public parameters, is silent, or does not keep to the protocol.
    """
    divide = partial(_divide, task=task, places=places)
    return compute_together(
        channel, me, roster, divide, agreed=task.as_bytes, timeout=timeout, accuse=accuse, stage=STAGE
    )


async def _divide(runtime: ChannelRuntime, *, task: JointTask, places: Sequence[Places]) -> list[ClassOfRows]:
    shared = SharedArithmetic(runtime, task.n_bits, task.modulus)
    n_rows = len(places[0])
    await _check_rows(shared, task, n_rows)
    search = TopDown(task.columns, places, n_rows)
    while question := search.question():
        search.divide(await _chosen(shared, task, question))
    return search.found


async def _check_rows(shared: SharedArithmetic, task: JointTask, n_own: int) -> None:
    """Open whether there are too many rows, or too few, and nothing else of their number."""
    if n_own > task.max_rows:
        raise _too_many_rows()
    n_rows = (await shared.inputs(np.array([n_own], dtype=object))).sum(axis=0)
    signs = await shared.is_negative(np.concatenate([task.max_rows - n_rows, n_rows - task.k]))
    is_above, is_below = await shared.opened(signs)
    if is_above:
        raise _too_many_rows()
    if is_below:
        promise = f"classes of k = {task.k} rows in all parties' tables together"
        raise PrivacyNotAchievableError(promise, best_level=None, hint="all parties together have fewer rows")


def _too_many_rows() -> InvalidParameterError:
    return InvalidParameterError("max_rows", "got fewer", allowed="at least the number of all parties' rows together")


async def _chosen(shared: SharedArithmetic, task: JointTask, question: Question) -> list[Choice]:
    """Open of each class which feature to divide, and which of its parts have rows."""
    n_pairs, n_classes = len(question.class_of_pair), question.n_classes
    if not n_pairs:
        return [Choice(0, ())] * n_classes
    counts = (await shared.inputs(question.counts.astype(object))).sum(axis=0)
    signs = await shared.is_negative(np.concatenate([counts - task.k, counts - 1]), n_bits=task.count_bits)
    is_below, is_none = np.split(signs, 2)
    n_small, scores = np.zeros(n_pairs, dtype=object), np.zeros(n_pairs, dtype=object)
    np.add.at(n_small, question.pairs, is_below - is_none)
    np.add.at(scores, question.pairs, counts * question.factors.astype(object))
    scores = await shared.reshared(await shared.is_negative(n_small - 1, n_bits=task.count_bits) * scores)
    known, columns = np.unique(question.feature_of_pair, return_inverse=True)
    best = np.zeros((n_classes, len(known)), dtype=object)
    best[question.class_of_pair, columns] = scores
    chosen = await _first_of_largest(shared, best, known + 1)
    features = await shared.opened(chosen)
    cells = question.cells_of(features)
    wanted = [cell for of in cells for cell in of]
    are_none = dict(zip(wanted, await shared.opened(is_none[wanted]) if wanted else (), strict=True))
    return [Choice(one, [not are_none[cell] for cell in of]) for one, of in zip(features, cells, strict=True)]


async def _first_of_largest(shared: SharedArithmetic, scores: Residues, numbers: Places) -> Residues:
    """Of each row the number of the column with the largest score, 0 if that is 0; columns compete in pairs."""
    best, chosen = scores, np.tile(numbers.astype(object), (len(scores), 1))
    while best.shape[1] > 1:
        n = best.shape[1] // 2
        left, right = (np.stack([matrix[:, side : 2 * n : 2] for matrix in (best, chosen)]) for side in (0, 1))
        is_better = (await shared.is_negative((left[0] - right[0]).ravel())).reshape(left[0].shape)
        won = left + (await shared.reshared((is_better * (right - left)).ravel())).reshape(left.shape)
        best, chosen = (np.hstack([won[i], rest[:, 2 * n :]]) for i, rest in enumerate((best, chosen)))
    return await shared.reshared(await shared.is_negative(-best[:, 0]) * chosen[:, 0])
