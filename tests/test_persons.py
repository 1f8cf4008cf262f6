"""People, not rows: a column with the role person, groups of k persons, one row of each person."""

import html
import json
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.attack.risk import Attacked
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.verify import audit_release
from sfumato.cli.main import run
from sfumato.counting.counts import Pairs
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.evaluation.comparison import counted_by_all, headline_risk
from sfumato.evaluation.treatment import stratified_folds
from sfumato.guarantees import KAnonymity, LDiversity
from sfumato.learning.c45.tree import TreeColumn
from sfumato.learning.cross_fitted import class_scores
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.lattice.conditions import Condition
from sfumato.mechanisms.lattice.lattice import LatticeProblem
from sfumato.mechanisms.lattice.node_checks import NodeChecker
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.lattice.search import search_lattice
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release, propose_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.persons import one_row_per_person, person_codes
from sfumato.table.repeating import IdentifierCounts, repeating_identifiers
from sfumato.table.roles import describe_columns
from sfumato.web.tasks.goal import risk_today
from tests.guarantee_names import by_name, name_of
from tests.person_oracles import stands_for

SCHEMA = Schema.of(
    [
        Column("patient", Role.PERSON),
        Column("age", Role.QUASI_IDENTIFIER, Kind.NUMERIC),
        Column("town", Role.QUASI_IDENTIFIER),
        Column("illness", Role.SENSITIVE),
        Column("better", Role.TARGET),
    ]
)


def visits(n_rows=300, n_persons=120, seed=0):
    """Make visits: some people come often, and most of their visits look alike."""
    random = np.random.default_rng(seed)
    persons = np.minimum(random.geometric(6 / n_persons, n_rows) - 1, n_persons - 1)
    ages = random.integers(20, 80, n_persons)[persons] + random.integers(0, 2, n_rows)
    towns = np.array(["Ulm", "Bonn", "Kiel", "Jena"])[random.integers(0, 4, n_persons)[persons]]
    cells = {
        "patient": pa.array([f"p{person}" for person in persons]),
        "age": pa.array(ages),
        "town": pa.array(towns),
        "illness": pa.array(np.array(["flu", "cold", "cough"])[random.integers(0, 3, n_rows)]),
        "better": pa.array(np.where(random.random(n_rows) < ages / 100, "no", "yes")),
    }
    return Table.from_arrow(pa.table(cells), SCHEMA)


def persons_of_classes(original, released):
    """Count different persons in every class of equal released quasi-identifiers, by brute force."""
    found = defaultdict(set)
    rows = released.to_arrow().select(["age", "town"]).to_pylist()
    for person, row in zip(original.to_arrow().column("patient").to_pylist(), rows, strict=True):
        found[tuple(row.values())].add(person)
    return [len(persons) for persons in found.values()]


# Groups of k persons.


@pytest.mark.sampled
@pytest.mark.parametrize("split", ["penalty", "median", "gain", "score"])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_mondrian_makes_groups_of_k_persons(split, strict, seed):
    table = visits(seed=seed)
    release = make_release(table, Mondrian(k=4, split=split, strict=strict))

    found = persons_of_classes(table, release.table)
    stated = by_name(release)
    assert min(found) >= 4
    assert stated["k-anonymity by persons"]["audited"] == min(found)
    assert stated["k-anonymity by persons"]["unit"] == "patient"
    assert "patient" not in release.table.columns


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.booleans()), min_size=8, max_size=60))
def test_groups_have_k_persons_and_no_allowed_cut_is_left(rows):
    """By brute force: no group can be cut between two values of a column into two groups of k persons."""
    cells = {
        "patient": [f"p{person}" for person, _, _ in rows],
        "age": [age for _, age, _ in rows],
        "town": ["Ulm" if is_ulm else "Bonn" for _, _, is_ulm in rows],
        "illness": ["flu"] * len(rows),
        "better": ["no"] * len(rows),
    }
    table = Table.from_arrow(pa.table(cells), SCHEMA)
    if len(set(cells["patient"])) < 2:
        with pytest.raises(PrivacyNotAchievableError):
            Mondrian(k=2).release(table)
        return
    groups = Mondrian(k=2).recode(table).cover.of_row
    for group in np.unique(groups):
        own = [row for row, number in zip(rows, groups, strict=True) if number == group]
        assert len({person for person, _, _ in own}) >= 2
        for column in (1, 2):
            for cut in sorted({row[column] for row in own})[1:]:
                sides = [{row[0] for row in own if (row[column] >= cut) == is_right} for is_right in (False, True)]
                if column == 1:
                    assert min(map(len, sides)) < 2


