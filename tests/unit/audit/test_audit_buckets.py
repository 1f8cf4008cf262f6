"""The audit's view of buckets: their size and diversity, what they hold, and the order in which they hold it."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.checks import Check
from sfumato.audit.claims import read_claims
from sfumato.audit.kinds import JUDGED
from sfumato.audit.levels.buckets import (
    check_bucket_numbers,
    check_bucket_promise,
)
from sfumato.audit.original.buckets import check_buckets, check_sorted_buckets
from sfumato.audit.reading.columns import Columns
from sfumato.audit.verify import audit_release, measured_level
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import KAnonymity, guarantee_from_dict
from sfumato.guarantees.buckets import BucketDiversity, BucketSize
from sfumato.mechanisms.buckets.anatomy import Anatomy
from sfumato.mechanisms.buckets.slicing import Slicer
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

SIZE = BucketSize(("age", "town"), "bucket", 4)
DIVERSITY = BucketDiversity(("age", "town"), "bucket", 2, "illness")


def original(n=60, seed=1):
    rng = np.random.default_rng(seed)
    cells = {
        "person": [f"p{i}" for i in range(n)],
        "age": rng.integers(20, 60, n).astype(str).tolist(),
        "town": rng.choice(list("abc"), n).tolist(),
        "illness": [None if i % 10 == 0 else "uvwx"[i % 4] for i in range(n)],
        "y": rng.choice(["j", "n"], n).tolist(),
    }
    columns = [
        Column("person", Role.IDENTIFIER),
        Column("age", kind=Kind.NUMERIC),
        Column("town"),
        Column("illness", Role.SENSITIVE),
        Column("y", Role.TARGET),
    ]
    return Table.from_arrow(pa.table({k: pa.array(v, pa.string()) for k, v in cells.items()}), Schema.of(columns))


def with_cells(table, **cells):
    arrow = table.to_arrow()
    for name, values in cells.items():
        arrow = arrow.set_column(arrow.column_names.index(name), name, pa.array(values, pa.string()))
    return Table.from_arrow(arrow, table.schema)


def cells_of(table, name):
    return table[name].cells().to_pylist()


def checks_of(released, before, manifest, *, slices=None, seed=0, rows=None, recoded=(), in_original_order=True):
    """Say what the audit finds of the values of slices; where they fit, also of numbers and places."""
    done = manifest.perturbation
    compared = Columns(released), Columns(before), done["bucket"], slices or done["slices"]
    offered = np.arange(before.n_rows) if rows is None else rows
    if in_original_order:
        found = list(check_buckets(*compared, offered, recoded))
    else:
        found = [one for one in check_sorted_buckets(*compared, offered, recoded) if isinstance(one, Check)]
    if all(check.passed for check in found):
        claims = replace(read_claims(manifest.to_dict()), seed=seed)
        found += check_bucket_numbers(Columns(released), done["bucket"], done["slices"], claims)
    return {check.name: check.passed for check in found}


ALL = {"slices": True, "bucket numbers": True, "order within buckets": True}


def naive_diversity(table, sensitive, names):
    held = defaultdict(Counter)
    for key in zip(*(cells_of(table, name) for name in (*names, sensitive)), strict=True):
        held[key[:-1]][key[-1]] += 1
    return min(sum(counts.values()) / max(counts.values()) for counts in held.values())


@pytest.mark.parametrize("mechanism", [Anatomy(l=2), Anatomy(l=4), Slicer(k=4, l=2), Slicer(k=3, l=2, n_slices=1)])
def test_what_the_mechanisms_make_is_confirmed(mechanism):
    before = original()
    release = mechanism.release(before)

    assert checks_of(release.table, before, release.manifest) == ALL
    assert checks_of(release.data, before, release.manifest, in_original_order=False) == ALL


@pytest.mark.parametrize("mechanism", [Anatomy(l=2), Slicer(k=4, l=2)])
def test_buckets_in_another_order_are_seen(mechanism):
    """Numbers of buckets that are free could carry a message."""
    before = original()
    release = mechanism.release(before)
    name = release.manifest.perturbation["bucket"]
    swapped = {"1": "2", "2": "1"}
    others = with_cells(release.table, **{name: [swapped.get(cell, cell) for cell in cells_of(release.table, name)]})
    spelled = with_cells(release.table, **{name: [f"0{cell}" for cell in cells_of(release.table, name)]})

    assert not checks_of(others, before, release.manifest)["bucket numbers"]
    assert not checks_of(spelled, before, release.manifest)["bucket numbers"]


def test_levels_agree_with_counting_by_hand():
    released = Slicer(k=4, l=2).release(original()).table

    assert measured_level(SIZE, released) == min(Counter(cells_of(released, "bucket")).values())
    for beside in ((), ("town",), ("town", "age")):
        guarantee = replace(DIVERSITY, beside=beside)
        assert measured_level(guarantee, released) == naive_diversity(released, "illness", ("bucket", *beside))


def test_equal_numbers_in_two_spellings_are_one_sensitive_value():
    table = Table.from_arrow(
        pa.table({"bucket": ["1", "1", "1", "1"], "s": ["2", "2.0", "3", "4"]}),
        Schema.of([Column("bucket"), Column("s", Role.SENSITIVE, Kind.NUMERIC)]),
    )

    assert measured_level(BucketDiversity((), "bucket", 2, "s"), table) == 2


def test_a_table_without_rows_keeps_no_promise():
    nothing = Anatomy(l=2).release(original()).table.take(np.zeros(0, dtype=np.intp))

    assert measured_level(replace(SIZE, bucket="group"), nothing) == 0
    assert measured_level(replace(DIVERSITY, bucket="group"), nothing) == 0


def test_values_that_stay_at_their_rows_are_seen():
    """The multisets fit, but nothing was moved: the order must be the public one."""
    before = original()
    release = Anatomy(l=2).release(before)
    unmoved = with_cells(release.table, illness=cells_of(before, "illness"))

    assert checks_of(unmoved, before, release.manifest) == ALL | {"order within buckets": False}
    assert not checks_of(unmoved, before, release.manifest, in_original_order=False)["order within buckets"]


def test_an_order_of_another_seed_is_seen():
    before = original()
    release = Slicer(k=4, l=2, random_state=3).release(before)

    assert checks_of(release.table, before, release.manifest, seed=3)["order within buckets"]
    for seed in (4, None, True, "3", -1, 2**63):
        assert not checks_of(release.table, before, release.manifest, seed=seed)["order within buckets"]


def test_a_value_that_changed_its_bucket_is_seen():
    before = original()
    release = Slicer(k=4, l=2).release(before)
    for slice_ in release.manifest.perturbation["slices"]:
        cells = cells_of(release.table, slice_[0])
        buckets = cells_of(release.table, "bucket")
        here = 0
        there = next(i for i in range(60) if buckets[i] != buckets[here] and cells[i] != cells[here])
        cells[here], cells[there] = cells[there], cells[here]
        tampered = with_cells(release.table, **{slice_[0]: cells})
        assert checks_of(tampered, before, release.manifest) == {"slices": False}
        assert checks_of(tampered, before, release.manifest, in_original_order=False) != ALL


@pytest.mark.parametrize("value", ["u", "x", None])
def test_a_value_that_the_original_lacks_is_seen(value):
    before = original()
    release = Anatomy(l=2).release(before)
    foreign = ["zz" if cell == value else cell for cell in cells_of(release.table, "illness")]

    assert not checks_of(with_cells(release.table, illness=foreign), before, release.manifest)["slices"]
    assert not checks_of(with_cells(release.table, illness=foreign), before, release.manifest, in_original_order=False)[
        "slices"
    ]


def test_a_slice_whose_columns_were_moved_apart_is_seen():
    """Each column's values fit bucket by bucket, their pairs do not."""
    before = original()
    release = Anatomy(l=2, random_state=0).release(before)
    groups = cells_of(release.table, "group")
    ages, towns = cells_of(before, "age"), cells_of(before, "town")
    pairs = ((i, j) for i in range(60) for j in range(i) if groups[i] == groups[j])
    pair = next((i, j) for i, j in pairs if ages[i] != ages[j] and towns[i] != towns[j])
    ages[pair[0]], ages[pair[1]] = ages[pair[1]], ages[pair[0]]
    tampered = with_cells(release.table, age=ages)

    assert not checks_of(tampered, before, release.manifest, slices=[["person", "age"]]).get("slices")
    assert not checks_of(tampered, before, release.manifest, slices=[["age", "town", "y"]]).get("slices")


