"""A release that a cluster writes and audits: part files in a folder that appears when the audit has confirmed it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.atomic import PendingFile, alone_in, appear_together, check_writable, exchange, explained_writing
from sfumato.engines.memory_limit import Memory
from sfumato.engines.protocol import Rows
from sfumato.engines.spark.errors import explained, watching
from sfumato.engines.spark.frames import Frame, exact_settings, type_name, url_of
from sfumato.engines.spark.opening import open_cluster
from sfumato.engines.spark.rows import ClusterTable
from sfumato.errors import ClusterError, InputError, InvalidParameterError, OutputError
from sfumato.progress import Progress
from sfumato.publishing.manifest_file import is_left_alone, manifest_path_for
from sfumato.publishing.proposals.base import Proposal, RowsProposal, names_but_identifiers
from sfumato.publishing.proposals.counted import CellProposal
from sfumato.publishing.proposals.features import FeatureProposal
from sfumato.publishing.proposals.sampled import ColumnProposal
from sfumato.schema import Kind, Schema
from sfumato.table.coding import CodedColumn
from sfumato.table.io.formats import writable_format_of
from sfumato.table.io.parquet import part_files
from sfumato.table.io.read import ReadOptions
from sfumato.table.row_order import AS_READ
from sfumato.table.weighted import Block

# What is to be released of a table on a cluster: searched on the driver over distinct rows, written by the cluster.


MOST_BYTES_BESIDE = 2**24
"""Labels that take more beside the distinct rows, such as long sets, are sent to the workers once each."""


@singledispatch
def frame_of(proposal: RowsProposal) -> Frame:
    """Released rows as a frame of Spark; nothing is computed before it is written."""
    raise AssertionError


@frame_of.register
def _(proposal: CellProposal) -> Frame:
    """Rows that are released as the distinct rows they are equal to."""
    from pyspark.sql import functions as sf

    original, cells = on_cluster(proposal.original), proposal.cells
    counted, released = cells.together, proposal.released.columns
    names = names_but_identifiers(original.schema)
    as_they_are = [name for name in names if name not in released]
    codes = [(n, pa.array(np.arange(cells[n].n_distinct, dtype=np.int32))) for n in counted]
    rows = on_cluster(proposal.rows).rows([*codes, *((name, None) for name in as_they_are)])
    keys = [f"c{i}" for i in range(len(counted))]
    recoded = {name: f"l{i}" for i, name in enumerate(names) if name in released}
    far = {label for name, label in recoded.items() if _bytes_beside(released[name]) > MOST_BYTES_BESIDE}
    frame = rows.join(sf.broadcast(_released_cells(proposal, recoded, far)), keys, "inner")
    for name, label in recoded.items():
        frame = _labelled(frame, label, released[name]) if label in far else frame
    places = recoded | {name: f"c{len(counted) + i}" for i, name in enumerate(as_they_are)}
    return _named(frame, {name: sf.col(places[name]) for name in names})


def _released_cells(proposal: CellProposal, recoded: dict[str, str], far: set[str]) -> Frame:
    """Codes of the distinct rows that are released, beside their labels, or the codes of those that are far."""
    released, cells = proposal.released.columns, proposal.cells
    columns = {
        f"c{i}": pa.array(cells[n].codes[proposal.is_released], pa.int32()) for i, n in enumerate(cells.together)
    }
    for name, label in recoded.items():
        codes = pa.array(released[name].codes, pa.int32())
        columns |= {f"{label}_code": codes} if label in far else {label: released[name].values.take(codes)}
    schema = ", ".join(f"{name} {type_name(column.type)}" for name, column in columns.items())
    return on_cluster(proposal.original).session.createDataFrame(pa.table(columns), schema=schema)


def _labelled(frame: Frame, label: str, column: CodedColumn) -> Frame:
    from pyspark.sql import functions as sf

    labels = pa.table({f"{label}_code": pa.array(np.arange(column.n_distinct), pa.int32()), label: column.values})
    schema = f"{label}_code int, {label} {type_name(column.values.type)}"
    return frame.join(sf.broadcast(frame.sparkSession.createDataFrame(labels, schema=schema)), f"{label}_code")


def _bytes_beside(column: CodedColumn) -> int:
    """Bytes of a column's labels if each stands beside all of its distinct rows."""
    if not pa.types.is_string(column.values.type):
        return 0
    lengths = pc.binary_length(column.values).fill_null(0).to_numpy()
    return int(lengths @ np.bincount(column.codes, minlength=len(lengths)))


