"""Columns that are prepared at the door: each operation against its definition, and what is refused."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import SchemaError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.preparing.declared import Preparation, preparations_of_entries
from sfumato.table.preparing.keyed import PreparationKeys
from sfumato.table.preparing.prepared import prepared

KEYS = PreparationKeys(bytes(32), bytes(range(32)))


def table_of(cells, **described):
    columns = [Column(name, *described.get(name, (Role.QUASI_IDENTIFIER, Kind.CATEGORICAL))) for name in cells]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def done(cells, asked, keys=KEYS, **described):
    """Prepare columns and give their cells, row by row."""
    wanted = [Preparation.of(name, written) for name, written in asked.items()]
    return prepared(table_of(cells, **described), wanted, keys).to_arrow().to_pydict()


NUMBERS = st.decimals(min_value=-1000, max_value=1000, allow_nan=False, places=3)


class TestNumbers:
    @given(
        numbers=st.lists(st.one_of(st.none(), NUMBERS), min_size=1, max_size=20),
        step=st.sampled_from(["0.1", "0.25", "1", "7", "100"]),
        bounds=st.sampled_from([(None, None), (-3, 4), (0, None), (None, 2)]),
    )
    def test_text_follows_the_definition(self, numbers, step, bounds):
        low, high = (None if b is None else b * Fraction(step) for b in bounds)
        asked = {"round": float(step)}
        asked |= {} if low is None else {"bottom": float(low)}
        asked |= {} if high is None else {"top": float(high)}
        texts = [None if n is None else str(n) for n in numbers]
        got = done({"n": pa.array(texts, pa.string())}, {"n": asked}, n=(Role.SENSITIVE, Kind.NUMERIC))["n"]
        for number, text in zip(numbers, got, strict=True):
            if number is None:
                assert text is None
                continue
            clipped = Fraction(number)
            clipped = clipped if low is None else max(clipped, low)
            clipped = clipped if high is None else min(clipped, high)
            found = Fraction(text)
            assert found % Fraction(step) == 0
            assert abs(found - clipped) * 2 <= Fraction(step)
            if abs(found - clipped) * 2 == Fraction(step):
                assert abs(found) > abs(clipped)  # a half goes away from zero
            assert text == str(Decimal(text).normalize().__format__("f"))

    def test_types_stay_where_they_can(self):
        cells = {"n": pa.array([1, 149, 151, None], pa.int32())}
        table = prepared(
            table_of(cells, n=(Role.SENSITIVE, Kind.NUMERIC)), [Preparation.of("n", {"round": 100, "top": 100})]
        )
        assert table["n"].values.type == pa.int32()
        assert table.to_arrow().column("n").to_pylist() == [0, 100, 100, None]
        assert done({"n": [1, 2]}, {"n": {"round": 2.5}}, n=(Role.OTHER, Kind.NUMERIC))["n"] == [0.0, 2.5]
        assert done({"n": [0.25, 0.1]}, {"n": {"round": 0.1}}, n=(Role.OTHER, Kind.NUMERIC))["n"] == [0.3, 0.1]

    def test_spellings_of_a_number_become_one(self):
        got = done({"n": ["1e2", "100.0", "250"]}, {"n": {"top": 100}}, n=(Role.OTHER, Kind.NUMERIC))
        assert got["n"] == ["100", "100", "100"]

    def test_infinite_numbers_are_refused_without_a_cell(self):
        with pytest.raises(SchemaError, match="infinite or out of range") as caught:
            done({"n": ["1", "1e999"]}, {"n": {"round": 1}}, n=(Role.OTHER, Kind.NUMERIC))
        assert "999" not in str(caught.value)


class TestMask:
    @given(
        texts=st.lists(st.text("abcß1é ", min_size=1, max_size=8), min_size=1, max_size=8),
        first=st.integers(0, 4),
        last=st.integers(0, 4),
    )
    def test_no_text_is_shown_whole_and_length_stays(self, texts, first, last):
        asked = {"t": {"mask": {"keep_first": first, "keep_last": last}}}
        for text, shown in zip(texts, done({"t": texts}, asked)["t"], strict=True):
            assert len(shown) == len(text)
            assert "#" in shown
            n_kept = sum(a != "#" for a in shown)
            assert n_kept <= first + last
            if len(text) > first + last:
                assert shown[:first] == text[:first]
                assert text.endswith(shown[len(text) - last :])
            else:
                assert set(shown) == {"#"}

    def test_numbers_are_masked_as_text(self):
        table = table_of({"zip": pa.array([10115, 20095])}, zip=(Role.QUASI_IDENTIFIER, Kind.NUMERIC))
        made = prepared(table, [Preparation.of("zip", {"mask": {"keep_first": 2}})])
        assert made.to_arrow().column("zip").to_pylist() == ["10###", "20###"]
        assert made.schema["zip"].kind is Kind.CATEGORICAL

    def test_what_would_be_missing_is_refused(self):
        with pytest.raises(SchemaError, match="missing"):
            done({"t": ["ab", "c"]}, {"t": {"mask": {"character": "?"}}})


DAYS = st.dates(date(1900, 1, 1), date(2025, 12, 31))


class TestDates:
    @given(born=st.lists(DAYS, min_size=1, max_size=10), at=st.dates(date(2026, 1, 1), date(2030, 12, 31)))
    def test_age_is_the_number_of_birthdays(self, born, at):
        asked = {"born": {"age_at": at.isoformat()}}
        described = {"born": (Role.QUASI_IDENTIFIER, Kind.DATE)}
        as_text = done({"born": [day.isoformat() for day in born]}, asked, **described)["born"]
        as_dates = done({"born": pa.array(born)}, asked, **described)["born"]
        for day, text, number in zip(born, as_text, as_dates, strict=True):
            n_birthdays = sum(
                (at.month, at.day) >= (day.month, day.day) or year < at.year
                for year in range(day.year + 1, at.year + 1)
            )
            assert int(text) == number == n_birthdays

    def test_unborn_are_refused(self):
        with pytest.raises(SchemaError, match="after 2020-01-01"):
            done({"b": ["2020-01-02"]}, {"b": {"age_at": "2020-01-01"}}, b=(Role.OTHER, Kind.DATE))

    @given(
        rows=st.lists(st.tuples(st.sampled_from("abcd"), DAYS, DAYS), min_size=1, max_size=20),
        most=st.integers(1, 400),
    )
    def test_a_person_moves_alike_and_not_too_far(self, rows, most):
        cells = {"who": [r[0] for r in rows], "in": [str(r[1]) for r in rows], "out": [str(r[2]) for r in rows]}
        described = {
            "who": (Role.PERSON, Kind.CATEGORICAL),
            "in": (Role.OTHER, Kind.DATE),
            "out": (Role.OTHER, Kind.DATE),
        }
        got = done(cells, {"in": {"shift_days": most}, "out": {"shift_days": most}}, **described)
        moved = {}
        for i, (who, came, left) in enumerate(rows):
            first = date.fromisoformat(got["in"][i]) - came
            assert first == date.fromisoformat(got["out"][i]) - left
            assert abs(first.days) <= most
            assert moved.setdefault(who, first) == first

    def test_without_persons_rows_move_by_themselves(self):
        days = ["2020-06-01"] * 60
        got = done({"d": days}, {"d": {"shift_days": 30}}, d=(Role.OTHER, Kind.DATE))["d"]
        assert len(set(got)) > 20

    def test_times_keep_the_time_of_the_day(self):
        at = datetime(2020, 5, 17, 7, 30)
        got = done({"d": pa.array([at], pa.timestamp("us"))}, {"d": {"shift_days": 5}}, d=(Role.OTHER, Kind.DATE))["d"]
        assert (got[0] - at) % timedelta(days=1) == timedelta(0)

    def test_other_texts_are_refused_without_a_cell(self):
        with pytest.raises(SchemaError, match="no dates such as") as caught:
            done({"d": ["17.05.2020"]}, {"d": {"shift_days": 5}}, d=(Role.OTHER, Kind.DATE))
        assert "17.05" not in str(caught.value)


IDS = {"id": ["K1", "K2", None, "K3"], "sex": ["f", "m", "f", "m"]}


class TestPseudonyms:
    def test_one_for_each_value_and_no_identifier_any_more(self):
        table = table_of(IDS, id=(Role.IDENTIFIER, Kind.CATEGORICAL))
        made = prepared(table, [Preparation.of("id", {"pseudonym": True})], KEYS)
        found = made.to_arrow().column("id").to_pylist()
        assert found[2] is None
        assert len(set(found)) == 4
        assert made.schema["id"].role is Role.OTHER
        assert made.as_read["id"].cells().to_pylist() == IDS["id"]
        assert made.as_read.schema["id"].role is Role.IDENTIFIER

    def test_two_releases_join_for_nobody_without_the_key(self):
        described = {"id": (Role.IDENTIFIER, Kind.CATEGORICAL)}
        one, other = (done(IDS, {"id": {"pseudonym": True}}, keys=None, **described)["id"] for _ in range(2))
        assert not {p for p in one if p} & {p for p in other if p}
        same = done(IDS, {"id": {"pseudonym": True}}, **described)["id"]
        assert same == done(IDS, {"id": {"pseudonym": True}}, **described)["id"]

    def test_scope_project_is_the_same_for_every_release_of_it(self):
        asked, described = {"id": {"pseudonym": True, "scope": "project"}}, {"id": (Role.IDENTIFIER, Kind.CATEGORICAL)}
        keys = [PreparationKeys.ephemeral(bytes(range(32))) for _ in range(2)]
        assert done(IDS, asked, keys[0], **described) == done(IDS, asked, keys[1], **described)
        with pytest.raises(SchemaError, match="no project"):
            done(IDS, asked, PreparationKeys.ephemeral(), **described)

    def test_values_in_several_rows_are_refused(self):
        with pytest.raises(SchemaError, match="1 of its values stand in several rows") as caught:
            done({"id": ["K7", "K7", "K8"]}, {"id": {"pseudonym": True}}, id=(Role.IDENTIFIER, Kind.CATEGORICAL))
        assert "K7" not in str(caught.value)

    @pytest.mark.parametrize("role", [Role.PERSON, Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET])
    def test_only_identifiers_get_some(self, role):
        with pytest.raises(SchemaError, match=r"never released|for an identifier only"):
            done({"id": ["a", "b"]}, {"id": {"pseudonym": True}}, id=(role, Kind.CATEGORICAL))


class TestDeclared:
    @pytest.mark.parametrize(
        ("written", "said"),
        [
            ({}, "no table of operations"),
            ({"topp": 3}, "did you mean 'top'"),
            ({"top": "3"}, "no finite number"),
            ({"top": 5, "bottom": 5}, "not below its top"),
            ({"round": 0}, "not above 0"),
            ({"top": 99, "round": 10}, "no multiple"),
            ({"drop": True, "top": 3}, "several ways"),
            ({"drop": False}, "by nothing"),
            ({"mask": {"keep": 2}}, "no table of keep_first"),
            ({"mask": {"keep_first": -1}}, "whole number"),
            ({"mask": {"character": "**"}}, "not one that can be seen"),
            ({"shift_days": 0}, "from 1 to"),
            ({"age_at": "1.1.2026"}, "no date such as"),
            ({"top": 3, "scope": "project"}, "scope"),
            ({"pseudonym": True, "scope": "world"}, "none of release, project"),
        ],
    )
    def test_what_cannot_be_done_is_said(self, written, said):
        with pytest.raises(SchemaError, match=said):
            Preparation.of("c", written)

    @pytest.mark.parametrize(
        "written",
        [
            {"drop": True},
            {"top": 10, "bottom": -2.5, "round": 0.5},
            {"age_at": "2026-01-01", "top": 90, "round": 5},
            {"mask": {"keep_first": 2, "keep_last": 1, "character": "x"}},
            {"pseudonym": True, "scope": "project"},
            {"shift_days": 30},
        ],
    )
    def test_a_manifest_says_all_of_it(self, written):
        asked = Preparation.of("c", written)
        assert preparations_of_entries(asked.entries()) == (asked,)

    @pytest.mark.parametrize(
        ("asked", "kind"),
        [({"top": 3}, Kind.DATE), ({"shift_days": 3}, Kind.NUMERIC), ({"age_at": "2026-01-01"}, Kind.CATEGORICAL)],
    )
    def test_kinds_are_checked(self, asked, kind):
        values = ["2020-01-01"] if kind is Kind.DATE else ["1"]
        with pytest.raises(SchemaError, match="is of the kind"):
            done({"c": values}, {"c": asked}, c=(Role.OTHER, kind))

    def test_a_dropped_column_is_withheld(self):
        made = prepared(table_of({"a": ["x"], "b": ["y"]}), [Preparation.of("a", {"drop": True})])
        assert made.schema["a"].role is Role.IDENTIFIER

    def test_keys_are_not_shown(self):
        assert repr(KEYS) == "PreparationKeys()"
        table = prepared(
            table_of({"id": ["SECRET-1"]}, id=(Role.IDENTIFIER, Kind.CATEGORICAL)),
            [Preparation.of("id", {"pseudonym": True})],
            KEYS,
        )
        assert "SECRET" not in repr(table)
        assert "SECRET" not in repr(table.prepared)
        assert "00000000" not in repr(table.prepared)

    def test_rows_that_are_taken_know_what_they_were(self):
        table = table_of({"n": ["1", "22", "333"]}, n=(Role.OTHER, Kind.NUMERIC))
        made = prepared(table, [Preparation.of("n", {"top": 5})]).take(np.array([2, 0]))
        assert made.to_arrow().column("n").to_pylist() == ["5", "1"]
        assert made.as_read.to_arrow().column("n").to_pylist() == ["333", "1"]

    def test_a_table_is_prepared_once(self):
        made = prepared(table_of({"n": ["1"]}, n=(Role.OTHER, Kind.NUMERIC)), [Preparation.of("n", {"top": 5})])
        with pytest.raises(SchemaError, match="only once"):
            prepared(made, [Preparation.of("n", {"top": 3})])
