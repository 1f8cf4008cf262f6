"""Selections of binary features out of core are those made in memory, to the byte."""

import csv
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest_texts import text_of
from oracles import containment_level
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.in_blocks import audit_rows, profile_rows
from sfumato.audit.profile import risk_profile
from sfumato.audit.verify import audit_release
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.errors import AuditFailedError, InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.containment.exact import ExactContainmentSelector
from sfumato.mechanisms.containment.greedy import Criterion, GreedyContainmentSelector
from sfumato.mechanisms.containment.maximal import MaximalContainmentSelector
from sfumato.mechanisms.containment.optimal import OptimalContainmentSelector
from sfumato.publishing.proposals.base import with_measured_levels
from sfumato.publishing.propose import make_release, mechanisms_without_all_rows, propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import open_original, open_released, read_manifest, read_original, read_released
from sfumato.schema import Role
from sfumato.table.io.read import ReadOptions, read_table
from sizes import examples
from unit.publishing.proposals import blockwise
from unit.publishing.proposals.blockwise import write_file

MEMORY = Memory(200 * 10**6)
ROLES = {
    "id": Role.IDENTIFIER,
    "age": Role.QUASI_IDENTIFIER,
    "town": Role.QUASI_IDENTIFIER,
    "smokes": Role.QUASI_IDENTIFIER,
    "asked": Role.QUASI_IDENTIFIER,
    "day": Role.QUASI_IDENTIFIER,
    "illness": Role.SENSITIVE,
    "ill": Role.TARGET,
    "note": Role.OTHER,
    "dose": Role.OTHER,
}


@pytest.fixture(autouse=True)
def small_blocks():
    """Make everything come in several blocks, however few rows there are."""
    with blockwise.small_blocks():
        yield


def random_cells(n_rows, seed):
    random = np.random.default_rng(seed)

    def pick(values):
        return [values[i] for i in random.integers(0, len(values), n_rows)]

    return pa.table(
        {
            "note": pa.array(pick(["x", "y", "", "=1+1"])),
            "id": pa.array([f"p{i}" for i in range(n_rows)]),
            "age": pa.array(pick([*range(18, 32), None]), pa.int16()),
            "ill": pa.array(pick(["ill", "well"])),
            "town": pa.array(pick(["Ulm", " Ulm", "Bonn", "?", "a,b"])),
            "smokes": pa.array(pick(["yes", "no"])),
            "asked": pa.array(pick([0, 1, 1, 1]), pa.int8()),
            "day": pa.array(pick([None, 0, 31, 400]), pa.int32()).cast(pa.date32()),
            "illness": pa.array(pick(["flu", "cold", "NA"])),
            "dose": pa.array(random.normal(size=n_rows).round(1)),
        }
    )


def described(table, roles=ROLES):
    return table.with_schema(table.schema.with_roles(roles))


def made_in_memory(source, mechanism, output):
    table = described(read_table(source))
    return publish(make_release(table, mechanism), output, original=table)


def made_out_of_core(source, mechanism, output):
    large = described(open_large(source, memory=MEMORY.n_bytes))
    return publish(propose(large, mechanism, MEMORY), output, memory=MEMORY)


def outcome(make, *arguments):
    """Give the release, or why there is none."""
    try:
        return make(*arguments)
    except (PrivacyNotAchievableError, SchemaError) as error:
        return str(error)


PLANS = st.sampled_from(
    [
        None,
        {"bands": 2},
        {"missing_features": False, "unlisted": "drop", "columns": {"age": {"cuts": [20, 25]}, "asked": "as-is"}},
        {"columns": {"town": {"one_of": ["Ulm", "Bonn"], "name": "near"}, "day": "values", "smokes": "drop"}},
    ]
)


@st.composite
def greedy(draw):
    return GreedyContainmentSelector(
        k=draw(st.integers(2, 6)),
        criterion=draw(st.sampled_from(get_args(Criterion))),
        on_infeasible=draw(st.sampled_from(["stop", "skip"])),
        reveals=draw(st.sampled_from(["ones", "zeros", "both", {"age": "both", "town": "zeros"}])),
        max_unique_fraction=draw(st.sampled_from([None, 0.0, 0.1, 0.5])),
        binarize=draw(PLANS),
    )


@st.composite
def searching(draw):
    k, plan = draw(st.integers(2, 6)), draw(PLANS)
    worth = draw(st.sampled_from(["hamming_separation", "distinguished_pairs"]))
    return draw(
        st.sampled_from(
            [
                ExactContainmentSelector(k=k, criterion=worth, binarize=plan),
                OptimalContainmentSelector(k=k, binarize=plan),
                MaximalContainmentSelector(k=k, criterion=worth, binarize=plan),
                MaximalContainmentSelector(k=k, search="best", binarize=plan),
            ]
        )
    )


