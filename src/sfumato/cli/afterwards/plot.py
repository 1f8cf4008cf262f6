"""``sfumato plot``: a picture of what a release's manifest has evidence for."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.speaking.on_stderr import quiet_option
from sfumato.errors import InvalidParameterError, ManifestError


@click.command("plot")
@click.argument("manifest_path", metavar="MANIFEST")
@click.option("-o", "--output", required=True, help="Picture to write: .svg, .png or .pdf.")
@click.option("--kind", help="Which picture, where the manifest has evidence for several.")
@click.option(
    "--weights",
    multiple=True,
    metavar="A,B,C",
    help="For --kind scores: weights of performance, privacy and size; may be repeated.",
)
@click.option("--force", is_flag=True, help="Replace a picture that exists.")
@quiet_option
def command(manifest_path: str, output: str, kind: str | None, weights: tuple[str, ...], force: bool) -> None:
    """Draw the evidence in a release's MANIFEST. No table is read.

    \b
    Kinds:
      breach-plane      breach-aware: the sets of columns that were compared, by performance and by the attacker's
                        gain (PBI), with the four regions, the largest PBI allowed, the Pareto front and the choice
      scores            breach-aware: E(S) of the sets of columns for one or several weightings, and which set each
                        chooses; nothing is trained again
      levels            global-recoding, gain-recoding: how far each column was coarsened
      information-gain  gain-recoding: what each column says about the target
      tree              error-risk-tree: information needed to disclose a person (BIG, ICR, TIDI) before and after
                        pruning, and the error-risk ratios of the branches pruned

    The same manifest gives the same file, byte for byte.

    \b
    Examples:
      sfumato plot release.csv.manifest.json -o plane.svg
      sfumato plot release.csv.manifest.json -o gains.pdf --kind information-gain --force
      sfumato plot release.csv.manifest.json -o scores.svg --kind scores --weights .5,.25,.25 --weights .2,.6,.2
    """
    from sfumato.audit.evidence import digest_of
    from sfumato.displays.base import check_picture, display_of_manifest, save
    from sfumato.publishing.reaudit import read_manifest

    check_picture(output, force=force)
    manifest, entries = read_manifest(Path(manifest_path))
    if entries.get("digest") != digest_of(entries):
        problem = "was changed after it was written: its digest does not match its content"
        raise ManifestError(problem, path=manifest_path, hint="draw the manifest that was released")
    try:
        settings = {"weights": tuple(map(_numbers, weights))} if weights else {}
        display = display_of_manifest(manifest, kind or ("scores" if weights else None), path=manifest_path, **settings)
    except ManifestError as exc:
        raise exc if exc.path else ManifestError(str(exc).removesuffix("."), path=manifest_path) from None
    save(display, output, force=force)
    click.echo(f"wrote {output}", err=True)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.strip().strip("()").split(","))
    except ValueError:
        raise InvalidParameterError("weights", "some are not", allowed="numbers, joined by commas") from None
