"""Every byte of a release is accounted for: whatever carries a bit more than the honest file is refused.

Each mutation changes bytes that readers skip and recomputes the hash and the manifest's digest, so that only the check
of bytes can find it. The other half: whatever our own writer writes is written again as the same bytes.
"""

import csv
import gzip
import hashlib
import io
import json
import struct
import zipfile
import zlib
from datetime import date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp
import xlsxwriter
from hypothesis import assume, given
from hypothesis import strategies as st

import sfumato
from manifest_texts import text_of
from sfumato.audit.bytes import parquet, text, workbook
from sfumato.audit.bytes.compared import NotAccountedError
from sfumato.audit.bytes.text import problem_of_text
from sfumato.audit.checks import AuditReport
from sfumato.audit.reading.spelling import Spelling, double_text
from sfumato.engines.memory_limit import Memory
from sfumato.errors import SfumatoError
from sfumato.guarantees import KAnonymity
from sfumato.manifest import draft_manifest, manifest_digest
from sfumato.mechanisms.base import Release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import DEFAULT_MISSING_TOKENS, Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.cells import written_text
from sfumato.table.coding import Table
from sfumato.table.io.excel import rows_of_sheet
from sfumato.table.io.read import read_table
from sfumato.table.io.write import write_table
from sizes import examples

FORMATS = ["csv", "tsv", "csv.gz", "parquet", "xlsx"]
MEMORY = Memory.of("1GB")


class AsItIs:
    """A mechanism for this test: drops one column and promises the k that remains."""

    def release(self, table, *, progress=None):
        kept = table.keep(["region", "note", "age", "y"])
        promised = [KAnonymity(2, ("region",))]
        return Release(
            kept,
            draft_manifest(table, kept, mechanism="mdav", parameters={"k": 2}, guarantees=promised, evidence={}),
        )


def stays():
    rows = [
        {
            "person": f"p{i}",
            "region": ["north", "south", None][i % 3],
            "note": ["plain", "with, delimiter", 'a "quote"', "zürich\ttab", "two\nlines"][i % 5],
            "age": str(7 + i % 4),
            "y": "nj"[i % 2],
        }
        for i in range(60)
    ]
    columns = [
        Column("person", Role.IDENTIFIER),
        Column("region"),
        Column("note", Role.OTHER),
        Column("age", Role.OTHER, Kind.NUMERIC),
        Column("y", Role.TARGET),
    ]
    return Table.from_arrow(pa.Table.from_pylist(rows), Schema.of(columns))


class Published:
    """A release on disk whose bytes can be changed and whose manifest is then made to fit."""

    def __init__(self, folder, suffix):
        self.original = stays()
        self.path = folder / f"out.{suffix}"
        done = publish(sfumato.release(self.original, AsItIs()), self.path, original=self.original)
        self.content = done.table_path.read_bytes()
        self.manifest = json.loads(done.manifest_path.read_text())

    def audited(self, content, manifest=None, *, original=None, memory=None):
        """Audit other bytes in the place of the release, with hash and digest recomputed."""
        data = json.loads(json.dumps(manifest or self.manifest))
        data["output"]["sha256"] = hashlib.sha256(content).hexdigest()
        data["digest"] = manifest_digest(data)
        stated = self.path.with_name("t.json")
        stated.write_text(text_of(data))
        self.path.write_bytes(content)
        try:
            if memory is not None:
                return audit_published(self.path, stated, memory=memory)
            return audit_published(self.path, stated, original=original, check_roles=original is not None)
        except SfumatoError:
            return AuditReport(())  # refused as unreadable
        finally:
            self.path.write_bytes(self.content)

    def is_refused(self, content, **how):
        return self.audited(content, **how).verdict == "refused"


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    return {suffix: Published(tmp_path_factory.mktemp("bytes"), suffix) for suffix in FORMATS}


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_untouched_release_is_accounted_for(releases, suffix):
    """The other half of the claim: the audit does not simply refuse everything."""
    release = releases[suffix]
    report = release.audited(release.content, original=release.original)

    assert report.verdict == "confirmed", report.failures
    assert {"bytes", "spelling"} <= {check.name for check in report.checks}


def unzipped(release):
    return gzip.decompress(release.content)


def zipped(content, **settings):
    out = io.BytesIO()
    with gzip.GzipFile(**{"filename": "", "mtime": 0, **settings}, mode="wb", fileobj=out) as file:
        file.write(content)
    return out.getvalue()


