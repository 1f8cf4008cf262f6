"""Give entries of a TOML text new values and leave the rest as its author wrote it: comments, order and spacing.

Most entries stand on a line of their own (``"age" = { role = "other", kind = "numeric" }  # why``). These lines are
changed one by one, so that thousands of other lines cost nothing. A text in another form (a table for each column,
values over several lines) is edited as a whole by tomlkit, which takes seconds for 25,000 entries. Whatever the way,
the result is parsed anew and must say exactly what was asked.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, MutableMapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from typing import Any

from sfumato.errors import InvalidParameterError
from sfumato.project import toml_text

_KEY = r"""[ \t]*(?P<key>[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')[ \t]*=[ \t]*"""
_ENTRY = re.compile(_KEY)
_WORD = r'[a-z]+[ \t]*=[ \t]*"[a-z-]*"[ \t]*'
_WORDS = re.compile(rf"{_KEY}(?P<table>\{{[ \t]*(?:{_WORD}(?:,[ \t]*{_WORD})*)\}})[ \t]*(?:#.*)?")
_NAMED_WORD = re.compile(r'([a-z]+)([ \t]*=[ \t]*)"([a-z-]*)"')
_HEADER = re.compile(r"[ \t]*\[")


@dataclass(frozen=True)
class Assignment:
    """One entry of a section and its new value; None takes the entry away.

    ``comment`` is written behind an entry that is new. With one, an entry that is taken away stays as a comment.
    """

    section: tuple[str, ...]
    key: str
    value: Any
    comment: str = ""


class NotEditableError(Exception):
    """A text has a form in which its entries cannot be changed without touching others."""


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
    wanted = _assigned(content, assignments)
    for edit in (_edited_by_lines, _edited_as_document):
        try:
            result = edit(text, assignments)
            said = tomllib.loads(result)
        except ImportError:
            raise
        except Exception:  # a form that this way of editing does not know; tomlkit raises many kinds
            continue
        if is_same_toml(said, wanted):
            return result, said
    problem = "the text cannot be edited"
    raise NotEditableError(problem)


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


def _edited_by_lines(text: str, assignments: Sequence[Assignment]) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    for section in dict.fromkeys(one.section for one in assignments):
        _edit_section(lines, section, {one.key: one for one in assignments if one.section == section})
    return end.join(lines)


def _edit_section(lines: list[str], section: tuple[str, ...], wanted: Mapping[str, Assignment]) -> None:
    """Change the lines of one section in place."""
    start = _first_line(lines, section)
    stop = next((n for n in range(start, len(lines)) if _HEADER.match(lines[n])), len(lines))
    places = {key: n for n in range(start, stop) if (key := _key_of(lines[n])) is not None}
    gone = {key: one for key, one in wanted.items() if one.value is None}
    for key in wanted.keys() & places.keys() - gone.keys():
        lines[places[key]] = _edited_line(lines[places[key]], key, wanted[key].value)
    new = [_new_line(one) for key, one in wanted.items() if key not in places]
    after = max(places.values(), default=start - 1) + 1
    lines[after:after] = new
    for key in sorted(gone, key=lambda key: places[key], reverse=True):
        was = lines[places[key]]
        lines[places[key] : places[key] + 1] = [f"# {gone[key].comment}: {was.strip()}"] if gone[key].comment else []


def _new_line(one: Assignment) -> str:
    return f"{toml_key(one.key)} = {toml_value(one.value)}" + (f"  # {one.comment}" if one.comment else "")


def _first_line(lines: list[str], section: tuple[str, ...]) -> int:
    """Find the line after a section's header, which is added at the end if there is none."""
    name = r"[ \t]*\.[ \t]*".join(map(re.escape, section))
    header = re.compile(rf"[ \t]*\[[ \t]*{name}[ \t]*\][ \t]*(?:#.*)?")
    found = next((n for n, line in enumerate(lines, start=1) if header.fullmatch(line)), None)
    if found is not None:
        return found
    if lines[-1] == "":
        lines.pop()
    lines += ["", f"[{'.'.join(section)}]", ""]
    return len(lines) - 1


def _key_of(line: str) -> str | None:
    entry = _ENTRY.match(line)
    if entry is None:
        return None
    key = entry["key"]
    if key.startswith('"') and "\\" in key:
        return next(iter(tomllib.loads(f"{key} = 0")))
    return key[1:-1] if key[0] in "\"'" else key


def _edited_line(line: str, key: str, value: Any) -> str:
    """Change an entry that stands on one line; what follows it on the line stays."""
    words = _WORDS.fullmatch(line)
    if words and isinstance(value, dict) and {name for name, *_ in _NAMED_WORD.findall(words["table"])} == value.keys():
        table = _NAMED_WORD.sub(lambda word: f"{word[1]}{word[2]}{toml_value(value[word[1]])}", words["table"])
        return line[: words.start("table")] + table + line[words.end("table") :]
    import tomlkit

    entry = tomlkit.parse(line)
    _set(entry, key, value)
    return tomlkit.dumps(entry)


def _edited_as_document(text: str, assignments: Sequence[Assignment]) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    for one in assignments:
        table: MutableMapping[str, Any] = document
        for part in one.section:
            if part not in table:
                table[part] = tomlkit.table()
            table = table[part]
        if one.value is None and one.comment:
            was = toml_value(_plain(table[one.key]))
            table.add(tomlkit.comment(f"{one.comment}: {toml_key(one.key)} = {was}"))  # type: ignore[attr-defined]
        is_new = one.key not in table
        _set(table, one.key, one.value)
        if is_new and one.comment:
            table.item(one.key).comment(one.comment)  # type: ignore[attr-defined]
    return tomlkit.dumps(document)


def _set(table: MutableMapping[str, Any], key: str, value: Any) -> None:
    """Set an entry of tomlkit's; in a table only the entries that differ are touched."""
    import tomlkit

    present = table.get(key)
    if value is None:
        del table[key]
    elif isinstance(value, dict) and isinstance(present, MutableMapping) and not _is_reshaped(present, value):
        for name in [name for name in present if name not in value]:
            del present[name]
        for name in [name for name in value if not is_same_toml(_plain(present.get(name)), value[name])]:
            _set(present, name, value[name])
    else:
        table[key] = tomlkit.value(toml_value(value))


def _is_reshaped(present: MutableMapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether a table on one line gets or loses entries: it is then written anew, for tomlkit would space it badly."""
    from tomlkit.items import InlineTable

    return isinstance(present, InlineTable) and present.keys() != value.keys()


def _plain(item: Any) -> Any:
    return item.unwrap() if hasattr(item, "unwrap") else item
