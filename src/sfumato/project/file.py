"""The project file: one TOML text that describes a table and a release, shared by command line, page and API.

It holds column names, roles and settings, never a cell: the data is named by path and SHA-256, or by the address of a
database without credentials.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, get_args

from sfumato.engines.blocks.rows import LargeTable, open_large
from sfumato.errors import DataChangedError, InputError, InvalidParameterError, SchemaError, on_one_line
from sfumato.manifest import AnyTable
from sfumato.progress import Progress
from sfumato.schema import AS_TEXT, DEFAULT_MISSING_TOKENS, Column, Kind, Reading, Role, Schema
from sfumato.table.coding import Source
from sfumato.table.io.databases.address import database_of, is_address
from sfumato.table.io.read import ReadOptions, check_covers, read_table
from sfumato.table.persons import PersonRule
from sfumato.table.preparing.declared import Preparation
from sfumato.table.preparing.keyed import PreparationKeys
from sfumato.table.preparing.prepared import prepared
from sfumato.table.reading.columns import format_named

DEFAULT_MECHANISM = "auto"
"""What a project that names no mechanism is released with."""

_Enum = TypeVar("_Enum", Role, Kind)


class _FromSource(Protocol):
    @property
    def source(self) -> Source | None: ...


Opened = TypeVar("Opened", bound=_FromSource)
"""A table that was read, or opened to be read in parts."""

_SECTIONS = ("data", "columns", "binarize", "release", "compare")
_DATA_KEYS = {
    "path": str,
    "sha256": str,
    "format": str,
    "delimiter": str,
    "encoding": str,
    "sheet": str,
    "skip_rows": int,
    "table": str,
    "query": str,
    "header": bool,
    "missing": list,
    "missing_rows": str,
    "one_row_per_person": str,
    "default_role": str,
}
_COLUMN_KEYS = {
    "role": str,
    "kind": str,
    "domain": list,
    "hierarchy": str,
    "missing": list,
    "confirmed": bool,
    "prepare": dict,
    "date_format": str,
    "number_format": str,
}
_RELEASE_KEYS = {
    "mechanism": str,
    "output": str,
    "parameters": dict,
    "keep_order": bool,
    "escape_formulas": bool,
    "cells": str,
    "max_copies": float,
}
_COLUMNS_NAMED = 10
_COMPARE_KEYS = {"weights": list, "classifiers": list, "also": list, "grid": dict}


@dataclass(frozen=True)
class Project:
    """A loaded project file.

    Parameters
    ----------
    data_path : Path
        Resolved against the folder of the project file; of a database on a server see ``data_address``.
    data_address : str or None
        Address of the server that the data are on, without credentials.
    default_role : Role or None
        Role of columns that are not listed; without it every column must be.
    binarize : mapping or None
        Plan for turning columns into binary features; None lets the mechanism choose.
    parameters : mapping
        Of the mechanism; hierarchy files among them are resolved as ``data_path`` is.
    keep_order : bool
        Whether released rows stay in the order of the data, which tells what the rows do not.
    cells : str or None
        Form of the released cells, ``"ranges"``, ``"values"`` or ``"draws"``; ``None``: what the mechanism makes.
    max_copies : float or None
        Limit of copies of original rows among drawn ones.
    compare : mapping
        ``weights`` (of utility, privacy and size), ``classifiers`` and ``grid`` (by mechanism its parameters, each a
        value or a list of values) of a comparison, as far as they are given.
    preparations : tuple of Preparation
        What is done to columns right after they were read.
    escape_formulas : bool
        Whether texts that a spreadsheet program would run get an apostrophe in front, in CSV and TSV files.
    is_reused : bool
        Whether ``data_path`` is another file than the one that the project file names, see :meth:`for_data`.
    """

    path: Path
    sha256: str
    data_path: Path
    data_sha256: str | None
    options: ReadOptions
    columns: tuple[Column, ...]
    default_role: Role | None = None
    binarize: Mapping[str, Any] | None = None
    mechanism: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    output: Path | None = None
    keep_order: bool = False
    compare: Mapping[str, Any] = field(default_factory=dict)
    preparations: tuple[Preparation, ...] = ()
    escape_formulas: bool = False
    cells: str | None = None
    max_copies: float | None = None
    is_reused: bool = False
    data_address: str | None = None

    @property
    def data(self) -> str | Path:
        """What is read: the address of a database, or the path of a file."""
        return self.data_address or self.data_path

    def for_data(self, source: str | Path) -> Project:
        """Give the same description for another file, such as next year's: roles, kinds, mechanism and settings.

        Its output has to be named anew, so that it never replaces the release of the file before. A query or table is
        not used for a file that has no tables.
        """
        address = _address(self.path, {"path": str(source), "format": self.options.format})
        path = Path(source) if address is None else self.path.parent / "no file"
        options = self.options.of_source(source)
        return replace(
            self,
            data_path=path,
            data_address=address,
            data_sha256=None,
            output=None,
            is_reused=True,
            options=options,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters that the mechanism is built with: those of the release, and the plan for binary features."""
        plan = {"binarize": dict(self.binarize)} if self.binarize else {}
        return {**self.parameters, **plan}

    def read(self, keys: PreparationKeys | None = None) -> AnyTable:
        """Read the data as described and prepare them, refusing a file that is not the one described.

        ``keys`` are the secrets of pseudonyms and shifted dates; ``None`` draws some that nobody keeps.
        """
        return self.prepared(self.read_unprepared(), keys)

    def read_unprepared(self) -> AnyTable:
        """Read the data as described, before anything is done to their columns."""
        return self.opened_by(lambda schema: read_table(self.data, schema=schema, options=self.options))

    def prepared(self, table: AnyTable, keys: PreparationKeys | None = None) -> AnyTable:
        """Prepare the columns of the data that were read."""
        with self._explained():
            return prepared(table, self.preparations, keys)

    def open(self, memory: int, *, progress: Progress | None = None) -> LargeTable:
        """Open data that are larger than memory, as :meth:`read` reads them."""
        return self.opened_by(
            lambda schema: open_large(self.data, memory=memory, schema=schema, options=self.options, progress=progress)
        )

    def opened_by(self, opened: Callable[[Schema | None], Opened]) -> Opened:
        """Let a function open the data with the schema described; columns that are not listed are seen first."""
        with self._explained():
            schema = Schema.of(self.columns, self.options.missing)
            if self.default_role is not None:
                seen = opened(None)
                schema = self._fill_in(schema, cast("AnyTable", getattr(seen, "outline", seen)))
            try:
                table = opened(schema)
            except SchemaError:
                if self.is_reused:  # all differences at once: the file was made by others
                    seen = opened(None)
                    self._check_columns(cast("AnyTable", getattr(seen, "outline", seen)).coded_part.schema.names())
                raise
        self._check_source(table.source)
        return table

    def check_data(self, names: Sequence[str], sha256: Callable[[], str]) -> Schema | None:
        """Refuse data that are not those described, by the names of their columns and their hash, before they are read.

        Parameters
        ----------
        sha256 : callable
            Gives the hash, if the project file states one.

        Returns
        -------
        Schema or None
            The description, if it lists all columns.
        """
        listed = Schema.of(self.columns, self.options.missing)
        is_whole = self.default_role is None
        if self.is_reused:
            self._check_columns(names)
        with self._explained():
            check_covers(listed, tuple(names) if is_whole else (), tuple(names), where=str(self.data))
        if self.data_sha256:
            self._check_source(Source(str(self.data), sha256()))
        return listed if is_whole else None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say of which project file a schema is that does not fit."""
        try:
            yield
        except SchemaError as exc:
            raise InputError(exc.message.removesuffix("."), path=self.path, hint=exc.hint, remedy=exc.remedy) from None

    def _check_columns(self, names: Sequence[str]) -> None:
        """Refuse another file whose columns are not those described, naming all that differ."""
        listed = [column.name for column in self.columns]
        lacking = [name for name in listed if name not in set(names)]
        new = [name for name in names if name not in set(listed)] if self.default_role is None else []
        said = [f"{what} {_named(some)}" for what, some in (("lacks", lacking), ("also has", new)) if some]
        if said:
            problem = f"is not described by {self.path.name}: it {' and '.join(said)}"
            hint = "rename or remove columns so that they fit, or describe this file on the basis of that description"
            raise InputError(problem, path=self.data_path, hint=hint, remedy=("from_project",))

    def _check_source(self, source: Source | None) -> None:
        if self.data_sha256 and source and source.sha256 != self.data_sha256:
            what = "is not the file that" if self.data_address is None else "does not give the rows that"
            raise DataChangedError(
                f"{what} the project describes (its SHA-256 differs)",
                path=self.data,
                hint=f"if the change is intended, update {self.path.name}; reviewed roles are kept",
                remedy=("update",),
            )

    def _fill_in(self, listed: Schema, seen: AnyTable) -> Schema:
        """Add the columns that are not listed, with the default role and the kind found in the data."""
        described = seen.coded_part.schema
        role = self.default_role or Role.QUASI_IDENTIFIER
        unlisted = [replace(c, role=role) for c in described if c.name not in listed]
        return Schema.of([*listed, *unlisted], listed.missing)


def _named(names: Sequence[str]) -> str:
    """Name some columns, the first ones where they are many."""
    more = f" and {len(names) - _COLUMNS_NAMED:,} more" if len(names) > _COLUMNS_NAMED else ""
    return ", ".join(f"'{on_one_line(name)}'" for name in names[:_COLUMNS_NAMED]) + more


def load_project(path: str | Path) -> Project:
    """Read a project file, naming what is wrong in it and what was probably meant."""
    path = Path(path)
    raw = project_bytes(path)
    return project_of(path, raw, parse_toml(path, raw))


def parse_toml(path: Path, raw: bytes) -> dict[str, Any]:
    """Parse the bytes of a project file, saying where they are no TOML."""
    try:
        return tomllib.loads(raw.decode())
    except UnicodeDecodeError:
        problem = "is not UTF-8 text"
        raise InputError(problem, path=path) from None
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        position = str(exc).rpartition("(")[2].rstrip(")")  # the text before it may quote the file
        line = re.match(r"at (line \d+)", position)
        hint = f"fix {line[1] + ' of ' if line else ''}{path.name} in a text editor"
        raise InputError(f"is not valid TOML ({position})", path=path, hint=hint) from None
    except ValueError:
        problem = "is not valid TOML: a number has too many digits"
        raise InputError(problem, path=path, hint=f"fix {path.name} in a text editor") from None


def project_of(path: Path, raw: bytes, content: Mapping[str, Any]) -> Project:
    """Take a project out of what stands, or is about to stand, in the file of this path."""
    _check_keys(path, "the project file", content, dict.fromkeys(_SECTIONS, dict))
    data, release = content.get("data", {}), content.get("release", {})
    _check_keys(path, "[data]", data, _DATA_KEYS)
    _check_keys(path, "[release]", release, _RELEASE_KEYS)
    if "path" not in data:
        problem = "[data] names no path"
        raise InputError(problem, path=path, hint="describe a data file again", remedy=("init",))
    columns = tuple(_column(path, name, entry) for name, entry in content.get("columns", {}).items())
    address = _address(path, data)
    return Project(
        path=path,
        sha256=hashlib.sha256(raw).hexdigest(),
        data_path=path.parent / (data["path"] if address is None else "no file"),
        data_address=address,
        data_sha256=data.get("sha256"),
        options=replace(_read_options(path, data), formats=_formats(columns)),
        columns=columns,
        preparations=tuple(_preparations(path, content.get("columns", {}))),
        default_role=_choice(path, "default_role", data.get("default_role"), Role),
        binarize=content.get("binarize"),
        mechanism=release.get("mechanism"),
        parameters=_parameters(path, release.get("parameters", {})),
        output=path.parent / release["output"] if "output" in release else None,
        keep_order=release.get("keep_order", False),
        escape_formulas=release.get("escape_formulas", False),
        compare=_comparison(path, content.get("compare", {})),
        cells=release.get("cells"),
        max_copies=release.get("max_copies"),
    )


def _address(path: Path, data: Mapping[str, Any]) -> str | None:
    """Take the address of a server; one with credentials is refused, and a file is named by its path."""
    if not is_address(data["path"]):
        return None
    if data["path"].lower().startswith("postgres"):
        found = database_of(data["path"], format=data.get("format"))
        return None if found is None else found.place
    problem = "[data] names a file of a database by an address"
    raise InputError(problem, path=path, hint="write its path, and its format if the suffix does not tell")


def project_bytes(path: Path) -> bytes:
    """Read a project file as it is."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        problem = "there is no such project file"
        hint = "create one, or name the data file"
        raise InputError(problem, path=path, hint=hint, remedy=("init",)) from None
    except OSError as exc:
        raise InputError(f"cannot be read ({exc.strerror})", path=path) from None


