"""Training rows as released and test rows in the same form, for every mechanism that registers itself."""

import copy
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from sfumato.errors import PrivacyNotAchievableError, SchemaError
from sfumato.evaluation.encoding import GeneralizedEncoder, cells_of_release
from sfumato.evaluation.treatment import repeatable, treated
from sfumato.manifest import draft_manifest
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.buckets.anatomy import Anatomy
from sfumato.mechanisms.buckets.slicing import Slicer
from sfumato.mechanisms.containment.greedy import GreedyContainmentSelector
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table

NAMES = list(registered_mechanisms())


def people(n_rows=240, seed=8):
    """Make correlated 0/1 columns, a name, an illness and a target."""
    rng = np.random.default_rng(seed)
    base = rng.random((n_rows, 1))
    bits = (0.5 * rng.random((n_rows, 5)) + 0.5 * base < np.linspace(0.35, 0.65, 5)).astype(int)
    ill = bits[:, 1] + bits[:, 3] + rng.random(n_rows) > 1.6
    cells = {name: [str(bit) for bit in bits[:, i]] for i, name in enumerate("abcde")}
    cells |= {
        "name": [f"p{i}" for i in range(n_rows)],
        "illness": ["uvw"[i % 3] for i in range(n_rows)],
        "y": np.where(ill, "yes", "no").tolist(),
    }
    columns = [Column(name) for name in "abcde"]
    columns += [Column("name", Role.IDENTIFIER), Column("illness", Role.SENSITIVE), Column("y", Role.TARGET)]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def small(name):
    parameters = {p.name for p in registered_mechanisms()[name].parameters}
    return build_mechanism(name, {"n_features": 3} if "n_features" in parameters else {})


@pytest.fixture(scope="module")
def halves():
    table = people()
    return table.take(np.arange(0, 160)), table.take(np.arange(160, 240))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_gives_train_and_test_the_same_form(halves, name):
    train, test = halves

    found = treated(small(name), train, test)

    assert found.test.n_rows == test.n_rows
    assert len(found.target.codes) == found.train.n_rows
    assert set(found.columns) == set(found.train.schema.names()) == set(found.test.schema.names())
    assert "name" not in found.columns
    assert "y" not in found.columns
    assert found.columns
    encoder = GeneralizedEncoder().fit(found.train, found.columns)
    assert encoder.transform(found.train).shape[1] == encoder.transform(found.test).shape[1]
    shown = " ".join(map(str, found.train.schema.names()))
    assert "group" not in shown
    assert "bucket" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if not n.endswith("-dp")])
def test_training_cells_are_those_of_the_release(halves, name):
    """What is trained on is what would be published, and nothing else."""
    train, test = halves
    release = repeatable(small(name)).release(train)
    published = release.table if isinstance(release.table, Table) else release.table.to_table()
    cells, _ = cells_of_release(release.manifest.to_dict(), published)

    found = treated(small(name), train, test)

    for column in found.columns:
        assert found.train[column].cells().to_pylist() == cells[column].cells().cast(pa.string()).to_pylist()
    hidden = {(release.manifest.perturbation or {}).get("bucket"), "y"}
    assert set(found.columns) == set(published.schema.names()) - hidden
    assert found.target.cells().to_pylist() == published["y"].cells().to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_which_rows_released_ones_stand_for(halves, name):
    """Rows drawn anew stand for nobody, even where they are as many as before."""
    found = treated(small(name), *halves)

    if name.endswith("-dp"):
        assert found.rows is None
        assert found.train.n_rows == 160
    else:
        assert len(found.rows) == found.train.n_rows


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_mechanism_that_is_given_stays_unfitted(halves, name):
    mechanism = small(name)
    before = copy.copy(vars(mechanism))

    treated(mechanism, *halves)

    assert vars(mechanism) == before


def test_without_a_mechanism_rows_stay_as_they_are(halves):
    train, test = halves
    found = treated(None, train, test)

    assert list(found.columns) == ["a", "b", "c", "d", "e", "illness"]
    for name in found.columns:
        assert found.train[name].cells().to_pylist() == train[name].cells().to_pylist()
        assert found.test[name].cells().to_pylist() == test[name].cells().to_pylist()
    assert found.rows.tolist() == list(range(160))


