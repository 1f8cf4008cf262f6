"""Files of SPSS, Stata and SAS: what their codebook says is understood, kept, and written back for what is there."""

from __future__ import annotations

import datetime
import gzip
import importlib.util
import io
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.cli.main import run
from sfumato.engines.blocks.rows import open_large
from sfumato.errors import InputError, InvalidParameterError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.io.formats import writable_format_of
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.io.statistics import read as reading
from sfumato.table.io.statistics.write import written_labels
from sfumato.table.io.write import write_table
from sfumato.table.labels import ColumnLabels
from sizes import examples
from statistics_files import CANARY, sas_file, survey, write_survey

SUFFIXES = (".sav", ".zsav", ".dta", ".xpt")
WITH_LABELS = (".sav", ".zsav", ".dta")

pytestmark = pytest.mark.slow  # each file is parsed in a process


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("surveys")
    return {suffix: write_survey(folder / f"survey{suffix}") for suffix in SUFFIXES}


def table_of(path: Path, **options: object) -> Table:
    table = read_table(path, options=ReadOptions(**options))  # type: ignore[arg-type]
    assert isinstance(table, Table)
    return table


def cells(table: Table, name: str) -> list[object]:
    return list(table[name].cells().to_pylist())


@pytest.mark.parametrize("suffix", WITH_LABELS)
def test_a_labelled_column_is_read_as_its_labels(files: dict[str, Path], suffix: str) -> None:
    table, frame = table_of(files[suffix]), survey()

    assert cells(table, "sex") == [{1: "male", 2: "female"}[code] for code in frame["sex"]]
    assert cells(table, "ill") == [{0: "no", 1: "yes"}[code] for code in frame["ill"]]
    assert table.source is not None
    assert table.source.labels["sex"].label == "Sex of the person"
    assert table.source.labels["sex"].values[:2] == ((1.0, "male"), (2.0, "female"))


@pytest.mark.parametrize("suffix", WITH_LABELS)
def test_a_scale_with_named_ends_stays_numbers_and_keeps_its_labels(files: dict[str, Path], suffix: str) -> None:
    table = table_of(files[suffix])

    assert cells(table, "sat") == survey()["sat"].tolist()
    assert table.schema["sat"].kind is Kind.NUMERIC
    assert table.source is not None
    assert table.source.labels["sat"] == ColumnLabels("Satisfaction", ((0.0, "not at all"), (10.0, "completely")))


@pytest.mark.parametrize("suffix", WITH_LABELS)
def test_missing_codes_are_missing_values(files: dict[str, Path], suffix: str) -> None:
    table = table_of(files[suffix])

    assert [cell is None for cell in cells(table, "edu")] == (survey()["edu"] == 9).tolist()
    assert table.source is not None
    assert not any("refused" in text for _, text in table.source.labels["edu"].values)


def test_an_ordinal_measure_orders_the_labels(files: dict[str, Path]) -> None:
    schema = table_of(files[".sav"]).schema

    assert schema["edu"].kind is Kind.ORDERED
    assert schema["edu"].domain == ("none", "school", "college", "university")
    assert schema["region"].kind is Kind.CATEGORICAL


def test_a_project_need_not_repeat_the_order(files: dict[str, Path]) -> None:
    table = table_of(files[".sav"])
    columns = [Column(c.name, kind=c.kind) for c in table.schema]
    again = read_table(files[".sav"], schema=Schema.of(columns))
    large = open_large(files[".sav"], memory=1 << 30, schema=Schema.of(columns))

    assert again.schema["edu"].domain == table.schema["edu"].domain  # type: ignore[union-attr]
    assert large.schema["edu"].domain == table.schema["edu"].domain


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_dates_numbers_and_texts_are_themselves(files: dict[str, Path], suffix: str) -> None:
    table, frame = table_of(files[suffix]), survey()

    assert cells(table, "day") == frame["day"].tolist()
    assert table.schema["day"].kind is Kind.DATE
    assert cells(table, "share") == frame["share"].tolist()
    assert cells(table, "note") == [note or None for note in frame["note"]]


def test_codes_of_texts_have_labels_too(files: dict[str, Path]) -> None:
    assert set(cells(table_of(files[".sav"]), "code")) == {"Man", "Woman"}


def test_two_codes_with_one_label_stay_codes(tmp_path: Path) -> None:
    path = tmp_path / "a.sav"
    frame = pd.DataFrame({"a": [1, 2, 3]})
    pyreadstat.write_sav(frame, path, variable_value_labels={"a": {1: "same", 2: "same", 3: "other"}})

    assert cells(table_of(path), "a") == [1, 2, 3]


