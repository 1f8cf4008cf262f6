"""One format for a whole column: at once or in parts, declared or found; no traceback, no cell in a message."""

import random
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli.main import run
from sfumato.engines.blocks import rows as out_of_core
from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError
from sfumato.schema import Column, Kind, Reading, Role, Schema
from sfumato.table.coding import parse_numbers
from sfumato.table.io import csv as delimited
from sfumato.table.io.read import ReadOptions, check_formats, read_table
from sfumato.table.kinds import guess_kind
from sfumato.table.reading.columns import Candidates, doubts_of, format_named, guessed_format, is_format
from sfumato.table.reading.unread import unread_columns

CANARY = "3/14/15926 CANARY"
NUMBERS = ["1", "12", "1.5", "1,5", "1.234", "1,234", "2,345.5", "1.234,5", "999", "0,5", "07", "1e3", "5.", "12 kg"]
DAYS = ["03.04.2021", "13.04.2021", "03/04/2021", "04/13/2021", "2021-04-03", "2021-4-3", "20210403"]
TEXTS = st.sampled_from([*NUMBERS, *DAYS, "3,5 kg", "x", "1 234", "€ 5"])


@pytest.mark.slow
@given(st.lists(st.lists(TEXTS, min_size=1, max_size=4), min_size=1, max_size=4))
def test_parts_decide_as_the_whole_does(parts):
    """What blocks of a large file say one after the other is what the whole column says."""
    whole = pa.array(list(dict.fromkeys(text for part in parts for text in part)))
    plain = guess_kind(whole)
    candidates, kinds = Candidates(), set()
    for part in parts:
        values = pa.array(list(dict.fromkeys(part)))
        kinds.add(guess_kind(values))
        candidates.take(values, guess_kind(values))

    in_parts = next(iter(kinds)) if len(kinds) == 1 else Kind.CATEGORICAL
    assert in_parts is plain
    assert candidates.decided(plain) == guessed_format(whole, plain)


@pytest.mark.slow
@given(st.lists(TEXTS, min_size=1, max_size=6, unique=True), st.randoms())
def test_the_order_of_rows_decides_nothing(texts, shuffled):
    other = texts.copy()
    shuffled.shuffle(other)
    plain = guess_kind(pa.array(texts))

    assert guessed_format(pa.array(texts), plain) == guessed_format(pa.array(other), plain)


@pytest.mark.slow
@given(st.lists(TEXTS, min_size=1, max_size=6, unique=True))
def test_a_format_that_is_found_reads_every_text(texts):
    values = pa.array(texts)
    found, _ = guessed_format(values, guess_kind(values))

    if found is not None:
        read = found.read(values)
        assert read.null_count == 0
        assert guess_kind(read) is found.kind
        assert is_format(found.name)
        assert format_named(found.name).read(values) == read


@pytest.mark.slow
def test_no_random_column_of_texts_ends_in_a_traceback():
    """20,000 columns of random characters, many of them those of dates and numbers."""
    draw = random.Random(22)
    signs = "0123456789" * 4 + ".,/-' :%€$kgTZ年月日" + "abcäéŁΩ\u00a0\u202f\u2212\u0663\x00\n\U0001f600#+()"
    for _ in range(20_000):
        length = draw.choice([1, 3, 8, 10, 19])
        texts = ["".join(draw.choices(signs, k=draw.randint(0, length))) for _ in range(draw.randint(1, 4))]
        values = pa.array(list(dict.fromkeys([*texts, None])))
        plain = guess_kind(values)
        found, _ = guessed_format(values, plain)
        if found is not None:
            read = found.read(values).drop_null()
            assert len(read) == len(values) - 1
            if found.kind is Kind.NUMERIC:
                assert np.isfinite(parse_numbers(read)).all()