@pytest.mark.sampled
@pytest.mark.parametrize("mechanism", ["global-recoding", "gain-recoding"])
@pytest.mark.parametrize("limit", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_recodings_make_groups_of_k_persons(mechanism, limit, seed):
    """Also where rows are suppressed: whole groups, of which the audit finds whose rows they are."""
    table = visits(seed=seed)
    settings = {"k": 4, "max_suppressed_fraction": limit}
    release = make_release(table, build_mechanism(mechanism, settings))
    stated = by_name(release)
    n_left_out = release.manifest.suppressed_rows

    assert n_left_out + release.table.n_rows == table.n_rows
    if not n_left_out:
        assert stated["k-anonymity by persons"]["audited"] == min(persons_of_classes(table, release.table))
    kept = persons_by_levels(table, release)
    assert stated["k-anonymity by persons"]["audited"] == min(kept) >= 4


@pytest.mark.sampled
@pytest.mark.parametrize("weights", ["equal", "gain"])
@pytest.mark.parametrize("seed", range(3))
def test_local_recodings_make_groups_of_k_persons_of_all_rows(weights, seed):
    table = visits(seed=seed)
    release = make_release(table, build_mechanism("local-recoding", {"k": 4, "weights": weights}))
    stated = by_name(release)

    assert release.table.n_rows == table.n_rows
    assert stated["k-anonymity by persons"]["audited"] == min(persons_of_classes(table, release.table)) >= 4


def persons_by_levels(table, release):
    """Count persons in every released group, by looking each original row up in the released cells."""
    cells = release.table.to_arrow().select(["age", "town"]).to_pylist()
    groups = {tuple(row.values()): set() for row in cells}
    for person, age, town in zip(
        *(table.to_arrow().column(n).to_pylist() for n in ("patient", "age", "town")), strict=True
    ):
        for own_age, own_town in groups:
            if stands_for(own_age, age) and stands_for(own_town, town):
                groups[own_age, own_town].add(person)
    return [len(persons) for persons in groups.values()]


def test_a_group_of_which_some_rows_were_left_out_is_refused():
    """The manifest says how many rows are missing; those of a group that is released must all be there."""
    table = visits()
    release = make_release(table, GlobalRecoder(k=4, max_suppressed_fraction=0.4))
    fewer = release.table.take(np.arange(1, release.table.n_rows))
    entries = json.loads(json.dumps(release.manifest.to_dict()))
    entries["suppressed_rows"] += 1
    entries["output"]["rows"] -= 1
    entries["digest"] = manifest_digest(entries)

    report = audit_release(
        fewer, entries, AuditorHas(original=table, roles=True), publisher=PublisherKnows(levels_are_stated=False)
    )

    assert "k-anonymity by persons: level" in {check.name for check in report.checks if not check.passed}


def test_slices_are_refused_where_persons_repeat():
    with pytest.raises(InvalidParameterError, match="slicing"):
        build_mechanism("gain-recoding", {"slicing": True, "threshold": 5}).release(visits())


def test_without_persons_the_same_settings_leave_single_people(capsys):
    """What the role is for: k rows are not k people."""
    table = visits()
    plain = table.with_schema({"patient": "identifier"})

    assert min(persons_of_classes(table, Mondrian(k=4).release(plain).table)) < 4


def test_one_row_a_person_gives_the_bytes_of_a_table_without_persons(tmp_path):
    """With one row a person the person column is an identifier, byte for byte."""
    table = one_row_per_person(visits(), "first")
    kept = Table.from_arrow(table.to_arrow(), SCHEMA)
    paths = []
    for role in ("person", "identifier"):
        described = kept.with_schema({"patient": role})
        published = publish(propose_release(described, Mondrian(k=4)), tmp_path / f"{role}.csv", original=described)
        paths.append(published)
    first, second = (json.loads(one.manifest_path.read_text()) for one in paths)
    for entries in (first, second):
        entries["output"].pop("name")
        entries.pop("digest")

    assert paths[0].table_path.read_bytes() == paths[1].table_path.read_bytes()
    assert first == second


def test_rows_without_a_person_count_as_one_person():
    cells = visits(100).to_arrow()
    unknown = pa.array([None if i % 3 else name for i, name in enumerate(cells.column("patient").to_pylist())])
    table = Table.from_arrow(cells.set_column(0, "patient", unknown), SCHEMA)
    release = make_release(table, Mondrian(k=3))

    assert min(persons_of_classes(table, release.table)) >= 3  # None is one of them at most


def test_one_person_with_all_rows_cannot_be_released():
    cells = visits(40).to_arrow()
    table = Table.from_arrow(cells.set_column(0, "patient", pa.array(["p1"] * 40)), SCHEMA)

    with pytest.raises(PrivacyNotAchievableError, match="of 1 persons"):
        Mondrian(k=2).release(table)


def test_two_values_in_a_group_are_those_of_two_persons():
    """Distinct 2-diversity by persons follows from two values and two persons; oracle: two disjoint pairs."""
    table = visits(200, 60)
    release = make_release(table, Mondrian(k=2, privacy=[LDiversity(2)]))
    groups = defaultdict(set)
    rows = release.table.to_arrow().select(["age", "town", "illness"]).to_pylist()
    for person, row in zip(table.to_arrow().column("patient").to_pylist(), rows, strict=True):
        groups[row["age"], row["town"]].add((person, row["illness"]))

    for pairs in groups.values():
        assert any(a != c and b != d for a, b in pairs for c, d in pairs)


def test_differential_privacy_is_refused_without_a_look_at_the_rows():
    """Also where every person has one row: whether that is so is not looked at."""
    table = one_row_per_person(visits(), "first")
    with pytest.raises(SchemaError, match="tells persons apart"):
        propose_release(table, build_mechanism("laplace-dp", {}))


def test_one_row_of_each_person_is_refused_for_differential_privacy(ran):
    flags = ["--person", "patient_nbr", "--target", "better", "--quasi-identifiers", "age,town", "-m", "laplace-dp"]

    for more in ([], ["--one-row-per-person", "first"]):
        code, said = ran("release", "visits.csv", *flags, *more, "-o", "out.csv")
        assert code in (2, 3), said
        assert "person" in said


# The audit.


def changed(manifest, **changes):
    entries = json.loads(json.dumps(manifest.to_dict()))
    for entry in entries["guarantees"]:
        if name_of(entry) == "k-anonymity by persons":
            entry.update(changes)
    return entries | {"digest": manifest_digest(entries)}


def test_the_audit_needs_the_original_to_count_persons():
    release = make_release(visits(), Mondrian(k=4))
    alone = audit_release(release.table, release.manifest.to_dict())

    assert any("k-anonymity by persons was not measured" in one.message for one in alone.unchecked)
    assert alone.passed


def test_groups_of_rows_that_are_promised_as_groups_of_persons_are_refused():
    """A release by rows with the manifest of one by persons."""
    table = visits()
    by_rows = Mondrian(k=4).release(table.with_schema({"patient": "identifier"}))
    by_persons = Mondrian(k=4).release(table)
    promise = by_name(by_persons)["k-anonymity by persons"]
    forged = by_rows.with_manifest(guarantees=(*by_rows.manifest.guarantees, promise))

    report = audit_release(
        forged.table,
        forged.manifest.to_dict(),
        AuditorHas(original=table, roles=True),
        publisher=PublisherKnows(levels_are_stated=False),
    )

    assert {check.name for check in report.checks if not check.passed} == {"k-anonymity by persons: level"}


@pytest.mark.parametrize("unit", ["town", "nobody"])
def test_persons_told_apart_by_another_column_are_refused(unit):
    table = visits()
    release = make_release(table, Mondrian(k=4))
    statement = KAnonymity(4, ("age", "town"), unit=unit).describe()
    entries = changed(release.manifest, unit=unit, statement=statement)

    report = audit_release(release.table, entries, AuditorHas(original=table, roles=True))

    failed = {check.name for check in report.checks if not check.passed}
    assert "k-anonymity by persons: persons" in failed


def test_a_person_column_that_the_holder_did_not_declare_is_refused():
    """Any unique column would pass for one that tells persons apart."""
    table = visits()
    release = make_release(table, Mondrian(k=4))
    undeclared = table.with_schema({"patient": "identifier"})

    report = audit_release(release.table, release.manifest.to_dict(), AuditorHas(original=undeclared, roles=True))

    assert "k-anonymity by persons: persons" in {check.name for check in report.checks if not check.passed}


# One row of each person.


@pytest.mark.parametrize("rule", ["first", "last", "random"])
def test_one_row_of_each_person_is_kept_and_audited(tmp_path, rule):
    table = visits()
    kept = one_row_per_person(table, rule)
    published = publish(propose_release(kept, GlobalRecoder(k=4)), tmp_path / "out.csv", original=kept)
    stated = json.loads(published.manifest_path.read_text())["input"]

    assert kept.n_rows == table["patient"].n_distinct
    assert person_codes(kept) is None
    assert stated["rows"] == table.n_rows
    assert stated["one_row_per_person"] == {
        "column": "patient",
        "rule": rule,
        "n_dropped": table.n_rows - kept.n_rows,
    }
    assert audit_published(published.table_path, published.manifest_path, original=table, check_roles=True).passed


def test_the_rules_keep_the_rows_that_they_name():
    patients = visits().to_arrow().column("patient").to_pylist()
    numbered = Table.from_arrow(visits().to_arrow().set_column(1, "age", pa.array(range(len(patients)))), SCHEMA)
    found = {rule: one_row_per_person(numbered, rule)["age"].numbers() for rule in ("first", "last", "random")}
    rows = defaultdict(list)
    for row, patient in enumerate(patients):
        rows[patient].append(row)

    assert found["first"].tolist() == sorted(own[0] for own in rows.values())
    assert found["last"].tolist() == sorted(own[-1] for own in rows.values())
    assert len(found["random"]) == len(rows)
    assert not np.array_equal(found["random"], found["first"])


@pytest.mark.parametrize(
    "changes", [{"rule": "last"}, {"n_dropped": 1}, {"column": "town"}, {"column": "nobody"}, None]
)
def test_another_rule_than_the_stated_one_is_refused(tmp_path, changes):
    """Also a release that says nothing of the rows that it left out."""
    table = visits()
    kept = one_row_per_person(table, "first")
    release = make_release(kept, GlobalRecoder(k=4))
    entries = json.loads(json.dumps(release.manifest.to_dict()))
    if changes is None:
        entries["input"].pop("one_row_per_person")
    else:
        entries["input"]["one_row_per_person"] |= changes
    entries["digest"] = manifest_digest(entries)

    assert not audit_release(release.table, entries, AuditorHas(original=table, roles=True)).passed


def test_one_row_for_each_value_of_another_column_is_refused():
    """The manifest says what was done, and that is not what the holder's roles ask for."""
    table = visits()
    kept = one_row_per_person(table, "first", "age")
    release = Mondrian(k=2).release(kept.with_schema({"patient": "identifier"}))

    report = audit_release(
        release.table,
        release.manifest.to_dict(),
        AuditorHas(original=table, roles=True),
        publisher=PublisherKnows(levels_are_stated=False),
    )

    failed = [check.message for check in report.checks if not check.passed]
    assert any("a column that was not declared to tell persons apart" in message for message in failed)


def test_one_row_of_each_person_needs_a_person_column():
    with pytest.raises(SchemaError, match="no column has the role person"):
        one_row_per_person(visits().with_schema({"patient": "identifier"}), "first")
    with pytest.raises(InvalidParameterError, match="first or last or random"):
        one_row_per_person(visits(), "middle")


# Roles and guesses.


def test_a_column_named_row_cannot_tell_persons_apart():
    """A guarantee says by this name that it counts rows."""
    with pytest.raises(SchemaError, match="rename the column"):
        Schema.of([Column("row", Role.PERSON), Column("age")])


def test_only_one_column_tells_persons_apart():
    with pytest.raises(SchemaError, match="2 columns have the role person"):
        Schema.of([Column("a", Role.PERSON), Column("b", Role.PERSON)])


@pytest.mark.parametrize(
    ("name", "repeats", "role"),
    [
        ("patient_nbr", True, Role.PERSON),
        ("patient_nbr", False, Role.IDENTIFIER),
        ("household_id", True, Role.PERSON),
        ("surname", True, Role.IDENTIFIER),
    ],
)
def test_a_number_of_people_that_repeats_tells_them_apart(name, repeats, role):
    numbers = [f"p{i // 2 if repeats else i}" for i in range(100)]
    table = sfumato.read_table(pa.table({name: numbers, "age": list(range(100))}))

    assert describe_columns(table)[0].column.role is role


def test_identifiers_that_repeat_are_asked_about_unless_a_number_of_people_does_not():
    visit, patient = IdentifierCounts("visit_id", 100, 100), IdentifierCounts("patient_id", 100, 100)
    name, often = IdentifierCounts("surname", 60, 100), IdentifierCounts("patient_id", 40, 100)

    assert repeating_identifiers([visit, name]) == [name]
    assert repeating_identifiers([patient, name]) == []
    assert repeating_identifiers([visit, often]) == [often]
    assert "40 values in 100 rows. k and all other guarantees count rows, not people" in often.in_words()


# Folds.


def test_folds_keep_the_rows_of_a_person_together():
    table = visits()
    persons = person_codes(table)
    folds = stratified_folds(table["better"].codes, 5, 0, persons)

    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(table.n_rows))
    for train, test in folds:
        assert not set(persons[train].tolist()) & set(persons[test].tolist())