def test_moments_are_moments(tmp_path: Path) -> None:
    moments = pd.to_datetime(["2020-02-29 12:30:01", "1969-12-31 23:59:59"])
    frame = pd.DataFrame({"m": moments})
    pyreadstat.write_sav(frame, tmp_path / "a.sav")
    pyreadstat.write_dta(frame, tmp_path / "a.dta")
    pyreadstat.write_xport(frame, tmp_path / "a.xpt")

    for suffix in (".sav", ".dta", ".xpt"):
        assert cells(table_of(tmp_path / f"a{suffix}"), "m") == [m.to_pydatetime() for m in moments]


def test_a_sas_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.sas7bdat"
    path.write_bytes(sas_file())
    table = table_of(path)

    assert cells(table, "age")[:4] == [20, 21, 22, None]
    assert cells(table, "day")[0] == datetime.date(1960, 1, 1) + datetime.timedelta(days=22_000)
    assert table.source is not None
    assert table.source.labels["age"].label == "Age in years"


def test_a_packed_file_is_unpacked(tmp_path: Path, files: dict[str, Path]) -> None:
    path = tmp_path / "survey.sav.gz"
    path.write_bytes(gzip.compress(files[".sav"].read_bytes()))

    assert table_of(path).to_arrow().equals(table_of(files[".sav"]).to_arrow())


def test_an_encoding_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "a.xpt"
    pyreadstat.write_xport(pd.DataFrame({"a": ["xy", "zz"]}), path)
    path.write_bytes(path.read_bytes().replace(b"xy", b"\xe9y"))

    assert cells(table_of(path, encoding="latin-1"), "a") == ["éy", "zz"]
    with pytest.raises(InputError, match=r"encoding|cannot be read"):
        table_of(path)


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".sas7bdat"])
def test_without_the_library_the_extra_is_named(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"something")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert run(["release", str(path), "-o", str(tmp_path / "out.csv")]) == 3
    assert "sfumato[io]" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".sas7bdat"])
def test_what_is_no_such_file_is_refused_in_one_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"people{suffix}"
    path.write_text(f"age,sex\n31,{CANARY}\n")

    with pytest.raises(InputError, match="cannot be read as a file of") as caught:
        table_of(path)
    assert CANARY not in str(caught.value)
    assert table_of(path, format="csv").n_rows == 1


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.sav").write_bytes(b"")

    with pytest.raises(InputError, match="is empty"):
        table_of(tmp_path / "a.sav")