def _check_keys(path: Path, where: str, entry: Mapping[str, Any], known: Mapping[str, type]) -> None:
    for key, value in entry.items():
        if key not in known:
            nearest = difflib.get_close_matches(key, list(known), n=1)
            hint = f"did you mean '{nearest[0]}'?" if nearest else f"known: {', '.join(known)}"
            raise InputError(f"{where} has an unknown entry '{key}'", path=path, hint=hint)
        if not isinstance(value, known[key]) or (known[key] is int and isinstance(value, bool)):
            words = {
                str: "text",
                bool: "true or false",
                int: "a whole number",
                list: "a list of texts",
                dict: "a table",
            }
            raise InputError(f"'{key}' in {where} must be {words[known[key]]}", path=path)
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise InputError(f"'{key}' in {where} must be a list of texts", path=path)


def _choice(path: Path, key: str, value: str | None, choices: type[_Enum]) -> _Enum | None:
    if value is None:
        return None
    try:
        return choices(value)
    except ValueError:
        nearest = difflib.get_close_matches(value, list(choices), n=1)
        hint = f"did you mean '{nearest[0]}'?" if nearest else ""
        raise InputError(f"'{key}' must be one of {', '.join(choices)}", path=path, hint=hint) from None


def _read_options(path: Path, data: Mapping[str, Any]) -> ReadOptions:
    rows = data.get("missing_rows", "keep")
    if rows not in ("keep", "drop"):
        problem = "'missing_rows' in [data] must be 'keep' or 'drop'"
        raise InputError(problem, path=path)
    n_skipped, rule = data.get("skip_rows", 0), data.get("one_row_per_person")
    if n_skipped < 0:
        problem = "'skip_rows' in [data] must be 0 or more"
        raise InputError(problem, path=path)
    if rule not in (None, *get_args(PersonRule)):
        problem = f"'one_row_per_person' in [data] must be one of {', '.join(get_args(PersonRule))}"
        raise InputError(problem, path=path)
    return ReadOptions(
        format=data.get("format"),
        delimiter=data.get("delimiter"),
        encoding=data.get("encoding"),
        header=data.get("header", True),
        sheet=data.get("sheet"),
        skip_rows=n_skipped,
        table=data.get("table"),
        query=data.get("query"),
        missing=tuple(data.get("missing", DEFAULT_MISSING_TOKENS)),
        complete_rows_only=rows == "drop",
        one_row_per_person=rule,
    )


