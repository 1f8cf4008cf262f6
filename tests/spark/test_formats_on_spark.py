"""Dates and numbers of many countries on a cluster: read as in memory, or refused in one sentence."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.engines.spark import opening as table_module
from sfumato.engines.spark.opening import open_cluster
from sfumato.errors import InputError
from sfumato.schema import Kind, Reading
from sfumato.table.io.read import ReadOptions, read_table

MEMORY = 200_000_000
CELLS = {
    "when": [f"{day:02}.04.2021" for day in range(1, 25)],
    "paid": [f"{i},5 €" for i in range(24)],
    "visit": [f"{i % 12 + 1:02}/03/2021" for i in range(24)],
}


@pytest.fixture
def session(shared_session, one_cluster):
    one_cluster.make_whole()
    return shared_session.get(one_cluster.url)


@pytest.fixture
def path(tmp_path):
    pq.write_table(pa.table(CELLS), tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def test_listed_values_are_read_as_in_memory(session, path):
    options = ReadOptions(formats=(("visit", "MM/DD/YYYY"),))
    found = open_cluster(session, path, memory=MEMORY, options=options)
    expected = read_table(path, options=options)

    assert list(found.schema) == list(expected.schema)
    for name in CELLS:
        assert found.outline[name].values.to_pylist() == expected[name].values.to_pylist()
    assert found.schema["visit"].reading.is_own


@pytest.mark.parametrize("formats", [(), (("when", "DD.MM.YYYY"), ("paid", "text"), ("visit", "text"))])
def test_values_that_are_not_listed_are_refused_in_a_format(session, path, monkeypatch, formats):
    monkeypatch.setattr(table_module, "_BYTES_A_VALUE", MEMORY // 4)

    with pytest.raises(InputError, match=r"column 'when'.* too many distinct values .* DD\.MM\.YYYY") as caught:
        open_cluster(session, path, memory=MEMORY, options=ReadOptions(formats=formats))
    assert ".04.2021" not in str(caught.value)


def test_values_that_are_not_listed_stay_text_where_that_is_declared(session, path, monkeypatch):
    monkeypatch.setattr(table_module, "_BYTES_A_VALUE", MEMORY // 4)
    found = open_cluster(session, path, memory=MEMORY, options=ReadOptions(formats=tuple((n, "text") for n in CELLS)))

    assert found.schema["when"].kind is Kind.CATEGORICAL
    assert found.schema["when"].reading == Reading("text")
    assert found.schema["when"].reading.is_own
