"""Limits that a Parquet file states: both in the newer fields, and then both or none in the older ones."""

import itertools

import pyarrow as pa
import pytest

from sfumato.audit.bytes import parquet

OLD_MAX, OLD_MIN, MAX, MIN = 1, 2, 5, 6
STATED = {OLD_MAX: b"c", OLD_MIN: b"a", MAX: b"c", MIN: b"a"}
ALLOWED = {frozenset(), frozenset({MAX, MIN}), frozenset(STATED)}
SUBSETS = [subset for n in range(len(STATED) + 1) for subset in itertools.combinations(STATED, n)]


@pytest.fixture
def check(monkeypatch):
    column = object.__new__(parquet._Column)
    column._name = "region"
    monkeypatch.setattr(parquet._Column, "_limits", lambda self, rows: ((b"a",), (b"c",)))
    return lambda stated: column._check_statistics(stated, pa.array(["a", "c"]))


@pytest.mark.parametrize("fields", SUBSETS, ids=str)
def test_limits_are_stated_in_pairs(check, fields):
    stated = {field: STATED[field] for field in fields}
    if frozenset(fields) in ALLOWED:
        check(stated)
    else:
        with pytest.raises(parquet.NotAccountedError, match="statistics"):
            check(stated)


@pytest.mark.parametrize("field", STATED)
def test_every_limit_is_that_of_the_values(check, field):
    with pytest.raises(parquet.NotAccountedError, match="statistics"):
        check(STATED | {field: b"b"})
