"""The audit's entry point: whether a release keeps what its manifest promises and came about as stated."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sfumato.audit.audited_rows import AuditedRows, RowsInMemory
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.bytes.files import check_file
from sfumato.audit.checks import (
    DECLARE,
    GIVE_ORIGINAL,
    GIVE_POPULATION,
    AuditReport,
    Check,
    Unchecked,
    agrees_in_three_digits,
    listed,
)
from sfumato.audit.claims import BUCKETED, Claims, Promise, is_number, read_claims
from sfumato.audit.descriptions import described_without_original
from sfumato.audit.evidence import (
    check_commitment,
    check_digest,
    check_figures,
    check_hash,
    check_listed_labels,
    check_samples,
    check_shape,
    check_stated_figures,
    check_suppression,
    check_texts,
    taken_on_trust,
)
from sfumato.audit.kinds import JUDGED, Evidence, UndecidableError
from sfumato.audit.levels.both_roles import check_both_roles, sensitive_and_known
from sfumato.audit.levels.breach import sample_words
from sfumato.audit.levels.buckets import check_bucket_numbers
from sfumato.audit.levels.differential_privacy import check_construction, check_exactness, unconfirmed
from sfumato.audit.levels.persons import check_person_promise
from sfumato.audit.levels.registry import (
    is_about_fitting_rows,
    is_measurable,
    measured_level,
    needs_original,
    needs_population,
)
from sfumato.audit.levels.tree_disclosure import check_disclosure
from sfumato.audit.original.labels import check_labels
from sfumato.audit.original.part_of_union import check_part
from sfumato.audit.original.preparation import check_prepared
from sfumato.audit.reading.columns import AnyTable, Columns, Declared
from sfumato.audit.reading.equivalence import n_merged_spellings
from sfumato.audit.reading.identifiers import check_identifiers
from sfumato.audit.reading.row_order import is_sorted, kept_as_read
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import GUARANTEES, ROUNDING, BucketDiversity, Guarantee
from sfumato.manifest_schema import KNOWN_MECHANISMS, PARAMETERS, VERSION
from sfumato.schema import Role

__all__ = ["AuditReport", "Check", "audit_release", "is_measurable", "measured_level"]

_MOST_NAMES = 20


def audit_release(
    released: AnyTable,
    manifest: Mapping[str, Any],
    has: AuditorHas[AnyTable] | None = None,
    *,
    released_sha256: str | None = None,
    file: str | Path | None = None,
    publisher: PublisherKnows | None = None,
) -> AuditReport:
    """Check a release against its manifest and, when it is given, against its original.

    Parameters
    ----------
    released : Table or BinaryTable
        The cells of the file as they are, also where some are escaped.
    manifest : mapping
        The parsed JSON. Roles and kinds of the released columns are taken from it.
    has : AuditorHas or None
        The original and whatever else the auditor has.
    released_sha256 : str or None
        Hash of the released file that was read, which is compared with the manifest's.
    file : path or None
        Where the release was read from: every byte there must be accounted for.
    publisher : PublisherKnows or None
        What only the publisher knows.

    Raises
    ------
    ManifestError
        If the manifest is malformed.
    """
    has, publisher = has or AuditorHas(), publisher or PublisherKnows()
    rows = RowsInMemory(released, read_claims(manifest), has, publisher)
    return audit(rows, manifest, has, released_sha256, file, levels_are_stated=publisher.levels_are_stated)


def audit(
    rows: AuditedRows,
    manifest: Mapping[str, Any],
    has: AuditorHas[Any],
    released_sha256: str | None,
    file: str | Path | None,
    *,
    levels_are_stated: bool = True,
) -> AuditReport:
    """Check a release wherever its rows are: the one sequence of checks."""
    claims, columns, pair = rows.claims, Columns(rows.released), rows.pair
    before = None if pair is None else pair.original
    is_union = claims.input_parties is not None
    found: list[Check | Unchecked] = [check_digest(manifest, claims), *rows.prepared]
    if released_sha256 is not None:
        found.append(check_hash(claims.output_sha256, released_sha256))
    if claims.input_commitment is not None:
        original_sha256 = None if is_union else has.original_sha256
        found.append(check_commitment(claims.input_commitment, original_sha256, has.key))
    if file is not None:
        found.extend(check_file(file, claims, released_sha256))
        found.extend(rows.check_spelling())
        found.extend([rows.check_row_order()] if is_sorted(claims) else [])
    found.extend(check_identifiers(rows.values(), claims))
    found.extend(check_shape(rows.released, columns, claims))
    found.extend(rows.check_kinds())
    if (moved := claims.perturbation) is not None and moved.kind == BUCKETED:
        found.extend(check_bucket_numbers(columns, moved.bucket or "", moved.slices, claims))
    found.extend(check_prepared(columns, claims))
    found.append(_check_promises_exist(claims))
    has_roles = has_all_roles(before, has.roles)
    found.extend(_check_further(Evidence(claims, before, pair, has_roles, rows.population, rows.find_determining)))
    levels = []
    for promise in claims.promises:
        own = list(_check_promise(promise, rows, manifest, levels_are_stated))
        found.extend(own)
        of_level = (c.found for c in own if isinstance(c, Check) and c.name == _level_name(promise))
        levels.append(next(of_level, None))
    if pair is not None and any(is_about_fitting_rows(promise.guarantee) for promise in claims.promises):
        found.extend(pair.check_what_holds())
    found.extend(check_stated_figures(claims, rows.figure))
    found.extend(check_disclosure(rows.columns, claims))
    found.extend(check_figures(claims, manifest))
    found.extend(check_texts(claims, manifest))
    found.extend(check_samples(claims))
    found.extend(check_suppression(claims))
    found.extend(rows.check_person_suppression())
    found.extend(rows.check_row_promises())
    found.extend(check_listed_labels(rows.described, claims))
    found.extend(rows.check_penalty())
    if pair is not None:
        found.extend(check_labels(rows.source, claims))
        found.extend(rows.check_fidelity(has.roles))
    if is_union and rows.given is not None:
        found.extend(check_part(columns, rows.given, claims, has.roles))
    found.extend(unconfirmed(promise) for promise in claims.promises if not is_measurable(promise.guarantee))
    if claims.is_synthetic:
        found.append(check_exactness(columns, rows.given, claims))
    found.extend(_open_questions(claims, rows.given, has.roles))
    return AuditReport.of(found, levels)


def with_stated_levels(report: AuditReport, manifest: Mapping[str, Any]) -> AuditReport:
    """Check of a manifest that was given its levels by this very report that it states them."""
    promises = zip(read_claims(manifest).promises, report.levels, strict=True)
    checks = [check_audited(promise, level) for promise, level in promises if isinstance(level, int | float)]
    return AuditReport.of([*report.checks, *report.unchecked, *checks], report.levels)


def has_all_roles(original: Columns | None, check_roles: Declared) -> bool:
    """Whether the role of every column of the original was declared."""
    return original is not None and set(original.names) <= original.declared(check_roles)


def _open_questions(claims: Claims, original: Columns | None, check_roles: Declared) -> Iterator[Unchecked]:
    """Name what could not be checked because the audit was not given enough."""
    if not _is_known_version(claims.versions.get("sfumato", "0.0")):
        said = "what a later version of sfumato than this one states"
        yield Unchecked("format", said, "audit it with that version")
    if claims.mechanism not in KNOWN_MECHANISMS:
        said = "settings of the mechanism, which another package has: the audit does not know what these may be"
        yield Unchecked("mechanism", said)
    if (kept := kept_as_read(claims)) is not None:
        yield kept
    if claims.input_parties is not None:
        said = f"whether the rows follow from the tables of {claims.input_parties} parties, which nobody has together"
        yield Unchecked("original", said, "" if original is not None else "let each party audit it with its own rows")
    elif original is None:
        said = "whether the released cells follow from the original, and whether what was read as missing was missing"
        yield Unchecked("original", said, GIVE_ORIGINAL)
        yield from described_without_original(claims)
    if all(is_measurable(promise.guarantee) for promise in claims.promises):  # else every figure was computed again
        yield from taken_on_trust(claims, original is not None)
    yield from _undeclared(claims, frozenset() if original is None else original.declared(check_roles))
    readings = {} if original is None else {n: original.describe(n).reading for n in original.names}
    stated = [name for name, reading in readings.items() if reading is not None and reading.is_stated]
    if stated:
        said = f"whether texts of {listed(stated)} were read in their own format, which the manifest alone says"
        yield Unchecked("formats", said, "give the format of these columns")


def _is_known_version(stated: str) -> bool:
    """Whether a manifest is by this version of the package or an earlier one."""
    own = re.match(VERSION["pattern"].removesuffix("$"), version("sfumato"))
    return own is None or list(map(int, stated.split("."))) <= list(map(int, own[0].split(".")))


def _undeclared(claims: Claims, declared: frozenset[str]) -> Iterator[Unchecked]:
    """Name columns that no guarantee covers and whose roles are the manifest's word: one may be a quasi-identifier."""
    made = {claims.perturbation.bucket} if claims.perturbation is not None else set()
    sources = {name: recoding.column for name, recoding in claims.recodings.items()}
    shown = [
        f"'{column.name}' ({column.role})"
        for column in claims.columns
        if not column.role.is_one_of([Role.QUASI_IDENTIFIER])
        and column.name not in made
        and not {column.name, sources.get(column.name)} & declared
    ]
    if shown:
        more = f" and {len(shown) - _MOST_NAMES:,} more" if len(shown) > _MOST_NAMES else ""
        names = ", ".join(shown[:_MOST_NAMES]) + more
        said = f"roles were taken from the manifest, and no guarantee covers {names}"
        yield Unchecked("roles", said, DECLARE)


