"""``sfumato collaborate``: several parties choose features together without pooling their rows."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sfumato.cli.options.homes import ENGINE_HELP, Home, home_of
from sfumato.cli.options.named import hierarchy_files, hierarchy_option
from sfumato.cli.options.tables import given_roles, read_options, reading_options, role_options
from sfumato.errors import on_one_line

if TYPE_CHECKING:
    from sfumato.collaborate.config import PartyConfig
    from sfumato.collaborate.plan import Plan
    from sfumato.collaborate.session.party import Selection
    from sfumato.collaborate.session.transcript import Round, SessionWatch, Transcript
    from sfumato.collaborate.shared_schema import SharedSchema
    from sfumato.collaborate.simulate.joint import JointSimulation
    from sfumato.collaborate.simulate.simulation import SimulationResult
    from sfumato.engines.protocol import Rows
    from sfumato.schema import Role
    from sfumato.table.coding import Table
    from sfumato.table.io.read import ReadOptions


# Options of ``sfumato collaborate`` and what becomes of them: plans, tables with roles, cut points.


Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGES = ("cryptography", "mpyc")

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
        help="Add up counts, or reveal only which features are removed (slower; 3 to 7 parties, an honest majority).",
    ),
    click.option(
        "--sharing",
        type=click.Choice(["seeds", "shares"]),
        default="seeds",
        show_default=True,
        help="How to hide counts: by a cipher, or by random shares (twice as many bytes, no cipher).",
    ),
    click.option(
        "--privacy",
        type=click.Choice(["pooled", "average"]),
        default="pooled",
        show_default=True,
        help="Privacy scores: from the totals, or the mean of the parties' own scores.",
    ),
    click.option(
        "--weights", default="0.5,0.5", show_default=True, metavar="U,P", help="Weights of utility and privacy."
    ),
    click.option(
        "--ranking",
        type=click.Choice(
            ["mutual-information", "normalized", "gain-ratio", "symmetrical-uncertainty", "chi-squared", "gini"]
        ),
        default="mutual-information",
        show_default=True,
        help="What is measured of a feature's counts as its utility.",
    ),
    click.option(
        "--tradeoff",
        type=click.Choice(["mean", "product", "harmonic"]),
        default="mean",
        show_default=True,
        help="How utility and privacy are joined, with the weights.",
    ),
    click.option(
        "--joint-k",
        type=int,
        metavar="K",
        help="Remove no features: publish one table of all parties' rows, in which every class has at least K rows "
        "(3 to 7 parties, an honest majority).",
    ),
    hierarchy_option("For --joint-k: hierarchy file of a column, the same for all parties; repeat for several."),
    click.option("--epsilon", type=float, help="Add noise to every party's counts: ε of differential privacy."),
    click.option("--min-count", type=int, help="Show the totals, hiding counts below this. Default: show none."),
    click.option(
        "--max-rows",
        type=int,
        help="selection-only, joint-k: bound on the rows of all parties, at most 100,000. Default: 10,000.",
    ),
    click.option("--dry-run", is_flag=True, help="Do everything, audit included, but write no release."),
    click.option("--force", is_flag=True, help="Replace files that exist."),
    click.option("--json", "as_json", is_flag=True, help="Print the result to stdout."),
)
BEYOND_SCHEMA = (
    click.option("--sensitive", multiple=True, metavar="A,B,…", help="Columns outside the schema; not released."),
    click.option("--identifiers", multiple=True, metavar="A,B,…", help="Columns outside the schema; not released."),
    click.option("--other", multiple=True, metavar="A,B,…", help="Columns outside the schema; published unchanged."),
)
MEMORY = click.option(
    "--memory",
    metavar="SIZE",
    help="Read a file larger than memory (CSV, Parquet, JSON lines, SPSS, Stata, SAS) in blocks, in about this "
    "much memory, such as 1GB.",
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
    from sfumato.collaborate.plan import MAX_ROWS, Plan
    from sfumato.collaborate.scores import check_weights

    common = ("min_privacy_gain", "mode", "sharing", "privacy", "epsilon", "min_count", "dry_run")
    names = (*common, "ranking", "tradeoff", "joint_k")
    chosen = {name: settings.pop(name) for name in names}
    utility, privacy = check_weights(numbers_of(settings.pop("weights"), "--weights", float) or [])
    max_rows = settings.pop("max_rows")
    chosen["drop_incomplete"] = settings["drop_incomplete"]
    return Plan(**chosen, weights=(utility, privacy), max_rows=MAX_ROWS if max_rows is None else max_rows)


def hierarchies_of(settings: dict[str, Any], plan: Plan) -> dict[str, Path]:
    """Take the hierarchy files out of a command's settings; only a joint k has a use for them."""
    from sfumato.errors import InvalidParameterError

    found = {column: Path(file) for column, file in hierarchy_files(settings.pop("hierarchies")).items()}
    if found and plan.joint_k is None:
        raise InvalidParameterError("--hierarchy", "got one", allowed="left out without --joint-k")
    return found


