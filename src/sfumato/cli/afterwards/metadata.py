"""``sfumato metadata``: a release described for catalogues and for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli.options.tables import check_release_there

KINDS = ("croissant", "dcat-ap", "dictionary")


@click.command("metadata")
@click.argument("released")
@click.option("--manifest", "manifest_path", help="Manifest of the release. Default: the one next to RELEASED.")
@click.option(
    "--as",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS),
    help="What to write; may be repeated. Default: all three.",
)
@click.option("--title", help="Title of the data set. Default: the name of the file.")
@click.option("--description", default="", help="What the table is about, in a sentence or two.")
@click.option("--license", "license", metavar="URL", help="Address of the licence.")
@click.option("--publisher", help="Who publishes it.")
@click.option("--url", help="Address of the folder or page where the file is.")
@click.option("--date", metavar="YYYY-MM-DD", help="Day of publication.")
@click.option("--version", "version", help="Version of the data set, such as 1.0.0.")
@click.option("--keyword", "keywords", multiple=True, help="A keyword; may be repeated.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def command(released: str, manifest_path: str | None, kinds: tuple[str, ...], force: bool, **said: Any) -> None:
    """Describe a RELEASED table: what its columns hold, what is promised, and what is not.

    Writes next to the table, from the table and its manifest alone, so that the files may be published with them:

    \b
      RELEASED.croissant.json   Croissant 1.1, for machine learning libraries and data set search
      RELEASED.dcat.jsonld      DCAT-AP 3, for data portals
      RELEASED.dictionary.md    a data dictionary, for people

    The release is audited first; if the audit refuses it, nothing is written (exit code 5). No date, licence or
    publisher is made up: give those that you want to be said.

    \b
    Examples:
      sfumato metadata release.csv
      sfumato metadata release.csv --title "Admissions 2026" --license https://creativecommons.org/licenses/by/4.0/ \\
        --publisher "City Hospital" --url https://data.example/admissions --date 2026-11-18 --version 1.0.0
      sfumato metadata release.parquet --as dictionary --force
    """
    from sfumato.atomic import check_writable
    from sfumato.publishing.manifest_file import manifest_path_for

    where = Path(manifest_path) if manifest_path else manifest_path_for(Path(released))
    check_release_there(released, where)
    from sfumato.cli.speaking.summary import show_verdict
    from sfumato.mechanisms.base import Release
    from sfumato.publishing.reaudit import audit_published, read_manifest, read_released
    from sfumato.report.metadata import Publication, metadata_path, write_metadata

    publication, wanted = Publication(**said), tuple(dict.fromkeys(kinds or KINDS))
    for kind in wanted:  # before the audit, which may take its time
        check_writable(metadata_path(Path(released), kind), force=force)
    audit = audit_published(released, where)
    audit.raise_if_failed()
    manifest, _ = read_manifest(where)
    release = Release(read_released(released, manifest), manifest)
    written = write_metadata(release, Path(released), wanted, publication, force=force)
    show_verdict(audit)
    click.echo(f"wrote {', '.join(map(str, written))}", err=True)
