"""Columns of every type: either released, published and confirmed by the audit, or refused by name without a value."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import cycle, islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato import ErrorRiskTree, Mondrian, cross_validated_utility
from sfumato.audit.reading.cells import contained
from sfumato.errors import InputError, SchemaError
from sfumato.learning.c45.criteria import Entropy, Variance
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.tree import TreeColumn
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

N_ROWS = 36
RECODERS = {
    "tiered": ErrorRiskTree(k=3, refine=False),
    "uniform": ErrorRiskTree(k=3, generalization="uniform"),
    "strict": Mondrian(k=3),
    "relaxed": Mondrian(k=3, strict=False),
}


def repeated(values, data_type=None):
    return pa.array(list(islice(cycle(values), N_ROWS)), data_type)


def table_of(cells, kind, domain=None, ill=None):
    columns = [
        Column("q", Role.QUASI_IDENTIFIER, kind, domain=domain),
        Column("age", Role.QUASI_IDENTIFIER, Kind.NUMERIC),
        Column("ill", Role.TARGET, Kind.CATEGORICAL if ill is None else Kind.NUMERIC),
    ]
    rng = np.random.default_rng(3)
    answers = rng.choice(["yes", "no"], N_ROWS) if ill is None else ill
    return Table.from_arrow(
        pa.table({"q": cells, "age": rng.integers(20, 60, N_ROWS), "ill": answers}), Schema.of(columns)
    )


NUMBERS = {
    "int64 above 2**53": repeated([2**53, 2**53 + 1, 2**53 + 2, 2**62, -5, None], pa.int64()),
    "int64 within one double": pa.array([2**60 + i for i in range(N_ROWS)], pa.int64()),
    "uint64": repeated([2**63 + 1, 2**63 + 5, 2**64 - 1, 3], pa.uint64()),
    "decimal": repeated(
        [Decimal("0.12345678901234567890"), Decimal("0.12345678901234567891"), Decimal(3)], pa.decimal128(30, 20)
    ),
    "digits": repeated([str(2**53), str(2**53 + 1), "9007199254740993.0", str(10**20), str(10**20 + 1), "12"]),
    "digits after the point": repeated(["0.12345678901234567890", "0.12345678901234567891", "7"]),
    "spellings": repeated(["1", "1.0", "01", " 1", "2", "+2", "2e0", "\u00a03 "]),
    "tiny exponent": repeated(["0", "1e-99999999999999999999", "1e-400", "5"]),
    "float32 printed as whole": repeated(np.float32([1.2345679e8, 1.234568e9, 123456800, 0.1]).tolist(), pa.float32()),
    "float16": pa.array(np.array(list(islice(cycle([0.1, 0.2, 1000.5]), N_ROWS)), np.float16)),
    "zeros": repeated([0.0, -0.0, 1.0, 5e-324], pa.float64()),
    "wide": repeated([8e307, -8e307, 1.0], pa.float64()),
}
PARIS = [datetime(2020, 10, 24, 23, tzinfo=UTC) + timedelta(minutes=10 * i) for i in range(N_ROWS)]
DATES = {
    "across the end of summer time": pa.array(PARIS, pa.timestamp("us", "Europe/Paris")),
    "UTC": pa.array(PARIS, pa.timestamp("ms", "UTC")),
    "spellings": repeated(
        [
            "2020-01-01",
            "2020-01-01 00:00:00",
            "2020-01-01T00:00",
            "2020-01-01 10:00",
            "2020-01-01 10:00:00.0",
            "2019-05-05",
        ]
    ),
    "offsets": repeated(["2020-01-01T10:00:00Z", "2020-01-01T11:00:00+02:00", "2019-01-01T11:00:00Z"]),
    "days": pa.array([date(1, 1, 1) + timedelta(days=50_000 * i) for i in range(N_ROWS)], pa.date32()),
    "microseconds far from 1970": pa.array(
        [datetime(9000, 1, 1) + timedelta(microseconds=i) for i in range(N_ROWS)], pa.timestamp("us")
    ),
    "nanoseconds": pa.array([1_234_567_891 * i for i in range(N_ROWS)], pa.timestamp("ns")),
    "times": repeated([time(7, 30), time(8), time(9, 15, 1)], pa.time64("us")),
    "no dates": repeated(["01.02.2020", "spring"]),
}
OTHERS = {
    "numeric truth values": (repeated([True, False, True, None], pa.bool_()), Kind.NUMERIC),
    "categorical truth values": (repeated([True, False, None], pa.bool_()), Kind.CATEGORICAL),
    "infinite categories": (repeated([float("inf"), 1.5, None], pa.float64()), Kind.CATEGORICAL),
    "syntax": (repeated(["*", "{a|b}", "[1, 2]", "\\N", "a,b", "\\", "a\nb", 'a"b', "=1+1"]), Kind.CATEGORICAL),
    "spelled alike": (repeated(["1", "1.0", "01", "+1"]), Kind.CATEGORICAL),
    "dictionary": (repeated(["a", "b", "c"]).dictionary_encode(), Kind.CATEGORICAL),
    "nothing": (pa.nulls(N_ROWS), Kind.CATEGORICAL),
}
RELEASED = (
    {f"number: {name}": (cells, Kind.NUMERIC) for name, cells in NUMBERS.items()}
    | {f"date: {name}": (cells, Kind.DATE) for name, cells in DATES.items()}
    | OTHERS
)


@pytest.mark.slow
@pytest.mark.parametrize("recoder", RECODERS)
@pytest.mark.parametrize("name", RELEASED)
def test_columns_that_are_released_published_and_confirmed(name, recoder, tmp_path):
    cells, kind = RELEASED[name]
    table = table_of(cells, kind)
    table = table.with_schema(table.schema.with_confirmed(["q"]))  # exact times are refused else
    release = sfumato.release(table, RECODERS[recoder])

    for extension in ("csv", "parquet"):
        done = publish(release, tmp_path / f"out.{extension}", original=table)
        assert audit_published(done.table_path, done.manifest_path, original=table, check_roles=True).passed


@pytest.mark.slow
@pytest.mark.parametrize("recoder", RECODERS)
@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_lies_in_its_cell_to_the_last_digit(name, recoder):
    table = table_of(NUMBERS[name], Kind.NUMERIC)
    released = sfumato.release(table, RECODERS[recoder]).table["q"].cells().to_pylist()

    for value, cell in zip(pc.cast(table["q"].cells(), pa.string()).to_pylist(), released, strict=True):
        if value is None:
            assert cell is None or cell == "*" or cell.endswith(r"|\N}")
            continue
        ends = cell.removeprefix("{").removesuffix(r"|\N}").strip("[]").split(", ")
        low, high = (_number(end) for end in (ends[0], ends[-1]))
        assert low <= _number(value) <= high


def _number(text):
    return Decimal(0) if text == "1e-99999999999999999999" else Decimal(text.strip())


def test_numbers_that_no_double_tells_apart_can_be_released_as_they_are():
    table = table_of(repeated([2**53, 2**53 + 1], pa.int64()), Kind.NUMERIC).keep(["q", "ill"])
    released = sfumato.release(table, Mondrian(k=3)).table["q"]

    assert released.cells().to_pylist() == [str(2**53 + i % 2) for i in range(N_ROWS)]


REFUSED = {
    "not-a-number": (repeated([float("nan"), 1.0]), Kind.NUMERIC, "not-a-number"),
    "infinity": (repeated([float("inf"), 1.0]), Kind.NUMERIC, "infinite numbers"),
    "infinite text": (repeated(["1e400", "1"]), Kind.NUMERIC, "infinite numbers"),
    "too wide": (repeated([1.7e308, -1.7e308]), Kind.NUMERIC, "so far apart"),
    "text": (repeated(["SECRET", "1", "2"]), Kind.NUMERIC, "1 of its 3 distinct values are not numbers"),
    "a time as number": (repeated([time(7), time(8)], pa.time32("s")), Kind.NUMERIC, "2 of its 2 distinct values"),
    "an empty text": (repeated(["", "SECRET", None]), Kind.CATEGORICAL, "1 distinct values that the missing tokens"),
    "tokens": (repeated(["NA", "?", "null", "SECRET"]), Kind.CATEGORICAL, "3 distinct values that the missing tokens"),
    "a category not-a-number": (repeated([float("nan"), 1.0]), Kind.CATEGORICAL, "1 distinct values that the missing"),
    "blanks": (repeated(["SECRET", " SECRET", "SECRET\t"]), Kind.CATEGORICAL, "2 distinct values with blanks"),
    "a no-break space": (repeated(["\u00a0SECRET", "b"]), Kind.CATEGORICAL, "1 distinct values with blanks"),
    "a blank after a level": (repeated(["low", "SECRET "]), Kind.ORDERED, "1 distinct values with blanks"),
    "durations": (repeated([timedelta(hours=1)], pa.duration("us")), Kind.NUMERIC, "neither text, numbers"),
    "bytes": (repeated([b"SECRET", b"c\xff"], pa.binary()), Kind.CATEGORICAL, "neither text, numbers"),
    "lists": (repeated([[1], [2]]), Kind.CATEGORICAL, "neither text, numbers"),
    "coded bytes": (repeated([b"SECRET"]).dictionary_encode(), Kind.CATEGORICAL, "neither text, numbers"),
}


@pytest.mark.parametrize("recoder", RECODERS)
@pytest.mark.parametrize("name", REFUSED)
def test_columns_that_are_refused_by_name_without_a_value(name, recoder):
    cells, kind, problem = REFUSED[name]

    with pytest.raises((SchemaError, InputError), match=f"column 'q': .*{problem}") as refused:
        sfumato.release(table_of(cells, kind, ("low", "SECRET")), RECODERS[recoder])
    assert "SECRET" not in str(refused.value)


@pytest.mark.slow
def test_texts_that_mean_missing_elsewhere_are_values_where_the_schema_says_so(tmp_path):
    columns = [Column("q", Role.QUASI_IDENTIFIER, missing=("none",)), Column("ill", Role.TARGET)]
    cells = {"q": repeated(["NA", "?", "b", None]), "ill": repeated(["yes", "no", "no"])}
    table = Table.from_arrow(pa.table(cells), Schema.of(columns))

    for extension in ("csv", "parquet"):
        release = sfumato.release(table, Mondrian(k=3))
        assert publish(release, tmp_path / f"out.{extension}", original=table).audit.passed


def test_truth_values_have_no_order_and_a_classifier_can_be_trained_on_them():
    table = table_of(repeated([True, False, None], pa.bool_()), Kind.NUMERIC)

    assert sfumato.release(table, Mondrian(k=3)).manifest.recodings[0]["kind"] == "categorical"
    assert 0 <= cross_validated_utility(table, Mondrian(k=3), n_folds=2).error <= 1


def naive_moment(text):
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


minutes = st.datetimes(datetime(1999, 12, 31), datetime(2000, 1, 2)).map(lambda t: t.replace(second=0, microsecond=0))
zones = st.sampled_from(["", "Z", "+00:00", "+0200", "+02:00", "-1130"])


@st.composite
def spelled_moments(draw):
    moment, zone = draw(minutes), draw(zones)
    shown = moment.isoformat(draw(st.sampled_from("T ")), timespec="minutes")
    return shown + draw(st.sampled_from(["", ":00", ":00.000", ":30", ":30.5", ":30.500"])) + zone


@given(st.lists(spelled_moments(), min_size=1, max_size=12, unique=True))
def test_the_audit_places_dates_by_moment_whatever_their_spelling(texts):
    places = contained(pa.array(texts), pa.array(texts), Kind.DATE).places

    moments = [naive_moment(text) for text in texts]
    in_order = sorted(set(moments))
    assert places.tolist() == [in_order.index(moment) for moment in moments]


def test_the_audit_leaves_days_that_no_calendar_has_as_they_are():
    texts = ["0001-01-01 00:30+01:00", "2020-13-40 10:00+01:00", "0001-01-01 00:30"]

    assert sorted(contained(pa.array(texts), pa.array(texts), Kind.DATE).places.tolist()) == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [700, 1010, -700])
def test_the_unit_of_a_large_or_tiny_target_changes_nothing(exponent):
    ill = np.random.default_rng(5).normal(size=N_ROWS)
    cells = repeated(["a", "b", "c", "d"])

    plain, scaled = (
        sfumato.release(table_of(cells, Kind.CATEGORICAL, ill=target), ErrorRiskTree(k=3)).table
        for target in (ill, np.ldexp(ill, exponent))
    )

    assert plain.keep(["q", "age"]).to_arrow().equals(scaled.keep(["q", "age"]).to_arrow())


def test_squares_of_large_targets_are_finite_and_of_small_ones_exact():
    assert np.isfinite(Variance().statistics([1.7e308, -1.7e308, 1e308])).all()
    assert Variance().statistics([1e-200, 3e-200])[:, 2].min() > 0
    assert Variance().statistics([1.0, 3.0]).tolist() == [[1, -1, 1], [1, 1, 1]]
    assert Variance().statistics([]).shape == (0, 3)


@pytest.mark.parametrize("wrong", [float("inf"), float("-inf"), float("nan")])
def test_a_target_that_is_no_finite_number_is_refused_by_its_column(wrong):
    ill = [wrong, wrong, *map(float, range(N_ROWS - 2))]

    with pytest.raises(SchemaError, match=r"column 'ill': .* infinite or not-a-number in 2 rows"):
        sfumato.release(table_of(repeated(["a", "b"]), Kind.CATEGORICAL, ill=ill), ErrorRiskTree(k=3))


def test_a_tree_splits_numbers_whose_distance_is_no_number():
    numbers = np.array([-1.7e308, -1.6e308, 1.6e308, 1.7e308])
    column = TreeColumn(np.repeat(np.arange(4, dtype=np.int32), 5), 4, numbers)
    criterion = Entropy(2)

    tree = grow([column], criterion.statistics([0] * 10 + [1] * 10), criterion, min_leaf=2)

    assert tree.statistics.tolist() == [[10, 10], [10, 0], [0, 10]]
    assert (tree.threshold[0], tree.cut[0]) == (-1.6e308, 0.0)
