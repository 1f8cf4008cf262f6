"""``sfumato audit``: re-check a release, or profile the risk of any table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from sfumato.cli.options.homes import (
    ENGINE_HELP,
    MEMORY_HELP,
    AskedAudit,
    Home,
    described_as,
    home_of,
    opened,
    opened_project,
    seen,
)
from sfumato.cli.options.short_help import ShortHelp
from sfumato.cli.options.tables import (
    accepted_exceptions,
    apply_roles,
    check_data_there,
    check_release_there,
    given_roles,
    needs_cryptography,
    read_options,
    reading_options,
    role_options,
    with_given_roles,
)
from sfumato.cli.speaking.on_stderr import quiet_option

if TYPE_CHECKING:
    from sfumato.audit.checks import AuditReport, Check
    from sfumato.engines.protocol import Rows
    from sfumato.manifest import AnyTable
    from sfumato.publishing.from_project import OpenRows
    from sfumato.schema import Role
    from sfumato.table.io.read import ReadOptions


_COMMON = (
    "manifest_path",
    "original",
    "project",
    "key",
    "accept",
    "as_json",
    "memory",
    "quasi_identifiers",
    "sensitive",
    "person",
    "quiet",
)


@click.command("audit", cls=ShortHelp, common=_COMMON)
@click.argument("table")
@click.option("--manifest", "manifest_path", help="Manifest of the release. Without it, print a risk profile.")
@click.option("--original", help="Original table; also checks that nothing else changed.")
@click.option("--project", help="Project file of the original; also checks its roles.")
@click.option("--key", metavar="FILE", help="Key of the release, by which its commitment to the original is checked.")
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="MANIFEST",
    help="Manifest of another release of the same people, to be judged together with; repeat for several.",
)
@click.option(
    "--with-original",
    "other_originals",
    multiple=True,
    metavar="TABLE",
    help="Original of a release given by --with, in the same order. Without: the project's ledger must have it.",
)
@click.option("--signature", metavar="FILE", help="Signature of the manifest, made by 'sfumato sign'.")
@click.option("--public-key", metavar="FILE", help="Public key of the publisher, in PEM, for --signature.")
@click.option("--accept", metavar="NAMES", help="Exceptions to accept, such as original,roles. They stay listed.")
@click.option(
    "--population",
    type=click.IntRange(min=1),
    metavar="N",
    help="For a risk profile: the rows are a sample of N people. Estimates how many of them are unique.",
)
@click.option(
    "--sampling-fraction",
    type=click.FloatRange(min=0, max=1, min_open=True),
    metavar="F",
    help="The same, where the rows are a share F of the population.",
)
@click.option(
    "--population-table",
    metavar="FILE",
    help="Table of the population, one row a person: how many of them each row fits (k-map, δ-presence).",
)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output on stdout.")
@click.option("--memory", metavar="SIZE", help=MEMORY_HELP)
@click.option("--engine", metavar="URL", help=ENGINE_HELP)
@role_options
@reading_options
@quiet_option
def command(
    table: str,
    manifest_path: str | None,
    original: str | None,
    project: str | None,
    key: str | None,
    others: tuple[str, ...],
    other_originals: tuple[str, ...],
    signature: str | None,
    public_key: str | None,
    accept: str | None,
    population: int | None,
    sampling_fraction: float | None,
    population_table: str | None,
    as_json: bool,
    memory: str | None,
    engine: str | None,
    **settings: Any,
) -> None:
    """Re-compute every guarantee that a release promises, or profile the risk of any TABLE.

    With --manifest: check hashes, columns and every promised guarantee; with --original also check that each released
    cell follows from the original as the manifest says. Every byte of the released file must belong to its cells or to
    its format (docs/canonical-form.md). The last line is one of three: confirmed (exit code 0), confirmed except (exit
    code 8), with what could not be checked and what to give so that it can be, or refused (exit code 5). Without the
    original there are always exceptions. --accept names exceptions that you accept; the exit code is 0 if there are no
    others.

    \b
    Examples:
      sfumato audit release.csv --manifest release.csv.manifest.json --original admissions.csv
      sfumato audit release.csv --manifest release.csv.manifest.json --project sfumato.toml
      sfumato audit release.csv --manifest release.csv.manifest.json --accept original,roles
      sfumato audit admissions.csv --quasi-identifiers age,sex,postcode --sensitive diagnosis
    \f

    The reading and role options describe the original; a release is read as its manifest says. Roles are compared for
    columns that have one by --project or by role options; the roles of all others are taken from the manifest, which
    is an exception. To check that the cells of an ordered column were joined in its own order, give --project, which
    declares that order. --missing or --project says what means "missing" in the original, never the manifest.

    A release of a project commits to its original by a key. --project finds that key; others get it from the publisher
    ('sfumato audit-key') and give it with --key. Without it the commitment is an exception.

    With --with several releases of the same people are judged together: who cannot be told apart by all of them, and
    which sensitive values all of them leave possible. Whose rows they hold is found from the originals, by the column
    that --person or --project names, or from the ledger next to the project file.

    With --population-table, a table of the population that the people are from, every class of rows is compared with
    it: how many people fit it at least (k-map), and how likely each of them is in the table (δ-presence). These are
    risk figures and change no exit code, unless the manifest promises them: then they are checked, and without this
    table they are an exception.

    With --memory no table is held in memory; with --engine the rows stay on a Spark cluster, which counts them.

    \b
    Further examples:
      sfumato audit release.csv --manifest release.csv.manifest.json --original people.db --query 'select …'
      sfumato audit release.csv --manifest release.csv.manifest.json --original admissions.csv --key release.key
      sfumato audit 2026.csv --manifest 2026.csv.manifest.json --project sfumato.toml --with 2025.csv.manifest.json
      sfumato audit survey.csv --quasi-identifiers age,sex,postcode --population 83000000
      sfumato audit survey.csv --quasi-identifiers age,sex,postcode --weight w
      sfumato audit release.csv --manifest release.csv.manifest.json --population-table register.csv
      sfumato audit release.parquet --manifest release.parquet.manifest.json --original large.parquet --memory 1GB
      sfumato audit release.parquet --manifest release.parquet.manifest.json --engine spark://node1:7077
    """
    if engine is None and memory is None:
        _check_there(table, manifest_path, original, project)
    from sfumato.audit.checks import AuditReport, Check
    from sfumato.cli.speaking.summary import end_audit
    from sfumato.errors import InvalidParameterError, ManifestRefusedError

    options, roles = read_options(settings), given_roles(settings)
    accepted, home = accepted_exceptions(accept), home_of(memory, engine)
    _check_others(others, other_originals, manifest_path)
    if manifest_path is None:
        if accept is not None:
            raise InvalidParameterError("--accept", "got some", allowed="given with --manifest only")
        if original or project or key or signature or public_key:
            named = "--original, --project, --key, --signature and --public-key"
            raise InvalidParameterError(named, "got one", allowed="given with --manifest only")
        if population is not None and sampling_fraction is not None:
            _refuse_given("given without --population", sampling_fraction=sampling_fraction)
        given = population, sampling_fraction, population_table
        if home is None:
            _profile(table, options, roles, given, as_json)
        else:
            _refuse_people(given)
            _profile_of_rows(table, options, roles, home, as_json)
        return
    _refuse_given("given without --manifest", population=population, sampling_fraction=sampling_fraction)
    if original and project:
        raise InvalidParameterError("--original and --project", "got both", allowed="given one at a time")
    if original is None and not project and roles:
        raise InvalidParameterError("role options", "got some", allowed="given with --original or without --manifest")
    if (signature is None) != (public_key is None):
        raise InvalidParameterError("--signature and --public-key", "got one", allowed="given together")
    where = Path(manifest_path)
    signed = _check_signature(where, signature, public_key)
    people: AnyTable | None = None
    asked = AskedAudit(table, where, original, project, options, roles)
    try:
        people = None if population_table is None else _read_population(population_table, options)
        report = _verified(asked, home, key, others, other_originals, people)
    except ManifestRefusedError as exc:
        report = AuditReport((Check("manifest", False, str(exc).removesuffix(".")),))
    beside = {} if people is None else _beside_population(table, where, people)
    signed_report = replace(report, checks=(*report.checks, *signed))
    end_audit(signed_report.accepting(accepted), as_json, beside)


def _refuse_given(allowed: str, **given: object) -> None:
    """Refuse options that do not go with others."""
    from sfumato.errors import InvalidParameterError

    for name, value in given.items():
        if value is not None:
            raise InvalidParameterError(f"--{name.replace('_', '-')}", "got one", allowed=allowed)


def _refuse_people(given: tuple[int | None, float | None, str | None]) -> None:
    """Refuse a population for a profile of rows that are not in memory."""
    from sfumato.engines.limits import POPULATION_OF_A_PROFILE

    population, fraction, table = given
    _refuse_given(
        POPULATION_OF_A_PROFILE.allowed, population=population, sampling_fraction=fraction, population_table=table
    )


def _check_others(others: tuple[str, ...], originals: tuple[str, ...], manifest_path: str | None) -> None:
    from sfumato.errors import InvalidParameterError

    if others and manifest_path is None:
        raise InvalidParameterError("--with", "got one", allowed="given with --manifest")
    if originals and len(originals) != len(others):
        problem = f"got {len(originals)} for {len(others)} releases"
        raise InvalidParameterError("--with-original", problem, allowed="given once for each --with, in the same order")


def _check_signature(manifest_path: Path, signature: str | None, public_key: str | None) -> list[Check]:
    if signature is None or public_key is None:
        return []
    from sfumato.audit.signature import check_signature

    needs_cryptography()
    return [check_signature(manifest_path, signature, public_key)]


def _check_there(table: str, manifest_path: str | None, original: str | None, project: str | None) -> None:
    """Refuse files that are not there; what does not go together is refused afterwards, whether it is there or not."""
    if original and project:
        return
    if original and manifest_path:
        check_data_there(original)
    if manifest_path:
        check_release_there(table, Path(manifest_path))
    elif not original and not project:
        check_data_there(table)


def _read_population(path: str, options: ReadOptions) -> AnyTable:
    from sfumato.publishing.reaudit import read_original

    return read_original(path, options.of_files())


def _beside_population(path: str, manifest_path: Path, population: AnyTable) -> dict[str, dict[str, Any]]:
    """Compare a release with a table of the population; nothing where the manifest cannot be read, which is said."""
    from sfumato.audit.claims import read_claims
    from sfumato.audit.population_table import in_population
    from sfumato.errors import ManifestError
    from sfumato.publishing.reaudit import read_manifest, read_released

    try:
        manifest, entries = read_manifest(manifest_path)
        claims = read_claims(entries)
    except ManifestError:
        return {}
    released = read_released(path, manifest)
    return {"population": in_population(released, population, claims).to_dict()}


def _profile(
    path: str,
    options: ReadOptions,
    roles: dict[str, Role],
    population: tuple[int | None, float | None, str | None],
    as_json: bool,
) -> None:
    from sfumato.audit.profile import risk_profile
    from sfumato.cli.speaking.summary import show_guesses, show_persons, show_profile, show_readings
    from sfumato.table.io.read import read_table

    seen = read_table(path, options=replace(options, mixed_as_text=True))
    table, guesses = apply_roles(seen, roles, quasi_identifiers_as_given=True)
    profile = risk_profile(table)
    n_people = _size_of_population(table, *population[:2])
    if n_people is not None:
        from sfumato.counting.classes import class_size_counts
        from sfumato.measures.population import population_uniques
        from sfumato.table.binary import BinaryTable

        sizes = class_size_counts(
            table.to_table() if isinstance(table, BinaryTable) else table, profile["quasi_identifiers"]
        )
        profile["unique_in_the_population"] = population_uniques(sizes, n_people)
    if population[2] is not None:
        from sfumato.audit.population_table import in_population

        profile["population"] = in_population(table, _read_population(population[2], options)).to_dict()
    if as_json:
        click.echo(json.dumps(profile, indent=2))
        return
    show_guesses(guesses)
    show_readings(table.coded_part.schema)
    show_persons(table)
    show_profile(profile)


def _size_of_population(table: AnyTable, population: int | None, fraction: float | None) -> int | None:
    """Take the size of the population as given, by the share that was drawn, or by weights; ``None``: not known."""
    from sfumato.measures.population import size_by_fraction
    from sfumato.table.survey_weights import size_by_weights

    if population is not None:
        return population
    return size_by_weights(table) if fraction is None else size_by_fraction(table.n_rows, fraction)


def _described_original(asked: AskedAudit) -> AnyTable | None:
    """Read the original: as a project describes it, or as the options say, with the roles given."""
    from sfumato.cli.speaking.summary import show_persons, show_stated_formats
    from sfumato.publishing.reaudit import read_manifest, read_original

    if asked.project is not None:
        from sfumato.publishing.from_project import read_project_of  # mechanisms, which a release alone does not need

        manifest, _ = read_manifest(asked.manifest_path)
        found = read_project_of(asked.project, manifest)[1]
    elif asked.original is None:
        return None
    else:
        show_stated_formats(asked.options, asked.manifest_path)
        found = with_given_roles(read_original(asked.original, asked.options, asked.manifest_path), asked.roles)
    show_persons(found)
    return found


def _opened_original(asked: AskedAudit, open_rows: OpenRows, home: Home) -> Rows | None:
    """Open the original where its rows are, described as :func:`_described_original` does."""
    from sfumato.cli.speaking.summary import show_notes, show_repeating, show_stated_formats
    from sfumato.engines.persons import identifiers_away, person_notes_away
    from sfumato.project.file import load_project
    from sfumato.publishing.reaudit import original_options

    if asked.project is not None:
        found = opened_project(open_rows, load_project(asked.project))
    elif asked.original is None:
        return None
    else:
        show_stated_formats(asked.options, asked.manifest_path)
        rows = open_rows(asked.original, options=original_options(asked.options, asked.manifest_path))
        found = described_as(rows, with_given_roles(rows.outline, asked.roles))
    show_repeating(identifiers_away(found, home.memory.n_bytes))
    show_notes(person_notes_away(found))
    return found


def _verified(
    asked: AskedAudit,
    home: Home | None,
    key: str | None,
    others: tuple[str, ...] = (),
    other_originals: tuple[str, ...] = (),
    population: AnyTable | None = None,
) -> AuditReport:
    """Audit a release, against its original if that is given, wherever their rows are."""
    from sfumato.engines.protocol import Rows
    from sfumato.publishing.reaudit import audit_published, key_of_release

    where, project, roles = asked.manifest_path, asked.project, asked.roles
    if home is not None:
        home.check_audit(asked)
    secret, declared = key_of_release(where, project=project, file=key), True if project else roles.keys()
    found: AnyTable | Rows | None
    with opened(home, "auditing") as (open_rows, progress):
        if open_rows is None or home is None:
            found, memory = _described_original(asked), None
        else:
            found, memory = _opened_original(asked, open_rows, home), home.memory
        report = audit_published(
            asked.path,
            where,
            original=found,
            memory=memory,
            key=secret,
            population=population,
            check_roles=declared,
            progress=progress,
        )
        if not others:
            return report
        table: AnyTable | None
        if isinstance(found, Rows) and memory is not None:
            instead = "leave out --with"
            table = found.in_memory(memory.n_bytes, "releases that are judged together need", instead, progress)
        else:
            table = cast("AnyTable | None", found)
    from sfumato.publishing.audit_together import OnDisk, audited_together
    from sfumato.publishing.ledger import Ledger
    from sfumato.publishing.reaudit import read_original
    from sfumato.schema import Role

    ledger = Ledger.of_project(project) if project else None
    named = [name for name, role in roles.items() if role is Role.PERSON]
    person = named[0] if named else table.coded_part.schema.person if table is not None else None
    read: list[AnyTable | None] = [read_original(other, asked.options) for other in other_originals]
    read = read or [None] * len(others)
    beside = [OnDisk.beside(other, own) for other, own in zip(others, read, strict=True)]
    releases = [OnDisk(where, Path(asked.path), table), *beside]
    return audited_together(report, releases, person=person, ledger=ledger if ledger and ledger.exists else None)


def _profile_of_rows(path: str, options: ReadOptions, roles: dict[str, Role], home: Home, as_json: bool) -> None:
    """Print the risk profile of a table that is not in memory."""
    from sfumato.audit.in_blocks import profile_rows
    from sfumato.cli.speaking.summary import show_guesses, show_notes, show_profile, show_readings, show_repeating
    from sfumato.engines.persons import identifiers_away, person_notes_away, persons_repeat

    home.check_table(path, options, roles)
    with home.opened("reading") as (open_rows, progress):
        table = seen(open_rows, path, options, roles)
        described, guesses = apply_roles(table.outline, roles, quasi_identifiers_as_given=True)
        table = described_as(table, described)
        profile = profile_rows(table, home.memory.n_bytes, progress)
        identifiers = [] if as_json else identifiers_away(table, home.memory.n_bytes)
        notes = [] if as_json else person_notes_away(table)
        are_rows = not as_json and persons_repeat(table, home.memory.n_bytes)
    if as_json:
        click.echo(json.dumps(profile, indent=2))
        return
    show_guesses(guesses)
    show_readings(table.schema)
    show_repeating(identifiers)
    show_notes(notes)
    if are_rows:
        click.echo("note: some persons have several rows; this profile is about rows, not about people", err=True)
    show_profile(profile)
