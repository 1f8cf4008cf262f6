"""Change some entries of a project file; its comments, order and spacing stay as they are."""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from sfumato.atomic import explained_writing, write_atomically
from sfumato.errors import InputError, InvalidParameterError, SchemaError
from sfumato.project.file import Project, parse_toml, project_bytes, project_of, toml_text
from sfumato.schema import WITHHELD, Column, Kind, Role, Schema


@dataclass(frozen=True)
class Assignment:
    """One entry of a section and its new value; None takes the entry away.

    ``comment`` is written behind an entry that is new. With one, an entry that is taken away stays as a comment.
    ``is_settled`` cuts from the comment of an entry what :func:`guess_comment` says.
    """

    section: tuple[str, ...]
    key: str
    value: Any
    comment: str = ""
    is_settled: bool = False


FORMAT_KEYS = ("date_format", "number_format")
"""Keys by which a project file says the format of a column."""
_GUESSED = re.compile(rf"(?:; )?(?:{'|'.join(FORMAT_KEYS)}) is a guess \((?P<doubt>.*)\): please confirm")


def guess_comment(key: str, doubt: str) -> str:
    """Say behind a column what is a guess in its format; gone once somebody has said the format."""
    return f"; {key} is a guess ({doubt}): please confirm"


class NotEditableError(Exception):
    """A text has a form in which its entries cannot be changed without touching others."""


def doubts_in(path: str | Path) -> dict[str, str]:
    """Read from the comments of a project file which formats nobody has confirmed yet: by column, what is a guess.

    A file that cannot be read has none: who loads it says why. Nor has a column whose format somebody has turned by
    hand since, so that the comment no longer speaks of it.
    """
    import tomlkit

    try:
        columns = tomlkit.parse(Path(path).read_text(encoding="utf-8")).get("columns", {})
    except (OSError, ValueError):
        return {}
    found: dict[str, str] = {}
    for name, entry in columns.items():
        said = _GUESSED.search(getattr(getattr(entry, "trivia", None), "comment", ""))
        written = next((str(entry[key]) for key in FORMAT_KEYS if said is not None and key in entry), "")
        is_turned = said is not None and said["doubt"].startswith("day first") and not written.upper().startswith("DD")
        if said is not None and written and not is_turned:
            found[str(name)] = said["doubt"]
    return found


def toml_value(value: Any) -> str:
    r"""Write a value in TOML, on one line.

    Examples
    --------
    >>> toml_value({"k": [5, 10], "strict": True, "of age": 'a "b"'})
    '{ k = [5, 10], strict = true, "of age" = "a \\"b\\"" }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        entries = ", ".join(f"{toml_key(key)} = {toml_value(entry)}" for key, entry in value.items())
        return f"{{ {entries} }}" if entries else "{}"
    problem = f"got a {type(value).__name__}"
    raise InvalidParameterError("a value in TOML", problem, allowed="text, a number, true, false, a list or a table")


def toml_key(key: str) -> str:
    """Write a key in TOML, with quotes only where they are needed."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_text(key)


def edited_toml(text: str, content: Mapping[str, Any], assignments: Sequence[Assignment]) -> tuple[str, dict[str, Any]]:
    r"""Change entries of a text; new ones are added at the end of their section.

    Parameters
    ----------
    content : mapping
        What the text says.

    Returns
    -------
    tuple of str and dict
        The new text and what it says.

    Raises
    ------
    NotEditableError
        If there is no way to do just that.

    Examples
    --------
    >>> text = "[release]\nk = 5  # as agreed\n"
    >>> edited_toml(text, {"release": {"k": 5}}, [Assignment(("release",), "k", 10)])
    ('[release]\nk = 10  # as agreed\n', {'release': {'k': 10}})
    """
    try:
        result = _edited_text(text, assignments)
        said = tomllib.loads(result)
    except ImportError:
        raise
    except Exception as exc:  # a form that tomlkit cannot edit; it raises many kinds
        problem = "the text cannot be edited"
        raise NotEditableError(problem) from exc
    if not is_same_toml(said, _assigned(content, assignments)):
        problem = "editing would change other entries too"
        raise NotEditableError(problem)
    return result, said


