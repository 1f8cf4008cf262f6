"""Commands that write something, each with a check of what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MECHANISMS = ("greedy-containment", "mondrian", "error-risk-tree", "gain-recoding", "anatomy", "random-flipping")
SUFFIXES = (".csv", ".parquet", ".xlsx", ".csv.gz", ".tsv")
LARGE_SUFFIXES = (".parquet", ".csv", ".csv.gz")
MEMORY = ("--memory", "1GB")
COLUMNS = ("patient_id", "age", "sex", "insurance", "smoker", "diabetes", "copd", "discharge_diagnosis", "readmitted")


@dataclass(frozen=True)
class Order:
    """A command line.

    Parameters
    ----------
    arguments : list
        Of ``sfumato``, the output included.
    outputs : tuple of str
        Names of the files that may stand afterwards, the last one first to appear.
    is_whole : callable
        Given the folder, whether what stands there is whole; called when the first output is there.
    """

    name: str
    arguments: list[str]
    outputs: tuple[str, ...]
    is_whole: Callable[[Path], bool]


def write_original(folder: Path, n_rows: int = 1000) -> Path:
    """Write some columns of made-up hospital admissions."""
    from sfumato.datasets.admissions import admissions
    from sfumato.table.io.write import write_table

    path = folder / "admissions.csv"
    with path.open("wb") as file:
        write_table(admissions(n_rows=n_rows).keep(COLUMNS), file, "csv")
    return path


def large_release_orders(original: Path) -> list[Order]:
    """Release out of core, by every mechanism that can."""
    from sfumato.publishing.propose import mechanisms_without_all_rows

    uniform = {"error-risk-tree": ("-p", "generalization=uniform")}  # tiered cells need all rows
    return [
        release_order(original, name, LARGE_SUFFIXES[i % len(LARGE_SUFFIXES)], *MEMORY, *uniform.get(name, ()))
        for i, name in enumerate(mechanisms_without_all_rows())
    ]


def release_order(original: Path, mechanism: str, suffix: str, *options: str) -> Order:
    """Release the admissions."""
    output = f"out{suffix}"
    given = ["release", str(original), "--target", "readmitted", "--sensitive", "discharge_diagnosis", "-m", mechanism]
    more = ["-p", "on_infeasible=skip"] if mechanism == "greedy-containment" else []
    names = (output, f"{output}.manifest.json")
    arguments = [*given, *more, *options, "-o", output]
    name = " ".join(["release", mechanism, *options])
    return Order(name, arguments, names, lambda folder: is_confirmed(folder / output, original))


def is_confirmed(released: Path, original: Path) -> bool:
    """Whether the audit confirms a release that stands on disk, as ``sfumato audit`` does it."""
    from sfumato.publishing.reaudit import audit_published, read_original
    from sfumato.table.io.read import DEFAULT_OPTIONS

    manifest = released.with_name(f"{released.name}.manifest.json")
    table = read_original(original, DEFAULT_OPTIONS)
    return audit_published(released, manifest, original=table).passed


def small_orders(original: Path, manifest: Path) -> list[Order]:
    """Commands that write one file."""
    release = str(manifest).removesuffix(".manifest.json")
    return [
        Order("init", ["init", str(original), "-o", "out.toml"], ("out.toml",), _is_project),
        Order(
            "hierarchy build",
            ["hierarchy", "build", str(original), "--column", "age", "-o", "age.csv"],
            ("age.csv",),
            _is_hierarchy,
        ),
        Order(
            "plot",
            ["plot", str(manifest), "--kind", "levels", "-o", "out.svg"],
            ("out.svg",),
            lambda f: _ends(f / "out.svg", b"</svg>"),
        ),
        Order(
            "report",
            ["report", release, "--quick", "-o", "out.html"],
            ("out.html",),
            lambda folder: _ends(folder / "out.html", b"</html>"),
        ),
    ]


def _is_project(folder: Path) -> bool:
    from sfumato.project.file import load_project

    return load_project(folder / "out.toml").read().n_rows > 0


def _is_hierarchy(folder: Path) -> bool:
    from sfumato.mechanisms.hierarchies.files import read_hierarchy

    return read_hierarchy(folder / "age.csv").n_levels > 1


def _ends(path: Path, end: bytes) -> bool:
    return path.read_bytes().rstrip().endswith(end)