def _check_further(evidence: Evidence) -> Iterator[Check | Unchecked]:
    for promise in evidence.claims.promises:
        if promise.guarantee.by_persons:
            yield from check_person_promise(promise.guarantee, evidence)
        judging = JUDGED.get(promise.guarantee.kind)
        if judging is not None and judging.further is not None:
            yield from judging.further(promise.guarantee, evidence)


def _check_promises_exist(claims: Claims) -> Check:
    n = len(claims.promises)
    said = f"{n} guarantee{'s' if n > 1 else ''}" if n else "nothing"
    passed = n > 0
    every = [promise.guarantee for promise in claims.promises]
    if any(own in every[:i] for i, own in enumerate(every)):
        passed, said = False, f"{said}, and one of them twice"
    if alone := _asked_alone(claims):
        passed, said = False, f"{said}, and not the levels that the mechanism was asked for: {', '.join(alone)}"
    if claims.is_synthetic and all(is_measurable(promise.guarantee) for promise in claims.promises):
        passed, said = False, f"{said}, and none about how its synthetic rows were drawn"
    return Check("promises", passed, f"the manifest promises {said}")


def _check_promise(
    promise: Promise, rows: AuditedRows, manifest: Mapping[str, Any], levels_are_stated: bool
) -> Iterator[Check | Unchecked]:
    kind, claims, columns = promise.guarantee.name, rows.claims, rows.columns
    yield _check_coverage(promise, claims)
    yield from check_both_roles(promise, columns, claims)
    yield from _check_parameters(promise, claims)
    passed = promise.statement == promise.guarantee.describe()
    said = "says what is promised" if passed else "does not say what is promised"
    yield Check(f"{kind}: statement", passed, f"{kind}: the statement in the manifest {said}")
    if not is_measurable(promise.guarantee):
        yield from check_construction(promise, columns, claims, manifest)
        return
    if needs_original(promise.guarantee) and rows.pair is None:
        yield Unchecked("promises", f"{kind} was not measured: it needs the original", GIVE_ORIGINAL)
        return
    if needs_population(promise.guarantee) and rows.population is None:
        yield Unchecked("promises", f"{kind} was not measured: it needs the population table", GIVE_POPULATION)
        return
    try:
        found = rows.level(promise.guarantee)
    except UndecidableError as exc:
        yield from _said_of_bound(promise, exc)
        return
    except (SchemaError, InvalidParameterError) as exc:  # and therefore not kept
        promised = getattr(promise.guarantee, promise.guarantee.level.name)
        yield Check(_level_name(promise), False, f"{kind} cannot be measured: {exc}", promised)
        return
    yield _check_level(promise, found, rows.n_offered, _merged_words(promise, columns))
    if levels_are_stated:
        yield check_audited(promise, found)


