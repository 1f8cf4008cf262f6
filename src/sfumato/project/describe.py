"""From a data file to a project file that describes it, with guessed roles and the reasons."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.atomic import check_writable, explained_writing, write_atomically
from sfumato.datasets.admissions import admissions
from sfumato.errors import InputError, OutputError
from sfumato.manifest import AnyTable
from sfumato.project.edit import ProjectChanges, edit_project, guess_comment, toml_value
from sfumato.project.file import Project, load_project, toml_text
from sfumato.schema import PROJECT_NAME, Column, Kind, Role
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Source
from sfumato.table.io.databases.address import is_address
from sfumato.table.io.read import DEFAULT_OPTIONS, ReadOptions, named_database, read_table
from sfumato.table.io.write import write_table
from sfumato.table.reading.columns import format_key
from sfumato.table.roles import ColumnGuess
from sfumato.table.understanding import read_understood, understand

DEMO_MARKER = "# Written by sfumato demo"
DEMO_DATA = "admissions.csv"


@dataclass(frozen=True)
class Described:
    """A table that was looked at for the first time.

    Parameters
    ----------
    table : Table or BinaryTable
        As it was read, with the guessed roles.
    guesses : tuple of ColumnGuess
        One for every column, features of a sparse table included.
    text : str
        Project file that says all this.
    """

    table: AnyTable
    guesses: tuple[ColumnGuess, ...]
    text: str


def describe_data(
    data: str | Path,
    folder: Path,
    *,
    options: ReadOptions = DEFAULT_OPTIONS,
    roles: Mapping[str, Role] | None = None,
) -> Described:
    """Read a data file and write down what its columns seem to be, for a project file in ``folder``.

    Dates of birth are written down as ages, see :mod:`sfumato.table.births`.

    Parameters
    ----------
    data : path
        The project names it relative to ``folder``.
    roles : mapping of str to Role, optional
        Roles that are already known.
    """
    if str(data) == "-":
        problem = "a project names its data by path, and standard input has none"
        raise InputError(problem, path="-", hint="save the data to a file first")
    understood = read_understood(data, options, roles)
    table, guesses = understood.table, understood.guesses
    if table.source is None:
        raise AssertionError
    name, options = _named(data, folder, options)
    source = replace(table.source, name=name)
    if isinstance(table, BinaryTable):
        listed = [guess for guess in guesses if guess.column.name in table.companions.schema]
        text = project_text(listed, source, options, default_role=Role.QUASI_IDENTIFIER)
    else:
        text = project_text(guesses, source, options)
    return Described(table, guesses, text)


def describe_to_project(
    data: str | Path,
    target: str | Path,
    *,
    options: ReadOptions = DEFAULT_OPTIONS,
    roles: Mapping[str, Role] | None = None,
    force: bool = False,
) -> Described:
    """Write the project file of a data file, as :func:`describe_data` describes it."""
    target = Path(target)
    check_writable(target, force=force)
    file = getattr(named_database(data, options), "path", None) or Path(data)
    if target.exists() and file.exists() and target.samefile(file):
        problem = "is the input, which is never overwritten"
        raise OutputError(problem, path=target, hint="name another project file")
    described = describe_data(data, target.parent, options=options, roles=roles)
    write_atomically(target, described.text.encode(), force=force)
    return described


@dataclass(frozen=True)
class Updated:
    """What an update of a project file found.

    Parameters
    ----------
    project : Project
        As it is now.
    n_rows : int
        Of the data.
    new : tuple of ColumnGuess
        Columns that were added, with guessed roles.
    gone : tuple of str
        Columns that the data no longer have; they stay in the file as comments.
    unfit : mapping of str to Kind
        Columns whose values no longer fit the kind that the file says, and the kind that they seem to have.
    """

    project: Project
    n_rows: int
    new: tuple[ColumnGuess, ...]
    gone: tuple[str, ...]
    unfit: Mapping[str, Kind]


def update_project(
    path: str | Path, *, data: str | Path | None = None, roles: Mapping[str, Role] | None = None
) -> Updated:
    """Read the data of a project again and bring its file up to date, keeping what people wrote.

    Roles, kinds and comments of the columns that are listed stay. New columns are added with guessed roles, columns
    that are gone become comments, and the SHA-256 is that of the data as they are now.

    Parameters
    ----------
    data : path, optional
        Data file from now on; by default the one that the project names.
    roles : mapping of str to Role, optional
        Roles to change. A new target makes the former one a quasi-identifier.
    """
    project = load_project(path)
    table = read_table(project.data if data is None else data, options=replace(project.options, mixed_as_text=True))
    plain = table.coded_part
    listed, given = {column.name: column for column in project.columns}, dict(roles or {})
    known = {name: column.role for name, column in listed.items() if name in plain.schema}
    if Role.TARGET in given.values():
        known = {name: Role.QUASI_IDENTIFIER if role is Role.TARGET else role for name, role in known.items()}
    guesses = [g for g in understand(table, known | given).guesses if g.column.name in plain.schema]
    is_open = project.default_role is None
    new = tuple(g for g in guesses if g.column.name not in listed and (is_open or g.column.name in given))
    features = set(table.feature_names) if isinstance(table, BinaryTable) else set()
    gone = tuple(name for name in listed if name not in plain.schema and name not in features)
    strict = (Kind.NUMERIC, Kind.DATE)
    unfit = {
        name: plain.schema[name].kind
        for name in known
        if listed[name].kind in strict and plain.schema[name].kind is not listed[name].kind
    }
    changes = ProjectChanges(
        roles={g.column.name: g.column.role for g in new} | given,
        kinds={g.column.name: g.column.kind for g in new},
        formats={g.column.name: _format_of(g.column) for g in new},
        preparations={g.column.name: g.prepare for g in new if g.prepare},
        reasons={g.column.name: f"{g.reason}{_doubt(g.column)}" for g in new},
        gone=dict.fromkeys(gone, "no longer in the data"),
        data_sha256=None if table.source is None else table.source.sha256,
        data_path=None if data is None else _named(data, project.path.parent, project.options)[0],
        former_target=Role.QUASI_IDENTIFIER,
    )
    return Updated(edit_project(path, changes), table.n_rows, new, gone, unfit)


def describe_next(data: str | Path, path: str | Path, *, like: str | Path, force: bool = False) -> Updated:
    """Describe a data file in a new project file as another project file describes its own, such as last year's.

    All that stands in the other file is copied, comments included, and brought up to date as
    :func:`update_project` does; its release gets a name of its own. Nothing is left behind if that fails.

    Parameters
    ----------
    data : path
        The file to describe.
    path : path
        Project file to write.
    like : path
        The other project file.

    Raises
    ------
    InputError
        If the other file names hierarchies and is in another folder, where their paths would mean something else.
    OutputError
        If the new project file exists, and is not to be replaced.
    """
    path, like = Path(path), Path(like)
    other = load_project(like)
    check_writable(path, force=force)
    if path.exists() and path.samefile(like):
        problem = "is the project file to describe it by, which is kept"
        raise OutputError(problem, path=path, hint="choose another name, or update that file", remedy=("update",))
    has_files = any(column.hierarchy for column in other.columns) or "hierarchies" in other.parameters
    if has_files and path.parent.resolve() != like.parent.resolve():
        problem = "names hierarchy files by their place next to it"
        raise InputError(problem, path=like, hint=f"write the new project file into {like.parent}")
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".sfumato-") as private:
        draft = Path(private) / path.name  # one level below: the paths in it are written anew
        draft.write_bytes(like.read_bytes())
        updated = update_project(draft, data=data)
        output = None if other.output is None else f"{Path(data).stem}-release{''.join(other.output.suffixes)}"
        edit_project(draft, ProjectChanges(data_path=_relative(Path(data), path.parent), output=output))
        write_atomically(path, draft.read_bytes(), force=force)
    return replace(updated, project=load_project(path))


def roles_lacking(columns: Iterable[Column]) -> tuple[Role, ...]:
    """Roles that no column has and that releases need: a target to serve, and quasi-identifiers to release."""
    found = {part for column in columns for part in column.role.parts}
    return tuple(role for role in (Role.TARGET, Role.QUASI_IDENTIFIER) if role not in found)


def _named(data: str | Path, folder: Path, options: ReadOptions) -> tuple[str, ReadOptions]:
    """Name data in a project file: by address on a server, by path everywhere else."""
    found = named_database(data, options)
    if found is None or not is_address(data):
        return _relative(Path(data), folder), options
    if found.path is None:
        return found.place, options
    return _relative(found.path, folder), replace(options, format=found.kind)


def _relative(data: Path, folder: Path) -> str:
    return os.path.relpath(data.resolve(), folder.resolve())


def is_demo_folder(folder: Path) -> bool:
    """Whether what is there was written by a demo, going by the marker in its project file."""
    try:
        return (folder / PROJECT_NAME).read_text(encoding="utf-8").startswith(DEMO_MARKER)
    except (OSError, ValueError):
        return False


def write_demo(folder: Path, *, force: bool = False, others: Sequence[str] = ()) -> Described:
    """Write the made-up admissions and a project file that describes them into a folder.

    Parameters
    ----------
    folder : Path
        Made if there is none.
    force : bool
        Replace the files that exist.
    others : sequence of str
        Further files of the folder that will be written, which are checked first as well.
    """
    if folder.exists() and not folder.is_dir():
        problem = "is a file, not a folder"
        raise OutputError(problem, path=folder, hint="name another folder", remedy=("output",))
    with explained_writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name in (DEMO_DATA, PROJECT_NAME, *others):
        check_writable(folder / name, force=force)
    made = admissions()
    content = io.BytesIO()
    write_table(made, content, "csv")
    write_atomically(folder / DEMO_DATA, content.getvalue(), force=force)
    known = {column.name: column.role for column in made.schema}
    guessed = read_understood(folder / DEMO_DATA).guesses
    wrong = {g.column.name: known[g.column.name] for g in guessed if g.column.role is not known[g.column.name]}
    described = describe_data(folder / DEMO_DATA, folder, roles=wrong)
    text = f"{DEMO_MARKER}; a further demo replaces it\n{described.text}"
    write_atomically(folder / PROJECT_NAME, text.encode(), force=force)
    return replace(described, text=text)


def project_text(
    guesses: Sequence[ColumnGuess], source: Source, options: ReadOptions, *, default_role: Role | None = None
) -> str:
    """Write a commented project file: every column with its guessed role and kind, and why."""
    lines = [
        "# A sfumato project: what the columns are and what to release. It holds no data.",
        "# Check every role: all are guessed. 'sfumato release' reads this file.",
        "",
        "[data]",
        f"path = {toml_text(source.name)}",
        f"sha256 = {toml_text(source.sha256)}",
        *_option_lines(options),
    ]
    if default_role:
        lines.append(f"default_role = {toml_text(default_role)}  # for every column that is not listed below")
    roles = ", ".join(Role)
    lines += ["", "[columns]", f"# roles: {roles}", f"# kinds: {', '.join(Kind)}"]
    if Role.TARGET in roles_lacking(guess.column for guess in guesses):
        lines.append("# No target column was found, and most mechanisms need one: give a column the role target.")
    for guess in guesses:
        column = guess.column
        remedy = "; if it names nobody, give it another role and confirmed = true" if guess.is_withheld else ""
        reason = " ".join(f"{guess.reason}{remedy}{_doubt(column)}".split())
        entry: dict[str, Any] = {"role": str(column.role), "kind": str(column.kind), **_format_of(column)}
        if guess.prepare:
            entry["prepare"] = dict(guess.prepare)
        lines.append(f"{toml_text(column.name)} = {toml_value(entry)}  # {reason}")
    return "\n".join(lines) + "\n" + _RELEASE_SECTION


def _doubt(column: Column) -> str:
    """Say what is a guess in the way that the texts of a column are read."""
    doubt = column.reading.doubt if column.reading is not None else ""
    return guess_comment(format_key(column), doubt) if doubt else ""


def _format_of(column: Column) -> dict[str, str]:
    return {} if column.reading is None else {format_key(column): column.reading.format}


_RELEASE_SECTION = """
[release]
mechanism = "auto"  # strict k-anonymity that keeps most of the target; 'sfumato mechanisms' lists the others
output = "release.csv"