def rows_of(content):
    """Cut a text, in which some cells hold line feeds, into its records."""
    found, held = [], b""
    for line in content.splitlines(keepends=True):
        held += line
        if held.count(b'"') % 2 == 0:
            found.append(held)
            held = b""
    return found


def every_third(change):
    """Change every third row, as if bits were hidden there."""

    def changed(content, delimiter):
        rows = rows_of(content)
        return b"".join(change(row, delimiter) if i and i % 3 == 0 else row for i, row in enumerate(rows))

    changed.__name__ = change.__name__
    return changed


def blank_at_the_end(row, delimiter):
    return row[:-1] + b" \n"


def wide_blank_at_the_end(row, delimiter):
    return row[:-1] + "\N{IDEOGRAPHIC SPACE}\n".encode()


def blank_at_the_start(row, delimiter):
    return b" " + row


def blank_before_a_delimiter(row, delimiter):
    return row.replace(delimiter, b" " + delimiter, 1)


def another_line_end(row, delimiter):
    return row[:-1] + b"\r\n"


def lone_carriage_return(row, delimiter):
    return row[:-1] + b"\r"


def needless_quotes(row, delimiter):
    cells = row[:-1].split(delimiter)
    return delimiter.join([*cells[:-1], b'"' + cells[-1] + b'"']) + b"\n"


def needless_quotes_at_the_start(row, delimiter):
    first, rest = row.split(delimiter, 1)
    return b'"' + first + b'"' + delimiter + rest


def blank_line(row, delimiter):
    return row + b"\n"


def another_token(row, delimiter):
    """Write a missing region, which is nothing, as one of the other tokens."""
    return b"NA" + row if row.startswith(delimiter) else row


def another_spelling_of_a_number(row, delimiter):
    cells = row[:-1].split(delimiter)
    return delimiter.join([*cells[:-2], cells[-2] + b".0", cells[-1]]) + b"\n"


PER_ROW = [
    blank_at_the_end,
    wide_blank_at_the_end,
    blank_at_the_start,
    blank_before_a_delimiter,
    another_line_end,
    lone_carriage_return,
    needless_quotes,
    needless_quotes_at_the_start,
    blank_line,
    another_token,
]


def without_last_line_end(content, delimiter):
    return content[:-1]


def byte_order_mark(content, delimiter):
    return b"\xef\xbb\xbf" + content


def blank_lines_at_the_end(content, delimiter):
    return content + b"\n\n\n"


def blank_line_at_the_start(content, delimiter):
    return b"\n" + content


def quoted_name(content, delimiter):
    return b'"region"' + content.removeprefix(b"region")


def padded_name(content, delimiter):
    return content.replace(b"region", b"region ", 1)


def other_line_ends(content, delimiter):
    return content.replace(b"\n", b"\r\n")


IN_TEXT = [
    *map(every_third, PER_ROW),
    without_last_line_end,
    byte_order_mark,
    blank_lines_at_the_end,
    blank_line_at_the_start,
    quoted_name,
    padded_name,
    other_line_ends,
]


