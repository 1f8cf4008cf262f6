"""The audit out of core finds what the audit in memory finds."""

import json
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest_texts import text_of
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.in_blocks import audit_rows, profile_rows
from sfumato.audit.original.cells_in_blocks import meaning_numbers
from sfumato.audit.profile import risk_profile
from sfumato.audit.reading.block_counting import counted_rows
from sfumato.audit.reading.columns import Columns, group_rows
from sfumato.audit.reading.equivalence import classes_of_rows
from sfumato.audit.verify import audit_release
from sfumato.engines.blocks import rows as distinct
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.errors import InputError, ManifestError, SchemaError
from sfumato.guarantees import Containment, LDiversity
from sfumato.guarantees.anonymity import KKAnonymity
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.publishing.propose import make_release, propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import (
    audit_published,
    open_original,
    open_released,
    read_manifest,
    read_original,
    read_released,
)
from sfumato.schema import Role
from sfumato.table.io import csv as delimited_blocks
from sfumato.table.io import parquet
from sfumato.table.io.read import ReadOptions, read_table

ROLES = {"age": Role.QUASI_IDENTIFIER, "town": Role.QUASI_IDENTIFIER, "illness": Role.SENSITIVE, "dose": Role.OTHER}
PLENTY, LITTLE = 10**9, 160_000
N_ROWS = 90


@pytest.fixture(autouse=True)
def small_blocks():
    """Make everything come in several blocks."""
    with ExitStack() as stack:
        for module, name, value in (
            (delimited_blocks, "BLOCK_BYTES", 200),
            (parquet, "BLOCK_ROWS", 7),
            (distinct, "_FEWEST_PENDING", 3),
        ):
            stack.enter_context(patch.object(module, name, value))
        yield


def original_cells():
    random = np.random.default_rng(5)
    towns = random.choice(["Ulm", "Bonn", "Kiel"], N_ROWS)
    towns[[10, 50]] = "Hof"
    return pa.table(
        {
            "age": pa.array(random.integers(20, 60, N_ROWS), pa.int16()),
            "town": pa.array(towns),
            "illness": pa.array(random.choice(["flu", "cold", "gout"], N_ROWS)),
            "dose": pa.array(np.arange(N_ROWS) / 4 - 3),
        }
    )


@pytest.fixture(params=["parquet", "csv"])
def files(request, tmp_path):
    """Names of an original, its release and the manifest, with some rows suppressed."""
    source, output = tmp_path / "original.parquet", tmp_path / f"release.{request.param}"
    pyarrow.parquet.write_table(original_cells(), source)
    table = read_table(source)
    table = table.with_schema(table.schema.with_roles(ROLES))
    recoder = GlobalRecoder(k=4, max_suppressed_fraction=0.3, regroup=False, privacy=[LDiversity(2)])
    published = publish(make_release(table, recoder), output, original=table)
    assert published.release.manifest.suppressed_rows
    return source, output, published.manifest_path


def both_reports(source, output, manifest_path, memory=PLENTY):
    """Audit in memory and out of core."""
    manifest, entries = read_manifest(manifest_path)
    before = read_original(source, ReadOptions())
    before = before.with_schema(before.schema.with_roles(ROLES))
    large = open_original(source, ReadOptions(), memory)
    large = large.with_schema(large.schema.with_roles(ROLES))
    after, after_large = read_released(output, manifest), open_released(output, manifest, memory)
    digest = after.source.sha256
    in_memory = audit_release(
        after,
        entries,
        AuditorHas(original=before, original_sha256=before.source.sha256, roles=True),
        released_sha256=digest,
    )
    out_of_core = audit_rows(
        after_large,
        entries,
        AuditorHas(original=large, original_sha256=before.source.sha256, roles=True),
        memory=PLENTY,
        released_sha256=digest,
    )
    return in_memory, out_of_core


def rewrite(output, cells, manifest_path, **changes):
    """Write other rows in place of a release, with a manifest whose hash and number of rows fit."""
    if output.suffix == ".csv":
        pyarrow.csv.write_csv(cells, output, pyarrow.csv.WriteOptions(quoting_style="needed"))
    else:
        pyarrow.parquet.write_table(cells, output)
    entries = json.loads(manifest_path.read_text())
    entries["output"] |= {"sha256": read_table(output).source.sha256, "rows": cells.num_rows}
    entries |= changes
    entries["digest"] = manifest_digest(entries)
    manifest_path.write_text(text_of(entries), encoding="utf-8")


