"""Read a release from disk again, exactly as its manifest describes it, and audit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.audit.auditor import AuditorHas
from sfumato.audit.claims import FLIPPED, SORTED, SYNTHETIC, read_claims
from sfumato.audit.evidence import with_names_of_files
from sfumato.audit.in_blocks import OUT_OF_CORE, audit_rows
from sfumato.audit.original.assignment import TooManyPairsError, assigned_rows
from sfumato.audit.original.cell_rules import cell_rules, codes_of
from sfumato.audit.original.offered_rows import offered_rows
from sfumato.audit.reading.columns import Columns, Declared
from sfumato.audit.verify import AuditReport, audit_release
from sfumato.engines.blocks.rows import LargeTable, open_large
from sfumato.engines.memory_limit import Memory, cells_in_memory
from sfumato.engines.protocol import Rows, check_fits_in_memory
from sfumato.errors import InputError, ManifestError, ManifestRefusedError, SchemaError
from sfumato.manifest import AnyTable, Manifest
from sfumato.manifest_schema import parsed_manifest
from sfumato.progress import Progress, in_rows
from sfumato.project.keys import ProjectKey, ReleaseKey, key_of_manifest
from sfumato.publishing.manifest_file import manifest_text
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.io.formats import STATISTICS, WRITABLE
from sfumato.table.io.formulas import without_escapes
from sfumato.table.io.parquet import refuse_more_than_parts
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.preparing.declared import Preparation
from sfumato.table.preparing.prepared import prepared
from sfumato.table.reading.columns import is_format


def audit_published(
    table_path: str | Path,
    manifest_path: str | Path,
    *,
    original: AnyTable | Rows | None = None,
    memory: Memory | None = None,
    key: bytes | None = None,
    population: AnyTable | None = None,
    check_roles: Declared = False,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit a release that is on disk, with all hashes; the roles of the original only where it was described.

    Parameters
    ----------
    original : Table, BinaryTable, Rows or None
        Rows may still be on a cluster.
    memory : Memory or None
        With a limit rows are read in blocks, part files that a cluster has written too; what cannot be judged so is
        judged in memory if it fits. ``None``, or an original in memory: everything is held in memory.
    key : bytes or None
        The release's, by which a commitment to the original is checked.
    population : Table or None
        The table that k-map and δ-presence are promised about.
    """
    manifest, entries = read_manifest(Path(manifest_path))
    source = None if original is None else original.source
    sha256 = None if source is None else source.sha256
    if memory is not None and (original is None or isinstance(original, Rows)):
        rows = original
        auditing = in_rows(progress, manifest.output["rows"], "rows audited")
        opened = open_released(table_path, manifest, memory.n_bytes, progress=auditing)
        has = AuditorHas(original=rows, original_sha256=sha256, key=key, roles=check_roles)
        if population is None:
            digest = opened.source.sha256
            report = audit_rows(
                opened, entries, has, memory=memory.n_bytes, progress=auditing, released_sha256=digest, file=table_path
            )
            if not needs_all_rows(report) or not _fit_in_memory(memory, opened, rows):
                return with_names_of_files(report, entries, table_path, source)
        what = "this audit needs", "leave out what is compared with the release"
        check_fits_in_memory(opened.n_rows, len(opened.schema), memory.n_bytes, *what, opened.place)
        original = None if rows is None else rows.in_memory(memory.n_bytes, *what, auditing)
    if isinstance(original, Rows):
        raise AssertionError
    released = read_as_written(table_path, manifest)
    report = audit_release(
        released,
        entries,
        AuditorHas(
            original=original,
            original_sha256=sha256,
            key=key,
            project_key=_shared_key(original),
            register=population,
            roles=check_roles,
        ),
        released_sha256=released.source.sha256 if released.source else None,
        file=table_path,
    )
    return with_names_of_files(report, entries, table_path, source)


def needs_all_rows(report: AuditReport) -> bool:
    """Whether an audit in blocks says that it has not checked what the manifest promises."""
    return any(one.name == OUT_OF_CORE and not one.passed for one in report.checks)


def _fit_in_memory(memory: Memory, *tables: Rows | None) -> bool:
    return all(table is None or table.n_rows * len(table.schema) <= cells_in_memory(memory.n_bytes) for table in tables)


def _shared_key(original: AnyTable | None) -> bytes | None:
    """Take the key for what all releases of a project share from an original that was prepared with it."""
    done = None if original is None else original.coded_part.prepared
    return None if done is None or done.keys is None else done.keys.project


