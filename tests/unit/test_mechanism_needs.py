"""What a mechanism declares to need of the rows decides how its release is found, whatever its class."""

import pytest

from sfumato.datasets.admissions import admissions
from sfumato.engines.protocol import TooLargeError
from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.base import Mechanism, Needs, needs_of
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.microaggregation.mdav import MDAV
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.publishing.large import release_large
from sfumato.publishing.propose import make_release
from sfumato.publishing.publish import publish
from sfumato.schema import as_roles
from sfumato.table.io.read import read_table
from sfumato.table.io.write import write_table

COUNTS = ("counted_columns", "counted_beside", "occurring_columns", "release_cells")
METHODS = {
    Needs.ALL_ROWS: (),
    Needs.COUNTS: COUNTS,
    Needs.COUNTS_OR_SAMPLE: (*COUNTS, "release_by_sample"),
    Needs.SAMPLE: ("sampled_pairs", "release_sample"),
    Needs.FEATURE_COUNTS: ("binarization", "release_patterns"),
}
ROLES = {"age": "quasi-identifier", "sex": "quasi-identifier", "insurance": "quasi-identifier"}
NEEDS = {name: info.needs for name, info in registered_mechanisms().items()}


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
    chosen = mechanism.for_table(admissions(n_rows=20))  # a choice among others has none of its own
    assert all(callable(getattr(chosen, method)) for method in METHODS[NEEDS[name]])


@pytest.fixture
def source(tmp_path):
    """Write a made table."""
    with (tmp_path / "in.csv").open("wb") as file:
        write_table(admissions(n_rows=200).keep(["age", "sex", "insurance", "readmitted"]), file, "csv")
    return tmp_path / "in.csv"


@pytest.mark.parametrize("mechanism", [MDAV(k=4), Mondrian(k=4, strict=False), Mondrian(k=4).with_cells("values")])
def test_what_needs_all_rows_takes_them_into_memory_and_releases_the_same_bytes(tmp_path, source, mechanism):
    roles = ROLES | {"readmitted": "target"}
    here = read_table(source).with_schema(read_table(source).schema.with_roles(as_roles(roles)))
    expected = publish(make_release(here, mechanism), tmp_path / "here.csv", original=here)
    found = release_large(source, mechanism, tmp_path / "there.csv", roles=roles)

    assert found.audit.passed
    assert found.table_path.read_bytes() == expected.table_path.read_bytes()
    assert found.release.manifest.guarantees == expected.release.manifest.guarantees


def test_what_needs_all_rows_is_refused_with_what_it_takes_where_they_do_not_fit(tmp_path, source, monkeypatch):
    monkeypatch.setattr("sfumato.engines.protocol.cells_in_memory", lambda memory: 100)
    with pytest.raises(TooLargeError) as refused:
        release_large(source, MDAV(k=4), tmp_path / "out.csv", roles=ROLES)

    assert "mdav needs the whole table in memory, and 200 rows × 4 columns do not fit in 1.0GB" in str(refused.value)
    assert "give 0.6GB of memory, or choose what needs counts or a sample only: auto, " in str(refused.value)
    assert not (tmp_path / "out.csv").exists()


def test_differential_privacy_is_refused_for_rows_that_were_looked_at(tmp_path, source):
    with pytest.raises(InvalidParameterError, match="got laplace-dp"):
        release_large(source, build_mechanism("laplace-dp", {}), tmp_path / "out.csv", roles=ROLES)


def test_another_class_with_the_same_methods_releases_the_same_bytes_out_of_core(tmp_path, source):
    for name, mechanism in (("own.csv", GlobalRecoder(k=4)), ("other.csv", Wrapped(k=4))):
        done = release_large(source, mechanism, tmp_path / name, roles=ROLES | {"readmitted": "target"})
        assert done.audit.passed

    assert (tmp_path / "own.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()


def test_an_object_that_declares_nothing_needs_all_rows():
    assert needs_of(OnlyReleases()) is Needs.ALL_ROWS