def released_cells(output):
    if output.suffix == ".parquet":
        return pyarrow.parquet.read_table(output)
    text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(["age", "town", "illness", "dose"], pa.string()))
    return pyarrow.csv.read_csv(output, convert_options=text, parse_options=pyarrow.csv.ParseOptions(quote_char='"'))


@pytest.mark.slow
@pytest.mark.parametrize("memory", [PLENTY, LITTLE])
def test_a_sound_release_is_confirmed_by_the_same_checks(files, memory):
    """Every check of the audit in memory is made, with the same words; what is not is an exception."""
    in_memory, out_of_core = both_reports(*files, memory)

    assert out_of_core.passed
    is_long = memory == LITTLE
    expected = tuple(c for c in in_memory.checks if not (is_long and c.name == "risk: unique row fraction"))
    assert expected == tuple(c for c in out_of_core.checks if c.name != "kinds of long columns")
    assert out_of_core.levels == in_memory.levels
    said = [one.message for one in out_of_core.unchecked if one not in in_memory.unchecked]
    assert ["'dose'" in message for message in said] == [True, True] * is_long


def with_exchanged_illness(cells):
    """Give a row another row's illness: no illness is new, but the row is nobody's."""
    illness = cells.column("illness").to_pylist()
    other = next(i for i, name in enumerate(illness) if name != illness[0])
    illness[0], illness[other] = illness[other], illness[0]
    return cells.set_column(2, "illness", pa.array(illness))


def with_other_illness(cells):
    first = cells.column("illness")[0].as_py()
    other = next(name for name in ("flu", "cold", "gout") if name != first)
    changed = pa.array([other, *cells.column("illness").to_pylist()[1:]])
    return cells.set_column(2, "illness", changed)


def with_other_town(cells):
    towns = cells.column("town").to_pylist()
    places = [i for i, town in enumerate(towns) if town != towns[0]][:1]
    return (
        cells.set_column(1, "town", pa.array([towns[places[0]], *towns[1:]]))
        if places
        else with_exchanged_illness(cells)
    )


def with_other_dose(cells):
    doses = cells.column("dose")
    last = doses[-1].as_py()
    other = pa.array([*doses.to_pylist()[:-1], -2.0 if isinstance(last, float) else "-2.0"], doses.type)
    return cells.set_column(3, "dose", other)


@pytest.mark.slow
@pytest.mark.parametrize("memory", [PLENTY, LITTLE])
@pytest.mark.parametrize("change", [with_exchanged_illness, with_other_illness, with_other_town, with_other_dose])
def test_a_changed_release_is_refused_by_both(files, change, memory):
    """Cells that are another row's, and cells that are not the original's."""
    source, output, manifest_path = files
    rewrite(output, change(released_cells(output)), manifest_path)

    in_memory, out_of_core = both_reports(source, output, manifest_path, memory)

    assert not in_memory.passed
    assert not out_of_core.passed
    assert {c.name for c in out_of_core.checks if not c.passed} == {c.name for c in in_memory.checks if not c.passed}


@pytest.mark.slow
def test_rows_too_many_or_too_few_are_found(files):
    """The numbers of rows must fit the original's."""
    source, output, manifest_path = files
    rewrite(output, released_cells(output).slice(1), manifest_path)

    in_memory, out_of_core = both_reports(source, output, manifest_path)

    assert not in_memory.passed
    assert {c.name for c in out_of_core.checks if not c.passed} == {c.name for c in in_memory.checks if not c.passed}


@pytest.mark.slow
def test_another_file_and_a_changed_manifest_are_found(files):
    """Hashes and digest."""
    source, output, manifest_path = files
    entries = json.loads(manifest_path.read_text())
    entries["output"]["sha256"] = "0" * 64
    manifest_path.write_text(text_of(entries), encoding="utf-8")

    _, out_of_core = both_reports(source, output, manifest_path)

    assert {c.name for c in out_of_core.checks if not c.passed} == {"manifest digest", "released file"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"guarantees": [KKAnonymity(2, ("town",)).to_dict() | {"statement": "", "audited": 2}]},
        {"perturbation": {"kind": "flipped", "n_cells_changed": 0}},
        {"evidence": {"risk": {"smallest_bucket": 3}}},
    ],
)
def test_what_counts_cannot_show_is_refused(files, changes):
    """No promise passes because it was not looked at."""
    _, output, manifest_path = files
    rewrite(output, released_cells(output), manifest_path, **changes)
    manifest, entries = read_manifest(manifest_path)

    report = audit_rows(open_released(output, manifest, PLENTY), entries, memory=PLENTY)

    assert not report.passed
    assert "NOT CHECKED out of core" in report.failures[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"guarantees": [Containment(2, ("town",)).to_dict() | {"statement": "", "audited": 2}]},
        {"evidence": {"risk": {"containment_level": 3}}},
    ],
)
def test_containment_of_columns_that_are_not_zero_or_one_is_refused(files, changes):
    """It cannot be measured, and does not pass for that."""
    _, output, manifest_path = files
    rewrite(output, released_cells(output), manifest_path, **changes)
    manifest, entries = read_manifest(manifest_path)

    report = audit_rows(open_released(output, manifest, PLENTY), entries, memory=PLENTY)

    assert not report.passed
    assert any("holds something other than 0 and 1" in failure for failure in report.failures), report.failures


