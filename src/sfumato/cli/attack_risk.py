"""``sfumato attack ORIGINAL RELEASED``: all attacks on a pair of tables, in words or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options import apply_roles, progress_bar, with_given_roles

if TYPE_CHECKING:
    from sfumato.manifest import AnyTable, Manifest
    from sfumato.schema import Role
    from sfumato.table.read import ReadOptions

_COLUMNS_SHOWN = 5
_WIDTH = 62


def attack_pair(
    original_path: str,
    released_path: str,
    manifest_path: str | None,
    options: ReadOptions,
    roles: dict[str, Role],
    *,
    sample_fraction: float | None,
    include_target: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Read both tables, attack the original as it is and the release, and show what was found."""
    from sfumato.attack.risk import attacked_rows, risk_of

    original, released, manifest = _read(original_path, released_path, manifest_path, options, roles)
    original = attacked_rows(original, manifest)
    settings: dict[str, Any] = {"sample_fraction": sample_fraction, "include_target": include_target, "seed": seed}
    bar, progress = progress_bar("attacking")
    with bar:
        before = risk_of(original, original, progress=progress, **settings)
        after = risk_of(original, released, manifest, progress=progress, **settings)
    if as_json:
        click.echo(json.dumps({"before": before, "released": after}, indent=2))
        return
    for line in risk_lines(before, after):
        click.echo(line)


def _read(
    original_path: str, released_path: str, manifest_path: str | None, options: ReadOptions, roles: dict[str, Role]
) -> tuple[AnyTable, AnyTable, Manifest | None]:
    from sfumato.publishing import manifest_path_for
    from sfumato.reaudit import read_manifest, read_original, read_released
    from sfumato.schema import Role
    from sfumato.table.read import read_table

    beside = manifest_path_for(Path(released_path))
    if manifest_path is None and beside.is_file():
        manifest_path = str(beside)
    if manifest_path is None:
        click.echo("note: without a manifest every released cell is taken as a value", err=True)
        options = replace(options, mixed_as_text=True)
        original, _ = apply_roles(read_table(original_path, options=options), roles, quasi_identifiers_as_given=True)
        released = read_table(released_path, options=options)
        return original, with_given_roles(released, _shared(_roles_of(original), released)), None
    manifest, _ = read_manifest(Path(manifest_path))
    has_own = Role.QUASI_IDENTIFIER in roles.values()
    released = read_released(released_path, manifest)
    original = read_original(original_path, replace(options, missing=manifest.missing_tokens))
    known = _roles_of(released) | {
        str(entry["column"]): _roles_of(released)[str(entry["name"])]
        for entry in manifest.recodings
        if str(entry.get("name")) in _roles_of(released) and "column" in entry
    }
    described, guesses = apply_roles(original, _shared(known, original) | roles, quasi_identifiers_as_given=has_own)
    if guesses:
        click.echo(f"note: roles of {len(guesses):,} columns that were not released are guessed", err=True)
    return described, released, manifest


def _roles_of(table: AnyTable) -> dict[str, Role]:
    from sfumato.audit.columns import Columns

    columns = Columns(table)
    return {name: columns.describe(name).role for name in columns.names}


def _shared(roles: Mapping[str, Role], table: AnyTable) -> dict[str, Role]:
    """Take the roles of columns that a table has; features of a sparse table need none."""
    from sfumato.table.binary import BinaryTable

    plain = table.companions if isinstance(table, BinaryTable) else table
    return {name: role for name, role in roles.items() if name in plain.schema}


