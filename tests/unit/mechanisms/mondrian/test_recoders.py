"""The recoding mechanisms as a user meets them: promises hold, and bad input is a clear word or a sane answer."""

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.datasets.admissions import admissions
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import Containment, KAnonymity, KMap, LDiversity, TCloseness
from sfumato.mechanisms.lattice.local import LocalRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

RECODERS = [
    ErrorRiskTree(k=4),
    ErrorRiskTree(k=4, generalization="uniform"),
    ErrorRiskTree(k=4, refine=False),
    ErrorRiskTree(k=4, generalization="uniform", rule="literal", refine=False),
    Mondrian(k=4),
    Mondrian(k=4, strict=False),
    Mondrian(k=4, split="median"),
    Mondrian(k=4, split="gain"),
]
each_recoder = pytest.mark.parametrize("recoder", RECODERS, ids=repr)


def table_of(columns, **cells):
    described = [Column(name, *rest) for name, *rest in columns]
    return Table.from_arrow(pa.table(cells), Schema.of(described))


def people(n=60, **more):
    """Ages, jobs with holes, and a target that depends on age."""
    rng = np.random.default_rng(3)
    age = rng.integers(20, 80, n)
    job = [None if i % 11 == 0 else "abcde"[i % 5] for i in range(n)]
    ill = np.where(age + rng.integers(-9, 9, n) > 50, "yes", "no")
    columns = [("age", Role.QUASI_IDENTIFIER, Kind.NUMERIC), ("job",), ("ill", Role.TARGET)]
    cells = {"age": [str(a) for a in age], "job": job, "ill": ill.tolist()}
    for name, (described, values) in more.items():
        columns.append((name, *described))
        cells[name] = values
    return table_of(columns, **cells)


@pytest.mark.slow
@each_recoder
def test_a_release_is_audited_published_and_audited_again(recoder, tmp_path):
    table = admissions(n_rows=300)
    done = publish(sfumato.release(table, recoder), tmp_path / "out.csv", original=table)

    report = audit_published(done.table_path, done.manifest_path, original=table, check_roles=True)
    assert report.passed, report.failures
    assert done.release.table.n_rows == table.n_rows


@pytest.mark.slow
@each_recoder
def test_missing_values_are_kept_as_such_or_said_in_a_cell(recoder):
    release = sfumato.release(people(), recoder)

    assert all(entry["audited"] >= 4 for entry in release.manifest.guarantees)


@each_recoder
@pytest.mark.parametrize("k", [1, 0, -3, 2.5, True, "4"])
def test_a_k_below_two_is_refused(recoder, k):
    with pytest.raises(InvalidParameterError, match="k must be a whole number of at least 2"):
        sfumato.release(people(), recoder.__class__(k=k))


@each_recoder
def test_more_than_all_rows_is_not_achievable(recoder):
    with pytest.raises(PrivacyNotAchievableError, match="table of 60"):
        sfumato.release(people(), recoder.__class__(k=61))


@pytest.mark.slow
@each_recoder
def test_as_many_as_all_rows_gives_one_group(recoder):
    mechanism = recoder.__class__(**{**recoder.get_params(), "k": 60})
    release = sfumato.release(people(), mechanism)

    assert release.table["age"].n_distinct == release.table["job"].n_distinct == 1


@pytest.mark.slow
@each_recoder
def test_columns_of_one_value_of_none_and_of_a_value_per_row(recoder):
    odd = {
        "country": ((), ["here"] * 60),
        "nothing": ((), pa.array([None] * 60, pa.string())),
        "empty": ((Role.QUASI_IDENTIFIER, Kind.NUMERIC), pa.array([None] * 60, pa.string())),
        "ticket": ((), [f"t{i:03}" for i in range(60)]),
    }
    release = sfumato.release(people(**odd), recoder, confirmed=["ticket"])

    assert release.table["country"].values.to_pylist() == ["here"]
    assert release.table["nothing"].values.to_pylist() == release.table["empty"].values.to_pylist() == [None]
    assert release.table["ticket"].n_distinct < 60


@each_recoder
def test_a_table_without_quasi_identifiers_and_a_sparse_one_are_refused(recoder):
    table = people()
    plain = table.with_schema(table.schema.with_roles({"age": Role.OTHER, "job": Role.OTHER}))

    with pytest.raises(SchemaError, match="no quasi-identifier to coarsen"):
        sfumato.release(plain, recoder)
    with pytest.raises(SchemaError, match="sparse 0/1 table"):
        sfumato.release(toy_containment_table(), recoder)


@pytest.mark.slow
def test_a_tree_that_cannot_split_releases_one_group():
    table = table_of(
        [("age", Role.QUASI_IDENTIFIER, Kind.NUMERIC), ("ill", Role.TARGET)],
        age=[str(i) for i in range(12)],
        ill=["no"] * 12,
    )
    release = sfumato.release(table, ErrorRiskTree(k=3, refine=False))

    assert release.table["age"].values.to_pylist() == ["[0, 11]"]
    assert release.manifest.evidence["utility"]["global_certainty_penalty"] == 1.0
    refined = sfumato.release(table, ErrorRiskTree(k=3))
    assert refined.table["age"].values.to_pylist() == ["[0, 2]", "[3, 5]", "[6, 8]", "[9, 11]"]


