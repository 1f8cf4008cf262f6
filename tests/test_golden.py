"""What is released, said and named stays as it was frozen; ``make goldens`` compares more tables and Spark."""

import json

import pytest

from sfumato.guarantees import GUARANTEES
from sfumato.mechanisms.presets import PRESETS
from tests.golden import frozen
from tests.golden.guarantees import MAKERS, PROMISES, guarantee_cases, made_with_guarantees
from tests.golden.inputs import DEMO, UNITS, write_demo, write_visits
from tests.golden.public_names import public_names
from tests.golden.releases import ENDLESS, ON_SPARK, SETTINGS, cases, made

STEP = 3
"""Of the cases of a guarantee, which are makers by units, every third is made here, from another one on each time."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("golden")
    write_demo(found)
    write_visits(found)
    return found


@pytest.mark.parametrize("mechanism", SETTINGS)
@pytest.mark.parametrize("home", ["memory", "out_of_core"])
def test_a_release_of_the_demo_table_has_the_frozen_bytes(folder, home, mechanism):
    todo = [case for case in cases(home, (DEMO,)) if case.mechanism == mechanism]
    expected = frozen.read(home)

    found = {case.name: made(case, folder) for case in todo}

    assert frozen.differences({name: expected[name] for name in found}, found) == []


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("home", ["memory", "out_of_core"])
def test_a_guarantee_by_rows_and_by_persons_is_released_or_refused_as_it_was(folder, home, promise):
    expected = frozen.read(frozen.GUARANTEES + home)

    todo = [case for case in guarantee_cases(home) if case.promise == promise]
    first = list(PROMISES).index(promise) % STEP
    found = {case.name: made_with_guarantees(case, folder) for case in todo[first::STEP] or todo[:1]}

    assert frozen.differences({name: expected[name] for name in found}, found) == []


def test_public_names_words_and_exit_codes_are_the_frozen_ones():
    assert frozen.differences(frozen.read(frozen.PUBLIC_NAMES), json.loads(json.dumps(public_names()))) == []


def test_every_mechanism_is_frozen_wherever_it_works():
    names = [one["name"] for one in public_names()["mechanisms"]]
    assert sorted(SETTINGS) == [name for name in names if name not in PRESETS]  # which are mechanisms of these
    for home in ("memory", "out_of_core", "spark"):
        assert sorted(frozen.read(home)) == sorted(case.name for case in cases(home))
    assert set(ON_SPARK) <= set(SETTINGS)
    assert {mechanism for _, mechanism, _ in ENDLESS} <= set(SETTINGS)


def test_every_guarantee_is_frozen_by_every_maker_wherever_it_is_released():
    for home in ("memory", "out_of_core", "spark"):
        assert sorted(frozen.read(frozen.GUARANTEES + home)) == sorted(case.name for case in guarantee_cases(home))
    assert {maker for promise in PROMISES.values() for maker in promise.makers} == set(MAKERS)
    released = frozen.read(frozen.GUARANTEES + "memory").values()
    stated = {entry["kind"] for found in released for entry in found.get("guarantees", ())}
    assert set(GUARANTEES) - stated == {"differential-privacy", "privacy-gain"}  # random; made by several parties
    for name in PROMISES:
        assert {case.unit for case in guarantee_cases("spark") if case.promise == name} == set(UNITS)
