"""Displays as files: the same numbers give the same bytes, and a file appears whole or not at all."""

from __future__ import annotations

import io
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.atomic import check_writable, write_atomically
from sfumato.errors import InvalidParameterError

if TYPE_CHECKING:
    from sfumato.displays.base import Display

FORMATS = ("svg", "png", "pdf")

_PAGE: dict[str, Any] = {"dpi": 200, "bbox_inches": "tight", "pad_inches": 0.08}  # nothing drawn is ever cut off
_SETTINGS = {"svg.hashsalt": "sfumato"}  # names inside an SVG are drawn at random without it
_NO_DATE: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "sfumato"},
    "png": {"Software": "sfumato"},
    "pdf": {"CreationDate": None, "Creator": "sfumato", "Producer": None},
}
_SETTINGS_ARE_GLOBAL = threading.Lock()


def picture_format_of(path: str | Path) -> str:
    """Name the format of a picture by its suffix, in any letter case.

    Examples
    --------
    >>> picture_format_of("plane.SVG")
    'svg'
    """
    suffix = Path(path).suffix.lower()
    if suffix.removeprefix(".") not in FORMATS or not suffix:
        problem = f"got a name that ends in {suffix}" if suffix else "got a name without a suffix"
        allowed = "a file name that ends in " + ", ".join(f".{name}" for name in FORMATS)
        raise InvalidParameterError("output", problem, allowed=allowed)
    return suffix.removeprefix(".")


def rendered(display: Display, picture_format: str) -> bytes:
    """Draw a display on a page of its own, untouched by the reader's matplotlib settings, which are put back."""
    from matplotlib import style
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with _SETTINGS_ARE_GLOBAL, style.context(["default", _SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in a script the font lacks
        figure = display.plot().figure
        if not isinstance(figure, Figure):
            raise TypeError
        metadata = {"Title": display.title} | _NO_DATE[picture_format]
        figure.savefig(buffer, format=picture_format, metadata=metadata, **_PAGE)
    return buffer.getvalue()


def save(display: Display, path: str | Path, *, force: bool = False) -> None:
    """Write a display as SVG, PNG or PDF, by the suffix of the path.

    Parameters
    ----------
    force : bool, default=False
        Whether a file that exists is replaced.

    Raises
    ------
    InvalidParameterError
        If the suffix is none of these.
    OutputError
        If the file exists and ``force`` is off, or cannot be written. Nothing is left behind.
    """
    check_picture(path, force=force)
    write_atomically(Path(path), rendered(display, picture_format_of(path)), force=force)


def check_picture(path: str | Path, *, force: bool) -> None:
    """Refuse a path at which :func:`save` would not write, before anything is drawn."""
    picture_format_of(path)
    check_writable(Path(path), force=force)
