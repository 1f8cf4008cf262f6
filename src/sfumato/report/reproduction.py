"""How a release is made again: its mechanism with the settings of the manifest, and the shell line that runs it."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.guarantees import AboutPopulation
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms.base import MOST_COPIES, Mechanism
from sfumato.mechanisms.registry import build_mechanism, find_mechanism, mechanism_info
from sfumato.schema import DEFAULT_MISSING_TOKENS, Role
from sfumato.table.row_order import AS_READ

LONGEST_COMMAND = 4_000
CLOCKED = "The search had a time limit and may have reached it: another run may give other bytes."
HIDDEN = "Choices that hide something were drawn at random and are not written down: the file will not be the same."
_TIME_LIMITS = ("max_seconds", "time_budget")
_PROVEN = ("is_proven_optimal", "proven")

_SINGLE_ROLES = (Role.TARGET, Role.PERSON, Role.WEIGHT)
_WEIGHTS = ("performance", "privacy", "size")
_FLAG_OF_ROLE = {
    Role.TARGET: "--target",
    Role.QUASI_IDENTIFIER: "--quasi-identifiers",
    Role.SENSITIVE: "--sensitive",
    Role.IDENTIFIER: "--identifiers",
    Role.PERSON: "--person",
    Role.WEIGHT: "--weight",
    Role.OTHER: "--other",
}


@dataclass(frozen=True)
class Asked:
    """What the one who asks for a report knows beyond the manifest.

    Parameters
    ----------
    project : str or None
        Path of the project file that described the original.
    declared : mapping
        Parameters that the project file gives to the mechanism.
    reading : sequence of str
        Options by which the original was read, as the command line takes them.
    n_guessed : int
        Columns whose roles were guessed.
    is_as_read : bool
        Whether the kinds of the columns are those found in the file, and not declared.
    """

    project: str | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)
    reading: Sequence[str] = ()
    n_guessed: int = 0
    is_as_read: bool = False


def settings_of(
    manifest: Manifest, declared: Mapping[str, Any], original: AnyTable | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Take the parameters of the manifest's mechanism, and the names of those that only a project file holds.

    A manifest tells only that hierarchies and rules for features were given, for they may name values. Hierarchies
    that the original's description names are no settings.
    """
    described = () if original is None else [c.name for c in original.coded_part.schema if c.hierarchy is not None]
    stated = manifest.mechanism.get("parameters") or {}
    found: dict[str, Any] = {}
    unknown: list[str] = []
    for parameter in mechanism_info(manifest.mechanism["name"]).parameters:
        value = stated.get(parameter.name)
        if value is None or value == "automatic":
            continue
        if parameter.name == "weights" and isinstance(value, list):
            value = dict(zip(_WEIGHTS, value, strict=False))
        is_only_named = parameter.type is dict and not isinstance(value, Mapping)
        if not is_only_named and not (isinstance(value, str) and value.startswith("declared; ")):
            found[parameter.name] = value
        elif parameter.name in declared:
            found[parameter.name] = declared[parameter.name]
        elif parameter.name != "hierarchies" or not set(value) <= set(described):
            unknown.append(parameter.name)
    return found, unknown


def mechanism_of(manifest: Manifest, declared: Mapping[str, Any], original: AnyTable | None = None) -> Mechanism | str:
    """Build the mechanism of a manifest, or say why it cannot be built."""
    name = manifest.mechanism["name"]
    if find_mechanism(name) is None:
        return f"'{name}' is not a mechanism that runs on one table alone"
    settings, unknown = settings_of(manifest, declared, original)
    if unknown:
        return f"the manifest does not hold the settings of {', '.join(unknown)}; give the project file"
    if rests_on_population(manifest):
        return "the release rests on a table of the population, which the manifest does not hold"
    try:
        return with_stated_cells(build_mechanism(name, settings), manifest)
    except SfumatoError as exc:
        return f"the mechanism cannot be built from the manifest: {exc}"


def with_stated_cells(mechanism: Mechanism, manifest: Manifest) -> Mechanism:
    """Let a mechanism make cells of the form that a manifest states."""
    limit = (manifest.perturbation or {}).get("max_copied_fraction")
    return mechanism.with_cells(stated_cells(manifest, mechanism), limit)


