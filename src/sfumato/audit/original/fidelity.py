"""Whether a release was made from its original in the way the manifest says, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.checks import Check, Unchecked, listed
from sfumato.audit.claims import BUCKETED, FLIPPED, SYNTHETIC, ClaimedColumn, ClaimedRecoding, Claims
from sfumato.audit.descriptions import check_read
from sfumato.audit.original.assignment import BothBags, TooManyPairsError
from sfumato.audit.original.buckets import check_buckets, check_sorted_buckets
from sfumato.audit.original.cell_rules import CellRule, Codes, codes_of
from sfumato.audit.original.copies import check_copies
from sfumato.audit.original.offered_rows import OfferedRows
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.original.typical import check_typical
from sfumato.audit.reading.columns import Columns, Declared
from sfumato.audit.reading.row_order import is_sorted
from sfumato.audit.reading.values import (
    GENERALIZED,
    HIERARCHY,
    ONE_OF,
    TYPICAL,
    matching_ids,
    meanings_read_as,
    moments_in,
    texts_of,
    zero_one,
)
from sfumato.schema import WITHHELD, Column, Kind, Role
from sfumato.table.binary import Feature

_FEWEST_ROWS, _MOST_ROWS = 64, 65_536  # compared at once


@dataclass(frozen=True)
class _Pair:
    """Codes of a released column and of the one it came from, in each row of the original that may be released."""

    rule: CellRule
    original: Codes
    released: Codes

    def differ(self) -> NDArray[np.bool_]:
        """Which rows differ, where nothing was left out."""
        return ~self.rule.agree(self.original, self.released)


def check_fidelity(pair: ReleaseVsOriginal, check_roles: Declared) -> Iterator[Check | Unchecked]:
    """Compare a release with the original that it claims to come from.

    Every released column must be an original column unchanged or a recoding by a stated rule; incomplete rows are left
    out when the manifest says so, and as many further rows as it says are suppressed. Of flipped features as many cells
    must differ as the manifest says; synthetic rows must have the original's classes. Slices must hold the original's
    values bucket by bucket, and columns of no slice row by row.

    Where it is known which row of the original each released one is, they are compared row by row. Sorted rows are
    compared as a bag: every released row must have an original row of its own.
    """
    released, original, claims, offered = pair.released, pair.original, pair.claims, pair.offered
    yield from check_description(original, claims, check_roles)
    rows = check_rows(released, original, claims, offered)
    yield rows
    if not rows.passed:
        yield Check("cells", False, "cells were not compared, because the numbers of rows do not fit")
        return
    kept = offered.rows
    perturbation = claims.perturbation.kind if claims.perturbation else None
    if perturbation == SYNTHETIC:
        yield from _check_synthetic(released, original, claims, kept)
        return
    own_rows = kept if pair.own_rows is None or perturbation is not None else pair.own_rows
    pairs = _pairs(pair, own_rows)
    if perturbation == BUCKETED and (stated := claims.perturbation) is not None:
        compared = released, original, stated.bucket or "", stated.slices
        if pair.in_original_order:
            yield from check_buckets(*compared, kept, claims.recodings)
        else:
            yield from check_sorted_buckets(*compared, kept, claims.recodings)
        pairs = (own for own in pairs if own.rule.name not in stated.moved)
    if perturbation == FLIPPED and claims.suppressed_rows:
        yield Check("cells", False, "there are suppressed rows, which cannot be distinguished from flipped ones")
        return
    if perturbation == FLIPPED:
        yield from [_check_flipped(pairs, claims)] if pair.in_original_order else _check_flipped_bag(pairs, claims)
        return
    if pair.in_original_order:
        yield _check_cells(pairs)
    else:
        yield _check_bag(pairs) if is_sorted(claims) else _check_order(list(pairs))
    yield from check_copies(released, original, claims, kept)
    yield from check_typical(released, original, claims, kept, own_rows if pair.in_original_order else None)


def check_description(original: Columns, claims: Claims, check_roles: Declared) -> Iterator[Check | Unchecked]:
    """Compare what the manifest says of the original's columns with what they are, as far as that was declared."""
    declared = original.declared(check_roles)
    if claims.input_rows is not None:
        yield _check_input(original, claims)
    identifiers = frozenset(original.with_role(*WITHHELD))  # which no column is by default
    if declared or identifiers:
        yield check_identifiers(claims, identifiers)
    yield _check_accounted(original, claims)
    yield check_missing(original, claims)
    if declared:
        yield check_declared_roles(original, claims, declared)
    yield from _check_kinds(original, claims, check_roles is True)
    yield from check_read(original, claims)
    yield from _listed_and_absent(original, claims)


