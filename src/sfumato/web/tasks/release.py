"""Make a release with everything that the page shows of it, and save it next to the project file."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.atomic import PendingFile, alone_in, appear_together, check_writable, explained_writing, write_atomically
from sfumato.attack.correspondence import ABSENT, Correspondence
from sfumato.attack.risk import attacked_rows
from sfumato.audit.reading.columns import Columns
from sfumato.audit.verify import AuditReport
from sfumato.errors import OutputError, SchemaError
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms.base import Release
from sfumato.private_folders import write_private
from sfumato.project.edit import ProjectChanges, edit_project
from sfumato.project.file import DEFAULT_MECHANISM, Project, load_project, parse_toml, project_bytes, project_of
from sfumato.publishing.from_project import release_project
from sfumato.publishing.ledger import Ledger
from sfumato.publishing.manifest_file import manifest_path_for
from sfumato.publishing.proposals.in_memory import InMemory, check_escapes
from sfumato.publishing.publish import Published, check_targets, publish
from sfumato.publishing.reaudit import audit_published, beside_original, read_manifest, read_released
from sfumato.publishing.together import checked_together
from sfumato.report.guarantee_texts import NOT_MEASURED
from sfumato.report.measured import risk_left, risk_section
from sfumato.report.pictures import Picture, drawn
from sfumato.report.render import report_html
from sfumato.report.reproduction import CLOCKED, Asked, may_depend_on_clock, project_commands
from sfumato.report.summarize import summarize
from sfumato.table.cells import as_text
from sfumato.table.coding import Source
from sfumato.table.io.formats import writable_format_of
from sfumato.web.column_store import STORE_NAME, Record, write_columns
from sfumato.web.inputs import DATA, HIERARCHY, PROJECT_FILE, noted
from sfumato.web.jobs.process import FIRST_RESULT_NAME
from sfumato.web.project_files import DEFAULT_OUTPUT, REPORT_NAME, beside
from sfumato.web.tasks.facts import bars_of, histogram, mass_in_bars

if TYPE_CHECKING:
    from sfumato.web.jobs.process import Tell


# Original and release beside each other: distributions of columns and the first rows, for the page on this machine.


MOST_ROWS, FEWEST_ROWS, MOST_CELLS = 1_000, 50, 2_000_000
LONGEST_CELL = 60

_DRAWN = (
    "The released rows were drawn at random: no row belongs to a person, and rows side by side below are unrelated."
)
_MOVED = "Values were moved between rows of a bucket: rows of the release do not belong to rows of the original."
_UNKNOWN = "It is unknown which released row comes from which original row: rows side by side below are unrelated."
_SOME_MOVED = "In columns that were moved within buckets, a released row shows the value of another row of its bucket."
_FLIPPED = "Some cells were changed at random; the release does not say which."


@dataclass(frozen=True, repr=False)
class RowsBeside:
    """Rows to be shown.

    Parameters
    ----------
    n_original : int
        How many rows of the original are shown, from the first one.
    released : array of int
        Released row beside each of them, or -1 where it was suppressed. If the rows are not matched: the first
        released rows.
    is_matched : bool
        Whether a released row belongs to the original row beside it.
    note : str
        What must be known about them.
    """

    n_original: int
    released: NDArray[np.int64]
    is_matched: bool
    note: str = ""

    @property
    def suppressed(self) -> list[int]:
        """Original rows, from 0, that were not released."""
        return np.flatnonzero(self.released == ABSENT).tolist() if self.is_matched else []


def tables_beside(original: AnyTable, release: Release) -> Correspondence:
    """Read a release next to the rows that it was made of."""
    return Correspondence(attacked_rows(original, release.manifest), release.table, release.manifest)


def rows_beside(tables: Correspondence) -> RowsBeside:
    """Choose the rows to show: the first ones, fewer of a table with many columns."""
    n_columns = len(tables.original.names) + len(tables.released.names)
    most = min(MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // max(1, n_columns)))
    n = min(most, tables.original.n_rows)
    own = _own_rows(tables)
    has_moved = any(tables.is_moved(name) for name in tables.released.names)
    if own is not None:
        return RowsBeside(n, own[:n], True, _SOME_MOVED if has_moved else _FLIPPED if tables.is_flipped else "")
    note = _DRAWN if tables.is_synthetic else _MOVED if has_moved else _UNKNOWN
    return RowsBeside(n, np.arange(min(most, tables.released.n_rows)), False, note)


def _own_rows(tables: Correspondence) -> NDArray[np.int64] | None:
    try:
        return tables.own_row
    except SchemaError:  # cells that cannot be read beside the original's
        return None


def column_records(
    tables: Correspondence, rows: RowsBeside, changes: Mapping[str, Mapping[str, Any]]
) -> Iterator[Record]:
    """Give every column of the original, and every one that the release adds, as plain data.

    Parameters
    ----------
    changes : mapping of str to mapping
        What was done to a column, in words, and how much of its detail is left, as far as it is known.

    Yields
    ------
    dict
        ``number``, ``name``, ``role``, ``change``, ``is_released``, ``before`` and ``after``. ``before`` (``None`` for
        a column that is new) and the entries of ``after`` hold ``name``, ``labels`` and ``counts`` of bars,
        ``n_missing`` and ``cells``, the texts of the rows to show (``None`` where missing).
    """
    made: dict[str, list[str]] = {}
    for name in tables.released.names:
        made.setdefault(tables.source_of(name) or name, []).append(name)
    first = np.arange(rows.n_original)
    added = [name for name in made if name not in tables.original]
    for number, name in enumerate([*tables.original.names, *added], start=1):
        released = made.get(name, [])
        is_new = name not in tables.original
        described = (tables.released if is_new else tables.original).describe(name)
        yield {
            "number": number,
            "name": name,
            "role": str(described.role),
            "change": changes.get(name, {}).get("change", "released" if released else "dropped"),
            "detail_left": changes.get(name, {}).get("detail_left"),
            "is_released": bool(released),
            "before": None if is_new else _shown(tables.original, name, first),
            "after": [_shown(tables.released, one, rows.released) for one in released],
            "mass": _mass(tables, name) if released == [name] and not is_new else None,
        }


def _mass(tables: Correspondence, name: str) -> list[float] | None:
    """Rows of a released column in the bars of the original's; ``None`` where its cells cannot be read beside it."""
    if tables.original.feature(name) is not None or tables.released.feature(name) is not None:
        return None
    try:
        read = tables.column(name).containing
    except SchemaError:
        return None
    bars = bars_of(tables.original.coded(name), tables.original.describe(name).kind)
    return mass_in_bars(bars, read, tables.released.coded(name).counts)