def test_scores_do_not_learn_from_other_rows_of_the_same_person():
    """A column that tells persons apart predicts the target of a person's other rows, and nothing of new persons."""
    random = np.random.default_rng(1)
    persons = np.repeat(np.arange(200), 5)
    target = random.integers(0, 2, 200)[persons]
    column = TreeColumn(persons.astype(np.int32), 200, persons[::5].astype(float))
    spread = {
        is_grouped: np.abs(
            np.corrcoef(class_scores([column], target, persons=persons if is_grouped else None)[:, 0], target)[0, 1]
        )
        for is_grouped in (False, True)
    }

    assert spread[False] > 0.5
    assert spread[True] < 0.3


def test_scores_survive_a_class_of_one_person():
    persons = np.repeat(np.arange(40), 10)
    target = (persons == 0).astype(np.int64)
    column = TreeColumn((persons % 4).astype(np.int32), 4, None)

    assert np.isfinite(class_scores([column], target, persons=persons)).all()


# Commands.


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a table of visits."""
    monkeypatch.chdir(tmp_path)
    cells = visits().to_arrow()
    pyarrow.csv.write_csv(cells.rename_columns(["patient_nbr", *cells.column_names[1:]]), tmp_path / "visits.csv")
    return tmp_path


@pytest.fixture
def ran(folder, capsys):
    """Run a command, and give its exit code with all that it says."""

    def run_it(*arguments):
        capsys.readouterr()
        code = run([*arguments])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return run_it


def test_the_shortest_command_counts_persons(ran, folder):
    code, said = ran("release", "visits.csv", "--target", "better", "-o", "out.csv", "--quick")

    assert code == 0, said
    assert "belong to at least 5 different persons" in said
    assert "of people, by an attacker" in said
    assert "patient" not in (folder / "out.csv").read_text().splitlines()[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ["release", "visits.csv", "--target", "better", "--quick", "--dry-run"],
        ["audit", "visits.csv"],
        ["init", "visits.csv"],
        ["compare", "visits.csv", "--target", "better", "--dry-run"],
    ],
)
def test_commands_say_that_an_identifier_repeats(ran, arguments):
    said = "note: 'patient_nbr' repeats: "

    assert said in ran(*arguments, "--identifiers", "patient_nbr")[1]
    assert said not in ran(*arguments, "--person", "patient_nbr")[1]


def test_commands_say_what_is_unusual_about_persons(ran, folder):
    """Rows without a person, half of all rows of one person, all rows of one person: one line each."""
    flags = [
        "--person",
        "patient_nbr",
        "--target",
        "better",
        "--quasi-identifiers",
        "age,town",
        "--sensitive",
        "illness",
    ]
    cells = visits().to_arrow().rename_columns(["patient_nbr", "age", "town", "illness", "better"])
    names = {
        "missing": [None if i < 30 else f"p{i % 150}" for i in range(300)],
        "half": ["often" if i % 2 else f"p{i}" for i in range(300)],
        "all": ["often"] * 300,
    }
    found = {}
    for name, persons in names.items():
        table = cells.set_column(0, "patient_nbr", pa.array(persons))
        pyarrow.csv.write_csv(table, folder / f"{name}.csv")
        found[name] = ran("release", f"{name}.csv", *flags, "-m", "mondrian", "-k", "3", "-o", f"{name}-out.csv")

    assert found["missing"][0] == 0, found["missing"][1]
    said = "note: 30 of 300 rows have no value in 'patient_nbr': together they count as the rows of one person"
    assert said in found["missing"][1].splitlines()
    assert said in ran("init", "missing.csv", *flags, "-o", "-")[1].splitlines()
    away = ["-m", "global-recoding", "-k", "3", "--memory", "600MB", "--dry-run"]
    assert said in ran("release", "missing.csv", *flags, *away)[1].splitlines()
    assert found["half"][0] == 0, found["half"][1]
    said = "note: one person has 150 of 300 rows (by 'patient_nbr'): a person counts once in every group"
    assert said in found["half"][1].splitlines()
    assert said in ran("init", "half.csv", *flags, "-o", "-")[1].splitlines()
    assert said in ran("release", "half.csv", *flags, *away)[1].splitlines()
    assert found["all"][0] == 4
    assert "groups of at least 3 of 1 persons" in found["all"][1]
    code, said = ran(
        "audit", "missing-out.csv", "--manifest", "missing-out.csv.manifest.json", "--original", "missing.csv", *flags
    )
    assert code == 0, said
    assert "together they count as the rows of one person" in said


def test_figures_are_about_rows_where_an_identifier_repeats(ran):
    flags = ["--identifiers", "patient_nbr", "--target", "better", "--quick", "--dry-run"]
    said = ran("release", "visits.csv", *flags)[1]

    assert "of people" not in said
    assert "of rows, by an attacker" in said


ROLES = ["--target", "better", "--sensitive", "illness", "--quasi-identifiers", "age,town"]


def test_attacks_count_people_where_a_column_tells_them_apart_and_else_rows(ran, folder):
    for role, counted in {"--person": "people", "--identifiers": "rows"}.items():
        who = [*ROLES, role, "patient_nbr"]
        assert ran("release", "visits.csv", *who, "--quick", "-o", f"{counted}.csv")[0] == 0
        said = ran("attack", "visits.csv", f"{counted}.csv", *who)[1]
        assert f"share of {counted} re-identified (marketer attack)" in said
        assert "rows found by the worst column" in said
        if counted == "rows":
            assert "people" not in said.replace("not people. If it tells people apart", "")


def test_a_risk_profile_counts_the_persons_of_every_class(capsys, folder):
    """By brute force over the original's own classes."""
    assert run(["audit", "visits.csv", *ROLES, "--person", "patient_nbr", "--json"]) == 0
    profile = json.loads(capsys.readouterr().out)
    table, classes = visits().to_arrow(), defaultdict(set)
    rows = list(zip(*(table.column(name).to_pylist() for name in ("patient", "age", "town")), strict=True))
    for person, *known in rows:
        classes[tuple(known)].add(person)
    fewest, missed = defaultdict(lambda: 10**9), defaultdict(lambda: 1.0)
    for persons in classes.values():
        for person in persons:
            fewest[person] = min(fewest[person], len(persons))
            missed[person] *= 1 - 1 / len(persons)
    n_alone = sum(n == 1 for n in fewest.values())

    assert profile["persons"]["n_persons"] == len(fewest)
    assert profile["persons"]["k"] == min(fewest.values())
    assert profile["persons"]["uniques"] == {"count": n_alone, "share": pytest.approx(n_alone / len(fewest))}
    share = sum(n < 5 for n in fewest.values()) / len(fewest)
    assert profile["persons"]["share_at_risk"]["5"] == pytest.approx(share)
    assert profile["reidentification_risk"] == {
        "largest": 1 / min(fewest.values()),
        "mean": pytest.approx(sum(1 / n for n in fewest.values()) / len(fewest)),
        "any_row": {
            "largest": pytest.approx(max(1 - m for m in missed.values())),
            "mean": pytest.approx(sum(1 - m for m in missed.values()) / len(fewest)),
        },
    }