def stated_cells(manifest: Manifest, mechanism: Mechanism | type[Mechanism]) -> str | None:
    """Form of cells that a mechanism must be asked for, to make those of a manifest; ``None``: it does by itself."""
    rules, done = {entry.get("rule") for entry in manifest.recodings}, manifest.perturbation or {}
    found = "values" if "typical" in rules else "draws" if "max_copied_fraction" in done else "ranges"
    return found if found != mechanism.cells and mechanism.takes_cells else None


def rests_on_population(manifest: Manifest) -> bool:
    """Whether something is promised about a table of the population."""
    return any(isinstance(promise, AboutPopulation) for promise in manifest.promised())


def command_for(manifest: Manifest, original: AnyTable | None, asked: Asked) -> tuple[str | None, list[str]]:
    """Write the shell line that makes the release again, and what must be known about it."""
    name, notes = str(manifest.mechanism["name"]), []
    source = original.source if original is not None else None
    if find_mechanism(name) is None:
        return None, [f"'{name}' is a session of several parties: one party cannot run it alone."]
    if original is None or source is None or source.format == "memory":
        return None, ["The original is not a file, so no shell command can read it."]
    settings, unknown = settings_of(manifest, asked.declared, original)
    tables = [key for key, value in settings.items() if not _fits_options(value)]
    if (unknown or tables) and asked.project is None:
        needed = ", ".join([*unknown, *tables])
        notes.append(f"This command lacks the settings of {needed}: there are no options for them. Use a project file.")
    settings = {key: value for key, value in settings.items() if key not in tables}
    if asked.project is not None:
        arguments = ["--project", asked.project]
    else:
        roles = options_of_roles({column.name: column.role for column in original.coded_part.schema})
        arguments = [source.name, *roles, *asked.reading, *_missing(manifest), *_prepare(manifest)]
        if "--query" in asked.reading:
            notes.append("QUERY stands for the query that the original was read by.")
        if not asked.is_as_read or manifest.missing.get("columns"):
            notes.append("Kinds of columns are guessed again: where other kinds were declared, the release differs.")
    if asked.n_guessed:
        notes.append(f"Roles of {asked.n_guessed:,} columns that were not released were guessed; check them.")
    if manifest.perturbation is not None and manifest.perturbation.get("kind") == "synthetic":
        notes.append("Every run draws new noise without a seed: the file will not be the same.")
    if _hides_choices(manifest, asked):
        notes.append(HIDDEN)
    if any("scope" in entry for entry in manifest.prepared) and asked.project is None:
        notes.append("Pseudonyms and shifts of dates rest on a secret: another run draws another one.")
    if may_depend_on_clock(manifest):
        notes.append(CLOCKED)
    output = str(manifest.output.get("name") or "release.csv")
    kept = ["--keep-order"] if manifest.output.get("order") == AS_READ else []
    if rests_on_population(manifest):
        kept += ["--population-table", "REGISTER"]
        notes.append("REGISTER stands for the population table that the release was made with.")
    cells = stated_cells(manifest, mechanism_info(name).build)
    kept += ["--cells", cells] if cells is not None else []
    limit = (manifest.perturbation or {}).get("max_copied_fraction", MOST_COPIES)
    kept += ["--max-copies", f"{limit:g}"] if limit != MOST_COPIES else []
    flags = [*_flags(name, settings, asked), *kept]
    line = shlex.join(["sfumato", "release", *arguments, "-m", name, *flags, "-o", output])
    if len(line) > LONGEST_COMMAND:
        notes.append("The command would be too long: describe the columns with 'sfumato init' and a project file.")
        return None, notes
    return line, notes


def _hides_choices(manifest: Manifest, asked: Asked) -> bool:
    """Whether the mechanism drew choices that hide something, and no key of a project repeats them."""
    info = find_mechanism(str(manifest.mechanism["name"]))
    has_key = asked.project is not None and (manifest.input or {}).get("commitment") is not None
    return info is not None and getattr(info.build, "hides_choices", False) and not has_key


