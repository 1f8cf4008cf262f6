"""From a data file to a project file that describes it, with guessed roles and the reasons."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.atomic import check_writable, explained_writing, write_atomically
from sfumato.datasets.admissions import admissions
from sfumato.errors import InputError, OutputError
from sfumato.manifest import AnyTable
from sfumato.project import toml_text
from sfumato.schema import PROJECT_NAME, Kind, Role
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Source
from sfumato.table.describe import ColumnGuess, describe_columns
from sfumato.table.read import DEFAULT_OPTIONS, ReadOptions, read_table
from sfumato.table.write import write_table

DEMO_MARKER = "# Written by sfumato demo"
DEMO_DATA = "admissions.csv"


@dataclass(frozen=True)
class Described:
    """A table that was looked at for the first time.

    Parameters
    ----------
    table : Table or BinaryTable
        As it was read, without the guessed roles.
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
    table = read_table(data, options=replace(options, mixed_as_text=True))
    guesses = tuple(describe_columns(table, overrides=roles))
    if table.source is None:
        raise AssertionError
    source = replace(table.source, name=os.path.relpath(Path(data).resolve(), folder.resolve()))
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
    if target.exists() and Path(data).exists() and target.samefile(data):
        problem = "is the data, which is never written to"
        raise OutputError(problem, path=target, hint="name another project file")
    described = describe_data(data, target.parent, options=options, roles=roles)
    write_atomically(target, described.text.encode(), force=force)
    return described


def is_demo_folder(folder: Path) -> bool:
    """Whether what stands there was written by a demo, going by the marker in its project file."""
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
        raise OutputError(problem, path=folder, hint="name another folder with -o")
    with explained_writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name in (DEMO_DATA, PROJECT_NAME, *others):
        check_writable(folder / name, force=force)
    made = admissions()
    content = io.BytesIO()
    write_table(made, content, "csv")
    write_atomically(folder / DEMO_DATA, content.getvalue(), force=force)
    known = {column.name: column.role for column in made.schema}
    guessed = describe_columns(read_table(folder / DEMO_DATA))
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
        "# Check every role: a guess is a guess. 'sfumato release' reads this file.",
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
    for guess in guesses:
        column = guess.column
        reason = " ".join(guess.reason.split())
        entry = f"{{ role = {toml_text(column.role)}, kind = {toml_text(column.kind)} }}"
        lines.append(f"{toml_text(column.name)} = {entry}  # {reason}")
    return "\n".join(lines) + "\n" + _RELEASE_SECTION


_RELEASE_SECTION = """
[release]
mechanism = "greedy-containment"  # 'sfumato mechanisms' lists them
output = "release.csv"

[release.parameters]
k = 5

# How columns become binary features for mechanisms that need them; without this section it is chosen by kind:
# [binarize.columns]
# age = { cuts = [25, 35, 45, 55] }

# What 'sfumato compare' tries; without this section every mechanism proposes its own settings:
# [compare]
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
        )
        if value is not None
    ]
    if not options.header:
        lines.append("header = false")
    if options.skip_rows:
        lines.append(f"skip_rows = {options.skip_rows}")
    tokens = ", ".join(toml_text(token) for token in options.missing)
    rows = "drop" if options.complete_rows_only else "keep"
    return [
        *lines,
        f"missing = [{tokens}]",
        f'missing_rows = "{rows}"  # keep: missing is a value of its own; drop: leave such rows out',
    ]
