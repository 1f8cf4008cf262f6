"""Mechanisms are estimators as scikit-learn knows them, and do not import it where nothing is trained."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

from sfumato.errors import InvalidParameterError
from sfumato.guarantees import TCloseness
from sfumato.mechanisms.auto import Automatic
from sfumato.mechanisms.baselines.flipping import RandomFlipper
from sfumato.mechanisms.buckets.anatomy import Anatomy
from sfumato.mechanisms.buckets.slicing import Slicer
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.microaggregation.mdav import MDAV
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree

ESTIMATORS = [
    Automatic(),
    Mondrian(),
    MDAV(),
    ErrorRiskTree(),
    GlobalRecoder(),
    Anatomy(),
    Slicer(),
    RandomFlipper(),
]
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
CONTRACT = {
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}
"""Of scikit-learn's checks those of the parameters; the others fit matrices, and recoders take tables."""


def contract_checks(estimator):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimator .* does not inherit from `sklearn.base.BaseEstimator`")
        found = list(estimator_checks_generator(estimator))
    named = ((getattr(check, "func", check).__name__, check) for _, check in found)
    return {name: check for name, check in named if name in CONTRACT}


@each_estimator
def test_scikit_learn_s_checks_of_parameters_pass(estimator):
    checks = contract_checks(estimator)

    assert set(checks) == CONTRACT
    for check in checks.values():
        check(clone(estimator))


@each_estimator
def test_a_clone_has_equal_parameters_and_none_of_what_was_learned(estimator):
    estimator = clone(estimator)
    estimator.recoding_ = "found"

    made = clone(estimator)

    assert type(made) is type(estimator)
    assert made.get_params() == estimator.get_params()
    assert not hasattr(made, "recoding_")


def test_a_clone_shares_no_list_with_the_original():
    asked = Mondrian(privacy=[TCloseness(0.2)])

    made = clone(asked)

    assert made.privacy == asked.privacy
    assert made.privacy is not asked.privacy


def test_set_params_refuses_an_unknown_name_with_those_there_are():
    with pytest.raises(InvalidParameterError, match=r"of Mondrian must be one of criterion, k, .*got 'rows'"):
        Mondrian().set_params(rows=3)


def test_its_repr_names_what_differs_from_the_defaults():
    assert repr(Mondrian()) == "Mondrian()"
    assert repr(Mondrian(k=7, strict=False)) == "Mondrian(k=7, strict=False)"


def test_a_pipeline_clones_draws_routes_and_sets_parameters_of_a_recoder():
    frame = pd.DataFrame({"age": np.arange(40) % 10, "sex": list("fm") * 20})
    pipeline = make_pipeline(Mondrian(k=5)).set_params(mondrian__k=10)

    with config_context(enable_metadata_routing=True):
        found = clone(pipeline).set_output(transform="pandas").fit_transform(frame)

    assert found.value_counts().min() >= 10
    assert "Mondrian" in pipeline._repr_html_()
    assert "Mondrian" in Mondrian()._repr_html_()
    assert not get_tags(pipeline).target_tags.required


# Runs a command and says last which heavy packages it imported.
IMPORTED = """
import json
import sys

from sfumato.cli.main import run

code = run(sys.argv[1:])
heavy = [name for name in ("sklearn", "matplotlib", "scipy.stats", "scipy.optimize") if name in sys.modules]
print(json.dumps({"code": code, "imported": heavy}))
"""


@pytest.mark.parametrize(
    "options",
    [("-m", "mondrian"), ("-m", "mondrian", "-p", "l=2"), ("-m", "mdav"), ("-m", "global-recoding")],
    ids=" ".join,
)
def test_a_release_that_trains_nothing_does_not_import_scikit_learn(options, tmp_path):
    rng = np.random.default_rng(3)
    rows = [f"{rng.integers(20, 60)},{'abcd'[rng.integers(4)]},{'uvw'[rng.integers(3)]}" for _ in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(["age,town,illness", *rows, ""]))
    roles = ("--quasi-identifiers", "age,town", "--sensitive", "illness")
    command = ["release", str(tmp_path / "people.csv"), *options, *roles, "--quick", "-o", str(tmp_path / "out.csv")]

    done = subprocess.run([sys.executable, "-c", IMPORTED, *command], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout.splitlines()[-1]) == {"code": 0, "imported": []}