def given_path(name: str, typed: str | None, in_file: Path | None, hint: str) -> Path:
    """Path that was typed or else is in the party's file."""
    from sfumato.errors import InvalidParameterError

    path = Path(typed) if typed else in_file
    if path is None:
        raise InvalidParameterError(name, "got none", allowed="given", hint=hint)
    return path


@contextmanager
def own_rows(
    data: str, options: ReadOptions, shared: SharedSchema, roles: dict[str, Role], home: Home | None
) -> Iterator[Table | Rows]:
    """Read a party's table in the roles of the shared schema, or open it where its rows are not in memory."""
    from sfumato.collaborate.session.joining import in_shared_roles

    if home is None:
        from sfumato.table.io.read import read_table

        yield in_shared_roles(read_table(data, options=options), shared, roles)
        return
    home.check_table(data, options, roles)
    with home.opened("reading") as (open_table, _):
        opened = open_table(data, options=options)
        yield opened.with_schema(in_shared_roles(opened.outline, shared, roles).schema)


def described(data: str, settings: dict[str, Any], memory: str | None = None) -> Table:
    """Read a table; columns without a role are features, unless the features are listed.

    Where the memory is limited, every column is described by itself, with its values and their counts.
    """
    from sfumato.collaborate.session.joining import plain_table
    from sfumato.errors import SchemaError
    from sfumato.schema import Role
    from sfumato.table.io.read import read_table

    roles, options = given_roles(settings), read_options(settings)
    table = plain_table(read_table(data, options=options)) if memory is None else _outline(data, options, roles, memory)
    if any(role.is_one_of([Role.QUASI_IDENTIFIER]) for role in roles.values()):
        for name in table.schema.names():
            if name not in roles:
                raise SchemaError("has no role, although features are listed", column=name, hint="list it, or --other")
    everything: dict[str, Role] = dict.fromkeys(table.schema.names(), Role.QUASI_IDENTIFIER)
    return table.with_schema(table.schema.with_roles(everything | roles))


def _outline(data: str, options: ReadOptions, roles: dict[str, Role], memory: str) -> Table:
    from sfumato.engines.blocks.rows import open_large
    from sfumato.engines.memory_limit import Memory
    from sfumato.errors import SchemaError
    from sfumato.schema import Role

    large = open_large(data, memory=Memory.of(memory).n_bytes, options=options)
    for name in large.schema.names():
        if large.is_open(name) and roles.get(name, Role.TARGET).is_one_of((Role.TARGET, Role.QUASI_IDENTIFIER)):
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
            raise InvalidParameterError("--bins", f"got {text!r}", allowed="COLUMN=1,2,3")
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
        raise InvalidParameterError(option, f"got {text!r}", allowed="numbers separated by commas") from None


