"""``sfumato attack``: attack a release beside its original, or match it with a reference table."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options import given_roles, progress_bar, read_options, reading_options, role_options

if TYPE_CHECKING:
    from sfumato.manifest import AnyTable, Manifest
    from sfumato.table.read import ReadOptions

SETS_SHOWN = 10

_CAPTION = "  re-identified   conf. >= 1/2   conf. >= 1/10   expected right   background columns"
_NOTE = "  (+ adds a column to the set before, or to the first of the sets before)"
_BITS = {
    "granularity_bits": "bits to know the background (BIG)",
    "reidentification_bits": "bits to find the row (ICR)",
    "information_bits": "bits for both (TIDI)",
}


@click.command("attack")
@click.argument("tables", nargs=-1, required=True, metavar="[ORIGINAL] RELEASED")
@click.option(
    "--manifest",
    "manifest_path",
    help="The release's manifest; needed with --reference, else looked for beside the release.",
)
@click.option("--reference", help="Table of known people, such as a voter list, or the original.")
@click.option(
    "--background",
    multiple=True,
    metavar="A,B,…",
    help="Columns that the attacker knows; by default all quasi-identifiers that both tables have.",
)
@click.option(
    "--up-to",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Match on all sets of up to this many columns, then add the worst column until all are known; 0: all at once.",
)
@click.option("--rows-correspond", is_flag=True, help="Row i of the reference is row i of the release: count hits.")
@click.option(
    "--sample-fraction",
    type=click.FloatRange(min=0, max=1, min_open=True),
    help="Share of the population that the table is a sample of, for the journalist's risk by classes.",
)
@click.option("--infer-target", is_flag=True, help="Infer the target too, not only sensitive columns.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of whatever is drawn.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output on stdout.")
@role_options
@reading_options
def command(
    tables: Sequence[str],
    manifest_path: str | None,
    reference: str | None,
    background: Sequence[str],
    up_to: int,
    rows_correspond: bool,
    sample_fraction: float | None,
    infer_target: bool,
    seed: int,
    as_json: bool,
    **settings: Any,
) -> None:
    """Attack a RELEASED table: beside its ORIGINAL in every way that applies, or with --reference by linkage.

    Beside the original: re-identification by prosecutor, journalist and marketer, sizes of classes, sample uniques and
    the columns to blame, sensitive columns inferred by the strongest of several attackers, linkage with 1, 2 and 3
    columns, and for 0/1 tables matching of known ones; before and after. The role options describe columns of the
    original that the manifest does not, such as sensitive ones that were dropped.

    With --reference the people of another table are matched with the released rows. A person's candidates are the
    released rows in which every cell may stand for the person's value. Shown are the people with a single candidate
    (re-identified), those with few, and with which background columns they fall; and of whom a sensitive or target
    column is learned because all candidates agree on it. Information is in bits; few bits are risky.

    No cell is printed.

    The reading options describe the original or the reference; unless --missing is given with --reference, the
    manifest says which texts are missing. Columns match by name, and their values by meaning. Features computed from a
    column (bands, one of some values) are not matched with that column of a reference.

    \b
    Examples:
      sfumato attack admissions.csv release.csv
      sfumato attack release.csv --manifest release.csv.manifest.json --reference voters.csv
      sfumato attack release.csv --manifest release.csv.manifest.json --reference voters.csv --background age,sex
      sfumato attack release.csv --manifest release.csv.manifest.json --reference original.csv --rows-correspond
    """
    roles = given_roles(settings)
    has_own_tokens = bool(settings["missing"])
    options = read_options(settings)
    if reference is None:
        from sfumato.cli.attack_risk import attack_pair

        original, released = _pair(tables)
        attack_pair(
            original,
            released,
            manifest_path,
            options,
            roles,
            sample_fraction=sample_fraction,
            include_target=infer_target,
            seed=seed,
            as_json=as_json,
        )
        return
    if len(tables) > 1 or manifest_path is None:
        problem = "--reference needs one released table and its --manifest."
        raise click.UsageError(problem)
    names = [name.strip() for text in background for name in next(csv.reader([text], skipinitialspace=True), [])]
    known = _Known(reference, options, has_own_tokens, rows_correspond)
    _link(tables[0], manifest_path, known, names, up_to, as_json)


def _pair(tables: Sequence[str]) -> tuple[str, str]:
    if len(tables) != 2:
        problem = "give ORIGINAL and RELEASED, or one released table with --reference and --manifest."
        raise click.UsageError(problem)
    return tables[0], tables[1]


@dataclass(frozen=True)
class _Known:
    """Table of known people, and how it is read."""

    path: str
    options: ReadOptions
    has_own_tokens: bool
    rows_correspond: bool


def _link(
    released: str, manifest_path: str, reference: _Known, names: Sequence[str], up_to: int, as_json: bool
) -> None:
    import numpy as np

    from sfumato.attack.linkage import generalized_columns
    from sfumato.attack.sweep import sweep
    from sfumato.reaudit import read_manifest, read_released

    manifest, _ = read_manifest(Path(manifest_path))
    columns = generalized_columns(manifest.recodings)
    public = read_released(released, manifest)
    known = _read_reference(reference.path, manifest, reference.options, reference.has_own_tokens)
    if reference.rows_correspond:
        _require_same_rows(known.n_rows, public.n_rows)
    bar, progress = progress_bar("matching")
    with bar:
        summaries = sweep(
            known,
            public,
            _background(names, known, public, manifest),
            columns=columns,
            up_to=up_to,
            truth=np.arange(known.n_rows) if reference.rows_correspond else None,
            k=_promised_crowd(manifest),
            progress=progress,
        )
    if manifest.perturbation:
        click.echo("note: cells of this release were changed at random, so that a match is no proof", err=True)
    if as_json:
        click.echo(json.dumps(summaries, indent=2))
        return
    for line in _lines(summaries):
        click.echo(line)


def _read_reference(path: str, manifest: Manifest, options: ReadOptions, has_own_tokens: bool) -> AnyTable:
    from dataclasses import replace

    from sfumato.reaudit import read_original
    from sfumato.table.coding import Table
    from sfumato.table.read import read_table

    if has_own_tokens:
        return read_table(path, options=replace(options, mixed_as_text=True))
    table = read_original(path, replace(options, missing=manifest.missing_tokens))
    return table.without_incomplete_rows() if options.complete_rows_only and isinstance(table, Table) else table


def _require_same_rows(n_reference: int, n_released: int) -> None:
    from sfumato.errors import InvalidParameterError

    if n_reference != n_released:
        problem = f"got {n_reference:,} reference rows and {n_released:,} released ones"
        raise InvalidParameterError("--rows-correspond", problem, allowed="given for tables with the same rows only")


def _background(names: Sequence[str], known: AnyTable, public: AnyTable, manifest: Manifest) -> list[str]:
    """Take the columns named, or all quasi-identifiers that can be matched; computed features cannot."""
    from sfumato.audit.columns import Columns
    from sfumato.errors import SchemaError
    from sfumato.recoding.base import GENERALIZED
    from sfumato.schema import Role
    from sfumato.table.binary import AS_IS

    computed = {str(entry.get("name")) for entry in manifest.recodings if entry.get("rule") not in (GENERALIZED, AS_IS)}
    for name in names:
        if name in computed:
            problem = "is computed from another column, and such a feature cannot be matched with a reference"
            raise SchemaError(problem, column=name, hint="leave it out of --background")
    if names:
        return list(names)
    reference = Columns(known)
    shared = [n for n in Columns(public).with_role(Role.QUASI_IDENTIFIER) if n in reference and n not in computed]
    if not shared:
        problem = "the release and the reference share no quasi-identifier that can be matched"
        raise SchemaError(problem, hint="name the columns that both have with --background")
    return shared


def _promised_crowd(manifest: Manifest) -> int | None:
    """Find the largest k among the guarantees."""
    promised = [entry.get("k") for entry in manifest.guarantees if isinstance(entry, Mapping)]
    return max((k for k in promised if isinstance(k, int) and k > 0), default=None)


def _lines(summaries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    last = summaries[-1]
    yield f"{last['n_records']:,} reference records against {last['n_released']:,} released rows"
    yield ""
    yield _CAPTION
    before: set[str] = set()
    is_grown = False
    for size in sorted({len(summary["background"]) for summary in summaries}):
        of_size = [summary for summary in summaries if len(summary["background"]) == size]
        worst = sorted(of_size, key=lambda summary: (-summary["n_reidentified"], -summary["n_expected"]))
        is_grown = len(of_size) == 1 and bool(before)
        for summary in worst[:SETS_SHOWN]:
            added = [name for name in summary["background"] if name not in before]
            yield _line_of_set(summary, f"+ {added[0]}" if is_grown else ", ".join(summary["background"]))
        before = set(worst[0]["background"])
        if len(worst) > SETS_SHOWN:
            yield f"{'':<64}… {len(worst) - SETS_SHOWN:,} more sets of {size} (all with --json)"
    if is_grown:
        yield _NOTE
    yield ""
    yield f"with all of the columns ({len(last['background'])}):"
    for label, value in _details(last):
        yield f"  {label:<60} {value}"


def _line_of_set(summary: Mapping[str, Any], names: str) -> str:
    from sfumato.errors import on_one_line

    at_least = {entry["at_least"]: entry["n_records"] for entry in summary["by_confidence"]}
    return (
        f"  {summary['n_reidentified']:>13,}   {at_least['1/2']:>12,}   {at_least['1/10']:>13,}   "
        f"{summary['n_expected']:>14,.1f}   {on_one_line(names)}"
    )


def _details(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from sfumato.errors import on_one_line

    yield "records without a candidate (not there, or wrong)", f"{summary['n_without_candidates']:,}"
    for entry in summary["by_confidence"]:
        is_certain = entry["at_least"] == "1"
        label = "re-identified: a single candidate" if is_certain else f"confidence {entry['at_least']} or more"
        yield label, f"{entry['n_records']:,}"
    if summary["truth"] is None:
        yield "expected right when one candidate is picked (truth unknown)", f"{summary['n_expected']:,.1f}"
    else:
        yield "own row among the candidates", f"{summary['truth']['n_own_row_among_candidates']:,}"
        yield "re-identified rightly", f"{summary['truth']['n_reidentified_rightly']:,}"
        yield "expected right when one candidate is picked", f"{summary['n_expected']:,.1f}"
    for name, label in _BITS.items():
        if bits := summary[name]:
            yield f"{label}: least, mean", f"{bits['least']:.2f}, {bits['mean']:.2f}"
    for name, count in summary["n_learned"].items():
        yield on_one_line(f"learned without knowing the row: '{name}'"), f"{count:,}"
