"""Partitions out of core: from distinct rows the same bytes as in memory, from a sample what all rows keep."""

import csv
import json
import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from manifest_texts import text_of
from sfumato.cli.main import run
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.engines.protocol import TooLargeError
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import LDiversity, TCloseness
from sfumato.learning import cross_fitted
from sfumato.manifest import manifest_digest
from sfumato.mechanisms import sampled_groups
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.publishing.proposals import sampled as fitted
from sfumato.publishing.propose import make_release, propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Role
from sfumato.table.io.read import read_table
from sizes import examples
from unit.publishing.proposals.blockwise import outcome, small_blocks, write_file

MEMORY = Memory(200 * 10**6)
ROLES = {
    "id": Role.IDENTIFIER,
    "age": Role.QUASI_IDENTIFIER,
    "town": Role.QUASI_IDENTIFIER,
    "day": Role.QUASI_IDENTIFIER,
    "illness": Role.SENSITIVE,
    "ill": Role.TARGET,
    "cost": Role.OTHER,
    "dose": Role.OTHER,
}
RECODED = ("age", "town", "day")


def sampling(n_sampled):
    """Let distinct rows not fit, so that a sample of so many rows is taken."""
    stack = ExitStack()
    stack.enter_context(patch.object(Memory, "most_cells", lambda *_: 1))
    stack.enter_context(patch.object(fitted, "sample_size", lambda *_: n_sampled))
    return stack


def random_cells(n_rows, seed):
    random = np.random.default_rng(seed)

    def pick(values):
        return [values[i] for i in random.integers(0, len(values), n_rows)]

    age = pick([17, 18, 18, 25, 40, 41, 64, None])
    return pa.table(
        {
            "id": pa.array([f"p{i}" for i in range(n_rows)]),
            "age": pa.array(age, pa.int16()),
            "town": pa.array(pick(["Ulm", "Bonn", "Kiel", "Trier", None, "a,b"])),
            "day": pa.array(pick([None, 0, 31, 400, 401]), pa.int32()).cast(pa.date32()),
            "illness": pa.array(pick(["flu", "cold", "gout"])),
            "ill": pa.array([(years or 0) > 24 if random.random() < 0.8 else random.random() < 0.5 for years in age]),
            "cost": pa.array(random.gamma(2.0, 100.0, n_rows).round(1)),
            "dose": pa.array(random.normal(size=n_rows).round(1)),
        }
    )


def described(table):
    return table.with_schema(table.schema.with_roles(ROLES))


def made_in_memory(source, mechanism, output):
    table = described(read_table(source))
    return publish(make_release(table, mechanism), output, original=table)


def made_out_of_core(source, mechanism, output, memory=MEMORY):
    large = described(open_large(source, memory=memory.n_bytes))
    return publish(propose(large, mechanism, memory), output, memory=memory)


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch):
    monkeypatch.setattr(cross_fitted, "N_ROUNDS", 5)


PROMISES = [{}, {"l": 2.0}, {"l": 3.0}, {"l": 2.2, "variant": "entropy"}, {"t": 0.4}, {"beta": 2.0}, {"alpha": 0.7}]


@st.composite
def trees(draw, promises=PROMISES):
    return "error-risk-tree", {
        "generalization": "uniform",
        "k": draw(st.integers(2, 9)),
        "rule": draw(st.sampled_from(["lowest", "literal"])),
        "refine": draw(st.booleans()),
        "min_samples_leaf": draw(st.integers(1, 4)),
        "targets": draw(st.sampled_from([None, None, "illness", "cost", "ill,cost,dose"])),
        **draw(st.sampled_from(promises)),
    }


@st.composite
def partitions(draw, promises=PROMISES):
    """Draw settings of Mondrian, or of the default."""
    k = draw(st.integers(2, 9))
    if draw(st.booleans()):
        return "auto", {"k": k, "l": draw(st.sampled_from([1.0, 2.0]))}
    asked = draw(st.sampled_from(promises))
    return "mondrian", {"k": k, "split": draw(st.sampled_from(["penalty", "median", "gain", "score"])), **asked}


