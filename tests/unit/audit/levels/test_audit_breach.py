"""The audit's own estimate of how much a choice of columns helps an attacker."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import sfumato
from sfumato.audit import audit_release
from sfumato.audit.attackers import Attack, codes_of_values, numbers_of
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.claims import read_claims
from sfumato.audit.levels.breach import determines, figures_determine, lower_end, measure
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.columns import Columns
from sfumato.errors import InvalidParameterError, ManifestError, SchemaError
from sfumato.guarantees import guarantee_from_dict
from sfumato.guarantees.estimated import BREACH_ATTACKERS, BreachBound
from sfumato.manifest import in_three_digits
from sfumato.mechanisms.breach.problem import leaking_columns
from sfumato.mechanisms.breach.selector import BreachAwareSelector
from sfumato.schema import Kind, Role, Schema
from sizes import examples
from unit.audit.audit_oracles import CANARY, manifest_of, sealed, table_of

ROLES = {"secret": Role.SENSITIVE, "y": Role.TARGET, "ward": Role.OTHER}
QUASI = ("weak", "noise", "telling")


def original(n_rows=400, seed=1):
    rng = np.random.default_rng(seed)
    secret = rng.integers(2, size=n_rows)
    columns = {
        "weak": np.where(rng.random(n_rows) < 0.6, secret, 1 - secret),
        "noise": rng.integers(4, size=n_rows),
        "telling": np.where(rng.random(n_rows) < 0.95, secret, 1 - secret),
        "secret": np.array([CANARY, "flu"])[secret],
        "y": rng.choice(["no", "yes"], size=n_rows),
        "ward": rng.integers(3, size=n_rows),
    }
    return table_of(columns, ROLES)


TABLE = original()


def papers(columns, *, table=TABLE, baseline=QUASI, alpha=0.0, extra=("y", "ward"), audited=None, **fields):
    """Make a release of some columns with a bound."""
    bound = BreachBound(alpha, "secret", tuple(columns), tuple(baseline), **fields)
    released = table.keep([*columns, *extra])
    return released, manifest_of(released, [(bound, audited)], table)


def audited(columns, check_roles=True, table=TABLE, **fields):
    released, manifest = papers(columns, table=table, **fields)
    return audit_release(
        released,
        manifest,
        AuditorHas(original=table, roles=check_roles),
        publisher=PublisherKnows(levels_are_stated=False),
    )


def failed(report):
    return [check.name for check in report.checks if not check.passed]


def test_a_choice_that_takes_the_telling_column_away_is_confirmed():
    report = audited(["weak", "noise"])

    assert report.passed, report.failures
    assert report.levels[0] < -20


def test_a_promise_that_the_columns_break_is_not_confirmed():
    """The release holds the telling column, though it promises an attacker who does 20 % worse."""
    report = audited(["telling"], alpha=-20.0)

    assert failed(report) == ["breach-bound: level"]
    assert report.levels[0] > -20


@pytest.mark.slow
@pytest.mark.parametrize("attacker", ["naive-bayes", "c45", "strongest"])
@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "auc"])
def test_columns_that_help_more_than_all_together_are_not_confirmed(attacker, metric):
    """Most of the columns compared with are noise, which drowns the one that tells; it alone is released."""
    rng = np.random.default_rng(4)
    secret = rng.integers(2, size=300)
    columns = {f"n{i}": rng.integers(40, size=300) for i in range(100)} | {"telling": secret ^ (rng.random(300) < 0.2)}
    table = table_of(columns | {"secret": secret, "y": rng.integers(2, size=300)}, ROLES)

    report = audited(["telling"], table=table, baseline=tuple(columns), extra=("y",), attacker=attacker, metric=metric)

    assert failed(report) == ["breach-bound: level"]
    assert report.levels[0] > 0


def test_without_the_original_nothing_is_confirmed():
    released, manifest = papers(["weak"])

    report = audit_release(released, manifest, publisher=PublisherKnows(levels_are_stated=False))

    assert failed(report) == []
    assert report.verdict == "confirmed except"
    assert {one.name for one in report.unchecked} == {
        "figures",
        "mechanism",
        "original",
        "promises",
        "roles",
        "row-order",
    }
    assert "breach-bound was not measured" in str(report.unchecked)


def test_a_sensitive_column_that_is_released_is_found():
    report = audited(["weak"], extra=("y", "secret"))

    assert failed(report) == ["breach-bound: sensitive"]


def relabelled(table, **roles):
    columns = [replace(column, role=roles.get(column.name, column.role)) for column in table.schema]
    return table.with_schema(Schema.of(columns))


def test_a_sensitive_column_that_is_called_the_target_is_found():
    """Roles of the released columns come from the manifest, so those of the original decide."""
    released = relabelled(TABLE.keep(["weak", "secret"]), secret=Role.TARGET)
    manifest = manifest_of(released, [(BreachBound(0.0, "secret", ("weak",), QUASI), None)], TABLE)

    known, unknown = (
        audit_release(
            released,
            manifest,
            AuditorHas(original=original, roles=check_roles),
            publisher=PublisherKnows(levels_are_stated=False),
        )
        for original, check_roles in ((TABLE, True), (relabelled(TABLE, secret=Role.OTHER), False))
    )

    assert failed(known) == ["breach-bound: sensitive", "original's roles"]
    assert "breach-bound: sensitive" not in failed(unknown)
    (said,) = [check.message for check in unknown.checks if check.name == "breach-bound: sensitive"]
    assert "roles" in {one.name for one in unknown.unchecked}
    assert "released as the target" in said


def test_another_sensitive_column_that_is_released_is_found():
    table = relabelled(TABLE, ward=Role.SENSITIVE)

    assert failed(audited(["weak"], table=table)) == ["breach-bound: sensitive"]


def with_column(name, cells, role):
    columns = {column: TABLE[column].cells() for column in TABLE.columns} | {name: cells}
    return table_of(columns, ROLES | {name: role})


def copies():
    secret = TABLE["secret"].codes
    finer = secret * 5 + np.arange(400) % 5
    slips = np.where(np.arange(400) < 4, 1 - secret, secret)
    return {"renamed": 7 - secret, "finer": finer, "with slips": slips}


@pytest.mark.parametrize("kind", copies())
def test_a_released_column_that_gives_the_sensitive_one_away_is_found(kind):
    table = with_column("copy", copies()[kind], Role.OTHER)

    report = audited(["weak"], table=table, extra=("y", "copy"))

    assert failed(report) == ["breach-bound: given away"]
    assert "'copy'" in report.failures[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", copies())
def test_a_column_compared_with_that_gives_the_sensitive_one_away_is_found(kind):
    """Beside it the telling column, which is released, looks safe."""
    table = with_column("copy", copies()[kind], Role.QUASI_IDENTIFIER)

    report = audited(["telling"], table=table, baseline=(*QUASI, "copy"))

    assert failed(report) == ["breach-bound: given away"]


def plainly_tells(column, wanted):
    """Look up the rows of each value one by one."""
    n = len(column)
    values, others = set(column), set(wanted)
    pairs = set(zip(column, wanted, strict=True))
    if len(values) == len(others) == len(pairs) and len(others) <= 0.9 * n:
        return True
    common = max(sorted(others), key=wanted.count)
    n_wrong = 0
    for value in values:
        own = [w for c, w in zip(column, wanted, strict=True) if c == value]
        right = max(own.count(w) for w in own) if len(own) > 1 else own.count(common)
        n_wrong += len(own) - right
    n_rarer = n - wanted.count(common)
    return n >= 3 * len(values) and 100 * n_wrong <= n and 10 * n_wrong <= n_rarer


@st.composite
def nearly_determined(draw):
    """Draw a column, what its values say, and some rows in which that is wrong."""
    column = draw(st.lists(st.integers(0, 5), min_size=1, max_size=40)) * draw(st.sampled_from([1, 2, 10]))
    means = draw(st.lists(st.integers(0, 2), min_size=6, max_size=6))
    wanted = [means[value] for value in column]
    for row in draw(st.lists(st.integers(0, len(column) - 1), max_size=4)):
        wanted[row] = draw(st.integers(0, 2))
    return column, wanted


@given(nearly_determined())
def test_what_tells_another_column_is_found_by_the_audit_and_by_the_mechanism(columns):
    column, wanted = columns
    expected = plainly_tells(column, wanted)

    assert determines(np.array(column, dtype=np.int32), np.array(wanted, dtype=np.int32)) == expected
    assert leaking_columns({"column": column}, wanted) == (("column",) if expected else ())


def test_columns_that_differ_in_every_row_are_not_called_equal():
    values = np.arange(50, dtype=np.int32)

    assert not determines(values, values[::-1])
    assert leaking_columns({"a": values}, values[::-1]) == ()
    table = with_column("secret", [f"{value}" for value in range(400)], Role.SENSITIVE)
    with pytest.raises(SchemaError, match="a value of its own"):
        measure(BreachBound(0.0, "secret", ("weak",), QUASI), pair_with(table))


def test_without_roles_the_kinds_are_not_checked_and_that_is_said():
    report = audited(["weak"], check_roles=False)

    assert "breach-bound: numbers" not in {check.name for check in report.checks}
    assert any("with their kinds" in one.message for one in report.unchecked if one.name == "roles")


@pytest.mark.slow
@pytest.mark.parametrize("attacker", BREACH_ATTACKERS)
def test_a_value_too_rare_for_every_training_part_is_measured_by_the_area(attacker):
    cells = TABLE["secret"].cells().to_pylist()
    table = with_column("secret", ["rare", *cells[1:]], Role.SENSITIVE)

    report = audited(["weak", "noise"], table=table, attacker=attacker, metric="auc")

    assert report.passed, report.failures


def test_a_target_may_be_what_the_bound_is_about():
    bound = BreachBound(0.0, "y", ("weak",), QUASI)
    released = TABLE.keep(["weak", "y"])

    report = audit_release(
        released,
        manifest_of(released, [(bound, None)], TABLE),
        AuditorHas(original=TABLE),
        publisher=PublisherKnows(levels_are_stated=False),
    )

    assert report.passed, report.failures


def test_other_columns_to_compare_with_are_found():
    """Beside more columns, or without some, the bound would be another one."""
    with_ward = audited(["weak"], baseline=(*QUASI, "ward"), extra=("y",))
    without_noise = audited(["weak"], baseline=("weak", "telling"))
    unknown_roles = audited(["weak"], baseline=(*QUASI, "ward"), check_roles=False)

    assert failed(with_ward) == failed(without_noise) == failed(unknown_roles) == ["breach-bound: compared with"]


def test_released_quasi_identifiers_must_all_be_covered():
    wider = TABLE.keep(["weak", "noise", "y", "ward"])
    bound = BreachBound(0.0, "secret", ("weak",), QUASI)

    report = audit_release(
        wider,
        manifest_of(wider, [(bound, None)], TABLE),
        AuditorHas(original=TABLE),
        publisher=PublisherKnows(levels_are_stated=False),
    )

    assert failed(report) == ["breach-bound: columns"]


def test_cells_that_are_not_the_originals_are_found():
    released, manifest = papers(["weak", "noise"])
    moved = released.take(np.roll(np.arange(released.n_rows), 1))

    report = audit_release(
        moved, manifest, AuditorHas(original=TABLE), publisher=PublisherKnows(levels_are_stated=False)
    )

    assert "cells" in failed(report)


@pytest.mark.slow
def test_a_stated_level_is_compared_and_a_statement_read():
    level = in_three_digits(audited(["weak"]).levels[0])
    released, manifest = papers(["weak"], audited=level)
    assert audit_release(released, manifest, AuditorHas(original=TABLE)).passed

    released, manifest = papers(["weak"], audited=in_three_digits(level - 1))
    assert failed(audit_release(released, manifest, AuditorHas(original=TABLE))) == ["breach-bound: audited level"]

    released, manifest = papers(["weak"], audited=level)
    manifest["guarantees"][0]["statement"] = "nobody can predict anything"
    assert failed(audit_release(released, sealed(manifest), AuditorHas(original=TABLE))) == ["breach-bound: statement"]


@pytest.mark.slow
def test_the_mechanisms_alpha_must_be_the_promised_one():
    release = sfumato.release(TABLE, BreachAwareSelector(max_breach_increase=-5))
    entries = json.loads(release.manifest.to_json())
    assert audit_release(release.table, entries, AuditorHas(original=TABLE)).passed

    entries["mechanism"]["parameters"]["max_breach_increase"] = -50
    report = audit_release(release.table, sealed(entries), AuditorHas(original=TABLE))
    assert failed(report) == ["breach-bound: parameter max_breach_increase"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_breach_increase", None),
        ("max_breach_increase", "0"),
        ("max_breach_increase", 1e400),
        ("sensitive", 3),
        ("sensitive", "weak"),
        ("baseline", "weak"),
        ("baseline", ["noise", "telling"]),
        ("baseline", ["weak", "weak", "noise", "telling"]),
        ("attacker", "oracle"),
        ("attacker", ["c45"]),
        ("metric", "f1"),
        ("numeric", ["secret"]),
        ("confidence", 0.999),
        ("confidence", 0.9),
        ("confidence", None),
    ],
)
def test_malformed_promises_are_refused(field, value):
    released, manifest = papers(["weak"])
    manifest["guarantees"][0][field] = value

    with pytest.raises(ManifestError):
        audit_release(released, manifest, AuditorHas(original=TABLE))


def test_the_promise_goes_through_a_manifest_and_is_met_up_to_its_bound():
    bound = BreachBound(2.0, "s", ("a",), ("a", "b"), "strongest", "auc")

    assert guarantee_from_dict(json.loads(json.dumps(bound.to_dict()))) == bound
    assert bound.is_met_by(2.0)
    assert not bound.is_met_by(2.001)
    assert "at most 2% better (by area under the ROC curve)" in bound.describe()
    assert "at least 3% worse" in BreachBound(-3.0, "s", ("a",), ("a", "b")).describe()


def pair_with(table):
    released, manifest = papers(["weak"], table=table)
    return ReleaseVsOriginal(Columns(released), Columns(table), read_claims(manifest))


def test_what_cannot_be_measured_is_said():
    flat = table_of({name: TABLE[name].cells() for name in TABLE.columns} | {"secret": [CANARY] * 400}, ROLES)

    with pytest.raises(SchemaError, match="fewer than two values") as caught:
        measure(BreachBound(0.0, "secret", ("weak",), QUASI), pair_with(flat))
    with pytest.raises(SchemaError, match="not found"):
        measure(BreachBound(0.0, "secret", ("weak",), ("weak", "gone")), pair_with(TABLE))
    with pytest.raises(InvalidParameterError, match="at least one"):
        measure(BreachBound(0.0, "secret", (), QUASI), pair_with(TABLE))
    with pytest.raises(InvalidParameterError, match="right now and then"):
        lower_end(np.ones(3), np.zeros(3), 0.95)
    assert CANARY not in str(caught.value)


def with_ages(kind):
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=200)
    columns = {"age": [str(v) for v in (20 + 9 * secret + rng.integers(30, size=200))], "noise": list("ab") * 100}
    columns |= {"secret": [str(v) for v in secret], "y": list("ny") * 100}
    return table_of(columns, ROLES, {"age": kind})


@pytest.mark.slow
@pytest.mark.parametrize("numeric", [("age",), ()])
def test_the_level_does_not_depend_on_declared_kinds(numeric):
    """An original may be audited without its description, and then has guessed kinds."""
    bound = BreachBound(0.0, "secret", ("noise",), ("age", "noise"), "strongest", numeric=numeric)
    levels = []
    for kind in (Kind.NUMERIC, Kind.CATEGORICAL):
        table = with_ages(kind)
        released = table.keep(["noise", "y"])
        claims = read_claims(manifest_of(released, [(bound, None)], table))
        levels.append(measure(bound, ReleaseVsOriginal(Columns(released), Columns(table), claims)))

    assert levels[0] == levels[1]


@pytest.mark.parametrize(("numeric", "wrong"), [((), "numbers"), (("age", "noise"), "level")])
def test_columns_taken_for_what_they_are_not_are_found(numeric, wrong):
    report = audited(["noise"], table=with_ages(Kind.NUMERIC), baseline=("age", "noise"), extra=("y",), numeric=numeric)

    assert f"breach-bound: {wrong}" in failed(report)


@given(
    scores=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=2, max_size=12),
    confidence=st.sampled_from([0.5, 0.9, 0.95]),
)
def test_the_lower_end_is_that_of_the_corrected_interval(scores, confidence):
    ours, theirs = (np.array(column) / 20 for column in zip(*scores, strict=True))
    n = len(scores)
    differences = [(a - b) / 20 for a, b in scores]
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    half = stats.t.isf((1 - confidence) / 2, n - 1) * (variance * (1 / n + 1 / (n - 1))) ** 0.5
    expected = 100 * (mean - half) / (sum(b for _, b in scores) / 20 / n)

    assert lower_end(ours, theirs, confidence) == pytest.approx(expected, abs=1e-6)


@examples(25)
@given(values=st.lists(st.one_of(st.none(), st.integers(-50, 50)), min_size=2, max_size=60))
def test_codes_are_in_the_order_of_the_values_and_numbers_are_scaled(values):
    column = table_of({"a": [None if v is None else str(v) for v in values] + ["7", "8"]})["a"]
    values = [*values, 7, 8]
    known = [v for v in values if v is not None]
    filled = np.array([np.median(known) if v is None else v for v in values])

    distinct = sorted(set(known))
    assert codes_of_values(column).tolist() == [0 if v is None else distinct.index(v) + 1 for v in values]
    assert numbers_of(column) == pytest.approx((filled - filled.mean()) / filled.std())


def test_numbers_without_any_spread_or_any_value():
    table = table_of({"a": ["3", "3"], "b": pa.array([None, None], pa.string())})

    assert numbers_of(table["a"]).tolist() == numbers_of(table["b"]).tolist() == [0, 0]


def counted_bayes(features, target, train, test):
    """Predict with naive Bayes by counting, with a one added to every count."""
    classes = sorted(set(target[train]))
    predicted = []
    for row in test:
        weights = []
        for value in classes:
            own = [i for i in train if target[i] == value]
            weight = len(own) / len(train)
            for column in range(features.shape[1]):
                n_values = int(features[:, column].max()) + 1
                same = sum(features[i, column] == features[row, column] for i in own)
                weight *= (same + 1) / (len(own) + n_values)
            weights.append(weight)
        predicted.append(classes[int(np.argmax(weights))])
    return np.array(predicted)


@pytest.mark.parametrize("seed", range(3))
def test_naive_bayes_counts(seed):
    rng = np.random.default_rng(seed)
    table = table_of({name: rng.integers(1 + width, size=60) for name, width in (("a", 2), ("b", 3), ("c", 1))})
    sensitive = (table["a"].codes + rng.integers(2, size=60)) % 3
    attack = Attack([table[name] for name in "abc"], [False] * 3, np.arange(60), sensitive.astype(np.int64), "accuracy")
    found = attack.scores([0, 1, 2], "naive-bayes")

    features = np.column_stack([table[name].codes + 1 for name in "abc"])
    for fold in range(10):
        test = np.flatnonzero(attack._fold_of_row == fold)
        train = np.flatnonzero(attack._fold_of_row != fold)
        predicted = counted_bayes(features, sensitive, train, test)
        assert found[fold] == pytest.approx((predicted == sensitive[test]).mean())
    assert np.bincount(attack._fold_of_row).tolist() == [6] * 10


def test_naive_bayes_takes_numbers_as_normal():
    rng = np.random.default_rng(2)
    sensitive = rng.integers(2, size=80)
    numbers, category = np.round(sensitive + rng.normal(size=80), 2), (sensitive + (rng.random(80) < 0.3)) % 2
    table = table_of({"a": numbers, "b": category})
    attack = Attack([table["a"], table["b"]], [True, False], np.arange(80), sensitive.astype(np.int64), "accuracy")
    found = attack.scores([0, 1], "naive-bayes")

    for fold in range(10):
        train, test = (np.flatnonzero((attack._fold_of_row == fold) == flag) for flag in (False, True))
        n_right = 0
        for row in test:
            weights = []
            for value in (0, 1):
                own = train[sensitive[train] == value]
                spread = (numbers[own].var() + 0.01 * numbers[train].var()) ** 0.5
                density = stats.norm(numbers[own].mean(), spread).pdf(numbers[row])
                share = (np.sum(category[own] == category[row]) + 1) / (len(own) + 3)  # a missing one is a value
                weights.append(len(own) / len(train) * density * share)
            n_right += int(np.argmax(weights)) == sensitive[row]
        assert found[fold] == pytest.approx(n_right / len(test))


def test_the_strongest_is_the_better_of_both():
    rng = np.random.default_rng(7)
    a, b = rng.integers(2, size=(2, 300))
    table = table_of({"a": a, "b": b})
    attack = Attack([table["a"], table["b"]], [False] * 2, np.arange(300), (a ^ b).astype(np.int64), "accuracy")

    bayes, tree = (attack.scores([0, 1], kind) for kind in ("naive-bayes", "c45"))

    assert bayes.mean() < 0.7 < tree.mean() == 1
    assert attack.scores([0, 1], "strongest").tolist() == tree.tolist()


@pytest.mark.parametrize("attacker", ["naive-bayes", "c45", "strongest"])
@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "auc"])
def test_values_too_rare_for_every_fold_are_measured(attacker, metric):
    table = table_of({"a": [1, 2, 3, 1, 2], "b": [0.5, 1.5, 2.5, 0.5, 9]}, kinds={"b": Kind.NUMERIC})
    attack = Attack([table["a"], table["b"]], [False, True], np.arange(5), np.array([0, 0, 0, 1, 2]), metric)

    scores = attack.scores([0, 1], attacker)

    assert len(scores) == 5
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize(("n_values", "expected"), [(89, True), (90, True), (91, False), (100, False)])
def test_columns_that_determine_each_other_tell_unless_nine_of_ten_rows_are_unique(n_values, expected):
    """Values of their own name rows, they do not tell about the sensitive column."""
    figures = {"n_rows": 100, "n_values": n_values, "n_wanted": n_values, "n_pairs": n_values, "n_right": 100}

    assert figures_determine(**figures, n_common=1) == expected