@pytest.mark.slow
@examples(60)
@given(
    st.integers(8, 80),
    st.integers(0, 2**32),
    st.one_of(greedy(), searching()),
    st.sampled_from(["in.parquet", "in.csv"]),
    st.sampled_from(["out.parquet", "out.csv", "out.tsv.gz"]),
)
def test_the_same_bytes_and_the_same_manifest_as_in_memory(n_rows, seed, mechanism, source_name, output_name):
    """Features, their order, what is dropped, evidence and promises do not depend on whether the table was held."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_file(random_cells(n_rows, seed), folder / source_name)
        (folder / "memory").mkdir()
        (folder / "large").mkdir()
        expected = outcome(made_in_memory, folder / source_name, mechanism, folder / "memory" / output_name)
        found = outcome(made_out_of_core, folder / source_name, mechanism, folder / "large" / output_name)

        if isinstance(expected, str):
            assert found == expected
            return
        assert found.table_path.read_bytes() == expected.table_path.read_bytes()
        assert json.loads(found.manifest_path.read_text()) == json.loads(expected.manifest_path.read_text())
        assert found.audit.levels == expected.audit.levels


def most_frequent_that_fit(table, mechanism, most):
    """Leave out the rarest features, one more at a time, until the distinct rows of the others fit, counted plainly."""
    binary = mechanism.binarization(table).applied_to(table)
    rows, target = binary.matrix.toarray(), binary.target().codes.tolist()
    order = np.argsort(rows.sum(axis=0), kind="stable")
    for n_left_out in range(len(order)):
        offered = sorted(order[n_left_out:].tolist())
        if len(set(zip(map(tuple, rows[:, offered].tolist()), target, strict=True))) <= most:
            return binary, offered
    return binary, None


@pytest.mark.slow
@examples(60)
@given(st.integers(8, 80), st.integers(0, 2**32), st.one_of(greedy(), searching()), st.integers(2, 40), st.booleans())
def test_features_whose_patterns_fit_are_chosen_from_as_in_memory(n_rows, seed, mechanism, most, is_csv):
    """The same bytes as of a table in memory of which the same features are offered; k holds by plain counting."""
    with TemporaryDirectory() as name, patch.object(Memory, "most_cells", lambda *_: most):
        folder = Path(name)
        source = folder / ("in.csv" if is_csv else "in.parquet")
        write_file(random_cells(n_rows, seed), source)
        table = described(read_table(source))
        binary, offered = most_frequent_that_fit(table, mechanism, most)
        if offered is None:
            with pytest.raises(SchemaError, match=r"'ill'.*too many distinct values"):
                made_out_of_core(source, mechanism, folder / "out.csv")
            return
        are_all = len(offered) == len(binary.features)

        def made_of_offered():
            if are_all:
                return made_in_memory(source, mechanism, folder / "memory.csv")
            release = mechanism.release_patterns(table, binary, offered=offered)
            return publish(with_measured_levels(release), folder / "memory.csv", original=table)

        expected = outcome(made_of_offered)
        found = outcome(made_out_of_core, source, mechanism, folder / "large.csv")
        if isinstance(expected, str):
            assert found == expected
            return
        assert found.table_path.read_bytes() == expected.table_path.read_bytes()
        stated, as_in_memory = (json.loads(p.read_text()) for p in (found.manifest_path, expected.manifest_path))
        assert stated["evidence"] == as_in_memory["evidence"]
        assert stated["guarantees"] == as_in_memory["guarantees"]
        if found.release.manifest.guarantees[0]["kind"] == "containment" and "reveals" not in str(stated["guarantees"]):
            with found.table_path.open(encoding="utf-8", newline="") as file:
                released = list(csv.DictReader(file))
            names = [feature.name for feature in binary.features if feature.name in released[0]]
            rows = [tuple(int(row[name]) for name in names) for row in released]
            assert containment_level(rows) >= mechanism.k


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GreedyContainmentSelector, OptimalContainmentSelector, MaximalContainmentSelector])
def test_features_that_were_not_offered_are_stated(source, tmp_path, kind):
    """Nothing is called the best, and nothing is said of features that were never counted together."""
    with patch.object(Memory, "most_cells", lambda *_: 12):
        published = made_out_of_core(source, kind(k=3), tmp_path / "out.csv")
    evidence = published.release.manifest.evidence

    assert re.search(r"chosen among the \d+ most frequent of \d+ features", evidence["search"]["method"])
    assert evidence["search"]["proven"] is False
    assert not {"bound", "gap", "separated_pairs_bound"} & evidence["search"].keys()
    assert not [name for part in evidence.values() for name in part if name.endswith("of_all_features")]
    assert published.audit.passed


@pytest.fixture
def source(tmp_path):
    """Write a file of 60 rows."""
    path = tmp_path / "in.parquet"
    write_file(random_cells(60, 3), path)
    return path


def selector(**more):
    return GreedyContainmentSelector(**{"k": 3, "on_infeasible": "skip"} | more)


def test_all_selectors_under_containment_can_do_it():
    """Each needs no more than counts of patterns."""
    expected = {"exact-containment", "greedy-containment", "maximal-containment", "optimal-containment"}
    assert expected <= set(mechanisms_without_all_rows())


def test_rows_are_counted_by_patterns_not_by_values(source):
    """However many values columns have: 60 rows of 60 different ages and doses are few patterns."""
    large = described(open_large(source, memory=MEMORY.n_bytes), ROLES | {"dose": Role.QUASI_IDENTIFIER})
    plan = {"bands": 2, "unlisted": "drop", "columns": {"age": {"bands": 2}, "dose": {"bands": 2}}}
    with patch.object(Memory, "most_cells", lambda *_: 12):  # 2 bands or missing, 2 bands, 2 classes
        proposal = propose(large, selector(binarize=plan), MEMORY)

    assert {c["name"] for c in proposal.release.manifest.output["columns"]} >= {"note", "ill", "illness"}


@pytest.mark.slow
def test_columns_with_too_many_values_travel_along(source, tmp_path):
    """They are never listed; the bytes are the same."""
    expected = made_in_memory(source, selector(), tmp_path / "memory.csv")
    large = described(open_large(source, memory=80_000))
    assert [name for name in large.schema.names() if large.is_open(name)] == ["id", "dose"]
    found = publish(propose(large, selector(), MEMORY), tmp_path / "large.csv", memory=MEMORY)

    assert found.table_path.read_bytes() == expected.table_path.read_bytes()


def test_a_quasi_identifier_with_too_many_values_needs_a_rule_that_drops_it(source):
    """Its bands cannot be found; nothing is left out in silence."""
    roles = ROLES | {"dose": Role.QUASI_IDENTIFIER}
    large = described(open_large(source, memory=80_000), roles)
    with pytest.raises(SchemaError, match="'dose': has too many distinct values"):
        propose(large, selector(), MEMORY)
    proposal = propose(large, selector(binarize={"columns": {"dose": "drop"}}), MEMORY)
    assert "dose" in proposal.release.manifest.dropped_columns


def test_a_table_without_target_or_quasi_identifiers_is_refused_in_words(source):
    large = open_large(source, memory=MEMORY.n_bytes)
    with pytest.raises(SchemaError, match="role target"):
        propose(described(large, ROLES | {"ill": Role.OTHER}), selector(), MEMORY)
    nobody = {n: Role.OTHER for n, role in ROLES.items() if role is Role.QUASI_IDENTIFIER}
    with pytest.raises(SchemaError, match="no quasi-identifier"):
        propose(described(large, ROLES | nobody), selector(), MEMORY)


def test_cross_validation_needs_the_rows(source):
    """And is refused before anything is counted."""
    large = described(open_large(source, memory=MEMORY.n_bytes))
    with pytest.raises(InvalidParameterError, match="choose"):
        propose(large, ExactContainmentSelector(k=3, choose="cross_validation"), MEMORY)


@pytest.mark.slow
def test_nothing_appears_when_the_audit_finds_other_cells(source, tmp_path):
    """What is audited is what was written."""
    proposal = propose(described(open_large(source, memory=MEMORY.n_bytes)), selector(), MEMORY)
    (feature, place), *rest = proposal.chosen
    object.__setattr__(proposal, "chosen", ((feature, place + 1), *rest))
    with pytest.raises(AuditFailedError):
        publish(proposal, tmp_path / "out.parquet", memory=MEMORY)

    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.fixture(params=["parquet", "csv"])
def files(request, source, tmp_path):
    """Names of an original, its release and the manifest."""
    output = tmp_path / f"release.{request.param}"
    published = made_in_memory(source, selector(max_unique_fraction=0.5), output)
    return source, output, published.manifest_path


def both_reports(source, output, manifest_path):
    """Audit in memory and out of core."""
    manifest, entries = read_manifest(manifest_path)
    before = described(read_original(source, ReadOptions()))
    large = described(open_original(source, ReadOptions(), MEMORY.n_bytes))
    after, after_large = read_released(output, manifest), open_released(output, manifest, MEMORY.n_bytes)
    digest = after.source.sha256
    return (
        audit_release(
            after,
            entries,
            AuditorHas(original=before, original_sha256=before.source.sha256, roles=True),
            released_sha256=digest,
        ),
        audit_rows(
            after_large,
            entries,
            AuditorHas(original=large, original_sha256=before.source.sha256, roles=True),
            memory=MEMORY.n_bytes,
            released_sha256=digest,
        ),
    )


@pytest.mark.slow
def test_a_sound_release_is_confirmed_by_the_same_checks(files):
    """Every check of the audit in memory is made, with the same words; one more says what is not."""
    in_memory, out_of_core = both_reports(*files)

    assert out_of_core.passed
    assert in_memory.checks == tuple(c for c in out_of_core.checks if c.name != "out of core")
    assert {"containment: level", "unique-patterns: level", "risk: containment level"} <= {
        c.name for c in in_memory.checks
    }
    assert out_of_core.levels == in_memory.levels


def rewrite(output, change_rows, manifest_path, change_manifest):
    """Write other cells in place of a release, with a manifest whose hash and digest fit."""
    cells = read_table(output).to_arrow()
    rows = change_rows({name: cells.column(name).to_pylist() for name in cells.column_names})
    write_file(pa.table({n: pa.array(v, cells.schema.field(n).type) for n, v in rows.items()}), output)
    entries = json.loads(manifest_path.read_text())
    entries["output"]["sha256"] = read_table(output).source.sha256
    change_manifest(entries)
    entries["digest"] = manifest_digest(entries)
    manifest_path.write_text(text_of(entries), encoding="utf-8")


def flipped(rows):
    first = next(iter(rows))
    other = {0: 1, 1: 0, "0": "1", "1": "0"}
    return rows | {first: [*rows[first][:-1], other[rows[first][-1]]]}


def exchanged_notes(rows):
    """Give a row the note of one with other features: no note is new, but the rows are nobody's."""
    note, features = [*rows["note"]], list(zip(*(cells for name, cells in rows.items() if name != "note"), strict=True))
    other = next(i for i in range(len(note)) if note[i] != note[0] and features[i] != features[0])
    note[0], note[other] = note[other], note[0]
    return rows | {"note": note}