def test_control_attacks_reports_and_the_page_do_not_say_people_where_an_identifier_repeats(ran, folder):
    asked = "not people. If it tells people apart"
    who = [*ROLES, "--identifiers", "patient_nbr"]
    code, said = ran("attack", "visits.csv", "--hold-out", "0.5", *who, "-m", "mondrian", "-k", "3")
    assert code == 0, said
    assert "people" not in said.replace(asked, "")
    assert "rows of one person may be in both groups" in said
    assert ran("release", "visits.csv", *who, "--quick", "-o", "out.csv")[0] == 0
    code, said = ran("report", "out.csv", "--original", "visits.csv", *who, "--quick", "-o", "out.html")
    assert code == 0, said
    assert "note: 'patient_nbr' repeats" in said
    page = html.unescape((folder / "out.html").read_text())
    said = "shares are of rows, not of people: a person may have several, and nothing tells people apart"
    assert said in page
    assert "people" not in page.replace(said, "")
    assert ran("init", "visits.csv", *who)[0] == 0
    found = risk_today(folder, Silent(), project="sfumato.toml")
    assert any("of the rows" in words for words in found["words"])
    assert "people" not in " ".join(found["words"])


def test_the_page_counts_people_where_a_column_tells_them_apart(ran, folder):
    assert ran("init", "visits.csv", *ROLES, "--person", "patient_nbr")[0] == 0
    found = risk_today(folder, Silent(), project="sfumato.toml")

    assert f"{visits()['patient'].n_distinct:,} people have 300 rows" in found["words"][0]


