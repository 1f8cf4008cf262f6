"""``release`` and ``audit`` with ``--engine``: the rows stay on a Spark cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options import apply_roles, given_roles, progress_bar, read_options, with_given_roles
from sfumato.cli.out_of_core import described_as, refuse_open_guesses

if TYPE_CHECKING:
    from sfumato.audit.checks import AuditReport
    from sfumato.mechanisms.base import Release
    from sfumato.project.file import Project
    from sfumato.publishing.publish import Published
    from sfumato.rows.memory_limit import Memory
    from sfumato.rows.spark.table import ClusterTable
    from sfumato.schema import Role
    from sfumato.table.io.read import ReadOptions
    from sfumato.table.roles import ColumnGuess

DEFAULT_MEMORY = "1GB"
FEW_ROWS = 5_000_000
"""Below, the time that a cluster takes to start and to talk is more than all work on one machine."""
ENGINE_HELP = "Work on a Spark cluster, spark://host:port (Parquet); --memory is then the driver's, default 1GB."


@dataclass(frozen=True)
class _Order:
    """What is to be released, from a project file or from flags."""

    path: str
    mechanism: Any
    output: Path | None
    options: ReadOptions
    roles: dict[str, Role]
    project: Project | None = None


def release_on_cluster(
    data: str | None,
    project_path: Path,
    settings: dict[str, Any],
    engine: str,
    memory_text: str | None,
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Have a cluster count a table, write the release and audit it."""
    from sfumato.cli.summary import show_guesses
    from sfumato.publishing.spark import check_able_on_cluster, propose_on_cluster, publish_on_cluster
    from sfumato.rows.memory_limit import Memory
    from sfumato.rows.spark.master import Master
    from sfumato.rows.spark.session import spark_session

    memory = Memory.of(memory_text or DEFAULT_MEMORY)
    Master.of(engine)
    order = _order(data, project_path, settings)
    check_able_on_cluster(order.mechanism)
    _refuse_other_formats(order.path, order.options)
    target = None if dry_run else _checked_target(order, force=force)
    _say_if_few(_check_data(order))
    published: Published | None = None
    bar, progress = progress_bar("connecting to the cluster")
    with bar, spark_session(engine, memory=memory.n_bytes) as session:
        progress(0, 0, "values are counted by the cluster")
        original, guesses = _opened(session, order, memory)
        show_guesses(guesses)
        proposal = propose_on_cluster(original, order.mechanism, memory, progress=progress)
        if order.project is not None:
            proposal = replace(proposal, release=proposal.release.with_manifest(project_sha256=order.project.sha256))
        if target is not None:
            published = publish_on_cluster(proposal, target, memory, force=force, progress=progress)
    _show(published.release if published else proposal.release, published, as_json)


def _show(release: Release, published: Published | None, as_json: bool) -> None:
    from sfumato.cli.summary import show_release, show_verdict

    if as_json:
        click.echo(release.manifest.to_json(), nl=False)
    show_release(release)
    if published is None:
        click.echo("dry run: nothing was written; the promises were measured on the counts", err=True)
    else:
        show_verdict(published.audit)
        click.echo(f"wrote {published.table_path} and {published.manifest_path}", err=True)


def _order(data: str | None, project_path: Path, settings: dict[str, Any]) -> _Order:
    from sfumato.cli.release import merged_parameters, project_with_flags
    from sfumato.mechanisms.registry import build_mechanism
    from sfumato.project.file import DEFAULT_MECHANISM

    if data is None:
        project = project_with_flags(project_path, settings)
        mechanism = build_mechanism(str(project.mechanism), project.parameters)
        return _Order(str(project.data_path), mechanism, project.output, project.options, {}, project)
    name = settings["mechanism"] or DEFAULT_MECHANISM
    mechanism = build_mechanism(name, merged_parameters(name, {}, settings))
    output = Path(settings["output"]) if settings["output"] else None
    return _Order(data, mechanism, output, read_options(settings), given_roles(settings))


def _refuse_other_formats(path: str, options: ReadOptions) -> None:
    """Refuse what is no Parquet by its name, before a cluster is asked."""
    from sfumato.errors import InvalidParameterError
    from sfumato.table.io.formats import format_of

    found = options.format or ("parquet" if Path(path).is_dir() else format_of(path))
    if found != "parquet" or path == "-":
        allowed = "a Parquet file or a folder of such, which driver and workers see under the same path"
        raise InvalidParameterError("a table with --engine", "got another", allowed=allowed)


