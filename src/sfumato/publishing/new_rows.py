"""New rows in the form of a release that was published: by its rules, or by its recoding, which is found again.

A manifest says by a rule how 0/1 features are computed; columns without a rule are as they were. How rows were divided
into groups, and which levels of hierarchies were taken, follows from rows that were never released and is in no
manifest: whoever has the original makes the same release again and takes the recoding from it (decision 66).
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.atomic import check_writable, write_atomically
from sfumato.audit.claims import ClaimedRecoding
from sfumato.audit.reading.values import evaluate as evaluate_rule
from sfumato.errors import InputError, InvalidParameterError, ManifestError, OutputError, SchemaError
from sfumato.manifest import AnyTable, Manifest, manifest_digest
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.mechanisms.drop_in.typical import TYPICAL
from sfumato.mechanisms.hierarchies.hierarchy import ROOT
from sfumato.mechanisms.new_rows import RecodingTransformer, in_form_of
from sfumato.progress import Progress
from sfumato.project.keys import ReleaseKey
from sfumato.publishing.proposals.in_memory import with_labels
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import AS_IS, INTERVAL, MISSING, ONE_OF, Feature
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.io.formats import writable_format_of
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.io.write import write_table
from sfumato.table.preparing.declared import Preparation
from sfumato.table.preparing.prepared import prepared
from sfumato.table.row_order import AS_READ

UnknownRule = Literal["refuse", "generalize"]
"""What becomes of values that a recoding knows nothing of: an error, or a cell that says nothing."""
Rows = NDArray[np.bool_]
_FEATURE_RULES = (AS_IS, ONE_OF, INTERVAL, MISSING)
_ROWS_NAMED = 10
_AS_THEY_ARE = "take new rows as they are: what was learned from the release reads them"
NO_GUARANTEE = (
    "no guarantee holds for these rows: k is not promised for them. Use them to test what was learned from the "
    "release; to publish them, make a release of them"
)


def check_can_be_applied(manifest: Manifest, entries: Mapping[str, Any]) -> None:
    """Refuse a manifest that was changed, or whose release has no form that a single new row can be brought into.

    Parameters
    ----------
    entries : mapping
        The same as plain data.

    Raises
    ------
    ManifestError
        If the digest does not fit.
    InvalidParameterError
        If values were moved between rows, columns hold what follows from a key, or cells are typical values.
    """
    if manifest_digest(entries) != entries.get("digest"):
        problem = "was changed: its digest does not fit"
        raise ManifestError(problem, hint="ask the publisher for the manifest of the release")
    if any(asked.is_keyed for asked in manifest.preparations):
        problem = "got that of a release with pseudonyms or shifted dates, which new rows cannot have without its key"
        raise InvalidParameterError("the manifest", problem, allowed="one without them")
    if any(recoding["rule"] == TYPICAL for recoding in manifest.recodings):
        problem = "got that of a release of typical values, whose columns and types are the original's"
        allowed = "one of ranges, sets or labels"
        raise InvalidParameterError("the manifest", problem, allowed=allowed, hint=_AS_THEY_ARE)
    name, done = manifest.mechanism["name"], manifest.perturbation or {}
    if done.get("kind") == "bucketed":
        problem = f"got one of {name}, which moves values between rows: a single row has no such form"
        allowed = "one of a release that recodes or selects columns"
        raise InvalidParameterError("the manifest", problem, allowed=allowed, hint=_AS_THEY_ARE)


def needs_recoding(manifest: Manifest) -> bool:
    """Whether the form of the release follows from groups of rows or from levels, which no manifest holds."""
    return any(recoding["rule"] not in _FEATURE_RULES for recoding in manifest.recodings)


# How new rows, and an original, are read: by what the manifest says about columns.


def columns_of(manifest: Manifest) -> dict[str, Column]:
    """Describe the columns of the original as far as a manifest tells: those released, and who is a person."""
    tokens = manifest.missing_tokens_by_column
    made = {str(recoding["name"]): recoding for recoding in manifest.recodings}
    found: dict[str, Column] = {}
    for entry in manifest.output["columns"]:
        name, by = str(entry["name"]), made.get(str(entry["name"]), {})
        if by.get("rule") in _FEATURE_RULES:
            continue  # its column of the original is not released, and of no stated kind
        domain = by.get("domain", entry.get("domain"))
        kind = Kind(by.get("kind", entry["kind"]))
        found[name] = Column(name, Role(entry["role"]), kind, tuple(domain) if domain else None)
    persons = [promise.unit for promise in manifest.promised() if promise.by_persons]
    kept = (manifest.input or {}).get("one_row_per_person")
    for person in [*persons, kept["column"] if kept else None]:
        if person:
            found[str(person)] = Column(str(person), Role.PERSON)
    return {name: replace(column, missing=tokens.get(name)) for name, column in found.items()}


def read_described(
    path: str,
    options: ReadOptions,
    columns: Mapping[str, Column],
    missing: Sequence[str],
    preparations: Sequence[Preparation] = (),
) -> Table:
    """Read a file whose columns are described; others are read as they are and count as identifiers.

    Parameters
    ----------
    columns : mapping of str to Column
        As they are when they are prepared.
    preparations : sequence of Preparation
        What is done to columns right after they are read.

    Raises
    ------
    InputError, SchemaError
        If it cannot be read, or is not as described.
    """
    if path == "-":
        raise InvalidParameterError("the new rows", "got '-'", allowed="a file")
    if preparations:
        before = {**columns, **{asked.column: _as_read(asked, columns) for asked in preparations}}
        raw = read_described(path, options, before, missing)
        held = [asked for asked in preparations if asked.column in raw.schema]
        return prepared(raw, held).coded_part
    options = replace(options, missing=tuple(missing), mixed_as_text=True)
    seen = read_table(path, options=replace(options, complete_rows_only=False))
    if not isinstance(seen, Table):
        problem = "is a sparse 0/1 table, which is not recoded: its features are selected"
        raise InputError(problem, path=path, hint="take the columns that the manifest names")
    listed = [columns.get(c.name, Column(c.name, Role.IDENTIFIER, c.kind)) for c in seen.schema]
    # An order that no released cell shows is in no manifest; the release was made by the one that was recognised.
    listed = [
        replace(own, kind=c.kind, domain=c.domain, is_order_recognised=True)
        if c.is_order_recognised and own.kind is Kind.CATEGORICAL and own.role is not Role.IDENTIFIER
        else own
        for own, c in zip(listed, seen.schema, strict=True)
    ]
    if all(column.kind is seen.schema[column.name].kind and column.missing is None for column in listed):
        described = seen.with_schema(Schema.of(listed, tuple(missing)))
        return described.without_incomplete_rows() if options.complete_rows_only else described
    table = read_table(path, schema=Schema.of(listed, tuple(missing)), options=options)
    if not isinstance(table, Table):
        raise AssertionError
    return table


def _as_read(asked: Preparation, columns: Mapping[str, Column]) -> Column:
    """Describe a column before it is prepared: what is done to it tells its kind."""
    kind = Kind.DATE if asked.age_at is not None else Kind.NUMERIC if asked.changes_numbers else Kind.CATEGORICAL
    return replace(columns.get(asked.column, Column(asked.column, Role.IDENTIFIER)), kind=kind, domain=None)


def read_original_of(path: str, options: ReadOptions, manifest: Manifest) -> Table:
    """Read the file that a release of recoded values was made of; all about its columns is in the manifest.

    Every column that such a release does not have was withheld.
    """
    from sfumato.table.persons import one_row_per_person

    options = replace(options, complete_rows_only=manifest.missing.get("rows") == "dropped")
    asked = manifest.preparations
    table = read_described(path, options, columns_of(manifest), manifest.missing_tokens, asked)
    kept = (manifest.input or {}).get("one_row_per_person")
    if not kept:
        return table
    left = one_row_per_person(table, kept["rule"])
    if not isinstance(left, Table):
        raise AssertionError
    return left


# By the rules of the manifest.


def zero_one(feature: Feature, column: CodedColumn) -> tuple[CodedColumn, Rows]:
    """Compute a binary feature of new rows; 0 for a value to which its rule cannot be applied.

    Says as well which rows have such a value.
    """
    rule = ClaimedRecoding(**asdict(feature))
    found = evaluate_rule(rule, column.values)
    if found is None:
        one_by_one = [evaluate_rule(rule, column.values[i : i + 1]) for i in range(column.n_distinct)]
        is_unknown = np.array([value is None for value in one_by_one])
        found = np.array([0 if value is None else value[0] for value in one_by_one], dtype=np.int8)
    else:
        is_unknown = np.zeros(column.n_distinct, dtype=np.bool_)
    return column.recode(pa.array(found, pa.int8()), Kind.NUMERIC), np.asarray(is_unknown[column.codes])


def by_rules(manifest: Manifest, table: Table) -> Table:
    """Compute the released columns of new rows by the rules in a manifest; columns without one are as they are.

    Raises
    ------
    InputError
        If a rule cannot be applied to a value; 0/1 has no coarser cell that such a row could get.
    SchemaError
        If a released column follows from more than the row.
    """
    rules = {str(r["name"]): r for r in manifest.recodings}
    for name, recoding in rules.items():
        if recoding["rule"] not in _FEATURE_RULES:
            problem = f"is recoded by {manifest.mechanism['name']} in a way that the manifest does not hold"
            raise SchemaError(problem, column=name, hint="give the original or the released file", remedy=("original",))
    columns: dict[str, CodedColumn] = {}
    described: list[Column] = []
    unknown: dict[str, Rows] = {}
    for entry in manifest.output["columns"]:
        name, role = str(entry["name"]), Role(entry["role"])
        if name in rules:
            stated: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in rules[name].items()}
            feature = Feature(**stated)
            columns[name], is_unknown = zero_one(feature, table[feature.column])
            unknown[feature.column] = unknown.get(feature.column, is_unknown) | is_unknown
            described.append(Column(name, role, Kind.NUMERIC))
        elif role is not Role.TARGET or name in table.schema:
            columns[name] = table[name]
            described.append(replace(table.schema[name], role=role))
    if any(rows.any() for rows in unknown.values()):
        raise unknown_values(unknown, table, hint="correct or leave out these rows: a 0/1 column has no coarser cell")
    return replace(table, schema=Schema.of(described, table.schema.missing), columns=columns)


# By the recoding of the original, which is made again.


def recoding_of(
    original: AnyTable,
    mechanism: Mechanism,
    manifest: Manifest,
    key: ReleaseKey | None = None,
    *,
    progress: Progress | None = None,
) -> tuple[Any, Table]:
    """Make a release again; gives the recoding by which that was done, and the released rows.

    Parameters
    ----------
    mechanism : Mechanism
        With the settings of the manifest.
    key : ReleaseKey or None
        Of the release, by which the commitment to the original is checked.

    Raises
    ------
    InputError
        If the original is not the one that the release was made of, or the release made again is another one.
    InvalidParameterError
        If the mechanism does not recode.
    """
    place = original.source.name if original.source else None
    commitment = (manifest.input or {}).get("commitment")
    sha256 = original.source.sha256 if original.source else ""
    if key is not None and commitment is not None and key.commitment(sha256) != dict(commitment):
        problem = "is not the file that the release was made of: the commitment in the manifest does not fit"
        raise InputError(problem, path=place, hint="give the original of this release")
    if not isinstance(mechanism, RecodingTransformer):
        problem = f"got one of {manifest.mechanism['name']}, whose coarsened columns cannot be made of new rows"
        raise InvalidParameterError("the manifest", problem, allowed="one of a mechanism that recodes")
    made = mechanism.release(original, progress=progress)
    if _written_sha256(made, original, manifest) != manifest.output.get("sha256"):
        problem = "a release made of it with the settings of the manifest is not the release of the manifest"
        hint = (
            "give the original, project file, hierarchies and version that the release was made with; one that a time "
            "limit ended, or that took the levels of an earlier one, cannot be made again"
        )
        raise InputError(problem, path=place, hint=hint)
    return mechanism.recoding_, made.table.coded_part


def _written_sha256(made: Release, original: AnyTable, manifest: Manifest) -> str:
    """Hash a release as it would be written in the format and order of a manifest."""
    if manifest.output.get("order") == AS_READ:
        made = made.with_order_kept()
    output_format, written = str(manifest.output["format"]), io.BytesIO()
    is_escaped = bool(manifest.output.get("escaped_formulas"))
    made, labels = with_labels(made, original.source, output_format)
    rows = made.table.take(made.order(output_format))
    write_table(rows, written, output_format, labels, escape_formulas=is_escaped)
    return hashlib.sha256(written.getbuffer()).hexdigest()


def by_recoding(recoding: Any, described: Schema, table: Table, unknown: UnknownRule = "refuse") -> Table:
    """Bring new rows into the form of a release by its recoding; exactly as an evaluation treats test rows.

    Parameters
    ----------
    recoding : Recoding or LevelRecoding
    described : Schema
        Of the original.
    unknown : {"refuse", "generalize"}
        What becomes of values that the recoding knows nothing of: an error, or the cell ``*``, which says nothing. The
        other cells of such a row are those that an evaluation gives it.

    Raises
    ------
    InputError
        If there are such values and they are refused.
    """
    recoded = in_form_of(recoding, described, table)
    return with_unknown(recoded, recoding.unknown(table), unknown, table)


def shows_more(applied: Table, released: Table, recoding: Any) -> str:
    """Say of which columns new rows show cells that the release does not; empty where there are none.

    Such cells follow from the original all the same: leaves of a tree whose released cells are wider, labels of levels
    at which no row was released.
    """
    is_more = getattr(recoding, "has_parts_of_its_own", False)
    more = [
        name
        for name in recoding.names
        if is_more or set(applied[name].values.to_pylist()) - set(released[name].values.to_pylist()) - {ROOT, None}
    ]
    if not more:
        return ""
    said = f"cells of {', '.join(repr(name) for name in more)} are not those of the release"
    return f"{said} and tell more about the original: keep the written file as private as it"


def with_unknown(recoded: Table, unknown: Mapping[str, Rows], rule: UnknownRule, table: Table) -> Table:
    """Refuse unknown values, or put ``*`` in their place."""
    found = {name: rows for name, rows in unknown.items() if rows.any()}
    if not found:
        return recoded
    if rule == "refuse":
        hint = "correct or leave out these rows, or let these cells be '*', which says nothing"
        raise unknown_values(found, table, hint=hint, remedy=("unknown_values",))
    columns = dict(recoded.columns)
    for name, rows in found.items():
        own = columns[name]
        values = pa.array([*as_text(own.values).to_pylist(), ROOT], pa.string())
        codes = np.where(rows, len(own.values), own.codes).astype(np.int32)
        columns[name] = CodedColumn(codes, values).recode(values)
    return replace(recoded, columns=columns)


def unknown_values(unknown: Mapping[str, Rows], table: Table, *, hint: str, remedy: Sequence[str] = ()) -> InputError:
    """Say in which columns and rows there are values that a recoding knows nothing of, never which values."""
    said = [f"'{name}' in {rows_in_words(np.flatnonzero(rows) + 1)}" for name, rows in unknown.items() if rows.any()]
    problem = f"has values that the release's recoding does not know: {', '.join(said)} (row 1 is the first of data)"
    return InputError(problem, path=table.source.name if table.source else None, hint=hint, remedy=tuple(remedy))


def rows_in_words(numbers: NDArray[np.intp]) -> str:
    """Count rows and name the first ones.

    Examples
    --------
    >>> rows_in_words(np.array([4, 17])), rows_in_words(np.arange(1, 13))
    ('2 rows (4, 17)', '12 rows (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)')
    """
    named = ", ".join(f"{number}" for number in numbers[:_ROWS_NAMED])
    more = ", …" if len(numbers) > _ROWS_NAMED else ""
    return f"{len(numbers):,} row{'s' if len(numbers) > 1 else ''} ({named}{more})"


# The file.


def check_output(target: Path, inputs: Iterable[str | Path], *, force: bool) -> None:
    """Refuse an output that is one of the inputs, or that cannot be written.

    Raises
    ------
    OutputError
        If it is.
    """
    if str(target) == "-":
        raise InvalidParameterError("output", "got '-'", allowed="a file", hint="name one", remedy=("output",))
    writable_format_of(target)
    for path in map(Path, inputs):
        if target.exists() and path.exists() and target.samefile(path):
            problem = "is one of the inputs, which are never overwritten"
            raise OutputError(problem, path=target, hint="choose another output path", remedy=("output",))
    check_writable(target, force=force)


def write_rows(table: Table, target: Path, *, force: bool = False) -> None:
    """Write rows in their order, at once or not at all."""
    content = io.BytesIO()
    write_table(table, content, writable_format_of(target))
    write_atomically(target, content.getvalue(), force=force)