@pytest.mark.slow
def test_numbers_stored_as_text_are_sets_of_values_unless_they_are_declared_numeric():
    table = people()
    as_text = table.with_schema(Schema.of([Column("age"), table.schema["job"], table.schema["ill"]]))

    assert any(text.startswith("{") for text in sfumato.release(as_text, Mondrian(k=4)).table["age"].values.to_pylist())
    assert any(text.startswith("[") for text in sfumato.release(table, Mondrian(k=4)).table["age"].values.to_pylist())


@pytest.mark.slow
def test_dates_and_levels_become_ranges(tmp_path):
    table = people(
        born=((Role.QUASI_IDENTIFIER, Kind.DATE), [f"19{50 + i % 40}-0{1 + i % 9}-17" for i in range(60)]),
        grade=(
            (Role.QUASI_IDENTIFIER, Kind.ORDERED, ("low", "middle", "high")),
            [("low", "middle", "high")[i % 3] for i in range(60)],
        ),
    )
    done = publish(sfumato.release(table, Mondrian(k=9)), tmp_path / "out.csv", original=table)

    cells = done.release.table
    assert any(text.startswith("[19") for text in cells["born"].values.to_pylist())
    assert {"[low, middle]", "[low, high]", "[middle, high]"} & set(cells["grade"].values.to_pylist())
    assert audit_published(done.table_path, done.manifest_path, original=table, check_roles=True).passed


def test_the_tree_needs_a_target():
    table = people().keep(["age", "job"])

    with pytest.raises(SchemaError, match="no target for the tree"):
        sfumato.release(table, ErrorRiskTree(k=4))
    assert sfumato.release(table, Mondrian(k=4)).table.n_rows == 60


@pytest.mark.parametrize(
    ("mechanism", "problem"),
    [
        (ErrorRiskTree(k=4, generalization="best"), "generalization must be one of tiered, uniform"),
        (ErrorRiskTree(k=4, rule="other"), "rule must be one of lowest, ratio, literal"),
        (ErrorRiskTree(k=4, min_samples_leaf=0), "min_samples_leaf must be a whole number of at least 1"),
        (ErrorRiskTree(k=4, targets="age"), "targets must be columns that are published unchanged"),
        (Mondrian(k=4, split="best"), "split must be one of penalty, median, gain"),
        (Mondrian(k=4, strict="yes"), "strict must be true or false"),
        (
            Mondrian(k=4, privacy=[LDiversity(2, sensitive="age")]),
            "sensitive must be a column that is published unchanged",
        ),
        (ErrorRiskTree(k=4, criterion=["auto"]), "criterion must be one of auto, entropy, gain, variance"),
        (ErrorRiskTree(k=4, refine="no"), "refine must be true or false, got 'no'"),
        (ErrorRiskTree(k=4, targets=["ill"]), r"targets must be a text of column names .* got \['ill'\]"),
        (ErrorRiskTree(k=4, targets=3), "targets must be a text of column names"),
    ],
)
def test_unknown_choices_are_refused(mechanism, problem):
    with pytest.raises(InvalidParameterError, match=problem):
        sfumato.release(people(status=((Role.SENSITIVE,), ["uv"[i % 2] for i in range(60)])), mechanism)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"l": 2, "variant": "best"}, "variant must be one of distinct, entropy, recursive"),
        ({"l": 2, "variant": "recursive"}, "c must be given for recursive l-diversity"),
        *(({"l": level}, "l must be ") for level in ("three", True, 0.5, np.nan, np.inf)),
        ({"l": 2, "sensitive": 3}, "sensitive must be text, got 3"),
        ({"l": 2, "c": "one", "variant": "recursive"}, "c must be a number"),
        ({"l": 2, "variant": "recursive", "c": True}, "c must be a number"),
        ({"c": -3}, "c must be None where l is not given, got -3"),
        ({"sensitive": "status"}, "sensitive must be given together with l, t"),
        ({"variant": "recursive"}, "variant must be 'distinct' where l is not given"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(settings, problem):
    with pytest.raises(InvalidParameterError, match=problem):
        build_mechanism("mondrian", {"k": 4, **settings})


@pytest.mark.parametrize(
    ("mechanism", "problem"),
    [
        (Mondrian(privacy=LDiversity(2)), "privacy must be a list of guarantees for mondrian: KAnonymity, LDiversity"),
        (Mondrian(privacy=[Containment(5, ())]), "privacy must be a list .*, got a Containment"),
        (LocalRecoder(privacy=[KMap(k_map=2)]), "privacy must be a list .*, got a KMap"),
        (Mondrian(privacy=[LDiversity(2, columns=("age",))]), "got a LDiversity with columns or a unit"),
        (Mondrian(privacy=[KAnonymity(3), KAnonymity(4)]), "privacy must be one guarantee of each kind"),
        (Mondrian(k=7, privacy=[KAnonymity(8)]), "privacy must be one k"),
        (Mondrian(privacy=[LDiversity(2, "age"), TCloseness(0.2, "job")]), "all about the same columns"),
        (Mondrian(privacy=[LDiversity(2), LDiversity(3)]), "privacy must be one guarantee of each kind"),
    ],
)
def test_privacy_that_a_mechanism_cannot_keep_is_refused(mechanism, problem):
    with pytest.raises(InvalidParameterError, match=problem):
        sfumato.release(people(status=((Role.SENSITIVE,), ["uv"[i % 2] for i in range(60)])), mechanism)


@pytest.mark.slow
@pytest.mark.parametrize("maker", [Mondrian, GlobalRecoder, LocalRecoder])
def test_a_k_among_the_guarantees_is_the_parameter_k(maker):
    table = people(status=((Role.SENSITIVE,), ["uv"[i % 2] for i in range(60)]))
    asked = [LDiversity(2), KAnonymity(6)]

    by_list, by_shorthand = (sfumato.release(table, one) for one in (maker(privacy=asked), maker(6, privacy=asked[:1])))

    assert by_list.manifest.promised() == by_shorthand.manifest.promised()
    assert by_list.manifest.mechanism == by_shorthand.manifest.mechanism
    assert by_list.table.to_arrow() == by_shorthand.table.to_arrow()


def test_a_diversity_goes_with_what_it_is_about():
    with pytest.raises(InvalidParameterError, match="sensitive must be the name of a column"):
        LDiversity(2, sensitive=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        Mondrian(k=np.int64(4), strict=np.bool_(False), privacy=[LDiversity(np.int64(2))]),
        Mondrian(k=4, privacy=[LDiversity(2, c=np.float32(3), variant="recursive")]),
        ErrorRiskTree(k=4, min_samples_leaf=np.int32(3), refine=np.bool_(False)),
    ],
    ids=repr,
)
def test_numbers_of_numpy_are_parameters_too(mechanism, tmp_path):
    table = people(status=((Role.SENSITIVE,), ["uv"[i % 2] for i in range(60)]))
    done = publish(sfumato.release(table, mechanism), tmp_path / "out.csv", original=table)

    assert audit_published(done.table_path, done.manifest_path, original=table, check_roles=True).passed


