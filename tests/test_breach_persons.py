"""breach-aware where persons have several rows: no model is tested on a person whom it was trained on."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.attackers import _folds_of_persons
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.verify import audit_release
from sfumato.errors import InvalidParameterError, ManifestRefusedError
from sfumato.learning.fold_scores import folds
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.breach.problem import problem_of_table
from sfumato.mechanisms.breach.subset_evaluation import LearnerScores
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release, propose_release
from sfumato.publishing.publish import publish
from sfumato.report.guarantee_texts import assumptions_of
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.persons import one_row_per_person

SCHEMA = Schema.of(
    [
        Column("patient", Role.PERSON),
        Column("age", Role.QUASI_IDENTIFIER, Kind.NUMERIC),
        Column("town", Role.QUASI_IDENTIFIER),
        Column("ward", Role.QUASI_IDENTIFIER),
        Column("illness", Role.SENSITIVE),
        Column("better", Role.TARGET),
    ]
)
SETTINGS = {"max_breach_increase": 20.0, "allow_increase": True, "n_folds": 5}


def visits(n_persons=80, seed=0):
    """Make visits whose illness a person's own age and town tell, and those of nobody else."""
    random = np.random.default_rng(seed)
    persons = np.repeat(np.arange(n_persons), random.integers(1, 6, n_persons))
    illness = random.integers(0, 3, n_persons)[persons]
    cells = {
        "patient": pa.array([f"p{person}" for person in persons]),
        "age": pa.array(random.integers(20, 90, n_persons)[persons]),
        "town": pa.array([f"t{town}" for town in random.integers(0, 40, n_persons)[persons]]),
        "ward": pa.array(np.array(["a", "b", "c"])[random.integers(0, 3, len(persons))]),
        "illness": pa.array(np.array(["flu", "cold", "gout"])[illness]),
        "better": pa.array(np.where(random.random(len(persons)) < 0.5, "no", "yes")),
    }
    return Table.from_arrow(pa.table(cells), SCHEMA)


ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=3, max_size=60)


@given(ROWS, st.integers(2, 5), st.integers(0, 3))
def test_folds_have_all_rows_of_a_person(rows, n_folds, seed):
    persons, classes = np.array(rows).T
    n_persons = len(set(persons.tolist()))
    if n_folds > n_persons:
        if n_folds <= len(rows):
            with pytest.raises(InvalidParameterError, match="the number of persons"):
                folds(classes, n_folds, seed, persons)
        return
    for found in (folds(classes, n_folds, seed, persons), _folds_of_persons(classes, persons)):
        for person in set(persons.tolist()):
            assert len(set(found[persons == person].tolist())) == 1
    found = folds(classes, n_folds, seed, persons)
    of_fold = [len(set(persons[found == fold].tolist())) for fold in range(n_folds)]
    assert max(of_fold) - min(of_fold) <= 1


@given(ROWS, st.integers(2, 3), st.integers(0, 3))
def test_with_one_row_a_person_folds_are_those_of_rows(rows, n_folds, seed):
    classes = np.array([value for _, value in rows])

    assert np.array_equal(folds(classes, n_folds, seed, np.arange(len(rows))), folds(classes, n_folds, seed))


def test_an_attacker_does_not_know_the_persons_whom_it_is_tested_on():
    """Age and town tell a known person's illness: by rows the breach looks large, by persons there is none."""
    table = visits(200)
    right = {}
    for role in ("person", "identifier"):
        problem = problem_of_table(table.with_schema({"patient": role}), None).in_order_of_values()
        with LearnerScores(problem, "accuracy", 5, 0, 1) as made:
            right[role] = made.of(["c45"], problem.sensitive).scores((0, 1, 2)).mean()

    assert right["identifier"] > 0.6
    assert right["person"] < 0.5


def test_a_release_says_that_persons_are_kept_apart_and_is_confirmed(tmp_path):
    table = visits()
    release = make_release(table, build_mechanism("breach-aware", SETTINGS))
    (entry,) = release.manifest.guarantees
    published = publish(release, tmp_path / "out.csv", original=table)

    assert entry["unit"] == "patient"
    assert "trained on some persons and tested on others" in entry["statement"]
    assert "Every person has one row" not in " ".join(assumptions_of(release.manifest))
    assert "patient" not in published.table_path.read_text().splitlines()[0]


@pytest.mark.parametrize("unit", ["ward", "row"])
def test_another_column_than_the_declared_one_is_refused(unit):
    table = visits()
    release = make_release(table, build_mechanism("breach-aware", SETTINGS))
    entries = json.loads(json.dumps(release.manifest.to_dict()))
    entries["guarantees"][0]["unit"] = unit
    entries["digest"] = manifest_digest(entries)

    assert not audit_release(release.table, entries, AuditorHas(original=table, roles=True)).passed


@pytest.mark.parametrize("changes", [{}, {"unit": ""}], ids=["none", "empty"])
def test_a_promise_that_does_not_say_its_unit_is_refused(changes):
    table = visits()
    release = make_release(table, build_mechanism("breach-aware", SETTINGS))
    entries = json.loads(json.dumps(release.manifest.to_dict()))
    del entries["guarantees"][0]["unit"]
    entries["guarantees"][0] |= changes
    entries["digest"] = manifest_digest(entries)

    with pytest.raises(ManifestRefusedError, match="unit"):
        audit_release(release.table, entries, AuditorHas(original=table, roles=True))


def test_one_row_a_person_gives_the_bytes_of_a_table_without_persons(tmp_path):
    kept = Table.from_arrow(one_row_per_person(visits(200), "first").to_arrow(), SCHEMA)
    manifests = []
    for role in ("person", "identifier"):
        described = kept.with_schema({"patient": role})
        proposed = propose_release(described, build_mechanism("breach-aware", SETTINGS))
        published = publish(proposed, tmp_path / f"{role}.csv", original=described)
        entries = json.loads(published.manifest_path.read_text())
        entries["output"].pop("name")
        entries.pop("digest")
        manifests.append(entries)

    assert (tmp_path / "person.csv").read_bytes() == (tmp_path / "identifier.csv").read_bytes()
    assert manifests[0] == manifests[1]
