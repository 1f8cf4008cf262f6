"""What a mechanism declares to need of the rows decides how its release is found, whatever its class."""

import pytest

from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.base import Mechanism, Needs, needs_of
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.publishing.out_of_core.api import release_large
from sfumato.publishing.out_of_core.release import check_able
from sfumato.table.io.write import write_table

COUNTS = ("counted_columns", "counted_beside", "occurring_columns", "release_cells")
METHODS = {
    Needs.ALL_ROWS: (),
    Needs.COUNTS: COUNTS,
    Needs.COUNTS_OR_SAMPLE: (*COUNTS, "release_by_sample"),
    Needs.SAMPLE: ("sampled_pairs", "release_sample"),
    Needs.FEATURE_COUNTS: ("binarization", "release_patterns"),
}
NEEDS = {name: info.needs for name, info in registered_mechanisms().items()}


class Counting(Mechanism):
    """Shares no base with the mechanisms of this package but the one."""

    mechanism_name = "counting"
    needs = Needs.COUNTS

    def release(self, table, *, progress=None):
        raise NotImplementedError


class Wrapped(Mechanism):
    """Global recoding by another class, which is none of ours."""

    mechanism_name = "wrapped"
    needs = Needs.COUNTS

    def __init__(self, k=5):
        self.k = k
        self._own = GlobalRecoder(k=k)
        self.counted_columns, self.counted_beside = self._own.counted_columns, self._own.counted_beside
        self.occurring_columns, self.release_cells = self._own.occurring_columns, self._own.release_cells

    def release(self, table, *, progress=None):
        return self._own.release(table, progress=progress)


class OnlyReleases:
    """An object from before there was a base."""

    def release(self, table, *, progress=None):
        raise NotImplementedError


@pytest.mark.parametrize("name", NEEDS)
def test_every_mechanism_has_the_one_base_and_the_methods_of_its_need(name):
    mechanism = build_mechanism(name, {})

    assert isinstance(mechanism, Mechanism)
    assert needs_of(mechanism) is NEEDS[name]
    counting = mechanism.for_table(admissions(n_rows=60)) if name == "auto" else mechanism  # it chooses by the table
    assert all(callable(getattr(counting, method)) for method in METHODS[NEEDS[name]])


@pytest.mark.parametrize("where", ["out of core", "on a cluster"])
@pytest.mark.parametrize("name", [name for name, needs in NEEDS.items() if needs is Needs.ALL_ROWS])
def test_a_mechanism_that_needs_all_rows_is_refused_where_they_are_not_in_memory(name, where):
    with pytest.raises(InvalidParameterError) as refused:
        check_able(build_mechanism(name, {}), where)

    able = ", ".join(sorted(name for name, needs in NEEDS.items() if needs is not Needs.ALL_ROWS))
    assert {"auto", "mondrian"} <= set(able.split(", "))
    assert str(refused.value) == (
        f"{where} the mechanism must be one of {able}, but "
        f"{name} needs the whole table in memory. Hint: choose one of these, or read the table into memory"
    )


def test_the_declaration_is_enough_to_be_let_in():
    counting = Counting()

    assert check_able(counting) is check_able(build_mechanism("gain-recoding", {}))


@pytest.mark.slow
def test_another_class_with_the_same_methods_releases_the_same_bytes_out_of_core(tmp_path):
    table = admissions(n_rows=200).keep(["age", "sex", "insurance", "readmitted"])
    with (tmp_path / "in.csv").open("wb") as file:
        write_table(table, file, "csv")
    roles = {"age": "quasi-identifier", "sex": "quasi-identifier", "insurance": "quasi-identifier"}
    for name, mechanism in (("own.csv", GlobalRecoder(k=4)), ("other.csv", Wrapped(k=4))):
        done = release_large(tmp_path / "in.csv", mechanism, tmp_path / name, roles=roles | {"readmitted": "target"})
        assert done.audit.passed

    assert (tmp_path / "own.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()


def test_an_object_that_declares_nothing_needs_all_rows():
    assert needs_of(OnlyReleases()) is Needs.ALL_ROWS
    with pytest.raises(InvalidParameterError, match="OnlyReleases needs the whole table in memory"):
        check_able(OnlyReleases())
