"""``sfumato attack``: attack a release by its original, by control people, or by a reference table."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.named import hierarchy_option
from sfumato.cli.options.tables import (
    apply_roles,
    check_data_there,
    check_release_there,
    confirm_option,
    given_roles,
    person_rows_option,
    progress_bar,
    read_options,
    reading_options,
    role_options,
    with_given_roles,
)
from sfumato.cli.speaking.on_stderr import quiet_option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.attack.risk import Attacked
    from sfumato.manifest import AnyTable, Manifest
    from sfumato.schema import Role
    from sfumato.table.io.read import ReadOptions


SETS_SHOWN = 10

_CAPTION = "  re-identified   conf. >= 1/2   conf. >= 1/10   expected hits    background columns"
_NOTE = "  (+ adds a column to the set before, or to the first of the sets before)"
_BITS = {
    "granularity_bits": "bits to know the background (BIG)",
    "reidentification_bits": "bits to find the row (ICR)",
    "information_bits": "bits for both (TIDI)",
}


@click.command("attack")
@click.argument("tables", nargs=-1, metavar="[ORIGINAL] RELEASED | DATA")
@click.option(
    "--manifest",
    "manifest_path",
    help="Manifest of the release. Default: the one next to it; required with --reference.",
)
@click.option("--reference", help="Table of known people, such as a voter list, or the original.")
@click.option(
    "--background",
    multiple=True,
    metavar="A,B,…",
    help="Columns that the attacker knows. Default: all quasi-identifiers of both tables.",
)
@click.option(
    "--up-to",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Match on all sets of up to this many columns, then add the worst column until all are known; 0: all at once.",
)
@click.option("--rows-correspond", is_flag=True, help="The release was made of all rows of the reference: count hits.")
@click.option("--control", help="Table of people who are not in the release: attack them too, and compare.")
@click.option(
    "--hold-out",
    type=click.FloatRange(min=0, max=1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Hold this share of DATA's people out as control people, and make a release of the others.",
)
@click.option("-m", "--mechanism", help="With --hold-out: mechanism of that release. Default: auto.")
@click.option("-k", type=int, help="With --hold-out: shorthand for -p k=…")
@click.option("-p", "--param", "params", multiple=True, metavar="NAME=VALUE", help="With --hold-out: a parameter.")
@hierarchy_option("With --hold-out: hierarchy file of a column.")
@click.option(
    "--sample-fraction",
    type=click.FloatRange(min=0, max=1, min_open=True),
    help="Share of the population in the table, for the journalist attack.",
)
@click.option("--infer-target", is_flag=True, help="Infer the target too, not only sensitive columns.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of random draws.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output on stdout.")
@role_options
@confirm_option
@reading_options
@person_rows_option
@quiet_option
def command(
    tables: Sequence[str],
    manifest_path: str | None,
    reference: str | None,
    background: Sequence[str],
    up_to: int,
    rows_correspond: bool,
    control: str | None,
    hold_out: float | None,
    sample_fraction: float | None,
    infer_target: bool,
    seed: int,
    as_json: bool,
    **settings: Any,
) -> None:
    """Attack a RELEASED table: run every attack that applies against its ORIGINAL, or link it with --reference.

    With the original, before and after: re-identification (prosecutor, journalist, marketer), sizes of equivalence
    classes, sample uniques and the columns to blame, sensitive columns inferred by the strongest of several attackers,
    linkage with 1, 2 and 3 columns, and for 0/1 tables matching of known 1-values. The role options describe columns
    of the original that the manifest does not, such as sensitive ones that were dropped.

    With --reference: match the people of another table with the released rows. A person's candidates are the released
    rows in which every cell covers the person's value. The output shows how many people have a single candidate
    (re-identified) or few, and with which background columns; and for how many people a sensitive or target column is
    disclosed because all candidates agree on it. Information is in bits; few bits are risky.

    With --control or --hold-out, before and after: singling out, linkability, inference (the three risks of WP216) and
    membership inference, on people of the release and on control people who are not in it. What succeeds on control
    people tells nothing about those in the release; the risk is what is left, with an interval of 95 %. All rows of one
    person (--person) are on the same side. --hold-out makes the release itself, of DATA or of the table that
    sfumato.toml describes, and writes nothing.

    No cell is printed.

    The reading options describe the original or the reference; unless --missing is given with --reference, the
    manifest says which texts mean missing. Columns match by name, and their values by meaning. Features computed from a
    column (bands, one of some values) are not matched with that column of a reference.

    \b
    Examples:
      sfumato attack admissions.csv release.csv
      sfumato attack release.csv --manifest release.csv.manifest.json --reference voters.csv
      sfumato attack release.csv --manifest release.csv.manifest.json --reference voters.csv --background age,sex
      sfumato attack release.csv --manifest release.csv.manifest.json --reference original.csv --rows-correspond
      sfumato attack admissions.csv release.csv --control admissions-of-others.csv
      sfumato attack admissions.csv --hold-out .5 --sensitive discharge_diagnosis -k 10
      sfumato attack --hold-out .5                      # what sfumato.toml says
    """
    _check_forms(reference, control, hold_out, settings)
    drawn: dict[str, Any] = {"include_target": infer_target, "seed": seed}
    if hold_out is not None:
        if len(tables) > 1:
            problem = "--hold-out needs one table, of which a release is made."
            raise click.UsageError(problem)
        for table in tables:
            check_data_there(table)
        from sfumato.cli.afterwards.control_attacks import attack_held_out

        data = tables[0] if tables else None
        attack_held_out(data, hold_out, settings, as_json=as_json, **drawn)
        return
    roles = given_roles(settings)
    has_own_tokens = bool(settings["missing"])
    if reference is None:
        original, released = _pair(tables)
        manifest_path = manifest_path or _manifest_beside(released)
        if manifest_path is not None:
            check_release_there(released, Path(manifest_path))
        check_data_there(original)
        if manifest_path is None:
            check_data_there(released)
        if control is not None:
            check_data_there(control)
        options = read_options(settings)
        pair = _read(original, released, manifest_path, options, roles)
        if control is None:
            attack_pair(*pair, as_json=as_json, sample_fraction=sample_fraction, **drawn)
        else:
            attack_with_control(*pair, control, options, as_json=as_json, **drawn)
        return
    if len(tables) != 1 or manifest_path is None:
        problem = "--reference needs one released table and its --manifest."
        raise click.UsageError(problem)
    check_release_there(tables[0], Path(manifest_path))
    check_data_there(reference)
    options = read_options(settings)
    names = [name.strip() for text in background for name in next(csv.reader([text], skipinitialspace=True), [])]
    known = _Known(reference, options, has_own_tokens, rows_correspond)
    _link(tables[0], manifest_path, known, names, up_to, as_json)


_OF_HELD_OUT = {
    "mechanism": "-m",
    "k": "-k",
    "params": "-p",
    "hierarchies": "--hierarchy",
    "confirm": "--confirm",
    "one_row_per_person": "--one-row-per-person",
}


def _check_forms(
    reference: str | None, control: str | None, hold_out: float | None, settings: Mapping[str, Any]
) -> None:
    """Refuse options of one form of the command in another."""
    if sum(given is not None for given in (reference, control, hold_out)) > 1:
        problem = "give one of --reference, --control and --hold-out."
        raise click.UsageError(problem)
    needless = [option for name, option in _OF_HELD_OUT.items() if settings[name] not in (None, ())]
    if hold_out is None and needless:
        problem = f"{needless[0]} is used with --hold-out only, where a release is made."
        raise click.UsageError(problem)


def _manifest_beside(released: str) -> str | None:
    from sfumato.publishing.manifest_file import manifest_path_for

    beside = manifest_path_for(Path(released))
    return str(beside) if beside.is_file() else None


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
    from sfumato.attack.linkage import generalized_columns, sweep
    from sfumato.publishing.reaudit import read_manifest, read_released

    manifest, _ = read_manifest(Path(manifest_path))
    columns = generalized_columns(manifest.recodings)
    public = read_released(released, manifest)
    known = _read_reference(reference.path, manifest, reference.options, reference.has_own_tokens)
    truth = _own_rows(known, public, manifest) if reference.rows_correspond else None
    bar, progress = progress_bar("matching")
    with bar:
        summaries = sweep(
            known,
            public,
            _background(names, known, public, manifest),
            columns=columns,
            up_to=up_to,
            truth=truth,
            k=_promised_crowd(manifest),
            progress=progress,
        )
    if manifest.perturbation:
        click.echo("note: cells of this release were changed at random, so a match proves nothing", err=True)
    if as_json:
        click.echo(json.dumps(summaries, indent=2))
        return
    for line in _lines(summaries):
        click.echo(line)


def _read_reference(path: str, manifest: Manifest, options: ReadOptions, has_own_tokens: bool) -> AnyTable:
    from dataclasses import replace

    from sfumato.cli.speaking.summary import show_notes
    from sfumato.publishing.reaudit import as_prepared, read_original
    from sfumato.table.coding import Table
    from sfumato.table.io.read import read_table

    if has_own_tokens:
        return read_table(path, options=replace(options, mixed_as_text=True))
    known = read_original(path, replace(options, missing=manifest.missing_tokens), manifest)
    table, notes = as_prepared(known, manifest)
    show_notes(notes)
    return table.without_incomplete_rows() if options.complete_rows_only and isinstance(table, Table) else table


def _own_rows(known: AnyTable, public: AnyTable, manifest: Manifest) -> NDArray[np.int64]:
    """Released row of each row of the original: the same one, or, where rows are sorted, one that fits it."""
    import numpy as np

    from sfumato.attack.correspondence import Correspondence
    from sfumato.errors import InvalidParameterError

    allowed = "given for tables with the same rows only"
    if known.n_rows != public.n_rows:
        problem = f"got {known.n_rows:,} reference rows and {public.n_rows:,} released ones"
        raise InvalidParameterError("--rows-correspond", problem, allowed=allowed)
    if manifest.output.get("order") != "sorted":
        return np.arange(known.n_rows)
    own = Correspondence(known, public, manifest).own_row
    if own is None:
        problem = "the released rows are sorted, and nothing tells which of them comes from which row of the reference"
        raise InvalidParameterError("--rows-correspond", problem, allowed=allowed)
    return own


def _background(names: Sequence[str], known: AnyTable, public: AnyTable, manifest: Manifest) -> list[str]:
    """Take the columns named, or all quasi-identifiers that can be matched; computed features cannot."""
    from sfumato.audit.reading.columns import Columns
    from sfumato.errors import SchemaError
    from sfumato.mechanisms.recoder import GENERALIZED
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

    yield "records without a candidate (not in the release, or wrong)", f"{summary['n_without_candidates']:,}"
    for entry in summary["by_confidence"]:
        is_certain = entry["at_least"] == "1"
        label = "re-identified: a single candidate" if is_certain else f"confidence {entry['at_least']} or more"
        yield label, f"{entry['n_records']:,}"
    if summary["truth"] is None:
        yield "expected hits when one candidate is picked (truth unknown)", f"{summary['n_expected']:,.1f}"
    else:
        yield "own row among the candidates", f"{summary['truth']['n_own_row_among_candidates']:,}"
        yield "re-identified rightly", f"{summary['truth']['n_reidentified_rightly']:,}"
        yield "expected hits when one candidate is picked", f"{summary['n_expected']:,.1f}"
    for name, label in _BITS.items():
        if bits := summary[name]:
            yield f"{label}: least, mean", f"{bits['least']:.2f}, {bits['mean']:.2f}"
    for name, count in summary["n_learned"].items():
        yield on_one_line(f"learned without knowing the row: '{name}'"), f"{count:,}"


# ``sfumato attack ORIGINAL RELEASED``: all attacks on a pair of tables, in words or as JSON.


_WIDTH = 68


def attack_pair(
    original: AnyTable, released: AnyTable, manifest: Manifest | None, *, as_json: bool, **settings: Any
) -> None:
    """Attack the original as it is and the release, and show what was found."""
    from sfumato.attack.inference import ScoresInMemory
    from sfumato.attack.risk import Attacked, attacked_rows
    from sfumato.cli.speaking.summary import show_persons
    from sfumato.report.measured import figures_of

    show_persons(original)
    original, settings = attacked_rows(original, manifest), {**settings, "kept": ScoresInMemory()}
    bar, progress = progress_bar("attacking")
    with bar:
        before, after = Attacked(original, original, **settings), Attacked(original, released, manifest, **settings)
        found: dict[str, Any] = {"before": before.to_dict(progress), "released": after.to_dict(progress)}
        found["figures"] = figures_of(before, after)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for line in risk_lines(after, found["figures"]):
        click.echo(line)


def attack_with_control(
    original: AnyTable,
    released: AnyTable,
    manifest: Manifest | None,
    control_path: str,
    options: ReadOptions,
    *,
    as_json: bool,
    **settings: Any,
) -> None:
    """Read control people, whose columns have the original's roles, and attack."""
    from sfumato.cli.afterwards.control_attacks import show_attacks
    from sfumato.cli.speaking.summary import show_repeating
    from sfumato.publishing.reaudit import as_prepared, read_original
    from sfumato.table.io.read import read_table
    from sfumato.table.persons import identifiers_of

    show_repeating(identifiers_of(original))
    if manifest is None:
        control = read_table(control_path, options=replace(options, mixed_as_text=True))
    else:
        control = read_original(control_path, replace(options, missing=manifest.missing_tokens), manifest)
        control, _ = as_prepared(control, manifest)
    control = with_given_roles(control, _shared(_roles_of(original), control))
    show_attacks(original, control, released, manifest, as_json=as_json, **settings)


