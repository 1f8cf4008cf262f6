"""``sfumato audit-key``: hand the key of one release to its auditor, and not the project's."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.schema import PROJECT_NAME


@click.command("audit-key")
@click.argument("manifest")
@click.option("--project", default=PROJECT_NAME, show_default=True, help="Project file; its key is next to it.")
@click.option("-o", "--output", required=True, metavar="FILE", help="File to write; only you can read it.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def command(manifest: str, project: str, output: str, force: bool) -> None:
    """Write the key of the release with this MANIFEST, so that somebody else can audit it.

    With this key and the original, 'sfumato audit --key' checks that the release was made from that original. Whoever
    has the key can confirm a guess of the original, so share it only with people allowed to see the data. It says
    nothing about other releases. The project's own key (sfumato.key) stays with you.

    \b
    Examples:
      sfumato audit-key release.csv.manifest.json -o release.key
      sfumato audit release.csv --manifest release.csv.manifest.json --original admissions.csv --key release.key
    """
    from sfumato.errors import InputError
    from sfumato.project.file import load_project
    from sfumato.project.keys import KEY_NAME, key_of_manifest
    from sfumato.publishing.reaudit import read_manifest

    folder = load_project(project).path.parent
    _, entries = read_manifest(Path(manifest))
    if (entries.get("input") or {}).get("commitment") is None:
        problem = "has no commitment to an original, and so no key: the release was made without a project's key"
        raise InputError(problem, path=manifest, hint="release with a project file to get one")
    key = key_of_manifest(folder, entries)
    if key is None:
        problem = "the project has no key: it was lost, or the release is another project's"
        hint = "restore the file from a backup; it cannot be made again"
        raise InputError(problem, path=folder / KEY_NAME, hint=hint)
    key.save(output, force=force)
    click.echo(f"wrote {output}: share it only with people allowed to see the data", err=True)