def is_same_toml(one: Any, other: Any) -> bool:
    """Whether two values are the same in TOML, where 1, 1.0 and true differ.

    Examples
    --------
    >>> is_same_toml({"k": [1]}, {"k": [1]}), is_same_toml({"k": [1]}, {"k": [1.0]})
    (True, False)
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same_toml(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same_toml, one, other))
    return type(one) is type(other) and one == other


def _assigned(content: Mapping[str, Any], assignments: Sequence[Assignment]) -> dict[str, Any]:
    """Say what the text has to hold in the end."""
    result = deepcopy(dict(content))
    for one in assignments:
        section: dict[str, Any] = reduce(lambda table, part: table.setdefault(part, {}), one.section, result)
        if one.value is None:
            section.pop(one.key, None)
        else:
            section[one.key] = one.value
    return result


def _edited_text(text: str, assignments: Sequence[Assignment]) -> str:
    import tomlkit

    end = "\r\n" if 0 < text.count("\n") == text.count("\r\n") else "\n"
    last_end = "" if text.endswith("\n") else "\n"  # needed by entries that may follow
    document = tomlkit.parse(text.replace(end, "\n") + last_end)
    for section in dict.fromkeys(one.section for one in assignments):
        table: MutableMapping[str, Any] = document
        for part in section:
            table = table.setdefault(part, tomlkit.table())
        _edit_section(table, [one for one in assignments if one.section == section])
    return tomlkit.dumps(document).removesuffix(last_end).replace("\n", end)


def _edit_section(table: MutableMapping[str, Any], wanted: Sequence[Assignment]) -> None:
    """Change entries of a section; new ones follow those that are there, before the comments that end it."""
    import tomlkit
    from tomlkit.items import Table

    body: list[Any] = table.value.body if isinstance(table, Table) else []
    places = {key.key: n for n, (key, _) in enumerate(body) if key is not None}
    after = max(places.values(), default=-1) + 1
    body[after:], rest = [], body[after:]
    if body and not any(isinstance(entry, Table) for _, entry in body):
        table.value.parsing(True)  # type: ignore[attr-defined] # else each new entry is preceded by a look at all others
    for one in sorted(wanted, key=lambda one: one.key not in table):  # new ones move others
        if one.key not in table:
            entry = tomlkit.value(toml_value(one.value))
            if one.comment:
                entry.comment(one.comment)
                entry.trivia.comment_ws = "  "
            table[one.key] = entry
        elif one.value is None and one.comment:
            key, entry = body[places[one.key]]
            was = f"{key.as_string().strip()} = {toml_value(_plain(table.pop(one.key)))}"
            words = f"{one.comment}: {was}{entry.trivia.comment_ws}{entry.trivia.comment}"
            body[places[one.key]] = (None, tomlkit.comment(words))
        else:
            _set(table, one.key, one.value)
            trivia = getattr(table[one.key], "trivia", None) if one.is_settled else None
            if trivia is not None:
                trivia.comment = _GUESSED.sub("", trivia.comment)
    body += rest
    if isinstance(table, Table):
        table.value.parsing(False)


def _set(table: MutableMapping[str, Any], key: str, value: Any) -> None:
    """Set an entry of tomlkit's; in a table only the entries that differ are touched."""
    import tomlkit
    from tomlkit.items import InlineTable

    present = table.get(key)
    # a table on one line that gets or loses entries is written anew, for tomlkit would space it badly
    is_reshaped = isinstance(present, InlineTable) and isinstance(value, dict) and present.keys() != value.keys()
    if value is None:
        del table[key]
    elif isinstance(value, dict) and isinstance(present, MutableMapping) and not is_reshaped:
        for name in [name for name in present if name not in value]:
            del present[name]
        for name in [name for name in value if not is_same_toml(_plain(present.get(name)), value[name])]:
            _set(present, name, value[name])
    else:
        table[key] = tomlkit.value(toml_value(value))


def _plain(item: Any) -> Any:
    return item.unwrap() if hasattr(item, "unwrap") else item


_DATA = ("data",)
_COLUMNS = ("columns",)
_RELEASE = ("release",)
_COMPARE = ("compare",)
_PARAMETERS = ("release", "parameters")