def _read(
    original_path: str, released_path: str, manifest_path: str | None, options: ReadOptions, roles: dict[str, Role]
) -> tuple[AnyTable, AnyTable, Manifest | None]:
    from sfumato.cli.speaking.summary import show_notes
    from sfumato.publishing.reaudit import as_prepared, read_manifest, read_original, read_released
    from sfumato.schema import Role
    from sfumato.table.io.read import read_table

    if manifest_path is None:
        click.echo("note: without a manifest every released cell is taken as a value", err=True)
        options = replace(options, mixed_as_text=True)
        original, _ = apply_roles(read_table(original_path, options=options), roles, quasi_identifiers_as_given=True)
        released = read_table(released_path, options=options.of_files())
        return original, with_given_roles(released, _shared(_roles_of(original), released)), None
    manifest, _ = read_manifest(Path(manifest_path))
    has_own = any(role.is_one_of([Role.QUASI_IDENTIFIER]) for role in roles.values())
    released = read_released(released_path, manifest)
    original = read_original(original_path, replace(options, missing=manifest.missing_tokens), manifest)
    known = _roles_of(released) | {
        str(entry["column"]): _roles_of(released)[str(entry["name"])]
        for entry in manifest.recodings
        if str(entry.get("name")) in _roles_of(released) and "column" in entry
    }
    described, guesses = apply_roles(original, _shared(known, original) | roles, quasi_identifiers_as_given=has_own)
    if guesses:
        click.echo(f"note: roles of {len(guesses):,} columns that were not released are guessed", err=True)
    described, notes = as_prepared(described, manifest)
    show_notes(notes)
    return described, released, manifest