@frame_of.register
def _(proposal: FeatureProposal) -> Frame:
    """Give features of every row, and the columns that travel along as they are."""
    from pyspark.sql import functions as sf

    places = proposal.places
    used, beside = list(dict.fromkeys(f.column for f, _ in proposal.chosen)), proposal.beside
    codes = [(n, pa.array(np.arange(places.outline[n].n_distinct, dtype=np.int32))) for n in used]
    rows = on_cluster(places).rows([*codes, *((name, None) for name in beside)])
    cells = {f.name: (sf.col(f"c{used.index(f.column)}") == place).cast("tinyint") for f, place in proposal.chosen}
    cells |= {name: sf.col(f"c{len(used) + i}") for i, name in enumerate(beside)}
    return _named(rows, {name: cells[name] for name in proposal.schema.names()})


@frame_of.register
def _(proposal: ColumnProposal) -> Frame:
    """All rows of some columns."""
    from pyspark.sql import functions as sf

    names, codes, released = proposal.schema.names(), proposal.recoded(), proposal.released
    meant = {name: released[name].values.take(pa.array(own)) for name, own in codes.items()}
    rows = on_cluster(proposal.original).rows([(name, meant.get(name)) for name in names])
    return _named(rows, {name: sf.col(f"c{i}") for i, name in enumerate(names)})


def blocks_on_cluster(proposal: RowsProposal, person: str, names: Sequence[str]) -> Iterator[Block]:
    """Bring some columns of the released rows with their persons to the driver, which must have room for them."""
    session = on_cluster(proposal.original).session
    with watching(session), exact_settings(session):
        found = frame_of(proposal.showing(person)).select(*(f"`{name}`" for name in names)).toArrow()
    yield {name: found.column(name).combine_chunks() for name in names}


def in_released_order(proposal: RowsProposal) -> Frame:
    """Released rows in their canonical order over all part files, unless the manifest says otherwise.

    A column is sorted by its values; a text column that is stated to be numeric and holds only numbers by these, then
    by its texts. Spark compares texts by their bytes, and puts missing first.
    """
    from pyspark.sql import functions as sf

    frame, output = frame_of(proposal), proposal.release.manifest.output
    if output.get("order") == AS_READ:
        return frame
    texts = {field.name for field in frame.schema.fields if field.dataType.simpleString() == "string"}
    stated = [entry["name"] for entry in output["columns"] if entry["kind"] == Kind.NUMERIC and entry["name"] in texts]
    places = {name: i for i, name in enumerate(frame.columns)}
    numbers = {name: sf.expr(f"try_cast(c{places[name]} as double)") for name in stated}
    plain = frame.toDF(*(f"c{i}" for i in range(len(places))))
    are_numbers = dict.fromkeys(stated, False)
    if stated:
        wrong = [
            sf.count_if(sf.col(f"c{places[name]}").isNotNull() & (numbers[name].isNull() | sf.isnan(numbers[name])))
            for name in stated
        ]
        found = plain.agg(*(count.alias(f"n{i}") for i, count in enumerate(wrong))).toArrow().to_pylist()[0]
        are_numbers = {name: found[f"n{i}"] == 0 for i, name in enumerate(stated)}
    keys = []
    for entry in output["columns"]:
        name = entry["name"]
        keys += [numbers[name].asc_nulls_first()] if are_numbers.get(name) else []
        keys.append(sf.col(f"c{places[name]}").asc_nulls_first())
    return _named(plain.orderBy(*keys), {name: sf.col(f"c{i}") for name, i in places.items()})


def _named(frame: Frame, cells: Mapping[str, Any]) -> Frame:
    return frame.select(*(cell.alias(name, metadata={}) for name, cell in cells.items()))


def _proposal_of_rows(proposal: Proposal) -> RowsProposal:
    if not isinstance(proposal, RowsProposal):
        raise AssertionError
    return proposal


def on_cluster(rows: Rows) -> ClusterTable:
    """Give rows that are on a cluster; who asks knows that they are."""
    if not isinstance(rows, ClusterTable):
        raise AssertionError
    return rows


# Folders of part files that appear whole or not at all, each with its manifest beside it.


_ROWS = "rows"
_PRIVATE = 0o700
_BESIDE_PARTS = {"_SUCCESS", "_metadata", "_common_metadata"}
_GLANCES, _GLANCE_SECONDS = 10, 0.1