def test_a_comparison_says_what_its_risk_is_a_share_of(folder):
    """Points of both kinds are put in one unit: rows, where one of them could count no people."""
    table = visits()
    persons, rows = table, table.with_schema({"patient": "identifier"})
    by_people, by_rows = (Attacked(one, one).reidentified() for one in (persons, rows))

    assert counted_by_all([{"risk": by_people}, {"risk": None}]) == "people"
    assert counted_by_all([{"risk": by_people}, {"risk": by_rows}]) == "rows"
    assert headline_risk({"risk": by_people}, "rows") == headline_risk({"risk": by_rows}, "rows")
    assert headline_risk({"risk": by_people}) > headline_risk({"risk": by_rows})


class Silent:
    """Hears what a task tells, and says nothing."""

    def progress(self, *_):
        """Take progress."""


def test_a_profile_without_a_person_column_or_with_one_row_each_is_as_ever(capsys, folder):
    assert run(["audit", "visits.csv", *ROLES, "--identifiers", "patient_nbr", "--json"]) == 0
    assert "persons" not in json.loads(capsys.readouterr().out)


def test_an_attack_is_on_the_rows_that_were_kept(ran, folder, capsys):
    """Whoever was left out beforehand cannot be found, and would make the risk of the others look smaller."""
    flags = ["--target", "better", "--person", "patient_nbr"]
    assert ran("release", "visits.csv", *flags, "--one-row-per-person", "last", "--quick", "-o", "one.csv")[0] == 0
    capsys.readouterr()
    assert run(["attack", "visits.csv", "one.csv", *flags, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert found["before"]["reidentification"]["n_people"] == visits()["patient"].n_distinct


def test_one_row_of_each_person_on_the_command_line_and_in_a_project(ran, folder):
    flags = ["--one-row-per-person", "last", "--person", "patient_nbr", "--target", "better"]
    code, said = ran("release", "visits.csv", *flags, "-m", "mondrian", "-o", "flags.csv")
    assert code == 0, said
    assert "kept the last row of each of" in said

    assert ran("init", "visits.csv", *flags)[0] == 0
    assert 'one_row_per_person = "last"' in (folder / "sfumato.toml").read_text()
    assert ran("release", "-m", "mondrian", "-o", "project.csv")[0] == 0
    assert (folder / "flags.csv").read_bytes() == (folder / "project.csv").read_bytes()
    code, said = ran("audit", "project.csv", "--manifest", "project.csv.manifest.json", "--project", "sfumato.toml")
    assert code == 0, said


def test_a_report_says_what_it_rests_on_and_how_the_release_is_made_again(ran, folder):
    flags = [
        "--target",
        "better",
        "--sensitive",
        "illness",
        "--quasi-identifiers",
        "age,town",
        "--person",
        "patient_nbr",
    ]
    for name, more in {"one": ["--one-row-per-person", "last"], "all": []}.items():
        assert ran("release", "visits.csv", *flags, *more, "--quick", "-o", f"{name}.csv")[0] == 0
        ran("report", f"{name}.csv", "--original", "visits.csv", *flags, "--quick", "-o", f"{name}.html")
    one, every = (html.unescape((folder / f"{name}.html").read_text()) for name in ("one", "all"))

    assert "Of each person the last row was kept" in one
    assert "--one-row-per-person last" in one
    assert "Rows of one person may still be linked" in every
    for page in (one, every):
        assert "Every person has one row" not in page


def test_a_mechanism_that_counts_rows_is_refused_with_the_way_out(ran):
    code, said = ran("release", "visits.csv", "--target", "better", "-m", "slicing", "-o", "out.csv")

    assert code == 2
    assert "--one-row-per-person" in said


def test_a_comparison_leaves_out_what_counts_rows(ran):
    code, said = ran("compare", "visits.csv", "--target", "better", "--dry-run")

    assert code == 0, said
    assert "mondrian" in said
    assert "it counts rows, and some persons have several" in said


# How many may lose rows.


def persons_who_lost_rows(table, release):
    """Look every original row up in the released cells, by brute force; who has one that fits none lost it."""
    groups = {tuple(row.values()) for row in release.table.to_arrow().select(["age", "town"]).to_pylist()}
    cells = (table.to_arrow().column(n).to_pylist() for n in ("patient", "age", "town"))
    return {
        person
        for person, age, town in zip(*cells, strict=True)
        if not any(stands_for(own_age, age) and stands_for(own_town, town) for own_age, own_town in groups)
    }


@pytest.mark.sampled
@pytest.mark.parametrize("mechanism", ["global-recoding", "gain-recoding"])
@pytest.mark.parametrize("limit", [0.05, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_no_larger_share_of_persons_loses_a_row_than_of_rows(mechanism, limit, seed):
    table = visits(seed=seed)
    release = make_release(table, build_mechanism(mechanism, {"k": 4, "max_suppressed_fraction": limit}))

    assert len(persons_who_lost_rows(table, release)) <= limit * table["patient"].n_distinct
    assert release.manifest.evidence["utility"]["suppression_limit_counts"] == "rows and persons"
    report = audit_release(release.table, release.manifest.to_dict(), AuditorHas(original=table, roles=True))
    assert {c.passed for c in report.checks if c.name == "suppression limit: persons"} == {True}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.booleans()), min_size=8, max_size=40), st.data())
def test_the_search_finds_the_best_levels_within_both_limits(rows, data):
    """By brute force over all nodes of a small lattice."""
    limit = data.draw(st.sampled_from([0.0, 0.1, 0.25, 0.5]))
    problem, persons = small_lattice(rows, limit)
    allowed = {}
    for levels in np.ndindex(problem.shape):
        labels = [
            tuple(int(maps[lv][c]) for maps, lv, c in zip(problem.level_maps, levels, code, strict=True))
            for code in problem.codes
        ]
        whose = defaultdict(set)
        for label, person in zip(labels, persons, strict=True):
            whose[label].add(person)
        lost = [place for place, label in enumerate(labels) if len(whose[label]) < 2]
        n_lost = int(problem.counts[lost].sum())
        within = n_lost <= limit * problem.n_rows and n_lost < problem.n_rows
        if within and len({persons[place] for place in lost}) <= limit * len(set(persons)):
            allowed[levels] = None
    if not allowed:
        with pytest.raises(PrivacyNotAchievableError):
            search_lattice(problem)
        return
    found = search_lattice(problem)
    losses = {levels: NodeChecker(problem).check(levels) for levels in allowed}
    assert all(one.satisfies for one in losses.values())
    assert found.levels in allowed
    assert found.loss == min(one.rank[0] for one in losses.values())


def small_lattice(rows, limit):
    """Cells of two columns with three and two levels, and the person of each cell."""
    cells = sorted({(age, int(town), person) for person, age, town in rows})
    counts = np.array([sum((a, int(t), p) == cell for p, a, t in rows) for cell in cells])
    ages = (np.arange(6), np.array([0, 0, 1, 1, 2, 2]), np.zeros(6, dtype=int))
    towns = (np.arange(2), np.zeros(2, dtype=int))
    shares = ((np.full(6, 1 / 6), np.full(3, 1 / 3), np.ones(1)), (np.full(2, 0.5), np.ones(1)))
    persons = [person for _, _, person in cells]
    codes = np.unique(persons, return_inverse=True)[1]
    asked = KAnonymity(2, (), unit="patient")
    of_persons = Condition(asked, 0, Pairs.of_units(len(set(persons))), n_persons=len(set(persons)))
    problem = LatticeProblem(
        np.array([cell[:2] for cell in cells]),
        counts,
        (ages, towns),
        shares,
        k=1,
        max_suppressed_fraction=limit,
        conditions=(of_persons,),
        sensitive=(codes,),
        limits_persons=True,
    )
    return problem, persons


def test_a_release_in_which_more_persons_lost_rows_is_refused():
    """A manifest that states a stricter limit than was kept; rows are within it, persons are not."""
    found = None
    for seed in range(12):
        table = visits(seed=seed)
        release = make_release(table, GlobalRecoder(k=6, max_suppressed_fraction=0.4))
        share = release.manifest.suppressed_rows / table.n_rows
        of_persons = len(persons_who_lost_rows(table, release)) / table["patient"].n_distinct
        if 0 < share < of_persons:
            found = table, release, round((share + of_persons) / 2, 3)
            break
    assert found is not None
    table, release, limit = found
    entries = json.loads(json.dumps(release.manifest.to_dict()))
    entries["mechanism"]["parameters"]["max_suppressed_fraction"] = limit
    entries["digest"] = manifest_digest(entries)

    report = audit_release(
        release.table,
        entries,
        AuditorHas(original=table, roles=True),
        publisher=PublisherKnows(levels_are_stated=False),
    )

    failed = {check.name for check in report.checks if not check.passed}
    assert failed == {"suppression limit: persons"}


@pytest.mark.parametrize("words", ["persons", "rows"])
def test_a_limit_of_persons_in_other_words_is_refused(words):
    table = visits()
    release = make_release(table, GlobalRecoder(k=4, max_suppressed_fraction=0.1))
    entries = json.loads(json.dumps(release.manifest.to_dict()))
    entries["evidence"]["utility"]["suppression_limit_counts"] = words
    entries["digest"] = manifest_digest(entries)

    report = audit_release(release.table, entries, AuditorHas(original=table, roles=True))

    assert "suppression limit: persons" in {check.name for check in report.checks if not check.passed}
