"""How the values of a shared schema may be coarsened: trees that all parties know before they look at any row.

A tree is public: it follows from the shared schema and from hierarchy files that all parties have, never from rows.
Numbers, listed or cut into intervals, are halved again and again. Other values have the levels of their hierarchy file;
without one the list of values is halved too, in its order. A missing value is a value of its own below ``*``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sfumato.collaborate.shared_schema import SharedColumn, SharedSchema
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.measures.loss import normalized_certainty_penalty_of_sets
from sfumato.mechanisms.hierarchies.builders import are_finite_numbers
from sfumato.mechanisms.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.schema import Kind


@dataclass(frozen=True)
class Node:
    """A label, the places of the values that it stands for, and what it is divided into.

    ``label`` is ``None`` for a missing value.
    """

    label: str | None
    places: tuple[int, ...]
    children: tuple[Node, ...] = ()

    def below(self) -> Iterator[Node]:
        """Give this node and all below it."""
        yield self
        for child in self.children:
            yield from child.below()


@dataclass(frozen=True)
class GeneralizedColumn:
    """A column of the shared schema with the tree of its labels.

    ``kind`` is the order by which labels are read: that of numbers where they are intervals.
    """

    column: SharedColumn
    root: Node
    kind: Kind

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    def penalty(self, node: Node) -> float:
        """Share of the column's values that a label leaves open, 0 for one value (NCP)."""
        return float(normalized_certainty_penalty_of_sets(len(node.places), self.column.n_values))

    def listed_labels(self) -> dict[str, list[str]]:
        """Values of the labels whose text does not say what they stand for; an empty text is a missing value."""
        texts = [*self.column.values, *([""] if self.column.has_missing else [])]
        own = set(self.column.labels)
        return {
            node.label: [texts[place] for place in node.places]
            for node in self.root.below()
            if self.kind is not Kind.NUMERIC and node.label not in (None, ROOT) and node.label not in own
        }


def generalized_columns(
    schema: SharedSchema, hierarchies: Mapping[str, Hierarchy] | None = None
) -> tuple[GeneralizedColumn, ...]:
    """Give every feature of a shared schema its tree.

    Parameters
    ----------
    hierarchies : mapping of str to Hierarchy
        By column; they must cover all its listed values.

    Raises
    ------
    SchemaError
        If a hierarchy does not cover a value, or has one label for different groups.
    InvalidParameterError
        If a hierarchy is given for a column that is no feature, or whose numbers are cut.

    Examples
    --------
    >>> schema = SharedSchema.of_values({"age": []}, {"ill": ["n", "y"]}, {"age": [30, 45, 60]})
    >>> [node.label for node in generalized_columns(schema)[0].root.below()]
    ['*', '≤ 45', '≤ 30', ']30, 45]', '> 45', ']45, 60]', '> 60']
    """
    given = dict(hierarchies or {})
    able = {column.name for column in schema.features if column.cuts is None}
    if unknown := sorted(set(given) - able):
        allowed = "given for features that list their values"
        raise InvalidParameterError("hierarchies", f"but '{unknown[0]}' is none", allowed=allowed)
    found = []
    for column in schema.features:
        made = _by_hierarchy(column, given[column.name]) if column.name in given else _without_hierarchy(column)
        _check_labels(made)
        found.append(made)
    return tuple(found)


def digest_of(columns: Sequence[GeneralizedColumn]) -> str:
    """SHA-256 by which parties see that they coarsen alike."""
    listed = [[c.name, str(c.kind), [[n.label, n.places] for n in c.root.below()]] for c in columns]
    return hashlib.sha256(json.dumps(listed, separators=(",", ":")).encode()).hexdigest()