def test_the_end_of_the_parsers_process_is_an_error_of_the_file(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_command", lambda: ("/bin/sh", "-c", "kill -SEGV $$"))

    with pytest.raises(InputError, match="its process was ended by signal 11"):
        table_of(files[".sav"])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_in_blocks_it_is_the_same_table(files: dict[str, Path], suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_FEWEST_CELLS", 300)
    whole = table_of(files[suffix])
    monkeypatch.setattr("sfumato.engines.blocks.rows.cells_at_once", lambda memory: 300)
    large = open_large(files[suffix], memory=10**9)
    names = large.schema.names()
    n_blocks = 0
    found: dict[str, list[object]] = {name: [] for name in names}
    for block in large.blocks(names, as_cells=names):
        n_blocks += 1
        for name, own in block.items():
            found[name].extend(own.to_pylist())

    assert n_blocks > 3
    assert large.schema == whole.schema
    assert found == {name: cells(whole, name) for name in names}
    assert large.source.labels == whole.source.labels  # type: ignore[union-attr]
    swapped = pa.concat_arrays([block["sex"] for block in large.blocks(["sex", "ill"], as_cells=["sex"])])
    assert swapped.to_pylist() == found["sex"]


def test_a_file_that_is_read_in_blocks_is_parsed_once(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    n_parsed: list[int] = []
    parse = reading.RawFile.blocks
    monkeypatch.setattr(reading.RawFile, "blocks", lambda own, *given: n_parsed.append(1) or parse(own, *given))
    large = open_large(files[".sav"], memory=10**9)
    for _ in range(2):
        assert sum(len(block["sex"]) for block in large.blocks(["sex"])) == large.n_rows

    assert len(n_parsed) == 1


# SPSS portable files, which are read only.


def portable(path: Path, record: bytes = b"") -> Path:
    """Write a portable file; pyreadstat writes no labels, so that a record of them is put before the rows."""
    frame = pd.DataFrame(
        {
            "AGE": [31.0, 45.5, np.nan, 62.0],
            "SEX": [1.0, 2.0, 1.0, 2.0],
            "TOWN": ["Ulm", "Bonn", "", CANARY],
            "DAY": [datetime.date(2020, 1, 1), None, datetime.date(1999, 12, 31), datetime.date(2020, 5, 5)],
        }
    )
    pyreadstat.write_por(frame, str(path), column_labels=["Age of the person", "", "", ""])
    lines = path.read_bytes().split(b"\r\n")
    body = b"".join(line.ljust(80) for line in lines[5:] if line)
    at = body.rindex(b"0/F") + 2
    body = body[:at] + record + body[at:]
    path.write_bytes(b"\r\n".join([*lines[:5], *(body[i : i + 80] for i in range(0, len(body), 80))]) + b"\r\n")
    return path


def test_a_portable_file_is_read_with_its_labels_and_missing_codes(tmp_path: Path) -> None:
    labels = b"D1/3/SEX2/1/4/male2/6/female"
    table = table_of(portable(tmp_path / "survey.por", labels))

    assert cells(table, "SEX") == ["male", "female", "male", "female"]
    assert cells(table, "AGE") == [31.0, 45.5, None, 62.0]
    assert cells(table, "TOWN") == ["Ulm", "Bonn", None, CANARY]
    assert cells(table, "DAY")[2] == datetime.date(1999, 12, 31)
    assert table.source.labels["AGE"].label == "Age of the person"  # type: ignore[union-attr]


def test_a_portable_file_is_known_by_sight_and_not_read_in_blocks_or_written(tmp_path: Path) -> None:
    path = portable(tmp_path / "survey.por")
    other = path.rename(tmp_path / "survey.csv")
    with pytest.raises(InputError, match="is a portable SPSS file, which its name does not say"):
        read_table(other)
    with pytest.raises(InvalidParameterError, match="got por") as caught:
        open_large(other, memory=10**9, options=ReadOptions(format="por"))
    with pytest.raises(InvalidParameterError, match="read only"):
        writable_format_of("release.por")
    with pytest.raises(InvalidParameterError, match="encoding"):
        table_of(other, format="por", encoding="latin-1")

    assert ".sav" in caught.value.hint
    assert table_of(other, format="por").n_rows == 4


def test_a_damaged_portable_file_is_refused_without_a_value(tmp_path: Path) -> None:
    path = portable(tmp_path / "survey.por")
    path.write_bytes(path.read_bytes()[:-150])
    with pytest.raises(InputError, match="SPSS") as caught:
        read_table(path)
    assert CANARY not in str(caught.value)


def test_a_packed_file_is_not_read_in_blocks(tmp_path: Path, files: dict[str, Path]) -> None:
    path = tmp_path / "survey.sav.gz"
    path.write_bytes(gzip.compress(files[".sav"].read_bytes()))

    with pytest.raises(InputError, match="is packed"):
        open_large(path, memory=1 << 30)


# Writing.


def written(table: Table, suffix: str, labels: dict[str, ColumnLabels] | None = None) -> bytes:
    file = io.BytesIO()
    write_table(table, file, suffix[1:], labels)
    return file.getvalue()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_again(tmp_path: Path, files: dict[str, Path], suffix: str) -> None:
    table = table_of(files[".sav"])
    assert table.source is not None
    labels = written_labels(table, suffix[1:], table.source.labels)
    path = tmp_path / f"out{suffix}"
    path.write_bytes(written(table, suffix, labels))
    again = table_of(path)

    assert again.to_arrow().equals(table.to_arrow())
    assert written(table, suffix, labels) == path.read_bytes()
    assert again.source is not None
    assert again.source.labels["sex"].label == "Sex of the person"
    if suffix in WITH_LABELS:
        assert again.source.labels["sex"].values == ((1.0, "male"), (2.0, "female"))
        assert again.source.labels["sat"].values == table.source.labels["sat"].values
    if suffix in (".sav", ".zsav"):
        assert again.schema["edu"] == table.schema["edu"]
        assert again.source.labels["code"].values == table.source.labels["code"].values


def test_labels_of_values_that_no_row_has_are_not_written(files: dict[str, Path]) -> None:
    table = table_of(files[".sav"])
    assert table.source is not None
    assert CANARY in str(table.source.labels["sex"].values)
    kept = table.keep(["sex", "region", "edu", "sat", "ill"]).take(np.arange(table.n_rows))
    labels = written_labels(kept, "sav", table.source.labels)

    assert set(labels) == {"sex", "region", "edu", "sat", "ill"}
    assert CANARY.encode() not in written(kept, ".sav", labels)


def test_numbers_that_all_have_a_label_lose_them_so_that_they_stay_numbers(files: dict[str, Path]) -> None:
    table = table_of(files[".sav"])
    assert table.source is not None
    ends = table.take(np.array([cell in (0, 10) for cell in cells(table, "sat")]))

    assert written_labels(ends, "sav", table.source.labels)["sat"].values == ()


def test_a_column_of_sets_is_text(files: dict[str, Path]) -> None:
    table = table_of(files[".sav"]).keep(["sex"])
    assert table.source is not None
    sets = Table.from_arrow(pa.table({"sex": ["male", "{female|male}"]}), table.schema)

    assert written_labels(sets, "sav", table.source.labels)["sex"].values == ()
    assert written_labels(table, "sav", table.source.labels, ["sex"])["sex"].values == ()


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
@settings(examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_table_comes_back_or_is_refused(tmp_path: Path, suffix: str, data: st.DataObject) -> None:
    n_rows = data.draw(st.integers(1, 5))

    def column(values: st.SearchStrategy[object]) -> list[object]:
        return data.draw(st.lists(values, min_size=n_rows, max_size=n_rows))

    texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
    trimmed = texts.map(str.strip).filter(bool)
    array = {
        "a": pa.array(column(st.none() | st.integers(-(2**53), 2**53)), pa.int64()),
        "b": pa.array(column(st.floats(-1e70, 1e70).filter(lambda x: x == 0 or abs(x) > 1e-70)), pa.float64()),
        "c": pa.array(column(st.none() | trimmed), pa.string()),
        "d": pa.array(column(st.none() | st.dates()), pa.date32()),
        "e": pa.array([0.5] * n_rows, pa.float64()),
    }
    table = Table.from_arrow(pa.table(array), Schema.of([Column(n) for n in array], ()))
    path = tmp_path / f"a{suffix}"
    path.write_bytes(written(table, suffix))
    again = table_of(path, missing=())

    for name in array:
        assert cells(again, name) == cells(table, name)


@pytest.mark.parametrize(
    ("suffix", "array", "problem"),
    [
        (".sav", {"a b": [1]}, "names of columns"),
        (".dta", {"größe": [1]}, "names of columns"),
        (".sav", {"a": [1], "A": [2]}, "twice but for large letters"),
        (".xpt", {"a": [1e300]}, "SAS cannot hold"),
        (".sav", {"a": [float("inf")]}, "infinite"),
        (".dta", {"a": [2**60]}, "would round"),
        (".dta", {"a": ["x" * 3000]}, "longer than"),
        (".sav", {"a": ["x\0y"]}, "NUL"),
        (".dta", {"long": [1]}, "cannot be written"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(suffix: str, array: dict[str, list[object]], problem: str) -> None:
    table = Table.from_arrow(pa.table(array), Schema.of([Column(name) for name in array]))

    with pytest.raises(InvalidParameterError, match=problem):
        written(table, suffix)


def test_a_sas7bdat_file_is_not_written_and_others_are_named() -> None:
    with pytest.raises(InvalidParameterError, match=r"\.sas7bdat") as caught:
        writable_format_of("out.sas7bdat")
    assert ".xpt" in caught.value.hint


# From the command line.


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_release_keeps_the_labels_of_what_it_shows(
    tmp_path: Path, files: dict[str, Path], suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / files[suffix].name, tmp_path / f"release{suffix}"
    shutil.copy(files[suffix], source)
    asked = ["--target", "ill", "--identifiers", "person", "-m", "mondrian", "-k", "5"]

    assert run(["release", str(source), *asked, "-o", str(out)]) == 0
    said = capsys.readouterr()
    content = out.read_bytes()
    manifest = Path(f"{out}.manifest.json").read_bytes()
    assert CANARY not in said.out + said.err
    assert CANARY.encode() not in content
    assert CANARY.encode() not in manifest
    again = table_of(out)
    assert again.source is not None
    assert "person" not in again.columns
    if suffix in WITH_LABELS:
        assert again.source.labels["ill"].values == ((0.0, "no"), (1.0, "yes"))
        assert again.source.labels["sex"].label == "Sex of the person"
    read = {".sav": pyreadstat.read_sav, ".zsav": pyreadstat.read_sav, ".dta": pyreadstat.read_dta}
    _, book = read.get(suffix, pyreadstat.read_xport)(out)
    assert not book.file_label
    assert not book.notes
    assert book.creation_time == datetime.datetime(2000, 1, 1)
    stated = ["--manifest", f"{out}.manifest.json", "--original", str(source)]
    assert run(["audit", str(out), *stated, "--accept", "roles"]) == 0
    assert "the labels of" in capsys.readouterr().out


def test_roles_of_the_schema_do_not_lose_the_labels(files: dict[str, Path]) -> None:
    table = table_of(files[".sav"])
    described = table.with_schema({"ill": Role.TARGET})

    assert described.source is not None
    assert "ill" in described.source.labels