def key_of_release(
    manifest_path: str | Path, *, project: str | Path | None = None, file: str | Path | None = None
) -> bytes | None:
    """Give the key by which an audit checks the commitment of a published release.

    Parameters
    ----------
    project : path or None
        Project file of the release; the key is made of the project's, if there is one.
    file : path or None
        File with the release's key, as its auditor has it.

    Raises
    ------
    InputError
        If a file with a key cannot be used, or is the key of another release.
    """
    _, entries = read_manifest(Path(manifest_path))
    if project is not None:
        _refuse_without_commitment(Path(project).parent, entries)
    if file is None:
        found = key_of_manifest(Path(project).parent, entries) if project is not None else None
        return None if found is None else found.secret
    own = ReleaseKey.load(file)
    commitment = (entries.get("input") or {}).get("commitment")
    if commitment is None:
        problem = "there is nothing to check with it: the manifest has no commitment to the original"
        raise InputError(problem, path=file, hint="leave the key out")
    if commitment["release"] != own.release:
        problem = "is the key of another release than the manifest's"
        raise InputError(problem, path=file, hint="ask the publisher for the key of this release")
    return own.secret


def _refuse_without_commitment(folder: Path, entries: Mapping[str, Any]) -> None:
    """Refuse a release of a project that has a key, unless it commits to its original, as far as that is a file."""
    stated = entries["input"]
    is_file = stated is not None and stated["format"] != "memory" and "parties" not in stated
    if is_file and stated["commitment"] is None and ProjectKey.load(folder) is not None:
        problem = "the manifest commits to no original, which every release of this project does"
        raise ManifestRefusedError(problem, hint="it was changed, or made without the project: release again")


def read_manifest(path: Path) -> tuple[Manifest, dict[str, Any]]:
    """Read a manifest, as an object and as the plain entries that the audit judges."""
    text = manifest_text(path)
    return Manifest.from_json(text, path=str(path)), parsed_manifest(text)


def read_released(path: str | Path, manifest: Manifest) -> AnyTable:
    """Read the cells of a released file: as they are written, without apostrophes that keep formulas from being run."""
    table = read_as_written(path, manifest)
    if manifest.output.get("escaped_formulas") is not True:
        return table
    return table.with_coded_part(without_escapes(table.coded_part))


def read_as_written(path: str | Path, manifest: Manifest) -> AnyTable:
    """Read a released file the way its manifest describes it: no column and no value is guessed.

    A missing cell has one spelling in a release, see :func:`_spelled`: every other text is a value, so that rows are
    told apart by what is written there, whatever texts the manifest lists as missing.
    """
    refuse_more_than_parts(path)
    columns = _released_columns(manifest)
    options = _released_options(manifest)
    tokens = options.missing
    try:
        if options.format == "libsvm":
            return _named(read_table(path, options=options), columns, tokens)
        return read_table(path, schema=Schema.of(columns, tokens), options=options)
    except (SchemaError, InputError):
        return read_table(path, options=options)  # not the table described: the audit says in which way


def beside_original(released: AnyTable, original: AnyTable, manifest: Manifest) -> AnyTable | None:
    """Rows of a release that was read from its file, put into the order of the original that it was made of.

    Sorted rows are given original rows of their own that agree with them in all columns: one way in which the release
    may have been made, see ``audit.original.assignment``. Rows that are in the original's order already are left as
    they are, and so are synthetic rows, which are nobody's. ``None`` where nothing tells which row is whose: cells were
    flipped, or do not follow from this original.
    """
    claims = read_claims(manifest.to_dict())
    done = original.coded_part.prepared
    known = {asked.column for asked in done.preparations if asked.is_keyed} if done is not None else set()
    claims = replace(
        claims, unkeyed=frozenset(n for n, c in claims.prepared.items() if c.has("pseudonym", "shift")) - known
    )
    kind = claims.perturbation.kind if claims.perturbation else None
    if claims.output_order != SORTED or kind == SYNTHETIC:
        return released
    if kind == FLIPPED:
        return None
    after, before = Columns(released), Columns(original)
    moved = claims.perturbation.moved if claims.perturbation else frozenset()
    rules = [rule for rule in cell_rules(after, before, claims) if rule.name not in moved]
    if not rules or any(rule.problem for rule in rules):
        return None
    rows = offered_rows(before, claims).rows
    try:
        own = assigned_rows(
            rules,
            [codes_of(before, rule.column)[rows] for rule in rules],
            [codes_of(after, rule.name) for rule in rules],
        )
    except TooManyPairsError:
        return None
    return None if own is None else released.take(np.argsort(own))


def open_released(path: str | Path, manifest: Manifest, memory: int, *, progress: Progress | None = None) -> LargeTable:
    """Open a released file that is larger than memory, the way its manifest describes it."""
    refuse_more_than_parts(path)
    options = _released_options(manifest)
    try:
        schema = Schema.of(_released_columns(manifest), options.missing)
        return open_large(path, memory=memory, schema=schema, options=options, progress=progress)
    except (SchemaError, InputError):  # not the table described: the audit says in which way
        return open_large(path, memory=memory, options=options, progress=progress)


def open_original(
    path: str | Path,
    options: ReadOptions,
    memory: int,
    *,
    manifest: Manifest | Path | None = None,
    progress: Progress | None = None,
) -> LargeTable:
    """Open the table that a release came from; what means missing there the reader says, never the manifest."""
    return open_large(path, memory=memory, options=original_options(options, manifest), progress=progress)


