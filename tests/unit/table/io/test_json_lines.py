"""JSON lines: flat objects with their types, and one spelling for each cell."""

from __future__ import annotations

import datetime
import gc
import gzip
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.bytes.text import problem_of_text
from sfumato.cli.main import run
from sfumato.engines.blocks.rows import LargeTable, open_large
from sfumato.errors import InputError, InvalidParameterError
from sfumato.schema import Column, Schema
from sfumato.table.coding import Table
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.io.write import write_table
from sizes import examples

CANARY = "CANARY-7f3a"


def read(folder: Path, text: str, suffix: str = ".jsonl") -> Table:
    path = folder / f"people{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode())
    table = read_table(path)
    assert isinstance(table, Table)
    return table


def problem_of(content: bytes, tokens: dict[str, tuple[str, ...]]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_bytes(content)
        return problem_of_text(path, "jsonl", tokens, ())[0]


def written(table: Table) -> bytes:
    file = io.BytesIO()
    write_table(table, file, "jsonl")
    return file.getvalue()


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".jsonl.gz"])
def test_types_are_kept_and_a_key_that_is_not_there_is_missing(tmp_path: Path, suffix: str) -> None:
    table = read(tmp_path, '{"a":1,"b":"x"}\n\n{"a":2.5,"c":true}\n{"b":"NA","a":null}\n', suffix)

    assert table.to_arrow().to_pydict() == {
        "a": [1.0, 2.5, None],
        "b": ["x", None, None],
        "c": [None, True, None],
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"a": {"b": "%s"}}', "an object or a list"),
        ('{"a": ["%s"]}', "an object or a list"),
        ('["%s"]', "not an object"),
        ('"%s"', "not an object"),
        ('{"a": "%s", "a": 1}', "a key twice"),
        ('{"a": "%s", "b": NaN}', "NaN"),
        ('{"a": "%s", "b": 1e999}', "too large"),
        ('{"a": "%s", "b": "\\ud800"}', "half a character"),
        ('{"a": "%s"', "not JSON"),
        ('{"a": "%s", "b": ' + "[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_row_is_refused_with_its_line_and_no_value(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, '{"a": "x"}\n' + line.replace("%s", CANARY) + "\n")
    assert caught.value.line == 2
    assert CANARY not in str(caught.value)


def test_a_column_of_several_kinds_is_refused_unless_it_is_declared(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mixes text and numbers \(row 2\)"):
        read(tmp_path, f'{{"a": "{CANARY}"}}\n{{"a": 1}}\n')


@pytest.mark.parametrize("text", ["\n\n", "{}\n{}\n"])
def test_nothing_is_no_table(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"no data rows|no columns"):
        read(tmp_path, text)


def test_json_lines_under_another_name_are_declared(tmp_path: Path) -> None:
    path = tmp_path / "people.json"
    path.write_text('{"a": 1}\n{"a": 2}\n')

    with pytest.raises(InputError, match="JSON") as caught:
        read_table(path)
    assert "jsonl" in caught.value.hint
    assert read_table(path, options=ReadOptions(format="jsonl")).n_rows == 2


def table_or_refusal(read_it: Callable[[], object]) -> object:
    try:
        return read_it()
    except InputError as error:
        return str(error)


JSON_CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.integers(-3, 3),
    st.sampled_from([10**400, 2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 1.0, 2.5, -0.0, 1e300, 2.0**53, 2.0**60]),
    st.sampled_from(["", " ", "NA", " NA ", "x", "1", "true", "2020-01-02", "31/12/2020", "3,5"]),
)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
@examples(120)
@given(data=st.data())
def test_out_of_core_it_is_the_same_table_or_the_same_refusal(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject
) -> None:
    kinds = data.draw(st.lists(st.sampled_from(["any", "one"]), min_size=1, max_size=3))
    pools = [data.draw(st.lists(JSON_CELLS, min_size=1, max_size=6 if kind == "any" else 1)) for kind in kinds]
    row = st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(pool) for name, pool in zip("abc", pools, strict=False)}
    )
    rows = data.draw(st.lists(row, min_size=1, max_size=12))
    mixed_as_text = data.draw(st.booleans())
    text = "".join(json.dumps(own) + data.draw(st.sampled_from(["\n", "\r\n", "\n\n"])) for own in rows)
    path = tmp_path_factory.mktemp("lines") / f"people{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode())
    options = ReadOptions(mixed_as_text=mixed_as_text)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sfumato.engines.blocks.rows.text_at_once", lambda memory: 800)
        patched.setattr("sfumato.engines.blocks.rows.cells_at_once", lambda memory: 6)
        whole = table_or_refusal(lambda: read_table(path, options=options))
        large = table_or_refusal(lambda: open_large(path, memory=10**9, options=options))
    if isinstance(whole, str) or isinstance(large, str):
        assert large == whole
        return
    assert isinstance(whole, Table)
    assert isinstance(large, LargeTable)
    names = large.schema.names()
    found: dict[str, list[object]] = {name: [] for name in names}
    for block in large.blocks(names, as_cells=names):
        for name, own in block.items():
            found[name].extend(own.to_pylist())

    assert large.schema == whole.schema
    assert large.source.sha256 == whole.source.sha256  # type: ignore[union-attr]
    assert [(type(v), v) for n in names for v in found[n]] == [
        (type(v), v) for n in names for v in whole[n].cells().to_pylist()
    ]