@pytest.mark.parametrize("memory", [None, MEMORY], ids=["in memory", "out of core"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz"])
@pytest.mark.parametrize("mutate", IN_TEXT, ids=lambda mutate: mutate.__name__)
def test_text_with_more_than_its_cells_is_refused(releases, suffix, mutate, memory):
    release = releases[suffix]
    delimiter = b"\t" if suffix == "tsv" else b","
    plain = unzipped(release) if suffix.endswith("gz") else release.content
    changed = mutate(plain, delimiter)
    content = zipped(changed) if suffix.endswith("gz") else changed

    assert changed != plain
    assert release.is_refused(content, memory=memory)


@pytest.mark.parametrize("memory", [None, MEMORY], ids=["in memory", "out of core"])
def test_two_spellings_of_a_number_are_never_simply_confirmed(releases, memory):
    """A recipient without the original is told; with it the release is refused."""
    release = releases["csv"]
    changed = every_third(another_spelling_of_a_number)(release.content, b",")
    report = release.audited(changed, memory=memory)

    assert report.verdict == "confirmed except"
    assert "spelling" in {exception.name for exception in report.unchecked}
    assert release.is_refused(changed, original=release.original)


def second_member(release):
    return release.content + zipped(b"")


def rows_in_a_second_member(release):
    plain = unzipped(release)
    cut = len(plain) - len(rows_of(plain)[-1])
    return zipped(plain[:cut]) + zipped(plain[cut:])


def zeros_behind(release):
    return release.content + bytes(512)


def bytes_behind(release):
    return release.content + b"person 7"


def file_name(release):
    return zipped(unzipped(release), filename="persons-7.csv")


def time_of_writing(release):
    return zipped(unzipped(release), mtime=7)


def another_system(release):
    return release.content[:9] + b"\x07" + release.content[10:]


def comment(release):
    return release.content[:3] + b"\x10" + release.content[4:10] + b"row 7\0" + release.content[10:]


def extra_field(release):
    return release.content[:3] + b"\x04" + release.content[4:10] + b"\x05\0row 7" + release.content[10:]


def another_level(release):
    return zipped(unzipped(release), compresslevel=1)[:8] + b"\x02" + zipped(unzipped(release), compresslevel=1)[9:]


def empty_blocks(release):
    """Put flushes between pieces: where they are carries bits."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    plain = unzipped(release)
    stream = (
        engine.compress(plain[:50]) + engine.flush(zlib.Z_FULL_FLUSH) + engine.compress(plain[50:]) + engine.flush()
    )
    return release.content[:10] + stream + struct.pack("<II", zlib.crc32(plain), len(plain))


def not_compressed(release):
    return unzipped(release)


IN_GZIP = [
    second_member,
    rows_in_a_second_member,
    zeros_behind,
    bytes_behind,
    file_name,
    time_of_writing,
    another_system,
    comment,
    extra_field,
    another_level,
    empty_blocks,
    not_compressed,
]


@pytest.mark.parametrize("memory", [None, MEMORY], ids=["in memory", "out of core"])
@pytest.mark.parametrize("mutate", IN_GZIP, ids=lambda mutate: mutate.__name__)
def test_gzip_with_more_than_its_content_is_refused(releases, mutate, memory):
    release = releases["csv.gz"]

    assert release.is_refused(mutate(release), memory=memory)


def test_gzip_under_another_name_is_refused(releases):
    """Compressed content of a file that is stated to be plain, and a name that does not fit the format."""
    release, compressed = releases["csv"], releases["csv.gz"]
    renamed = json.loads(json.dumps(release.manifest))
    renamed["output"]["name"] = "out.csv.gz"

    assert release.is_refused(compressed.content)
    assert release.is_refused(release.content, manifest=renamed)


def test_a_stream_of_another_zlib_is_an_exception(releases):
    """Whoever has another zlib than the writer cannot make the stream again, and is told so."""
    release = releases["csv.gz"]
    other = json.loads(json.dumps(release.manifest))
    other["versions"]["zlib"] = "1.3.9"
    report = release.audited(another_level(release), manifest=other, original=release.original)

    assert report.verdict == "confirmed except"
    assert [exception.name for exception in report.unchecked] == ["compression"]
    assert not release.audited(release.content, manifest=other, original=release.original).unchecked


def cells_of(release):
    return pyarrow.parquet.read_table(io.BytesIO(release.content))


def parquet_bytes_of(cells, **settings):
    out = io.BytesIO()
    pyarrow.parquet.write_table(cells, out, **{"store_schema": False, "write_page_checksum": True, **settings})
    return out.getvalue()


def key_value_metadata(release):
    return parquet_bytes_of(cells_of(release).replace_schema_metadata({"row": "7"}), store_schema=True)


def arrow_schema_with_more(release):
    cells = cells_of(release)
    fields = [field.with_metadata({"person": "7"}) for field in cells.schema]
    return parquet_bytes_of(pa.table(cells.columns, schema=pa.schema(fields)), store_schema=True)


def columns_that_miss_nothing(release):
    """Each column that has no missing value can say so or not, as its writer likes."""
    cells = cells_of(release)
    fields = [field.with_nullable(i == 0) for i, field in enumerate(cells.schema)]
    return parquet_bytes_of(pa.table(cells.columns, schema=pa.schema(fields)))


def numbered_columns(release):
    cells = cells_of(release)
    fields = [field.with_metadata({"PARQUET:field_id": f"{1000 + i}"}) for i, field in enumerate(cells.schema)]
    return parquet_bytes_of(pa.table(cells.columns, schema=pa.schema(fields)))


def other_row_groups(release):
    return parquet_bytes_of(cells_of(release), row_group_size=17)


def unused_dictionary_entries(release):
    """Write the dictionary of the original, persons included, of which rows use a part."""
    cells = cells_of(release)
    more = pa.array([*cells["region"].unique().drop_null().to_pylist(), "p7", "p8"])
    codes = pa.array(
        [None if v is None else more.to_pylist().index(v) for v in cells["region"].to_pylist()], pa.int32()
    )
    coded = pa.DictionaryArray.from_arrays(codes, more)
    return parquet_bytes_of(cells.set_column(0, "region", coded))


def bytes_between_pages_and_footer(release):
    content = release.content
    length = struct.unpack("<I", content[-8:-4])[0]
    start = len(content) - 8 - length
    return content[:start] + b"person 7" + content[start:]


def bytes_in_the_footer(release):
    content = release.content
    length = struct.unpack("<I", content[-8:-4])[0]
    return content[:-8] + b"row 7" + struct.pack("<I", length + 5) + b"PAR1"


def another_writer_name(release):
    return release.content.replace(b"parquet-cpp-arrow", b"parquet-cpp-7rrow")


def another_compression(release):
    return parquet_bytes_of(cells_of(release), compression="gzip")


def other_pages(release):
    return parquet_bytes_of(cells_of(release), data_page_size=20, write_batch_size=3)


def without_dictionary(release):
    return parquet_bytes_of(cells_of(release), use_dictionary=False)


def without_checksums(release):
    return parquet_bytes_of(cells_of(release), write_page_checksum=False)


def with_page_index(release):
    return parquet_bytes_of(cells_of(release), write_page_index=True)


def sorted_rows_stated(release):
    return parquet_bytes_of(cells_of(release), sorting_columns=[pyarrow.parquet.SortingColumn(0)])


def without_statistics(release):
    return parquet_bytes_of(cells_of(release), write_statistics=False)


def padded_texts(release):
    cells = cells_of(release)
    padded = pa.array([f"{v} " if i % 3 else v for i, v in enumerate(cells["y"].to_pylist())])
    return parquet_bytes_of(cells.set_column(3, "y", padded))


def missing_in_two_ways(release):
    cells = cells_of(release)
    spelled = pa.array(["NA" if v is None and i % 2 else v for i, v in enumerate(cells["region"].to_pylist())])
    return parquet_bytes_of(cells.set_column(0, "region", spelled))


def wrong_statistics(release):
    """Let the largest value of a column be a person's: texts of the same length, wherever they are stated."""
    return release.content.replace(b"south\x18\x05north", b"p7777\x18\x05north")


IN_PARQUET = [
    key_value_metadata,
    arrow_schema_with_more,
    numbered_columns,
    columns_that_miss_nothing,
    other_row_groups,
    unused_dictionary_entries,
    bytes_between_pages_and_footer,
    bytes_in_the_footer,
    another_writer_name,
    another_compression,
    other_pages,
    without_dictionary,
    without_checksums,
    with_page_index,
    sorted_rows_stated,
    without_statistics,
    padded_texts,
    missing_in_two_ways,
    wrong_statistics,
]
ONLY_BY_WRITER = {other_pages, without_dictionary, without_statistics, without_checksums, other_row_groups}
"""What is a writer's choice, and only found where the writer is at hand to make the file again."""


@pytest.mark.parametrize("memory", [None, MEMORY], ids=["in memory", "out of core"])
@pytest.mark.parametrize("mutate", IN_PARQUET, ids=lambda mutate: mutate.__name__)
def test_parquet_with_more_than_its_cells_is_refused(releases, mutate, memory):
    release = releases["parquet"]
    changed = mutate(release)

    assert changed != release.content
    assert release.is_refused(changed, memory=memory)


@pytest.mark.parametrize("mutate", [m for m in IN_PARQUET if m not in ONLY_BY_WRITER], ids=lambda m: m.__name__)
def test_parquet_of_another_writer_is_accounted_for_by_its_content(releases, mutate):
    """Nothing but a writer's own choices is left open where the recorded writer is another one."""
    release = releases["parquet"]
    other = json.loads(json.dumps(release.manifest))
    other["versions"]["pyarrow"] = "7.0.0"

    assert release.is_refused(mutate(release), manifest=other)


@pytest.mark.parametrize("mutate", sorted(ONLY_BY_WRITER, key=lambda m: m.__name__), ids=lambda m: m.__name__)
def test_choices_of_another_writer_are_an_exception(releases, mutate):
    release = releases["parquet"]
    other = json.loads(json.dumps(release.manifest))
    other["versions"]["pyarrow"] = "7.0.0"
    report = release.audited(mutate(release), manifest=other, original=release.original)

    assert report.verdict == "confirmed except", report.failures
    assert [exception.name for exception in report.unchecked] == ["writer"]


def repacked(release, change=lambda name, part: part, **how):
    """Write the parts of a workbook into a new archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(release.content)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            info = zipfile.ZipInfo(entry.filename, how.get("time", (1980, 1, 1, 0, 0, 0)))
            info.external_attr, info.compress_type = entry.external_attr, zipfile.ZIP_DEFLATED
            info.extra, info.comment = how.get("extra", b""), how.get("comment", b"")
            new.writestr(info, change(entry.filename, old.read(entry)), compresslevel=how.get("level"))
        for name, part in how.get("more", {}).items():
            new.writestr(name, part)
        new.comment = how.get("archive_comment", b"")
    return out.getvalue()


def in_part(part_name, old, new):
    def change(release):
        def changed(name, part):
            assert name != part_name or old in part
            return part.replace(old, new, 1) if name == part_name else part

        return repacked(release, changed)

    return change


def cells_of_workbook(content):
    """Cells with their rows and columns, as the reader of workbooks has them."""
    rows = rows_of_sheet(content, None, "")
    return [(i, j, cell) for i, row in enumerate(rows) for j, cell in enumerate(row) if cell != ""]


def workbook_of(cells):
    """Make a workbook of cells with the settings that every released one has."""
    out = io.BytesIO()
    plain = dict.fromkeys(("strings_to_formulas", "strings_to_urls", "strings_to_numbers"), False)
    book = xlsxwriter.Workbook(out, {"in_memory": True, **plain})
    book.set_properties({"created": datetime(2000, 1, 1)})
    sheet = book.add_worksheet("table")
    book.add_format({"num_format": "yyyy-mm-dd"})
    for row, column, value in cells:
        sheet.write(row, column, value)
    book.close()
    return out.getvalue()


def other_cells(change):
    """Make the workbook anew of cells that readers take for the same."""

    def changed(release):
        cells = cells_of_workbook(release.content)
        assert workbook_of(cells) == release.content
        return workbook_of([change(*cell) for cell in cells])

    return changed


def numbers_in_every_third_row(row, column, value):
    return row, column, float(value) if row and row % 3 == 0 and column == 2 else value


SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
IN_WORKBOOK = {
    "archive comment": lambda release: repacked(release, archive_comment=b"row 7"),
    "comment of a part": lambda release: repacked(release, comment=b"row 7"),
    "extra field": lambda release: repacked(release, extra=b"\x07\x07\x01\x00a"),
    "time of a part": lambda release: repacked(release, time=(2020, 1, 1, 0, 0, 0)),
    "another level": lambda release: repacked(release, level=1),
    "one more part": lambda release: repacked(release, more={"xl/comments1.xml": b"<comments/>"}),
    "bytes behind": lambda release: release.content + b"row 7",
    "bytes before": lambda release: b"row 7" + release.content,
    "creator": in_part("docProps/core.xml", b"<dc:creator></dc:creator>", b"<dc:creator>p7</dc:creator>"),
    "company": in_part("docProps/app.xml", b"<Company></Company>", b"<Company>p7</Company>"),
    "time of creation": in_part("docProps/core.xml", b"2000-01-01T00:00:00Z", b"2000-01-01T00:00:07Z"),
    "defined name": in_part(
        "xl/workbook.xml", b"</sheets>", b'</sheets><definedNames><definedName name="p7">1</definedName></definedNames>'
    ),
    "comment in XML": in_part(SHEET, b"<sheetData>", b"<!-- p7 --><sheetData>"),
    "unused text": in_part(STRINGS, b"</sst>", b"<si><t>p7</t></si></sst>"),
    "repeated text": in_part(STRINGS, b"</sst>", b"<si><t>region</t></si></sst>"),
    "a number with zeros": in_part(SHEET, b'<c r="B2"', b'<c  r="B2"'),
    "height of a row": in_part(SHEET, b'<row r="3"', b'<row r="3" ht="15.07"'),
    "hidden row": in_part(SHEET, b'<row r="3"', b'<row r="3" hidden="0"'),
    "style of a cell": in_part(SHEET, b'<c r="B2"', b'<c r="B2" s="0"'),
    "numbers beside texts": other_cells(numbers_in_every_third_row),
    "a blank row": other_cells(lambda row, column, value: (row + (row > 7), column, value)),
    "a blank row above": other_cells(lambda row, column, value: (row + 1, column, value)),
    "padded text": in_part(STRINGS, b"<t>north</t>", b'<t xml:space="preserve">north </t>'),
}


@pytest.mark.parametrize("mutate", IN_WORKBOOK.values(), ids=IN_WORKBOOK)
def test_a_workbook_with_more_than_its_cells_is_refused(releases, mutate):
    release = releases["xlsx"]
    changed = mutate(release)

    assert changed != release.content
    assert release.is_refused(changed)


COMPRESSED_ANEW = {"another level", "a number with zeros"}
"""Workbooks that hold nothing else, in other bytes."""


@pytest.mark.parametrize("name", IN_WORKBOOK)
def test_a_workbook_of_another_writer_is_accounted_for_by_its_content(releases, name):
    release = releases["xlsx"]
    other = json.loads(json.dumps(release.manifest))
    other["versions"]["xlsxwriter"] = "1.0.0"
    report = release.audited(IN_WORKBOOK[name](release), manifest=other, original=release.original)

    if name in COMPRESSED_ANEW:
        assert report.verdict == "confirmed except"
        assert [exception.name for exception in report.unchecked] == ["writer"]
    else:
        assert report.verdict == "refused"


def test_repacking_alone_changes_nothing(releases):
    """The mutations of a workbook are what is refused, not the way in which they are made."""
    assert repacked(releases["xlsx"]) == releases["xlsx"].content


@pytest.fixture(scope="module")
def libsvm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libsvm")
    (folder / "in.svm").write_text("+1 1:1 2:1\n-1 1:1\n+1 1:1 2:1 3:1\n-1 2:1\n-1 1:1 2:1\n+1 1:1\n" * 3)
    original = read_table(folder / "in.svm")
    made = sfumato.release(original, sfumato.GreedyContainmentSelector(k=2, on_infeasible="skip"))
    release = Published.__new__(Published)
    release.original, release.path = original, folder / "out.svm"
    done = publish(made, release.path, original=original)
    release.content, release.manifest = done.table_path.read_bytes(), json.loads(done.manifest_path.read_text())
    return release


IN_LIBSVM = {
    "comment": lambda content: content.replace(b"\n", b" # row 7\n", 1),
    "blank at the end": lambda content: content.replace(b"\n", b" \n", 1),
    "two blanks": lambda content: content.replace(b" ", b"  ", 1),
    "another spelling of the label": lambda content: content.replace(b"-1 ", b"-1.0 ", 1),
    "sign of the label": lambda content: b"+" + content,
    "a zero": lambda content: content.replace(b"-1 1:1\n", b"-1 1:1 2:0\n", 1),
    "another spelling of a one": lambda content: content.replace(b"1:1\n", b"1:1.0\n", 1),
    "leading zero": lambda content: content.replace(b" 1:", b" 01:", 1),
    "query": lambda content: content.replace(b"-1 ", b"-1 qid:7 ", 1),
    "line end": lambda content: content.replace(b"\n", b"\r\n", 1),
    "blank line": lambda content: content + b"\n",
    "no line end": lambda content: content[:-1],
}


def test_an_untouched_libsvm_release_is_accounted_for(libsvm):
    report = libsvm.audited(libsvm.content, original=libsvm.original)

    assert report.passed, report.failures
    assert {exception.name for exception in report.unchecked} <= {"figures", "roles"}


@pytest.mark.parametrize("mutate", IN_LIBSVM.values(), ids=IN_LIBSVM)
def test_libsvm_text_with_more_than_its_cells_is_refused(libsvm, mutate):
    changed = mutate(libsvm.content)

    assert changed != libsvm.content
    assert libsvm.is_refused(changed)


texts = st.text(st.sampled_from("abä\N{CJK UNIFIED IDEOGRAPH-4E00},;\t|\"'\r\n .=7NA?-"), max_size=6)
numbers = st.floats(allow_nan=False) | st.integers(-(10**6), 10**6).map(float)


@st.composite
def tables(draw):
    """Tables of one to four columns of texts, numbers, truth values and dates, with missing values."""
    n_rows = draw(st.integers(1, 8))
    cells, columns = {}, []
    names = draw(st.lists(texts.map(str.strip).filter(bool), min_size=1, max_size=4, unique=True))
    for name in names:
        kind, values = draw(
            st.sampled_from(
                [
                    (pa.string(), texts.map(str.strip)),
                    (pa.float64(), numbers.map(lambda x: x + 0.0)),
                    (pa.int64(), st.integers(-(2**53), 2**53)),
                    (pa.bool_(), st.booleans()),
                    (pa.date32(), st.dates(date(1900, 3, 1), date(2100, 1, 1))),
                ]
            )
        )
        cells[name] = pa.array(draw(st.lists(st.none() | values, min_size=n_rows, max_size=n_rows)), kind)
        columns.append(Column(name, missing=draw(st.sampled_from([None, (), ("?",), ("NA", "")]))))
    return read_table(pa.table(cells), schema=Schema.of(columns, DEFAULT_MISSING_TOKENS))


def written(table, format_name):
    out = io.BytesIO()
    write_table(table, out, format_name)
    return out.getvalue()


def tokens_of(table):
    return {name: table.schema.missing_tokens(name) for name in table.columns}


def problem_of(content, format_name, tokens, features=()):
    """Say what is wrong with a text, given as bytes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{format_name}"
        path.write_bytes(content)
        return problem_of_text(path, format_name, tokens, features)[0]


@examples(300)
@given(tables(), st.sampled_from(["csv", "tsv", "csv.gz"]), st.integers(1, 40))
def test_what_the_writer_writes_is_canonical_text(table, format_name, n_bytes):
    """Also when it is written again in blocks of any size."""
    with patch.object(text, "BLOCK_BYTES", n_bytes):
        assert problem_of(written(table, format_name), format_name, tokens_of(table)) == ""


@examples(300)
@given(tables(), st.sampled_from(["csv", "tsv"]))
def test_whoever_knows_the_cells_can_write_down_every_byte(table, format_name):
    """The rules of docs/canonical-form.md in plain Python."""
    delimiter = {"csv": ",", "tsv": "\t"}[format_name]

    def cell(text, special):
        is_quoted = any(c in text for c in f'"\r\n{special}') or (not text and len(table.columns) == 1)
        return '"' + text.replace('"', '""') + '"' if is_quoted else text

    columns = []
    for name, tokens in tokens_of(table).items():
        missing = "" if "" in tokens or not tokens else tokens[0]
        texts = written_text(table[name].cells()).to_pylist()
        columns.append([cell(missing if own is None else own, delimiter) for own in texts])
    header = [cell(name, ",;\t|") for name in table.columns]
    rows = [delimiter.join(row) + "\n" for row in [header, *zip(*columns, strict=True)]]

    assert written(table, format_name) == "".join(rows).encode()


@examples(300)
@given(tables(), st.data())
def test_no_other_bytes_are_canonical_text_of_the_same_cells(table, data):
    """Whatever one byte is put in, taken out or changed: the text is refused or holds other cells."""
    content = written(table, "csv")
    place = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.sampled_from(b' ,"\n\r\ta7.0?\xc2\xa0'))
    how = data.draw(st.sampled_from(["put in", "taken out", "changed"]))
    new = b"" if how == "taken out" else bytes([byte])
    changed = content[:place] + new + content[place + (how != "put in") :]
    if changed == content or problem_of(changed, "csv", tokens_of(table)):
        return

    assert parsed(changed) != parsed(content)


def parsed(content):
    """Cells by the plainest reader there is."""
    return list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))