def _check_data(order: _Order) -> int:
    """Refuse data that the cluster would refuse, by what their files say of themselves; gives the number of rows."""
    from sfumato.publishing.out_of_core.proposal import columns_to_count
    from sfumato.rows.spark.table import check_cluster_file
    from sfumato.schema import Column, Schema
    from sfumato.table.io.parquet import StoredParquet

    n_rows, names = check_cluster_file(order.path, order.options, named=order.roles)
    if order.project is not None:
        schema = order.project.check_data(names, lambda: StoredParquet.of(order.path).sha256)
    else:
        is_whole = set(order.roles) == set(names)
        schema = Schema.of(Column(name, order.roles[name]) for name in names) if is_whole else None
    if schema is not None:
        columns_to_count(order.mechanism, schema)
    return n_rows


def _say_if_few(n_rows: int) -> None:
    """Say that one machine is faster, where it is."""
    if n_rows < FEW_ROWS:
        words = f"note: the table has {n_rows:,} rows. Below {FEW_ROWS:,} rows --memory without --engine is faster"
        click.echo(f"{words}: a cluster takes 19 to 25 times the CPU", err=True)


def _checked_target(order: _Order, *, force: bool) -> Path:
    from sfumato.errors import InvalidParameterError
    from sfumato.publishing.manifest_file import manifest_path_for
    from sfumato.publishing.spark import check_folder_targets

    if order.output is None:
        hint = "a name such as -o release.parquet; or try --dry-run"
        raise InvalidParameterError("output", "got none", allowed="given", hint=hint)
    check_folder_targets(order.output, manifest_path_for(order.output), [Path(order.path)], force=force)
    return order.output


def _opened(session: Any, order: _Order, memory: Memory) -> tuple[ClusterTable, list[ColumnGuess]]:
    """Open a table as a project describes it, or with the roles that are given and the others guessed."""
    from sfumato.rows.spark.table import open_cluster

    if order.project is not None:
        return _opened_project(session, order.project, memory), []
    options = replace(order.options, mixed_as_text=True)
    table = open_cluster(session, order.path, memory=memory.n_bytes, options=options)
    refuse_open_guesses(table, order.roles)
    described, guesses = apply_roles(table.outline, order.roles)
    return described_as(table, described), guesses


def _opened_project(session: Any, project: Project, memory: Memory) -> ClusterTable:
    from sfumato.rows.spark.table import open_cluster

    return project.opened_by(
        lambda schema: open_cluster(
            session, project.data_path, memory=memory.n_bytes, schema=schema, options=project.options
        )
    )


def verify_on_cluster(
    path: str,
    manifest_path: Path,
    original: str | None,
    project: str | None,
    options: ReadOptions,
    roles: dict[str, Role],
    engine: str,
    memory_text: str | None,
) -> AuditReport:
    """Have a cluster audit a release, beside its original if that is given."""
    from sfumato.project.file import load_project
    from sfumato.publishing.reaudit import read_manifest
    from sfumato.publishing.spark import audit_cluster_file
    from sfumato.rows.memory_limit import Memory
    from sfumato.rows.spark.master import Master
    from sfumato.rows.spark.session import spark_session
    from sfumato.rows.spark.table import check_cluster_file
    from sfumato.table.io.parquet import StoredParquet

    memory = Memory.of(memory_text or DEFAULT_MEMORY)
    Master.of(engine)
    described = load_project(project) if project else None
    _refuse_other_formats(path, replace(options, format=None))
    if described is not None:
        _refuse_other_formats(str(described.data_path), described.options)
    if original is not None:
        _refuse_other_formats(original, options)
    read_manifest(manifest_path)
    _say_if_few(check_cluster_file(path)[0])
    if described is not None:
        _, names = check_cluster_file(described.data_path, described.options)
        described.check_data(names, lambda: StoredParquet.of(described.data_path).sha256)
    if original is not None:
        check_cluster_file(original, replace(options, complete_rows_only=False), named=roles)
    bar, _ = progress_bar("auditing on the cluster")
    with bar, spark_session(engine, memory=memory.n_bytes) as session:
        if described is not None:
            opened: ClusterTable | None = _opened_project(session, described, memory)
        else:
            opened = _opened_original(session, original, options, roles, memory)
        declared = True if project else roles.keys()
        return audit_cluster_file(session, path, manifest_path, memory, original=opened, check_roles=declared)


def _opened_original(
    session: Any,
    path: str | None,
    options: ReadOptions,
    roles: dict[str, Role],
    memory: Memory,
) -> ClusterTable | None:
    """Open the original as the options say, with the roles given."""
    from sfumato.publishing.reaudit import original_options
    from sfumato.rows.spark.table import open_cluster

    if path is None:
        return None
    table = open_cluster(session, path, memory=memory.n_bytes, options=original_options(options))
    return described_as(table, with_given_roles(table.outline, roles))