def _roles_of(table: AnyTable) -> dict[str, Role]:
    from sfumato.audit.reading.columns import Columns

    columns = Columns(table)
    return {name: columns.describe(name).role for name in columns.names}


def _shared(roles: Mapping[str, Role], table: AnyTable) -> dict[str, Role]:
    """Take the roles of columns that a table has; features of a sparse table need none."""
    plain = table.coded_part
    return {name: role for name, role in roles.items() if name in plain.schema}


def risk_lines(after: Attacked, figures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Put the figures of the original next to those of the release, under the headings of the attacks."""
    from sfumato.attack.risk import ATTACKS
    from sfumato.errors import on_one_line

    yield f"{'':<{_WIDTH}} {'before':>10} {'released':>10}"
    for group, rows in groupby(figures, key=itemgetter("group")):
        yield group
        for row in rows:
            if row["unit"] == "names":
                yield from _names_lines(row)
            else:
                shown = [_number(row[when]) for when in ("before", "after")]
                yield on_one_line(f"  {row['what']:<{_WIDTH - 2}} {shown[0]:>10} {shown[1]:>10}")
    for name, attack in ATTACKS.items():
        found = after.result(name)
        for entry in found if isinstance(found, list) else [found]:
            if attack.title and "not_applicable" in entry:
                column = f" '{entry['column']}'" if "column" in entry else ""
                yield on_one_line(f"{attack.title}{column}: not applicable: {entry['not_applicable']}")
    if note := (after.applied("reidentification") or {}).get("note"):
        yield f"note: {note}"


def _names_lines(row: Mapping[str, Any]) -> Iterator[str]:
    from sfumato.errors import on_one_line

    for when in ("before", "after"):
        yield on_one_line(f"    {row['what']}, {'released' if when == 'after' else when}: {', '.join(row[when] or ())}")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