@pytest.mark.slow
@examples(40)
@given(
    st.integers(8, 120),
    st.integers(0, 2**32),
    trees() | partitions(),
    st.sampled_from(["in.parquet", "in.csv"]),
    st.sampled_from(["out.parquet", "out.csv"]),
)
def test_the_same_bytes_and_the_same_manifest_as_in_memory(n_rows, seed, asked, source_name, output_name):
    """Distinct rows with their counts are all that is looked at."""
    with TemporaryDirectory() as name, small_blocks():
        folder = Path(name)
        write_file(random_cells(n_rows, seed), folder / source_name)
        (folder / "memory").mkdir()
        (folder / "large").mkdir()
        source, tree = folder / source_name, build_mechanism(*asked)
        expected = outcome(made_in_memory, source, tree, folder / "memory" / output_name)
        found = outcome(made_out_of_core, source, tree, folder / "large" / output_name)

        if isinstance(expected, str):
            assert found == expected
            return
        assert found.table_path.read_bytes() == expected.table_path.read_bytes()
        assert json.loads(found.manifest_path.read_text()) == json.loads(expected.manifest_path.read_text())
        assert found.audit.levels == expected.audit.levels


def written_rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def stands_for(cell, value):
    """Read a released cell naively: a range, a set, anything, or one value."""
    if cell == "*":
        return True
    members = cell[1:-1].split("|") if cell.startswith("{") else [cell]
    for member in members:
        if member == r"\N" or member == "":
            if value == "":
                return True
        elif member.startswith("["):
            low, high = member[1:-1].split(", ")
            if value != "" and (
                float(low) <= float(value) <= float(high) if "-" not in value else low <= value <= high
            ):
                return True
        elif member.replace("\\", "") == value:
            return True
    return False


def check_promise(source, released, k):
    """Every combination of released cells k times, and each released row stands for an original row of its own."""
    before, after = written_rows(source), written_rows(released)
    assert len(before) == len(after)
    assert min(Counter(tuple(row[name] for name in RECODED) for row in after).values()) >= k
    fits = np.array(
        [
            [
                all(new[name] == old[name] for name in ("illness", "ill"))
                and all(stands_for(new[name], old[name]) for name in RECODED)
                for new in after
            ]
            for old in before
        ]
    )
    assert (maximum_bipartite_matching(csr_matrix(fits)) >= 0).all()


def check_diversity(released, least):
    """So many different illnesses in every class."""
    classes = {}
    for row in written_rows(released):
        classes.setdefault(tuple(row[name] for name in RECODED), set()).add(row["illness"])
    assert min(map(len, classes.values())) >= least


@pytest.mark.slow
@examples(40)
@given(
    st.integers(10, 150),
    st.integers(0, 2**32),
    trees(promises=PROMISES[:1]) | partitions(promises=PROMISES[:3]),
    st.integers(1, 160),
    st.sampled_from([1 << 26, 1]),
)
def test_groups_of_a_sample_keep_what_is_promised_on_all_rows(n_rows, seed, asked, n_sampled, most_flags):
    """However small the sample: groups are counted, and cells are made, on all rows."""
    few_wait = patch.multiple(sampled_groups, _MANY_WAITING=3, _MOST_FLAGS=most_flags)
    with TemporaryDirectory() as name, small_blocks(), sampling(n_sampled), few_wait:
        source, output = Path(name) / "in.csv", Path(name) / "out.csv"
        write_file(random_cells(n_rows, seed), source)
        found = outcome(made_out_of_core, source, build_mechanism(*asked), output)

        if isinstance(found, str):  # the sample has not enough values, and no group can be promised to have
            assert "-diversity" in found
            return
        check_promise(source, output, asked[1]["k"])
        check_diversity(output, asked[1].get("l", 1))
        stated = found.release.manifest
        assert stated.evidence["utility"]["grown_on_rows"] == min(n_sampled, n_rows)
        assert stated.evidence["utility"]["of_rows"] == n_rows
        assert stated.mechanism["seed"] == fitted.SEED
        sizes = Counter(tuple(row[name] for name in RECODED) for row in written_rows(output))
        assert stated.evidence["risk"]["anonymity_level"] == min(sizes.values())
        assert stated.evidence["utility"]["n_classes_of_cells"] == len(sizes)


