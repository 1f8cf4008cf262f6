"""How reading, writing, counting, auditing and attacking grow over rows, beside pandas where it does the same."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import Outcome
from benchmarks.generated import SENSITIVE, TARGET, kept, kept_census, kept_sparse, n_bytes
from benchmarks.growth import Curve, Growth

ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
FEWER_ROWS, FEW_ROWS = ROWS[:3], (10_000, 30_000, 100_000, 200_000)
N_QUASI, N_WORDS = 10, 200
MOST_SECONDS = 10.0
MEMORY_LIMIT = "1GB"
OURS, PANDAS = ("sfumato", "pyarrow"), ("pandas",)


# Files ------------------------------------------------------------------------------------------------------------


def load_file(format_name: str, n_rows: int, folder: Path) -> Path:
    """Write the census into a file, once for all contenders."""
    from sfumato.table.io.write import write_table

    path = folder / f"census-{n_rows}.{format_name}"
    if not path.exists():
        with path.open("w+b") as file:
            write_table(kept_census(n_rows, N_QUASI, folder), file, format_name)
    return path


def read(path: Path) -> Any:
    """Read and code a file at the door."""
    from sfumato.table.io.read import read_table

    return read_table(path)


def read_with_pandas(path: Path) -> Any:
    """Read a file into a frame."""
    import pandas as pd

    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)


def assess_read(path: Path, table: Any) -> Outcome:
    """Answer with the number of rows and of distinct values of every column."""
    distinct = [table[name].n_distinct for name in table.schema.names()]
    return Outcome([table.n_rows, *distinct], {"file bytes": path.stat().st_size})


def assess_frame(path: Path, frame: Any) -> Outcome:
    """Answer with the same."""
    return Outcome([len(frame), *(int(n) for n in frame.nunique())], {"file bytes": path.stat().st_size})


def load_to_write(n_rows: int, folder: Path) -> Any:
    """Make a table and name the file."""
    return kept_census(n_rows, N_QUASI, folder), folder / "written"


def load_frame_to_write(n_rows: int, folder: Path) -> Any:
    """Make a frame of the same cells and name the file."""
    return make_frame(n_rows, folder), folder / "written"


def write(format_name: str, loaded: Any) -> Path:
    """Write a table."""
    from sfumato.table.io.write import write_table

    table, path = loaded
    with Path(path).open("w+b") as file:
        write_table(table, file, format_name)
    return Path(path)


def write_with_pandas(loaded: Any) -> Path:
    """Write a frame as CSV."""
    frame, path = loaded
    frame.to_csv(path, index=False)
    return Path(path)


def assess_written(loaded: Any, path: Path) -> Outcome:
    """Answer with the hash of the file: both must write the same bytes."""
    import hashlib

    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Outcome(digest, {"file bytes": path.stat().st_size})


# Counting ---------------------------------------------------------------------------------------------------------


def quasi_identifiers(names: Any) -> list[str]:
    """All columns but the sensitive one and the target."""
    return [name for name in names if name not in (SENSITIVE, TARGET)]


def make_frame(n_rows: int, folder: Path) -> Any:
    """Make a pandas frame of the census; texts are categories, as they would be after some care."""
    import pandas as pd

    table = kept_census(n_rows, N_QUASI, folder)
    columns = {}
    for name, column in table.columns.items():
        values = column.values.to_pylist()
        is_text = isinstance(values[0], str)
        columns[name] = pd.Categorical.from_codes(column.codes, values) if is_text else column.cells().to_numpy()
    return pd.DataFrame(columns)


def count_file(path: Path) -> Any:
    """Count the class sizes of a file in blocks."""
    from sfumato.engines.blocks.rows import open_large
    from sfumato.engines.memory_limit import Memory

    rows = open_large(path, memory=Memory.of(MEMORY_LIMIT).n_bytes)
    sizes = rows.distinct(quasi_identifiers(column_names(path)), most_cells=rows.n_rows).row_counts
    return [int(sizes.min()), len(sizes)]


def count_file_with_pandas(path: Path) -> Any:
    """Read everything and group."""
    import pandas as pd

    return counted(pd.read_parquet(path))


def column_names(path: Path) -> list[str]:
    """Names of the columns of a Parquet file."""
    import pyarrow.parquet as pq

    return list(pq.read_schema(path).names)


def counted(frame: Any) -> Any:
    """Smallest class and number of classes of a frame."""
    sizes = frame.groupby(quasi_identifiers(frame.columns), observed=True, sort=False).size()
    return [int(sizes.min()), len(sizes)]


def profile(table: Any) -> Any:
    """Take the risk of a table as it is."""
    from sfumato.audit.profile import risk_profile

    return risk_profile(table)


def profile_with_pandas(frame: Any) -> Any:
    """Count classes and unique rows, and find k and the number of distinct sensitive values of the poorest class."""
    grouped = frame.groupby(quasi_identifiers(frame.columns), observed=True, sort=False)[SENSITIVE]
    sizes, diversity = grouped.size(), grouped.nunique()
    return [len(sizes), int((sizes == 1).sum()), int(sizes.min()), int(diversity.min())]


def assess_profile(table: Any, found: Any) -> Outcome:
    """Answer with the same four."""
    diversity = found["sensitive"][SENSITIVE]["distinct_l"]
    answer = [found["n_classes"], found["sample_uniques"]["count"], found["k"], diversity]
    return Outcome(answer, {"bytes": n_bytes(table)})


def assess_frame_in_memory(frame: Any, answer: Any) -> Outcome:
    """Answer, with the bytes of the frame."""
    return Outcome(answer, {"bytes": int(frame.memory_usage(index=False).sum())})


# Audit and attacks ------------------------------------------------------------------------------------------------


def load_release(name: str, n_rows: int, folder: Path) -> Any:
    """Let a mechanism release a table, once for audit and attack."""
    return kept(folder.parent / f"release-{name}-{n_rows}.pickle", partial(make_release, name, n_rows, folder))


def make_release(name: str, n_rows: int, folder: Path) -> Any:
    """Let a mechanism release a table."""
    from sfumato.mechanisms.registry import build_mechanism

    is_sparse = name == "greedy-containment"
    table = kept_sparse(n_rows, N_WORDS, folder) if is_sparse else kept_census(n_rows, N_QUASI, folder)
    parameters = {"k": 5, "on_infeasible": "skip"} if is_sparse else {"k": 5}
    return table, build_mechanism(name, parameters).release(table)


def audit(loaded: Any) -> Any:
    """Audit a release beside its original."""
    from sfumato.audit import audit_release
    from sfumato.audit.auditor import AuditorHas, PublisherKnows

    table, release = loaded
    report = audit_release(
        release.table,
        release.manifest.to_dict(),
        AuditorHas(original=table, roles=True),
        publisher=PublisherKnows(levels_are_stated=False),
    )
    report.raise_if_failed()
    return report


def attack(loaded: Any) -> Any:
    """Attack a release in every way."""
    from sfumato.attack.risk import risk_of

    table, release = loaded
    return risk_of(table, release.table, release.manifest)


def attack_original(table: Any) -> Any:
    """Attack a table as it is."""
    from sfumato.attack.risk import risk_of

    return risk_of(table, table)


def assess_bytes(loaded: Any, result: Any) -> Outcome:
    """Say how much there was to read: both tables where there are two."""
    if not isinstance(loaded, tuple):
        return Outcome(None, {"bytes": n_bytes(loaded)})
    table, release = loaded
    return Outcome(None, {"bytes": n_bytes(table) + n_bytes(release.table)})


def census(n_rows: int, folder: Path) -> Any:
    """Make the census."""
    return kept_census(n_rows, N_QUASI, folder)


def census_frame(n_rows: int, folder: Path) -> Any:
    """Make the census as a frame."""
    return make_frame(n_rows, folder)


def file_answer(path: Path, answer: Any) -> Outcome:
    """Answer, with the bytes of the file."""
    return Outcome(answer, {"file bytes": path.stat().st_size})


def from_file(
    name: str,
    format_name: str,
    run: Any,
    assess: Any,
    packages: tuple[str, ...],
    task: str,
    most_seconds: float | None = None,
) -> Curve:
    """Make the curve of work that begins with a file."""
    sizes = FEWER_ROWS if format_name == "csv" else ROWS
    load = partial(load_file, format_name)
    return Curve(name, load, run, assess, sizes, packages, task, most_seconds=most_seconds, is_made_apart=True)


def of_release(name: str, mechanism: str, run: Any, sizes: tuple[int, ...] = FEWER_ROWS) -> Curve:
    """Make the curve of work on the release of a mechanism."""
    return Curve(name, partial(load_release, mechanism), run, assess_bytes, sizes, OURS, is_made_apart=True)


BENCHMARK = Growth(
    title="What surrounds the mechanisms, on a census of 10 quasi-identifiers; pandas with the same answer where it "
    "can be asked. Class sizes are counted out of core within 1 GB. Tiered releases end at 200,000 rows, because "
    "making a larger one takes longer than its audit may",
    goal="near-linear; reading no slower than pandas, counting faster",
    axis="rows",
    most_seconds=MOST_SECONDS,
    curves=(
        from_file("read CSV", "csv", read, assess_read, OURS, "read CSV"),
        from_file("… pandas", "csv", read_with_pandas, assess_frame, PANDAS, "read CSV"),
        from_file("read Parquet", "parquet", read, assess_read, OURS, "read Parquet"),
        from_file("… pandas, Parquet", "parquet", read_with_pandas, assess_frame, PANDAS, "read Parquet"),
        Curve("write CSV", load_to_write, partial(write, "csv"), assess_written, FEWER_ROWS, OURS, "write CSV"),
        Curve(
            "… pandas, to CSV",
            load_frame_to_write,
            write_with_pandas,
            assess_written,
            FEWER_ROWS,
            PANDAS,
            "write CSV",
        ),
        Curve("write Parquet", load_to_write, partial(write, "parquet"), assess_written, ROWS, OURS),
        from_file("class sizes of a file", "parquet", count_file, file_answer, ("sfumato", "duckdb"), "class sizes"),
        from_file("… pandas, grouped", "parquet", count_file_with_pandas, file_answer, PANDAS, "class sizes", 7.0),
        Curve("risk profile", census, profile, assess_profile, ROWS, OURS, "classes, unique rows, k and l"),
        Curve(
            "… pandas, k and l",
            census_frame,
            profile_with_pandas,
            assess_frame_in_memory,
            ROWS,
            PANDAS,
            "classes, unique rows, k and l",
        ),
        of_release("audit, k-anonymity", "mondrian", audit),
        of_release("audit, tiered", "error-risk-tree", audit, FEW_ROWS),
        of_release("audit, containment", "greedy-containment", audit),
        Curve("risk of the original", census, attack_original, assess_bytes, ROWS, OURS),
        of_release("risk of a release", "mondrian", attack),
    ),
)