@given(numbers)
def test_doubles_are_spelled_as_arrow_spells_them(number):
    spelled = pa.array([number + 0.0]).cast(pa.string())[0].as_py()

    assert double_text(number + 0.0) == spelled


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["0", ".0", "e0", "+", "00", " "]))
def test_a_double_has_one_spelling(number, more):
    text = double_text(number + 0.0)
    for other in (text + more, more + text):
        spelling = Spelling(("shortest decimals",))
        spelling.take(pa.array([other]))
        try:
            same = float(other) == number
        except ValueError:
            same = False

        assert not (same and spelling.is_one_form)


@examples(100)
@given(tables())
def test_what_the_writer_writes_is_made_again_as_parquet(table):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        path.write_bytes(written(table, "parquet"))

        assert parquet.written_again(path, tokens_of(table))[0]
        parquet.check_content(path)


@examples(100)
@given(tables())
def test_what_the_writer_writes_is_made_again_as_a_workbook(table):
    try:
        content = written(table, "excel")
    except SfumatoError:
        return  # infinite numbers do not fit
    largest = [abs(v) for c in table.columns.values() for v in c.values.to_pylist() if isinstance(v, float)]
    assume(max(largest, default=0) < 1e300)  # sixteen digits of what is larger may be infinite
    # A workbook has no empty text: it comes back as missing, which the comparison of cells refuses.
    assume(not any("" in c.values.to_pylist() for c in table.columns.values()))

    assert workbook.written_again(content, tokens_of(table)) == content
    workbook.check_content(content, content)