def _check_level(promise: Promise, found: float, n_rows: int | None, more: str) -> Check:
    """Whether a level that was found keeps a promise.

    Parameters
    ----------
    n_rows : int or None
        Rows of the original that may be released; of more than fit an estimate is of a sample, which is said.
    more : str
        Further words at the end.
    """
    guarantee, name = promise.guarantee, promise.guarantee.level.name
    promised, passed = getattr(guarantee, name), guarantee.is_met_by(found)
    said = f"{'holds' if passed else 'does not hold'}: promised {name} = {promised:g}, found {found:.6g}"
    sampled = "" if n_rows is None else sample_words(guarantee, n_rows)
    said += f", estimated on the audit's own {sampled}" if sampled else ""
    return Check(_level_name(promise), passed, f"{guarantee.name} {said}{more}", promised, _in_json(found))


def _said_of_bound(promise: Promise, exc: UndecidableError) -> Iterator[Check | Unchecked]:
    """Say that a promise holds whichever way rows belong together, or that this cannot be decided."""
    kind, name, parameter = promise.guarantee.name, _level_name(promise), promise.guarantee.level.name
    if promise.guarantee.is_met_by(exc.at_least):
        promised = getattr(promise.guarantee, parameter)
        said = f"holds: promised {parameter} = {promised:g}, found at least {exc.at_least:.6g}"
        yield Check(name, True, f"{kind} {said}, whichever rows a group holds", promised, _in_json(exc.at_least))
        yield Unchecked("figures", f"the level of {kind} that the manifest gives as audited: {exc}")
    else:
        yield Unchecked(exc.exception, f"{kind} was not measured: {exc}", exc.remedy)