def _check_input(original: Columns, claims: Claims) -> Check:
    n_dropped = original.n_incomplete_dropped + original.n_person_rows_dropped
    rows, columns = original.n_rows + n_dropped, len(original.sources)
    passed = (rows, columns) == (claims.input_rows, claims.input_columns)
    message = (
        f"the original has {rows:,} rows and {columns:,} columns, "
        f"stated are {claims.input_rows:,} rows and {claims.input_columns:,} columns"
    )
    return Check("original's size", passed, message, claims.input_rows, rows)


def check_identifiers(claims: Claims, identifiers: frozenset[str]) -> Check:
    """Whether a column that its holder calls an identifier is released."""
    released = [name for name in claims.names() if name in identifiers]
    released += [r.name for r in claims.recodings.values() if r.column in identifiers and r.name not in released]
    none = "no column with the role identifier is released"
    said = f"identifiers of the original are released: {listed(released)}" if released else none
    return Check("identifiers", not released, said)


def _check_accounted(original: Columns, claims: Claims) -> Check:
    """Every column of the original is released, used by a recoding or stated as dropped, and not both."""
    released, dropped = set(claims.names()), set(claims.dropped_columns)
    sources = {recoding.column for recoding in claims.recodings.values()}
    features = {name: original.feature(name) for name in original.names}
    known = released | dropped | sources
    silent = [name for name, feature in features.items() if name not in known and _source(feature) not in known]
    kept = [name for name in claims.dropped_columns if name in released or name in sources]
    stray = [name for name in claims.recodings if name not in released]
    problems = [f"neither released nor stated as dropped: {listed(silent)}"] if silent else []
    problems += [f"stated as dropped but released: {listed(kept)}"] if kept else []
    problems += [f"stated as recoded but not released: {listed(stray)}"] if stray else []
    in_order = [name for name in original.sources if name in dropped]
    if dropped <= set(in_order) and list(claims.dropped_columns) != in_order:  # another order would be a message
        problems.append("those stated as dropped are not in the order of the original")
    if len(dropped) < len(claims.dropped_columns) or not dropped <= {*original.sources, *original.names}:
        problems.append("those stated as dropped are not columns of the original, each once")
    said = "; ".join(problems) or f"every column of the original is accounted for ({len(dropped):,} dropped)"
    return Check("dropped columns", not problems, said)


def check_missing(original: Columns, claims: Claims) -> Check:
    """Whether the manifest reads those texts as missing that the original's reader does: others would hide values."""
    stated = (claims.missing_tokens, dict(claims.missing_by_column))
    passed = stated == (original.missing_tokens, original.missing_by_column)
    said = "are those of the original's reader"
    if not passed:
        said = "are not those by which the original was read; if they are right, read the original by them"
    return Check("missing", passed, f"the texts that the manifest lists as missing {said}")


def _source(feature: Feature | None) -> str | None:
    return feature.column if feature else None


def check_declared_roles(original: Columns, claims: Claims, declared: frozenset[str]) -> Check:
    """Whether columns are released under their declared roles: no promise speaks of a demoted quasi-identifier."""
    wrong = []
    for column in claims.columns:
        recoding = claims.recodings.get(column.name)
        names = (column.name, recoding.column if recoding is not None else column.name)
        source = next((name for name in names if name in original and name in declared), None)
        if source is not None and original.describe(source).role is not column.role:
            wrong.append(column.name)
    said = f"have another role in the manifest: {listed(wrong)}" if wrong else "are released under these roles"
    return Check("original's roles", not wrong, f"columns whose roles were declared {said}")