def _column(path: Path, name: str, entry: Any) -> Column:
    if not isinstance(entry, dict):
        problem = "must be written as { role = ..., kind = ... }"
        raise InputError(problem, path=path, column=name)
    _check_keys(path, f"column '{name}'", entry, _COLUMN_KEYS)
    role = _choice(path, f"role of '{name}'", entry.get("role"), Role)
    if role is None:
        problem = "has no role"
        raise SchemaError(problem, column=name, hint=f"give it one of {', '.join(Role)}")
    return Column(
        name,
        role,
        _choice(path, f"kind of '{name}'", entry.get("kind"), Kind) or Kind.CATEGORICAL,
        domain=tuple(entry["domain"]) if "domain" in entry else None,
        hierarchy=str(path.parent / entry["hierarchy"]) if "hierarchy" in entry else None,
        missing=tuple(entry["missing"]) if "missing" in entry else None,
        confirmed=entry.get("confirmed", False),
        reading=_reading(path, name, entry),
    )


def _preparations(path: Path, columns: Mapping[str, Any]) -> Iterator[Preparation]:
    for name, entry in columns.items():
        if "prepare" in entry:
            try:
                yield Preparation.of(name, entry["prepare"])
            except SchemaError as exc:
                raise InputError(exc.message.removesuffix("."), path=path, hint=exc.hint) from None