@pytest.mark.parametrize(
    "line",
    ["#NUM!,1,5", "03.04.2021,x", "9" * 400, "1" + ",000" * 120, "1e9999", "\ufeff1,5", "31.12.9999", "01.01.0001"],
)
def test_strange_cells_are_read_or_left(tmp_path, line):
    path = tmp_path / "a.csv"
    path.write_text(f"a;b\n{line};1\n{line};2\n", encoding="utf-8")

    assert read_table(path).n_rows == 2


def table_of(tmp_path, lines, **options):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_table(path, options=ReadOptions(**options))


def test_cells_are_plain_and_the_schema_says_how_they_were_read(tmp_path):
    table = table_of(tmp_path, ["when;cost;zip", "03.04.2021;1.234,50 €;01067", "13.04.2021;7 €;10115", "NA;NA;NA"])

    assert table["when"].values.to_pylist() == ["2021-04-03", "2021-04-13", None]
    assert table["cost"].values.to_pylist() == ["7", "1234.50", None]
    assert [column.kind for column in table.schema] == [Kind.DATE, Kind.NUMERIC, Kind.CATEGORICAL]
    assert table.schema["cost"].reading == Reading("1.234,56 €", unit="€")
    assert table.schema["zip"].reading is None


def test_a_declared_format_settles_a_doubt_and_says_that_it_is_nobody_elses_guess(tmp_path):
    lines = ["when", "03/04/2021", "05/06/2021"]
    guessed = table_of(tmp_path, lines)
    declared = table_of(tmp_path, lines, formats=(("when", "MM/DD/YYYY"),))
    confirmed = table_of(tmp_path, lines, formats=(("when", "DD/MM/YYYY"),))

    assert doubts_of(guessed.schema) == [
        ("when", "column 'when' is read as DD/MM/YYYY: day first; no value above 12 decides")
    ]
    assert declared["when"].values.to_pylist() == ["2021-03-04", "2021-05-06"]
    assert declared.schema["when"].reading.is_own
    assert not confirmed.schema["when"].reading.is_own
    assert not doubts_of(declared.schema)
    assert not doubts_of(confirmed.schema)


