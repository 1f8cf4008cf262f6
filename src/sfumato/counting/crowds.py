r"""Persons of distinct rows, as far as a search for classes of at least k persons must know them.

Different persons do not add up over cells: the same one may be in two of them. So distinct rows are counted together
with the person, as pairs. But a class of k persons or more is large enough, however many it has. A cell that has k
persons by itself makes every class that holds it large enough, so its persons need not be told apart: they become one
*crowd*. What is left are the pairs of cells with fewer than k persons. For every class of any node

.. math:: \min(k, \text{persons}) = \begin{cases} k & \text{a cell of the class is a crowd} \\
    |\{\text{persons of its cells}\}| & \text{otherwise} \end{cases}

which is exact, and at the top of all hierarchies there is one crowd: so some levels always fit in memory.

A person is known by two whole numbers (:func:`person_keys`): a code or a whole number as it is, anything else by a
digest of 126 bits. Should two persons ever have the same one, they count as one: a class is then taken to have fewer
persons than it has, never more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.table.weighted import CountedTable, WeightedColumn

Keys = NDArray[np.int64]
Counted = tuple[list[Keys], Keys]
"""Distinct rows as keys, and how often each occurs."""

N_PERSON_KEYS = 2
_AS_NUMBER, _CROWD, _MISSING, _DIGEST = 0, 1, 2, 3
"""What the second number of a person ends in; that of a number, a crowd and a missing person is nothing else."""


def person_keys(cells: NDArray[np.int32] | pa.Array) -> list[Keys]:
    """Two whole numbers for each cell of a column that tells persons apart; equal for equal cells.

    Cells are codes, or values where these are not listed. All missing ones are one person.

    Examples
    --------
    >>> [keys.tolist() for keys in person_keys(pa.array([7, None, 7]))]
    [[7, 0, 7], [0, 2, 0]]
    """
    if not isinstance(cells, pa.Array):
        return [np.asarray(cells, dtype=np.int64), np.full(len(cells), _AS_NUMBER, dtype=np.int64)]
    missing = cells.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_signed_integer(cells.type):
        numbers = pc.fill_null(pc.cast(cells, pa.int64()), 0).to_numpy(zero_copy_only=False)
        return [numbers, np.where(missing, _MISSING, _AS_NUMBER).astype(np.int64)]
    coded = cells.dictionary_encode()
    texts = pc.cast(coded.dictionary, pa.string()).to_pylist()
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    known = np.frombuffer(digests, dtype=np.int64).reshape(-1, N_PERSON_KEYS).copy()
    known[:, 1] |= _DIGEST
    known = np.vstack([known, [[0, _MISSING]]])
    places = pc.fill_null(coded.indices, len(texts)).to_numpy(zero_copy_only=False)
    return [np.ascontiguousarray(column[places]) for column in known.T]


def keys_of_digests(digests: pa.Array) -> list[Keys]:
    """Two whole numbers for each digest that a cluster gives as text, empty for no person, null for a crowd."""
    coded = digests.dictionary_encode(null_encoding="encode")
    texts = coded.dictionary.to_pylist()
    known = np.zeros((len(texts), N_PERSON_KEYS), dtype=np.int64)
    for place, text in enumerate(texts):
        if text:
            known[place] = np.frombuffer(bytes.fromhex(text), dtype=np.int64)
            known[place, 1] |= _DIGEST
        else:
            known[place, 1] = _CROWD if text is None else _MISSING
    return [np.ascontiguousarray(column) for column in known[coded.indices.to_numpy(zero_copy_only=False)].T]


def crowded(found: Counted, k: int) -> Counted:
    """Make one crowd of the persons of each cell that has at least k; the keys ascend, those of the person last."""
    keys, counts = found
    if not len(counts):
        return found
    starts = np.ones(len(counts), dtype=np.bool_)
    starts[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys[:-N_PERSON_KEYS]])
    cell = np.cumsum(starts) - 1
    is_crowd = np.bincount(cell) >= k
    is_crowd[cell[keys[-1] == _CROWD]] = True
    kept = starts | ~is_crowd[cell]
    first, second = keys[-N_PERSON_KEYS].copy(), keys[-1].copy()
    first[is_crowd[cell]], second[is_crowd[cell]] = 0, _CROWD
    at = np.flatnonzero(kept)
    columns = [*keys[:-N_PERSON_KEYS], first, second]
    return [key[at] for key in columns], np.add.reduceat(counts, at)


def with_persons(cells: CountedTable, person: str, keys: Sequence[Keys], n_persons: int | None = None) -> CountedTable:
    """Put the persons of distinct rows, given by their keys, into the table as numbers of no meaning.

    ``n_persons`` is how many there are in all rows, which crowds do not tell; ``None``: not known.
    """
    first, second = keys
    order = np.lexsort((second, first))
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (first[order[1:]] != first[order[:-1]]) | (second[order[1:]] != second[order[:-1]])
    codes = np.empty(len(order), dtype=np.int32)
    codes[order] = np.cumsum(is_new) - 1
    n_known = int(is_new.sum())
    crowds = np.flatnonzero(second == _CROWD)
    crowd = int(codes[crowds[0]]) if len(crowds) else n_known
    own = WeightedColumn(codes, pa.array(np.arange(max(n_known, crowd + 1))), cells.row_counts)
    columns = {**cells.columns, person: own}
    return replace(cells, columns=columns, together=(*cells.together, person), crowd=crowd, n_persons=n_persons)


def fewest_in_classes(cells: CountedTable, person: str, classes: NDArray[np.int64], crowd_size: int) -> int | None:
    """Fewest persons of a class, if distinct rows tell it: those of a class with a crowd are not told apart.

    Parameters
    ----------
    classes : int64 array
        Class of each distinct row, -1 for those of none.
    crowd_size : int
        Persons of a crowd, at least.
    """
    kept = classes >= 0
    if not kept.any():
        return 0
    codes = cells[person].codes.astype(np.int64)[kept]
    has_crowd = np.zeros(int(classes.max()) + 1, dtype=np.bool_)
    has_crowd[classes[kept][codes == cells.crowd]] = True
    pairs = np.unique(classes[kept] * cells[person].n_distinct + codes)
    n_persons = np.bincount(pairs // cells[person].n_distinct)
    known = n_persons[~has_crowd & (n_persons > 0)]
    return int(known.min()) if len(known) and known.min() <= crowd_size else None


def first_of_each(cells: CountedTable, person: str) -> NDArray[np.bool_]:
    """Whether a distinct row is the first of those that differ by the person alone, which are neighbours."""
    codes = [cells[name].codes for name in cells.together if name != person]
    found = np.ones(len(cells.row_counts), dtype=np.bool_)
    found[1:] = np.logical_or.reduce([own[1:] != own[:-1] for own in codes])
    return found


def without_persons(cells: CountedTable, person: str, is_first: NDArray[np.bool_]) -> CountedTable:
    """Add up distinct rows that differ by the person alone."""
    at = np.flatnonzero(is_first)
    counts = np.add.reduceat(cells.row_counts, at) if len(at) else cells.row_counts
    together = tuple(name for name in cells.together if name != person)
    columns = {name: column for name, column in cells.columns.items() if name != person}
    for name in together:
        columns[name] = WeightedColumn(cells[name].codes[at], cells[name].values, counts)
    schema = cells.schema.keep(name for name in cells.schema.names() if name != person)
    return replace(
        cells, schema=schema, columns=columns, row_counts=counts, together=together, crowd=None, n_persons=None
    )
