"""Mass linkage against a double loop over all pairs, the paper's Table 1 and releases of which the answer is known."""

import json
from datetime import date
from itertools import combinations
from math import inf, log2

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack.linkage import Linkage, generalized_columns, link, sweep
from sfumato.audit.reading import cells as bit_rows
from sfumato.datasets.admissions import admissions
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, ManifestError, SchemaError
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table

AGE, JOB = Column("age", kind=Kind.NUMERIC), Column("job")
GENERALIZED = {"age": AGE, "job": JOB}


def table(columns, **cells):
    types = {Kind.NUMERIC: pa.float64()}
    arrays = {
        c.name: pa.array(cells[c.name], types.get(c.kind, pa.string()) if cells[c.name] else pa.string())
        for c in columns
    }
    return Table.from_arrow(pa.table(arrays), Schema.of(columns))


def people(ages, jobs):
    return table([AGE, JOB], age=ages, job=jobs)


def public(ages, jobs, **others):
    columns = [Column("age"), JOB, *(Column(name, Role.SENSITIVE) for name in others)]
    return table(columns, age=ages, job=jobs, **others)


# --- the paper's Table 1 -------------------------------------------------------------------------------------------

FIVE = people([57, 61, 42, 29, 38], ["M", "M", "N", "N", "N"])
TIERED = public(["[42, 61]"] * 2 + ["[29, 61]"] + ["[29, 42]"] * 2, ["{M|N}"] * 3 + ["N"] * 2)


def test_tiered_cells_of_table_1_leave_at_least_three_candidates():
    found = link(FIVE, TIERED, ["age", "job"], columns=GENERALIZED, truth=range(5), k=3)

    assert found.candidates.tolist() == [3, 3, 5, 3, 3]
    assert found.is_true_candidate.all()
    assert found.summary()["by_confidence"] == [
        {"at_least": "1", "n_records": 0},
        {"at_least": "1/2", "n_records": 0},
        {"at_least": "1/3", "n_records": 4},
        {"at_least": "1/5", "n_records": 5},
        {"at_least": "1/10", "n_records": 5},
    ]


def test_information_of_table_1_is_that_of_the_widest_candidate():
    found = link(FIVE, TIERED, ["age", "job"], columns=GENERALIZED)

    assert found.granularity == pytest.approx([0.0] * 5)  # [29, 61] {M|N} is a candidate of everybody
    assert found.reidentification == pytest.approx([log2(3), log2(3), log2(5), log2(3), log2(3)])
    assert found.information == pytest.approx(found.reidentification)
    narrow = link(people([50], ["M"]), public(["[42, 61]", "[29, 42]"], ["{M|N}", "N"]), ["age"], columns=GENERALIZED)
    assert narrow.granularity == pytest.approx([-log2(19 / 32)])


def test_knowing_the_marital_status_alone_finds_fewer():
    found = link(FIVE, TIERED, ["job"], columns=GENERALIZED)

    assert found.candidates.tolist() == [3, 3, 5, 5, 5]


# --- a double loop over all pairs ----------------------------------------------------------------------------------

MISSING = "missing"
ages, jobs = st.integers(0, 6), st.sampled_from("abcd")


@st.composite
def age_cells(draw):
    """Text of a cell and what it stands for: a pair of bounds, with or without missing, or everything."""
    low, high, form = draw(ages), draw(ages), draw(st.sampled_from(["range", "or missing", "missing", "any"]))
    low, high = min(low, high), max(low, high)
    text = str(low) if low == high else f"[{low}, {high}]"
    if form == "any":
        return "*", None
    if form == "missing":
        return None, ((), True)
    return (f"{{{text}|\\N}}", ((low, high), True)) if form == "or missing" else (text, ((low, high), False))


@st.composite
def job_cells(draw):
    members, form = sorted(draw(st.sets(jobs, min_size=1))), draw(st.sampled_from(["set", "or missing", "any"]))
    if form == "any":
        return "*", None
    listed = [*members, *(["\\N"] if form == "or missing" else [])]
    return listed[0] if len(listed) == 1 else "{" + "|".join(listed) + "}", (members, form == "or missing")


def stands_for(value, cell, is_age):
    if cell is None:
        return True
    held, with_missing = cell
    if value is None:
        return with_missing
    return (len(held) > 0 and held[0] <= value <= held[-1]) if is_age else value in held