@pytest.mark.slow
def test_the_profile_of_a_file_is_that_of_the_table(tmp_path):
    """Which has no containment, for its columns are not 0/1."""
    pyarrow.parquet.write_table(original_cells(), tmp_path / "a.parquet")
    table, large = read_table(tmp_path / "a.parquet"), open_large(tmp_path / "a.parquet", memory=PLENTY)
    roles = ROLES | {"dose": Role.TARGET}
    expected = risk_profile(table.with_schema(table.schema.with_roles(roles)))

    assert profile_rows(large.with_schema(large.schema.with_roles(roles)), PLENTY) == expected


def test_counts_are_those_of_the_rows(tmp_path):
    """Against a count in plain Python; no columns give one row that stands for all."""
    cells = original_cells()
    pyarrow.parquet.write_table(cells, tmp_path / "a.parquet")
    large = open_large(tmp_path / "a.parquet", memory=PLENTY)
    expected = {}
    for row in cells.to_pylist():
        expected[row["town"], row["illness"]] = expected.get((row["town"], row["illness"]), 0) + 1

    counted = counted_rows(large, ["town", "illness"], PLENTY)

    texts = zip(counted["town"].cells().to_pylist(), counted["illness"].cells().to_pylist(), strict=True)
    assert dict(zip(texts, counted.row_counts.tolist(), strict=True)) == expected
    assert counted_rows(large, [], PLENTY).row_counts.tolist() == [N_ROWS]


VALUES = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**40), 2**40))


@given(st.lists(VALUES, min_size=1, max_size=20), st.lists(VALUES, min_size=1, max_size=20))
def test_numbers_of_meanings_are_equal_for_equal_values(first, second):
    """Whatever the type; -1 and -2, which Python hashes alike, are not the same."""
    whole, text = pa.array(first, pa.int64()), pc.cast(pa.array(second, pa.int64()), pa.string())
    as_numbers = meaning_numbers(whole, pa.string())
    same_type = meaning_numbers(whole, pa.int64())
    as_texts = meaning_numbers(text, pa.int64())

    for i, one in enumerate(first):
        for j, other in enumerate(second):
            assert (as_numbers[i] == as_texts[j]) == (one == other)
        for j, other in enumerate(first):
            assert (same_type[i] == same_type[j]) == (one == other)


def test_columns_that_were_not_counted_together_are_not_measured(tmp_path):
    """Their entries are no rows of the same table."""
    pyarrow.parquet.write_table(original_cells(), tmp_path / "a.parquet")
    counted = counted_rows(open_large(tmp_path / "a.parquet", memory=PLENTY), ["town"], PLENTY)
    for measure in (
        lambda: group_rows(Columns(counted), ["town", "illness"]),
        lambda: classes_of_rows(Columns(counted), ["town"], "illness").__enter__(),
    ):
        with pytest.raises(SchemaError, match="not counted together"):
            measure()


def test_an_error_while_rows_are_counted_is_the_readers_own(tmp_path):
    """The engine would hide that the file changed."""
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(original_cells(), path)
    large = open_large(path, memory=PLENTY)
    pyarrow.parquet.write_table(original_cells().set_column(1, "town", pa.array(["Rom"] * N_ROWS)), path)
    with pytest.raises(InputError, match="changed while it was being read"):
        counted_rows(large, ["town"], PLENTY)


def test_a_long_column_cannot_be_counted_with_others(tmp_path):
    """Say so instead of counting a part of it."""
    pyarrow.parquet.write_table(original_cells(), tmp_path / "a.parquet")
    large = open_large(tmp_path / "a.parquet", memory=LITTLE)
    with pytest.raises(SchemaError, match="'dose': has too many distinct values"):
        profile_rows(large.with_schema(large.schema.with_roles({"dose": Role.TARGET})), PLENTY)