def mixed(ages, jobs, n_rows=60):
    cells = {
        "age": [ages[i % len(ages)] for i in range(n_rows)],
        "job": [jobs[i % len(jobs)] for i in range(n_rows)],
        "y": ["n" if i % 3 else "y" for i in range(n_rows)],
    }
    columns = [Column("age", kind=Kind.NUMERIC), Column("job"), Column("y", Role.TARGET)]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def test_features_of_test_rows_follow_the_cuts_and_values_of_the_training_rows():
    train = mixed([str(20 + i) for i in range(20)], ["x", "y", None])
    new = {"age": ["19.5", "24", "24.5", "99", None], "job": ["x", "other", None, "y", "x"], "y": ["n"] * 5}
    columns = [Column("age", kind=Kind.NUMERIC), Column("job"), Column("y", Role.TARGET)]
    test = Table.from_arrow(pa.table(new), Schema.of(columns))
    plan = {"columns": {"age": {"cuts": [24]}, "job": "values"}}

    selector = GreedyContainmentSelector(k=2, binarize=plan, on_infeasible="skip")
    found = treated(selector, train, test)

    shown = {name: found.test[name].cells().to_pylist() for name in found.columns}
    assert shown == {
        "age<=24": ["1", "1", "0", "0", "0"],
        "age>24": ["0", "0", "1", "1", "0"],
        "job=x": ["1", "0", "0", "0", "1"],
        "job=y": ["0", "0", "0", "1", "0"],
        "job missing": ["0", "0", "1", "0", "0"],
    }


def test_a_test_value_that_no_rule_knows_is_no_one():
    """A column that is 0/1 in the training rows is released as it is; a 2 among the test rows is not a 1."""
    train = mixed(["0", "1"], ["x", "z", "z"])
    test = Table.from_arrow(
        pa.table({"age": ["1", "2", "0"], "job": ["x", "x", "x"], "y": ["n", "n", "y"]}), train.schema
    )

    found = treated(GreedyContainmentSelector(k=2, on_infeasible="skip"), train, test)

    assert found.test["age"].cells().to_pylist() == ["1", "0", "0"]


def sparse(seed=0, n_rows=90, n_features=6):
    rng = np.random.default_rng(seed)
    bits = (rng.random((n_rows, n_features)) < 0.5).astype(np.uint8)
    y = np.where(bits[:, 0] | (rng.random(n_rows) < 0.2), "yes", "no").tolist()
    cells = pa.table({"y": y, "name": [f"p{i}" for i in range(n_rows)], "ward": [str(i % 4) for i in range(n_rows)]})
    columns = [Column("y", Role.TARGET), Column("name", Role.IDENTIFIER), Column("ward", Role.OTHER)]
    features = tuple(Feature(f"f{i}", f"f{i}") for i in range(n_features))
    return BinaryTable(sp.csc_matrix(bits), features, Table.from_arrow(cells, Schema.of(columns))), bits


@pytest.mark.parametrize("mechanism", [None, GreedyContainmentSelector(k=3), build_mechanism("random-flipping", {})])
def test_binary_tables_keep_the_same_features(mechanism):
    table, bits = sparse()
    train, test = table.take(np.arange(60)), table.take(np.arange(60, 90))

    found = treated(mechanism, train, test)

    assert "name" not in found.columns
    assert "y" not in found.columns
    features = [name for name in found.columns if name != "ward"]
    assert features
    encoder = GeneralizedEncoder().fit(found.train, {name: found.columns[name] for name in features})
    places = [int(name[1:]) for name in features]
    assert encoder.transform(found.test).tolist() == bits[60:, places].tolist()


def test_rows_of_a_binary_table():
    table, bits = sparse()
    some = np.array([5, 80, 3], dtype=np.intp)

    found = table.take(some)

    assert found.matrix.toarray().tolist() == bits[some].tolist()
    assert found.matrix.has_sorted_indices
    assert found.companions["name"].cells().to_pylist() == ["p5", "p80", "p3"]