def test_what_a_schema_says_wins_over_a_guess(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("when,y\n03.04.2021,a\n13.04.2021,b\n")

    def read(column):
        return read_table(path, schema=Schema.of([column, Column("y", Role.TARGET)]))

    as_text = read(Column("when"))
    assert as_text["when"].values.to_pylist() == ["03.04.2021", "13.04.2021"]
    assert as_text.schema["when"].reading == Reading("text")
    assert as_text.schema["when"].reading.is_own
    assert read(Column("when", kind=Kind.DATE))["when"].values.to_pylist() == ["2021-04-03", "2021-04-13"]
    with pytest.raises(InputError, match="declared numeric"):
        read(Column("when", kind=Kind.NUMERIC))


def test_serial_numbers_are_dates_only_where_that_is_declared(tmp_path):
    lines = ["when", "44289", "44290.5"]

    assert table_of(tmp_path, lines).schema["when"].kind is Kind.NUMERIC
    declared = table_of(tmp_path, lines, formats=(("when", "excel"),))
    assert declared["when"].values.to_pylist() == ["2021-04-03", "2021-04-04 12:00:00"]
    typed = read_table(pa.table({"when": [44289, 44290]}), options=ReadOptions(formats=(("when", "excel"),)))
    assert typed["when"].values.to_pylist() == ["2021-04-03", "2021-04-04"]


def test_cells_that_are_not_in_the_declared_format_are_counted_and_not_shown(tmp_path):
    with pytest.raises(InputError, match=r"line 3, column 'when'.*2 rows are not") as caught:
        table_of(tmp_path, ["when", "03/04/2021", CANARY, CANARY], formats=(("when", "DD/MM/YYYY"),))

    assert "CANARY" not in str(caught.value)
    assert "CANARY" not in repr(caught.value)


def test_formats_of_columns_that_are_not_there_and_formats_that_are_none():
    with pytest.raises(ColumnNotFoundError):
        check_formats(ReadOptions(formats=(("wen", "text"),)), ("when",), "a.csv")
    for kind in (None, Kind.DATE, Kind.NUMERIC):
        with pytest.raises(InvalidParameterError, match="or text"):
            format_named("day first", kind)
    with pytest.raises(InvalidParameterError):
        format_named("1.234,56", Kind.DATE)


def test_nothing_is_guessed_where_that_is_off(tmp_path):
    table = table_of(tmp_path, ["when", "03.04.2021"], guess_formats=False)

    assert table["when"].values.to_pylist() == ["03.04.2021"]
    assert table.schema["when"].reading is None


def few_values(memory):
    """List at most four values a column, and cut files into small blocks."""
    stack = ExitStack()
    stack.enter_context(patch("sfumato.engines.memory_limit._BYTES_A_VALUE", memory // 4))
    stack.enter_context(patch.object(delimited, "BLOCK_BYTES", 97))
    stack.enter_context(patch.object(out_of_core, "_FEWEST_PENDING", 2))
    return stack


@pytest.mark.parametrize(
    ("texts", "formats"),
    [
        ([f"{day:02}.04.2021" for day in range(1, 29)], ()),
        ([f"{day:02}/04/2021" for day in range(1, 13)], (("a", "MM/DD/YYYY"),)),
        ([*map(str, range(20)), *(f"{i},5" for i in range(20))], ()),
        ([f"{i},{i:03}" for i in range(1, 40)], ()),
        ([f"{i} kg" for i in range(20)], ()),
        ([str(44_000 + i) for i in range(30)], (("a", "excel"),)),
        ([f"202101{day:02}" for day in range(1, 29)], ()),
        ([f"{i}.{100 + i}" for i in range(1, 30)], ()),
    ],
    ids=["days", "declared", "commas", "thousands", "units", "serials", "digits", "stops"],
)
@pytest.mark.parametrize("is_open", [True, False])
def test_blocks_of_a_large_file_are_read_as_in_memory(tmp_path, texts, formats, is_open):
    path = tmp_path / "a.csv"
    path.write_text("a;b\n" + "".join(f"{text};{i}\n" for i, text in enumerate(texts)))
    options = ReadOptions(formats=formats)
    memory = 200_000_000
    expected = read_table(path, options=options)
    with few_values(memory if is_open else 4):
        found = out_of_core.open_large(path, memory=memory, options=options)
        cells = pa.concat_arrays([block["a"] for block in found.blocks(["a"], as_cells=["a"])])

    assert found.is_open("a") is is_open
    assert found.schema["a"] == expected.schema["a"]
    reading = found.schema["a"].reading
    assert (reading.doubt, reading.is_own) == (
        expected.schema["a"].reading.doubt,
        expected.schema["a"].reading.is_own,
    )
    assert cells.to_pylist() == expected["a"].cells().to_pylist()


@pytest.mark.slow
def test_blocks_that_are_not_in_the_declared_format_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b\n" + "".join(f"{day:02}.04.2021;1\n" for day in range(1, 29)) + f"{CANARY};2\n")
    memory = 200_000_000
    for values in (memory, 4):
        with few_values(values), pytest.raises(InputError, match=r"DD\.MM\.YYYY, but 1 ") as caught:
            out_of_core.open_large(path, memory=memory, options=ReadOptions(formats=(("a", "DD.MM.YYYY"),)))
        assert "CANARY" not in str(caught.value)


def test_columns_that_stay_text_say_how_many_cells_keep_them_from_being_read(tmp_path):
    days = [f"{day:02}.04.2021" for day in range(1, 20)]
    lines = ["when;cost;zip", *(f"{day};{i},5;0{i}" for i, day in enumerate(days)), "later;#DIV/0!;01067"]
    table = table_of(tmp_path, lines)

    assert [one.in_words(21) for one in unread_columns(table)] == [
        "column 'when' is left as text: 1 of 20 values do not parse as a date (DD.MM.YYYY), first in line 21",
        "column 'cost' is left as text: 1 of 20 values do not parse as a number (1234,56), first in line 21; "
        "1 are errors of a spreadsheet (#…)",
    ]
    assert "data row 20" in unread_columns(table)[0].in_words(None)


SEVERAL = ["2024-03-01", "15.03.2024", "3.4.2024", "7 March 2024", "2024/05/06", "17/06/2024"]


def test_days_in_several_formats_are_read_where_each_can_be_read_in_one_way_only():
    """And the doubt is said, with the formats and no cell."""
    found, doubt = guessed_format(pa.array(SEVERAL), Kind.CATEGORICAL)

    assert found.name == "mixed"
    assert found.read(pa.array(SEVERAL)).to_pylist() == [
        *("2024-03-01", "2024-03-15", "2024-04-03", "2024-03-07", "2024-05-06", "2024-06-17")
    ]
    assert doubt.startswith("its dates are in 5 formats (DD MMM YYYY, DD.MM.YYYY, DD/MM/YYYY, YYYY-MM-DD, YYYY/MM/DD)")
    assert format_named("mixed", Kind.DATE) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    "other", ["03/04/2024", "04-03-2024", "15.03.24", "20240315", "31.02.2024", "March", "3.4", "2024-03-01 10:15"]
)
def test_one_cell_in_doubt_or_of_another_kind_leaves_the_column_text(other):
    assert guessed_format(pa.array([*SEVERAL, other]), Kind.CATEGORICAL) == (None, "")


def test_the_same_day_in_either_order_is_in_no_doubt():
    assert format_named("mixed").read(pa.array(["05/05/2024", "05/06/2024"])).to_pylist() == ["2024-05-05", None]


def test_a_column_in_one_format_is_none_of_several():
    for texts in (["15/03/2024", "03/04/2024"], ["15.03.2024", "3.4.2024"], ["2024-03-01", "2024-03-02"]):
        found, _ = guessed_format(pa.array(texts), guess_kind(pa.array(texts)))
        assert found is None or found.name != "mixed"


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_in_parts_the_decision_about_several_formats_is_the_same(cut):
    for texts in (SEVERAL, [*SEVERAL, "03/04/2024"]):
        parts = Candidates()
        parts.take(pa.array(texts[:cut]), Kind.CATEGORICAL)
        parts.take(pa.array(texts[cut:]), Kind.CATEGORICAL)

        assert parts.decided(Kind.CATEGORICAL) == guessed_format(pa.array(texts), Kind.CATEGORICAL)


@pytest.mark.slow
def test_a_release_of_several_formats_says_the_doubt_and_is_confirmed_with_its_original(tmp_path, monkeypatch, capsys):
    """With a project file and without, in memory and out of core."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{SEVERAL[i % 6]},{'fm'[i % 2]},{'yn'[i % 3 % 2]}" for i in range(120)]
    (tmp_path / "t.csv").write_text("\n".join(["seen,sex,ill", *rows, ""]))
    asked = ["--target", "ill", "-m", "global-recoding"]

    assert run(["release", "t.csv", *asked, "-o", "a.csv"]) == 0
    assert "column 'seen' is read as mixed: its dates are in 5 formats" in capsys.readouterr().err
    assert run(["audit", "a.csv", "--manifest", "a.csv.manifest.json", "--original", "t.csv"]) in (0, 8)
    assert "FAIL" not in capsys.readouterr().out
    assert run(["init", "t.csv", "--target", "ill"]) == 0
    assert 'date_format = "mixed"' in (tmp_path / "sfumato.toml").read_text()
    assert run(["release", "-m", "global-recoding", "-o", "b.csv"]) == 0
    assert run(["release", "t.csv", *asked, "--memory", "1GB", "-o", "c.csv"]) == 0

    files = [(tmp_path / name).read_bytes() for name in ("a.csv", "b.csv", "c.csv")]
    assert files[0] == files[1] == files[2]
