"""What an audit says of several releases together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.reading.columns import AnyTable, Columns, group_rows
from sfumato.audit.together.appearances import NamedRows, Promised, judged_together
from sfumato.audit.together.levels import Shortfall, total_epsilon

NAME = "together"


def check_together(releases: Sequence[tuple[str, Promised, NamedRows | str]]) -> Iterator[Check | Unchecked]:
    """Judge several releases of the same people together.

    Parameters
    ----------
    releases : sequence of tuple
        Name of each, what it promises, and its rows by persons, or why it is not known whose they are.
    """
    epsilons = [promised.epsilon for _, promised, _ in releases if promised.epsilon is not None]
    if len(epsilons) > 1:
        said = f"differential privacy of {len(epsilons)} releases together: ε = {total_epsilon(epsilons):g}, the sum"
        yield Check(NAME, True, said, found=total_epsilon(epsilons))
    known = []
    for name, promised, rows in releases:
        if promised.epsilon is not None:
            continue
        if not promised.has_classes:
            what = ", ".join(promised.others) or "nothing"
            yield Unchecked(NAME, f"'{name}' promises {what}, which is not judged together with other releases")
        elif isinstance(rows, str):
            remedy = "give the originals with a column that tells persons apart, or the project with its ledger"
            yield Unchecked(NAME, f"whose rows '{name}' holds is not known: {rows}", remedy)
        else:
            known.append(rows)
            if promised.others:
                yield Unchecked(NAME, f"of '{name}' not judged together: {', '.join(promised.others)}")
    if len(known) < 2:
        return
    together = judged_together(known)
    shortfalls = list(together.shortfalls())
    for shortfall in shortfalls:
        yield Check(NAME, False, _in_words(shortfall, len(known)), shortfall.promised, shortfall.found)
    if not shortfalls:
        said = f"{len(known)} releases together keep what each promised: the smallest joint class has"
        yield Check(NAME, True, f"{said} {together.anonymity:,} persons", found=together.anonymity)


def _in_words(shortfall: Shortfall, n_releases: int) -> str:
    what = {
        "persons": "persons with the same classes in all of them",
        "values": f"values of '{shortfall.column}' of persons with the same classes in all of them",
        "remaining values": f"values of '{shortfall.column}' that all of them leave possible",
    }[shortfall.what]
    levels = f"promised {shortfall.promised:g}, found {shortfall.found:g}"
    return f"{n_releases} releases together: {what}: {levels}; {shortfall.n_persons:,} persons fall below"


def are_rows_of(rows: NamedRows, released: AnyTable) -> bool:
    """Whether a stored map has the classes of a released table, by their sizes."""
    sizes = group_rows(Columns(released), rows.promised.columns).sizes
    held = np.bincount(rows.classes)
    return np.array_equal(np.sort(held[held > 0]), np.sort(sizes))