def _check_kinds(original: Columns, claims: Claims, is_described: bool) -> Iterator[Check | Unchecked]:
    """Whether columns have the original's kinds and orders; an order must be declared, or be a known one.

    Ranges run along an order, promises are measured along it, and readers take cells by it. An order may lack values
    that no released row has. Listed values of a column without an order must be declared ones, or occur.
    """
    recoded = [
        r
        for r in claims.recodings.values()
        if r.rule in (GENERALIZED, HIERARCHY, TYPICAL) and r.column in original and _says_order(r, original)
    ]
    stated = [(r.name, r.column, r.kind, r.domain) for r in recoded]
    measured = {getattr(promise.guarantee, "sensitive", None) for promise in claims.promises}
    is_compared = bool(stated) or any(
        original.describe(name).kind is not Kind.CATEGORICAL for name in original.names if name in measured
    )
    stated += [
        (c.name, c.name, c.kind, c.domain)
        for c in claims.columns
        if c.name in original and c.name not in claims.recodings and not _is_feature(c, original)
    ]
    wrong: list[str] = []
    unknown: list[str] = []
    for name, column, kind, domain in stated:
        own = original.describe(column)
        says_less = not domain and own.is_order_recognised and name not in measured and name not in claims.recodings
        is_same = kind is own.kind and (says_less or _are_own(domain, own, original))
        is_declared = own.kind is Kind.ORDERED and not own.is_order_recognised
        if not is_same:
            (wrong if is_described or is_declared else unknown).append(name)
    if wrong or (is_compared and len(stated) > len(unknown)):
        said = f" are not those of the original: {listed(wrong)}" if wrong else " are those of the original"
        yield Check("order of cells", not wrong, f"kinds and orders that the manifest states{said}")
    if unknown:
        said = f"whether {listed(unknown)} have the kind and order that the manifest states, which were not declared"
        yield Unchecked("order", said, "describe the original in a project")


def _listed_and_absent(original: Columns, claims: Claims) -> Iterator[Unchecked]:
    """Name features whose rule lists values that no row of the original has: such a text could say anything.

    Somebody may have declared such a value before the table was made. Under differential privacy all lists are public.
    """
    if claims.is_synthetic:
        return
    names = []
    for recoding in claims.recodings.values():
        if recoding.rule != ONE_OF or recoding.column not in original or original.feature(recoding.name) is not None:
            continue
        values = original.coded(recoding.column).values
        known = set(meanings_read_as(values, pa.string()))
        if not known.issuperset(meanings_read_as(pa.array(recoding.values, pa.string()), values.type)):
            names.append(recoding.name)
    if names:
        said = f"values that {listed(names)} list and no row of the original has, which the manifest alone says"
        yield Unchecked("order", said, "describe the original in a project")


def _is_feature(column: ClaimedColumn, original: Columns) -> bool:
    """Whether a column is a 0/1 feature: these are without an order in every release, also where they are numbers."""
    if original.feature(column.name) is not None:
        return True
    values = original.coded(column.name).values
    is_plain = column.kind is Kind.CATEGORICAL and not column.domain and column.role.is_one_of([Role.QUASI_IDENTIFIER])
    return is_plain and zero_one(values) is not None


def _says_order(recoding: ClaimedRecoding, original: Columns) -> bool:
    """Whether a recoding is by an order, lists one, or should be by one: typical of numbers is the middle one.

    Sets of values may be released of any column, and truth values, or dates of which some are none, have no middle.
    """
    if recoding.kind is not Kind.CATEGORICAL or recoding.domain:
        return True
    own = original.describe(recoding.column)
    if recoding.rule != TYPICAL or own.kind not in (Kind.NUMERIC, Kind.DATE):
        return False
    values = original.coded(recoding.column).values
    is_placed = own.kind is Kind.NUMERIC or moments_in(values) is not None
    return is_placed and not pa.types.is_boolean(values.type) and values.null_count < len(values)


def _are_own(domain: Sequence[str] | None, own: Column, original: Columns) -> bool:
    """Whether listed values are a column's own: in its order, or, where it has none, declared or occurring."""
    if own.kind is Kind.ORDERED:
        return domain == own.domain or _runs_along(domain, own.domain)
    if not domain:
        return True
    texts = texts_of(original.coded(own.name).values).to_pylist()
    return set(domain) <= {*(own.domain or ()), *texts}


def _runs_along(stated: Sequence[str] | None, own: Sequence[str] | None) -> bool:
    """Whether an order is another one, or that with values left out."""
    rest = iter(own or ())
    return bool(stated) and all(value in rest for value in stated or ())


