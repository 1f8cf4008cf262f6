"""Releases of files whose distinct rows do not fit: counted at coarser levels, and the same as in memory from there."""

import csv
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.errors import InputError, SchemaError
from sfumato.guarantees import LDiversity
from sfumato.mechanisms.base import Mechanism, Needs
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.mechanisms.lattice.gain import GainRecoder
from sfumato.mechanisms.lattice.local import LocalRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.proposals.base import with_measured_levels
from sfumato.publishing.propose import propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.table.io.read import read_table
from sizes import examples
from unit.publishing.proposals.blockwise import outcome, small_blocks, write_file
from unit.publishing.proposals.test_large_release import MEMORY, described, made_out_of_core, random_cells

QUASI = ("age", "town", "day")


def holding(most):
    """Let only so many distinct rows fit in memory."""
    return patch.object(Memory, "most_cells", lambda *_: most)


def made_in_memory(source, mechanism, output, step):
    """Hold the whole table, and search levels from those of a step on."""
    table = described(read_table(source))
    release, _ = mechanism.release_from_base(table, mechanism.level_steps(table).base(step))
    return publish(with_measured_levels(release), output, original=table)


def first_fitting_step(source, mechanism, most):
    """Count the distinct rows of each step, row by row; ``None`` where those of no step fit."""
    table = described(read_table(source))
    steps = mechanism.level_steps(table)
    for step, node in enumerate(steps.nodes):
        as_they_are = [name for name in mechanism.counted_columns(table.schema) if name not in steps.names]
        columns = [table[name].codes.tolist() for name in as_they_are]
        for fitted, level in zip(steps.fitted, node, strict=True):
            columns.append(fitted.level_codes[level][table[fitted.name].codes].tolist())
        if len(set(zip(*columns, strict=True))) <= most:
            return step
    return None


@st.composite
def orders(draw):
    kind = draw(st.sampled_from([GlobalRecoder, GainRecoder, LocalRecoder]))
    settings = {"k": draw(st.integers(2, 6))}
    if kind is LocalRecoder:
        settings |= {"loss": draw(st.sampled_from(["certainty_penalty", "target_information"]))}
    else:
        losses = ["loss", "discernibility", "target_information", "non_uniform_entropy", "height"]
        settings |= {
            "loss": draw(st.sampled_from(losses)),
            "max_suppressed_fraction": draw(st.sampled_from([0.0, 0.1, 0.5])),
            "regroup": draw(st.booleans()),
        }
    if draw(st.booleans()):
        settings |= {"l": 2.0}
    if kind is GainRecoder and draw(st.booleans()):
        settings |= {"slicing": True, "threshold": draw(st.sampled_from([0.03, 10.0]))}
    return kind, settings


@pytest.mark.slow
@examples(25)
@given(
    st.integers(20, 120),
    st.integers(0, 2**32),
    orders(),
    st.integers(2, 60),
    st.sampled_from(["in.parquet", "in.csv"]),
)
def test_the_release_is_that_of_memory_from_the_same_levels_on(n_rows, seed, order, most, source_name):
    """The base is the first step that fits, by plain counting; k and l hold on all rows, by plain counting."""
    kind, parameters = order
    with TemporaryDirectory() as name, small_blocks(), holding(most):
        folder = Path(name)
        source = folder / source_name
        write_file(random_cells(n_rows, seed), source)
        try:
            step = first_fitting_step(source, build_mechanism(kind.mechanism_name, parameters), most)
        except SchemaError as error:  # as where no column has a low gain: refused either way
            with pytest.raises(SchemaError, match=re.escape(str(error))):
                made_out_of_core(source, build_mechanism(kind.mechanism_name, parameters), folder / "out.csv")
            return
        if step is None:
            with pytest.raises(InputError, match="must be counted value by value"):
                made_out_of_core(source, build_mechanism(kind.mechanism_name, parameters), folder / "out.csv")
            return
        (folder / "memory").mkdir()
        expected = outcome(
            made_in_memory,
            source,
            build_mechanism(kind.mechanism_name, parameters),
            folder / "memory" / "out.csv",
            step,
        )
        found = outcome(made_out_of_core, source, build_mechanism(kind.mechanism_name, parameters), folder / "out.csv")
        if isinstance(expected, str):
            assert found == expected
            return
        assert found.table_path.read_bytes() == expected.table_path.read_bytes()
        assert json.loads(found.manifest_path.read_text()) == json.loads(expected.manifest_path.read_text())
        assert_k_and_l_hold(found, parameters)


def assert_k_and_l_hold(published, parameters):
    protected = published.release.manifest.guarantees[0].get("protected") or QUASI
    with published.table_path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    classes = defaultdict(list)
    for row in rows:
        classes[tuple(row[name] for name in protected)].append(row["illness"])
    assert min(map(len, classes.values())) >= parameters["k"]
    assert min(len(set(own)) for own in classes.values()) >= parameters.get("l", 1)