@dataclass(frozen=True)
class PendingFolder:
    """A complete-to-be folder next to ``target``, in a hidden one; ``appear`` gives it its name."""

    target: Path
    _hidden: Path

    @property
    def rows(self) -> Path:
        """Where part files are written; it does not exist before."""
        return self._hidden / _ROWS

    def complete(self) -> None:
        """Keep part files only, named by their number, and push them to the disk.

        What a cluster calls its files differs from run to run.
        """
        with explained_writing(self.target):
            kept = part_files(self.rows)
            for path in set(self.rows.iterdir()) - set(kept):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            for i, path in enumerate(kept):
                _flush(path.rename(self.rows / f"part-{i:05d}.parquet"))
            _flush(self.rows)

    def appear(self, *, replace: bool = False) -> None:
        """Give the folder its name, which must be free unless ``replace`` says that it may be exchanged.

        Where the system cannot exchange names in one step, the old folder is moved away first.
        """
        with explained_writing(self.target):
            if not (replace and os.path.lexists(self.target) and exchange(self.rows, self.target)):
                if replace and os.path.lexists(self.target):
                    self.target.rename(self._former)
                self.rows.rename(self.target)
            _flush(self.target.parent)

    def withdraw(self, rows: os.stat_result) -> None:
        """Take the name away again from the folder that these rows are, if it has it, and give it back."""
        with contextlib.suppress(OSError):
            is_ours = os.path.lexists(self.target) and os.path.samestat(self.target.lstat(), rows)
            if is_ours and not (os.path.lexists(self.rows) and exchange(self.rows, self.target)):
                self.target.rename(self.rows)
            if os.path.lexists(self._former) and not os.path.lexists(self.target):
                self._former.rename(self.target)

    @property
    def _former(self) -> Path:
        return self._hidden / self.target.name


@contextmanager
def pending_folder(target: Path) -> Iterator[PendingFolder]:
    """Make a hidden folder next to the target, and remove it at the end with all that is left in it."""
    hidden = target.parent / f".{target.name}.{secrets.token_hex(6)}.part"
    with explained_writing(target):
        hidden.mkdir(_PRIVATE)
        hidden.chmod(_PRIVATE)  # a umask may have taken more
    try:
        yield PendingFolder(target, hidden)
        shutil.rmtree(hidden, ignore_errors=True)
    except BaseException:
        _remove_for_good(hidden)
        raise


def _remove_for_good(hidden: Path) -> None:
    """Remove a folder again if tasks that are just being cancelled make it anew."""
    for _ in range(_GLANCES):
        shutil.rmtree(hidden, ignore_errors=True)
        time.sleep(_GLANCE_SECONDS)
    shutil.rmtree(hidden, ignore_errors=True)


def name_both(folder: PendingFolder, manifest: PendingFile, inputs: Sequence[Path], *, force: bool) -> None:
    """Let manifest and folder appear, the manifest first, while no other process of this program names files there.

    If that fails or is interrupted, what stood there before stands there again.
    """
    with alone_in(folder.target.parent):
        check_folder_targets(folder.target, manifest.target, inputs, force=force)
        is_replaced = force or is_left_alone(manifest.target, folder.target)
        with explained_writing(folder.target):
            rows = folder.rows.stat()
        try:
            appear_together([manifest], [manifest.target] if is_replaced else [])
            folder.appear(replace=force)
        except BaseException:
            folder.withdraw(rows)
            manifest.withdraw()
            raise


