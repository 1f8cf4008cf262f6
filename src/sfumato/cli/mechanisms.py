"""``sfumato mechanisms``: what there is to choose from."""

from __future__ import annotations

import json
import warnings

import click


@click.command("mechanisms")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def command(as_json: bool) -> None:
    """List the mechanisms, what they promise and their parameters."""
    from sfumato.mechanisms.registry import registered_mechanisms

    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always")
        entries = registered_mechanisms().values()
    for warning in left_out:
        click.echo(str(warning.message), err=True)
    if as_json:
        described = [
            {
                "name": info.name,
                "why": info.why,
                "promises": info.promises,
                "parameters": [
                    {"name": p.name, "default": p.default, "help": p.help, "choices": list(p.choices)}
                    for p in info.parameters
                ],
            }
            for info in entries
        ]
        click.echo(json.dumps(described, indent=2))
        return
    for info in entries:
        click.echo(f"{info.name}\n  promises {info.promises}\n  {info.why}")
        for parameter in info.parameters:
            choices = f" ({' | '.join(parameter.choices)})" if parameter.choices else ""
            default = parameter.default
            shown = ",".join(map(str, default)) if isinstance(default, tuple) else default  # as it may be typed
            click.echo(f"    {parameter.name} = {shown}{choices}: {parameter.help}")