def _released_options(manifest: Manifest) -> ReadOptions:
    output_format = manifest.output["format"]
    if output_format not in WRITABLE:
        problem = "names a format of the released file that this program does not know"
        raise ManifestRefusedError(problem, hint=f"known: {', '.join(WRITABLE)}")
    content_format = output_format.removesuffix(".gz")
    delimiter = {"csv": ",", "tsv": "\t"}.get(content_format)
    spelled = _spelled(manifest, manifest.missing_tokens)
    encoding = None if content_format in STATISTICS else "utf-8"
    return ReadOptions(
        format=content_format, encoding=encoding, delimiter=delimiter, missing=spelled, guess_formats=False
    )


def _spelled(manifest: Manifest, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Give the one text by which a release spells a missing cell; a file that has nulls needs none."""
    if manifest.output.get("format") in ("parquet", "jsonl", "jsonl.gz", *STATISTICS):
        return ()
    if manifest.output.get("format") == "excel":  # where a row of nothing would be no row, and gets a token
        return ("", next((token for token in tokens if token), ""))
    return ("",) if "" in tokens or not tokens else tokens[:1]


def _released_columns(manifest: Manifest) -> list[Column]:
    columns = [_column(entry) for entry in manifest.output["columns"]]
    return [c if c.missing is None else replace(c, missing=_spelled(manifest, c.missing)) for c in columns]


def _column(entry: Mapping[str, Any]) -> Column:
    domain, missing = entry.get("domain"), entry.get("missing")
    return Column(
        entry["name"],
        Role(entry["role"]),
        Kind(entry["kind"]),
        domain=tuple(domain) if domain else None,
        missing=None if missing is None else tuple(missing),
    )


def _named(table: AnyTable, columns: Sequence[Column], tokens: tuple[str, ...]) -> AnyTable:
    """Give back the names that a libsvm file cannot hold: features are numbered there in the manifest's order."""
    if not isinstance(table, BinaryTable):
        raise AssertionError
    names = [c.name for c in columns if c.role.is_one_of([Role.QUASI_IDENTIFIER])]
    beside = [c for c in columns if c.name not in names]
    numbered = {f"f{i}": name for i, name in enumerate(names, start=1)}
    if set(table.feature_names) != set(names) and set(table.feature_names) <= set(numbered):
        features = tuple(Feature(numbered[f.name], numbered[f.name]) for f in table.features)
        table = replace(table, features=features)
    held = table.companions
    if len(beside) == 1 == len(held.columns):
        (coded,) = held.columns.values()
        kind = next(iter(held.schema)).kind
        schema = Schema.of([replace(beside[0], kind=kind)], tokens)
        table = replace(table, companions=replace(held, schema=schema, columns={beside[0].name: coded}))
    return table


def read_original(path: Any, options: ReadOptions, manifest: Manifest | Path | None = None) -> AnyTable:
    """Read the table that a release came from; what means missing there the reader says, never the manifest."""
    return read_table(path, options=original_options(options, manifest))


def as_prepared(table: AnyTable, manifest: Manifest) -> tuple[AnyTable, list[str]]:
    """Prepare a table that somebody knows as the original of a release was, and say what cannot be done without a key.

    Pseudonyms are left out then, and dates stay the true ones.
    """
    asked = manifest.preparations
    if not asked or table.coded_part.prepared is not None:
        return table, []
    names = set(table.coded_part.schema.names())
    done = [one for one in asked if not one.is_keyed and one.column in names]
    notes = ["columns of the known table were prepared as the manifest says, before anything was compared"]
    for one in asked:
        if one.is_keyed and one.column in names:
            what = "pseudonyms" if one.pseudonym else "shifted dates"
            notes.append(f"'{one.column}' holds {what} in the release and its own values in the known table")
            done += [Preparation(one.column, drop=True)] if one.pseudonym else []
    return prepared(table, done), notes


def original_options(options: ReadOptions, manifest: Manifest | Path | None = None) -> ReadOptions:
    """Give the options by which an original is read to be compared: all its rows, mixed cells as text.

    Texts of a column for which the options name no format are read as the manifest says that they were, if it does:
    only a format that the door would not find by itself is said there.
    """
    said = stated_formats(manifest) if manifest is not None else {}
    stated = tuple((name, text) for name, text in said.items() if name not in dict(options.formats))
    return replace(
        options, complete_rows_only=False, one_row_per_person=None, mixed_as_text=True, stated_formats=stated
    )


def stated_formats(manifest: Manifest | Path) -> dict[str, str]:
    """By column the format in which a manifest says that its texts were read; nothing where it is no manifest."""
    try:
        stated = manifest if isinstance(manifest, Manifest) else read_manifest(manifest)[0]
    except ManifestError:
        return {}  # the audit says so
    read_as = (stated.input or {}).get("read_as", {})
    return {name: text for name, text in read_as.items() if is_format(text)}
