"""``sfumato mechanisms``: what there is to choose from."""

from __future__ import annotations

import json
import textwrap
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sfumato.mechanisms.base import MechanismInfo
    from sfumato.mechanisms.presets import Preset
    from sfumato.parameters import Parameter

_WIDTH = 118
_WHOLE_WORDS: Any = {"break_on_hyphens": False, "break_long_words": False}
_ROWS = {
    "all rows": "the whole table in memory",
    "counts": "counts only: also tables larger than memory and on a cluster",
    "counts or a sample": "counts or a sample: also tables larger than memory and on a cluster",
    "a sample": "a sample: also tables larger than memory and on a cluster",
    "counts of features": "counts of binary features: also tables larger than memory and on a cluster",
}
_EXAMPLE = "sfumato release admissions.csv --target readmitted"
_SESSION = (
    "sfumato collaborate simulate admissions.csv --identifiers patient_id,name --target readmitted "
    "--bins age=30,50,70 --parties 3 --min-privacy-gain 0.1"
)
_FLAGS = "emergency,smoker,hypertension,diabetes,heart_failure,copd"


@click.command("mechanisms")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def command(name: str | None, as_json: bool) -> None:
    """List the mechanisms, what they promise and their parameters; or explain the one called NAME.

    Names that begin with paper: are the papers' own systems, each a mechanism with the paper's settings; those that
    begin with ours: have a choice of ours in the place of a printed one.

    \b
    Examples:
      sfumato mechanisms
      sfumato mechanisms mondrian
      sfumato mechanisms paper:hamdist
    """
    from sfumato.mechanisms.presets import PRESETS
    from sfumato.mechanisms.registry import mechanism_info, registered_mechanisms

    if name is not None:
        preset = PRESETS.get(name)
        info = None if preset and not preset.mechanism else mechanism_info(name)
        described = _described(info, name, preset)
        click.echo(json.dumps(described, indent=2) if as_json else _explained(described, info, preset))
        return
    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always")
        entries = registered_mechanisms().values()
    for warning in left_out:
        click.echo(str(warning.message), err=True)
    if as_json:
        listed = [_described(info, info.name) for info in entries]
        listed += [_described(_info_of(preset), name, preset) for name, preset in PRESETS.items()]
        click.echo(json.dumps(listed, indent=2))
        return
    for info in entries:
        click.echo(f"{info.name}\n  promises {info.promises}\n  {info.why}")
        for parameter in info.parameters:
            click.echo(f"    {_parameter_line(parameter)}")
    click.echo("\nThe papers' own systems: a mechanism with the paper's settings (ours: with a choice of ours)")
    for name, preset in PRESETS.items():
        click.echo(f"  {name}: {preset.title}; {preset.mechanism or 'sfumato collaborate'}")
    click.echo("\nsfumato mechanisms NAME explains one of them.")


def _info_of(preset: Preset) -> MechanismInfo | None:
    from sfumato.mechanisms.registry import mechanism_info

    return mechanism_info(preset.mechanism) if preset.mechanism else None


def _described(info: MechanismInfo | None, name: str, preset: Preset | None = None) -> dict[str, Any]:
    described: dict[str, Any] = {"name": name}
    if preset is not None:
        described |= {
            "title": preset.title,
            "paper": preset.section,
            "mechanism": preset.mechanism or None,
            "fixed": dict(preset.fixed),
            "usual": dict(preset.usual),
            "differs": preset.differs,
        }
    if info is None:
        return described
    given: Mapping[str, Any] = preset.parameters if preset else {}
    return described | {
        "why": info.why,
        "promises": info.promises,
        "parameters": [
            {"name": p.name, "default": given.get(p.name, p.default), "help": p.help, "choices": list(p.choices)}
            for p in info.parameters
            if preset is None or p.has_effect(preset.fixed)
        ],
    }


def _parameter_line(parameter: Parameter, default: Any = None) -> str:
    choices = f" ({' | '.join(parameter.choices)})" if parameter.choices else ""
    value = parameter.default if default is None else default
    shown = ",".join(map(str, value)) if isinstance(value, tuple) else value  # as it may be typed
    return f"{parameter.name} = {shown}{choices}: {parameter.help}"


def _explained(described: Mapping[str, Any], info: MechanismInfo | None, preset: Preset | None) -> str:
    """Explain a mechanism or preset: what it is, promises and costs, where it comes from, how to run it."""
    from sfumato.mechanisms.presets import presets_of

    name = described["name"]
    lines = [str(name)]

    def say(what: str, text: str) -> None:
        if text:
            first, others = f"  {what + ':':<12}", " " * 14
            # names hold hyphens, and must stay what can be typed
            lines.extend(textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=others, **_WHOLE_WORDS))

    if preset is not None:
        say("is", preset.title)
        say("paper", preset.section)
    if info is None:
        say("differs", preset.differs if preset else "")
        return "\n".join([*lines, f"  example:    {_SESSION}"])
    given: Mapping[str, Any] = preset.parameters if preset else {}
    promises = f"{info.promises}. Kind with these settings: {_kind(info, given)}" if preset else info.promises
    say("keeps" if preset is None else "mechanism", info.why if preset is None else f"{info.name}: {info.why}")
    say("promises", promises)
    say("needs", _ROWS[info.needs] + (", and a target" if info.needs_target_for(given) else ""))
    say("cost", f"about {info.cost_of(given):g} s for 10,000 rows and 10 columns")
    for own, one in presets_of(info.name).items() if preset is None else ():
        say("paper", f"{one.section}: {one.title} ({own})")
    if preset is not None:
        say("differs", preset.differs)
        say("fixed", ", ".join(f"{key}={value}" for key, value in preset.fixed.items()))
    lines.append("  parameters:")
    fixed: Mapping[str, Any] = preset.fixed if preset else {}
    offered = [p for p in info.parameters if p.name not in fixed and p.has_effect(fixed)]
    lines += [f"    {_parameter_line(p, given.get(p.name))}" for p in offered]
    settings = "".join(f" -p {key}={value}" for key, value in preset.example.items()) if preset else ""
    # in one line, so that it runs as it is printed
    lines.append(f"  example:    {_example(info, str(name), given, settings)}")
    return "\n".join(lines)


def _kind(info: MechanismInfo, given: Mapping[str, Any]) -> str:
    return info.guarantee if info.kind_of is None else info.kind_of(given)


def _example(info: MechanismInfo, name: str, given: Mapping[str, Any], settings: str) -> str:
    """Give a line that makes a release of the demo table; a test runs every one of them."""
    if info.is_differentially_private:
        # nothing is guessed from rows there, so that the example names columns whose cells are 0 and 1
        return f"{_EXAMPLE} --quasi-identifiers {_FLAGS} -m {name} -p n_features=3 -o release.csv"
    taken = {parameter.name for parameter in info.parameters}
    sensitive = " --sensitive discharge_diagnosis" if "sensitive" in taken else ""
    level = f" -k {given.get('k', 5)}" if "k" in taken else ""
    return f"{_EXAMPLE}{sensitive} -m {name}{level}{settings} -o release.csv"
