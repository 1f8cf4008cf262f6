"""Releases and audits of tables larger than memory in one call: files, database tables and frames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.audit.checks import AuditReport
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.engines.persons import one_row_each
from sfumato.engines.protocol import Rows
from sfumato.errors import InvalidParameterError
from sfumato.progress import Progress
from sfumato.publishing.manifest_file import manifest_path_for
from sfumato.publishing.propose import prepared_rows, propose, why_written_whole
from sfumato.publishing.publish import Published, check_targets, publish
from sfumato.publishing.reaudit import audit_published, open_original
from sfumato.schema import Role, Schema
from sfumato.table.coding import Source
from sfumato.table.io.frames import library_of, native_frame
from sfumato.table.io.read import DEFAULT_OPTIONS, ReadOptions
from sfumato.table.preparing.declared import preparations_of


def release_large(
    source: Any,
    mechanism: Any,
    path: str | Path,
    *,
    schema: Schema | None = None,
    roles: Mapping[str, Role | str] | None = None,
    confirmed: Sequence[str] = (),
    memory: str = "1GB",
    options: ReadOptions = DEFAULT_OPTIONS,
    force: bool = False,
    keep_order: bool = False,
    prepare: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Published:
    """Release a table that may be larger than memory: counted, written and audited block by block.

    The release has the bytes and the manifest that :func:`sfumato.release` and :func:`sfumato.publish` give of a table
    in memory, unless the distinct rows do not fit: the manifest then states a sample, the levels from which on was
    searched, or how many features were offered.

    Parameters
    ----------
    source : path, frame or LargeTable
        A CSV, TSV or Parquet file; or a DuckDB relation, an Ibis table, a lazy polars frame, a pyarrow dataset, or any
        frame in memory. A query is run about six times and must give the same rows in the same order each time. The
        rows of a Spark DataFrame stay on its cluster, which writes a folder of Parquet files.
    mechanism : object
        One that needs no more than counts, such as :class:`sfumato.GlobalRecoder`; any other takes the rows into memory
        if they fit.
    path : path
        Of the release, a CSV, TSV or Parquet file; its manifest stands beside it.
    schema : Schema or None
        Describes every column; ``None`` guesses kinds and makes every column a quasi-identifier.
    roles : mapping of str to Role or None
        Roles of some columns, in place of those of the schema.
    confirmed : sequence of str
        Columns that may be released although their values look as if they named people.
    memory : str
        What may be kept at a time, such as ``"800MB"``; a database keeps to its own limit.
    options : ReadOptions
        How a file is read, and which row of each person is kept.
    force : bool
        Whether files that stand there are replaced. Do not name one that a frame reads from: only a path that is
        given as the source is known to be the input.
    keep_order : bool
        Leave the rows in the order of the source, see :func:`sfumato.release`. A cluster keeps no order.
    prepare : mapping or None
        What is done to columns first, see :func:`sfumato.release`.
    progress : callable or None
        Called as ``progress(done, total, what)``.

    Raises
    ------
    InvalidParameterError
        If a setting is not allowed.
    TooLargeError
        If the mechanism or the format of the output needs all rows in memory, and they do not fit.
    InputError, SchemaError
        If the table cannot be read, or changes meanwhile.
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise.
    AuditFailedError
        If the audit does not confirm the release; nothing is written.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> from sfumato import GlobalRecoder
    >>> people = pa.table({"sex": ["f", "m", "f", "m"], "ill": ["no", "no", "yes", "no"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = release_large(people, GlobalRecoder(k=2), f"{folder}/out.csv", roles={"ill": "sensitive"})
    >>> done.audit.passed, done.release.manifest.guarantees[0]["audited"]
    (True, 2)
    """
    allowed, target = Memory.of(memory), Path(path)
    every = replace(options, one_row_per_person=None)  # one is kept when the roles are known
    original = _opened(source, target, schema, allowed, every, force=force, progress=progress)
    described = original.with_schema(with_roles(original.schema, roles).with_confirmed(confirmed))
    if options.one_row_per_person is not None:
        described = one_row_each(described, options.one_row_per_person, allowed.n_bytes)
    ready = prepared_rows(described, preparations_of(prepare or {}), allowed, progress=progress)
    whole = why_written_whole(target)
    proposal = propose(ready, mechanism, allowed, all_rows_for=whole, progress=progress)
    proposal = proposal.with_order_kept() if keep_order else proposal
    return publish(proposal, target, force=force, memory=allowed, progress=progress)


def audit_large(
    path: str | Path,
    *,
    original: Any = None,
    manifest_path: str | Path | None = None,
    schema: Schema | None = None,
    roles: Mapping[str, Role | str] | None = None,
    memory: str = "1GB",
    options: ReadOptions = DEFAULT_OPTIONS,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit a release on disk that may be larger than memory, against its original if that is given.

    Parameters
    ----------
    path : path
        Of the release.
    original : path, frame, LargeTable or None
        Table that it came from, as :func:`release_large` takes it.
    manifest_path : path or None
        ``None``: beside the release.
    schema, roles
        Of the original, where the roles that the manifest states are to be checked too.
    memory, options, progress
        See :func:`release_large`; the options are those by which the original is read.
    """
    allowed = Memory.of(memory)
    stated = Path(manifest_path) if manifest_path is not None else manifest_path_for(Path(path))
    opened: Rows | None = None
    if original is not None and schema is None and not isinstance(original, Rows):
        opened = open_original(original, options, allowed.n_bytes, manifest=stated, progress=progress)
    elif original is not None:
        opened = _opened(original, None, schema, allowed, options, progress=progress)
    return audit_published(
        path,
        stated,
        memory=allowed,
        original=None if opened is None else opened.with_schema(with_roles(opened.schema, roles)),
        check_roles=schema is not None or tuple(roles or ()),
        progress=progress,
    )


def _opened(
    source: Any,
    target: Path | None,
    schema: Schema | None,
    memory: Memory,
    options: ReadOptions,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Rows:
    """Open a table where its rows are, if its release may be written to the target."""
    if isinstance(source, Rows):
        return source if schema is None else source.with_schema(schema.keep(source.schema.names()))
    if library_of(native_frame(source)) == "pyspark":
        from sfumato.publishing.cluster_folder import open_frame  # Spark is there only where somebody has a cluster

        return open_frame(native_frame(source), target, memory, schema, options, force=force)
    if target is not None:
        named = Source(os.fspath(source), "") if isinstance(source, str | os.PathLike) else None
        check_targets(target, manifest_path_for(target), named, force=force)
    return open_large(source, memory=memory.n_bytes, schema=schema, options=options, progress=progress)


def with_roles(schema: Schema, roles: Mapping[str, Role | str] | None) -> Schema:
    """Give columns the roles named, also as texts.

    Raises
    ------
    InvalidParameterError
        If there is no such role.
    """
    try:
        known = {name: Role(role) for name, role in (roles or {}).items()}
    except ValueError:
        allowed = f"roles among {', '.join(Role)}"
        raise InvalidParameterError("roles", "got a role of another name", allowed=allowed) from None
    return schema.with_roles(known)