@dataclass(frozen=True)
class ProjectChanges:
    """What is to change in a project file; everything left out stays as it is.

    Parameters
    ----------
    roles : mapping of str to Role
        By column. A column that the file does not list is added. It then needs a kind as well, for without one it
        would become categorical. Ages are no longer taken of one that is no longer released.
    kinds : mapping of str to Kind
        By column.
    hierarchies : mapping of str to (str or None)
        By column the hierarchy file, relative to the project file; None takes it away.
    confirmed : mapping of str to bool
        By column whether it may be released although its values look as if they named people.
    mechanism : str or None
        Name of the mechanism.
    parameters : mapping or None
        All parameters of the release: those that are not among them are removed. An entry that is None is left out,
        since TOML cannot say it.
    output : str or None
        File of the release, relative to the project file.
    weights : sequence of float or None
        Of utility, privacy and size in a comparison.
    data_sha256 : str or None
        SHA-256 of the data file that is described.
    data_path : str or None
        Data file, relative to the project file.
    reasons : mapping of str to str
        By column that is added, what is written behind it as a comment.
    gone : mapping of str to str
        By column that is taken out, why; it stays as a comment.
    former_target : Role or None
        Role that the present target takes when ``roles`` makes another column the target. Without it a second target
        is refused.
    formats : mapping of str to (mapping or None)
        By column the key and the format in which its texts are read; None takes it away. A comment behind the column
        that calls the format a guess is cut.
    preparations : mapping of str to (mapping or None)
        By column what is done to it first, as :meth:`sfumato.table.preparing.declared.Preparation.written` writes it;
        None for nothing.
    cells : str or None
        Form of the released cells; empty takes the entry away.
    escape_formulas : bool or None
        Whether texts that a spreadsheet program would run get an apostrophe.
    """

    roles: Mapping[str, Role] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    hierarchies: Mapping[str, str | None] = field(default_factory=dict)
    confirmed: Mapping[str, bool] = field(default_factory=dict)
    mechanism: str | None = None
    parameters: Mapping[str, Any] | None = None
    output: str | None = None
    weights: Sequence[float] | None = None
    data_sha256: str | None = None
    data_path: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)
    former_target: Role | None = None
    formats: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)
    preparations: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    cells: str | None = None
    escape_formulas: bool | None = None


def project_with(path: str | Path, changes: ProjectChanges) -> Project:
    """Give the project as it would be after the changes; nothing is written.

    Raises
    ------
    SchemaError, InputError
        As :func:`edit_project`.
    """
    path = Path(path)
    text, content = _edited(path, project_bytes(path), changes)
    return project_of(path, text.encode(), content)


def edit_project(path: str | Path, changes: ProjectChanges) -> Project:
    """Change a project file on disk and load it.

    The new text is loaded before the old file is replaced, so that a bad edit never lands. Edits by several processes
    at the same time follow each other. A hierarchy file among the parameters that is named by its full path is written
    relative to the project file when it stands in its folder.

    Raises
    ------
    SchemaError
        If two columns would be the target, or a column that is not listed is given only half of its description.
    InputError
        If the file is no project file, before or after the change.
    """
    path = Path(path)
    project_bytes(path)  # says what is wrong with a file that cannot be read
    if changes.parameters is not None:
        changes = replace(changes, parameters=_with_relative_files(path, changes.parameters))
    with _one_at_a_time(path):
        raw = project_bytes(path)
        text, content = _edited(path, raw, changes)
        project = project_of(path, text.encode(), content)
        if text.encode() != raw:
            with explained_writing(path.resolve()):
                mode = path.resolve().stat().st_mode & 0o777
            write_atomically(path.resolve(), text.encode(), force=True, mode=mode)
    return project


def _edited(path: Path, raw: bytes, changes: ProjectChanges) -> tuple[str, dict[str, Any]]:
    """Change the text of a project file; returned with what it then says."""
    content = parse_toml(path, raw)
    tables = [content.get(name, {}) for name in ("data", "release", "compare", "columns")]
    if isinstance(tables[-1], dict):
        tables += tables[-1].values()
    if not all(isinstance(table, dict) for table in tables):
        problem = "its sections and columns must be tables"
        raise InputError(problem, path=path)
    columns = _column_assignments(content, changes)
    entries = {**content.get("columns", {}), **{one.key: one.value for one in columns}}
    targets = [name for name, entry in entries.items() if entry is not None and entry.get("role") == Role.TARGET]
    Schema.of(Column(name, Role.TARGET) for name in targets)
    try:
        return edited_toml(raw.decode(), content, [*columns, *_setting_assignments(content, changes)])
    except NotEditableError:
        problem = "is written in a form that cannot be edited here"
        raise InputError(problem, path=path, hint="change it in a text editor") from None


