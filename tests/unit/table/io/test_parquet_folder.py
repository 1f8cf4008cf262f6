"""Folders of Parquet files: which files belong to the table, and one hash for all of them."""

import hashlib
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.engines.blocks.rows import open_large
from sfumato.errors import InputError
from sfumato.table.coding import Source
from sfumato.table.io.parquet import StoredParquet, folder_sha256, part_files, refuse_more_than_parts
from sfumato.table.io.read import read_table

CELLS = pa.table({"age": [30, 41], "town": ["Ulm", None]})


@pytest.fixture
def folder(tmp_path):
    """Write two part files beside what a cluster leaves."""
    path = tmp_path / "release.parquet"
    path.mkdir()
    pyarrow.parquet.write_table(CELLS, path / "part-00001.parquet")
    pyarrow.parquet.write_table(CELLS.slice(1), path / "part-00000.parquet")
    for name in ("_SUCCESS", ".part-00000.parquet.crc"):
        (path / name).write_bytes(b"")
    return path


def test_hidden_files_are_no_part(folder):
    assert [path.name for path in part_files(folder)] == ["part-00000.parquet", "part-00001.parquet"]


@pytest.mark.parametrize("name", [".a=b.parquet", "_a=b.parquet", "_more/a.parquet"])
def test_an_equals_sign_makes_no_hidden_file_a_part(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(CELLS, folder / name)
    assert [path.name for path in part_files(folder)] == ["part-00000.parquet", "part-00001.parquet"]


@pytest.mark.parametrize("name", ["more/a.parquet", "town=Ulm/a.parquet", "a.parquet._COPYING_"])
@pytest.mark.parametrize("read", [StoredParquet.of, read_table, lambda path: open_large(path, memory=10**9)])
def test_what_clusters_read_otherwise_is_refused(folder, name, read):
    """Spark takes names of folders for columns and leaves some files out; others do not."""
    (folder / name).parent.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(CELLS, folder / name)
    with pytest.raises(InputError, match=r"holds a (folder|file)"):
        read(folder)


def test_what_is_no_file_is_refused(folder):
    (folder / "part-00002.parquet").symlink_to(folder / "nowhere")
    with pytest.raises(InputError, match="is not a file"):
        part_files(folder)


def test_rows_are_counted_by_the_footers(folder):
    assert StoredParquet.of(folder).n_rows() == 3
    assert StoredParquet.of(folder / "part-00001.parquet").n_rows() == 2


@pytest.mark.parametrize(
    ("name", "n_bytes"),
    [
        ("_metadata", 0),
        ("_raw.parquet", 9),
        ("_SUCCESS", 1),
        (".part-00000.parquet.crc", 5000),
        ("._SUCCESS.crc", 9),
        (".other.crc", 8),
    ],
)
def test_a_released_folder_with_more_than_its_parts_is_refused(folder, name, n_bytes):
    refuse_more_than_parts(folder)
    refuse_more_than_parts(folder / "part-00000.parquet")
    (folder / name).write_bytes(bytes(n_bytes))
    with pytest.raises(InputError, match="more than its part files"):
        refuse_more_than_parts(folder)


def test_a_hidden_folder_in_a_released_one_is_refused(folder):
    (folder / ".git").mkdir()
    with pytest.raises(InputError, match="more than its part files"):
        refuse_more_than_parts(folder)


@pytest.mark.slow
def test_the_hash_is_over_names_and_hashes(folder):
    lines = [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in ("part-00000.parquet", "part-00001.parquet")
    ]
    assert folder_sha256(folder) == hashlib.sha256("".join(lines).encode()).hexdigest()
    shown = subprocess.run("sha256sum part-* | sha256sum", shell=True, cwd=folder, capture_output=True, check=True)
    assert shown.stdout.decode().split()[0] == folder_sha256(folder)


def test_a_file_has_its_own_hash(folder):
    path = folder / "part-00000.parquet"
    assert StoredParquet.of(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_changed_a_renamed_and_a_new_file_are_noticed(folder):
    for change in (
        lambda: (folder / "part-00000.parquet").write_bytes(b"x"),
        lambda: (folder / "part-00000.parquet").rename(folder / "part-00002.parquet"),
        lambda: (folder / "part-00003.parquet").write_bytes(b"x"),
    ):
        stored = StoredParquet.of(folder)
        stored.ensure_unchanged()
        change()
        with pytest.raises(InputError, match="changed while it was being read"):
            stored.ensure_unchanged()


@pytest.mark.parametrize(
    "other",
    [
        CELLS.select(["age"]),
        CELLS.rename_columns(["age", "city"]),
        CELLS.cast(pa.schema({"age": pa.int8(), "town": pa.string()})),
    ],
)
def test_files_with_other_columns_are_refused(folder, other):
    """A cluster would read what a file lacks as missing."""
    StoredParquet.of(folder).check_columns()
    pyarrow.parquet.write_table(other, folder / "part-00002.parquet")
    with pytest.raises(InputError, match="do not have the same columns"):
        StoredParquet.of(folder).check_columns()


def test_what_is_no_table_is_refused_in_words(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="folder without Parquet files"):
        StoredParquet.of(tmp_path / "empty")
    with pytest.raises(InputError, match="does not exist"):
        StoredParquet.of(tmp_path / "nothing")
    (folder / "part-00000.parquet").write_bytes(b"no Parquet")
    with pytest.raises(InputError, match="cannot be read as a Parquet file"):
        StoredParquet.of(folder).check_columns()


@pytest.mark.parametrize("is_large", [False, True])
def test_a_folder_is_read_as_one_table(folder, is_large):
    """Files in the order of their names, empty ones too; hidden ones left out."""
    pyarrow.parquet.write_table(CELLS.slice(0, 0), folder / "part-00002.parquet")
    if is_large:
        large = open_large(folder, memory=10**9)
        (block,) = [{n: large.outline[n].values.take(pa.array(c)) for n, c in b.items()} for b in two_blocks(large)]
        cells, source = pa.table(block), large.source
    else:
        table = read_table(folder)
        cells, source = table.to_arrow(), table.source

    assert cells.to_pylist() == pa.concat_tables([CELLS.slice(1), CELLS]).to_pylist()
    assert source == Source(str(folder), folder_sha256(folder), "parquet")


def two_blocks(large):
    """Rows of both files, joined."""
    blocks = list(large.blocks(["age", "town"]))
    assert len(blocks) == 2
    return [{name: np.concatenate([block[name] for block in blocks]) for name in ("age", "town")}]


@pytest.mark.parametrize("read", [read_table, lambda path: open_large(path, memory=10**9)])
def test_a_folder_without_rows_is_refused(tmp_path, read):
    (tmp_path / "a.parquet").mkdir()
    pyarrow.parquet.write_table(CELLS.slice(0, 0), tmp_path / "a.parquet" / "1.parquet")
    with pytest.raises(InputError, match="holds no data rows"):
        read(tmp_path / "a.parquet")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(InputError, match="is a folder, not a file"):
        read(tmp_path / "b.csv")