def share(cell, values, is_age):
    """P_j as documented; ``values`` is the whole domain."""
    if cell is None:
        return 1.0
    held, with_missing = cell
    extra = 1 / len(values) if with_missing else 0.0
    if not is_age:
        return min(1.0, len(held) / len(values) + extra)
    if not held:
        return extra
    numbers = [value for value in values if value != MISSING]
    span = max(numbers) - min(numbers)
    return min(1.0, max((held[1] - held[0]) / span if span else 0.0, 1 / len(values)) + extra)


def whole_domain(reference, cells):
    values = {MISSING if value is None else value for value in reference}
    for cell in cells:
        if cell is not None:
            values |= {*cell[0], *([MISSING] if cell[1] else [])}
    return values


def by_double_loop(known, shown):
    """Candidates (released row numbers) of each person, and the least granularity among them."""
    domains = [whole_domain([row[j] for row in known], [row[j] for row in shown]) for j in (0, 1)]
    result = []
    for person in known:
        rows = [
            i
            for i, row in enumerate(shown)
            if stands_for(person[0], row[0], True) and stands_for(person[1], row[1], False)
        ]
        bits = [-sum(log2(share(shown[i][j], domains[j], j == 0)) for j in (0, 1)) for i in rows]
        result.append((rows, min(bits, default=inf)))
    return result


@pytest.mark.slow
@given(
    known=st.lists(st.tuples(st.none() | ages, st.none() | jobs), min_size=1, max_size=8),
    shown=st.lists(st.tuples(age_cells(), job_cells(), st.sampled_from(["x", "y", "z"])), min_size=1, max_size=10),
    data=st.data(),
)
def test_linkage_equals_a_double_loop(known, shown, data):
    own = data.draw(st.lists(st.integers(-1, len(shown) - 1), min_size=len(known), max_size=len(known)))
    released = public([a[0] for a, _, _ in shown], [j[0] for _, j, _ in shown], ill=[ill for *_, ill in shown])
    reference = people([age for age, _ in known], [job for _, job in known])

    found = link(reference, released, ["age", "job"], columns=GENERALIZED, truth=own)

    expected = by_double_loop(known, [(a[1], j[1]) for a, j, _ in shown])
    assert found.candidates.tolist() == [len(rows) for rows, _ in expected]
    assert found.granularity == pytest.approx([bits for _, bits in expected])
    assert found.learned["ill"].tolist() == [len({shown[i][2] for i in rows}) == 1 for rows, _ in expected]
    assert found.is_true_candidate.tolist() == [row in rows for row, (rows, _) in zip(own, expected, strict=True)]
    assert found.n_expected == pytest.approx(
        sum(1 / len(rows) for row, (rows, _) in zip(own, expected, strict=True) if row in rows)
    )


@given(st.lists(st.integers(0, 40), min_size=1, max_size=150), st.lists(st.integers(0, 40), max_size=150), st.data())
def test_many_groups_in_small_portions_equal_counting(known, shown, data):
    """More groups than bits of a word, a column that is too large to keep, few records at a time."""
    ill = data.draw(st.lists(st.integers(0, 9), min_size=len(shown), max_size=len(shown)))
    id_column = [Column("id", kind=Kind.NUMERIC)]
    released = table([*id_column, Column("ill", Role.SENSITIVE, Kind.NUMERIC)], id=shown, ill=ill)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bit_rows, "_WHOLE_WORDS", 0)
        patch.setattr(bit_rows, "CHUNK_WORDS", 3)
        found = link(table(id_column, id=known), released, ["id"], columns={})

    assert found.candidates.tolist() == [shown.count(value) for value in known]
    values = [{i for value, i in zip(shown, ill, strict=True) if value == person} for person in known]
    assert found.learned["ill"].tolist() == [len(held) == 1 for held in values]


# --- releases of which the answer is known -------------------------------------------------------------------------


def test_unchanged_release_gives_away_exactly_the_unique_rows():
    stays = admissions(n_rows=300)
    names = ["age", "sex", "postcode_area"]
    found = link(stays, stays, names, columns={}, truth=range(300))

    rows = list(zip(*(stays[name].cells().to_pylist() for name in names), strict=True))
    is_unique = [rows.count(row) == 1 for row in rows]
    assert 0 < sum(is_unique) < 300
    assert (found.confidence == 1).tolist() == is_unique
    assert found.summary()["truth"]["n_reidentified_rightly"] == sum(is_unique)
    assert found.summary()["truth"]["n_own_row_among_candidates"] == 300


