"""Released rows are sorted, so that their order says nothing: two releases cannot be joined by row number.

Measured on 4,000 rows of the demo table: with rows in the order of the input, two 5-anonymous releases that are joined
by row number make hundreds of people unique. Sorted, a release is the same file whatever the order of the input.
"""

import itertools
import json

import numpy as np
import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.publishing.propose import propose_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published, read_manifest, read_released
from sfumato.schema import Role

NAMES = ("age", "sex", "postcode_area", "marital_status", "insurance", "admission_month")
BESIDE = ("discharge_diagnosis", "readmitted")
MORE = {
    "local": sfumato.LocalRecoder(k=5),
    "tree": sfumato.ErrorRiskTree(k=5, generalization="uniform"),
    "slices": sfumato.Slicer(k=5, l=2),
}
MECHANISMS = {
    "gain": sfumato.Mondrian(k=5),
    "median": sfumato.Mondrian(k=5, split="median"),
    "global": sfumato.GlobalRecoder(k=5, max_suppressed_fraction=0.0),
}


@pytest.fixture(scope="module")
def people():
    return admissions(n_rows=4_000).keep((*NAMES, *BESIDE))


@pytest.fixture(scope="module")
def releases(people):
    return {name: propose_release(people, mechanism) for name, mechanism in MECHANISMS.items()}


def classes(table):
    return np.unique(table.codes(table.schema.names(Role.QUASI_IDENTIFIER)), axis=0, return_inverse=True)[1].reshape(-1)


def joined(first, second):
    """Give every row a number by both releases, joined by row number."""
    of_second = classes(second)
    return classes(first) * (of_second.max() + 1) + of_second


def n_unique(numbers):
    return int((np.unique(numbers, return_counts=True)[1] == 1).sum())


def test_in_the_order_of_the_input_a_join_by_row_number_singles_people_out(releases):
    found = [n_unique(joined(a.table, b.table)) for a, b in itertools.combinations(releases.values(), 2)]

    assert all(150 <= n <= 1_500 for n in found), found  # of 4,000; every release alone is 5-anonymous
    assert all(np.bincount(classes(made.table)).min() >= 5 for made in releases.values())


def test_sorted_a_row_number_finds_nobody_beyond_chance(releases):
    """A joined row is right where both files have the same person there; with 4,000 people one is so by chance."""
    for first, second in itertools.combinations(releases.values(), 2):
        is_right = first.order("csv") == second.order("csv")
        true = joined(first.table, second.table)
        by_number = joined(first.data, second.data)
        known, counts = np.unique(true, return_counts=True)
        alone, n_alone = np.unique(by_number, return_counts=True)
        shown = np.isin(alone[n_alone == 1], known[counts == 1]).sum()

        assert is_right.sum() <= 20
        assert shown <= 40  # unique rows of the join that happen to be somebody's: a guess that fits no better


@pytest.mark.parametrize(("name", "suffix"), [("gain", "parquet"), *((n, "csv") for n in (*MECHANISMS, *MORE))])
def test_the_files_are_the_same_whatever_the_order_of_the_input(people, name, suffix, tmp_path):
    """Table and manifest, of mechanisms that choose nothing at random."""
    some, mechanism = people.take(np.arange(1_000)), (MECHANISMS | MORE)[name]
    written = []
    for seed in (None, 1):
        rows = np.arange(1_000) if seed is None else np.random.default_rng(seed).permutation(1_000)
        table = some.take(rows)
        path = tmp_path / str(seed) / f"out.{suffix}"
        path.parent.mkdir()
        done = publish(propose_release(table, mechanism), path, original=table)
        written.append((done.table_path.read_bytes(), done.manifest_path.read_bytes()))

    assert written[0] == written[1]


@pytest.mark.parametrize("mechanism", [sfumato.Anatomy(l=2), sfumato.Slicer(k=5, l=2)])
def test_values_in_buckets_do_not_tell_the_order_either(people, mechanism, tmp_path):
    """The grouping itself may depend on it; given the groups, numbers and places do not."""
    from sfumato.mechanisms.buckets.buckets import arrange, canonical_buckets, piece_ranks

    buckets = np.random.default_rng(4).integers(0, 500, people.n_rows).astype(np.int32)
    found = []
    for seed in (1, 2):
        rows = np.random.default_rng(seed).permutation(people.n_rows)
        table, of_row = people.take(rows), buckets[rows]
        pieces = [piece_ranks(table, names) for names in (("age", "sex"), BESIDE)]
        number, place = canonical_buckets(of_row, pieces)
        source = arrange(pieces[1], number, place, (0, 0))
        cells = [table[name].cells().to_pylist() for name in ("age", "sex")]
        moved = [table[name].take(source).cells().to_pylist() for name in BESIDE]
        found.append(sorted(map(str, zip(number.tolist(), *cells, *moved, strict=True))))

    assert found[0] == found[1]
    made = publish(propose_release(people, mechanism), tmp_path / "made.csv", original=people)
    assert made.audit.passed
    assert not {"cells", "row-order"} & {one.name for one in made.audit.unchecked}


def test_an_order_that_was_kept_is_said_everywhere(people, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_bytes(_csv(people))
    arguments = ["release", "people.csv", "-m", "mondrian", "--target", "readmitted", "-k", "5"]
    arguments += ["--sensitive", "discharge_diagnosis", "--quasi-identifiers", ",".join(NAMES)]

    assert run([*arguments, "-o", "kept.csv", "--keep-order"]) == 0
    said = capsys.readouterr().err
    assert "WARNING: the rows are in the order of the input" in said
    assert run([*arguments, "-o", "sorted.csv"]) == 0
    assert "in the order of the input" not in capsys.readouterr().err

    kept, other = (json.loads((tmp_path / f"{n}.csv.manifest.json").read_text()) for n in ("kept", "sorted"))
    assert (kept["output"]["order"], other["output"]["order"]) == ("as-read", "sorted")
    first, second = ((tmp_path / f"{n}.csv").read_text().splitlines() for n in ("kept", "sorted"))
    assert first != second
    assert sorted(first) == sorted(second)
    report = audit_published(tmp_path / "kept.csv", tmp_path / "kept.csv.manifest.json")
    assert "row-order" in [one.name for one in report.unchecked]


def test_another_order_is_refused(people, releases, tmp_path):
    """A permutation could carry any message: a sorted release must be sorted."""
    done = publish(releases["gain"], tmp_path / "made.csv", original=people)
    manifest, entries = read_manifest(done.manifest_path)
    table = read_released(done.table_path, manifest)
    rows = np.arange(table.n_rows)
    rows[[0, -1]] = rows[[-1, 0]]

    from sfumato.audit.verify import audit_release

    found = audit_release(table.take(rows), entries, file=done.table_path)
    assert "row order" in [check.name for check in found.checks if not check.passed]


def _csv(table):
    import io

    from sfumato.table.io.write import write_table

    file = io.BytesIO()
    write_table(table, file, "csv")
    return file.getvalue()
