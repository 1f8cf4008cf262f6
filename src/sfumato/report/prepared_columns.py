"""What was done to columns before any mechanism saw them, in sentences for command line, page and report."""

from __future__ import annotations

from sfumato.errors import on_one_line
from sfumato.manifest import Manifest


def prepared_in_words(manifest: Manifest) -> list[str]:
    """Say what was done, a sentence a column; nothing where nothing was.

    How many cells were coded at the top or bottom is not said: of a column that is made coarser afterwards, or of which
    rows are left out, the release does not show it.
    """
    return [f"prepared: {asked.in_words()}" for asked in manifest.preparations]


def prepared_warnings(manifest: Manifest) -> list[str]:
    """Say of pseudonyms that all releases of a project share what they let recipients do."""
    return [
        on_one_line(
            f"pseudonyms of '{asked.column}' are the same in all releases of this project: whoever has two of them can "
            "join their rows, and may find people whom neither release shows alone"
        )
        for asked in manifest.preparations
        if asked.pseudonym and asked.scope == "project"
    ]


def not_protected_by(manifest: Manifest) -> list[str]:
    """Say what pseudonyms and shifts leave open, of the columns that have them."""
    said = []
    for asked in manifest.preparations:
        name = f"'{on_one_line(asked.column)}'"
        if asked.pseudonym:
            said.append(f"pseudonyms of {name} name nobody without the key; who holds the key can join rows by them")
        if asked.shift_days is not None:
            said.append(
                f"shifted dates of {name} still tell the time between two events, and who knows one true date of a "
                "person may find the others: give such a column the role that its dates deserve"
            )
    return said


def pseudonyms_in(manifest: Manifest) -> frozenset[str]:
    """Names of the columns that hold pseudonyms."""
    return frozenset(str(entry["column"]) for entry in manifest.prepared if entry["operation"] == "pseudonym")
