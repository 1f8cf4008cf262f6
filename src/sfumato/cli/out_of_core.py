"""``release`` and ``audit`` with ``--memory``: files that are larger than memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sfumato.cli.options import apply_roles, given_roles, progress_bar, read_options, with_given_roles

if TYPE_CHECKING:
    from sfumato.audit.checks import AuditReport
    from sfumato.audit.reading.columns import Declared
    from sfumato.manifest import AnyTable
    from sfumato.rows.memory_limit import Memory
    from sfumato.rows.out_of_core import LargeTable, Told
    from sfumato.rows.spark.table import ClusterTable
    from sfumato.schema import Role
    from sfumato.table.io.read import ReadOptions
    from sfumato.table.roles import ColumnGuess

OpenedTable = TypeVar("OpenedTable", bound="LargeTable | ClusterTable")


def release_large(
    data: str | None,
    project_path: Path,
    settings: dict[str, Any],
    memory_text: str,
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a release of a file in blocks, audit it and write it."""
    from sfumato.cli.release import checked_output, merged_parameters, project_with_flags
    from sfumato.cli.summary import show_guesses, show_release, show_verdict
    from sfumato.mechanisms.registry import build_mechanism
    from sfumato.project.file import DEFAULT_MECHANISM
    from sfumato.publishing.out_of_core.release import check_able, propose, publish_large
    from sfumato.rows.memory_limit import Memory
    from sfumato.table.coding import Source

    memory, project = Memory.of(memory_text), None
    if data is None:
        project = project_with_flags(project_path, settings)
        mechanism = build_mechanism(str(project.mechanism), project.parameters)
        output, source = project.output, Source(str(project.data_path), "")
    else:
        options, roles = read_options(settings), given_roles(settings)
        name = settings["mechanism"] or DEFAULT_MECHANISM
        mechanism = build_mechanism(name, merged_parameters(name, {}, settings))
        output, source = Path(settings["output"]) if settings["output"] else None, Source(data, "")
    check_able(mechanism)
    target = None if dry_run else checked_output(output, source, force=force)
    guesses: list[ColumnGuess] = []
    bar, progress = progress_bar("reading")
    with bar:

        def told(n_read: int) -> None:
            progress(n_read, 0, f"{n_read:,} rows read")

        if project is not None:
            original = project.open(memory.n_bytes, told=told)
        else:
            original, guesses = _opened(str(data), options, roles, memory, told)
        show_guesses(guesses)
        proposal = propose(original, mechanism, memory, progress=progress)
        if project is not None:
            proposal = replace(proposal, release=proposal.release.with_manifest(project_sha256=project.sha256))
        release = proposal.release
        if target is not None:
            published = publish_large(proposal, target, memory, force=force, progress=progress)
            release = published.release
    if as_json:
        click.echo(release.manifest.to_json(), nl=False)
    show_release(release)
    if target is None:
        click.echo("dry run: nothing was written; the promises were measured on counts or on a sample", err=True)
    else:
        show_verdict(published.audit)
        click.echo(f"wrote {published.table_path} and {published.manifest_path}", err=True)


def _opened(
    path: str, options: ReadOptions, roles: dict[str, Role], memory: Memory, told: Told
) -> tuple[LargeTable, list[ColumnGuess]]:
    """Open a file and give its columns the roles that are given, and the others guessed ones."""
    from sfumato.rows.out_of_core import open_large

    large = open_large(path, memory=memory.n_bytes, options=replace(options, mixed_as_text=True), told=told)
    refuse_open_guesses(large, roles)
    described, guesses = apply_roles(large.outline, roles)
    return described_as(large, described), guesses


def described_as(opened: OpenedTable, described: AnyTable) -> OpenedTable:
    """Give an opened table the schema that its outline was described by."""
    from sfumato.table.coding import Table

    if not isinstance(described, Table):
        raise AssertionError
    return opened.with_schema(described.schema)  # type: ignore[return-value]


def refuse_open_guesses(large: LargeTable | ClusterTable, roles: dict[str, Role]) -> None:
    """Refuse columns without a role whose values were not listed, so that nothing can be guessed of them."""
    from sfumato.errors import SchemaError

    for name in large.schema.names():
        if large.is_open(name) and name not in roles:
            problem = "has too many distinct values for its role to be guessed"
            hint = "give it one: --identifiers if it names people, --other if it is to be released as it is"
            raise SchemaError(problem, column=name, hint=hint)


def describe_large_original(
    original: str | None,
    project: str | None,
    options: ReadOptions,
    roles: dict[str, Role],
    memory: Memory,
) -> LargeTable | None:
    """Open the original: as a project describes it, or as the options say, with the roles given."""
    from sfumato.project.file import load_project
    from sfumato.publishing.reaudit import open_original

    if project:
        return load_project(project).open(memory.n_bytes)
    if original is None:
        return None
    large = open_original(original, options, memory.n_bytes)
    return described_as(large, with_given_roles(large.outline, roles))


def verify_large(
    path: str, manifest_path: Path, original: LargeTable | None, check_roles: Declared, memory: Memory
) -> AuditReport:
    """Audit a release in blocks."""
    from sfumato.publishing.out_of_core.release import audit_large_file

    bar, progress = progress_bar("auditing")
    with bar:
        return audit_large_file(
            path, manifest_path, memory, original=original, check_roles=check_roles, progress=progress
        )


def profile_large(path: str, options: ReadOptions, roles: dict[str, Role], memory: Memory, as_json: bool) -> None:
    """Print the risk profile of a file that is read in blocks."""
    from sfumato.audit.out_of_core import large_risk_profile
    from sfumato.cli.summary import show_guesses, show_profile
    from sfumato.rows.out_of_core import open_large

    bar, progress = progress_bar("reading")
    with bar:

        def told(n_read: int) -> None:
            progress(n_read, 0, f"{n_read:,} rows read")

        large = open_large(path, memory=memory.n_bytes, options=replace(options, mixed_as_text=True), told=told)
        refuse_open_guesses(large, roles)
        described, guesses = apply_roles(large.outline, roles, quasi_identifiers_as_given=True)
        profile = large_risk_profile(described_as(large, described), memory=memory.n_bytes, told=told)
    if as_json:
        click.echo(json.dumps(profile, indent=2))
        return
    show_guesses(guesses)
    show_profile(profile)