@pytest.fixture
def source(tmp_path):
    """Write a file of 300 rows with far more than 40 distinct ones."""
    path = tmp_path / "in.csv"
    write_file(random_cells(300, 5), path)
    assert len(Counter(zip(*(random_cells(300, 5)[name].to_pylist() for name in QUASI), strict=True))) > 100
    return path


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [GlobalRecoder(k=4), GainRecoder(k=4), LocalRecoder(k=4)])
def test_levels_that_were_not_searched_are_stated(source, tmp_path, mechanism):
    """And nothing is called optimal; both audits confirm the release."""
    with holding(40):
        published = made_out_of_core(source, mechanism, tmp_path / "out.csv")
    evidence = published.release.manifest.evidence

    assert "only levels from these on were searched" in evidence["search"]["method"]
    assert evidence["search"]["proven"] is False
    assert evidence["utility"].get("is_proven_optimal") is not True
    assert "least_possible_loss" not in evidence["utility"]
    assert published.audit.passed
    original = described(open_large(source, memory=MEMORY.n_bytes))
    assert audit_published(published.table_path, published.manifest_path, memory=MEMORY, original=original).passed


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GlobalRecoder, LocalRecoder])
def test_shares_of_what_finer_values_tell_are_not_stated(source, tmp_path, kind):
    """The information of values that were not counted is not known, nor is the share of it that is lost."""
    with holding(40):
        coarse = made_out_of_core(source, kind(k=4, loss="target_information"), tmp_path / "coarse.csv")
    fine = made_out_of_core(source, kind(k=4, loss="target_information"), tmp_path / "fine.csv")

    assert "target_information" in fine.release.manifest.evidence["utility"]
    assert "target_information" not in coarse.release.manifest.evidence["utility"]


@pytest.mark.slow
def test_no_level_is_left_out_where_all_distinct_rows_fit(source, tmp_path):
    """The manifest then says nothing of it, and the levels are those of the whole search."""
    published = made_out_of_core(source, GlobalRecoder(k=4), tmp_path / "out.csv")

    assert "search" not in published.release.manifest.evidence
    assert published.release.manifest.evidence["utility"]["is_proven_optimal"] is True


@pytest.mark.slow
def test_the_base_does_not_depend_on_the_order_of_the_rows(tmp_path):
    """A file that is sorted by one column is not one of few values of it."""
    cells = random_cells(300, 5)
    stated = []
    for name, ordered in (("a.csv", cells), ("b.csv", cells.sort_by("town")), ("c.csv", cells.sort_by("age"))):
        write_file(ordered, tmp_path / name)
        with holding(40), small_blocks():
            published = made_out_of_core(tmp_path / name, GlobalRecoder(k=4), tmp_path / f"out-{name}")
        stated.append(published.release.manifest.evidence)

    assert stated[0] == stated[1] == stated[2]


@pytest.mark.slow
def test_values_of_suppressed_rows_are_not_listed(tmp_path):
    """Of values that were counted as one, those of released rows are listed and those of left-out rows are not."""
    towns, ages = ["Ulm", "Kiel", "Bonn"] * 60 + ["Hidden"], ["young"] * 180 + ["old"]
    cells = {"id": [str(i) for i in range(181)], "age": ages, "town": towns}
    cells |= {name: ["x"] * 181 for name in ("day", "illness", "ill", "note", "dose")}
    write_file(pa.table(cells), tmp_path / "in.csv")
    others = [(f"other {i}", "others", "*") for i in range(20)]
    joined = [(town, "large", "*") for town in ("Ulm", "Kiel", "Hidden")]
    hierarchy = Hierarchy.from_rows([*joined, ("Bonn", "small", "*"), *others])
    mechanism = GlobalRecoder(k=5, max_suppressed_fraction=0.1, regroup=False, hierarchies={"town": hierarchy})
    with holding(3):
        published = made_out_of_core(tmp_path / "in.csv", mechanism, tmp_path / "out.csv")
    manifest = published.release.manifest

    assert "'town' 1;" in manifest.evidence["search"]["method"]
    assert manifest.suppressed_rows == 1
    assert next(r for r in manifest.recodings if r["column"] == "town")["labels"]["large"] == ["Ulm", "Kiel"]


class Wrapped(Mechanism):
    """Global recoding that can do with distinct rows of the values only."""

    mechanism_name = "wrapped"
    needs = Needs.COUNTS

    def __init__(self):
        own = GlobalRecoder(k=4)
        self.counted_columns, self.counted_beside = own.counted_columns, own.counted_beside
        self.occurring_columns, self.release_cells = own.occurring_columns, own.release_cells

    def release(self, table, *, progress=None):
        raise NotImplementedError


def test_a_mechanism_that_cannot_merge_values_is_refused_with_their_number(source):
    large = described(open_large(source, memory=MEMORY.n_bytes))
    with holding(40), pytest.raises(InputError, match="more than 40 distinct"):
        propose(large, Wrapped(), MEMORY)


def test_values_that_promises_are_about_are_never_merged(source):
    """Where these alone are too many, the error names them and what can be done."""
    large = described(open_large(source, memory=MEMORY.n_bytes))
    with holding(2), pytest.raises(InputError, match=r"'illness' must be counted value by value.*sensitive="):
        propose(large, GlobalRecoder(k=4, privacy=[LDiversity(2)]), MEMORY)
