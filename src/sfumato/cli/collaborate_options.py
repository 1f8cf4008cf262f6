"""Options of ``sfumato collaborate`` and what becomes of them: plans, tables with roles, cut points."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sfumato.cli.options import given_roles, read_options

if TYPE_CHECKING:
    from sfumato.collaboration.plan import Plan
    from sfumato.collaboration.shared_schema import SharedSchema
    from sfumato.large.memory import Memory
    from sfumato.schema import Role
    from sfumato.table.coding import Table
    from sfumato.table.large import LargeTable
    from sfumato.table.read import ReadOptions

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGES = ("cryptography", "mpyc", "tno")

PLANNING = (
    click.option(
        "--min-privacy-gain",
        type=float,
        default=0.1,
        show_default=True,
        help="θ: gain that this party's rows must reach.",
    ),
    click.option(
        "--mode",
        type=click.Choice(["totals", "selection-only"]),
        default="totals",
        show_default=True,
        help="Add up counts, or open nothing but which features go (slower; 3 to 7 parties, most of them honest).",
    ),
    click.option(
        "--sharing",
        type=click.Choice(["seeds", "shares"]),
        default="seeds",
        show_default=True,
        help="How counts are hidden: by a cipher, or by random shares (twice as many bytes, rests on no cipher).",
    ),
    click.option(
        "--privacy",
        type=click.Choice(["pooled", "average"]),
        default="pooled",
        show_default=True,
        help="Scores of privacy: from the totals, or the mean of the parties' own.",
    ),
    click.option("--weights", default="0.5,0.5", show_default=True, metavar="U,P", help="Of utility and privacy."),
    click.option("--epsilon", type=float, help="Noise on the counts of every party: ε of differential privacy."),
    click.option("--min-count", type=int, help="Show the totals, with counts below this hidden. Default: show none."),
    click.option(
        "--max-rows",
        type=int,
        help="selection-only: bound on the rows of all parties, at most 100,000. Default: 10,000.",
    ),
    click.option("--dry-run", is_flag=True, help="Do everything, audit included, but write no release."),
    click.option("--force", is_flag=True, help="Replace files that exist."),
    click.option("--json", "as_json", is_flag=True, help="Print the result to stdout."),
)
BEYOND_SCHEMA = (
    click.option("--sensitive", multiple=True, metavar="A,B,…", help="Columns outside the schema; not released."),
    click.option("--identifiers", multiple=True, metavar="A,B,…", help="Columns outside the schema; not released."),
    click.option("--other", multiple=True, metavar="A,B,…", help="Columns outside the schema; released as they are."),
)
MEMORY = click.option(
    "--memory",
    metavar="SIZE",
    help="Read a CSV or Parquet file larger than memory in blocks, such as 1GB. A guide, no limit by the system.",
)
BINS = click.option(
    "--bins", multiple=True, metavar="COLUMN=1,2,3", help="Cut points of a numeric column; repeat for several."
)


def with_options(options: tuple[Callable[[Any], Any], ...]) -> Callable[[Function], Function]:
    """Add several options to a command, in their order."""
    return lambda function: functools.reduce(lambda decorated, option: option(decorated), reversed(options), function)


def needs_extra(function: Function) -> Function:
    """Say how to install what the extra brings, before the command begins."""

    @functools.wraps(function)
    def checked(*arguments: Any, **settings: Any) -> Any:
        from sfumato.errors import InvalidParameterError

        if lacking := [name for name in _PACKAGES if find_spec(name) is None]:
            problem = f"but it lacks {', '.join(lacking)}"
            hint = "pip install 'sfumato[collaborate]'"
            raise InvalidParameterError(
                "the installation", problem, allowed="one with the extra 'collaborate'", hint=hint
            )
        return function(*arguments, **settings)

    return checked  # type: ignore[return-value]


def plan_of(settings: dict[str, Any]) -> Plan:
    """Take the plan out of a command's settings."""
    from sfumato.collaboration.plan import MAX_ROWS, Plan
    from sfumato.collaboration.scores import check_weights

    names = ("min_privacy_gain", "mode", "sharing", "privacy", "epsilon", "min_count", "dry_run")
    chosen = {name: settings.pop(name) for name in names}
    utility, privacy = check_weights(numbers_of(settings.pop("weights"), "--weights", float) or [])
    max_rows = settings.pop("max_rows")
    chosen["drop_incomplete"] = settings["drop_incomplete"]
    return Plan(**chosen, weights=(utility, privacy), max_rows=MAX_ROWS if max_rows is None else max_rows)


