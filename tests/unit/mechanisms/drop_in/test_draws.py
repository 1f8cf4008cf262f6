"""Drop-in releases of drawn values: classes keep every column's values, rows lose which of them belong together."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.audit.original.copies import n_copies
from sfumato.audit.reading.columns import Columns
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.errors import AuditFailedError, InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.evaluation.treatment import treated
from sfumato.mechanisms.drop_in.copies import n_copied_rows
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release
from sfumato.publishing.publish import publish
from sfumato.report.in_short import in_short
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table

KEPT = ["age", "sex", "insurance", "postcode_area", "discharge_diagnosis", "readmitted"]
QUASI = ["age", "sex", "insurance", "postcode_area"]
BESIDE = ["discharge_diagnosis", "readmitted"]


def people(n_rows=400):
    return admissions(n_rows=n_rows).keep(KEPT)


def drawn(name="mondrian", table=None, max_copies=1.0, **settings):
    mechanism = build_mechanism(name, {"k": 5, **settings}).with_cells("draws", max_copies)
    return make_release(people() if table is None else table, mechanism)


def by_class(table, classes, names):
    """Count the values of some columns together, class by class, without any code of the mechanism."""
    rows = zip(*(table[name].cells().to_pylist() for name in names), strict=True)
    found = {}
    for number, row in zip(classes, rows, strict=True):
        found.setdefault(number, Counter())[row] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("auto", {"l": 1}),
        ("mondrian", {}),
        ("error-risk-tree", {"generalization": "uniform"}),
        ("global-recoding", {"max_suppressed_fraction": 0}),
        ("mdav", {}),
    ],
)
def test_classes_keep_the_values_of_every_column_and_what_is_no_quasi_identifier_together(name, settings):
    table = people()
    plain = make_release(table, build_mechanism(name, {"k": 5, **settings}).with_cells("ranges"))
    made = drawn(name, table, **settings)

    classes = np.unique(plain.table.codes(QUASI), axis=0, return_inverse=True)[1].reshape(-1).tolist()
    numbers = made.table["bucket"].cells().to_pylist()
    assert len(set(zip(classes, numbers, strict=True))) == len(set(classes)) == len(set(numbers))
    for names in (*([name] for name in QUASI), BESIDE):
        assert by_class(made.table, numbers, names) == {
            dict(zip(classes, numbers, strict=True))[number]: held
            for number, held in by_class(table, classes, names).items()
        }
    assert made.manifest.guarantees[0]["kind"] == "bucket-size"
    assert made.manifest.guarantees[0]["audited"] >= 5
    for name in QUASI:
        assert made.table[name].values.type == table[name].values.type


def test_places_do_not_depend_on_the_order_of_the_rows():
    table = people()
    other = table.take(np.random.default_rng(1).permutation(table.n_rows))

    assert drawn(table=table).data.to_arrow().equals(drawn(table=other).data.to_arrow())


cells = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3)), min_size=1, max_size=25)


@given(cells, cells)
def test_copies_are_those_of_the_definition_in_both_counts(before, after):
    schema = Schema.of([Column("job"), Column("age")])
    tables = [
        Table.from_arrow(
            pa.table({"job": pa.array([j for j, _ in rows], pa.string()), "age": [a for _, a in rows]}), schema
        )
        for rows in (before, after)
    ]
    by_hand = sum(before.count(row) == 1 for row in after)

    assert n_copied_rows(*tables, ["job", "age"]) == by_hand
    original, released = (Columns(table) for table in tables)
    assert n_copies(released, original, ["job", "age"], np.arange(len(before))) == by_hand


@pytest.mark.slow
def test_more_copies_than_allowed_are_refused_with_the_share_that_was_found():
    n_copied = n_copied_rows(people(), drawn().table, QUASI)
    assert 0 < n_copied < 400

    assert drawn(max_copies=n_copied / 400).manifest.perturbation["max_copied_fraction"] == n_copied / 400
    with pytest.raises(PrivacyNotAchievableError, match="only one of its kind") as refused:
        drawn(max_copies=(n_copied - 1) / 400)
    assert refused.value.best_level == pytest.approx(n_copied / 400, rel=0.01)


def test_shares_of_sensitive_values_hold_in_buckets():
    made = drawn(alpha=0.5, sensitive="discharge_diagnosis")

    kinds = {entry["kind"]: entry for entry in made.manifest.guarantees}
    assert kinds["bucket-diversity"]["l"] == 2
    assert kinds["bucket-diversity"]["audited"] >= 2
    shares = pd.crosstab(
        pd.Series(made.table["bucket"].cells().to_pylist()),
        pd.Series(made.table["discharge_diagnosis"].cells().to_pylist()),
        normalize="index",
    )
    assert shares.to_numpy().max() <= 0.5


def test_different_values_that_are_not_even_enough_are_refused():
    table = people()
    rare = ["rare" if i % 5 == 0 else "usual" for i in range(table.n_rows)]
    schema = Schema.of([*table.schema, Column("illness", Role.SENSITIVE)])
    columns = {name: table[name].cells() for name in KEPT} | {"illness": pa.array(rare)}
    table = Table.from_arrow(pa.table(columns), schema)

    with pytest.raises(PrivacyNotAchievableError, match="in more than 1/2 of a class") as refused:
        drawn(table=table, l=2, sensitive="illness")
    assert "alpha = 0.5" in refused.value.hint


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("mondrian", {"t": 0.4, "sensitive": "discharge_diagnosis"}, "promises k-anonymity, t-closeness"),
        ("gain-recoding", {"slicing": True, "threshold": 0.002, "max_suppressed_fraction": 0}, "promises k-anonymity"),
    ],
)
def test_promises_that_would_not_hold_are_refused(name, settings, said):
    with pytest.raises(InvalidParameterError, match=said):
        drawn(name, **settings)


def test_rows_left_out_both_roles_and_persons_are_refused():
    with pytest.raises(InvalidParameterError, match="rows out"):
        drawn("global-recoding", max_suppressed_fraction=0.3)
    with pytest.raises(SchemaError, match="sensitive and a quasi-identifier"):
        drawn(table=people().with_schema({"sex": Role.SENSITIVE_QUASI_IDENTIFIER}))
    table = people()
    numbers = pa.array([str(i // 2) for i in range(table.n_rows)])
    columns = {name: table[name].cells() for name in KEPT} | {"patient": numbers}
    several = Table.from_arrow(pa.table(columns), Schema.of([*table.schema, Column("patient", Role.PERSON)]))
    with pytest.raises(InvalidParameterError, match="promises k-anonymity, k-anonymity by persons"):
        drawn(table=several)


def test_what_is_asked_of_a_tree_s_groups_is_refused():
    with pytest.raises(InvalidParameterError, match="min_disclosure_bits, which is about the groups of the tree"):
        drawn("error-risk-tree", generalization="uniform", refine=False, min_disclosure_bits=0.01)


def test_a_limit_is_for_draws_only():
    with pytest.raises(InvalidParameterError, match="for cells that are draws"):
        build_mechanism("mondrian", {}).with_cells("values", 0.2)
    with pytest.raises(InvalidParameterError, match="a share from 0 to 1"):
        build_mechanism("mondrian", {}).with_cells("draws", 2)


def forged(release, **changes):
    return release.with_manifest(**changes)


@pytest.mark.slow
def test_the_audit_counts_copies_and_the_limit_by_itself(tmp_path):
    release, original = drawn(), people()
    risk = release.manifest.evidence["risk"]
    assert publish(release, tmp_path / "good.csv", original=original).audit.verdict == "confirmed"

    fewer = {**release.manifest.evidence, "risk": {**risk, "copied_row_fraction": 0.01}}
    lower = {**release.manifest.perturbation, "max_copied_fraction": 0.01}
    for changes, said in (
        ({"evidence": fewer}, "copied row fraction"),
        ({"perturbation": lower}, "stated limit is 0.01"),
    ):
        with pytest.raises(AuditFailedError, match=said):
            publish(forged(release, **changes), tmp_path / "bad.csv", original=original)


def test_values_moved_out_of_their_class_are_found(tmp_path):
    release, original = drawn(), people()
    codes = release.table["age"].codes.copy()
    buckets = release.table["bucket"].codes
    first, other = 0, int(np.flatnonzero((buckets != buckets[0]) & (codes != codes[0]))[0])
    codes[[first, other]] = codes[[other, first]]
    columns = {**release.table.columns, "age": type(release.table["age"])(codes, release.table["age"].values)}
    moved = Table(release.table.schema, columns, release.table.n_rows)

    with pytest.raises(AuditFailedError):
        publish(type(release)(moved, release.manifest), tmp_path / "bad.csv", original=original)


@pytest.mark.slow
def test_the_command_line_a_project_and_the_later_audit(tmp_path, capsys):
    people().to_arrow().to_pandas().to_csv(tmp_path / "people.csv", index=False)
    data, output = str(tmp_path / "people.csv"), str(tmp_path / "out.csv")
    roles = ["--target", "readmitted", "--sensitive", "discharge_diagnosis", "--quasi-identifiers", ",".join(QUASI)]
    flags = ["-m", "mondrian", "--cells", "draws"]

    assert run(["release", data, *roles, *flags, "--max-copies", "0.001", "-o", output]) == 4
    assert "--max-copies" in capsys.readouterr().err
    assert run(["release", data, *roles, *flags, "--max-copies", "1", "-o", output]) == 0
    assert run(["audit", output, "--manifest", f"{output}.manifest.json", "--original", data, *roles]) == 0
    manifest = json.loads((tmp_path / "out.csv.manifest.json").read_text(encoding="utf-8"))
    assert manifest["perturbation"]["max_copied_fraction"] == 1
    larger = [*flags, "--max-copies", "1", "--memory", "1GB", "-o", str(tmp_path / "larger.csv")]
    assert run(["release", data, *roles, *larger]) == 0  # which takes the rows into memory
    capsys.readouterr()
    kept = "".join(f'{name} = {{ role = "quasi-identifier" }}\n' for name in QUASI)
    columns = f'[columns]\n{kept}discharge_diagnosis = {{ role = "sensitive" }}\nreadmitted = {{ role = "target" }}\n'
    release = '[release]\nmechanism = "mondrian"\ncells = "draws"\nmax_copies = 1.0\noutput = "other.csv"\n'
    (tmp_path / "p.toml").write_text(f'[data]\npath = "people.csv"\n{columns}{release}', encoding="utf-8")
    assert run(["release", "--project", str(tmp_path / "p.toml")]) == 0


@pytest.mark.slow
def test_dealing_out_again_with_pandas_alone_keeps_classes(tmp_path):
    done = publish(drawn(), tmp_path / "out.csv", original=people())
    table = pd.read_csv(done.table_path)

    rng, again = np.random.default_rng(1), table.copy()
    for name in QUASI:
        again[name] = table.groupby("bucket")[name].transform(lambda own: rng.permutation(own.to_numpy()))

    for name in QUASI:
        held = [frame.groupby("bucket")[name].agg(sorted) for frame in (table, again)]
        assert held[0].equals(held[1])
    assert not again[QUASI].equals(table[QUASI])


def test_evaluation_trains_on_drawn_rows_without_the_bucket():
    table = people()
    done = treated(
        build_mechanism("mondrian", {"k": 5}).with_cells("draws", 1.0),
        table.take(np.arange(300)),
        table.take(np.arange(300, 400)),
    )

    assert "bucket" not in done.columns
    assert sfumato.release(table, "mondrian", k=5, cells="draws", max_copies=1.0).table.n_rows == 400


def test_groups_of_one_target_value_are_buckets():
    made = drawn()

    found = in_short(made, people(), quick=True)
    values = pd.DataFrame({name: made.table[name].cells().to_pylist() for name in ("bucket", "readmitted")})
    n_values = values.groupby("bucket")["readmitted"].transform("nunique")
    assert found.one_class == pytest.approx((n_values == 1).mean())