@examples(100)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**20), st.booleans())
def test_what_the_writer_writes_is_canonical_libsvm_text(n_rows, n_features, bits, are_numbered):
    ones = np.array([(bits >> i) & 1 for i in range(n_rows * n_features)], dtype=np.uint8).reshape(n_rows, n_features)
    names = [f"f{3 * i}" if are_numbered else f"name {i}" for i in range(n_features)]
    labels = Table.from_arrow(
        pa.table({"y": ["1", "-1"][:n_rows] * n_rows}).slice(0, n_rows), Schema.of([Column("y", Role.TARGET)])
    )
    table = BinaryTable(sp.csc_matrix(ones), tuple(Feature(name, name) for name in names), labels)

    assert problem_of(written(table, "libsvm"), "libsvm", {}, names) == ""


@examples(60)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**60))
def test_zeros_and_ones_are_canonical_text(n_rows, n_features, bits):
    ones = np.array([(bits >> i) & 1 for i in range(n_rows * n_features)], dtype=np.uint8).reshape(n_rows, n_features)
    nothing = Table(Schema.of([]), {}, n_rows)
    table = BinaryTable(sp.csc_matrix(ones), tuple(Feature(f"x{i}", f"x{i}") for i in range(n_features)), nothing)

    assert problem_of(written(table, "csv"), "csv", dict.fromkeys(table.feature_names, DEFAULT_MISSING_TOKENS)) == ""