def risk_lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Put the risk of the original beside that of the release, in words."""
    yield f"{'':<{_WIDTH}} {'before':>10} {'released':>10}"
    yield from _reidentification_lines(before["reidentification"], after["reidentification"])
    yield from _class_lines(before["class_sizes"], after["class_sizes"])
    yield from _unique_lines(before["uniques"], after["uniques"])
    yield from _inference_lines(after["inference"])
    yield from _linkage_lines(before["linkage"], after["linkage"])
    yield from _containment_lines(after["containment"])


def _reason(found: Any) -> str | None:
    return found.get("not_applicable") if isinstance(found, Mapping) else None


def _line(label: str, before: Any, after: Any) -> str:
    shown = [f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" for value in (before, after)]
    return f"  {label:<{_WIDTH - 2}} {shown[0]:>10} {shown[1]:>10}"


def _reidentification_lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    yield "re-identification by one who knows all quasi-identifiers"
    if reason := _reason(after):
        yield f"  not applicable: {reason}"
        return
    for who in ("prosecutor", "journalist"):
        for what in ("highest", "mean"):
            yield _line(f"{who}, {what} risk", before[who][what], after[who][what])
    yield _line("marketer, expected share of people named rightly", before["marketer"], after["marketer"])
    yield _line("people with one candidate, which is theirs", before["n_found"], after["n_found"])
    if after["note"]:
        yield f"  note: {after['note']}"


def _class_lines(before: Any, after: Any) -> Iterator[str]:
    if _reason(after):
        return
    yield "rows in classes of so many rows that look alike"
    for old, new in zip(before, after, strict=True):
        label = str(old["from"]) if old["from"] == old["to"] else f"{old['from']} to {old['to']}"
        yield _line(label if old["to"] else f"{old['from']} or more", old["n_rows"], new["n_rows"])


def _unique_lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    from sfumato.errors import on_one_line

    if _reason(after):
        return
    old, new = before["largest_set"], after["largest_set"]
    yield f"rows that are unique on up to {new if old == new else f'{old} (before) or {new} (released)'} columns"
    yield _line("rows", before["n_rows_with"], after["n_rows_with"])
    yield _line("minimal sample uniques", before["n_minimal"], after["n_minimal"])
    share = {entry["column"]: entry["share"] for entry in before["columns"]}
    for entry in after["columns"][:_COLUMNS_SHOWN]:
        if entry["n_minimal"]:
            yield _line(
                on_one_line(f"of these with '{entry['column']}'"), share.get(entry["column"], 0.0), entry["share"]
            )


def _inference_lines(after: Any) -> Iterator[str]:
    from sfumato.errors import on_one_line

    yield "sensitive columns, predicted by the strongest attacker: share that is right"
    if reason := _reason(after):
        yield f"  not applicable: {reason}"
        return
    for entry in after:
        label = on_one_line(f"'{entry['column']}'")
        if reason := _reason(entry):
            yield f"  {label}: not applicable: {reason}"
            continue
        low, high = entry["interval"]
        yield _line(
            f"{label} (most frequent value alone: {entry['majority']:.4g})",
            entry["with_original"],
            entry["with_release"],
        )
        yield f"  breach increase {entry['breach_increase_percent']:.1f} % (95 %: {low:.1f} to {high:.1f})"


def _linkage_lines(before: Any, after: Any) -> Iterator[str]:
    from sfumato.errors import on_one_line

    if _reason(after) or _reason(before):
        return
    yield "people found by one who knows a few columns, the worst ones"
    old_by_size = {entry["n_background"]: entry for entry in before}
    for entry in after:
        old = old_by_size.get(entry["n_background"], {"n_reidentified": 0, "columns": []})
        yield _line(f"{entry['n_background']} known", old["n_reidentified"], entry["n_reidentified"])
        for when, found in (("before", old), ("released", entry)):
            yield on_one_line(f"    {when}: {', '.join(found['columns'])}")


def _containment_lines(after: Any) -> Iterator[str]:
    if _reason(after):
        return
    yield "share of people with fewer rows that have all the ones known of them"
    crowds: Sequence[str] = list(after[0]["below"])
    yield f"  {'ones known':<14}" + "".join(f"{'below ' + crowd:>12}" for crowd in crowds)
    for entry in after:
        yield f"  {entry['n_known']:<14}" + "".join(f"{entry['below'][crowd]:>12.4g}" for crowd in crowds)