def test_counts_that_fit_nowhere_are_refused(tmp_path):
    """With what can be done."""
    pyarrow.parquet.write_table(original_cells(), tmp_path / "a.parquet")
    large = open_large(tmp_path / "a.parquet", memory=PLENTY)
    with pytest.raises(InputError, match="give more memory"):
        counted_rows(large, ["town", "age"], 3_000)


def test_spilled_counts_leave_no_folder(tmp_path, monkeypatch):
    """The private folder is removed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    pyarrow.parquet.write_table(original_cells(), tmp_path / "a.parquet")
    counted_rows(open_large(tmp_path / "a.parquet", memory=PLENTY), ["town"], PLENTY)

    assert not list((tmp_path / "spill").iterdir())


@pytest.mark.parametrize(
    ("one", "other"), [("8", str(8 + 2**61 - 1)), ("0.5", str(2**60)), ("-1", "-2"), ("inf", "314159")]
)
def test_numbers_whose_python_hashes_are_equal_are_told_apart(one, other):
    first, second = (meaning_numbers(pa.array([text]), pa.float64())[0] for text in (one, other))
    assert first != second


@pytest.mark.parametrize(("text", "number"), [("8", 8), ("8.0", 8), ("0.50", 0.5), ("-1", -1), ("inf", float("inf"))])
def test_a_number_and_its_text_have_the_same_meaning(text, number):
    kind = pa.array([number]).type
    assert meaning_numbers(pa.array([text]), kind)[0] == meaning_numbers(pa.array([number]), pa.string())[0]


@pytest.mark.slow
def test_a_file_that_is_swapped_after_it_was_counted_is_refused(files):
    source, output, manifest_path = files
    manifest, entries = read_manifest(manifest_path)
    original = open_original(source, ReadOptions(), PLENTY)
    released = open_released(output, manifest, PLENTY)
    content, said = output.read_bytes(), []

    def swap(*step):
        said.append(step)
        output.write_bytes(content + b"\n" if len(said) > 3 else content)

    with pytest.raises(InputError):
        audit_rows(released, entries, AuditorHas(original=original), memory=PLENTY, progress=swap)


def test_a_table_without_quasi_identifiers_is_refused_in_words(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text("a,b\n1,x\n2,y\n", encoding="utf-8")
    table = open_large(path, memory=PLENTY)
    table = table.with_schema(table.schema.with_roles({"a": Role.OTHER, "b": Role.OTHER}))
    with pytest.raises(SchemaError, match="no quasi-identifier"):
        propose(table, GlobalRecoder(k=2), Memory(200 * 10**6))


@pytest.mark.slow
@pytest.mark.parametrize("change", [None, with_other_illness, with_exchanged_illness])
def test_a_recoding_of_a_long_column_is_not_checked_and_not_accused(files, change):
    """Other columns are compared all the same."""
    source, output, manifest_path = files
    if change is not None:
        rewrite(output, change(released_cells(output)), manifest_path)
    in_memory, out_of_core = both_reports(source, output, manifest_path, memory=25 * 4000)
    failed = {check.name: check.message for check in out_of_core.checks if not check.passed}

    (said,) = [one.message for one in out_of_core.unchecked if one.name == "cells"]
    assert "whether cells of 'age' follow" in said
    assert "age" not in failed.get("cells", "")
    assert set(failed) == {check.name for check in in_memory.checks if not check.passed}
    assert bool(failed) == (change is not None)


@pytest.mark.slow
@pytest.mark.parametrize("output_entry", [None, [], "text"])
def test_a_manifest_that_describes_no_released_file_is_refused(files, output_entry):
    """With an error that says so."""
    _, output, manifest_path = files
    entries = json.loads(manifest_path.read_text()) | {"output": output_entry}
    manifest_path.write_text(text_of(entries), encoding="utf-8")

    with pytest.raises(ManifestError, match="output is not a mapping"):
        audit_published(output, manifest_path, memory=Memory(200 * 10**6))


@pytest.mark.slow
def test_two_targets_in_a_manifest_are_reported(files):
    """As in memory: no schema can be made of it, so the table is read as it is."""
    _, output, manifest_path = files
    entries = json.loads(manifest_path.read_text())
    for column in entries["output"]["columns"][-2:]:
        column["role"] = "target"
    manifest_path.write_text(text_of(entries), encoding="utf-8")

    reports = audit_published(output, manifest_path), audit_published(output, manifest_path, memory=Memory(200 * 10**6))

    for report in reports:
        assert "manifest digest" in {check.name for check in report.checks if not check.passed}
