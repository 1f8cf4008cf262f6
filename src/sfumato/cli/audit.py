"""``sfumato audit``: re-check a release, or profile the risk of any table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.cluster import ENGINE_HELP
from sfumato.cli.options import (
    apply_roles,
    given_roles,
    read_options,
    reading_options,
    role_options,
    with_given_roles,
)

if TYPE_CHECKING:
    from sfumato.manifest import AnyTable
    from sfumato.schema import Role
    from sfumato.table.read import ReadOptions


@click.command("audit")
@click.argument("table")
@click.option("--manifest", "manifest_path", help="The release's manifest; without it, a risk profile is printed.")
@click.option("--original", help="The table that was released from; also checks that nothing else was changed.")
@click.option("--project", help="Project file that describes the original: reads it, and checks its roles too.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output on stdout.")
@click.option("--memory", metavar="SIZE", help="Work out of core, in about so much memory, such as 1GB (CSV, Parquet).")
@click.option("--engine", metavar="URL", help=ENGINE_HELP)
@role_options
@reading_options
def command(
    table: str,
    manifest_path: str | None,
    original: str | None,
    project: str | None,
    as_json: bool,
    memory: str | None,
    engine: str | None,
    **settings: Any,
) -> None:
    """Re-compute every guarantee that a release promises, or profile the risk of any TABLE.

    With --manifest: hashes, columns and every promised guarantee are re-checked, and with --original also that each
    released cell is what the manifest says it was made from. Every byte of the released file must belong to its cells
    or to what its format needs (docs/canonical-form.md). Exit code 5 if anything does not hold. The reading and
    role options then describe the original; a release is read as its manifest says. Whether an identifier was released
    can only be checked where the original's roles are given, by --project or by role options; and whether the cells of
    an ordered column were joined in its own order only with --project, which declares that order: where an ordered
    column was recoded, --original fails with NOT CHECKED.

    With --memory no table is held in memory, and with --engine the rows stay on a Spark cluster, which counts them.
    What is then not checked is said.

    \b
    Examples:
      sfumato audit release.csv --manifest release.csv.manifest.json --original admissions.csv
      sfumato audit release.csv --manifest release.csv.manifest.json --project sfumato.toml
      sfumato audit admissions.csv --quasi-identifiers age,sex,postcode --sensitive diagnosis
      sfumato audit release.parquet --manifest release.parquet.manifest.json --original large.parquet --memory 1GB
      sfumato audit release.parquet --manifest release.parquet.manifest.json --engine spark://node1:7077
    """
    from sfumato.cli.large import describe_large_original, profile_large, verify_large
    from sfumato.errors import InvalidParameterError
    from sfumato.large.memory import Memory

    options, roles = read_options(settings), given_roles(settings)
    if manifest_path is None:
        if original or project:
            raise InvalidParameterError("--original and --project", "got one", allowed="given with --manifest only")
        if engine is not None:
            hint = "profile a large file with --memory"
            raise InvalidParameterError("--engine", "got no --manifest", allowed="given with --manifest", hint=hint)
        if memory is not None:
            profile_large(table, options, roles, Memory.of(memory), as_json)
        else:
            _profile(table, options, roles, as_json)
        return
    if original and project:
        raise InvalidParameterError("--original and --project", "got both", allowed="given one at a time")
    if original is None and not project and roles:
        raise InvalidParameterError("role options", "got some", allowed="given with --original or without --manifest")
    if engine is not None:
        from sfumato.cli.cluster import verify_on_cluster

        verify_on_cluster(table, Path(manifest_path), original, project, options, roles, engine, memory, as_json)
        return
    if memory is not None:
        opened = describe_large_original(Path(manifest_path), original, project, options, roles, Memory.of(memory))
        verify_large(table, Path(manifest_path), opened, as_json, bool(project or roles), Memory.of(memory))
        return
    described = _described_original(Path(manifest_path), original, project, options, roles)
    _verify(table, Path(manifest_path), described, as_json, bool(project or roles))


def _profile(path: str, options: ReadOptions, roles: dict[str, Role], as_json: bool) -> None:
    from sfumato.audit.profile import risk_profile
    from sfumato.cli.summary import show_guesses, show_profile
    from sfumato.table.read import read_table

    seen = read_table(path, options=replace(options, mixed_as_text=True))
    table, guesses = apply_roles(seen, roles, quasi_identifiers_as_given=True)
    profile = risk_profile(table)
    if as_json:
        click.echo(json.dumps(profile, indent=2))
        return
    show_guesses(guesses)
    show_profile(profile)


def _described_original(
    manifest_path: Path, original: str | None, project: str | None, options: ReadOptions, roles: dict[str, Role]
) -> AnyTable | None:
    """Read the original: as a project describes it, or as the manifest says, with the roles given."""
    from sfumato.project_release import read_project_of
    from sfumato.reaudit import read_manifest, read_original

    if original is None and project is None:
        return None
    manifest, _ = read_manifest(manifest_path)
    if project is not None:
        return read_project_of(project, manifest)[1]
    if original is None:
        return None
    return with_given_roles(read_original(original, manifest, options), roles)


def _verify(path: str, manifest_path: Path, original: AnyTable | None, as_json: bool, has_roles: bool) -> None:
    from sfumato.cli.summary import show_checks
    from sfumato.reaudit import audit_published

    report = audit_published(path, manifest_path, original=original, check_roles=has_roles)
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        show_checks(report)
    report.raise_if_failed()
