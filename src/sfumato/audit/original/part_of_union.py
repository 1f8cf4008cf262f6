"""Whether the rows of one party are in a release of several parties' rows together, each in a row of its own."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.audit.checks import Check, Unchecked, listed
from sfumato.audit.claims import ClaimedRecoding, Claims
from sfumato.audit.original.assignment import BothBags, Pairs, TooManyPairsError
from sfumato.audit.original.cell_rules import CellRule, FittingRule, cell_rules, codes_of
from sfumato.audit.original.fidelity import check_declared_roles, check_identifiers, check_missing
from sfumato.audit.reading.columns import Columns, Declared
from sfumato.audit.reading.labels import contained_in_labels
from sfumato.audit.reading.values import HIERARCHY
from sfumato.schema import WITHHELD

OWN_ROWS = "own rows"


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
    own, shown = [codes_of(part, r.column) for r in rules], [codes_of(released, r.name) for r in rules]
    try:
        pairs = Pairs.of(BothBags.of(rules, own, shown))
    except TooManyPairsError:
        yield Unchecked("cells", "whether the rows of this party are in the release: they fit in too many ways")
        return
    passed = Pairs(
        pairs.classes, pairs.originals, pairs.after, pairs.before
    ).can_be_filled()  # own rows by released ones
    said = f"{'all' if passed else 'not all'} rows of this party are in the release, each of its own"
    yield Check(OWN_ROWS, passed, said)


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