@pytest.mark.slow
@pytest.mark.parametrize("generalization", ["tiered", "uniform"])
@pytest.mark.parametrize("k", [3, 7])
def test_release_of_promised_crowds_never_exceeds_one_over_k(generalization, k):
    stays = admissions(n_rows=300)
    release = ErrorRiskTree(k=k, generalization=generalization).release(stays)
    names = stays.schema.names(Role.QUASI_IDENTIFIER)
    columns = generalized_columns(release.manifest.recodings)

    found = link(stays, release.table, names, columns=columns, truth=range(300), k=k)

    assert found.confidence.max() <= 1 / k
    assert found.is_true_candidate.all()
    assert found.summary()["highest_confidence"] == found.confidence.max() > 0


def test_people_who_are_not_in_the_release_have_no_candidate():
    found = link(people([99, 30], ["a", "z"]), public(["30"], ["a"]), ["age", "job"], columns=GENERALIZED)

    assert found.candidates.tolist() == [0, 0]
    assert found.confidence.tolist() == [0.0, 0.0]
    assert found.granularity.tolist() == found.information.tolist() == [inf, inf]
    summary = found.summary()
    assert summary["n_without_candidates"] == 2
    assert summary["information_bits"] is None
    json.dumps(summary, allow_nan=False)


def test_missing_matches_only_cells_that_may_be_missing():
    cells = ["[1, 9]", r"{[1, 9]|\N}", "*", None]
    found = link(people([None, 5], ["a", "a"]), public(cells, ["a"] * 4), ["age"], columns=GENERALIZED)

    assert found.candidates.tolist() == [3, 3]  # the person without an age fits the last three, the other the first


def test_column_without_any_value_is_one_value():
    found = link(people([None, None], ["a", "a"]), public([None], ["a"]), ["age"], columns=GENERALIZED)

    assert found.candidates.tolist() == [1, 1]
    assert found.granularity.tolist() == [0.0, 0.0]


def test_tables_without_rows():
    nobody, nothing = people([], []), public([], [], ill=[])

    assert link(nobody, TIERED, ["age"], columns=GENERALIZED).summary()["n_records"] == 0
    assert link(FIVE, nothing, ["age", "job"], columns=GENERALIZED).candidates.tolist() == [0] * 5
    assert link(nobody, nothing, ["age"], columns=GENERALIZED).n_expected == 0


def test_numbers_match_whatever_their_spelling():
    reference = Table.from_arrow(pa.table({"age": [30, 40]}), Schema.of([AGE]))
    released = Table.from_arrow(pa.table({"age": ["30.0", " 30", "40", "4e1"]}), Schema.of([AGE]))

    assert link(reference, released, ["age"], columns={}).candidates.tolist() == [2, 2]
    assert link(released, reference, ["age"], columns={}).candidates.tolist() == [1, 1, 1, 1]

    texts = Table.from_arrow(pa.table({"age": ["30", "40.00"]}), Schema.of([AGE]))
    assert link(texts, released, ["age"], columns={}).candidates.tolist() == [2, 2]


def test_missing_is_a_value_of_the_domain_where_a_cell_names_it():
    named = link(people([1, 2], ["a", "b"]), public(["1"], [r"{a|\N}"]), ["job"], columns=GENERALIZED)
    unnamed = link(people([1, 2], ["a", "b"]), public(["1", "2"], ["a", "*"]), ["age", "job"], columns=GENERALIZED)

    assert named.granularity == pytest.approx([-log2(2 / 3), inf])
    assert unnamed.granularity == pytest.approx([2.0, 1.0])  # half of both columns; half of the ages and all jobs


def test_cells_of_an_unchanged_column_have_no_syntax():
    texts = ["a,b", "[1, 2]", "*", "{a|b}"]
    both = table([JOB], job=texts)

    assert link(both, both, ["job"], columns={}).candidates.tolist() == [1, 1, 1, 1]


def test_ordered_values_follow_their_domain_and_strangers_match_anything_only():
    grades = Column("grade", kind=Kind.ORDERED, domain=("low", "mid", "high"))
    reference = table([Column("grade")], grade=["low", "mid", "high", "huge"])
    released = table([Column("grade")], grade=["[low, mid]", "[mid, high]", "*"])

    found = link(reference, released, ["grade"], columns={"grade": grades})

    assert found.candidates.tolist() == [2, 3, 2, 1]