@pytest.mark.parametrize(
    "line", ['{"a": {"b": "%s"}}', '["%s"]', '{"a": "%s", "a": 1}', '{"a": "%s", "b": NaN}', '{"a": "%s"', '{"a": 1}']
)
def test_out_of_core_errors_name_the_same_line_and_no_value(
    tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text('\n{"a": "x"}\n' * 5 + line.replace("%s", CANARY) + "\n")
    monkeypatch.setattr("sfumato.engines.blocks.rows.cells_at_once", lambda memory: 2)

    with pytest.raises(InputError) as whole:
        read_table(path)
    with pytest.raises(InputError) as caught:
        open_large(path, memory=10**9)

    assert str(caught.value) == str(whole.value)
    assert "11" in str(caught.value)
    assert CANARY not in str(caught.value)


@pytest.mark.slow
def test_out_of_core_the_kept_rows_go_with_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "people.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\n')

    large = open_large(path, memory=10**9)
    kept = [own for own in tmp_path.iterdir() if own.name.startswith("sfumato-rows-")]
    mode = kept[0].stat().st_mode & 0o777
    del large
    gc.collect()

    assert len(kept) == 1
    assert mode == 0o700
    assert not kept[0].exists()


@pytest.mark.slow
def test_json_lines_are_released_out_of_core_as_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl.gz"
    rows = "".join(json.dumps({"age": 20 + i % 7, "sex": "fm"[i % 2], "ill": i % 3 == 0}) + "\n" for i in range(200))
    path.write_bytes(gzip.compress(rows.encode()))
    given_ = ["-m", "global-recoding", "-k", "3", "--quasi-identifiers", "age,sex", "--target", "ill"]
    for name, more in (("whole.csv", []), ("blocks.csv", ["--memory", "600MB"])):
        assert run(["release", str(path), *given_, *more, "-o", str(tmp_path / name)]) == 0

    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "blocks.csv").read_bytes()


values = st.one_of(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4).map(
        lambda v: pa.array(v, pa.int64())
    ),
    st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4).map(
        lambda v: pa.array(v, pa.float64())
    ),
    st.lists(st.none() | st.booleans(), min_size=1, max_size=4).map(lambda v: pa.array(v, pa.bool_())),
    st.lists(st.none() | st.text(st.characters(codec="utf-8")).map(str.strip).filter(bool), min_size=1, max_size=4).map(
        lambda v: pa.array(v, pa.string())
    ),
)


@examples(60)
@given(array=values, name=st.text(st.characters(codec="utf-8"), min_size=1).map(str.strip).filter(bool))
def test_every_column_is_written_in_the_form_of_the_audit_and_comes_back(
    tmp_path_factory: pytest.TempPathFactory, array: pa.Array, name: str
) -> None:
    table = Table.from_arrow(pa.table({name: array}), Schema.of([Column(name)], ()))
    content = written(table)

    assert problem_of(content, {name: ()}) == ""
    lines = content.decode().split("\n")[:-1]
    assert [json.loads(line)[name] for line in lines] == array.to_pylist()


def test_dates_are_texts() -> None:
    table = Table.from_arrow(pa.table({"d": [datetime.date(2020, 1, 2), None]}), Schema.of([Column("d")]))

    assert written(table) == b'{"d":"2020-01-02"}\n{"d":null}\n'


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":1, "b":"x"}\n',
        b'{"b":"x","a":1}\n',
        b'{"a":1}\n',
        b'{"a":1,"b":"x","c":2}\n',
        b'{"a":1.0,"b":"x"}\n',
        b'{"a":1e0,"b":"x"}\n',
        b'{"a":1e+17,"b":"x"}\n{"a":100000000000000000,"b":"x"}\n',
        b'{"a":0.5,"b":"x"}\n{"a":100000000000000000,"b":"x"}\n',
        b'{"a":1,"b":"\\ud800"}\n',
        b'{"a":1e999,"b":"x"}\n',
        b'[["a",1],["b","x"]]\n',
        b'{"a":-0.0,"b":"x"}\n',
        b'{"a":1,"b":"\\u0078"}\n',
        b'{"a":1,"b":" x"}\n',
        b'{"a":1,"b":"NA"}\n',
        b'{"a":1,"b":""}\n',
        b'{"a":1,"b":"x"}',
        b'{"a":1,"b":"x"}\r\n',
        b'{"a":1,"b":"x"}\n\n',
        b'\xef\xbb\xbf{"a":1,"b":"x"}\n',
        b'{"a":1,"b":"x"}\n{"a":"1","b":"x"}\n',
        b'{"a":[],"b":"x"}\n',
        b'{"a":{},"b":"x"}\n',
        b'{"a":1,"a":1,"b":"x"}\n',
        b'{"a":1,"b":"\xff"}\n',
        b'{"a":NaN,"b":"x"}\n',
    ],
)
def test_whatever_carries_more_than_the_cells_is_refused(content: bytes) -> None:
    tokens = {"a": (), "b": ("NA",)}

    assert problem_of(b'{"a":1,"b":"x"}\n', tokens) == ""
    assert problem_of(content, tokens) != ""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson.gz"])
def test_a_release_is_written_and_audited(tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = tmp_path / "people.jsonl", tmp_path / f"out{suffix}"
    rows = (
        {"age": 20 + i % 30, "sex": "fm"[i % 2], "ok": i % 3 == 0, "share": i % 4 / 8, "y": i % 5} for i in range(200)
    )
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))

    assert run(["release", str(data), "--target", "y", "-m", "mondrian", "-k", "5", "-o", str(out)]) == 0
    assert "audit: confirmed" in capsys.readouterr().err
    assert read_table(out).n_rows == 200


def test_infinite_numbers_are_refused() -> None:
    table = Table.from_arrow(pa.table({"a": [float("inf")]}), Schema.of([Column("a")]))

    with pytest.raises(InvalidParameterError, match="infinite"):
        written(table)
