"""Mutated files either are tables or are refused in our own words; nothing else is raised and nothing hangs."""

from __future__ import annotations

import gzip
import io
import random
import traceback
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.errors import SfumatoError
from sfumato.schema import Column, Kind, Schema
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table
from sfumato.table.io.formats import STATISTICS
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.io.statistics.write import written_labels
from sfumato.table.io.write import write_table
from sfumato.table.labels import ColumnLabels
from statistics_files import sas_file

CANARY = "CANARY-7f3a"
JUNK_KINDS = ("csv", "tsv", "csv.gz", "parquet", "xlsx", "arff", "svm", "jsonl")
N_MUTANTS = 100  # make soak reads thousands
SNIPPETS = [
    *(
        b",",
        b";",
        b"\t",
        b"|",
        b'"',
        b'""',
        b"'",
        b"\n",
        b"\r\n",
        b"\r",
        b"\n\n",
        b" ",
        b"\0",
        b"\xff",
        b"\xc3",
        b"\xef\xbb\xbf",
    ),
    *(b"{", b"}", b"?", b"%", b"@data\n", b"@attribute x {", b"@relation", b"#", b":", b"1:1", b"0:1", b"qid:1", b"-1"),
    *(b"99999999999999999999", b"1e999", b"nan", b"\\", b"\x1f\x8b", b"PAR1", b"PK\x03\x04", b"\xff\xfe", b"=1+1"),
]


def csv_table() -> Table:
    cells = pa.table(
        {
            "age": [31, 45, None, 31, 70],
            "name": [CANARY, 'a "quoted" one', "two\nlines", "x,y;z", None],
            "day": pa.array([0, 1, 2, None, 4], pa.date32()),
            "share": [0.5, 1.25, None, -3.0, 1e10],
        }
    )
    table = read_table(cells)
    assert isinstance(table, Table)
    return table


def written(format_name: str) -> bytes:
    file = io.BytesIO()
    write_table(csv_table(), file, format_name)
    return file.getvalue()


def seeds() -> dict[str, bytes]:
    arff = (
        "% c\n@relation r\n@attribute 'a b' numeric\n@attribute c {x,'y z'}\n@attribute s string\n@data\n"
        f"1,x,'{CANARY}'\n?,'y z',\"q,r\"\n{{0 3,2 '{CANARY}'}}\n"
    )
    svm = "# c\n+1 1:1 4:1 9:1\n-1 2:1 4:1\n+1 9:1\n"
    return {
        "csv": written("csv"),
        "tsv": written("tsv"),
        "csv.gz": written("csv.gz"),
        "parquet": written("parquet"),
        "xlsx": written("excel"),
        "arff": arff.encode(),
        "svm": svm.encode(),
        "svm.gz": gzip.compress(svm.encode(), mtime=0),
        "any": b"",
        "jsonl": written("jsonl"),
        "sas7bdat": sas_file(5),
        **{name: with_labels(name) for name in ("sav", "zsav", "dta", "xpt")},
    }


def with_labels(format_name: str) -> bytes:
    """Write a file of a statistics package with a codebook."""
    table = csv_table().keep(["age", "name", "day"])
    labels = {
        "age": ColumnLabels(CANARY, ((31.0, "thirty-one"),)),
        "name": ColumnLabels("Name", ((1.0, CANARY), (2.0, "x,y;z")), are_cells=True),
    }
    file = io.BytesIO()
    write_table(table, file, format_name, written_labels(table, format_name, labels))
    return file.getvalue()


def mutated(rng: random.Random, seed: bytes) -> bytes:
    """Return the seed after one to four random changes."""
    data = bytearray(seed)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(data) + 1)
        choice = rng.randrange(7)
        if choice == 0 and data:
            data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
        elif choice == 1:
            del data[at:]
        elif choice == 2:
            del data[at : at + rng.randint(1, 20)]
        elif choice == 3:
            data[at:at] = rng.randbytes(rng.randint(1, 8))
        elif choice == 4:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other : other + rng.randint(1, 40)]
        else:
            data[at:at] = rng.choice(SNIPPETS) * rng.choice([1, 1, 2, 50])
    return bytes(data)


def junk(rng: random.Random) -> bytes:
    """Bytes from nothing: noise, noise behind a known beginning, or a heap of snippets."""
    start = rng.choice(
        [b"", b"PAR1", b"PK\x03\x04", b"\x1f\x8b\x08\x00", b"\xff\xfe", b"@relation r\n", b"1 1:1\n", b"a,b\n"]
    )
    if rng.random() < 0.5:
        return start + rng.randbytes(rng.randrange(300))
    return start + b"".join(rng.choice([*SNIPPETS, b"a", b"b", b"1", b"\n"]) for _ in range(rng.randrange(60)))


def check(path: Path, rng: random.Random) -> bool:
    """Read a file, half of the time in a random way; whether it was a table."""
    schema, options = None, ReadOptions()
    if rng.random() < 0.3:
        schema = Schema.of([Column(name, kind=rng.choice(list(Kind))) for name in ("age", "name", "day", "share")])
    if rng.random() < 0.5:
        options = ReadOptions(
            delimiter=rng.choice([None, None, ",", ";", " "]),
            encoding=rng.choice([None, None, None, "latin-1", "utf-16", "cp1252", "utf-8"]),
            header=rng.random() < 0.8,
            complete_rows_only=rng.random() < 0.2,
        )
    refusal: SfumatoError | None = None
    try:
        table = read_table(path, schema=schema, options=options)
    except SfumatoError as error:
        refusal = error
    if refusal is not None:
        assert "\n" not in str(refusal)
        assert CANARY not in str(refusal) + repr(refusal) + "".join(traceback.format_exception(refusal))
        return False
    assert isinstance(table, Table | BinaryTable)
    write_table(table, io.BytesIO(), "csv")
    return True


@pytest.mark.slow
@pytest.mark.parametrize("suffix", sorted(seeds()))
def test_mutated_files(tmp_path: Path, suffix: str) -> None:
    rng = random.Random(zlib.crc32(suffix.encode()))
    seed = seeds()[suffix]
    n_tables = 0
    n_mutants = N_MUTANTS // 5 if suffix in STATISTICS else N_MUTANTS  # each is parsed in a process
    for number in range(n_mutants):
        data = mutated(rng, seed) if seed else junk(rng)
        kind = suffix if seed else rng.choice([*JUNK_KINDS, "data"])
        if rng.random() < 0.1:
            data, kind = gzip.compress(data, compresslevel=1), kind.removesuffix(".gz") + ".gz"
        path = tmp_path / f"{number}.{kind}"
        path.write_bytes(data)
        n_tables += check(path, rng)
        path.unlink()

    assert n_tables < n_mutants


@pytest.mark.slow
def test_seeds_are_tables(tmp_path: Path) -> None:
    for suffix, data in seeds().items():
        if data:
            path = tmp_path / f"seed.{suffix}"
            path.write_bytes(data)
            assert read_table(path).n_rows in (3, 5)