@pytest.mark.slow
def test_a_quantity_and_several_targets_guide_the_tree():
    rng = np.random.default_rng(5)
    table = people(120)
    age = table["age"].numbers()[table["age"].codes]
    cost = [f"{value:.2f}" for value in age * 3 + rng.random(120)]
    table = people(120, cost=((Role.SENSITIVE, Kind.NUMERIC), cost))

    alone = ErrorRiskTree(k=5, targets="cost")
    both = ErrorRiskTree(k=5, targets="ill, cost")
    assert sfumato.release(table, alone).table["age"].n_distinct > 5
    assert sfumato.release(table, both).table["age"].n_distinct > 5
    assert alone.tree_.statistics.shape[1] == 3  # rows, sum and sum of squares
    assert both.tree_.statistics.shape[1] == 5


def test_a_quantity_that_is_missing_or_no_number_is_refused():
    holes = people(cost=((Role.SENSITIVE, Kind.NUMERIC), [None, *map(str, range(59))]))
    words = people(cost=((Role.SENSITIVE,), ["a", *map(str, range(59))]))

    with pytest.raises(SchemaError, match="is missing in 1 rows"):
        sfumato.release(holes, ErrorRiskTree(k=4, targets="cost"))
    with pytest.raises(SchemaError, match="not all of its values are numbers"):
        sfumato.release(words, ErrorRiskTree(k=4, targets="cost", criterion="variance"), confirmed=["cost"])


def test_l_diversity_holds_besides_k_or_is_refused():
    statuses = ((Role.SENSITIVE,), [("u", "v", "w")[i % 3] if i % 4 else "u" for i in range(60)])
    table = people(status=statuses)

    release = sfumato.release(table, Mondrian(k=4, privacy=[LDiversity(3)]))
    assert [entry["kind"] for entry in release.manifest.guarantees] == ["k-anonymity", "l-diversity"]
    assert release.manifest.guarantees[1]["audited"] >= 3
    with pytest.raises(PrivacyNotAchievableError, match="distinct 4-diversity"):
        sfumato.release(table, Mondrian(k=4, privacy=[LDiversity(4)]))
    with pytest.raises(SchemaError, match="about sensitive columns, and the table has none"):
        sfumato.release(people(), Mondrian(k=4, privacy=[LDiversity(2)]))


@each_recoder
def test_new_rows_get_cells_of_the_release(recoder):
    table = people(200)
    recoding = recoder.recode(table)
    again = recoding.generalized(table)

    for name in ("age", "job"):
        cells = set(again[name].values.to_pylist())
        if getattr(recoder, "generalization", "") != "tiered" and getattr(recoder, "strict", True):
            assert again[name].cells() == recoding.recoded(table)[name].cells()
        assert cells
    other = people(50, extra=((Role.OTHER,), ["x"] * 50))
    assert recoding.generalized(other).n_rows == 50