def may_depend_on_clock(manifest: Manifest) -> bool:
    """Whether the mechanism searches under a time limit, and the manifest does not state that it came to its end."""
    info = find_mechanism(str(manifest.mechanism["name"]))
    is_limited = info is not None and any(parameter.name in _TIME_LIMITS for parameter in info.parameters)
    return is_limited and not any(stated.get(name) for stated in manifest.evidence.values() for name in _PROVEN)


def _flags(mechanism: str, settings: Mapping[str, Any], asked: Asked) -> list[str]:
    """Parameters that are neither the defaults nor those of the project file, as options."""
    defaults = {parameter.name: parameter.default for parameter in mechanism_info(mechanism).parameters}
    defaults |= asked.declared if asked.project is not None else {}
    flags: list[str] = []
    for name, value in settings.items():
        default = defaults.get(name)
        if value == default or (isinstance(value, Mapping) and list(value.values()) == _as_list(default)):
            continue
        entries = {name: value}
        if isinstance(value, Mapping):
            entries = {f"{name}.{key}": entry for key, entry in value.items()}
        for key, entry in entries.items():
            flags += ["-p", f"{key}={str(entry).lower() if isinstance(entry, bool) else entry}"]
    return flags


def audit_command(name: str) -> str:
    """Write the line by which a recipient audits a release of this name."""
    return shlex.join(["sfumato", "audit", name, "--manifest", f"{name}.manifest.json"])


def project_commands(project: str, table: str, report: str, *, quick: bool) -> tuple[str, str]:
    """Write the lines by which a project's release and its report are made."""
    release = ["sfumato", "release", "--project", project, "-o", table]
    reporting = ["sfumato", "report", table, "--project", project, "-o", report, *(["--quick"] if quick else [])]
    return shlex.join(release), shlex.join(reporting)


def _fits_options(value: Any) -> bool:
    entries = value.values() if isinstance(value, Mapping) else [value]
    return all(isinstance(entry, str | int | float) for entry in entries)


def _as_list(default: Any) -> list[Any]:
    return list(default.values() if isinstance(default, Mapping) else default or ())


def options_of_roles(roles: Mapping[str, Role]) -> list[str]:
    """Write roles of columns as options.

    Examples
    --------
    >>> options_of_roles({"ill": Role.SENSITIVE_QUASI_IDENTIFIER, "y": Role.TARGET})
    ['--target', 'y', '--quasi-identifiers', 'ill', '--sensitive', 'ill']
    """
    flags: list[str] = []
    for role, flag in _FLAG_OF_ROLE.items():
        names = [name for name, own in roles.items() if own.is_one_of([role])]
        if names:
            flags += [flag, names[0] if role in _SINGLE_ROLES else _comma_separated(names)]
    return flags


def _comma_separated(names: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def _prepare(manifest: Manifest) -> list[str]:
    """Write the preparations of columns as options."""
    written: dict[str, list[str]] = {}
    for entry in manifest.prepared:
        parts = written.setdefault(str(entry["column"]), [])
        operation = entry["operation"]
        if operation in ("drop", "pseudonym"):
            parts.append(operation)
        elif operation == "mask":
            parts += ["mask", *(f"{key}:{entry[key]}" for key in ("keep_first", "keep_last", "character"))]
        elif operation == "age":
            parts.append(f"age_at:{entry['at']}")
        elif operation == "shift":
            parts.append(f"shift_days:{entry['days']}")
        else:
            parts.append(f"{operation}:{entry['value']}")
    return [part for name, parts in written.items() for part in ("--prepare", f"{name}={','.join(parts)}")]


def _missing(manifest: Manifest) -> list[str]:
    tokens = manifest.missing_tokens
    flags = [] if tokens == DEFAULT_MISSING_TOKENS else [part for token in tokens for part in ("--missing", token)]
    kept = (manifest.input or {}).get("one_row_per_person")
    flags += ["--one-row-per-person", kept["rule"]] if kept else []
    return [*flags, *(["--drop-incomplete"] if manifest.missing.get("rows") == "dropped" else [])]
