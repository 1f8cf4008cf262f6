"""Whether the rows of one party are in a release of several parties' rows together, each in a row of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_flow

from sfumato.audit.checks import Check, Unchecked, listed
from sfumato.audit.claims import ClaimedRecoding, Claims
from sfumato.audit.original.cell_rules import CellRule, Codes, FittingRule, cell_rules, codes_of
from sfumato.audit.original.fidelity import check_declared_roles, check_identifiers, check_missing
from sfumato.audit.reading.columns import Columns, Declared
from sfumato.audit.reading.labels import contained_in_labels
from sfumato.audit.reading.values import HIERARCHY
from sfumato.schema import WITHHELD

Ids = NDArray[np.int64]

OWN_ROWS = "own rows"
_AT_ONCE = 1 << 22
"""Pairs of distinct rows that are compared at a time."""
_MOST_PAIRS = 1 << 25


def check_part(
    released: Columns, part: Columns, claims: Claims, check_roles: Declared = False
) -> Iterator[Check | Unchecked]:
    """Compare a release of several parties' rows with the rows of one of them.

    Columns that are not in the release are the party's own, and kept back. Every row must have a released row of its
    own whose cells stand for its values.
    """
    declared = part.declared(check_roles)
    identifiers = frozenset(part.with_role(*WITHHELD))
    if declared or identifiers:
        yield check_identifiers(claims, identifiers)
    yield check_missing(part, claims)
    if declared:
        yield check_declared_roles(part, claims, declared)
    rules = _rules(released, part, claims)
    problems = [f"'{rule.name}' {rule.problem}" for rule in rules if rule.problem]
    if problems:
        yield Check(OWN_ROWS, False, f"own rows cannot be compared: {listed(problems)}")
        return
    yield _check_included(rules, [codes_of(part, r.column) for r in rules], [codes_of(released, r.name) for r in rules])


def _rules(released: Columns, part: Columns, claims: Claims) -> list[CellRule]:
    """Rules of all columns; labels are read against this party's values, of which it need not have all."""
    labelled = {r.name: r for r in claims.recodings.values() if r.rule == HIERARCHY and r.column in part}
    return [
        _labelled(released, part, labelled[rule.name]) if rule.name in labelled and rule.name in released else rule
        for rule in cell_rules(released, part, claims)
    ]


def _labelled(released: Columns, part: Columns, recoding: ClaimedRecoding) -> CellRule:
    """Read the labels of a column, of several levels beside each other."""
    labels, values = released.coded(recoding.name).values, part.coded(recoding.column).values
    read = contained_in_labels(labels, values, recoding.kind, recoding.labels, recoding.domain)
    if read.n_unreadable:
        return CellRule(recoding.name, recoding.column, problem="has labels that cannot be read")
    return FittingRule(recoding.name, recoding.column, read=read)


def _check_included(rules: Sequence[CellRule], own: Sequence[Codes], released: Sequence[Codes]) -> Check | Unchecked:
    """Whether each own row can be given a released row of its own."""
    mine, n_mine = np.unique(np.column_stack(own), axis=0, return_counts=True)
    theirs, n_theirs = np.unique(np.column_stack(released), axis=0, return_counts=True)
    tails, heads = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    step, n_pairs = max(1, _AT_ONCE // len(theirs)), 0
    for start in range(0, len(mine), step):
        some = mine[start : start + step]
        before, after = np.repeat(np.arange(len(some)), len(theirs)), np.tile(np.arange(len(theirs)), len(some))
        for place, rule in enumerate(rules):
            fits = rule.agree(some[before, place], theirs[after, place])
            before, after = before[fits], after[fits]
        n_pairs += len(before)
        if n_pairs > _MOST_PAIRS:
            said = "whether the rows of this party are in the release: they fit in too many ways"
            return Unchecked("cells", said)
        tails.append(before + start)
        heads.append(after)
    n_placed = _most_placed(n_mine, n_theirs, np.concatenate(tails), np.concatenate(heads))
    n_rows = int(n_mine.sum())
    if n_placed == n_rows:
        return Check(OWN_ROWS, True, f"all {n_rows:,} rows of this party are in the release, each of its own")
    said = f"{n_rows - n_placed:,} of the {n_rows:,} rows of this party are not in the release"
    return Check(OWN_ROWS, False, said, n_rows, n_placed)


def _most_placed(supply: Ids, room: Ids, tail: Ids, head: Ids) -> int:
    """How many own rows can be given released rows at most; by counts where each fits one kind of row only."""
    if len(np.unique(tail)) == len(tail):
        wanted = np.zeros(len(room), dtype=np.int64)
        np.add.at(wanted, head, supply[tail])
        return int(np.minimum(wanted, room).sum())
    n, m = len(supply), len(room)
    starts = np.concatenate([np.full(n, n + m), tail, n + np.arange(m)])
    ends = np.concatenate([np.arange(n), n + head, np.full(m, n + m + 1)])
    capacities = np.concatenate([supply, np.minimum(supply[tail], room[head]), room]).astype(np.int32)
    network = sp.csr_array((capacities, (starts, ends)), shape=(n + m + 2, n + m + 2))
    return int(maximum_flow(network, n + m, n + m + 1).flow_value)