[release.parameters]
k = 5

# How columns become binary features for mechanisms that need them; without this section it is chosen by kind:
# [binarize.columns]
# age = { cuts = [25, 35, 45, 55] }

# What 'sfumato compare' tries; without this section every mechanism proposes its own settings:
# [compare]
# also = ["containment"]  # further kinds of promises to try
# weights = [0.5, 0.3, 0.2]  # of utility, privacy and few columns
# [compare.grid.mondrian]
# k = [5, 10]
"""


def _option_lines(options: ReadOptions) -> list[str]:
    lines = [
        f"{key} = {toml_text(value)}"
        for key, value in (
            ("format", options.format),
            ("delimiter", options.delimiter),
            ("encoding", options.encoding),
            ("sheet", options.sheet),
            ("table", options.table),
            ("query", options.query),
        )
        if value is not None
    ]
    if not options.header:
        lines.append("header = false")
    if options.skip_rows:
        lines.append(f"skip_rows = {options.skip_rows}")
    tokens = ", ".join(toml_text(token) for token in options.missing)
    if options.one_row_per_person is not None:
        lines.append(f'one_row_per_person = "{options.one_row_per_person}"')
    rows = "drop" if options.complete_rows_only else "keep"
    return [
        *lines,
        f"missing = [{tokens}]",
        f'missing_rows = "{rows}"  # keep: missing is a value of its own; drop: leave such rows out',
    ]
