"""New rows matched with the cells of a released file, for recipients who have no original."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.cli.main import run
from sfumato.errors import InputError, InvalidParameterError, PrivacyNotAchievableError
from sfumato.evaluation.matching import by_released_cells
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.reaudit import read_released
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.generalized import read_cell

LEVELS = ("low", "mid", "high")
CANARY = "CANARY-7f3a"


def table_of(rows):
    ages, jobs, levels = zip(*rows, strict=True)
    cells = {
        "age": [str(age) for age in ages],
        "job": pa.array(jobs, pa.string()),
        "level": levels,
        "y": ["pq"[i % 2] for i in range(len(rows))],
    }
    columns = [
        Column("age", kind=Kind.NUMERIC),
        Column("job"),
        Column("level", kind=Kind.ORDERED, domain=LEVELS),
        Column("y", Role.TARGET),
    ]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def published(table, mechanism, folder):
    """Write a release and read it as a recipient does."""
    made = sfumato.publish(sfumato.release(table, mechanism), folder / "release.csv", original=table, force=True)
    return read_released(made.table_path, made.release.manifest), made.release.manifest


ROWS = st.tuples(st.integers(20, 40), st.none() | st.sampled_from("abcd"), st.sampled_from(LEVELS))
NEW = st.tuples(st.integers(15, 45), st.none() | st.sampled_from("abcdx"), st.sampled_from([*LEVELS, "none such"]))


def may_mean(cell, value, column):
    """Whether a cell holds a value, by the definition of cells."""
    said = read_cell(cell)
    if said.is_any:
        return True
    if value is None:
        return said.may_be_missing
    if said.bounds is None:
        return value in said.values
    if column == "age":
        return int(said.bounds[0]) <= int(value) <= int(said.bounds[1])
    return value in LEVELS[LEVELS.index(said.bounds[0]) : LEVELS.index(said.bounds[1]) + 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mondrian", "error-risk-tree"])
@given(rows=st.lists(ROWS, min_size=8, max_size=30), new=st.lists(NEW, min_size=1, max_size=12))
def test_a_row_gets_a_class_that_holds_it_if_there_is_one(tmp_path_factory, name, rows, new):
    """By the definition, class by class; and groups that do not overlap are those of the recoding itself."""
    table, others = table_of(rows), table_of(new)
    mechanism = build_mechanism(name, {"k": 3})
    released, manifest = published(table, mechanism, tmp_path_factory.mktemp("match"))
    names = ["age", "job", "level"]
    found = by_released_cells(released, manifest, others, "generalize").to_arrow().to_pydict()
    classes = set(zip(*(released[name].cells().to_pylist() for name in names), strict=True))
    values = list(zip(*(others[name].cells().to_pylist() for name in names), strict=True))

    for i, own in enumerate(values):
        fitting = [c for c in classes if all(may_mean(c[j], own[j], names[j]) for j in range(3))]
        got = tuple(found[name][i] for name in names)
        assert got in fitting if fitting else got == ("*", "*", "*")
    assert found["y"] == others["y"].cells().to_pylist()
    if name == "mondrian":
        by_recoding = mechanism.fit(table).transform(table).to_arrow().to_pydict()
        again = by_released_cells(released, manifest, table).to_arrow().to_pydict()
        assert again == by_recoding


@pytest.mark.slow
@given(rows=st.lists(ROWS, min_size=8, max_size=30), new=st.lists(NEW, min_size=1, max_size=12))
def test_labels_are_those_of_the_recoding_wherever_a_class_fits(tmp_path_factory, rows, new):
    """With one level a column no two labels hold a value."""
    jobs = Hierarchy.from_rows([("a", "ab", "*"), ("b", "ab", "*"), ("c", "cd", "*"), ("d", "cd", "*"), ("", "", "*")])
    table = table_of(rows).keep(["age", "job", "y"])
    others = table_of([one for one in new if one[1] != "x"] or [(20, "a", "low")]).keep(["age", "job", "y"])
    mechanism = GlobalRecoder(k=3, max_suppressed_fraction=0.5, regroup=False, hierarchies={"job": jobs})
    try:
        released, manifest = published(table, mechanism, tmp_path_factory.mktemp("match"))
    except PrivacyNotAchievableError:
        return
    matched = by_released_cells(released, manifest, others, "generalize").to_arrow().to_pylist()
    expected = mechanism.fit(table).transform(others).to_arrow().to_pylist()
    classes = {(row["age"], row["job"]) for row in released.to_arrow().to_pylist()}

    for own, wanted in zip(matched, expected, strict=True):
        if (own["age"], own["job"]) != ("*", "*"):
            assert (own["age"], own["job"]) in classes
            assert own == wanted


@pytest.fixture
def release_of_ages(tmp_path):
    table = table_of([(20 + i // 5, "ab"[i % 2], "low") for i in range(40)])
    return published(table, sfumato.Mondrian(k=4), tmp_path)


@pytest.mark.slow
def test_rows_of_no_class_are_refused_by_their_numbers(release_of_ages):
    released, manifest = release_of_ages
    new = table_of([(20, "a", "low"), (99, "a", "low"), (21, CANARY, "low")])

    with pytest.raises(InputError, match=r"2 rows \(2, 3\) fit the cells of no released class") as refused:
        by_released_cells(released, manifest, new)
    assert CANARY not in str(refused.value)
    assert "99" not in str(refused.value)


@pytest.mark.slow
def test_of_several_classes_the_narrowest_is_taken(tmp_path):
    """Two classes hold 20 a: the one that names one age, and the one of all ages."""
    released = table_of([(20, "a", "low")] * 4 + [(21, "a", "low")] * 4).keep(["age", "job", "y"])
    made = published(released, sfumato.Mondrian(k=4), tmp_path)
    path = tmp_path / "release.csv"
    path.write_bytes(b"age,job,y\n" + b'"[20, 21]",a,p\n' * 6 + b"20,a,p\n" * 2)
    read = read_released(path, made[1])
    manifest = sfumato.Manifest(**{**vars(made[1]), "output": {**made[1].output, "sha256": read.source.sha256}})
    new = table_of([(20, "a", "low"), (21, "a", "low")]).keep(["age", "job", "y"])

    assert read.n_rows == 8
    assert by_released_cells(read, manifest, new)["age"].cells().to_pylist() == ["20", "[20, 21]"]


@pytest.mark.slow
def test_another_file_and_releases_without_coarse_cells_are_refused(release_of_ages, tmp_path):
    released, manifest = release_of_ages
    other = Table.from_arrow(released.to_arrow(), released.schema)
    with pytest.raises(InputError, match="is not the released file"):
        by_released_cells(other, manifest, table_of([(20, "a", "low")]))
    table = table_of([(20 + i % 4, "ab"[i % 2], "low") for i in range(40)])
    features, about = published(table, build_mechanism("greedy-containment", {"k": 3}), tmp_path)

    with pytest.raises(InvalidParameterError, match="whose values were coarsened"):
        by_released_cells(features, about, table)


def test_recipients_do_it_with_manifest_and_file_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [f"{20 + i // 5},{'ab'[i % 2]},{'pq'[i % 2]}" for i in range(40)]
    Path("old.csv").write_text("\n".join(["age,job,y", *lines]) + "\n")
    roles = ["--target", "y", "--quasi-identifiers", "age,job"]
    assert run(["release", "old.csv", *roles, "-m", "mondrian", "-o", "release.csv"]) == 0
    Path("old.csv").unlink()
    Path("new.csv").write_text(f"job,age\na,20\nb,27\n{CANARY},99\n")
    capsys.readouterr()
    given_files = ["apply", "release.csv.manifest.json", "new.csv", "--release", "release.csv", "-o", "out.csv"]
    assert run(given_files) == 3
    said = capsys.readouterr().err
    assert "1 row (3)" in said
    assert CANARY not in said
    assert run([*given_files, "--unknown", "generalize"]) == 0
    written = Path("out.csv").read_text().splitlines()
    released = {row.rpartition(",")[0] for row in Path("release.csv").read_text().splitlines()}

    assert written[0] == "age,job"
    assert written[3] == "*,*"
    assert set(written[1:3]) <= released