def test_recoders_refuse_binary_tables_in_their_own_words():
    table, _ = sparse()

    with pytest.raises(SchemaError, match="no ranges or sets to be coarsened"):
        treated(Mondrian(5), table, table)


def test_suppressed_rows_are_not_trained_on():
    """A row that is alone is suppressed at k = 5, and its class leaves with it."""
    table = mixed(["20", "30"], ["x"], 60)
    lonely = Table.from_arrow(
        pa.concat_tables([table.to_arrow(), pa.table({"age": ["70"], "job": ["q"], "y": ["y"]})]), table.schema
    )
    recoder = GlobalRecoder(k=5, max_suppressed_fraction=0.1, regroup=False)

    found = treated(recoder, lonely, lonely)

    assert found.train.n_rows == len(found.target.codes) == 60
    assert found.rows.tolist() == list(range(60))
    assert found.test.n_rows == 61


@pytest.mark.parametrize("mechanism", [Anatomy(l=2), Slicer(k=4)])
def test_buckets_are_dropped_and_test_rows_exact(halves, mechanism):
    train, test = halves
    found = treated(mechanism, train, test)

    assert set(found.columns) == {"a", "b", "c", "d", "e", "illness"}
    assert found.test["illness"].cells().to_pylist() == test["illness"].cells().to_pylist()
    assert found.train["illness"].cells().to_pylist() != train["illness"].cells().to_pylist()


class Watched:
    """A recoder that notes what it is shown of the test rows."""

    def __init__(self):
        self.seen = []

    def recode(self, table):
        recoding = Mondrian(5).recode(table)

        def generalized(new):
            self.seen.append(new.schema.names())
            return recoding.generalized(new)

        return SimpleNamespace(
            names=recoding.names,
            recoded=recoding.recoded,
            generalized=generalized,
            as_cells=recoding.as_cells,
            encodable=recoding.encodable,
        )


def test_a_mechanism_never_sees_the_classes_of_the_test_rows(halves):
    watched = Watched()

    treated(watched, *halves)

    assert watched.seen == [("a", "b", "c", "d", "e", "illness")]


class Adding:
    """A mechanism that releases one column more, made of the target."""

    def __init__(self, name, recodings=()):
        self.name, self.recodings = name, recodings

    def release(self, table, *, progress=None):
        kept = table.keep([name for name in table.schema.names() if name not in ("name", self.name)])
        schema = Schema.of([*kept.schema, Column(self.name, Role.OTHER)])
        released = Table(schema, {**kept.columns, self.name: table["y"]}, table.n_rows)
        manifest = draft_manifest(
            table,
            released,
            mechanism="adding",
            parameters={},
            guarantees=[],
            evidence={},
            recodings=self.recodings,
        )
        return Release(released, manifest)


def test_a_column_that_new_rows_cannot_have_is_refused(halves):
    with pytest.raises(SchemaError, match="'copy': is released by adding, but no rule computes it for new rows"):
        treated(Adding("copy"), *halves)
    recoded = ({"name": "a", "column": "a", "rule": "generalized", "kind": "numeric"},)
    with pytest.raises(SchemaError, match="'a': is released by adding, but no rule computes it for new rows"):
        treated(Adding("a", recoded), *halves)


def test_a_column_that_is_overwritten_with_the_target_is_exact_in_the_test_rows(halves):
    train, test = halves
    found = treated(Adding("a"), train, test)

    assert found.train["a"].cells().to_pylist() == train["y"].cells().to_pylist()
    assert found.test["a"].cells().to_pylist() == test["a"].cells().to_pylist()


def test_errors_of_the_mechanism_pass_through(halves):
    with pytest.raises(PrivacyNotAchievableError):
        treated(Mondrian(161), *halves)


def test_no_value_is_shown(halves):
    assert repr(treated(None, *halves)) == "Treated(160 and 80 rows, 6 columns)"
