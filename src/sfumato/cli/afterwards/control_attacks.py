"""``sfumato attack`` with control people: given as a file, or held out before a release is made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.tables import confirmed_columns, given_roles, progress_bar, read_options
from sfumato.errors import on_one_line
from sfumato.schema import PROJECT_NAME

if TYPE_CHECKING:
    from sfumato.manifest import AnyTable, Manifest
    from sfumato.mechanisms.base import Mechanism

_LABEL = 42
_RISK = 22
_FEW_CONTROLS = 0.9  # of the people in the table
_RISK_NOTE = (
    "risk: of 100 {counted} on {whom} the attack would fail if they were not in the table, on how many it succeeds "
    "because they are"
)
_ONE_ROW_EACH = "each row counts as a person: rows of one person may be in both groups, which makes risks look smaller"
_MEMBERSHIP_NOTE = (
    "advantage: share of {counted} in the table called members less that of control {counted} called so, by a "
    "threshold chosen on others; 0 is guessing. k-anonymity, l-diversity and t-closeness promise nothing about "
    "membership"
)


def attack_held_out(
    data: str | None, fraction: float, settings: dict[str, Any], *, seed: int, as_json: bool, **drawn: Any
) -> None:
    """Hold people out, make a release of the others by the same settings, and attack both groups by it.

    Without a data file the project file of the working folder says what is released.
    """
    from sfumato.attack.controls import hold_out
    from sfumato.publishing.propose import make_release

    settings |= {"binarize": None, "no_l": False, "attacker_knows": None, "output": None}  # of release only
    name, mechanism, table = _of_project(settings) if data is None else _of_flags(data, settings)
    original, control = hold_out(table, fraction, seed=seed)
    bar, progress = progress_bar(name)
    with bar:
        release = make_release(original, mechanism, progress=progress)
    rows = f"{original.n_rows:,} of {table.n_rows:,} rows"
    click.echo(f"note: {name} made a release of {rows}, the others were held out; nothing was written", err=True)
    show_attacks(original, control, release.table, release.manifest, as_json=as_json, seed=seed, **drawn)


def _of_project(settings: dict[str, Any]) -> tuple[str, Mechanism, AnyTable]:
    from sfumato.cli.options.asked import project_with_flags
    from sfumato.mechanisms.registry import build_mechanism, mechanism_info
    from sfumato.publishing.from_project import read_publicly

    project = project_with_flags(Path(PROJECT_NAME), settings)
    name = str(project.mechanism)
    mechanism = build_mechanism(name, project.parameters)
    return name, mechanism, read_publicly(project) if mechanism_info(name).is_differentially_private else project.read()


def _of_flags(data: str, settings: dict[str, Any]) -> tuple[str, Mechanism, AnyTable]:
    from sfumato.cli.options.asked import merged_parameters
    from sfumato.cli.speaking.summary import show_ages, show_guesses, show_repeating
    from sfumato.mechanisms.baselines.features import described_publicly
    from sfumato.mechanisms.registry import build_mechanism, mechanism_info
    from sfumato.project.file import DEFAULT_MECHANISM
    from sfumato.table.persons import identifiers_of
    from sfumato.table.understanding import read_understood

    options, roles, confirmed = read_options(settings), given_roles(settings), confirmed_columns(settings)
    name = settings["mechanism"] or DEFAULT_MECHANISM
    mechanism = build_mechanism(name, merged_parameters(name, {}, settings))
    if mechanism_info(name).is_differentially_private:
        return name, mechanism, described_publicly(data, options, roles)
    understood = read_understood(data, options, roles, confirmed=confirmed)
    table = understood.prepared()
    show_guesses(understood.guessed)
    show_ages(understood.guessed)
    show_repeating(identifiers_of(table))
    return name, mechanism, table


def show_attacks(
    original: AnyTable,
    control: AnyTable,
    released: AnyTable,
    manifest: Manifest | None,
    *,
    as_json: bool,
    **settings: Any,
) -> None:
    """Attack the original as it is and the release, and show both."""
    from sfumato.attack.risk import attacked_rows
    from sfumato.attack.with_controls import attack_with_controls

    original, control = attacked_rows(original, manifest), attacked_rows(control, manifest)
    bar, progress = progress_bar("attacking")
    with bar:
        before = attack_with_controls(original, control, original, progress=progress, **settings)
        after = attack_with_controls(original, control, released, manifest, progress=progress, **settings)
    if as_json:
        click.echo(json.dumps({"before": before, "released": after}, indent=2))
        return
    for line in control_lines(before, after):
        click.echo(line)


def control_lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Put the attacks on the original next to those on the release, a line each, in percent."""
    n_people, counted = after["n_people"], after["counted"]
    who = "who" if counted == "people" else "which"
    yield (
        f"{after['n_attacked']:,} of {n_people['released']:,} {counted} in the table and {after['n_attacked']:,} of "
        f"{n_people['control']:,} control {counted}, {who} are not in it, were attacked"
    )
    yield ""
    side = f"{counted:>7} {'control':>8}  {'risk (95 %)':<{_RISK}}"
    yield f"{'success and risk in %':<{_LABEL + 2}} {'before':<{len(side)}} released"
    yield f"{'':<{_LABEL + 2}} {side} {side}".rstrip()
    for old, new in zip(before["attacks"], after["attacks"], strict=True):
        yield f"  {on_one_line(new['what']):<{_LABEL}} {_side(old)} {_side(new)}".rstrip()
        if "auc" in old or "auc" in new:
            yield f"  {'  area under the curve (0.5: chance)':<{_LABEL}} {_area(old)} {_area(new)}".rstrip()
    yield ""
    yield from _notes(before, after)