@pytest.mark.parametrize(
    "change",
    [
        {"rows": np.arange(59)},
        {"slices": [["illness"], ["illness"]]},
        {"slices": [["illness", "nowhere"]]},
        {"slices": [["illness"], []]},
        {"recoded": ["illness"]},
        {"recoded": ["group"]},
    ],
)
def test_what_cannot_be_compared_fails(change):
    before = original()
    release = Anatomy(l=2).release(before)

    assert checks_of(release.table, before, release.manifest, **change) == {"slices": False}
    assert checks_of(release.table, before, release.manifest, **change, in_original_order=False) == {"slices": False}


def test_a_bucket_must_be_a_new_column_that_is_nowhere_missing():
    before = original()
    release = Anatomy(l=2).release(before)
    named = replace(release.manifest, perturbation={"kind": "bucketed", "bucket": "town", "slices": [["illness"]]})
    groups = cells_of(release.table, "group")
    holed = with_cells(release.table, group=[None, *groups[1:]])

    assert checks_of(release.table, before, named) == {"slices": False}
    assert checks_of(holed, before, release.manifest) == {"slices": False}


def test_promises_must_speak_of_the_buckets_and_all_that_stayed_together():
    def verdicts(promises, bucket="bucket", slices=(("age",), ("town", "illness", "y"))):
        return [check_bucket_promise(promise, bucket, slices, ("age", "town")).passed for promise in promises]

    beside = replace(DIVERSITY, beside=("town",))
    assert verdicts([SIZE, beside]) == [True, True]
    assert JUDGED[KAnonymity.kind].further is None
    assert verdicts([SIZE, beside], bucket="y") == [False, False]
    assert verdicts([SIZE, beside], bucket=None) == [False, False]
    assert verdicts([DIVERSITY]) == [False]
    assert verdicts([replace(DIVERSITY, beside=("age", "town"))]) == [False]
    assert verdicts([replace(beside, sensitive="person")]) == [False]


