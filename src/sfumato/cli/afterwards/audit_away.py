"""``sfumato audit`` of rows that are not in memory: read in blocks, or on a Spark cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.options.homes import AskedAudit, Home, described_as, opened_project, seen
from sfumato.cli.options.tables import apply_roles, with_given_roles

if TYPE_CHECKING:
    from sfumato.audit.checks import AuditReport
    from sfumato.audit.reading.columns import Declared
    from sfumato.schema import Role
    from sfumato.table.io.read import ReadOptions


def verify_away(
    path: str,
    manifest_path: Path,
    original: str | None,
    project: str | None,
    options: ReadOptions,
    roles: dict[str, Role],
    home: Home,
    key: str | None = None,
) -> AuditReport:
    """Audit a release where its rows are, against its original if that is given."""
    from sfumato.cli.speaking.summary import show_notes, show_repeating, show_stated_formats
    from sfumato.project.file import load_project
    from sfumato.publishing.reaudit import audit_large_file, key_of_release, original_options
    from sfumato.rows.persons import identifiers_away, person_notes_away

    described = load_project(project) if project else None
    home.check_audit(AskedAudit(path, manifest_path, original, described, options, roles))
    secret = key_of_release(manifest_path, project=project, file=key)
    with home.opened("auditing") as (open_table, progress):
        beside = None if described is None else opened_project(open_table, described)
        if original is not None:
            show_stated_formats(options, manifest_path)
            opened = open_table(original, options=original_options(options, manifest_path))
            beside = described_as(opened, with_given_roles(opened.outline, roles))
        if beside is not None:
            show_repeating(identifiers_away(beside, home.memory.n_bytes))
            show_notes(person_notes_away(beside))
        declared: Declared = True if project else roles.keys()
        return audit_large_file(
            path, manifest_path, home.memory, original=beside, key=secret, check_roles=declared, progress=progress
        )


def profile_away(path: str, options: ReadOptions, roles: dict[str, Role], home: Home, as_json: bool) -> None:
    """Print the risk profile of a table that is not in memory."""
    from sfumato.audit.in_blocks import profile_rows
    from sfumato.cli.speaking.summary import show_guesses, show_notes, show_profile, show_readings, show_repeating
    from sfumato.rows.persons import identifiers_away, person_notes_away, persons_repeat

    home.check_table(path, options, roles)
    with home.opened("reading") as (open_table, progress):
        table = seen(open_table, path, options, roles)
        described, guesses = apply_roles(table.outline, roles, quasi_identifiers_as_given=True)
        table = described_as(table, described)
        profile = profile_rows(table, home.memory.n_bytes, progress)
        identifiers = [] if as_json else identifiers_away(table, home.memory.n_bytes)
        notes = [] if as_json else person_notes_away(table)
        are_rows = not as_json and persons_repeat(table, home.memory.n_bytes)
    if as_json:
        click.echo(json.dumps(profile, indent=2))
        return
    show_guesses(guesses)
    show_readings(table.schema)
    show_repeating(identifiers)
    show_notes(notes)
    if are_rows:
        click.echo("note: some persons have several rows; this profile is about rows, not about people", err=True)
    show_profile(profile)
