"""Local recoding as a user meets it: audited releases that keep more than one level, new rows, clear words."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.errors import AuditFailedError, InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.mechanisms.lattice.local import LocalRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import CodedColumn, Table
from tests.unit.mechanisms.lattice.test_global_recoding import JOBS, people

GOALS = [
    {},
    {"weights": "gain"},
    {"l": 3},
    {"l": 2, "variant": "entropy"},
    {"l": 2, "variant": "recursive", "c": 2.0},
    {"t": 0.3},
    {"t": 0.2, "distance": "ordered"},
    {"loss": "target_information", "l": 2, "t": 0.3},
]


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_releases_hold_what_they_promise_and_leave_no_row_out(goal, tmp_path):
    table = people()
    recoder = build_mechanism("local-recoding", {"k": 4, "hierarchies": {"job": JOBS}, **goal})
    done = publish(sfumato.release(table, recoder), tmp_path / "out.csv", original=table)

    report = audit_published(done.table_path, done.manifest_path, original=table, check_roles=True)
    assert report.passed, report.failures
    assert done.release.table.n_rows == table.n_rows
    assert done.release.manifest.suppressed_rows == 0


@pytest.mark.slow
def test_a_cell_that_does_not_cover_its_original_is_refused(tmp_path):
    """Row for row: the manifest is that of the changed release, only the cells are not those of the original."""
    table = people()
    release = sfumato.release(table, LocalRecoder(k=4, hierarchies={"job": JOBS}))
    jobs = release.table["job"]
    texts = jobs.values.to_pylist()
    changed = jobs.codes.copy()
    changed[changed == texts.index("a")] = texts.index("f")
    released = replace(release.table, columns={**release.table.columns, "job": CodedColumn(changed, jobs.values)})

    with pytest.raises(AuditFailedError):
        publish(replace(release, table=released), tmp_path / "out.csv", original=table)


def test_it_keeps_more_than_one_level_for_all_rows():
    table = people()
    one_level = GlobalRecoder(k=4, loss="certainty_penalty", hierarchies={"job": JOBS}, regroup=False).fit(table)
    local = LocalRecoder(k=4, hierarchies={"job": JOBS}).fit(table)

    assert local.recoding_.certainty_penalty < one_level.recoding_.certainty_penalty
    assert local.n_suppressed_ == 0
    assert local.search_.proven


def test_rows_of_the_table_get_their_own_cells_when_they_come_again():
    table = people()
    recoding = LocalRecoder(k=4, hierarchies={"job": JOBS}).fit(table).recoding_
    again, own = recoding.generalized(table), recoding.recoded(table)

    assert again.to_arrow().equals(own.to_arrow())


def test_a_new_row_gets_the_cells_of_a_released_class_or_of_the_last_round():
    table = people()
    recoding = LocalRecoder(k=4, hierarchies={"job": JOBS}).fit(table).recoding_
    released = {tuple(row[name] for name in recoding.names) for row in recoding.recoded(table).to_arrow().to_pylist()}
    new = people(n=60, seed=9)
    cells = [tuple(row[name] for name in recoding.names) for row in recoding.generalized(new).to_arrow().to_pylist()]
    found = [cell in released for cell in cells]

    assert np.mean(found) > 0.9
    assert ("*", "*", "*") in cells or all(found)


@pytest.mark.slow
def test_the_same_table_gives_the_same_bytes_however_little_work_is_allowed(tmp_path):
    table = people()
    texts = []
    for name in ("one", "two"):
        recoder = LocalRecoder(k=4, hierarchies={"job": JOBS}, max_values_checked=1)
        done = publish(sfumato.release(table, recoder), tmp_path / f"{name}.csv", original=table)
        texts.append(done.table_path.read_bytes())
        stated = json.loads(done.manifest_path.read_text())["evidence"]["utility"]

    assert texts[0] == texts[1]
    assert stated["n_rounds"] >= 1
    assert not recoder.search_.proven


def test_rows_that_are_too_few_wait_for_others_until_they_are_a_class():
    """Two rows alone would be left; the costlier of the two classes waits for them."""
    table = Table.from_arrow(
        pa.table({"age": ["20"] * 4 + ["30"] * 3 + ["40"] * 2}),
        Schema.of([Column("age", Role.QUASI_IDENTIFIER, Kind.CATEGORICAL)]),
    )
    released = sfumato.release(table, LocalRecoder(k=3)).table

    assert sorted(released.to_arrow()["age"].to_pylist()) == ["20"] * 4 + ["{30|40}"] * 5


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"min_released_fraction": 0.0}, InvalidParameterError, "min_released_fraction"),
        ({"min_released_fraction": float("nan")}, InvalidParameterError, "min_released_fraction"),
        ({"max_values_checked": 0}, InvalidParameterError, "max_values_checked"),
        ({"loss": "height"}, InvalidParameterError, "loss"),
        ({"k": 241}, PrivacyNotAchievableError, "241"),
        ({"l": 4, "variant": "recursive", "c": 0.1}, PrivacyNotAchievableError, "diversity"),
        ({"loss": "target_information", "weights": "gain"}, InvalidParameterError, "weights"),
    ],
)
def test_bad_input_is_refused_in_words(parameters, error, words):
    with pytest.raises(error, match=words):
        sfumato.release(people(), build_mechanism("local-recoding", {"hierarchies": {"job": JOBS}, **parameters}))


def test_information_about_a_target_needs_one():
    table = people()
    plain = table.with_schema(table.schema.with_roles({"y": Role.OTHER}))
    with pytest.raises(SchemaError, match="target"):
        sfumato.release(plain, LocalRecoder(loss="target_information"))


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(("table", "k", "of_arx"), [("adult", 50, 0.1503), ("cmc", 50, 0.4062)])
def test_the_share_of_values_left_open_is_below_that_of_arx(table, k, of_arx):
    from benchmarks.local_recoding import load, open_share, recode

    assert open_share(recode(load(table, k))) <= of_arx