@click.group("collaborate")
def command() -> None:
    """Choose features together with other parties; each party keeps its rows.

    At least three parties with the same columns add up their counts so that no party sees another's counts. They
    remove the features with the smallest trade-off of utility and privacy, and each publishes its own rows without
    them.

    \b
    Examples:
      sfumato collaborate simulate data.csv --target class --parties 3 --min-privacy-gain 0.1
      sfumato collaborate keys --parties hospital-a,hospital-b,hospital-c -o keys
      sfumato collaborate schema --config party.toml --data mine.csv --target class -o schema.json
      sfumato collaborate party --config party.toml --data mine.csv --schema schema.json -o release.csv

    A party's file may name the schema and the release; then --config and --data are enough.
    """


@command.command("keys")
@click.option("--parties", required=True, metavar="A,B,C", help="Names of all parties, at least three.")
@click.option(
    "--hosts", metavar="HOST[:PORT],…", help="Where each is reached, in the same order. Default: this machine."
)
@click.option("--session", default="first", show_default=True, help="Name of the session, for the parties' files.")
@click.option("--days", type=int, default=90, show_default=True, help="How long the certificates are valid.")
@click.option("-o", "--output", required=True, help="Folder to write to; created if missing.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@needs_extra
def keys(parties: str, hosts: str | None, session: str, days: int, output: str, force: bool) -> None:
    """Make an authority, and for every party a certificate, a private key and a file NAME.toml to start from.

    For tests and small groups: whoever makes the keys could pose as any party. Groups with an authority of their own
    use its certificates.

    \b
    Examples:
      sfumato collaborate keys --parties hospital-a,hospital-b,hospital-c -o keys
      sfumato collaborate keys --parties a,b,c --hosts a.example:7443,b.example:7443,10.0.0.3:7443 -o keys
    """
    from sfumato.collaborate.transport.keys import make_key_folder

    names = [name.strip() for name in parties.split(",")]
    places = [place.strip() for place in hosts.split(",")] if hosts is not None else None
    make_key_folder(Path(output), names, places, session=session, valid_days=days, force=force)
    click.echo(f"wrote keys and files of {len(names)} parties to {output}", err=True)
    click.echo("give each party authority.crt, all parties' .crt files, and its own .key and .toml", err=True)
    click.echo("keep authority.key secret, or delete it: whoever has it can add parties", err=True)


@command.command("schema")
@click.option("--config", required=True, help="This party's file, such as party.toml.")
@click.option("--data", required=True, help="This party's table.")
@BINS
@MEMORY
@click.option("--transcript", help="File for the transcript: what left this party, by size, without contents.")
@click.option("-o", "--output", help="Shared schema to write (JSON). Default: the one that the party's file names.")
@click.option("--yes", is_flag=True, help="Do not ask: all parties may see what is listed.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@role_options
@reading_options
@needs_extra
def schema(
    config: str,
    data: str,
    bins: tuple[str, ...],
    memory: str | None,
    output: str | None,
    yes: bool,
    force: bool,
    **settings: Any,
) -> None:
    """Agree on columns and their values; every party runs this at the same time.

    Each party learns only the union of the others' values. The command lists the columns whose values all parties will
    see, and asks before it connects. Columns that are not named are features. Numeric columns with many values need
    --bins; those with few count as categories. --target, --bins and --missing must be the same for all parties. With
    --memory a large CSV or Parquet file is read in blocks.

    The file holds the roles too: --identifiers, --sensitive and --other need not be given again to 'party', unless the
    parties gave a column different ones. Compare the printed SHA-256 by telephone.

    \b
    Examples:
      sfumato collaborate schema --config party.toml --data mine.csv --target class -o schema.json
      sfumato collaborate schema --config party.toml --data mine.csv --target ill --bins age=30,50,70 \\
        --identifiers patient --yes -o schema.json
    """
    from sfumato.atomic import check_writable
    from sfumato.collaborate.config import load_party_config
    from sfumato.collaborate.schema_session import agree_on_schema, check_columns
    from sfumato.collaborate.session.joining import check_outputs
    from sfumato.collaborate.shared_schema import read_shared_schema_and_digest, write_shared_schema

    own, cuts, transcript = load_party_config(config), cuts_of(bins), settings.pop("transcript")
    target = given_path("output", output, own.schema, "-o schema.json, or schema = … in the party's file")
    outputs = {"shared schema": target} | ({"transcript": Path(transcript)} if transcript else {})
    check_outputs(outputs, {"data": Path(data)} | replace(own, schema=None).files)
    check_writable(target, force=force)
    is_listed = bool(settings["quasi_identifiers"])
    table = described(data, settings, memory)
    named = features_of(table) if is_listed else ()
    check_columns(table, cuts, named)
    _say_categories(table, cuts)
    say_trust("schema", len(own.roster.names))
    _say_united(table, cuts)
    _ask(yes)
    with _recorded(transcript, force) as record:
        _say_waiting(own)
        agreed = agree_on_schema(own, table, cuts=cuts, named=named, transcript=record)
        write_shared_schema(agreed, target, force=force)
    _, digest = read_shared_schema_and_digest(target)
    click.echo(f"wrote {target}: {agreed!r}", err=True)
    click.echo(f"SHA-256 of {target}: {digest} (all parties must see the same)", err=True)


@command.command("party")
@click.option("--config", required=True, help="This party's file, such as party.toml.")
@click.option("--data", required=True, help="This party's table.")
@click.option(
    "--schema", "schema_path", help="Shared schema, the same for all. Default: the one that the party's file names."
)
@click.option("-o", "--output", help="Release to write. Default: the one that the party's file names.")
@click.option("--transcript", help="File for the transcript: what left this party, by size, without contents.")
@MEMORY
@click.option("--engine", metavar="URL", help=ENGINE_HELP)
@with_options(PLANNING)
@with_options(BEYOND_SCHEMA)
@reading_options
@needs_extra
def party(
    config: str,
    data: str,
    schema_path: str | None,
    output: str | None,
    transcript: str | None,
    memory: str | None,
    engine: str | None,
    **settings: Any,
) -> None:
    """Take part in a session: agree on features with the others, audit this party's own release, and publish it.

    No party publishes before all have said that their release is written and audited. If a party fails, is silent or
    breaks the rules before that, nobody publishes, and the exit code is 6. If the line breaks during the very last
    messages, the others may have published what all had agreed to; the party that is cut off says so and publishes
    nothing, with the exit code 6 as well.

    The protocol is semi-honest: it hides a party's counts from parties that follow it. It does not stop a party from
    sending false numbers, and all the others together can work out one party's counts.

    With --joint-k no features are removed. The parties find labels such that their rows together are k-anonymous, and
    every party publishes the same table of all rows, without a word of who had which.

    All parties must use the same schema, the same computation (--mode, --sharing, --privacy, --weights, --ranking,
    --tradeoff, --joint-k, --hierarchy, --epsilon, --min-count, --max-rows), the same missing values (--missing,
    --drop-incomplete), and the same --dry-run. Each party has its own --min-privacy-gain, columns outside the schema,
    paths, and ways to read its file (--format, --delimiter, --encoding, --no-header, --sheet). With --memory a large
    CSV or Parquet file is read in blocks; with --engine its rows stay on a Spark cluster: same counts, same release.

    \b
    Examples:
      sfumato collaborate party --config party.toml --data mine.csv
      sfumato collaborate party --config party.toml --data mine.parquet --memory 1GB -o release.parquet
      sfumato collaborate party --config party.toml --data mine.csv --schema schema.json -o release.csv
      sfumato collaborate party --config party.toml --data mine.csv --schema schema.json --dry-run \\
        --mode selection-only --min-privacy-gain 0.2
    """
    from sfumato.cli.speaking.summary import show_release, show_verdict
    from sfumato.collaborate.config import load_party_config
    from sfumato.collaborate.session.party import take_part
    from sfumato.collaborate.shared_schema import read_shared_schema_and_digest

    plan, force, as_json = plan_of(settings), settings.pop("force"), settings.pop("as_json")
    hierarchies = hierarchies_of(settings, plan)
    own = load_party_config(config)
    schema_file = given_path(
        "schema", schema_path, own.schema, "--schema schema.json, or schema = … in the party's file"
    )
    own, (shared, digest) = replace(own, schema=schema_file), read_shared_schema_and_digest(schema_file)
    click.echo(f"SHA-256 of {schema_file}: {digest} (all parties must see the same)", err=True)
    roles = given_roles(settings | {"target": None, "quasi_identifiers": ()})
    home = home_of(memory, engine)
    limit = None if home is None else home.memory
    target = Path(output) if output else own.output
    with own_rows(data, read_options(settings), shared, roles, home) as table:
        say_trust("joint-k" if plan.joint_k else plan.mode, len(own.roster.names))
        with _recorded(transcript, force) as record:
            _say_waiting(own)
            if plan.joint_k is not None:
                _take_part_jointly(own, table, shared, plan, hierarchies, target, record, force, as_json)
                return
            found = take_part(
                own,
                table,
                shared,
                plan,
                memory=limit,
                output=target,
                transcript=record,
                force=force,
            )
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    show_scores([score._asdict() for score in found.selection.scores], found.selection.removed)
    show_own_gains(found.selection)
    show_release(found.release)
    wrote = found.published
    if wrote:
        show_verdict(wrote.audit)
    said = f"wrote {wrote.table_path} and {wrote.manifest_path}" if wrote else "dry run: nothing was written"
    click.echo(said if wrote or not limit else f"{said}; the gain was measured on the counts", err=True)


def _take_part_jointly(
    own: PartyConfig,
    table: Table | Rows,
    shared: SharedSchema,
    plan: Plan,
    hierarchies: dict[str, Path],
    target: Path | None,
    record: Transcript,
    force: bool,
    as_json: bool,
) -> None:
    """Take part in a session that publishes one table of all parties' rows, and say what came of it."""
    from sfumato.cli.speaking.summary import show_release, show_verdict
    from sfumato.collaborate.joint.party import check_in_memory, take_part_jointly
    from sfumato.mechanisms.hierarchies.files import read_hierarchy

    trees = {column: read_hierarchy(path) for column, path in hierarchies.items()}
    rows = check_in_memory(table)
    found = take_part_jointly(own, rows, shared, plan, hierarchies=trees, output=target, transcript=record, force=force)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    click.echo(joint_line(found.k, found.n_rows, found.n_classes, found.certainty_penalty), err=True)
    click.echo(f"own rows in these classes: {found.own_rows:,}, the smallest class {found.own_level:,}", err=True)
    show_release(found.release)
    wrote = found.published
    if wrote:
        show_verdict(wrote.audit)
    said = f"wrote {wrote.table_path} and {wrote.manifest_path}" if wrote else "dry run: nothing was written"
    click.echo(said, err=True)


@command.command("simulate")
@click.argument("data")
@click.option("--parties", type=int, default=3, show_default=True, help="How many, at least 3.")
@click.option(
    "--sizes", metavar="N,N,…", help="Rows of each party; rows beyond their sum are left out. Default: nearly the same."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the split.")
@BINS
@click.option(
    "--output-dir",
    help="Folder for all parties' releases, transcripts and parts of the table. Default: keep nothing.",
)
@with_options(PLANNING)
@role_options
@reading_options
@needs_extra
def simulate(data: str, bins: tuple[str, ...], output_dir: str | None, **settings: Any) -> None:
    """Split DATA at random and let every part be a party: real processes, keys and connections on this machine.

    Shows the scores of all features (Table I of the paper) and every party's gain after each removal (Table II), which
    in a real session only the party itself knows. With --output-dir each party's rows are kept too, as
    party-1.original.parquet and so on: only against these can its release be audited again.

    \b
    Examples:
      sfumato collaborate simulate data.csv --target class --parties 3 --min-privacy-gain 0.1 --json
      sfumato collaborate simulate data.csv --target class --sizes 110,135,94 --seed 7 --output-dir releases
      sfumato collaborate simulate data.csv --target class --parties 5 --joint-k 10 --output-dir releases
      sfumato audit releases/party-1.csv --manifest releases/party-1.csv.manifest.json \\
        --original releases/party-1.original.parquet
    """
    from sfumato.collaborate.schema_session import check_columns
    from sfumato.collaborate.shared_schema import SharedSchema
    from sfumato.collaborate.simulate.simulation import simulate as run_simulation

    cuts, as_json, force = cuts_of(bins), settings.pop("as_json"), settings.pop("force")
    sizes = numbers_of(settings.pop("sizes"), "--sizes", int)
    parties, seed, has_bound = settings.pop("parties"), settings.pop("seed"), settings["max_rows"] is not None
    plan, is_listed = plan_of(settings), bool(settings["quasi_identifiers"])
    hierarchies = hierarchies_of(settings, plan)
    table = described(data, settings)
    check_columns(table, cuts, features_of(table) if is_listed else ())
    _say_categories(table, cuts)
    n_parties = len(sizes) if sizes else parties
    say_trust("joint-k" if plan.joint_k else plan.mode, n_parties)
    n_dealt = min(sum(sizes), table.n_rows) if sizes else table.n_rows
    if n_dealt < table.n_rows:
        click.echo(f"note: {table.n_rows - n_dealt:,} of the {table.n_rows:,} rows are left out", err=True)
    given: dict[str, Any] = {
        "parties": n_parties,
        "sizes": sizes,
        "seed": seed,
        "schema": SharedSchema.of_table(table, cuts),
        "output_dir": Path(output_dir) if output_dir else None,
        "force": force,
        "watch": _rounds_said(),
    }
    bounded = plan if has_bound else replace(plan, max_rows=max(1, n_dealt))
    if plan.joint_k is not None:
        from sfumato.collaborate.simulate.joint import simulate_jointly

        joint = simulate_jointly(table, bounded, hierarchies=hierarchies, **given)
        if as_json:
            click.echo(json.dumps(joint.to_dict(), indent=2, ensure_ascii=False))
        show_joint_simulation(joint)
        return
    found = run_simulation(table, bounded, **given)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    show_simulation(found, plan.min_privacy_gain)


@contextmanager
def _recorded(path: str | None, force: bool) -> Iterator[Transcript]:
    """Give the session's transcript; one that cannot be written in the end is warned of, whatever the end is."""
    from sfumato.collaborate.session.transcript import Transcript

    record = Transcript(Path(path) if path else None, force=force, watch=_rounds_said())
    try:
        yield record
    finally:
        if record.problem is not None:
            click.echo(f"warning: there is no transcript: {record.problem}", err=True)


def _say_categories(table: Table, cuts: dict[str, list[float]]) -> None:
    from sfumato.collaborate.schema_session import numbers_as_categories
    from sfumato.errors import on_one_line

    for name in numbers_as_categories(table, cuts):
        click.echo(
            on_one_line(f"note: the numbers of '{name}' count as categories; use --bins to cut them into intervals"),
            err=True,
        )


def _say_united(table: Table, cuts: dict[str, list[float]]) -> None:
    from sfumato.collaborate.schema_session import columns_outside, united_columns
    from sfumato.errors import on_one_line

    united = united_columns(table, cuts)
    listed = ", ".join(f"{name} ({n_values:,})" for name, n_values in united.items())
    click.echo(
        on_one_line(f"all parties will see the values of these columns (number of values here): {listed}"), err=True
    )
    if names_only := [name for name in table.schema.names() if name not in united]:
        click.echo(on_one_line(f"all parties will see these names only: {', '.join(names_only)}"), err=True)
    if outside := [f"{name} ({role})" for name, role in columns_outside(table).items()]:
        click.echo(on_one_line(f"roles that become part of the schema: {', '.join(outside)}"), err=True)


def _ask(yes: bool) -> None:
    """Go on only with somebody's word; nobody is connected yet."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        problem = "there is no terminal to confirm that all parties may see this"
        raise click.UsageError(f"{problem}; check the columns above and add --yes. No connection was made.")
    if not click.confirm("May all parties see this?", err=True):
        raise click.UsageError("not confirmed; no connection was made, and nothing left this machine.")


def _say_waiting(own: PartyConfig) -> None:
    others = ", ".join(peer.name for peer in own.roster.peers)
    click.echo(f"session '{own.session}': waiting for {others} (at most {own.start_timeout:g} s)", err=True)


def _rounds_said() -> SessionWatch:
    """Say every round of a session when it is over."""
    from sfumato.collaborate.session.transcript import SessionWatch

    class SaidRounds(SessionWatch):
        def round_over(self, done: Round) -> None:
            click.echo(round_line(done.number, done.stage, done.bytes_sent, done.seconds), err=True)

    return SaidRounds()


# What people read of a session: rounds, the scores of the features (Table I) and gains (Table II).


_FEWEST = 3


def round_line(number: int, stage: str, n_bytes: int, seconds: float) -> str:
    """One line for a round that is over.

    Examples
    --------
    >>> round_line(4, "counts/64/seeds-sum", 15334, 0.172)
    'round   4  counts/64/seeds-sum                    15,334 bytes sent so far    0.172 s'
    """
    return f"round {number:>3}  {stage:<32} {n_bytes:>12,} bytes sent so far  {seconds:7.3f} s"


def say_trust(mode: str, n_parties: int) -> None:
    """Say what the protocol protects against and what not: mode of a session, or "schema"."""
    others, few = n_parties - 1, (n_parties - 1) // 2
    pooling = "" if n_parties == _FEWEST else f", even if {n_parties - 2} of the {others} others pool all they see"
    if mode in ("selection-only", "joint-k"):
        follow = "follows" if few == 1 else "follow"
        counts = "all counts" if mode == "selection-only" else "all counts but those of the published table"
        protects = f"{counts} stay hidden from any {_parties(few)} that {follow} the protocol"
        not_covered = (
            f"{_parties(few + 1)} that pool all they see: they learn everything; a party that sends wrong numbers, "
            "even after it saw the others': it can change the result unnoticed"
        )
        if mode == "joint-k":
            not_covered += "; what parties know of their own rows: k counts the rows of all parties together"
    else:
        what = "who holds a value stays" if mode == "schema" else "your counts stay"
        protects = f"{what} hidden from parties that follow the protocol{pooling}"
        false = "claims values that it does not hold" if mode == "schema" else "sends false numbers"
        known = "which values you hold" if mode == "schema" else "your counts"
        not_covered = (
            f"a party that {false}: nobody notices; a party that stops once it has learned a total; "
            f"all {others} others together: they can work out {known}"
        )
    click.echo(f"semi-honest protocol: {protects}", err=True)
    click.echo(f"not protected against: {not_covered}", err=True)


def _parties(n: int) -> str:
    return "one party" if n == 1 else f"{n} parties"


def show_scores(scores: Sequence[Mapping[str, Any]], removed: Sequence[str]) -> None:
    """Print Table I: every feature's utility, privacy and trade-off, and as which it was removed."""
    order = {name: place for place, name in enumerate(removed, start=1)}
    if not scores:
        click.echo(f"removed, in this order: {', '.join(map(on_one_line, removed))}", err=True)
        click.echo("scores: not revealed in this mode", err=True)
        return
    width = max(7, *(len(on_one_line(score["name"])) for score in scores))
    click.echo("scores of the features over all rows of all parties (Table I)", err=True)
    click.echo(f"{'feature':<{width}} utility privacy average trade-off removed", err=True)
    for score in scores:
        average = score["privacy_average"]
        shown = f"{average:7.4f}" if average is not None else f"{'-':>7}"
        click.echo(
            f"{on_one_line(score['name']):<{width}} {score['utility']:7.4f} {score['privacy_pooled']:7.4f} {shown} "
            f"{score['tradeoff']:9.4f} {order.get(score['name'], ''):>7}",
            err=True,
        )


def joint_line(k: int, n_rows: int, n_classes: int, penalty: float) -> str:
    """Say what a table of all parties' rows came to.

    Examples
    --------
    >>> joint_line(10, 1000, 50, 0.53604)
    'all parties together: 1,000 rows in 50 classes, the smallest of 10 rows; certainty penalty 0.5360'
    """
    classes = f"{n_rows:,} rows in {n_classes:,} classes, the smallest of {k:,} rows"
    return f"all parties together: {classes}; certainty penalty {penalty:.4f}"


def show_joint_simulation(found: JointSimulation) -> None:
    """Print what the parties published together, and what each could not have published alone."""
    n_rows = sum(found.n_rows.values())
    click.echo(joint_line(found.k, n_rows, found.n_classes, found.certainty_penalty), err=True)
    click.echo("smallest class of each party's own rows, which only the party itself knows", err=True)
    for name, level in found.own_levels.items():
        click.echo(f"{name} {found.n_rows[name]:>9,} rows  {level:>6,}", err=True)
    ratio = f"{found.certainty_penalty:.4f} here, {found.pooled_certainty_penalty:.4f} with all rows in one place"
    click.echo(f"certainty penalty: {ratio}", err=True)
    written = [result["table"] for result in found.parties.values() if result["table"]]
    said = f"wrote the same table {len(written)} times, with its manifest" if written else "dry run: nothing was kept"
    for text in found.warnings:
        click.echo(f"warning: {text}", err=True)
    click.echo(f"{said}; {found.cpu_seconds:.2f} s of processor time in all parties", err=True)


def show_own_gains(selection: Selection) -> None:
    """Print this party's gain after each removal."""
    click.echo("privacy gain of this party after each removal; no other party learns it", err=True)
    for name, gain in zip(selection.removed, selection.own_gains, strict=True):
        click.echo(f"  {gain:.4f}  without {on_one_line(name)}", err=True)


def show_simulation(found: SimulationResult, min_privacy_gain: float) -> None:
    """Print both tables of the paper."""
    show_scores(found.scores, found.removed)
    click.echo("privacy gain after each removal (Table II); a party sees its own line only", err=True)
    width = max(len(name) for name in (*found.gains, "all rows"))
    for name, gains in (*found.gains.items(), ("all rows", found.whole_table_gains)):
        n_rows = found.n_rows.get(name, sum(found.n_rows.values()))
        click.echo(f"{name:<{width}} {n_rows:>9,} rows  {_gains(gains)}", err=True)
    click.echo(f"every party gains at least {min_privacy_gain:g} without {len(found.removed)} features", err=True)
    written = [result["table"] for result in found.parties.values() if result["table"]]
    said = f"wrote {len(written)} releases and their manifests" if written else "dry run: no release was kept"
    for text in found.warnings:
        click.echo(f"warning: {text}", err=True)
    click.echo(f"{said}; {found.cpu_seconds:.2f} s of processor time in all parties", err=True)


def _gains(gains: Iterable[float]) -> str:
    return " ".join(f"{gain:.4f}" for gain in gains)
