"""The registry finds mechanisms by itself and builds them from text."""

import pytest

from sfumato.errors import InvalidParameterError
from sfumato.mechanisms import build_mechanism, registered_mechanisms
from sfumato.selection.containment import GreedyContainmentSelector


def test_every_mechanism_builds_with_its_defaults():
    for info in registered_mechanisms().values():
        mechanism = build_mechanism(info.name, {})

        assert callable(mechanism.release)
        assert info.why
        assert info.promises


def test_declared_defaults_are_the_real_ones():
    for info in registered_mechanisms().values():
        given = info.build(**{parameter.name: parameter.default for parameter in info.parameters})

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
