"""The registry finds mechanisms by itself and builds them from text."""

import subprocess
import sys
from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
import pytest

from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.base import Mechanism, MechanismInfo
from sfumato.mechanisms.containment.greedy import GreedyContainmentSelector
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.parameters import ParameterSpec


def test_every_mechanism_builds_with_its_defaults():
    for info in registered_mechanisms().values():
        mechanism = build_mechanism(info.name, {})

        assert callable(mechanism.release)
        assert info.why
        assert info.promises


def test_declared_defaults_are_the_real_ones():
    for info in registered_mechanisms().values():
        given = build_mechanism(
            info.name, {one.name: one.default for one in info.parameters if one.default is not None}
        )

        assert given.get_params() == info.build().get_params()


def test_text_is_converted():
    built = build_mechanism("greedy-containment", {"k": "7", "on_infeasible": "skip"})

    assert isinstance(built, GreedyContainmentSelector)
    assert (built.k, built.on_infeasible) == (7, "skip")


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("greedy-contaiment", {}, "did you mean 'greedy-containment'"),
        ("greedy-containment", {"critrion": "x"}, "did you mean 'criterion'"),
        ("greedy-containment", {"k": "many"}, "k must be a whole number"),
        ("greedy-containment", {"k": True}, "k must be a whole number"),
        ("greedy-containment", {"criterion": "auc"}, "criterion must be one of"),
        ("greedy-containment", {"binarize": "adult"}, "binarize must be a table"),
    ],
)
def test_mistakes_are_named_with_what_was_probably_meant(name, parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        build_mechanism(name, parameters)


class Documented(Mechanism):
    """Every kind of parameter that a constructor can have."""

    mechanism_name = "documented"
    parameter_specs: ClassVar = {
        "share": ParameterSpec("a share", above=0, at_most=1),
        "k": ParameterSpec("a level", at_least=2),
        "rule": ParameterSpec("a rule"),
        "loss": ParameterSpec("a loss", ("mean", "max")),
        "weights": ParameterSpec("by column"),
        "strict": ParameterSpec("strictly"),
        "limit": ParameterSpec("seconds", above=0, allowed="more than nothing"),
    }

    def __init__(
        self,
        k: int = 5,
        rule: Literal["first", "last"] = "first",
        loss: str = "mean",
        weights: Literal["equal"] | Mapping[str, float] = "equal",
        strict: bool = False,
        share: float = 0.5,
        limit: float | None = None,
    ):
        self.k, self.rule, self.loss, self.weights = k, rule, loss, weights
        self.strict, self.share, self.limit = strict, share, limit

    def release(self, table, *, progress=None):
        raise NotImplementedError


def test_parameters_are_those_of_the_constructor_in_the_order_of_the_declaration():
    found = MechanismInfo(Documented, "why", "promises").parameters

    assert [(p.name, p.type, p.default, p.help, p.choices) for p in found] == [
        ("share", float, 0.5, "a share", ()),
        ("k", int, 5, "a level", ()),
        ("rule", str, "first", "a rule", ("first", "last")),
        ("loss", str, "mean", "a loss", ("mean", "max")),
        ("weights", (str, dict), "equal", "by column", ()),
        ("strict", bool, False, "strictly", ()),
        ("limit", float, None, "seconds", ()),
    ]


@pytest.mark.parametrize(
    ("wrong", "allowed"),
    [
        ({"share": 0}, "a number above 0 and at most 1"),
        ({"share": float("nan")}, "a number above 0 and at most 1"),
        ({"share": None}, "a number above 0 and at most 1"),
        ({"k": 1}, "a whole number of at least 2"),
        ({"k": 2.0}, "a whole number of at least 2"),
        ({"k": True}, "a whole number of at least 2"),
        ({"rule": "any"}, "one of first, last"),
        ({"loss": 5}, "one of mean, max"),
        ({"strict": 1}, "true or false"),
        ({"limit": 0}, "more than nothing"),
    ],
)
def test_values_outside_the_declared_limits_are_refused_in_words(wrong, allowed):
    (name,) = wrong
    with pytest.raises(InvalidParameterError) as refused:
        Documented(**wrong).check_parameters()

    assert str(refused.value) == f"{name} must be {allowed}, got {wrong[name]!r}."


def test_values_at_the_declared_limits_are_taken():
    Documented(k=np.int64(2), share=1, strict=np.True_, limit=None).check_parameters()
    Documented(weights={"any": "thing"}, limit=1e-9).check_parameters()


def test_a_subclass_with_fewer_parameters_is_still_checked():
    class Always(GlobalRecoder):
        def __init__(self, k):
            super().__init__(k=k)

    Always(7).check_parameters("k", "loss")
    with pytest.raises(TypeError, match="its constructor has no 'privacy'"):
        _ = MechanismInfo(Always, "why", "promises").parameters
    with pytest.raises(InvalidParameterError, match="k must be a whole number of at least 2"):
        Always(k=1).check_parameters("k")


@pytest.mark.slow
def test_building_a_mechanism_imports_no_other_family():
    """Nor does knowing all names import any."""
    code = """
import sys
from sfumato.mechanisms import registry

def families():
    parts = [m.split(".") for m in sys.modules if m.startswith("sfumato.mechanisms.")]
    return {p[2] for p in parts if len(p) > 3}

assert len(registry.mechanism_names()) == 18 and not families()
for name in sys.argv[1:]:
    registry.build_mechanism(name, {})
    print(*sorted(families()))
"""
    names = ["greedy-containment", "exact-containment", "breach-aware", "laplace-dp", "gain-recoding"]
    ran = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)

    seen = ["containment", "containment", "breach containment", "baselines breach containment"]
    assert ran.stdout.splitlines() == [*seen, "baselines breach containment hierarchies lattice"]