def _by_hierarchy(column: SharedColumn, hierarchy: Hierarchy) -> GeneralizedColumn:
    whole = hierarchy.with_root()
    row_of = {value.strip(): row for row, value in enumerate(whole.values)}
    lacking = [value for value in column.values if value.strip() not in row_of]
    if lacking:
        problem = f"lists {len(lacking):,} values that its hierarchy does not have"
        raise SchemaError(problem, column=column.name, hint="add them to the hierarchy file, the same for all parties")
    rows = [row_of[value.strip()] for value in column.values]
    levels = [[whole.labels[level][int(whole.codes[level, row])] for row in rows] for level in range(whole.n_levels)]

    def divided(places: tuple[int, ...], level: int) -> tuple[Node, ...]:
        """Divide by the next lower level that divides at all."""
        while level >= 0:
            groups: dict[str, list[int]] = {}
            for place in places:
                groups.setdefault(levels[level][place], []).append(place)
            if len(groups) > 1:
                return tuple(_grouped(label, tuple(of), level) for label, of in groups.items())
            level -= 1
        return ()

    def _grouped(label: str, places: tuple[int, ...], level: int) -> Node:
        if len(places) == 1:
            return Node(column.values[places[0]], places)
        return Node(label, places, divided(places, level - 1))

    places = tuple(range(len(column.values)))
    return GeneralizedColumn(column, _root(column, divided(places, whole.n_levels - 2)), Kind.CATEGORICAL)


def _without_hierarchy(column: SharedColumn) -> GeneralizedColumn:
    texts = list(column.labels)
    is_numeric = column.cuts is not None or are_finite_numbers(texts)
    by_number = is_numeric and column.cuts is None
    order = sorted(range(len(texts)), key=lambda i: float(texts[i])) if by_number else range(len(texts))
    kind = Kind.NUMERIC if is_numeric else Kind.CATEGORICAL
    return GeneralizedColumn(column, _root(column, _halves(column, tuple(order), kind)), kind)


def _halves(column: SharedColumn, order: tuple[int, ...], kind: Kind) -> tuple[Node, ...]:
    if len(order) <= 1:
        return tuple(Node(column.labels[place], order) for place in order)
    middle = (len(order) + 1) // 2
    return tuple(
        Node(_joined(column, part, kind), part, _halves(column, part, kind))
        if len(part) > 1
        else _halves(column, part, kind)[0]
        for part in (order[:middle], order[middle:])
    )


def _joined(column: SharedColumn, order: tuple[int, ...], kind: Kind) -> str:
    """Label of neighbouring values, numbers or intervals; of the latter the first and the last may be open."""
    if kind is not Kind.NUMERIC:
        return f"{{{'|'.join(column.values[place] for place in order)}}}"
    if column.cuts is None:
        return f"[{column.values[order[0]]}, {column.values[order[-1]]}]"
    joined = tuple(cut for place, cut in enumerate(column.cuts, start=1) if place in (order[0], order[-1] + 1))
    if order[0] == 0:
        return SharedColumn(column.name, cuts=joined).labels[0]
    labels = SharedColumn(column.name, cuts=joined).labels
    return labels[-1] if order[-1] == len(column.cuts) else labels[1]


def _root(column: SharedColumn, children: tuple[Node, ...]) -> Node:
    """Put a missing value beside what the others are divided into."""
    n_values = column.n_values
    if column.has_missing:
        children = (*(children or (Node(column.labels[0], (0,)),)), Node(None, (n_values - 1,)))
    if n_values == 1:
        return Node(column.labels[0] if column.labels else None, (0,))
    return Node(ROOT, tuple(range(n_values)), children)


def _check_labels(made: GeneralizedColumn) -> None:
    """Refuse labels that could be read in two ways."""
    meant: dict[str | None, frozenset[int]] = {value: frozenset([i]) for i, value in enumerate(made.column.labels)}
    for node in made.root.below():
        if len(node.places) == 1 and made.column.cuts is None:
            continue
        if meant.setdefault(node.label, frozenset(node.places)) != frozenset(node.places):
            problem = "has a label that stands for different groups of its values, or is one of its values"
            raise SchemaError(problem, column=made.name, hint="rename it in the hierarchy file")