def other_note(rows):
    return rows | {"note": ["z", *rows["note"][1:]]}


def unchanged(rows):
    return rows


def nothing(entries):
    """Change nothing but what has to fit."""


def higher_k(entries):
    entries["guarantees"][0]["k"] = entries["mechanism"]["parameters"]["k"] = 30


def fewer_columns(entries):
    del entries["guarantees"][0]["columns"][0]


def fewer_uniques(entries):
    entries["guarantees"][1]["max_unique_fraction"] = 1e-9


def other_risk(entries):
    entries["evidence"]["risk"]["containment_level"] += 1


def other_level(entries):
    entries["guarantees"][0]["audited"] += 1


def other_rule(entries):
    recodings = [r for r in entries["recodings"] if r["rule"] == "interval" and "upto" in r]
    recodings[0]["upto"] += 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "entries"),
    [
        (flipped, nothing),
        (exchanged_notes, nothing),
        (other_note, nothing),
        (unchanged, higher_k),
        (unchanged, fewer_columns),
        (unchanged, fewer_uniques),
        (unchanged, other_risk),
        (unchanged, other_level),
        (unchanged, other_rule),
    ],
)
def test_a_tampered_release_is_refused_by_both(files, rows, entries):
    """Cells and promises that are not so, however well the hashes fit."""
    source, output, manifest_path = files
    rewrite(output, rows, manifest_path, entries)

    in_memory, out_of_core = both_reports(source, output, manifest_path)

    assert not out_of_core.passed
    assert {c.name for c in out_of_core.checks if not c.passed} == {c.name for c in in_memory.checks if not c.passed}


