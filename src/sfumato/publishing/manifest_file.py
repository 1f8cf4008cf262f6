"""The file that holds a manifest: where it stands and the text in it. Loads no library, for commands ask early."""

from __future__ import annotations

from pathlib import Path

from sfumato.errors import ManifestError


def manifest_path_for(table_path: Path) -> Path:
    """Where a release's manifest is: next to the table, under its full name.

    Examples
    --------
    >>> manifest_path_for(Path("out/release.csv")).as_posix()
    'out/release.csv.manifest.json'
    """
    return table_path.parent / (table_path.name + ".manifest.json")


def manifest_text(path: Path) -> str:
    """Read the text of a manifest.

    Raises
    ------
    ManifestError
        If there is no such file, or it is no UTF-8 text.
    """
    try:
        return path.read_bytes().decode("utf-8")  # line ends are part of what is accounted for
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not a path of UTF-8 text"
        raise ManifestError(f"cannot be read ({reason})", path=path) from None


def is_left_alone(manifest_path: Path, table_path: Path) -> bool:
    """Whether a manifest is there without its table."""
    try:
        return not table_path.exists() and b'"sfumato_manifest"' in manifest_path.read_bytes()[:200]
    except (OSError, ValueError):
        return False