def _reading(path: Path, name: str, entry: Mapping[str, Any]) -> Reading | None:
    """Take the declared format of a column's texts."""
    keys = {"date_format": Kind.DATE, "number_format": Kind.NUMERIC}
    given = [key for key in keys if key in entry]
    if len(given) > 1:
        problem = "has a date_format and a number_format"
        raise InputError(problem, path=path, column=name, hint="keep the one that fits its kind")
    for key in given:
        try:
            found = format_named(entry[key], keys[key])
        except InvalidParameterError as exc:
            raise InputError(exc.message.removesuffix("."), path=path, column=name) from None
        return Reading(AS_TEXT if found is None else found.name)
    return None


def _formats(columns: Iterable[Column]) -> tuple[tuple[str, str], ...]:
    """By column how its texts are read: as declared, and as text where it is declared to be neither number nor date."""
    strict = (Kind.NUMERIC, Kind.DATE)
    declared = ((c.name, c.reading.format if c.reading else None if c.kind in strict else AS_TEXT) for c in columns)
    return tuple((name, text) for name, text in declared if text is not None)


def _parameters(path: Path, written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve the hierarchy files among a mechanism's parameters against the folder of the project file."""
    files = written.get("hierarchies")
    if not isinstance(files, dict):
        return written
    resolved = {name: str(path.parent / file) if isinstance(file, str) else file for name, file in files.items()}
    return {**written, "hierarchies": resolved}


def _comparison(path: Path, written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check the entries of a comparison as far as that needs no mechanism."""
    weights = written.get("weights", [1, 1, 1])
    _check_keys(path, "[compare]", {key: value for key, value in written.items() if key != "weights"}, _COMPARE_KEYS)
    is_number = isinstance(weights, list) and all(type(weight) in (int, float) for weight in weights)
    if not is_number or len(weights) != 3:
        problem = "'weights' in [compare] must be three numbers: utility, privacy, size"
        raise InputError(problem, path=path)
    for name, parameters in written.get("grid", {}).items():
        if not isinstance(parameters, dict):
            raise InputError(f"[compare.grid.{name}] must be a table of parameters", path=path)
    grid = {name: _parameters(path, parameters) for name, parameters in written.get("grid", {}).items()}
    return {**written, **({"grid": grid} if grid else {})}


def toml_text(text: str) -> str:
    """Quote a text for TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
