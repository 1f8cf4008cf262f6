"""Commands on rows that are not in memory: read in blocks (``--memory``), or on a Spark cluster (``--engine``).

A home says what it can hold and how tables are opened. The commands are the same for both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click

from sfumato.cli.options.tables import (
    progress_bar,
)

if TYPE_CHECKING:
    from sfumato.engines.memory_limit import Memory
    from sfumato.engines.protocol import Rows
    from sfumato.manifest import AnyTable
    from sfumato.mechanisms.base import Mechanism
    from sfumato.progress import Progress
    from sfumato.project.file import Project
    from sfumato.publishing.from_project import OpenRows
    from sfumato.schema import Role
    from sfumato.table.io.read import ReadOptions
    from sfumato.table.preparing.declared import Preparation
    from sfumato.table.roles import ColumnGuess

DEFAULT_MEMORY = "1GB"
FEW_ROWS = 5_000_000
"""Below, the time that a cluster takes to start and to talk is more than all work on one machine."""
MEMORY_HELP = (
    "Work out of core within this much memory, such as 1GB, at least 600MB: CSV, Parquet, JSON lines, SPSS (.sav, "
    ".zsav), Stata, SAS, databases."
)
ENGINE_HELP = "Work on a Spark cluster, spark://host:port (Parquet); --memory then limits the driver (default 1GB)."


@dataclass(frozen=True)
class Order:
    """What is to be released, from a project file or from flags, and how.

    Parameters
    ----------
    with_hierarchies : sequence of str
        Columns whose values somebody has listed in a hierarchy, and so decided to release.
    """

    name: str
    path: str
    mechanism: Mechanism
    output: Path | None
    options: ReadOptions
    roles: dict[str, Role]
    project: Project | None = None
    confirmed: Sequence[str] = ()
    with_hierarchies: Sequence[str] = ()
    preparations: Sequence[Preparation] = ()
    keeps_order: bool = False
    escapes_formulas: bool = False


@dataclass(frozen=True)
class AskedAudit:
    """Which release is audited, and what is given of its original: a file with its roles, or a project."""

    path: str
    manifest_path: Path
    original: str | None
    project: str | None
    options: ReadOptions
    roles: dict[str, Role]


@dataclass(frozen=True)
class Home(ABC):
    """Where rows are: what is refused before anything is read, and how it is opened."""

    memory: Memory
    where: ClassVar[str]

    @abstractmethod
    def checked_output(self, order: Order, *, force: bool, dry_run: bool) -> Path | None:
        """Refuse an order that would be refused in the end; gives where to write the release."""

    @abstractmethod
    def check_audit(self, asked: AskedAudit) -> None:
        """Refuse an audit that would be refused in the end."""

    @abstractmethod
    def check_table(self, path: str, options: ReadOptions, roles: dict[str, Role]) -> None:
        """Refuse a table that would be refused in the end."""

    @abstractmethod
    def opened(self, what: str) -> AbstractContextManager[tuple[OpenRows, Progress]]:
        """Open it for the length of a ``with`` block, with a bar that begins with these words."""


def home_of(memory: str | None, engine: str | None) -> Home | None:
    """Home that the options name; ``None``: the table is held in memory."""
    if memory is None and engine is None:
        return None
    from sfumato.engines.memory_limit import Memory

    if engine is not None:
        from sfumato.engines.spark.master import Master

        limit = Memory.of(memory or DEFAULT_MEMORY)
        Master.of(engine)
        return OnCluster(limit, engine)
    return InBlocks(Memory.of(memory or DEFAULT_MEMORY))


# Files that are read in blocks.


@dataclass(frozen=True)
class InBlocks(Home):
    """A file on this machine, larger than memory."""

    where = "out of core"

    def checked_output(self, order: Order, *, force: bool, dry_run: bool) -> Path | None:
        """Refuse an output that is not named or cannot be written."""
        from sfumato.cli.options.asked import checked_output
        from sfumato.table.coding import Source

        return None if dry_run else checked_output(order.output, Source(order.path, ""), force=force)

    def check_audit(self, asked: AskedAudit) -> None:
        """Refuse nothing: reading begins at once, and says what is wrong."""

    def check_table(self, path: str, options: ReadOptions, roles: dict[str, Role]) -> None:
        """Refuse nothing, as above."""

    @contextmanager
    def opened(self, what: str) -> Iterator[tuple[OpenRows, Progress]]:
        """Show a bar."""
        from sfumato.engines.blocks.rows import open_large
        from sfumato.engines.memory_limit import hold_little

        hold_little()
        bar, progress = progress_bar(what)
        with bar:
            yield partial(open_large, memory=self.memory.n_bytes, progress=progress), progress


# Tables on a Spark cluster.


@dataclass(frozen=True)
class OnCluster(Home):
    """Parquet files that driver and workers see under the same path."""

    engine: str
    where = "on a cluster"

    def checked_output(self, order: Order, *, force: bool, dry_run: bool) -> Path | None:
        """Refuse, before Java is started, what the files say of themselves that the cluster would refuse."""
        from sfumato.publishing.propose import check_mechanism_fits

        _refuse_other_formats(order.path, order.options)
        target = None if dry_run else self._checked_target(order, force=force)
        n_rows, n_columns = _check_data(order)
        check_mechanism_fits(order.mechanism, n_rows, n_columns, self.memory, order.path)
        _say_if_few(n_rows)
        return target

    @staticmethod
    def _checked_target(order: Order, *, force: bool) -> Path:
        from sfumato.errors import InvalidParameterError
        from sfumato.publishing.cluster_folder import check_folder_targets
        from sfumato.publishing.manifest_file import manifest_path_for

        if order.output is None:
            hint = "a name such as -o release.parquet; or try --dry-run"
            raise InvalidParameterError("output", "got none", allowed="given", hint=hint)
        check_folder_targets(order.output, manifest_path_for(order.output), [Path(order.path)], force=force)
        return order.output

    def check_audit(self, asked: AskedAudit) -> None:
        """Refuse files of other formats, and files that the cluster would refuse, before Java is started."""
        from sfumato.engines.spark.opening import check_cluster_file
        from sfumato.project.file import load_project
        from sfumato.publishing.reaudit import read_manifest
        from sfumato.table.io.parquet import StoredParquet

        original, options = asked.original, asked.options
        project = None if asked.project is None else load_project(asked.project)
        _refuse_other_formats(asked.path, replace(options, format=None))
        if project is not None:
            _refuse_other_formats(str(project.data), project.options)
        if original is not None:
            _refuse_other_formats(original, options)
        read_manifest(asked.manifest_path)
        _say_if_few(check_cluster_file(asked.path)[0])
        if project is not None:
            _, names = check_cluster_file(project.data_path, project.options)
            project.check_data(names, lambda: StoredParquet.of(project.data_path).sha256)
        if original is not None:
            check_cluster_file(original, replace(options, complete_rows_only=False), named=asked.roles)

    def check_table(self, path: str, options: ReadOptions, roles: dict[str, Role]) -> None:
        """Refuse a file of another format, or one that the cluster would refuse, before Java is started."""
        from sfumato.engines.spark.opening import check_cluster_file

        _refuse_other_formats(path, options)
        _say_if_few(check_cluster_file(path, options, named=roles)[0])

    @contextmanager
    def opened(self, what: str) -> Iterator[tuple[OpenRows, Progress]]:
        """Open a session with the cluster."""
        from sfumato.engines.spark.opening import open_cluster
        from sfumato.engines.spark.session import spark_session

        bar, progress = progress_bar("connecting to the cluster")
        with bar, spark_session(self.engine, memory=self.memory.n_bytes) as session:
            progress(0, 0, f"{what}: values are counted by the cluster")
            yield partial(open_cluster, session, memory=self.memory.n_bytes), progress


def _refuse_other_formats(path: str, options: ReadOptions) -> None:
    """Refuse what is no Parquet by its name, before a cluster is asked."""
    from sfumato.engines.limits import FORMATS_ON_A_CLUSTER
    from sfumato.table.io.databases.address import is_address
    from sfumato.table.io.foreign import refuse_address
    from sfumato.table.io.formats import format_of
    from sfumato.table.io.read import named_database

    if is_address(path):
        named_database(path, options)
    else:
        refuse_address(path)  # which, like the line above, shows no credentials
    found = options.format or ("parquet" if Path(path).is_dir() else format_of(path))
    if found != "parquet" or path == "-":
        raise FORMATS_ON_A_CLUSTER.refusal("a table with --engine", f"got {path!r}")


def _check_data(order: Order) -> tuple[int, int]:
    """Refuse data that the cluster would refuse, by what their files say of themselves; gives rows and columns."""
    from sfumato.engines.spark.opening import check_cluster_file
    from sfumato.schema import Column, Schema
    from sfumato.table.io.parquet import StoredParquet

    n_rows, names = check_cluster_file(order.path, order.options, named=order.roles)
    if order.project is not None:
        schema = order.project.check_data(names, lambda: StoredParquet.of(order.path).sha256)
    else:
        is_whole = set(order.roles) == set(names)
        schema = Schema.of(Column(name, order.roles[name]) for name in names) if is_whole else None
    if schema is not None:
        schema.check_quasi_identifiers("to release")
    return n_rows, len(names)


def _say_if_few(n_rows: int) -> None:
    """Say that one machine is faster, where it is."""
    if n_rows < FEW_ROWS:
        words = f"note: the table has {n_rows:,} rows. Below {FEW_ROWS:,} rows --memory without --engine is faster"
        click.echo(f"{words}: a cluster takes 19 to 25 times the CPU", err=True)


# Tables that are opened.


@contextmanager
def opened(home: Home | None, what: str) -> Iterator[tuple[OpenRows | None, Progress]]:
    """Open where rows are, with a bar; ``None`` opens them in memory."""
    if home is not None:
        with home.opened("reading") as (open_rows, progress):
            yield open_rows, progress
        return
    bar, progress = progress_bar(what)
    with bar:
        yield None, progress


def described(
    order: Order, open_rows: OpenRows | None, memory: Memory
) -> tuple[AnyTable | Rows, Sequence[ColumnGuess]]:
    """Open a table that nobody has described, with the roles that are given and the others guessed."""
    from sfumato.engines.persons import one_row_each
    from sfumato.mechanisms.baselines.features import described_publicly
    from sfumato.mechanisms.registry import is_differentially_private
    from sfumato.publishing.propose import prepared_rows
    from sfumato.table.understanding import read_understood, understand

    confirmed = (*order.confirmed, *order.with_hierarchies)
    if open_rows is None and is_differentially_private(order.mechanism):
        return described_publicly(order.path, order.options, order.roles), ()
    if open_rows is None:
        understood = read_understood(
            order.path, order.options, order.roles, preparations=order.preparations, confirmed=confirmed
        )
        return understood.prepared(), understood.guessed
    rows = seen(open_rows, order.path, order.options, order.roles)
    rows = rows.with_schema(rows.schema.with_confirmed(confirmed))
    understood = understand(rows.outline, order.roles, preparations=order.preparations)
    rows = described_as(rows, understood.table)
    rule = order.options.one_row_per_person
    rows = rows if rule is None else one_row_each(rows, rule, memory.n_bytes)
    return prepared_rows(rows, understood.preparations, memory), understood.guessed


def opened_project(open_table: OpenRows, project: Project) -> Rows:
    """Open the table of a project as the project describes it."""
    return project.opened_by(lambda schema: open_table(project.data, schema=schema, options=project.options))


def seen(open_table: OpenRows, path: str, options: ReadOptions, roles: dict[str, Role]) -> Rows:
    """Open a table that nobody has described; refuses one with a column of which nothing can be guessed."""
    from sfumato.errors import SchemaError
    from sfumato.table.io.read import check_formats

    opened = open_table(path, options=replace(options, mixed_as_text=True))
    check_formats(options, opened.schema.names(), path)
    for name in opened.schema.names():
        if opened.is_open(name) and name not in roles:
            problem = "has too many distinct values to guess its role"
            hint = "give it one: --identifiers if it names people, --other to publish it unchanged"
            raise SchemaError(problem, column=name, hint=hint)
    return opened


def described_as(opened: Rows, described: AnyTable) -> Rows:
    """Give an opened table the schema that its outline was described by."""
    from sfumato.table.coding import Table

    if not isinstance(described, Table):
        raise AssertionError
    return opened.with_schema(described.schema)
