"""Recoding over hierarchies as a user meets it: optimal levels, audited releases, clear words for bad input."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from reproductions.adult_hierarchies import adult_hierarchies
from reproductions.public_data import load_adult, load_pima
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import LDiversity
from sfumato.mechanisms import time_limit
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.mechanisms.lattice import recoder as global_recoding
from sfumato.mechanisms.lattice.gain import GainRecoder
from sfumato.mechanisms.lattice.losses import LOSSES, information_gains
from sfumato.mechanisms.lattice.recoder import GlobalRecoder, hierarchies_of
from sfumato.mechanisms.lattice.search import search_lattice
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

ARX_ORDER = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
JOBS = Hierarchy.from_rows([(j, g, "*") for j, g in zip("abcdef", ["x", "x", "y", "y", "z", "z"], strict=True)])


def people(n=240, seed=2):
    rng = np.random.default_rng(seed)
    age, job = rng.integers(20, 60, n), rng.integers(0, 6, n)
    cells = {
        "age": [str(a) for a in age],
        "job": [None if i % 37 == 0 else "abcdef"[j] for i, j in enumerate(job)],
        "town": [f"0{2 + i % 3}1{i % 10}" for i in range(n)],
        "illness": ["uvwx"[i % 4] for i in range(n)],
        "y": np.where((age > 40) ^ (rng.random(n) < 0.2), "yes", "no").tolist(),
    }
    columns = [
        Column("age", kind=Kind.NUMERIC),
        Column("job"),
        Column("town"),
        Column("illness", Role.SENSITIVE),
        Column("y", Role.TARGET),
    ]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def adult(quasi, sensitive=()):
    table = load_adult("train", complete=True)
    roles = {c.name: Role.OTHER for c in table.schema if c.role is not Role.TARGET}
    roles |= dict.fromkeys(quasi, Role.QUASI_IDENTIFIER) | dict.fromkeys(sensitive, Role.SENSITIVE)
    return table.with_schema(table.schema.with_roles(roles))


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
def test_the_optimum_of_arx_on_adult():
    given = {name: h for name, h in adult_hierarchies().items() if name in ARX_ORDER}
    found = GlobalRecoder(k=5, hierarchies=given, regroup=False).fit(adult(ARX_ORDER))

    assert [found.levels_[name] for name in ARX_ORDER] == [0, 3, 0, 2, 3, 1, 1, 1]
    assert found.n_suppressed_ == 421
    assert found.loss_ == pytest.approx(0.34441460899, abs=1e-9)
    assert found.search_.proven


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
def test_the_optimum_of_arx_with_diverse_occupations():
    quasi = ARX_ORDER[:-1]
    given = {name: h for name, h in adult_hierarchies().items() if name in quasi}
    found = GlobalRecoder(k=5, hierarchies=given, regroup=False, privacy=[LDiversity(3)]).fit(
        adult(quasi, ["occupation"])
    )

    assert found.loss_ == pytest.approx(0.2737319871, abs=1e-9)


@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(
    ("target", "gains"),
    [
        ("sex", {"relationship": 0.394, "marital-status": 0.167, "salary": 0.037, "workclass": 0.017, "age": 0.010,
                 "race": 0.010, "education": 0.006, "native-country": 0.004}),
        ("salary", {"relationship": 0.166, "marital-status": 0.157, "age": 0.094, "education": 0.093,
                    "occupation": 0.093, "hours-per-week": 0.057, "sex": 0.037, "workclass": 0.017,
                    "native-country": 0.009, "race": 0.008}),
    ],
)  # fmt: skip
def test_the_gains_of_the_paper_are_about_sex_and_those_of_its_task_differ(target, gains):
    found = information_gains(load_adult("train", complete=True), list(gains), target, correction="none")

    assert {name: round(gain, 3) for name, gain in found.items()} == gains


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("goal", [{}, {"l": 2}, {"l": 2, "variant": "entropy"}, {"t": 0.6}], ids=str)
def test_releases_hold_what_they_promise(loss, goal, tmp_path):
    table = people()
    recoder = build_mechanism(
        "global-recoding", {"k": 4, "max_suppressed_fraction": 0.1, "loss": loss, "hierarchies": {"job": JOBS}, **goal}
    )
    done = publish(sfumato.release(table, recoder), tmp_path / "out.csv", original=table)

    report = audit_published(done.table_path, done.manifest_path, original=table, check_roles=True)
    assert report.passed, report.failures
    assert done.release.manifest.suppressed_rows == recoder.n_suppressed_ <= 24


@pytest.mark.slow
def test_labels_are_read_back_from_disk_without_the_project(tmp_path):
    """Kinds are guessed then; intervals, masks and listed labels are read all the same."""
    table = people()
    (tmp_path / "data.csv").write_text(
        "\n".join(
            [",".join(table.columns)]
            + [",".join(x or "" for x in row.values()) for row in table.to_arrow().to_pylist()]
        )
    )
    original = sfumato.read_table(tmp_path / "data.csv")
    done = publish(
        sfumato.release(table, GlobalRecoder(k=4, max_suppressed_fraction=0.1, hierarchies={"job": JOBS})),
        tmp_path / "out.csv",
        original=table,
    )

    report = audit_published(done.table_path, done.manifest_path, original=original)
    assert [f for f in report.failures if "SHA" not in f] == []


@pytest.mark.slow
@pytest.mark.parametrize("is_of_schema", [True, False])
def test_labels_of_a_file_may_end_at_values_that_no_row_has(is_of_schema, tmp_path):
    """Whether the schema names the file or a parameter does: the manifest says that it was given."""
    path = tmp_path / "age.csv"
    path.write_text("".join(f"{age};[{20 * (age // 20)}, {20 * (age // 20) + 19}];*\n" for age in range(100)))
    column = Column("age", kind=Kind.NUMERIC, hierarchy=str(path) if is_of_schema else None)
    table = Table.from_arrow(pa.table({"age": [23, 25, 31, 47, 52, 58] * 3}), Schema.of([column]))
    release = sfumato.release(table, GlobalRecoder(k=4, hierarchies=None if is_of_schema else {"age": str(path)}))

    assert release.manifest.mechanism["parameters"]["hierarchies"] == ["age"]
    assert set(release.table["age"].cells().to_pylist()) == {"[20, 39]", "[40, 59]"}
    published = publish(release, tmp_path / "out.csv", original=table)
    assert audit_published(published.table_path, published.manifest_path, original=table).passed


def test_rows_that_are_suppressed_are_regrouped_or_left_out():
    table = people()
    plain = GlobalRecoder(k=6, max_suppressed_fraction=0.2, hierarchies={"job": JOBS}, regroup=False).fit(table)
    again = GlobalRecoder(k=6, max_suppressed_fraction=0.2, hierarchies={"job": JOBS}).fit(table)

    assert again.levels_ == plain.levels_
    assert again.n_suppressed_ <= plain.n_suppressed_
    assert again.recoding_.certainty_penalty <= plain.recoding_.certainty_penalty


def test_a_suppressed_row_is_a_star_until_the_release_leaves_it_out():
    table = people()
    recoder = GlobalRecoder(k=8, max_suppressed_fraction=0.3, hierarchies={"job": JOBS}, regroup=False).fit(table)
    recoded = recoder.recoding_.recoded(table)

    assert recoded.n_rows == table.n_rows
    assert recoder.n_suppressed_ > 0
    stars = np.array([cell == "*" for cell in recoded["age"].cells().to_pylist()])
    assert (~recoder.recoding_.is_released <= stars).all()


def test_new_rows_take_the_levels_and_values_that_are_not_known_become_a_star():
    recoder = GlobalRecoder(k=4, max_suppressed_fraction=0.1, hierarchies={"job": JOBS}).fit(people())
    other = people(30, seed=9)
    strange = Table.from_arrow(
        pa.table({**{n: other[n].cells() for n in other.columns}, "town": ["nowhere"] * 30}), other.schema
    )

    assert set(recoder.recoding_.generalized(strange)["town"].values.to_pylist()) == {"*"}
    assert recoder.recoding_.generalized(other).n_rows == 30


def test_weights_decide_which_columns_are_coarsened():
    table = people()

    def levels(**weights):
        chosen = {"age": 1.0, "job": 1.0, "town": 1.0} | weights
        return (
            GlobalRecoder(k=4, max_suppressed_fraction=0.1, hierarchies={"job": JOBS}, weights=chosen)
            .fit(table)
            .levels_
        )

    assert levels(job=100.0)["job"] <= levels(job=0.01)["job"]
    assert levels(job=100.0) != levels(job=0.01)


@pytest.mark.slow
def test_the_paper_s_slicing_says_what_it_leaves_open(tmp_path):
    table = people()
    recoder = GainRecoder(
        k=4,
        max_suppressed_fraction=0.1,
        hierarchies={"job": JOBS},
        slicing=True,
        threshold=0.1,
        privacy=[LDiversity(2)],
    )
    done = publish(sfumato.release(table, recoder), tmp_path / "out.csv", original=table)

    entries = done.release.manifest.guarantees
    assert all("NOT PROTECTED" in entry["statement"] for entry in entries)
    assert set(entries[0]["protected"]) == {"job", "town"}
    risk = done.release.manifest.evidence["risk"]  # over all quasi-identifiers
    assert risk["anonymity_level"] < 4
    assert risk["least_different_sensitive_values"] == 1
    assert entries[0]["audited"] >= 4
    assert audit_published(done.table_path, done.manifest_path, original=table, check_roles=True).passed
    kept = [
        v for v, out in zip(table["age"].cells().to_pylist(), ~recoder.recoding_.is_released, strict=True) if not out
    ]
    assert done.release.table["age"].cells().to_pylist() == kept


def test_the_sound_form_protects_everything_and_spares_useful_columns():
    table = people()
    weighted = GainRecoder(k=4, max_suppressed_fraction=0.05, hierarchies={"job": JOBS}).fit(table)
    plain = GlobalRecoder(k=4, max_suppressed_fraction=0.05, hierarchies={"job": JOBS}).fit(table)

    assert max(weighted.gains_, key=weighted.gains_.get) == "age"
    assert weighted.levels_["age"] <= plain.levels_["age"]
    assert [g.over for g in weighted.guarantees(table)] == [("age", "job", "town")]


@pytest.mark.parametrize(
    ("parameters", "error", "problem"),
    [
        ({"max_suppressed_fraction": 1.5}, InvalidParameterError, "must be from 0 to 1"),
        ({"max_suppressed_fraction": -0.1}, InvalidParameterError, "max_suppressed_fraction must be"),
        ({"t": 1.5}, InvalidParameterError, "t must be from 0 and below 1"),
        ({"l": 9}, InvalidParameterError, "l must be at most the number of sensitive values"),
        ({"l": 2, "sensitive": "age"}, InvalidParameterError, "sensitive must be a column that is published unchanged"),
        ({"loss": "best"}, InvalidParameterError, "loss must be one of"),
        ({"weights": "best"}, InvalidParameterError, "weights must be equal, gain, or weights by column"),
        ({"weights": {"agee": 1}}, ColumnNotFoundError, "agee"),
        ({"weights": {"age": -1}}, InvalidParameterError, "weights must be 0 or more"),
        ({"hierarchies": {"agee": JOBS}}, ColumnNotFoundError, "agee"),
        ({"hierarchies": {"job": 3}}, InvalidParameterError, "hierarchies must be Hierarchy objects or paths"),
        ({"hierarchies": {"town": JOBS}}, SchemaError, "'town': its hierarchy does not cover"),
        ({"k": 1}, InvalidParameterError, "k must be a whole number of at least 2"),
        ({"k": 999}, PrivacyNotAchievableError, "table of 240"),
        ({"max_suppressed_fraction": "a"}, InvalidParameterError, "max_suppressed_fraction must be a number"),
        ({"l": "x"}, InvalidParameterError, "l must be a number"),
        ({"l": True}, InvalidParameterError, "l must be a number"),
        ({"t": "x"}, InvalidParameterError, "t must be a number"),
        ({"l": 2, "sensitive": ["illness"]}, InvalidParameterError, "sensitive must be text"),
        ({"sensitive": "illness"}, InvalidParameterError, "sensitive must be given together with l, t"),
        ({"l": 2, "sensitive": "nope"}, ColumnNotFoundError, "nope"),
        ({"c": 2}, InvalidParameterError, "c must be None where l is not given"),
        ({"hierarchies": 5}, InvalidParameterError, "hierarchies must be a table of settings"),
        ({"max_seconds": 0}, InvalidParameterError, "max_seconds must be above 0"),
    ],
)  # fmt: skip
def test_bad_input_is_said_with_the_way_out(parameters, error, problem):
    with pytest.raises(error, match=problem):
        sfumato.release(people(), build_mechanism("global-recoding", {"k": 4, **parameters}))


def test_hierarchies_are_given_by_column():
    with pytest.raises(InvalidParameterError, match="hierarchies must be hierarchies or paths by column"):
        sfumato.release(people(), GlobalRecoder(k=4, hierarchies=5))


def test_a_goal_out_of_reach_gives_the_best_level():
    table = people()
    one_value = table.take(np.flatnonzero(table["illness"].codes == 0))

    with pytest.raises(InvalidParameterError, match="l must be at most"):
        sfumato.release(one_value, GlobalRecoder(k=4, privacy=[LDiversity(2)]))
    with pytest.raises(PrivacyNotAchievableError) as caught:
        sfumato.release(table, GlobalRecoder(k=4, privacy=[LDiversity(4, c=0.5, variant="recursive")]))
    assert caught.value.best_level is not None


def test_several_sensitive_columns_are_all_promised():
    table = people()
    both = table.with_schema(table.schema.with_roles({"town": Role.SENSITIVE}))
    release = sfumato.release(
        both, GlobalRecoder(k=4, max_suppressed_fraction=0.1, hierarchies={"job": JOBS}, privacy=[LDiversity(2)])
    )

    assert [entry.get("sensitive") for entry in release.manifest.guarantees] == [None, "town", "illness"]


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
def test_a_data_frame_is_recoded_by_the_columns_that_have_hierarchies(shared_data):
    import pandas as pd

    from sfumato.mechanisms.hierarchies.files import read_hierarchy
    from sfumato.mechanisms.lattice.recoder import GlobalRecoder as Exported

    folder = shared_data / "adult-arx"
    frame = pd.read_csv(folder / "adult.csv", sep=";", dtype=str)
    given = {name: read_hierarchy(folder / f"adult_hierarchy_{name}.csv") for name in ARX_ORDER}
    found = Exported(5, 0.015, given).fit(frame)

    assert [found.levels_[name] for name in ARX_ORDER] == [0, 3, 0, 2, 3, 1, 1, 1]
    assert found.loss_ == pytest.approx(0.34441460899, abs=1e-9)


def test_the_gain_may_be_about_a_quasi_identifier_which_is_recoded_all_the_same():
    table = people()
    release = sfumato.release(table, GainRecoder(k=5, max_suppressed_fraction=0.1, gain_target="job"))

    assert release.manifest.guarantees[0]["audited"] >= 5
    sliced = GainRecoder(k=5, max_suppressed_fraction=0.1, gain_target="job", slicing=True, threshold=9)
    assert "job" not in sliced.columns(table)


def test_another_correction_of_gains_is_refused():
    with pytest.raises(InvalidParameterError, match="gain_correction must be one of independence, none"):
        sfumato.release(people(), GainRecoder(k=5, gain_correction="some"))


@pytest.mark.slow
@pytest.mark.parametrize("recoder", [GainRecoder, GlobalRecoder])
@pytest.mark.parametrize("seconds", [1e-9, 1e-4, 0.01, 0.3])
def test_any_limit_in_seconds_gives_a_release(recoder, seconds):
    """Out of time in the search, StopIteration came out where the highest levels had not been looked at."""
    release = sfumato.release(people(), recoder(k=4, max_suppressed_fraction=0.1, max_seconds=seconds))

    assert release.manifest.guarantees[0]["audited"] >= 4
    assert release.table.n_rows >= 216


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize("seconds", [1e-6, 0.05, 0.3])
def test_any_limit_in_seconds_gives_a_release_of_pima(seconds):
    table = load_pima()
    roles = {c.name: Role.QUASI_IDENTIFIER for c in table.schema if c.name != table.schema.target}
    release = sfumato.release(table.with_schema(table.schema.with_roles(roles)), GainRecoder(max_seconds=seconds))

    assert release.manifest.guarantees[0]["audited"] >= 5


def test_the_limit_covers_what_comes_before_the_search():
    """What hierarchies and gains take is taken from the time of the search, which gets half a second at least."""
    now, given = [0.0], []

    def slow(*args):
        now[0] += 7.0
        return hierarchies_of(*args)

    def searched(problem, seconds):
        given.append(seconds)
        return search_lattice(problem, seconds)

    with (
        patch.object(time_limit.time, "monotonic", lambda: now[0]),
        patch.object(global_recoding, "hierarchies_of", slow),
        patch.object(global_recoding, "search_lattice", searched),
    ):
        for seconds in (20.0, 8.0, 3.0, 0.2):
            GlobalRecoder(k=4, max_suppressed_fraction=0.1, max_seconds=seconds, regroup=False).fit(people())

    assert given == [13.0, 1.0, 0.5, 0.2]


@pytest.mark.slow
@pytest.mark.parametrize("recoder", [GainRecoder, GlobalRecoder])
def test_all_rows_may_be_left_out_but_not_every_one(recoder, tmp_path):
    table = people()
    done = publish(
        sfumato.release(table, recoder(k=4, max_suppressed_fraction=1.0)), tmp_path / "o.csv", original=table
    )

    assert done.release.table.n_rows > 0
    assert audit_published(done.table_path, done.manifest_path, original=table, check_roles=True).passed
    strict = [LDiversity(4, c=0.01, variant="recursive")]
    with pytest.raises(PrivacyNotAchievableError, match="at most 239 of 240 rows"):
        sfumato.release(table, recoder(k=4, max_suppressed_fraction=1.0, privacy=strict))


def test_a_bound_that_says_nothing_is_not_in_the_manifest():
    recoder = GlobalRecoder(k=4, max_suppressed_fraction=0.1)
    release = sfumato.release(people(), recoder)
    assert release.manifest.evidence["utility"]["least_possible_loss"] == float(f"{recoder.loss_:.3g}")

    loose = replace(recoder.search_, proven=False, bound=0.04 * recoder.loss_)
    near = replace(recoder.search_, proven=False, bound=0.9 * recoder.loss_)
    for found, is_told in ((loose, False), (near, True)):
        recoder.search_ = found
        utility = recoder.utility(people(), recoder.recoding_, release.table)
        assert ("least_possible_loss" in utility) == is_told
        assert utility["is_proven_optimal"] is False


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_goes_with_the_gain(loss):
    release = sfumato.release(people(), GainRecoder(k=5, max_suppressed_fraction=0.1, loss=loss))

    assert release.manifest.guarantees[0]["audited"] >= 5


def test_numbers_of_numpy_go_into_the_manifest():
    privacy, share = [LDiversity(np.int64(2))], np.float32(0.1)
    release = sfumato.release(people(), GlobalRecoder(k=np.int64(4), max_suppressed_fraction=share, privacy=privacy))

    assert '"l": 2' in release.manifest.to_json()


def test_a_weight_of_nothing_for_one_column_is_fine():
    assert GlobalRecoder(k=4, weights={"age": 0}, max_suppressed_fraction=0.1).fit(people()).levels_


def test_a_promise_cannot_name_a_protected_column_twice():
    with pytest.raises(InvalidParameterError, match="protected must be different columns"):
        sfumato.KAnonymity(5, ("a", "b", "c"), protected=("a", "a", "a"))
