"""Which labels of a hierarchy tell by themselves what they stand for; the others are listed in the manifest.

A label that is an interval (``[17, 25[``), a mask (``0213*``) or the beginning of a date (``2024-03``) needs no list,
provided that it stands for just the values that the hierarchy gives it. A list names the hierarchy's values, whether
they occur in the data or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from sfumato.recoding.axes import positions_of
from sfumato.recoding.hierarchy import ROOT, Hierarchy
from sfumato.schema import Column, Kind

_INTERVAL = re.compile(r"\[([^\[\],]+), ([^\[\],]+)([\[\]])")
_MASK = re.compile(r"[^*]*\*+")
_DATE_PREFIX = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")

Test = Callable[[Sequence[str]], Sequence[bool]]


def listed_labels(hierarchy: Hierarchy, used: Mapping[str, set[int]], described: Column) -> dict[str, list[str]]:
    """Values of the labels that do not tell them, by label, in the order of the hierarchy.

    Parameters
    ----------
    used : mapping of str to set of int
        Labels that are released and the levels that they are released from; level 0 and ``*`` need no list.

    Examples
    --------
    >>> ages = Hierarchy.from_rows([("17", "[17, 25[", "young", "*"), ("24", "[17, 25[", "young", "*")])
    >>> listed_labels(ages, {"[17, 25[": {1}, "young": {2}, "*": {3}}, Column("age", kind=Kind.NUMERIC))
    {'young': ['17', '24']}
    """
    listed = {}
    for label, levels in sorted(used.items()):
        higher = sorted(level for level in levels if level > 0)
        if label == ROOT or not higher:
            continue
        is_member = np.zeros(hierarchy.n_values, dtype=np.bool_)
        for level in higher:
            is_member |= hierarchy.codes[level] == hierarchy.labels[level].index(label)
        if 0 in levels and label in hierarchy.values:
            is_member[hierarchy.values.index(label)] = True
        members = [value for value, member in zip(hierarchy.values, is_member, strict=True) if member]
        if members != [label] and not _tells(label, hierarchy.values, is_member.tolist(), described):
            listed[label] = members
    return listed


def _tells(label: str, values: Sequence[str], is_member: Sequence[bool], described: Column) -> bool:
    test = _test_of(label, described)
    return test is not None and list(test(values)) == list(is_member)


def _test_of(label: str, described: Column) -> Test | None:
    interval = _INTERVAL.fullmatch(label)
    if interval and described.kind is not Kind.CATEGORICAL:
        return _between(interval[1], interval[2], interval[3] == "]", described)
    if _MASK.fullmatch(label):
        begins = label.rstrip("*")
        return lambda values: [len(value) == len(label) and value.startswith(begins) for value in values]
    if described.kind is Kind.DATE and _DATE_PREFIX.fullmatch(label):
        return lambda values: [value.startswith(label) for value in values]
    return None


def _between(low: str, high: str, is_closed: bool, described: Column) -> Test | None:
    ends = _places([low, high], described)
    if ends is None:
        return None

    def test(values: Sequence[str]) -> Sequence[bool]:
        places = _places(values, described)
        if places is None:
            return []
        return ((places >= ends[0]) & ((places <= ends[1]) if is_closed else (places < ends[1]))).tolist()  # type: ignore[no-any-return]

    return test


def _places(values: Sequence[str], described: Column) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    try:
        return positions_of(described, pa.array(list(values), pa.string()))
    except ValueError:
        return None
