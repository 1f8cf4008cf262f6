"""``sfumato demo``: the whole way on a built-in table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.schema import Role

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism, Release
    from sfumato.report.in_short import Prediction
    from sfumato.table.coding import Table


@click.command("demo")
@click.option("-o", "--output", default="sfumato-demo", show_default=True, help="Folder for the files.")
@click.option(
    "-k", default=5, show_default=True, help="k: every person shares all quasi-identifiers with at least k - 1 others."
)
@click.option("--quick", is_flag=True, help="Train no classifiers for the report.")
@click.option("--force", is_flag=True, help="Replace files in the folder, even those that no earlier demo wrote.")
def command(output: str, k: int, quick: bool, force: bool) -> None:
    """Take 5,000 synthetic hospital admissions from roles to an audited release and a report.

    Writes admissions.csv (the made-up original), sfumato.toml, release.csv with its manifest and report.html into a
    folder, replacing the files of an earlier demo.

    \b
    Examples:
      sfumato demo
      sfumato demo -k 20 -o /tmp/demo
    """
    from sfumato.atomic import write_atomically
    from sfumato.cli.options.tables import progress_bar
    from sfumato.cli.speaking.summary import show_checks, show_lines, show_warnings
    from sfumato.mechanisms.registry import build_mechanism
    from sfumato.project.describe import is_demo_folder, write_demo
    from sfumato.project.file import DEFAULT_MECHANISM
    from sfumato.publishing.propose import propose_release
    from sfumato.publishing.publish import publish
    from sfumato.publishing.reaudit import audit_published
    from sfumato.report.in_short import Prediction
    from sfumato.report.render import report_html
    from sfumato.report.summarize import summarize

    folder = Path(output)
    is_ours = force or is_demo_folder(folder)
    write_demo(folder, force=is_ours, others=("release.csv", "report.html"))
    table = _read_demo(folder)
    click.echo(f"\n1. The table: {table.n_rows:,} admissions in {folder / 'admissions.csv'}", err=True)
    _show_roles(table)
    _show_risk(table)
    click.echo(f"\n2. The release: k-anonymity at k = {k}, l-diversity of the sensitive column, made by auto", err=True)
    mechanism = build_mechanism(DEFAULT_MECHANISM, {"k": k})
    bar, progress = progress_bar("release")
    with bar:
        release = propose_release(table, mechanism, progress=progress)
        published = publish(release, folder / "release.csv", original=table, force=is_ours)
    click.echo(f"   wrote {published.table_path} and its manifest", err=True)
    click.echo("\n3. The audit, by code that shares nothing with the mechanism:", err=True)
    audit = audit_published(published.table_path, published.manifest_path, original=table, check_roles=True)
    show_checks(audit)
    trained = "" if quick else "prediction before and after, in every fold, and "
    click.echo(f"\n4. The report: {trained}attacks before and after", err=True)
    bar, progress = progress_bar("report")
    with bar:
        summary = summarize(published.release, table, mechanism=mechanism, audit=audit, quick=quick, progress=progress)
        html = report_html(summary, published.release.manifest)
        write_atomically(folder / "report.html", html.encode(), force=is_ours)
    click.echo("\nThe release in five lines:", err=True)
    show_lines(summary["verdict"]["headed"])
    show_warnings(summary["verdict"]["warnings"])
    if not quick:
        _show_remedy(published.release, table, mechanism, folder, Prediction.of(summary["utility"]))
    files = "release.csv, release.csv.manifest.json, report.html, admissions.csv, sfumato.toml"
    click.echo(f"\nFiles in {folder}/: {files}", err=True)
    again = f"sfumato release --project {folder}/sfumato.toml --force"
    click.echo(f"Next: open {folder}/report.html; edit {folder}/sfumato.toml and run '{again}';", err=True)
    click.echo(f"      compare other mechanisms with 'sfumato compare --project {folder}/sfumato.toml'", err=True)
    click.echo(f"      or do all of it in the browser with 'sfumato serve --project {folder}/sfumato.toml'", err=True)


def _show_remedy(
    release: Release, table: Table, mechanism: Mechanism, folder: Path, prediction: Prediction | str
) -> None:
    """Say by which command few rows of the demo are unique."""
    from sfumato.cli.options.tables import progress_bar
    from sfumato.cli.speaking.summary import show_remedy
    from sfumato.report.reproduction import options_of_roles
    from sfumato.report.unique_rows import remedy_for

    bar, progress = progress_bar("fewer unique rows")
    with bar:
        remedy = remedy_for(release, table, mechanism, prediction, progress=progress)
    if remedy is not None:
        roles = dict.fromkeys(table.schema.names(Role.TARGET), Role.TARGET) | dict(remedy.roles)
        data, output = str(folder / "admissions.csv"), str(folder / "fewer-unique-rows.csv")
        command = ["sfumato", "release", data, *options_of_roles(roles), "-k", str(remedy.k), "-o", output]
        show_remedy(command, remedy)


def _read_demo(folder: Path) -> Table:
    """Read the made-up admissions as a user would."""
    from sfumato.project.file import load_project
    from sfumato.table.coding import Table

    table = load_project(folder / "sfumato.toml").read()
    if not isinstance(table, Table):
        raise AssertionError
    return table


def _show_roles(table: Table) -> None:
    for role in Role:
        names = table.schema.names(role)
        if names:
            shown = ", ".join(names[:6]) + (f", … ({len(names)})" if len(names) > 6 else "")
            click.echo(f"   {role:<17} {shown}", err=True)


def _show_risk(table: Table) -> None:
    from sfumato.audit.profile import risk_profile

    profile = risk_profile(table)
    click.echo(
        f"   before: k = {profile['k']}, {profile['sample_uniques']['share']:.1%} of the rows are unique", err=True
    )
