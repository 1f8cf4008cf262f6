"""Parties on machines of their own, over lines that are slow, lose packets or are cut in the middle of a session."""

import json

import pytest

from sfumato.collaborate.session.party import ALL_READY
from unit.collaborate.groups import Nursery
from unit.collaborate.machines import Machines, why_not

NAMES = ("ann", "bob", "cid")
COUNTS = "counts/64/seeds-sum"
LIMIT = 4.0  # seconds; runs only in the stage in which lines are cut


@pytest.fixture(scope="module", autouse=True)
def _machines_can_be_made():
    """Try it when these tests are run, and not in every process that collects them: it takes a process of its own."""
    reason = why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as started:
        yield started


def both_ways(*pairs):
    return [way for one, two in pairs for way in ((one, two), (two, one))]


def last_line(outcome):
    return outcome.said.splitlines()[-1]


def last_entry(machines, name):
    return json.loads(machines.group.transcript(name).read_text().splitlines()[-1])


def test_a_session_succeeds_over_slow_lines_that_lose_packets(nursery, tmp_path):
    machines = Machines(tmp_path, delay=0.05, loss=0.02)

    outcomes = machines.run(nursery)

    assert [outcome.code for outcome in outcomes.values()] == [0, 0, 0], outcomes
    assert machines.group.releases() == set(NAMES)


def test_a_party_whose_line_is_cut_names_its_own_line_and_the_others_name_the_party(nursery, tmp_path):
    machines = Machines(tmp_path, timeout=LIMIT, delay=0.01)

    outcomes = machines.run(
        nursery, stops_at=COUNTS, then=lambda: machines.cut(*both_ways(("ann", "cid"), ("bob", "cid")))
    )

    for name in ("ann", "bob"):
        assert outcomes[name].code == 6
        assert f"party 'cid', stage '{COUNTS}': sent nothing within the time limit" in last_line(outcomes[name])
        assert "Nothing was released." in last_line(outcomes[name])
    assert outcomes["cid"].code == 6
    assert f"party 'cid', stage '{COUNTS}': heard nothing from any other party" in last_line(outcomes["cid"])
    assert "its own line is probably down. Nothing was released." in last_line(outcomes["cid"])
    assert machines.group.releases() == set()


def test_of_two_whose_line_is_cut_all_report_the_line(nursery, tmp_path):
    machines = Machines(tmp_path, timeout=LIMIT, delay=0.01)

    outcomes = machines.run(nursery, stops_at=COUNTS, then=lambda: machines.cut(*both_ways(("ann", "bob"))))

    for name in NAMES:
        assert outcomes[name].code == 6
        assert f"parties 'ann' and 'bob', stage '{COUNTS}': neither gets what the other sends" in last_line(
            outcomes[name]
        )
        assert last_entry(machines, name)["line"] == ["ann", "bob"]
    assert machines.group.releases() == set()


def test_a_party_cut_off_in_the_last_round_says_that_the_others_may_have_published(nursery, tmp_path):
    """What it says last gets through, what the others say does not: they publish."""
    machines = Machines(tmp_path, timeout=LIMIT, delay=0.01)

    outcomes = machines.run(nursery, stops_at=ALL_READY, then=lambda: machines.cut(("ann", "cid"), ("bob", "cid")))

    assert [outcomes[name].code for name in NAMES] == [0, 0, 6], outcomes
    assert machines.group.releases() == {"ann", "bob"}
    said = last_line(outcomes["cid"])
    assert f"party 'cid', stage '{ALL_READY}': heard nothing from any other party" in said
    assert "its own line is probably down. The others may have published; this party did not." in said
    assert "Nothing was released" not in outcomes["cid"].said
    assert last_entry(machines, "cid")["others_may_have_published"] is True
    assert last_entry(machines, "ann")["outcome"] == "complete"