def _shown(columns: Columns, name: str, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Describe one column; features are read without making them dense."""
    if columns.feature(name) is not None:
        ones = columns.rows_with_one(name)
        n_ones = len(ones)
        cells: Sequence[str | None] = np.where(np.isin(rows, ones), "1", "0").tolist()
        labels, counts, n_missing = ["0", "1"], [columns.n_rows - n_ones, n_ones], 0
    else:
        coded = columns.coded(name)
        bars = histogram(coded, columns.describe(name).kind)
        labels, counts, n_missing = bars["labels"], bars["counts"], coded.n_missing
        # A row that is not there takes any code: its cell is blanked below.
        codes = coded.codes[rows] if len(coded.codes) else np.zeros(len(rows), dtype=np.int32)
        cells = _texts(coded.values, codes)
    is_there = (rows != ABSENT).tolist()
    return {
        "name": name,
        "labels": labels,
        "counts": counts,
        "n_missing": n_missing,
        "cells": [cell if there else None for cell, there in zip(cells, is_there, strict=True)],
    }


def _texts(values: pa.Array, codes: NDArray[np.int32]) -> list[str | None]:
    if not len(values):
        return [None] * len(codes)
    found: list[str | None] = as_text(values.take(pa.array(codes))).to_pylist()
    return [text if text is None or len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…" for text in found]


RISK, UTILITY = "risk", "utility"
"""What is measured of files that are there already."""

_NOT_YET = "this report was made right after the audit confirmed the files"

_NO_TARGET = (
    "There is no target: the mechanism minimizes the loss of detail in every column, and utility is not measured."
)
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_NOISE = "Every run draws new noise without a seed: the files will not have the same bytes."


def make(folder: Path, tell: Tell, *, project: str, quick: bool = False) -> dict[str, Any]:
    """Release what a project file describes into the job's folder: table, manifest, report, pictures and columns.

    Parameters
    ----------
    project : str
        Path of the project file.
    quick : bool
        Whether to leave out the training of classifiers.

    Returns
    -------
    dict
        ``files`` (by what they are: ``name``, ``size``, ``sha256``), ``summary`` (of the report), ``pictures``,
        ``rows`` (which rows are shown beside each other), ``inputs`` (what it was made of, to notice changes),
        ``command`` and ``python`` (which make the same files), ``notes`` on them, ``target``, where
        ``sfumato release`` would write the table, ``output``, the same as the project file has it, and ``to_come``,
        what is still to be measured. As soon as the audit has confirmed the files a first result is left, with neither
        risk nor utility, and once risk is measured another one; utility, which takes longest, is in the last one.
    """
    inputs = noted(project, PROJECT_FILE, DATA, HIERARCHY)
    raw = project_bytes(Path(project))
    described = project_of(Path(project), raw, parse_toml(Path(project), raw))
    target = described.output or described.path.parent / DEFAULT_OUTPUT
    check_targets(target, manifest_path_for(target), Source(str(described.data_path), ""), force=True)
    kept = _keep_project(described, raw, folder)
    published, original = _published(described, folder / target.name, tell)
    release, audit = _audited(published, original, tell)
    asked = Asked(described.path.name, dict(described.settings))
    output = _as_written(target, described.path.parent)
    names = {"table": target.name, "manifest": published.manifest_path.name, "project": kept}
    files = {what: _file(folder / name) for what, name in names.items()}

    def result(summary: Mapping[str, Any], *to_come: str) -> dict[str, Any]:
        pictures = drawn(summary, release.manifest)
        name = beside(described.path, REPORT_NAME)
        report = f"without-{'-'.join(to_come)}/{name}" if to_come else name
        (folder / report).parent.mkdir(exist_ok=True)
        write_atomically(folder / report, report_html(summary, release.manifest, pictures).encode())
        _write_pictures(pictures, folder)
        return {
            "files": {**files, "report": {**_file(folder / report), "name": report}},
            "summary": summary,
            "pictures": [{"name": p.name, "title": p.title, "alt": p.alt, "group": p.section} for p in pictures],
            "rows": rows,
            "inputs": inputs,
            "target": str(target.absolute()),
            "output": output,
            "quick": quick,
            "to_come": list(to_come),
            **_again(described, output, release.manifest, quick=quick or UTILITY in to_come),
        }

    def leave(summary: Mapping[str, Any], *to_come: str) -> None:
        write_private(folder / FIRST_RESULT_NAME, json.dumps(result(summary, *to_come)))
        tell.first_result()

    _begin(tell, "drawing pictures and comparing both tables")
    summary = summarize(release, original, audit=audit, asked=asked, quick=True, risk={NOT_MEASURED: _NOT_YET})
    rows = _write_columns(original, release, summary, folder)
    leave(summary, RISK, *([] if quick else [UTILITY]))
    _begin(tell, "measuring risk")
    risk = risk_section(risk_left(release, original, progress=tell.progress))
    summary = summarize(release, original, audit=audit, asked=asked, quick=True, risk=risk)
    if quick:
        return result(summary)
    leave(summary, UTILITY)
    _begin(tell, "measuring utility")
    return result(summarize(release, original, audit=audit, asked=asked, risk=risk, progress=tell.progress))


def save(
    folder: Path, tell: Tell, *, made_in: str, files: Mapping[str, str], target: str, data: str, replace: bool = False
) -> dict[str, Any]:
    """Write table, manifest and report of a release where the project file says, byte for byte as they were made.

    Parameters
    ----------
    made_in : str
        Folder of the job that made them.
    files : mapping of str to str
        Names of ``table``, ``manifest`` and ``report`` there.
    target : str
        Path of the table; the others stand beside it.
    data : str
        Path of the original, which is never written to.
    replace : bool
        Whether files that exist are replaced.

    Raises
    ------
    OutputError
        If a file exists and ``replace`` is off, is the data itself, or cannot be written.
    """
    table = Path(target)
    report = table.parent / Path(files["report"]).name
    targets = {"manifest": manifest_path_for(table), "report": report, "table": table}
    try:
        check_targets(table, targets["manifest"], Source(data, ""), force=replace)
        check_writable(targets["report"], force=replace)
    except OutputError as exc:
        raise _in_words_of_the_page(exc) from None
    with ExitStack() as all_or_none:
        pending = [all_or_none.enter_context(PendingFile(path)) for path in targets.values()]
        for what, file in zip(targets, pending, strict=True):
            with (Path(made_in) / files[what]).open("rb") as content, explained_writing(file.target):
                shutil.copyfileobj(content, file.file)
            file.complete()
        with alone_in(table.parent):
            appear_together(pending, list(targets.values()) if replace else [])
    return {"folder": str(table.parent), "names": [path.name for path in targets.values()]}


def set_output(folder: Path, tell: Tell, *, project: str, output: str) -> dict[str, Any]:
    """Let a project file name another output, and so another format."""
    if load_project(project).escape_formulas:
        check_escapes((), writable_format_of(output))
    edited = edit_project(Path(project), ProjectChanges(output=output))
    return {"output": str(edited.output)}


def _begin(tell: Tell, phase: str) -> None:
    """Log what is done next; how long it will take is not known."""
    tell.progress(0, 0, phase)
    tell.log(f"{phase[0].upper()}{phase[1:]}.")


def _published(project: Project, target: Path, tell: Tell) -> tuple[Published, AnyTable]:
    _begin(tell, f"releasing by {project.mechanism or DEFAULT_MECHANISM}")
    made, original = release_project(project, is_published=True, progress=tell.progress)
    tell.log(f"Made {made.table.n_rows:,} rows of {original.n_rows:,}.")
    plain = original.coded_part
    if plain.schema.target is None:
        tell.log(_NO_TARGET)
    _begin(tell, "writing and auditing the files")
    proposal = InMemory(made, original)
    recorded = checked_together(proposal, Ledger.of_project(project.path))
    for line in recorded.lines:
        tell.log(f"{line[0].upper()}{line[1:]}.")
    return publish(proposal, target, recorded=recorded), original


def _audited(published: Published, original: AnyTable, tell: Tell) -> tuple[Release, AuditReport]:
    """Read the files back as anybody would, so that ``sfumato report`` says the same of them."""
    _begin(tell, "reading the files back as a recipient would")
    manifest, _ = read_manifest(published.manifest_path)
    table = read_released(published.table_path, manifest)
    release = Release(beside_original(table, original, manifest) or table, manifest)
    # A look at the original would make it depend on the rows whether a differentially private release appears.
    beside = None if manifest.is_differentially_private else original
    key = published.release.audit_key
    audit = audit_published(published.table_path, published.manifest_path, original=beside, key=key, check_roles=True)
    audit.raise_if_failed()
    tell.log(f"The audit ends in: {audit.last_line}.")
    return release, audit


def _write_pictures(pictures: Iterable[Picture], folder: Path) -> None:
    for picture in pictures:
        write_atomically(folder / f"{picture.name}.svg", picture.svg, force=True)  # the same with the first result


def _write_columns(original: AnyTable, release: Release, summary: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    tables = tables_beside(original, release)
    rows = rows_beside(tables)
    changes = {str(entry["name"]): entry for entry in summary["columns"]["changes"]}
    write_columns(folder / STORE_NAME, column_records(tables, rows, changes))
    return {
        "n_shown": max(rows.n_original, len(rows.released)),
        "n_original": tables.original.n_rows,
        "n_released": tables.released.n_rows,
        "is_matched": rows.is_matched,
        "suppressed": rows.suppressed,
        "note": rows.note,
    }


def _hierarchies(project: Project) -> list[Path]:
    """Hierarchy files that a project names, each once; those that are not there are for the mechanism to miss."""
    declared = project.parameters.get("hierarchies")
    files = [column.hierarchy for column in project.columns if column.hierarchy]
    files += [file for file in declared.values() if isinstance(file, str)] if isinstance(declared, Mapping) else []
    return [path for path in map(Path, dict.fromkeys(files)) if path.is_file()]


def _keep_project(project: Project, raw: bytes, folder: Path) -> str:
    """Keep the project file as it was loaded, with its hierarchy files in a zip if there are some."""
    hierarchies, beside = _hierarchies(project), project.path.parent.absolute()
    if not hierarchies:
        write_atomically(folder / project.path.name, raw)
        return project.path.name
    name = f"{project.path.stem}.zip"
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (project.path, *hierarchies):
            whole = path.absolute()
            inside = whole.relative_to(beside) if whole.is_relative_to(beside) else Path(whole.name)
            content = raw if path == project.path else path.read_bytes()
            archive.writestr(zipfile.ZipInfo(inside.as_posix(), _ZIP_DATE), content)
    return name


def _as_written(target: Path, beside: Path) -> str:
    return str(target.relative_to(beside)) if target.is_relative_to(beside) else str(target)


def _typed(path: str) -> str:
    """Write a path so that no program takes it for an option."""
    return f"./{path}" if path.startswith("-") else path


def _again(project: Project, output: str, manifest: Manifest, *, quick: bool) -> dict[str, Any]:
    """Write the shell line and the Python lines that make the same files, and what must be known about them."""
    name = project.path.name
    report = _typed(str(Path(output).parent / beside(project.path, REPORT_NAME)))
    table, file = _typed(output), _typed(name)
    is_timed = may_depend_on_clock(manifest)
    is_noisy = (manifest.perturbation or {}).get("kind") == "synthetic"
    command, report_command = project_commands(file, table, report, quick=quick)
    return {
        "command": command,
        "report_command": report_command,
        "python": f"from sfumato import publish_project\n\npublish_project({name!r}, {output!r})\n",
        "notes": [note for note, is_so in ((_NOISE, is_noisy), (CLOCKED, is_timed)) if is_so],
    }


def _file(path: Path) -> dict[str, Any]:
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {"name": path.name, "size": path.stat().st_size, "sha256": digest}


def _in_words_of_the_page(error: OutputError) -> OutputError:
    """Say the remedy as the page offers it."""
    if "force" not in error.remedy:
        return error
    problem = error.message.removeprefix(f"{error.path}: ").removesuffix(".")
    return OutputError(problem, path=Path(error.path).name, hint="tick 'Replace files that exist' to replace it")