def given_path(name: str, typed: str | None, in_file: Path | None, hint: str) -> Path:
    """Path that was typed or else stands in the party's file."""
    from sfumato.errors import InvalidParameterError

    path = Path(typed) if typed else in_file
    if path is None:
        raise InvalidParameterError(name, "got none", allowed="given", hint=hint)
    return path


def own_rows(
    data: str, options: ReadOptions, shared: SharedSchema, roles: dict[str, Role], memory: str | None
) -> tuple[Table | LargeTable, Memory | None]:
    """Read a party's table in the roles of the shared schema, or open it where the memory is limited."""
    from sfumato.collaboration.joining import in_shared_roles

    if memory is None:
        from sfumato.table.read import read_table

        return in_shared_roles(read_table(data, options=options), shared, roles), None
    from sfumato.large.memory import Memory
    from sfumato.table.large import open_large

    limit = Memory.of(memory)
    large = open_large(data, memory=limit.n_bytes, options=options)
    return large.with_schema(in_shared_roles(large.outline, shared, roles).schema), limit


def described(data: str, settings: dict[str, Any], memory: str | None = None) -> Table:
    """Read a table; columns without a role are features, unless the features are listed.

    Where the memory is limited, every column is described by itself, with its values and their counts.
    """
    from sfumato.collaboration.joining import plain_table
    from sfumato.errors import SchemaError
    from sfumato.schema import Role
    from sfumato.table.read import read_table

    roles, options = given_roles(settings), read_options(settings)
    table = plain_table(read_table(data, options=options)) if memory is None else _outline(data, options, roles, memory)
    if Role.QUASI_IDENTIFIER in roles.values():
        for name in table.schema.names():
            if name not in roles:
                raise SchemaError("has no role, while features are listed", column=name, hint="list it, or --other")
    everything: dict[str, Role] = dict.fromkeys(table.schema.names(), Role.QUASI_IDENTIFIER)
    return table.with_schema(table.schema.with_roles(everything | roles))


def _outline(data: str, options: ReadOptions, roles: dict[str, Role], memory: str) -> Table:
    from sfumato.errors import SchemaError
    from sfumato.large.memory import Memory
    from sfumato.schema import Role
    from sfumato.table.large import open_large

    large = open_large(data, memory=Memory.of(memory).n_bytes, options=options)
    for name in large.schema.names():
        if large.is_open(name) and roles.get(name, Role.TARGET) in (Role.TARGET, Role.QUASI_IDENTIFIER):
            problem, hint = "has too many distinct values for a feature or target", "--identifiers keeps it back"
            raise SchemaError(problem, column=name, hint=hint)
    return large.outline


def features_of(table: Table) -> tuple[str, ...]:
    """Names of the features."""
    from sfumato.schema import Role

    return tuple(table.schema.names(Role.QUASI_IDENTIFIER))


def cuts_of(texts: tuple[str, ...]) -> dict[str, list[float]]:
    """Read cut points, COLUMN=1,2,3 each."""
    from sfumato.errors import InvalidParameterError

    found = {}
    for text in texts:
        name, equals, listed = text.rpartition("=")
        if not equals or not name:
            raise InvalidParameterError("--bins", "got something else", allowed="COLUMN=1,2,3")
        found[name] = numbers_of(listed, "--bins", float) or []
    return found


def numbers_of(text: str | None, option: str, kind: Callable[[str], Any]) -> list[Any] | None:
    """Read numbers separated by commas."""
    from sfumato.errors import InvalidParameterError

    if text is None:
        return None
    try:
        return [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InvalidParameterError(option, "got something else", allowed="numbers separated by commas") from None