def _merged_words(promise: Promise, columns: Columns) -> str:
    """Say how many spellings of sensitive values were counted with others."""
    sensitive = getattr(promise.guarantee, "sensitive", None)
    if sensitive is None or needs_original(promise.guarantee):
        return ""
    n_merged = n_merged_spellings(columns, sensitive)
    said = f"{n_merged:,} spelling{'s' if n_merged > 1 else ''} of '{sensitive}' counted as another's"
    return f"; {said} value" if n_merged else ""


def _level_name(promise: Promise) -> str:
    return f"{promise.guarantee.name}: level"


def _check_coverage(promise: Promise, claims: Claims) -> Check:
    """Whether a promise speaks of every released quasi-identifier: one that it leaves out could single people out."""
    kind = promise.guarantee.name
    covered = frozenset(promise.columns) | {sensitive_and_known(promise, claims)}  # who wants a value lacks it
    left_out = [name for name in claims.names(Role.QUASI_IDENTIFIER) if name not in covered]
    said = f"leaves out released quasi-identifiers: {listed(left_out)}" if left_out else "covers all quasi-identifiers"
    said += " other than its own" if not left_out and covered - set(promise.columns) - {None} else ""
    return Check(f"{kind}: columns", not left_out, f"{kind} {said}")


def _check_parameters(promise: Promise, claims: Claims) -> Iterator[Check]:
    """Whether the mechanism was run with the parameters that are promised."""
    kind, judging = promise.guarantee.name, JUDGED.get(promise.guarantee.kind)
    for name in () if judging is None else judging.parameters:
        promised = getattr(promise.guarantee, name, None)
        if promised is not None and name not in claims.parameters and _is_left_out(name, claims):
            yield Check(f"{kind}: parameter {name}", False, f"{kind}: the mechanism's {name} is not stated")
        if promised is None or name not in claims.parameters:
            continue
        used = claims.parameters[name]
        if isinstance(promised, str):
            said = "the same" if used == promised else "another one"
            message = f"{kind}: {name} '{promised}' is promised, the mechanism's is {said}"
            yield Check(f"{kind}: parameter {name}", used == promised, message)
            continue
        passed = is_number(used) and used == promised
        shown = f"{used:g}" if is_number(used) else "not a number"
        message = f"{kind}: {name} = {promised:g} is promised, the mechanism's {name} is {shown}"
        yield Check(f"{kind}: parameter {name}", passed, message, promised, used if is_number(used) else None)


def _is_left_out(name: str, claims: Claims) -> bool:
    """Whether a manifest lacks a setting that its mechanism states: a level that is promised would have any digits.

    Shares of values in classes that are released as buckets have another level there.
    """
    has_name = name in PARAMETERS.get(claims.mechanism, {})
    is_bucketed = claims.perturbation is not None and claims.perturbation.kind == BUCKETED
    return has_name and not (is_bucketed and name == "l")


_ONLY_FOR_A_PROMISE = tuple(
    dict.fromkeys(
        [*(own.level.name for own in GUARANTEES.values() if own.shorthand), "c", "epsilon", "max_unique_fraction"]
    )
)
"""Settings that a mechanism has only where it promises what they are the level of."""


def _asked_alone(claims: Claims) -> list[str]:
    """Levels among the mechanism's settings that are not promised: readers could take a setting for a promise."""
    given = [name for name in _ONLY_FOR_A_PROMISE if claims.parameters.get(name) is not None]
    return [
        name for name in given if not any(_is_level_of(promise.guarantee, name, claims) for promise in claims.promises)
    ]


def _is_level_of(guarantee: Guarantee, name: str, claims: Claims) -> bool:
    """Whether a setting is the level of a promise; in buckets a largest share of α is a diversity of 1/α."""
    if isinstance(guarantee, BucketDiversity) and name == "alpha" and is_number(claims.parameters[name]):
        return bool(guarantee.l * claims.parameters[name] >= 1 - ROUNDING)
    return getattr(guarantee, name, None) is not None


def check_audited(promise: Promise, found: float) -> Check:
    """Whether a level is the one that the manifest gives as audited; rounded where it rests on the original."""
    kind, stated = promise.guarantee.name, promise.audited
    name = f"{kind}: audited level"
    if stated is None:
        return Check(name, False, f"{kind}: the manifest gives no audited level", None, _in_json(found))
    is_rounded = promise.guarantee.rests_on_original
    passed = agrees_in_three_digits(stated, found) if is_rounded else abs(stated - found) <= ROUNDING
    message = f"{kind}: the manifest gives {stated:.6g} as audited, found {found:.6g}"
    return Check(name, passed, message, stated, _in_json(found))


def _in_json(level: float) -> float | str:
    """Give a level as JSON can hold it, which has no infinite number."""
    return level if math.isfinite(level) else str(level)
