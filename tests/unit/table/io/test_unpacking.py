"""A small file that unpacks to more than the machine can take is refused before it has: counted, not timed."""

import gzip
import os
import struct
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.cli.main import run
from sfumato.engines.blocks.rows import open_large
from sfumato.errors import InputError, InvalidParameterError
from sfumato.mechanisms.hierarchies.files import read_hierarchy
from sfumato.table.io import bytes as stored_bytes
from sfumato.table.io import bytes as unpacking
from sfumato.table.io import excel as spreadsheet
from sfumato.table.io.parquet import StoredParquet
from sfumato.table.io.read import read_table
from sfumato.web.jobs.process import Tell
from sfumato.web.tasks.opening import open_path

MB = 1 << 20
FREE = 400 * MB  # so 200 MB may be read at once, and up to 100 MB no ratio is refused
ROWS = b"0,1,0,1\n" * (100 * MB // 8)


@pytest.fixture(autouse=True)
def _small_machine(monkeypatch):
    monkeypatch.setattr(unpacking, "available_memory", lambda: FREE)
    monkeypatch.delenv(unpacking.SETTING, raising=False)


@pytest.fixture(scope="module")
def member():
    """100 MB of ones and zeros, packed."""
    return gzip.compress(ROWS, 9)


@pytest.fixture
def inflated(monkeypatch):
    """Count the bytes that come out of gzip."""
    counted, inflate = [0], stored_bytes._inflated

    def counting(engine, data):
        for piece in inflate(engine, data):
            counted[0] += len(piece)
            yield piece

    monkeypatch.setattr(stored_bytes, "_inflated", counting)
    return counted


def write_gzip(path, member, n_members):
    path.write_bytes(gzip.compress(b"a,b,c,d\n") + member * n_members)
    return path


@pytest.mark.slow
def test_ten_gigabytes_in_ten_megabytes_are_refused_after_two_hundred(tmp_path, member, inflated):
    bomb = write_gzip(tmp_path / "bomb.csv.gz", member, 100)
    assert bomb.stat().st_size < 20 * MB

    with pytest.raises(InputError, match=r"unpacks to more than 209,715,200 bytes, more than may be read at once"):
        read_table(bomb)

    assert inflated[0] <= FREE // 2 + 2 * MB


@pytest.mark.slow
def test_in_blocks_what_unpacks_to_hundreds_of_times_its_size_is_refused(tmp_path, member, inflated):
    """There memory is no limit: the ratio is, beyond what fits comfortably."""
    bomb = write_gzip(tmp_path / "bomb.csv.gz", member, 10)
    most = max(FREE // 4, 200 * bomb.stat().st_size)

    with pytest.raises(InputError, match=f"unpacks to more than {most:,} bytes, more than 200 times its own size"):
        open_large(bomb, memory=10**9)

    assert inflated[0] <= most + 2 * MB


@pytest.mark.slow
def test_what_fits_comfortably_is_read_whatever_its_ratio(tmp_path, member):
    """A constant table of a million rows shrinks a thousandfold."""
    path = write_gzip(tmp_path / "constant.csv.gz", gzip.compress(ROWS[: 8 * MB], 9), 1)
    assert path.stat().st_size * 500 < 8 * MB

    assert read_table(path).n_rows == MB
    assert open_large(path, memory=10**9).n_rows == MB


@pytest.mark.slow
def test_a_ratio_is_of_the_whole_file_not_of_its_beginning(tmp_path, member):
    """A part that shrinks a thousandfold, before one that does not shrink at all, makes no trap of a file."""
    noise = np.random.default_rng(1).bytes(2 * MB).hex().encode()
    lines = b"\n".join(noise[i : i + 60] + b",0,0,0" for i in range(0, len(noise), 60)) + b"\n"
    limit = unpacking.UnpackingLimit.of(len(member) + len(gzip.compress(lines)), in_blocks=True)

    limit.check(len(ROWS) + len(lines), "file", n_read=len(member))


def test_the_setting_allows_more_and_less(tmp_path, member, monkeypatch):
    path = write_gzip(tmp_path / "t.csv.gz", gzip.compress(ROWS[: 4 * MB], 9), 1)

    monkeypatch.setenv(unpacking.SETTING, str(1 * MB))
    with pytest.raises(InputError, match=f"set {unpacking.SETTING} to the number of bytes that it may take"):
        read_table(path)
    monkeypatch.setattr(unpacking, "available_memory", lambda: 1000)
    monkeypatch.setenv(unpacking.SETTING, str(5 * MB))
    assert read_table(path).n_rows == MB // 2
    monkeypatch.setenv(unpacking.SETTING, "much")
    with pytest.raises(InvalidParameterError, match="a number of bytes"):
        read_table(path)


def test_a_file_that_is_not_packed_has_no_such_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "available_memory", lambda: 1000)
    (tmp_path / "t.csv").write_bytes(b"a,b,c,d\n" + ROWS[:MB])

    assert read_table(tmp_path / "t.csv").n_rows == MB // 8


def deflated_zeros(n_hundred_megabytes):
    """Deflate many zeros without deflating them all: whole blocks can be repeated."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = engine.compress(bytes(100 * MB)) + engine.flush(zlib.Z_FULL_FLUSH)
    return block * n_hundred_megabytes + engine.flush()


def write_workbook(path, sheet, stated):
    """Write a zip archive with one member, a sheet, that is stated to have so many bytes."""
    name, packed = b"xl/worksheets/sheet1.xml", len(sheet)
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0, 8, 0, 33, 0, packed, min(stated, 2**32 - 1), len(name), 0)
    extra = struct.pack("<HHQ", 1, 8, stated) if stated >= 2**32 - 1 else b""
    entry = struct.pack(
        "<4sHHHHHHIIIHHHHHII",
        *(b"PK\1\2", 45, 45, 0, 8, 0, 33, 0, packed, min(stated, 2**32 - 1), len(name), len(extra), 0, 0, 0, 0, 0),
    )
    start = len(local) + len(name) + packed
    size = len(entry) + len(name) + len(extra)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, size, start, 0)
    path.write_bytes(local + name + sheet + entry + name + extra + end)
    return path


@pytest.fixture
def unpacked_of_workbook(monkeypatch):
    """Count the bytes that members unpack to, and let no parser be started."""
    counted, take = [0], spreadsheet._Unpacked.take

    def counting(self, chunk):
        counted[0] += len(chunk)
        take(self, chunk)

    monkeypatch.setattr(spreadsheet._Unpacked, "take", counting)
    monkeypatch.setattr(spreadsheet, "rows_of_sheet", lambda *_: pytest.fail("the parser was started"))
    return counted


@pytest.mark.slow
@pytest.mark.parametrize(("stated", "most"), [(100 * 100 * MB, 0), (1000, FREE // 2)], ids=["honest", "lying"])
def test_a_workbook_of_ten_gigabytes_of_zeros_is_refused(tmp_path, unpacked_of_workbook, stated, most):
    """By what it says of itself, and else by what comes out."""
    bomb = write_workbook(tmp_path / "bomb.xlsx", deflated_zeros(100), stated)
    assert bomb.stat().st_size < 20 * MB

    with pytest.raises(InputError, match=r"unpacks to more than 209,715,200 bytes.*save the table alone, as CSV"):
        read_table(bomb)

    assert unpacked_of_workbook[0] <= most + 2 * MB


def claim(path, n_rows, n_millions):
    """Write the end of a Parquet file that claims millions of rows more, and nothing before it."""
    column = pa.array(np.zeros(n_rows, dtype=np.int64))
    pyarrow.parquet.write_table(pa.table({"a": column, "b": column}), path)
    metadata = pyarrow.parquet.read_metadata(path)
    while metadata.num_rows < n_millions * 10**6:
        metadata.append_row_groups(pyarrow.parquet.read_metadata(path))
        metadata.write_metadata_file(path)
    return path


@pytest.fixture
def no_rows_are_read(monkeypatch):
    for name in ("read", "iter_batches", "read_row_group"):
        monkeypatch.setattr(pyarrow.parquet.ParquetFile, name, lambda *_, **__: pytest.fail("rows were read"))


WAYS = {
    "at once": lambda folder, part: read_table(part),
    "in blocks": lambda folder, part: open_large(part, memory=10**9),
    "folder at once": lambda folder, part: read_table(folder),
    "folder in blocks": lambda folder, part: open_large(folder, memory=10**9),
    "by a cluster": lambda folder, part: StoredParquet.of(folder).check_unpacking(in_blocks=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_parquet_file_that_claims_billions_of_rows_is_refused(tmp_path, no_rows_are_read, way):
    folder = tmp_path / "bomb.parquet"
    folder.mkdir()
    part = claim(folder / "part.parquet", 10**6, 4000)
    assert part.stat().st_size < 2 * MB
    assert pyarrow.parquet.read_metadata(part).num_rows > 4 * 10**9

    with pytest.raises(InputError, match=r"unpacks to more than [0-9,]+ bytes, more than"):
        WAYS[way](folder, part)


def test_a_repetitive_parquet_file_that_fits_is_read(tmp_path):
    column = pa.array(np.zeros(10**6, dtype=np.int64))
    pyarrow.parquet.write_table(pa.table({"a": column, "b": column}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size * 1000 < 16 * 10**6

    assert read_table(tmp_path / "t.parquet").n_rows == 10**6
    assert open_large(tmp_path / "t.parquet", memory=10**9).n_rows == 10**6


DOORS = {
    "init": ["init", "{bomb}", "--target", "a", "-o", "{folder}/new.toml"],
    "release": ["release", "{bomb}", "--target", "a", "-o", "{folder}/r.csv"],
    "release in blocks": ["release", "{bomb}", "--memory", "1GB", "-m", "global-recoding", "-o", "{folder}/r.csv"],
    "audit a table": ["audit", "{bomb}"],
    "audit in blocks": ["audit", "{bomb}", "--memory", "1GB"],
    "compare": ["compare", "{bomb}", "--target", "a"],
    "attack": ["attack", "{bomb}", "{bomb}"],
    "collaborate": ["collaborate", "simulate", "{bomb}", "--target", "a"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gzip", "workbook", "parquet"])
@pytest.mark.parametrize("door", DOORS)
def test_every_command_that_reads_a_table_refuses_it(tmp_path, capsys, monkeypatch, member, door, kind):
    if kind == "workbook" and "blocks" in door:
        pytest.skip("workbooks are not read in blocks")
    monkeypatch.setattr(unpacking, "available_memory", lambda: 40 * MB)
    if kind == "gzip":
        bomb = write_gzip(tmp_path / "bomb.csv.gz", member, 1)
    elif kind == "workbook":
        bomb = write_workbook(tmp_path / "bomb.xlsx", deflated_zeros(1), 1000)
    else:
        bomb = claim(tmp_path / "bomb.parquet", 10**6, 100)
    before = os.listdir(tmp_path)

    code = run([argument.format(bomb=bomb, folder=tmp_path) for argument in DOORS[door]])

    assert (code, "unpacks to more than" in capsys.readouterr().err) == (3, True)
    assert os.listdir(tmp_path) == before


def test_a_hierarchy_file_is_refused_too(tmp_path, monkeypatch, member):
    monkeypatch.setattr(unpacking, "available_memory", lambda: 40 * MB)

    with pytest.raises(InputError, match="unpacks to more than"):
        read_hierarchy(write_gzip(tmp_path / "h.csv.gz", member, 1))


def test_an_upload_of_the_page_is_refused_when_it_is_opened(tmp_path, monkeypatch, member):
    monkeypatch.setattr(unpacking, "available_memory", lambda: 40 * MB)
    write_gzip(tmp_path / "u.csv.gz", member, 1)

    with pytest.raises(InputError, match="unpacks to more than"):
        open_path(tmp_path, Tell(lambda _: None), data=str(tmp_path / "u.csv.gz"), project=str(tmp_path / "p.toml"))


def test_copies_of_files_do_not_count_as_used_memory_of_a_control_group(tmp_path, monkeypatch):
    """In a container they fill all that is left, and are given back at once."""
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("990\n")
    (tmp_path / "memory.stat").write_text("anon 100\nfile 890\ninactive_file 600\n")
    monkeypatch.setattr(unpacking, "_CONTROL_GROUPS", ((tmp_path, "memory.max", "memory.current"),))
    assert unpacking._of_control_group() == 610

    (tmp_path / "memory.max").write_text("max\n")
    assert unpacking._of_control_group() > 1 << 50


def test_some_is_always_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "available_memory", lambda: 1000)
    path = write_gzip(tmp_path / "t.csv.gz", gzip.compress(ROWS[: 4 * MB], 9), 1)

    assert read_table(path).n_rows == MB // 2


def test_memory_is_what_is_free_for_this_process():
    assert 0 < unpacking._of_machine() < 1 << 50
    assert unpacking._of_control_group() > 0
    assert unpacking._of_address_space() > 0
