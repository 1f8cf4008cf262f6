"""Rows of a query out of core: the same table as in memory, and nothing left behind in any case."""

from __future__ import annotations

import gc
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from sfumato.engines.blocks import query
from sfumato.engines.blocks.rows import open_large
from sfumato.errors import InputError
from sfumato.table.io.read import ReadOptions, read_table

MEMORY = 100_000_000
MIXED = ReadOptions(mixed_as_text=True)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def left(folder: Path) -> list[str]:
    gc.collect()
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "create table t as select i as id, (i % 90) as age, 'j' || (i % 7) as job, "
            "case when i % 5 > 0 then i / 3 end as score, date '2020-01-01' + (i % 50)::integer as day, "
            "(i % 13)::decimal(6, 2) as pay, i % 2 = 0 as flag "
            "from range(200000) r(i)"
        )
    return path


@pytest.mark.slow
def test_it_is_the_same_table_as_in_memory(base: Path, temporary: Path) -> None:
    whole, large = read_table(base), open_large(base, memory=MEMORY, options=ReadOptions(query="from t order by job"))

    assert large.source.sha256 == whole.source.sha256
    assert large.schema == whole.schema
    assert large.n_rows == whole.n_rows
    for name in ("age", "job", "day", "pay", "flag"):
        assert large.outline[name].values.equals(whole[name].values)
        assert large.outline[name].counts.tolist() == whole[name].counts.tolist()
    large.ensure_unchanged()
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    del large
    assert left(temporary) == []


def test_mixed_columns_of_sqlite_are_the_same_too(tmp_path: Path) -> None:
    path = tmp_path / "mixed.db"
    connection = sqlite3.connect(path)
    connection.execute("create table t (a, b)")
    connection.executemany("insert into t values (?, ?)", [(i if i % 3 else f"x{i % 7}", i / 4) for i in range(9000)])
    connection.commit()
    connection.close()

    assert open_large(path, memory=MEMORY, options=MIXED).source.sha256 == read_table(path, options=MIXED).source.sha256


LATE = "select case when i < 150000 then i else error('late') end as a from range(200000) as r(i)"
"""Fails when many rows have been read already."""


@pytest.mark.slow
@pytest.mark.parametrize("sql", ["select nosuch from t", "from t where id < 0", "select [1] as a", LATE])
def test_nothing_is_left_by_a_query_that_fails(base: Path, temporary: Path, sql: str) -> None:
    with pytest.raises(InputError):
        open_large(base, memory=MEMORY, options=ReadOptions(query=sql))

    assert left(temporary) == []


@pytest.mark.slow
@pytest.mark.parametrize("place", ["write_kept", "_sha256"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_nothing_is_left_by_what_interrupts(base, temporary, monkeypatch, place, error) -> None:
    def interrupted(*_: object) -> None:
        raise error

    monkeypatch.setattr(query, place, interrupted)

    with pytest.raises(error):
        open_large(base, memory=MEMORY)

    assert left(temporary) == []


@pytest.mark.slow
def test_a_full_disk_is_said_in_one_line(base: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pa.parquet.ParquetWriter, "write_table", full)

    with pytest.raises(InputError, match="cannot be kept in the temporary folder"):
        open_large(base, memory=MEMORY)

    assert left(temporary) == []


@pytest.mark.slow
def test_the_end_of_the_process_removes_it(base: Path, temporary: Path) -> None:
    program = f"""
import tempfile
tempfile.tempdir = {str(temporary)!r}
from pathlib import Path
from sfumato.engines.blocks.rows import open_large
kept = open_large({str(base)!r}, memory={MEMORY})
assert len(list(Path(tempfile.tempdir).iterdir())) == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True)

    assert left(temporary) == []