def _side(entry: Mapping[str, Any]) -> str:
    if "not_applicable" in entry:
        return f"{'not applicable':>{7 + 1 + 8}}  {'':<{_RISK}}"
    measured = entry["advantage"] if "advantage" in entry else entry["risk"]
    value, (low, high) = measured["value"], measured["interval"]
    shown = "unknown" if value is None else f"{100 * value:.1f} ({100 * low:.1f} to {100 * high:.1f})"
    return f"{100 * entry['released']['rate']:>7.1f} {100 * entry['control']['rate']:>8.1f}  {shown:<{_RISK}}"


def _area(entry: Mapping[str, Any]) -> str:
    if "auc" not in entry:
        return " " * (7 + 1 + 8 + 2 + _RISK)
    low, high = entry["auc"]["interval"]
    shown = f"{entry['auc']['value']:.3f} ({low:.3f} to {high:.3f})"
    return f"{'':>{7 + 1 + 8}}  {shown:<{_RISK}}"


def _notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    counted = after["counted"]
    yield _RISK_NOTE.format(counted=counted, whom="whom" if counted == "people" else "which")
    if counted != "people":
        yield _ONE_ROW_EACH
    yield _MEMBERSHIP_NOTE.format(counted=counted)
    n_released, n_crowd = after["n_people"]["released"], after["n_crowd"]
    if n_crowd < _FEW_CONTROLS * n_released:
        yield (
            f"singled out: among {n_crowd:,} {counted} of each group, because there are no more control {counted}; "
            f"with as many as in the table ({n_released:,}) controls would be singled out less often, and the risk be "
            "higher"
        )
    for when, found in (("before", before), ("released", after)):
        yield from _reasons(when, found["attacks"])


def _reasons(when: str, attacks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say what does not apply, what cannot be measured and what is no better than a guess."""
    weak = [on_one_line(entry["what"]) for entry in attacks if entry.get("is_better_than_guessing") is False]
    if weak:
        yield f"{when}, no better than guessing without the rows: {'; '.join(weak)}"
    for entry in attacks:
        if "not_applicable" in entry:
            yield f"{when}, {on_one_line(entry['what'])}: not applicable: {entry['not_applicable']}"
        elif "risk" in entry and entry["risk"]["value"] is None:
            what = on_one_line(entry["what"])
            yield f"{when}, {what}: risk unknown, because the attack succeeds on every control person"