@pytest.mark.slow
def test_cells_that_are_not_zero_or_one_keep_no_containment(files):
    """The promise is not passed over because it cannot be measured."""
    source, output, manifest_path = files

    def with_twos(rows):
        first = next(iter(rows))
        return rows | {first: [2 if isinstance(cell, int) else "2" for cell in rows[first]]}

    rewrite(output, with_twos, manifest_path, nothing)
    in_memory, out_of_core = both_reports(source, output, manifest_path)

    failed = {c.name for c in out_of_core.checks if not c.passed}
    assert {"containment: level", "risk: containment level", "cells"} <= failed
    assert failed == {c.name for c in in_memory.checks if not c.passed}


def test_the_profile_of_a_file_of_zeros_and_ones_has_its_containment(tmp_path):
    """As that of the table in memory."""
    random = np.random.default_rng(1)
    cells = {name: random.integers(0, 2, 40).astype(np.int8) for name in "abcd"}
    pyarrow.parquet.write_table(pa.table(cells), tmp_path / "a.parquet")
    roles = dict.fromkeys("abcd", Role.QUASI_IDENTIFIER)
    expected = risk_profile(described(read_table(tmp_path / "a.parquet"), roles))
    large = described(open_large(tmp_path / "a.parquet", memory=MEMORY.n_bytes), roles)

    assert expected["containment"] is not None
    assert profile_rows(large, MEMORY.n_bytes) == expected