def check_rows(released: Columns, original: Columns, claims: Claims, offered: OfferedRows | None = None) -> Check:
    """Whether the numbers of rows fit; without ``offered``, none was left out before the mechanism."""
    n_incomplete, n_same = (offered.n_incomplete, offered.n_of_same_persons) if offered else (0, 0)
    n_dropped = n_incomplete + original.n_incomplete_dropped
    n_same_dropped = n_same + original.n_person_rows_dropped
    n_same_stated = claims.persons.n_dropped if claims.persons else 0
    expected = original.n_rows - n_incomplete - n_same - claims.suppressed_rows
    problems = []
    if n_dropped != claims.n_incomplete_dropped:
        problems.append(f"{claims.n_incomplete_dropped:,} incomplete rows are stated as dropped, not {n_dropped:,}")
    if claims.persons is not None and claims.persons.column not in original:
        problems.append("the column that tells persons apart is not in the original")
    declared = original.with_role(Role.PERSON)  # which no column is by default
    if claims.persons is not None and declared and claims.persons.column not in declared:
        problems.append("one row was kept for each value of a column that was not declared to tell persons apart")
    if n_same_dropped != n_same_stated:
        said = f"{n_same_stated:,} rows are stated as left out because their person has another"
        problems.append(f"{said}, not {n_same_dropped:,}")
    if expected != released.n_rows:
        problems.append(
            f"{original.n_rows:,} rows less {n_incomplete + n_same:,} left out beforehand and "
            f"{claims.suppressed_rows:,} suppressed ones "
            f"leave {expected:,}, released are {released.n_rows:,}"
        )
    said = (
        "; ".join(problems) or f"the released rows are the original's {original.n_rows:,} less those stated as left out"
    )
    return Check("row balance", not problems, said, expected, released.n_rows)


def _pairs(pair: ReleaseVsOriginal, rows: NDArray[np.intp]) -> Iterator[_Pair]:
    """Pair each stated column with the one that it came from."""
    nothing = np.zeros(0, dtype=np.int32)
    for rule in pair.rules:
        if rule.problem:
            yield _Pair(rule, nothing, nothing)
        else:
            yield _Pair(rule, codes_of(pair.original, rule.column)[rows], codes_of(pair.released, rule.name))


def _check_cells(pairs: Iterator[_Pair]) -> Check:
    """Row by row: the rows of both tables belong together."""
    problems, rules = [], []
    for pair in pairs:
        rules.append(pair.rule)
        n_different = 0 if pair.rule.problem else int(pair.differ().sum())
        if pair.rule.problem or n_different:
            problems.append(f"'{pair.rule.name}' {pair.rule.problem or f'differs in {n_different:,} rows'}")
    return said_of_cells(problems, rules)


def _check_flipped(pairs: Iterator[_Pair], claims: Claims) -> Check:
    """Row by row: features differ in as many cells as stated, all other columns in none."""
    features = frozenset(claims.names(Role.QUASI_IDENTIFIER))
    stated = claims.perturbation.n_cells_changed if claims.perturbation else 0
    problems, n_changed = [], 0
    for pair in pairs:
        name, problem = pair.rule.name, pair.rule.problem
        n_different = 0 if problem else int(pair.differ().sum())
        if name in features:
            n_changed += n_different
        elif n_different:
            problem = f"differs in {n_different:,} rows"
        problems += [f"'{name}' {problem}"] if problem else []
    if n_changed != stated and not problems:
        problems.append(f"{n_changed:,} cells of features differ")
    more = f" and {len(problems) - 5:,} more" if len(problems) > 5 else ""
    said = f": {'; '.join(problems[:5])}{more}" if problems else ", as many differ; all other cells are the original's"
    return Check("cells", not problems, f"{stated:,} flipped cells are stated{said}", stated, n_changed)


def _check_flipped_bag(pairs: Iterator[_Pair], claims: Claims) -> Iterator[Check | Unchecked]:
    """Of sorted rows nobody knows which cell is whose: other columns must be the same bag, and counts must fit.

    A feature whose ones are n more or fewer than the original's has at least n changed cells, and of all features
    together the numbers of changed cells and of what they add up to are both even or both odd.
    """
    features = frozenset(claims.names(Role.QUASI_IDENTIFIER))
    stated = claims.perturbation.n_cells_changed if claims.perturbation else 0
    every = list(pairs)
    problems = [f"'{pair.rule.name}' {pair.rule.problem}" for pair in every if pair.rule.problem]
    if not problems:
        n_least = 0
        for pair in every:
            if pair.rule.name in features:
                n_least += _n_ones_apart(pair)
        if n_least > stated or (stated - n_least) % 2:
            problems.append(f"features have {n_least:,} ones more or fewer than the original's")
        others = [pair for pair in every if pair.rule.name not in features]
        if others and not _bags(others).can_be_assigned():
            problems.append("the other columns are not those of the original")
    said = f": {'; '.join(problems[:5])}" if problems else ", and the numbers of ones leave room for them"
    yield Check("cells", not problems, f"{stated:,} flipped cells are stated{said}", stated)
    if not problems:
        yield Unchecked("cells", "which cells were flipped: the rows are sorted, and nothing says which is whose")