@pytest.mark.parametrize("guarantee", [SIZE, DIVERSITY, replace(DIVERSITY, beside=("town",))])
def test_promises_survive_the_manifest(guarantee):
    assert guarantee_from_dict(guarantee.to_dict()) == guarantee


def test_promises_say_what_they_leave_open():
    assert "not k-anonymity" in SIZE.describe()
    assert "is not hidden" in DIVERSITY.describe()
    assert "'town'" in replace(DIVERSITY, beside=("town",)).describe()


@pytest.mark.parametrize("level", [0, True, 1.5, "2"])
def test_promises_of_no_whole_number_are_refused(level):
    with pytest.raises(InvalidParameterError):
        BucketSize((), "bucket", level)
    with pytest.raises(InvalidParameterError):
        BucketDiversity((), "bucket", level, "s")


def test_promises_are_met_from_their_level_on():
    assert [SIZE.is_met_by(level) for level in (3, 4)] == [False, True]
    assert [DIVERSITY.is_met_by(level) for level in (1.999999, 2.0)] == [False, True]


class TestWholeAudit:
    """Through the audit's entry point, with the original beside the release."""

    def failures(self, release, before, table=None, **changes):
        entries = release.with_manifest(**changes).manifest.to_dict()
        found = [
            audit_release(
                table or release.table,
                entries,
                AuditorHas(original=before),
                publisher=PublisherKnows(levels_are_stated=False, places=places),
            )
            for places in (np.arange(before.n_rows), None)
        ]
        by_rows, as_bag = ({check.name for check in report.checks if not check.passed} for report in found)
        assert bool(by_rows) == bool(as_bag)
        return by_rows

    @pytest.mark.parametrize("mechanism", [Anatomy(l=3), Slicer(k=4, l=2)])
    def test_a_release_is_confirmed(self, mechanism):
        before = original()

        assert self.failures(mechanism.release(before), before) == set()

    def test_quasi_identifiers_of_anatomy_are_compared_row_by_row(self):
        before = original()
        release = Anatomy(l=2).release(before)
        towns = cells_of(before, "town")

        moved = with_cells(release.table, town=[*towns[1:], towns[0]])
        assert self.failures(release, before, moved) >= {"cells"}

    def test_sensitive_values_left_at_their_rows_fail(self):
        before = original()
        release = Anatomy(l=2).release(before)
        unmoved = with_cells(release.table, illness=cells_of(before, "illness"))

        assert self.failures(release, before, unmoved) == {"order within buckets"}

    def test_a_promise_that_passes_over_what_stayed_beside_fails(self):
        before = original()
        release = Slicer(k=4, l=2).release(before)
        size, diversity = release.manifest.promised()
        assert diversity.beside
        hidden = replace(diversity, beside=())
        entries = [{**g.to_dict(), "statement": g.describe(), "audited": None} for g in (size, hidden)]

        assert "bucket-diversity: buckets" in self.failures(release, before, guarantees=tuple(entries))

    def test_a_higher_level_than_was_made_fails(self):
        before = original()
        release = Anatomy(l=2).release(before)
        (promised,) = release.manifest.promised()
        more = replace(promised, l=5)
        entry = {**more.to_dict(), "statement": more.describe(), "audited": None}

        assert "bucket-diversity: level" in self.failures(release, before, guarantees=(entry,))

    def test_promises_about_buckets_need_buckets(self):
        before = original()
        release = Anatomy(l=2).release(before)

        assert "bucket-diversity: buckets" in self.failures(release, before, perturbation=None)
