"""``sfumato audit``: re-check a release, or profile the risk of any table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import apply_roles, given_roles, read_options, reading_options, role_options


@click.command("audit")
@click.argument("table")
@click.option("--manifest", "manifest_path", help="The release's manifest; without it, a risk profile is printed.")
@click.option("--original", help="The table that was released from; also checks that nothing else was changed.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output on stdout.")
@role_options
@reading_options
def command(table: str, manifest_path: str | None, original: str | None, as_json: bool, **settings: Any) -> None:
    """Re-compute every guarantee that a release promises, or profile the risk of any TABLE.

    With --manifest: hashes, columns and every promised guarantee are re-checked, and with --original also that each
    released cell is what the manifest says it was made from. Exit code 5 if anything does not hold. The reading
    options then describe the original; a release is read as its manifest says.

    \b
    Examples:
      sfumato audit release.csv --manifest release.csv.manifest.json --original admissions.csv
      sfumato audit admissions.csv --quasi-identifiers age,sex,postcode --sensitive diagnosis
    """
    if manifest_path is None:
        _profile(table, as_json, settings)
    else:
        _verify(table, Path(manifest_path), original, as_json, settings)


def _profile(path: str, as_json: bool, settings: dict[str, Any]) -> None:
    from sfumato.audit.profile import risk_profile
    from sfumato.cli.summary import show_guesses, show_profile
    from sfumato.table.read import read_table

    options, roles = read_options(settings), given_roles(settings)
    table, guesses = apply_roles(read_table(path, options=options), roles)
    profile = risk_profile(table)
    if as_json:
        click.echo(json.dumps(profile, indent=2))
        return
    show_guesses(guesses)
    show_profile(profile)


def _verify(path: str, manifest_path: Path, original: str | None, as_json: bool, settings: dict[str, Any]) -> None:
    from sfumato.cli.summary import show_checks
    from sfumato.publishing import audit_published, read_manifest
    from sfumato.table.read import read_table

    options = read_options(settings)
    source = None
    if original is not None:
        manifest, _ = read_manifest(manifest_path)
        source = read_table(
            original, options=replace(options, missing=manifest.missing_tokens, complete_rows_only=False)
        )
    report = audit_published(Path(path), manifest_path, original=source)
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        show_checks(report)
    report.raise_if_failed()