def test_dates_are_ranges_too():
    day = Column("day", kind=Kind.DATE)
    reference = table([Column("day")], day=["2020-01-01", "2020-01-05", "2021-06-01"])
    released = table([Column("day")], day=["[2020-01-01, 2020-01-05]", "[2020-01-05, 2020-12-31]"])

    found = link(reference, released, ["day"], columns={"day": day})

    assert found.candidates.tolist() == [1, 2, 0]
    n_days, n_all = (date(2020, 12, 31) - date(2020, 1, 5)).days, (date(2021, 6, 1) - date(2020, 1, 1)).days
    assert found.granularity == pytest.approx([log2(4), -log2(n_days / n_all), inf])  # 4 days of 517: one value's share


def test_features_of_a_binary_release_match_by_name():
    matrix = as_binary_matrix(np.array([[1, 0], [1, 1], [0, 1]]))
    companions = table([Column("ill", Role.TARGET)], ill=["y", "y", "n"])
    released = BinaryTable(matrix, (Feature("smokes", "smokes"), Feature("drinks", "drinks")), companions)
    reference = table([Column("smokes"), Column("drinks")], smokes=["1", "0"], drinks=["1", "1"])

    assert link(reference, released, ["smokes"], columns={}).learned["ill"].tolist() == [True, True]
    assert link(reference, released, ["smokes", "drinks"], columns={}).candidates.tolist() == [1, 1]
    assert link(released, released, ["smokes"], columns={}).candidates.tolist() == [2, 2, 1]


def test_known_column_is_not_said_to_be_learned():
    released = public(["30", "30"], ["a", "a"], ill=["y", "n"])

    assert link(released, released, ["age"], columns={}).summary()["n_learned"] == {"ill": 0}
    assert link(released, released, ["ill"], columns={}).summary()["n_learned"] == {}


# --- many sets of columns ------------------------------------------------------------------------------------------


def test_sweep_takes_all_small_sets_and_grows_the_best():
    stays = admissions(n_rows=200)
    names = ["age", "sex", "postcode_area", "insurance", "marital_status"]
    seen = []

    summaries = sweep(stays, stays, names, columns={}, up_to=2, progress=lambda *step: seen.append(step))

    sets = [tuple(summary["background"]) for summary in summaries]
    assert sets[:15] == [*combinations(names, 1), *combinations(names, 2)]
    assert [len(chosen) for chosen in sets[15:]] == [3, 4, 5]
    found = {chosen: link(stays, stays, chosen, columns={}) for size in (2, 3) for chosen in combinations(names, size)}
    success = {chosen: (linkage.n_reidentified, linkage.n_expected) for chosen, linkage in found.items()}
    pair = max(combinations(names, 2), key=success.get)
    assert sets[15] == max((c for c in combinations(names, 3) if set(pair) < set(c)), key=success.get)
    assert summaries[-1] == link(stays, stays, names, columns={}).summary()
    assert seen[-1] == (21, 21, "matching")
    assert len(seen) == 21


@pytest.mark.parametrize(("up_to", "n_sets"), [(0, 1), (1, 3), (2, 3), (9, 3)])
def test_sweep_of_two_columns(up_to, n_sets):
    summaries = sweep(FIVE, TIERED, ["age", "job"], columns=GENERALIZED, up_to=up_to, k=3)

    assert len(summaries) == n_sets
    assert summaries[-1]["background"] == ["age", "job"]


def test_more_columns_never_leave_more_candidates():
    for size in (1, 2):
        for names in combinations(["age", "sex", "insurance"], size):
            stays = admissions(n_rows=100)
            fewer = link(stays, stays, names, columns={}).candidates
            assert (link(stays, stays, ["age", "sex", "insurance"], columns={}).candidates <= fewer).all()


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", [[], ["age", "age"]])
def test_background_must_be_distinct_columns(background):
    with pytest.raises(InvalidParameterError, match="background"):
        link(FIVE, TIERED, background, columns=GENERALIZED)


def test_missing_columns_are_named_with_their_table():
    with pytest.raises(ColumnNotFoundError, match=r"'jobs'.*the reference table.*'job'"):
        link(FIVE, TIERED, ["jobs"], columns=GENERALIZED)
    with pytest.raises(ColumnNotFoundError, match=r"'job'.*the release"):
        link(FIVE, TIERED.keep(["age"]), ["job"], columns=GENERALIZED)


