"""``sfumato release`` of rows that are not in memory: read in blocks, or on a Spark cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.asked import merged_parameters, project_with_flags
from sfumato.cli.options.homes import Home, Open, Order, described_as, opened_project, seen
from sfumato.cli.options.preparing import preparations_in
from sfumato.cli.options.tables import confirmed_columns, given_roles, read_options

if TYPE_CHECKING:
    from sfumato.publishing.together import LedgerUse
    from sfumato.rows.memory_limit import Memory
    from sfumato.table.roles import ColumnGuess
    from sfumato.table.weighted import OutlinedTable


def release_away(
    data: str | None,
    project_path: Path,
    settings: dict[str, Any],
    home: Home,
    force: bool,
    dry_run: bool,
    as_json: bool,
    ledger: LedgerUse,
) -> None:
    """Make a release of a table that is not in memory, audit it and write it."""
    from sfumato.cli.speaking.released import formula_warnings, order_warnings, said_of, say_not_used
    from sfumato.cli.speaking.summary import (
        show_ages,
        show_guesses,
        show_notes,
        show_readings,
        show_ready_hierarchies,
        show_release,
        show_verdict,
        show_warnings,
        showing_new_key,
        warn_of_identifiers,
    )
    from sfumato.errors import InvalidParameterError
    from sfumato.publishing.from_project import release_key
    from sfumato.publishing.ledger import Ledger
    from sfumato.publishing.out_of_core.release import check_able, propose, publish_large
    from sfumato.publishing.publish import committed
    from sfumato.publishing.together import checked_away
    from sfumato.report.prepared_columns import prepared_in_words

    if ledger == "same-levels":
        allowed = "same-levels without --memory and --engine only"
        raise InvalidParameterError("--ledger", "got same-levels", allowed=allowed)
    order = _order(data, project_path, settings)
    asked = settings["cells"] or (order.project.cells if order.project is not None else None)
    if asked not in (None, "ranges"):
        hint = "leave out --memory (--engine) to hold the table in memory, or release ranges: --cells ranges"
        allowed = "ranges with --memory or --engine: other cells need all rows in memory"
        raise InvalidParameterError("--cells", f"got {asked}", allowed=allowed, hint=hint)
    kept = None if order.project is None else Ledger.of_project(order.project.path)
    if kept is None:
        say_not_used()
    else:
        kept.check_key()
    check_able(order.mechanism, home.where)
    target = home.checked_output(order, force=force, dry_run=dry_run)
    with home.opened("reading") as (open_table, progress):
        original, guesses = _opened(open_table, order, home.memory)
        show_guesses(guesses)
        show_ages(guesses)
        show_readings(original.schema)
        _say_of_persons(original, home.memory)
        proposal = propose(original, order.mechanism, home.memory, progress=progress)
        if order.project is not None:
            is_published = target is not None
            with (
                showing_new_key(order.project.path.parent),
                release_key(order.project, order.mechanism, original.source, is_published=is_published) as key,
            ):
                proposal = replace(proposal, release=committed(proposal.release, original.source, key))
        keeps_order = settings["keep_order"] if order.project is None else order.project.keep_order
        proposal = proposal.with_order_kept() if keeps_order else proposal
        release = proposal.release
        recorded = None if kept is None else said_of(checked_away(proposal, home.memory, kept, ledger))
        if target is not None:
            published = publish_large(proposal, target, home.memory, force=force, recorded=recorded, progress=progress)
            release = published.release
            warn_of_identifiers(published.audit)
    if as_json:
        click.echo(release.manifest.to_json(), nl=False)
    show_release(release)
    show_notes(prepared_in_words(release.manifest))
    show_ready_hierarchies(order.mechanism)
    if target is None:
        click.echo("dry run: nothing was written; the promises were measured on counts or on a sample", err=True)
    else:
        show_verdict(published.audit)
        click.echo(f"wrote {published.table_path} and {published.manifest_path}", err=True)
    show_warnings([*order_warnings(release), *formula_warnings(release, target)])


def _order(data: str | None, project_path: Path, settings: dict[str, Any]) -> Order:
    from sfumato.mechanisms.registry import build_mechanism
    from sfumato.project.file import DEFAULT_MECHANISM

    if data is None:
        project = project_with_flags(project_path, settings)
        mechanism = build_mechanism(str(project.mechanism), project.parameters)
        return Order(str(project.data), mechanism, project.output, project.options, {}, project)
    options, roles, confirmed = read_options(settings), given_roles(settings), confirmed_columns(settings)
    name = settings["mechanism"] or DEFAULT_MECHANISM
    mechanism = build_mechanism(name, merged_parameters(name, {}, settings))
    output = Path(settings["output"]) if settings["output"] else None
    return Order(data, mechanism, output, options, roles, confirmed=confirmed, preparations=preparations_in(settings))


def _opened(open_table: Open, order: Order, memory: Memory) -> tuple[OutlinedTable, Sequence[ColumnGuess]]:
    """Open a table as a project describes it, or with the roles that are given and the others guessed."""
    from sfumato.rows.persons import one_row_each
    from sfumato.table.preparing.prepared import prepared_rows
    from sfumato.table.understanding import understand

    if order.project is not None:
        return prepared_rows(opened_project(open_table, order.project), order.project.preparations), []
    opened = seen(open_table, order.path, order.options, order.roles)
    opened = opened.with_schema(opened.schema.with_confirmed(order.confirmed))
    understood = understand(opened.outline, order.roles, preparations=order.preparations)
    opened = described_as(opened, understood.table)
    rule = order.options.one_row_per_person
    opened = opened if rule is None else one_row_each(opened, rule, memory.n_bytes)
    return prepared_rows(opened, understood.preparations), understood.guessed


def _say_of_persons(original: OutlinedTable, memory: Memory) -> None:
    """Say of identifiers that repeat that rows are counted, and how many rows were left out at the door."""
    from sfumato.cli.speaking.released import say_left_out
    from sfumato.cli.speaking.summary import show_notes, show_repeating
    from sfumato.rows.persons import identifiers_away, person_notes_away

    show_repeating(identifiers_away(original, memory.n_bytes))
    show_notes(person_notes_away(original))
    say_left_out(original.outline)