def test_wide_tables_and_long_rows_are_judged():
    """Thousands of columns, and a row that is longer than a block."""
    names = [f"x{i}" for i in range(3000)]
    header = ",".join(names).encode() + b"\n"
    row = b",".join(b"%d" % (i % 2) for i in range(3000)) + b"\n"
    wide = dict.fromkeys(names, ())
    long = b'a,b\n"x' + b"\n" * 6 * 10**6 + b'y",1\n'

    assert problem_of(header + row * 5, "csv", wide) == ""
    assert problem_of(header + row * 2 + row[:-3] + b"\n", "csv", wide) != ""
    assert problem_of(long, "csv", {"a": (), "b": ()}) == ""
    assert problem_of(long[:-1] + b" \n", "csv", {"a": (), "b": ()}) != ""


@pytest.mark.parametrize(("tokens", "spelled"), [(("?", ""), ""), (("NA", "?"), "NA"), ((), "")])
def test_a_missing_value_has_one_spelling(tokens, spelled):
    for cell in ("", "?", "NA"):
        found = problem_of(f"a,b\n{cell},1\n".encode(), "csv", {"a": tokens, "b": ()})

        assert (found == "") is (cell == spelled or cell not in tokens)


def refused_or_writer(path):
    """Whether a damaged file is refused; else nothing but its bytes may be others."""
    try:
        assert not parquet.written_again(path, {})[0]
        parquet.check_content(path)
    except NotAccountedError:
        return True
    return False


def test_a_damaged_parquet_file_is_never_made_again(tmp_path, releases):
    """Whatever byte is changed: an answer, not a crash, and never that all bytes are the same."""
    content = releases["parquet"].content
    path = tmp_path / "t.parquet"
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x15]) + content[place + 1 :])
        refused_or_writer(path)
