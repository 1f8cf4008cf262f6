"""A column that is sensitive and a quasi-identifier: what is promised of it, against brute force over the rows."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato import Mondrian, release
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.verify import audit_release
from sfumato.counting.counts import DenseCounts
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, LDiversity, TCloseness
from sfumato.mechanisms.auto import Automatic
from sfumato.mechanisms.both_roles import GroupedValues, group_values
from sfumato.mechanisms.constraints import Promised
from sfumato.mechanisms.lattice.local import LocalRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sizes import examples

BOTH = Role.SENSITIVE_QUASI_IDENTIFIER


def _table(rows, kind=Kind.CATEGORICAL, others=(Kind.NUMERIC, Kind.CATEGORICAL)):
    names = ["age", "job"][: len(others)]
    cells = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    cells["ill"] = [row[-1] for row in rows]
    schema = [Column(name, kind=own) for name, own in zip(names, others, strict=True)]
    arrow = pa.table({name: pa.array([None if v is None else str(v) for v in own]) for name, own in cells.items()})
    return Table.from_arrow(arrow, Schema.of([*schema, Column("ill", BOTH, kind)]))


def _values(table, name):
    column = table[name]
    return [column.values[int(code)].as_py() for code in column.codes]


def _most_groups(counts, k):
    """Try every division of values in their order into groups of neighbours."""
    n = len(counts)
    best = 0
    for n_cuts in range(n):
        for cuts in combinations(range(1, n), n_cuts):
            ends = [0, *cuts, n]
            if all(sum(counts[a:b]) >= k for a, b in pairwise(ends)):
                best = max(best, n_cuts + 1)
    return best


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7), st.integers(1, 4))
def test_no_division_of_neighbours_has_more_groups(counts, k):
    of_value, rows = group_values(np.array([counts]), k)
    used = [int(n) for n in rows[0] if n]
    assert sum(used) == sum(counts)
    assert (np.diff(of_value[0]) >= 0).all()
    if sum(counts) >= k:
        assert min(used) >= k
        assert len(used) == _most_groups(counts, k)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(2, 3),
)
def test_what_two_parts_satisfy_their_union_satisfies(counts, k, l):  # noqa: E741
    one, other = np.array(counts, dtype=np.int64).T
    asked = GroupedValues(k, Promised(LDiversity(l, "s", ())))
    of_one, of_other, of_both = asked.are_kept_by(DenseCounts.alone(np.stack([one, other, one + other])))

    assert of_both or not (of_one and of_other)


def _levels(values):
    """Distinct, entropy and largest share of a bag of values, and its counts from the most frequent on."""
    counts = sorted(Counter(values).values(), reverse=True)
    shares = [n / sum(counts) for n in counts]
    return len(counts), math.exp(-sum(p * math.log(p) for p in shares)), shares[0], counts


ROWS = st.lists(
    st.tuples(st.integers(20, 29), st.sampled_from("abc"), st.sampled_from(["cold", "flu", "hiv", "gout", None])),
    min_size=4,
    max_size=40,
)
PROMISES = st.sampled_from(
    [
        {"l": 2},
        {"l": 3},
        {"l": 2.0, "variant": "entropy"},
        {"l": 2, "variant": "recursive", "c": 2.0},
        {"alpha": 0.6},
        {"l": 2, "split": "median"},
    ]
)


@pytest.mark.slow
@examples(60)
@given(ROWS, st.integers(2, 3), PROMISES, st.sampled_from([Kind.CATEGORICAL, Kind.NUMERIC]))
def test_both_attackers_by_brute_force(rows, k, promise, kind):
    """Count over the released rows and the original values, by dictionaries: k with the column, l without it."""
    if kind is Kind.NUMERIC:
        number = {"cold": 1, "flu": 7, "hiv": 30, "gout": 31, None: None}
        rows = [(a, b, number[c]) for a, b, c in rows]
        assume(any(c is not None for *_, c in rows))  # a column without any number is no numeric one
    table = _table(rows, kind)
    try:
        made = build_mechanism("mondrian", {"k": k, **promise}).release(table).table
    except PrivacyNotAchievableError:
        return
    cells = {name: _values(made, name) for name in ("age", "job", "ill")}
    every = Counter(zip(cells["age"], cells["job"], cells["ill"], strict=True))
    assert min(every.values()) >= k
    classes: dict[tuple[object, object], list[int]] = {}
    for i, key in enumerate(zip(cells["age"], cells["job"], strict=True)):
        classes.setdefault(key, []).append(i)
    original = _values(table, "ill")
    for members in classes.values():
        for seen in ([original[i] for i in members], [cells["ill"][i] for i in members]):
            distinct, entropy, share, counts = _levels(seen)
            if "alpha" in promise:
                assert share <= promise["alpha"] + 1e-9
            elif promise.get("variant") == "entropy":
                assert entropy >= promise["l"] - 1e-9
            elif promise.get("variant") == "recursive":
                assert counts[0] < promise["c"] * sum(counts[int(promise["l"]) - 1 :])
            else:
                assert distinct >= promise["l"]
        of_cell: dict[object, set[object]] = {}
        for i in members:
            of_cell.setdefault(cells["ill"][i], set()).add(original[i])
        assert sum(map(len, of_cell.values())) == len({original[i] for i in members})  # no value in two cells


def _admissions(n_rows=600):
    from sfumato.datasets.admissions import admissions

    names = ["age", "sex", "postcode_area", "insurance", "discharge_diagnosis", "readmitted"]
    table = admissions(n_rows=n_rows).keep(names)
    return table.with_schema(table.schema.with_roles({"discharge_diagnosis": ["quasi-identifier", "sensitive"]}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [Mondrian(k=5, privacy=[LDiversity(2)]), Mondrian(k=5, split="score", privacy=[LDiversity(3)]), Automatic()],
)
def test_the_audit_confirms_what_is_promised(mechanism):
    table = _admissions()
    made = release(table, mechanism)
    kinds = [guarantee.kind for guarantee in made.manifest.promised()]
    assert kinds == ["k-anonymity", "l-diversity"]
    crowd, diversity = made.manifest.promised()
    assert "discharge_diagnosis" in crowd.columns
    assert "discharge_diagnosis" not in diversity.columns
    report = audit_release(made.table, made.manifest.to_dict(), AuditorHas(original=table, roles=True))
    assert report.passed
    assert any("exclude each other in every class" in check.message for check in report.checks)
    described = {entry["name"]: entry["role"] for entry in made.manifest.output["columns"]}
    assert described["discharge_diagnosis"] == "sensitive quasi-identifier"


def test_new_rows_get_the_cells_of_rows_like_them():
    table = _admissions(400)
    recoding = Mondrian(k=5, privacy=[LDiversity(2)]).recode(table)
    assert recoding.generalized(table).to_arrow().equals(recoding.recoded(table).to_arrow())


def test_k_alone_treats_the_column_as_any_quasi_identifier():
    table = _admissions()
    plain = table.with_schema(table.schema.with_roles({"discharge_diagnosis": "quasi-identifier"}))
    with_both, without = (Mondrian(k=5).release(own).table.to_arrow() for own in (table, plain))
    assert with_both.equals(without)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [GlobalRecoder(k=5), LocalRecoder(k=5), Mondrian(k=5, strict=False)])
def test_other_recoders_promise_k_over_it(mechanism):
    table = _admissions(400)
    made = release(table, mechanism)
    assert audit_release(made.table, made.manifest.to_dict(), AuditorHas(original=table)).passed
    assert "discharge_diagnosis" in made.manifest.promised()[0].columns


@pytest.mark.parametrize(
    ("mechanism", "named"),
    [
        (Mondrian(k=5, privacy=[TCloseness(0.3)]), "t must be left out"),
        (Mondrian(k=5, privacy=[BetaLikeness(1.0)]), "beta must be left out"),
        (Mondrian(k=5, privacy=[DeltaDisclosure(1.0)]), "delta must be left out"),
        (Mondrian(k=5, strict=False, privacy=[LDiversity(2)]), "strict must be true"),
        (GlobalRecoder(k=5, privacy=[LDiversity(2)]), "l must be left out"),
        (GlobalRecoder(k=5, privacy=[TCloseness(0.2)]), "t must be left out"),
        (LocalRecoder(k=5, privacy=[AlphaKAnonymity(0.5)]), "alpha must be left out"),
    ],
)
def test_what_cannot_be_promised_is_refused_in_one_sentence(mechanism, named):
    with pytest.raises(InvalidParameterError, match=named) as caught:
        release(_admissions(200), mechanism)
    assert "discharge_diagnosis" in str(caught.value)


def test_every_other_mechanism_refuses_the_table_and_names_the_column():
    able = {name for name, info in registered_mechanisms().items() if info.build.takes_both_roles}
    assert able == {"auto", "mondrian", "global-recoding", "local-recoding"}
    table = _admissions(100)
    for name in set(registered_mechanisms()) - able:
        with pytest.raises(SchemaError, match=f"{name} cannot treat a column as both") as caught:
            release(table, build_mechanism(name, {}))
        assert "discharge_diagnosis" in str(caught.value)


@examples(40)
@given(ROWS, st.sampled_from([{"l": 2}, {"l": 2, "variant": "recursive", "c": 3.0}, {"alpha": 0.7}]))
def test_another_sensitive_column_is_diverse_in_every_class_of_all(rows, promise):
    """Classes of the other column are over all quasi-identifiers, the one that is sensitive too among them."""
    table = _table(rows)
    table = table.with_schema(table.schema.with_roles({"job": "sensitive"}))
    try:
        made = build_mechanism("mondrian", {"k": 2, **promise}).release(table)
    except PrivacyNotAchievableError:
        return
    wanted = {own.sensitive: own.columns for own in made.manifest.promised() if own.kind != "k-anonymity"}
    assert wanted == {"job": ("age", "ill"), "ill": ("age",)}
    cells = {name: _values(made.table, name) for name in ("age", "ill")}
    for name, over in wanted.items():
        seen = _values(table, name)
        classes: dict[tuple[object, ...], list[object]] = {}
        for i, key in enumerate(zip(*(cells[own] for own in over), strict=True)):
            classes.setdefault(key, []).append(seen[i])
        for values in classes.values():
            assert len(values) >= 2
            distinct, _, share, counts = _levels(values)
            if "alpha" in promise:
                assert share <= promise["alpha"] + 1e-9
            elif "c" in promise:
                assert counts[0] < promise["c"] * sum(counts[1:])
            else:
                assert distinct >= 2


@pytest.mark.slow
def test_a_second_column_of_both_roles_is_refused():
    table = _admissions(200)
    table = table.with_schema(table.schema.with_roles({"insurance": BOTH}))
    with pytest.raises(SchemaError, match="values of one can be protected"):
        release(table, Mondrian(k=5, privacy=[LDiversity(2)]))
    made = release(table, Mondrian(k=5, privacy=[LDiversity(2, sensitive="discharge_diagnosis")]))
    assert audit_release(made.table, made.manifest.to_dict(), AuditorHas(original=table)).passed


@pytest.mark.slow
def test_auto_protects_a_plain_sensitive_column_beside_it():
    table = _admissions(400)
    table = table.with_schema(table.schema.with_roles({"insurance": "sensitive"}))
    made = release(table, Automatic())
    assert [own.kind for own in made.manifest.promised()] == ["k-anonymity", "l-diversity", "l-diversity"]
    assert audit_release(made.table, made.manifest.to_dict(), AuditorHas(original=table)).passed


def test_the_only_quasi_identifier_is_refused():
    table = _table([("flu",), ("flu",), ("cold",), ("cold",)], others=())
    with pytest.raises(SchemaError, match="is the only quasi-identifier"):
        Mondrian(k=2, privacy=[LDiversity(2)]).release(table)


def test_both_lists_of_the_command_line_give_the_combined_role():
    from sfumato.cli.options.tables import given_roles

    lists = {"target": None, "person": None, "identifiers": (), "other": ()}
    assert given_roles({**lists, "quasi_identifiers": ("age,ill",), "sensitive": ("ill",)}) == {
        "age": Role.QUASI_IDENTIFIER,
        "ill": BOTH,
    }
    with pytest.raises(InvalidParameterError, match="only quasi-identifier and sensitive may be combined"):
        given_roles({**lists, "quasi_identifiers": (), "sensitive": ("ill",), "other": ("ill",)})


def test_words_and_lists_give_the_combined_role():
    schema = Schema.of([Column("age"), Column("ill")])
    for given_as in ("sensitive quasi-identifier", ["sensitive", "quasi-identifier"], BOTH):
        assert schema.with_roles({"ill": given_as})["ill"].role is BOTH
    with pytest.raises(SchemaError, match="do not go together"):
        schema.with_roles({"ill": ["sensitive", "target"]})
    described = schema.with_roles({"ill": BOTH})
    assert described.names(Role.QUASI_IDENTIFIER) == ("age", "ill")
    assert described.names(Role.SENSITIVE) == ("ill",)
    assert described.published_unchanged() == ()


def test_a_project_file_holds_the_combined_role(tmp_path):
    from sfumato.project.file import load_project

    (tmp_path / "d.csv").write_text("age,ill\n1,a\n1,b\n", encoding="utf-8")
    text = '[data]\npath = "d.csv"\n[columns]\nage = { role = "quasi-identifier" }\n'
    (tmp_path / "sfumato.toml").write_text(text + 'ill = { role = "sensitive quasi-identifier" }\n', encoding="utf-8")
    assert load_project(tmp_path / "sfumato.toml").read().schema["ill"].role is BOTH


def test_sets_of_features_hold_no_unchanged_copy_of_the_column():
    from sfumato.table.binarize import BinarizePlan, binarize

    made = binarize(_table([(30, "a", "flu"), (31, "b", "cold")]), BinarizePlan())
    assert "ill" not in made.companions.schema
