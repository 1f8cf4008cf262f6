"""Select, then recode: one release that promises k-anonymity and a bound on the breach, both of what is released."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.audit import audit_release
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import KAnonymity
from sfumato.guarantees.estimated import BreachBound
from sfumato.manifest import draft_manifest
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.breach.selector import BreachAwareSelector
from sfumato.mechanisms.breach.then_recode import cell_means, recoder_of
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.table.coding import CodedColumn
from unit.audit.audit_oracles import sealed, table_of

ROLES = {"secret": sfumato.Role.SENSITIVE, "y": sfumato.Role.TARGET}


def people(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    y, secret = rng.integers(2, size=n_rows), rng.integers(3, size=n_rows)
    columns = {
        "useful": np.round(y + rng.normal(size=n_rows) / 3, 2),
        "telling": np.round(secret + rng.normal(size=n_rows) / 3, 2),
        "noise": rng.choice(list("abc"), size=n_rows),
    }
    kinds = dict.fromkeys(("useful", "telling"), sfumato.Kind.NUMERIC)
    return table_of({**columns, "secret": np.array(["hiv", "flu", "none"])[secret], "y": y}, ROLES, kinds)


TABLE = people()


@pytest.mark.slow
@pytest.mark.parametrize("then", [None, "mondrian", "global-recoding", "gain-recoding", "local-recoding"])
def test_both_promises_are_stated_and_audited(tmp_path, then):
    release = sfumato.release(TABLE, BreachAwareSelector(k=7, then=then))
    done = publish(release, tmp_path / "out.csv", original=TABLE)
    report = audit_published(done.table_path, done.manifest_path, original=TABLE, check_roles=True)
    manifest = json.loads(done.manifest_path.read_text())
    k_anonymity, bound = (
        next(g for g in manifest["guarantees"] if g["kind"] == kind) for kind in ("k-anonymity", "breach-bound")
    )

    assert report.passed, report.failures
    assert k_anonymity["k"] == 7 <= k_anonymity["audited"]
    assert set(k_anonymity["columns"]) == set(bound["columns"])
    assert bound["audited"] <= 0
    assert (
        manifest["mechanism"]["parameters"] | {"k": 7, "then": then or "mondrian"}
        == manifest["mechanism"]["parameters"]
    )
    assert "telling" in manifest["dropped_columns"]
    assert "secret" in manifest["dropped_columns"]
    assert manifest["suppressed_rows"] == 0


def test_without_k_nothing_is_coarsened_and_nothing_new_is_stated():
    manifest = BreachAwareSelector().release(TABLE).manifest

    assert manifest.recodings == ()
    assert not {"k", "then", "then_settings", "factors"} & set(manifest.mechanism["parameters"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"then_settings": {"split": "gain"}}, "neither then nor k"),
        ({"k": 5, "then_settings": {"k": 3}}, "got k"),
        ({"k": 5, "then": "global-recoding", "then_settings": {"max_suppressed_fraction": 0.1}}, "no row is left out"),
        ({"k": 5, "then": "gain-recoding", "then_settings": {"slicing": True}}, "strict k-anonymity"),
        ({"k": 5, "then_settings": {"colour": 1}}, "colour"),
        ({"k": 1}, "k must be"),
        ({"k": 5, "then": "anatomy"}, "then must be"),
    ],
)
def test_settings_that_would_promise_less_are_refused(settings, said):
    with pytest.raises(InvalidParameterError, match=said):
        BreachAwareSelector(**settings).release(TABLE)


def test_a_k_that_no_set_reaches_is_refused():
    with pytest.raises(PrivacyNotAchievableError, match="k = 301"):
        BreachAwareSelector(k=301).release(TABLE)


def test_the_usual_recoder_and_k():
    assert recoder_of(None, None, None) is None
    assert recoder_of(None, 3, None).mechanism_name == "mondrian"
    assert recoder_of("global-recoding", None, {}).k == 5


@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(-5, 5))), min_size=1, max_size=12))
def test_a_coarsened_number_is_the_mean_of_its_values(rows):
    cells = np.array([cell for cell, _ in rows])
    numbers = np.array([np.nan if number is None else number for _, number in rows], dtype=float)

    found = cell_means(numbers, cells)

    for cell in range(cells.max() + 1):
        own = [number for of, number in rows if of == cell and number is not None]
        assert np.isnan(found[cell]) if not own else found[cell] == pytest.approx(sum(own) / len(own))


def parity(n_rows=240):
    """Make a secret of the parity of two columns, which naive Bayes cannot learn from their values."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(2, size=n_rows), rng.integers(2, size=n_rows)
    secret = np.array(["no", "yes"])[a ^ b]
    return table_of({"a": a, "b": b, "secret": secret, "y": rng.integers(2, size=n_rows)}, ROLES)


def coarsened_parity(table):
    """Coarsen a where the parity is odd: every cell holds its value, and tells the secret."""
    values = np.array([str(value) for value in table["a"].values.to_pylist()])[table["a"].codes]
    odd = np.array(table["secret"].values.to_pylist())[table["secret"].codes] == "yes"
    cells = np.where(odd, "*", values)
    texts = sorted(set(cells.tolist()))
    column = CodedColumn(np.array([texts.index(cell) for cell in cells], dtype=np.int32), pa.array(texts))
    released = table.keep(["a", "b", "y"])
    columns = {**released.columns, "a": column}
    return type(released)(released.schema, columns, released.n_rows, released.source)


def test_the_audit_gives_the_attacker_the_released_cells():
    """By the original's values the bound would hold; by what is released the secret is given away."""
    table = parity()
    released = coarsened_parity(table)
    bound = BreachBound(0.0, "secret", ("a", "b"), ("a", "b"))
    manifest = draft_manifest(
        table,
        released,
        mechanism="breach-aware",
        parameters={"k": 5, "max_breach_increase": 0.0, "attacker": "naive-bayes", "metric": "accuracy"},
        guarantees=[KAnonymity(5, ("a", "b")), bound],
        evidence={},
        recodings=[{"name": "a", "column": "a", "rule": "generalized", "kind": "categorical"}],
    )
    stated = Release(released, manifest).with_order_kept().manifest.to_dict()

    report = audit_release(
        released, stated, AuditorHas(original=table), publisher=PublisherKnows(levels_are_stated=False)
    )

    assert [check.name for check in report.checks if not check.passed] == ["breach-bound: level"]
    assert report.levels[1] > 50


@pytest.mark.slow
def test_the_mechanism_judges_the_released_cells_too():
    """With values alone PBI is 0 by definition, as all columns are kept; a forged level is found."""
    release = BreachAwareSelector(k=7).release(TABLE).with_order_kept()
    stated = release.manifest.to_dict()
    bound = next(entry for entry in stated["guarantees"] if entry["kind"] == "breach-bound")
    bound["max_breach_increase"] = stated["mechanism"]["parameters"]["max_breach_increase"] = -90.0
    bound["statement"] = bound["statement"].replace("at most 0% better", "at least 90% worse")

    report = audit_release(
        release.table, sealed(stated), AuditorHas(original=TABLE), publisher=PublisherKnows(levels_are_stated=False)
    )

    assert [check.name for check in report.checks if not check.passed] == ["breach-bound: level"]