@pytest.mark.parametrize("cell", ["[29, 42", "{a|b", "[42, 29]", "[old, older]", "secret"])
def test_unreadable_cells_are_refused_and_not_shown(cell):
    with pytest.raises(SchemaError, match="column 'age': the release has cells that are neither") as refused:
        link(FIVE, public([cell], ["M"]), ["age"], columns=GENERALIZED)

    assert cell not in str(refused.value)


def test_dates_of_the_reference_that_are_not_iso_are_refused_and_not_shown():
    day = {"day": Column("day", kind=Kind.DATE)}
    released = table([Column("day")], day=["[1960-01-01, 1965-12-31]", r"{[1966-01-01, 1970-12-31]|\N}"])
    texts = table([Column("day")], day=["1960-02-11", "11.02.1960", "1961", None, " 1967-01-01 "])

    with pytest.raises(SchemaError, match="'day': the release has dates here, but 2 distinct values") as refused:
        link(texts, released, ["day"], columns=day)
    assert "1961" not in str(refused.value)
    assert "11.02" not in str(refused.value)
    years = table([Column("day")], day=pa.array([1961, 1967]))
    with pytest.raises(SchemaError, match="but 2 distinct values of the reference are none"):
        link(years, released, ["day"], columns=day)


def test_dates_of_the_reference_that_are_iso_texts_or_dates_are_read():
    day = {"day": Column("day", kind=Kind.DATE)}
    released = table([Column("day")], day=["[1960-01-01, 1965-12-31]", r"{[1966-01-01, 1970-12-31]|\N}"])
    texts = table([Column("day")], day=["1960-02-11", None, " 1967-01-01 ", "1980-01-01"])
    typed = table([Column("day")], day=pa.array([date(1960, 2, 11), None, date(1967, 1, 1), date(1980, 1, 1)]))

    assert link(texts, released, ["day"], columns=day).candidates.tolist() == [1, 1, 1, 0]
    assert link(typed, released, ["day"], columns=day).candidates.tolist() == [1, 1, 1, 0]


def test_texts_in_a_numeric_column_of_the_reference_are_refused_and_not_shown():
    reference = table([Column("age")], age=["42", "secret", None])

    with pytest.raises(SchemaError, match="1 distinct values of the reference are none") as refused:
        link(reference, TIERED, ["age"], columns=GENERALIZED)

    assert "secret" not in str(refused.value)


def test_infinite_numbers_have_no_place_in_a_range():
    with pytest.raises(SchemaError, match="column 'age': has infinite numbers"):
        link(people([inf], ["M"]), TIERED, ["age"], columns=GENERALIZED)


@pytest.mark.parametrize("truth", [[0, 1], [0, 1, 2, 3, 5], [0, 1, 2, 3, -2], [0.5] * 5, [[0, 1, 2, 3, 4]]])
def test_truth_must_fit_the_tables(truth):
    with pytest.raises(InvalidParameterError, match="truth"):
        link(FIVE, TIERED, ["age"], columns=GENERALIZED, truth=truth)


@pytest.mark.parametrize("up_to", [-1, 1.5, True, None])
def test_size_of_sets_must_be_a_whole_number(up_to):
    with pytest.raises(InvalidParameterError, match="up_to"):
        sweep(FIVE, TIERED, ["age"], columns=GENERALIZED, up_to=up_to)


def test_sweep_of_too_many_sets_is_refused_before_anything_is_read():
    with pytest.raises(InvalidParameterError, match="5,000 sets"):
        sweep(FIVE, TIERED, [f"c{i}" for i in range(100)], columns={}, up_to=2)


@pytest.mark.parametrize(
    "entry", [{"rule": "generalized"}, {"rule": "generalized", "name": "a", "kind": "odd"}, "text"]
)
def test_broken_recodings_are_refused(entry):
    with pytest.raises(ManifestError, match="recoded"):
        generalized_columns([entry])


def test_recodings_of_other_rules_are_left_out():
    entries = [{"name": "old", "column": "age", "rule": "interval", "above": 60.0}]

    assert generalized_columns(entries) == {}


def test_repr_tells_counts_only():
    found = Linkage(("age",), 3, np.array([1, 2]), np.array([0.5, 1.0]))

    assert repr(found) == "Linkage(1 columns, 1 of 2 records)"