@pytest.fixture
def source(tmp_path):
    """Write a file of 400 rows."""
    path = tmp_path / "in.csv"
    write_file(random_cells(400, 3), path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["lowest", "literal"])
def test_a_sample_of_all_rows_gives_the_tree_of_all_rows(source, tmp_path, rule):
    """Then the sample is the table, and pruning sees what it sees in memory."""
    tree = ErrorRiskTree(k=4, generalization="uniform", rule=rule, refine=False)
    made_in_memory(source, tree, tmp_path / "memory.csv")
    with small_blocks(), sampling(400):
        made_out_of_core(source, tree, tmp_path / "large.csv")

    assert (tmp_path / "large.csv").read_bytes() == (tmp_path / "memory.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("split", ["penalty", "score"])
def test_a_sample_of_all_rows_gives_the_partition_of_all_rows(source, tmp_path, split):
    """Where one of four hundred rows would be left out of it, the groups are others."""
    mechanism = Mondrian(k=4, split=split, privacy=[LDiversity(2)])
    made_in_memory(source, mechanism, tmp_path / "memory.csv")
    with small_blocks(), sampling(400):
        made_out_of_core(source, mechanism, tmp_path / "large.csv")

    assert (tmp_path / "large.csv").read_bytes() == (tmp_path / "memory.csv").read_bytes()


def test_promises_that_do_not_follow_from_a_sample_are_refused(source, tmp_path):
    """A group that is diverse in a sample has no larger share of a value; in all rows it may have."""
    mechanism = Mondrian(k=4, privacy=[TCloseness(0.3)])
    with sampling(200), pytest.raises(InvalidParameterError, match="distinct rows do not fit"):
        made_out_of_core(source, mechanism, tmp_path / "out.csv")


@pytest.mark.parametrize(
    ("mechanism", "words", "roles"),
    [
        (Mondrian(k=3, strict=False, split="median"), "relaxed cuts", {}),
        (ErrorRiskTree(k=4), "tiered cells", {}),
        (Mondrian(k=3, privacy=[LDiversity(2, "town")]), "'town', which is", {"town": Role.SENSITIVE_QUASI_IDENTIFIER}),
        (Mondrian(k=3), "mondrian, which counts persons", {"cost": Role.PERSON}),
    ],
    ids=["relaxed", "tiered", "both roles", "persons"],
)
def test_what_needs_single_rows_takes_them_into_memory(source, tmp_path, mechanism, words, roles):
    """Distinct rows are not enough: the bytes are those of a table in memory, if it fits."""
    large = open_large(source, memory=MEMORY.n_bytes)
    large = large.with_schema(large.schema.with_roles(ROLES | roles))
    here = read_table(source, schema=large.schema)
    expected = publish(make_release(here, mechanism), tmp_path / "here.csv", original=here)
    found = publish(propose(large, mechanism, MEMORY), tmp_path / "there.csv", memory=MEMORY)

    assert found.table_path.read_bytes() == expected.table_path.read_bytes()
    assert found.release.manifest.guarantees == expected.release.manifest.guarantees
    with (
        patch("sfumato.engines.protocol.cells_in_memory", lambda memory: 10),
        pytest.raises(TooLargeError, match=words),
    ):
        propose(large, mechanism, MEMORY)


def test_what_the_default_cannot_reach_names_what_it_can(tmp_path):
    """As in memory."""
    table = random_cells(60, 1)
    table = table.set_column(table.column_names.index("illness"), "illness", pa.array(["flu"] * 60))
    write_file(table, tmp_path / "in.csv")
    with pytest.raises(PrivacyNotAchievableError, match="k-anonymity alone can be reached"):
        made_out_of_core(tmp_path / "in.csv", build_mechanism("auto", {}), tmp_path / "out.csv")


@pytest.mark.slow
def test_groups_of_a_sample_are_divided_further(source, tmp_path):
    """Refining makes cells narrower, with a sample as with all rows."""
    penalties = []
    for refine in (False, True):
        tree = ErrorRiskTree(k=4, generalization="uniform", refine=refine)
        with sampling(200):
            found = made_out_of_core(source, tree, tmp_path / f"{refine}.csv")
        penalties.append(found.release.manifest.evidence["utility"]["global_certainty_penalty"])

    assert penalties[1] < 0.8 * penalties[0]


@pytest.mark.slow
def test_the_sample_does_not_depend_on_the_blocks(source):
    """Each row has a number of its own, and every row the same chance."""
    large = described(open_large(source, memory=MEMORY.n_bytes))
    whole = fitted.drawn_rows(large, ["age", "id"], 57)
    with small_blocks():
        in_blocks = fitted.drawn_rows(described(open_large(source, memory=MEMORY.n_bytes)), ["age", "id"], 57)

    assert all(np.array_equal(whole[name], in_blocks[name]) for name in whole)
    lots = np.random.default_rng(fitted.SEED).random(400)
    ids = [row["id"] for row in written_rows(source)]
    expected = [ids[i] for i in sorted(sorted(range(400), key=lots.__getitem__)[:57])]
    assert large.outline["id"].values.take(pa.array(whole["id"])).to_pylist() == expected


def test_a_table_without_a_target_is_refused(source):
    """As in memory."""
    large = open_large(source, memory=MEMORY.n_bytes)
    large = large.with_schema(large.schema.with_roles(ROLES | {"ill": Role.OTHER}))
    with pytest.raises(SchemaError, match="no target"):
        propose(large, ErrorRiskTree(generalization="uniform"), MEMORY)
    with sampling(50), pytest.raises(SchemaError, match="no target"):
        propose(large, ErrorRiskTree(generalization="uniform"), MEMORY)


def test_more_rows_in_a_group_than_there_are_cannot_be(source):
    """Whether by distinct rows or by a sample."""
    large = described(open_large(source, memory=MEMORY.n_bytes))
    tree = ErrorRiskTree(k=401, generalization="uniform")
    with pytest.raises(PrivacyNotAchievableError):
        propose(large, tree, MEMORY)
    with sampling(50), pytest.raises(PrivacyNotAchievableError):
        propose(large, tree, MEMORY)


def tampered(path):
    """Give the first row whose town is generalized the cells of another group."""
    rows = written_rows(path)
    other = next(row for row in rows if row["town"] != rows[0]["town"])
    rows[0] = rows[0] | {name: other[name] for name in RECODED}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.slow
@pytest.mark.parametrize("n_sampled", [None, 90])
def test_the_audit_confirms_a_release_and_refuses_a_changed_one(source, tmp_path, n_sampled):
    """Out of core, beside the original."""
    output = tmp_path / "out.csv"
    with sampling(n_sampled) if n_sampled else ExitStack():
        published = made_out_of_core(source, ErrorRiskTree(k=4, generalization="uniform"), output)
    original = described(open_large(source, memory=MEMORY.n_bytes))
    assert audit_published(output, published.manifest_path, memory=MEMORY, original=original).passed

    tampered(output)
    manifest = json.loads(published.manifest_path.read_text())
    manifest["output"]["sha256"] = read_table(output).source.sha256
    published.manifest_path.write_text(text_of(manifest), encoding="utf-8")
    report = audit_published(output, published.manifest_path, memory=MEMORY, original=original)
    assert not report.passed
    assert any(not check.passed and check.name not in ("hashes", "out of core") for check in report.checks)


@pytest.mark.slow
@pytest.mark.parametrize("refine", [True, False])
def test_the_command_says_that_it_took_a_sample(source, tmp_path, capsys, refine):
    """In the words of the release, and in its manifest; the audit confirms all but figures of the tree's splits."""
    output = tmp_path / "out.csv"
    roles = ["--identifiers=id", "--quasi-identifiers=age,town,day", "--target=ill", "--other=illness,cost,dose"]
    large = ["--memory", "600MB", *roles]
    order = ["release", str(source), "-m", "error-risk-tree", "-k", "4", "-o", str(output), *large]
    with sampling(100):
        assert run([*order, "-p", "generalization=uniform", "-p", f"refine={str(refine).lower()}"]) == 0
    said = capsys.readouterr().err
    assert re.search(r"grown on rows +100\n", said)
    assert re.search(r"of rows +400\n", said)
    check_promise(source, output, 4)
    audit = ["audit", str(output), "--manifest", f"{output}.manifest.json", "--original", str(source)]
    capsys.readouterr()
    assert run([*audit, *large, "--accept", "figures"]) == 0
    printed = capsys.readouterr().out
    assert "\nconfirmed except: figures" in printed
    assert "ok   the least and mean ICR of" in printed


def with_utility(manifest_path, **stated):
    manifest = json.loads(manifest_path.read_text())
    manifest["evidence"]["utility"] |= stated
    manifest["digest"] = manifest_digest(manifest)
    manifest_path.write_text(text_of(manifest), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("stated", [0.0, 0.999])
def test_another_certainty_penalty_is_refused(source, tmp_path, stated):
    """Counts of every column show it, out of core as in memory."""
    tree, output = ErrorRiskTree(k=4, generalization="uniform"), tmp_path / "out.csv"
    with sampling(90):
        published = made_out_of_core(source, tree, output)
    right = json.loads(published.manifest_path.read_text())["evidence"]["utility"]["global_certainty_penalty"]
    large = described(open_large(source, memory=MEMORY.n_bytes))
    for penalty, expected in ((right, []), (stated, ["utility: global certainty penalty"])):
        with_utility(published.manifest_path, global_certainty_penalty=penalty)
        in_memory = audit_published(output, published.manifest_path, original=described(read_table(source)))
        out_of_core = audit_published(output, published.manifest_path, memory=MEMORY, original=large)
        for report in (in_memory, out_of_core):
            assert [check.name for check in report.checks if not check.passed] == expected
        assert "certainty penalty" not in str([one for one in out_of_core.unchecked if one.name == "figures"])


@pytest.mark.slow
def test_the_certainty_penalty_of_a_long_column_is_not_checked(source, tmp_path):
    """And that is said; the penalty is not called wrong."""
    output = tmp_path / "out.csv"
    published = made_out_of_core(source, ErrorRiskTree(k=40, generalization="uniform"), output)
    with small_blocks():
        long = described(open_large(source, memory=6 * 4000))
        report = audit_published(output, published.manifest_path, memory=MEMORY, original=long)

    assert long.is_open("age")
    assert report.passed
    assert {"cells", "figures"} <= {one.name for one in report.unchecked}
    assert any("the stated certainty penalty" in one.message for one in report.unchecked)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stated",
    [{"grown_on_rows": 401}, {"grown_on_rows": 0}, {"of_rows": 399}],
)
def test_a_sample_that_cannot_be_is_refused(source, tmp_path, stated):
    """By both audits."""
    output = tmp_path / "out.csv"
    with sampling(90):
        published = made_out_of_core(source, ErrorRiskTree(k=4, generalization="uniform"), output)
    with_utility(published.manifest_path, **stated)

    reports = (
        audit_published(output, published.manifest_path),
        audit_published(output, published.manifest_path, memory=MEMORY),
    )

    for report in reports:
        assert [check.name for check in report.checks if not check.passed] == ["sample: grown on rows and of rows"]