def check_folder_targets(target: Path, manifest_target: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """Refuse an output that exists (without ``force``), has to do with an input, or is not named as Parquet."""
    if str(target) == "-" or writable_format_of(target) != "parquet":
        allowed = "a folder whose name ends in .parquet, which the cluster can write to"
        raise InvalidParameterError("output of a cluster", f"got {target.name!r}", allowed=allowed)
    if _is_about(target, inputs):
        problem = "is the input, inside it, or contains it; the input is never overwritten"
        raise OutputError(problem, path=target, hint="choose another output path")
    if target.is_dir() and not target.is_symlink():
        _check_replaceable(target, force=force)
    else:
        check_writable(target, force=force)
    check_writable(manifest_target, force=force or is_left_alone(manifest_target, target))


def _is_about(target: Path, inputs: Sequence[Path]) -> bool:
    output = target.resolve()
    given = [path.resolve() for path in inputs]
    return any(output == path or output in path.parents or path in output.parents for path in given)


def _check_replaceable(folder: Path, *, force: bool) -> None:
    if not force:
        problem = "exists already"
        raise OutputError(problem, path=folder, hint="move it, or allow replacing it", remedy=("force",))
    with explained_writing(folder):
        is_known = all(path.is_file() and _is_of_spark(path.name) for path in folder.iterdir())
    if not is_known:
        problem = "is a folder that holds more than Parquet files, and is not replaced"
        raise OutputError(problem, path=folder, hint="name another output, or remove it yourself")


def _is_of_spark(name: str) -> bool:
    """Whether a file in a folder of Parquet is a part, or one that Spark puts beside parts."""
    is_part = name.endswith(".parquet") and not name.startswith(("_", "."))
    return is_part or name in _BESIDE_PARTS or (name.startswith(".") and name.endswith(".crc"))


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Files that a frame of Spark reads its rows from: nothing is ever written over them.


def files_of(frame: Frame) -> list[Path]:
    """Local files that a frame reads, as far as Spark knows them; also of one that is kept in memory.

    Spark does not know them for a frame that was made of an RDD or of a checkpoint.
    """
    with explained():
        urls = {*frame.inputFiles(), *_files_behind_caches(frame)}
    parts = [urlsplit(url) for url in sorted(urls)]
    return [Path(unquote(part.path)) for part in parts if part.scheme in ("", "file")]


def _files_behind_caches(frame: Frame) -> list[str]:
    """Files of the query as the user wrote it, before parts of it are replaced by what is in memory already."""
    plan = getattr(frame, "_jdf", None)  # a frame of Spark Connect has none
    found: list[str] = []
    if plan is not None:
        leaves = plan.queryExecution().analyzed().collectLeaves()
        for i in range(leaves.size()):
            with suppress(Exception):  # a leaf that is no file
                found.extend(leaves.apply(i).relation().location().inputFiles())
    return found


@dataclass(frozen=True)
class _FolderOutput:
    """A folder that a cluster writes, hidden until it gets its name."""

    folder: PendingFolder
    inputs: Sequence[Path]
    force: bool

    @property
    def path(self) -> Path:
        return self.folder.rows

    def write(self, proposal: Proposal, memory: Memory, progress: Progress | None) -> None:
        """Have the cluster write Parquet files; what they hash to is found when they are read."""
        rows = _proposal_of_rows(proposal)
        if progress is not None:
            n_rows = int(proposal.release.manifest.output["rows"])
            progress(0, n_rows, f"{n_rows:,} rows are written by the cluster")
        session = on_cluster(rows.original).session
        try:
            with watching(session), exact_settings(session):
                in_released_order(rows).write.parquet(url_of(self.folder.rows), mode="error")
        except (ClusterError, InputError):
            rows.original.ensure_unchanged()  # says more than what the cluster stumbled over
            raise
        self.folder.complete()

    def appear(self, manifest: PendingFile, recording: AbstractContextManager[Any]) -> None:
        with recording:
            name_both(self.folder, manifest, self.inputs, force=self.force)


@contextmanager
def folder_output(proposal: RowsProposal, target: Path, *, force: bool) -> Iterator[_FolderOutput]:
    """Open a folder next to ``target``, whose name ends in ``.parquet`` and which driver and workers see alike.

    It appears with its manifest when the audit has confirmed both, the manifest first. A failure or an interruption
    leaves neither, and with ``force`` what was there before; only a killed driver can leave a hidden folder, which then
    holds it. Rows are in their canonical order over the part files.
    """
    with pending_folder(target) as folder:
        yield _FolderOutput(folder, inputs_of(proposal.original), force)


def open_frame(
    frame: Frame, target: Path | None, memory: Memory, schema: Schema | None, options: ReadOptions, *, force: bool
) -> ClusterTable:
    """Open a Spark DataFrame on the cluster of its session, if its release may be written where it is to be."""
    if target is not None:
        check_folder_targets(target, manifest_path_for(target), files_of(frame), force=force)
    return open_cluster(frame.sparkSession, frame, memory=memory.n_bytes, schema=schema, options=options)


def inputs_of(original: Rows) -> list[Path]:
    """Files or folders that hold the rows."""
    return files_of(on_cluster(original).rows([])) if original.source is None else [Path(original.source.name)]
