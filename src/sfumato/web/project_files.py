"""Which project file belongs to a data file, and what is next to it; light, for the server and its tasks alike.

The first table of a folder has ``sfumato.toml``, as on the command line. A further one has a project file that is named
after it, and so have the folder of its comparisons, its release and its report: none takes the place of another's.
"""

from __future__ import annotations

from pathlib import Path

from sfumato.schema import PROJECT_NAME, RUN_FOLDER
from sfumato.web.confinement import checked_path
from sfumato.web.inputs import content_of

DEFAULT_OUTPUT = "release.csv"
"""Output of a new project file, see :func:`sfumato.project.describe.project_text`."""
REPORT_NAME = "report.html"
_OWN_NAME = f".{PROJECT_NAME}"
OUTPUT_FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
    ".xlsx": "Excel",
    ".csv.gz": "CSV, compressed",
    ".jsonl": "JSON lines",
    ".jsonl.gz": "JSON lines, compressed",
    ".sav": "SPSS",
    ".zsav": "SPSS, compressed",
    ".dta": "Stata",
    ".xpt": "SAS transport file",
}
"""Formats of a release by the suffix of its output, see :func:`sfumato.table.io.formats.writable_format_of`."""


def project_file_for(data: Path, folder: Path, root: Path | None = None) -> Path:
    """Find the project file of a data file, or the name of one that is still to be made.

    Parameters
    ----------
    folder : Path
        Where project files stand.
    root : Path or None
        Folder that the page may use, see :func:`sfumato.web.confinement.checked_path`.

    Raises
    ------
    InputError
        If a project file of these names leads out of that folder.
    """
    named = [folder / name for name in (PROJECT_NAME, f"{data.stem}{_OWN_NAME}", f"{data.name}{_OWN_NAME}")]
    for path in named:
        checked_path(root, str(path))
    own = next((path for path in named if _describes(path, data)), None)
    return own or next((path for path in named if not path.exists()), named[0])


def _describes(project: Path, data: Path) -> bool:
    """Whether a project file is about these data; one that cannot be read is about any: who loads it says why."""
    if not project.exists():
        return False
    content = content_of(project)
    described = content.get("data") if content is not None else None
    name = described.get("path") if isinstance(described, dict) else None
    return not isinstance(name, str) or is_same_file(project.parent / name, data)


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, which need not exist."""
    return one.samefile(other) if one.exists() and other.exists() else one.resolve() == other.resolve()


def beside(project: Path, name: str) -> str:
    """Name a file or folder that belongs to a project file, apart from those of other project files in the folder.

    Examples
    --------
    >>> beside(Path("sfumato.toml"), "release.csv"), beside(Path("visits.sfumato.toml"), "release.csv")
    ('release.csv', 'visits-release.csv')
    """
    is_own = project.name.endswith(_OWN_NAME)
    return f"{project.name.removesuffix(_OWN_NAME)}-{name}" if is_own else name


def run_folder_of(project: Path) -> Path:
    """Folder of the comparisons that the page makes of a project."""
    return project.parent / beside(project, RUN_FOLDER)


def with_suffix(output: str, suffix: str) -> str:
    """Give an output of a project the suffix of another format.

    Examples
    --------
    >>> with_suffix("out/release.csv.gz", ".parquet"), with_suffix("release.2026.csv", ".xlsx")
    ('out/release.parquet', 'release.2026.xlsx')
    """
    path = Path(output)
    return str(path.with_name(path.name[: len(path.name) - len(suffix_of(output))] + suffix))


def suffix_of(output: str) -> str:
    """Give the suffix that says the format, as it is written; ``.gz`` goes with the one before it.

    Examples
    --------
    >>> suffix_of("release.2026.CSV"), suffix_of("out/release.csv.gz"), suffix_of("release")
    ('.CSV', '.csv.gz', '')
    """
    path = Path(output)
    return Path(path.stem).suffix + path.suffix if path.suffix.lower() == ".gz" else path.suffix