def _n_ones_apart(pair: _Pair) -> int:
    before = np.asarray(pair.rule.expected)[pair.original] == 1
    after = np.asarray(pair.rule.found)[pair.released] == 1
    return abs(int(before.sum()) - int(after.sum()))


def _check_bag(pairs: Iterator[_Pair]) -> Check | Unchecked:
    """Rows are sorted: every released row must have a row of the original of its own, which agrees with it."""
    compared = list(pairs)
    rules = [pair.rule for pair in compared]
    problems = [f"'{rule.name}' {rule.problem}" for rule in rules if rule.problem]
    if not compared or problems:
        return said_of_cells(problems, rules)
    problems = [
        f"'{pair.rule.name}' has {n_foreign:,} cells that are not the original's"
        for pair in compared
        if (n_foreign := _bags([pair]).n_foreign())
    ]
    try:
        if not problems and not _bags(compared).can_be_assigned():
            problems.append("released rows are not rows of the original, each of its own")
    except TooManyPairsError:
        said = "whether cells follow from the original: original and released rows fit in too many ways"
        return Unchecked("cells", said)
    return said_of_cells(problems, rules)


def _bags(pairs: Sequence[_Pair]) -> BothBags:
    return BothBags.of([p.rule for p in pairs], [p.original for p in pairs], [p.released for p in pairs])


def _check_synthetic(released: Columns, original: Columns, claims: Claims, rows: NDArray[np.intp]) -> Iterator[Check]:
    """Rows drawn anew have nothing to be compared cell by cell; the class sizes, which are public, must be kept."""
    for name in claims.names(Role.TARGET):
        if name not in released or name not in original:
            yield Check("class sizes", False, "the target is not a column of both tables")
            continue
        before, after = original.coded(name), released.coded(name)
        expected, found = matching_ids(before.values, after.values)
        passed = np.array_equal(np.sort(expected[before.codes[rows]]), np.sort(found[after.codes]))
        said = "are those of the original" if passed else "are not those of the original"
        yield Check("class sizes", passed, f"the class sizes of the synthetic rows {said}")
    sources = frozenset(original.sources)
    strangers = [r.column for r in claims.recodings.values() if r.column not in sources]
    said = f"features of columns that the original lacks: {listed(strangers)}" if strangers else "no cell was compared"
    yield Check("cells", not strangers, f"the released rows are synthetic: {said}")


def _check_order(pairs: Sequence[_Pair]) -> Check:
    """Rows were left out: the others must be rows of the original in its order; each is given the first that agrees."""
    problems = [f"'{pair.rule.name}' {pair.rule.problem}" for pair in pairs if pair.rule.problem]
    n_before, n_after = (0, 0) if problems or not pairs else (len(pairs[0].original), len(pairs[0].released))
    before = after = 0
    at_once = _FEWEST_ROWS
    while after < n_after:
        n = min(at_once, n_before - before, n_after - after)
        if not n:
            problems.append("released rows are not rows of the original in its order")
            break
        own, found = slice(before, before + n), slice(after, after + n)
        agree = np.logical_and.reduce([pair.rule.agree(pair.original[own], pair.released[found]) for pair in pairs])
        n_agreeing = n if agree.all() else int(np.argmin(agree))
        before += n_agreeing + (n_agreeing < n)
        after += n_agreeing
        at_once = _FEWEST_ROWS if n_agreeing < n else min(2 * at_once, _MOST_ROWS)
    return said_of_cells(problems, [pair.rule for pair in pairs])


def said_of_cells(problems: Sequence[str], rules: Sequence[CellRule]) -> Check:
    """Give what was found of the cells of some columns; of typical values a row shows only that they occur."""
    more = f" and {len(problems) - 5:,} more" if len(problems) > 5 else ""
    said = "; ".join(problems[:5]) + more
    typical = [rule.name for rule in rules if rule.fits_any_row]
    good = f"the cells of {len(rules) - len(typical):,} released columns follow from the original"
    good += f"; those of {listed(typical)} are values that occur in the original" if typical else ""
    return Check("cells", not problems, f"cells do not follow from the original: {said}" if problems else good)