def _column_assignments(content: Mapping[str, Any], changes: ProjectChanges) -> list[Assignment]:
    """List the new entries of the columns for which something changes."""
    listed: Mapping[str, Any] = content.get("columns", {})
    default_role = content.get("data", {}).get("default_role")
    roles = dict(changes.roles)
    if changes.former_target is not None and Role.TARGET in roles.values():
        former = [name for name, entry in listed.items() if entry.get("role") == Role.TARGET]
        roles = dict.fromkeys(former, changes.former_target) | roles
    assignments = []
    changed = (roles, changes.kinds, changes.hierarchies, changes.confirmed, changes.formats, changes.preparations)
    for name in dict.fromkeys(name for given in changed for name in given):
        entry = dict(listed.get(name, {"role": default_role} if default_role else {}))
        given = {"role": roles.get(name), "kind": changes.kinds.get(name), "hierarchy": changes.hierarchies.get(name)}
        entry |= {key: str(value) for key, value in given.items() if value is not None}
        if name in changes.formats:
            entry = {key: value for key, value in entry.items() if key not in FORMAT_KEYS}
            entry |= changes.formats[name] or {}
        if name in changes.preparations:
            entry.pop("prepare", None)
            entry |= {"prepare": dict(changes.preparations[name] or {})} if changes.preparations[name] else {}
        if name in changes.hierarchies and changes.hierarchies[name] is None:
            entry.pop("hierarchy", None)
        if changes.confirmed.get(name):
            entry["confirmed"] = True
        elif name in changes.confirmed:
            entry.pop("confirmed", None)
        if name in roles and roles[name] in WITHHELD and "age_at" in entry.get("prepare", {}):
            del entry["prepare"]  # of a column that is no longer released
        if name not in listed and not {"role", "kind"} <= entry.keys():
            problem = "is not listed in the project file yet: give both its role and its kind"
            raise SchemaError(problem, column=name)
        is_settled = name in listed and name in changes.formats
        if entry != listed.get(name) or is_settled:
            reason = "" if name in listed else changes.reasons.get(name, "")
            assignments.append(Assignment(_COLUMNS, name, entry, " ".join(reason.split()), is_settled=is_settled))
    gone = [Assignment(_COLUMNS, name, None, why) for name, why in changes.gone.items() if name in listed]
    return [*assignments, *gone]


def _setting_assignments(content: Mapping[str, Any], changes: ProjectChanges) -> list[Assignment]:
    """List the new entries of the data, the release and the comparison."""
    wanted = [
        Assignment(_DATA, "path", changes.data_path),
        Assignment(_DATA, "sha256", changes.data_sha256),
        Assignment(_RELEASE, "mechanism", changes.mechanism),
        Assignment(_RELEASE, "output", changes.output),
        Assignment(_COMPARE, "weights", None if changes.weights is None else _as_read(list(changes.weights))),
    ]
    named = [one for one in wanted if one.value is not None]
    if changes.cells is not None:
        named.append(Assignment(_RELEASE, "cells", changes.cells or None))
    if changes.escape_formulas is not None:
        named.append(Assignment(_RELEASE, "escape_formulas", changes.escape_formulas or None))
    if changes.parameters is not None:
        named += _parameter_assignments(content, changes.parameters)
    sections = [reduce(lambda table, part: table.get(part, {}), one.section, content) for one in named]
    pairs = zip(named, sections, strict=True)
    return [one for one, section in pairs if not is_same_toml(one.value, section.get(one.key))]


def _parameter_assignments(content: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[Assignment]:
    wanted = {key: _as_read(value) for key, value in parameters.items() if value is not None}
    if is_same_toml(wanted.get("binarize"), content.get("binarize")):
        wanted.pop("binarize", None)  # said once, in its own section
    present = content.get("release", {}).get("parameters", {})
    gone = dict.fromkeys(key for key in present if key not in wanted)
    return [Assignment(_PARAMETERS, key, value) for key, value in {**gone, **wanted}.items()]


def _as_read(value: Any) -> Any:
    """Give a value the types that it will be read with; what TOML cannot say is refused."""
    return tomllib.loads(f"value = {toml_value(value)}")["value"]


def _with_relative_files(path: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Name hierarchy files in the project's folder relative to it, as a loaded project no longer does."""
    files = parameters.get("hierarchies")
    if not isinstance(files, Mapping):
        return dict(parameters)
    folder = path.parent.absolute()
    named = {
        name: Path(file).relative_to(folder).as_posix()
        if isinstance(file, str) and Path(file).is_relative_to(folder)
        else file
        for name, file in files.items()
    }
    return {**parameters, "hierarchies": named}


@contextlib.contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Wait until no other process edits the file; where the system has no such locks nothing is waited for."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    while True:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):  # else another edit has replaced the file
                yield
                return
