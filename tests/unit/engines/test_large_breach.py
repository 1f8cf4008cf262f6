"""Columns chosen on a sample: what is released of all rows, what is said of the sample, and what the audit finds."""

import json
import shutil
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from manifest_texts import text_of
from sfumato.audit.levels import breach
from sfumato.audit.levels.breach import determining_columns
from sfumato.cli.main import sfumato
from sfumato.engines.blocks import rows as distinct
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.errors import AuditFailedError, PrivacyNotAchievableError, SchemaError
from sfumato.manifest import in_three_digits, manifest_digest
from sfumato.mechanisms.breach.problem import gives_away, pairs_give_away
from sfumato.mechanisms.breach.selector import BreachAwareSelector
from sfumato.publishing.proposals import sampled
from sfumato.publishing.propose import make_release, mechanisms_without_all_rows, propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published, open_original
from sfumato.schema import Role
from sfumato.table.io import csv as delimited_blocks
from sfumato.table.io import parquet
from sfumato.table.io.read import ReadOptions, read_table
from sizes import examples
from unit.publishing.proposals import blockwise

MEMORY = Memory(200 * 10**6)
N_ROWS, N_SAMPLED = 600, 200
write_file = partial(blockwise.write_file, row_group_size=53)
ROLES = {
    "id": Role.IDENTIFIER,
    "age": Role.QUASI_IDENTIFIER,
    "sex": Role.QUASI_IDENTIFIER,
    "town": Role.QUASI_IDENTIFIER,
    "illness": Role.SENSITIVE,
    "ill": Role.TARGET,
    "note": Role.OTHER,
}
QUICK = {"n_folds": 3, "n_workers": 1}


def small_blocks():
    stack = ExitStack()
    for module, name, value in (
        (delimited_blocks, "BLOCK_BYTES", 300),
        (parquet, "BLOCK_ROWS", 37),
        (distinct, "_FEWEST_PENDING", 3),
    ):
        stack.enter_context(patch.object(module, name, value))
    return stack


def small_sample(n_sampled=N_SAMPLED):
    stack = small_blocks()
    for module in (sampled, breach):
        stack.enter_context(patch.object(module, "SAMPLE_ROWS", n_sampled))
    return stack


def random_cells(n_rows=N_ROWS, seed=1, **more):
    """Town tells of the illness, age of the target."""
    random = np.random.default_rng(seed)
    illness, ill = random.integers(0, 3, n_rows), random.integers(0, 2, n_rows)
    town = np.where(random.random(n_rows) < 0.6, illness, random.integers(0, 3, n_rows))
    ages = 30 + 20 * ill + random.integers(0, 25, n_rows)
    return pa.table(
        {
            "id": pa.array([f"p{i}" for i in range(n_rows)]),
            "age": pa.array([None if i % 97 == 5 else int(age) for i, age in enumerate(ages)], pa.int16()),
            "sex": pa.array([" f" if one else "m" for one in random.integers(0, 2, n_rows)]),
            "town": pa.array([("Ulm", "?", "a,b")[i] for i in town]),
            "illness": pa.array([("flu", "cold", "gout")[i] for i in illness]),
            "ill": pa.array([bool(one) for one in ill]),
            "note": pa.array([("x", "y", "=1")[i] for i in random.integers(0, 3, n_rows)]),
            **more,
        }
    )


def described(table, roles=ROLES):
    return table.with_schema(table.schema.with_roles(roles))


def opened(path, roles=ROLES, memory=MEMORY.n_bytes):
    return described(open_large(path, memory=memory), roles)


def made_out_of_core(source, output, roles=ROLES, **parameters):
    return publish(
        propose(opened(source, roles), BreachAwareSelector(**QUICK | parameters), MEMORY), output, memory=MEMORY
    )


def made_in_memory(source, output, **parameters):
    table = described(read_table(source))
    return publish(make_release(table, BreachAwareSelector(**QUICK | parameters)), output, original=table)


def outcome(make, *arguments, **parameters):
    try:
        return make(*arguments, **parameters)
    except (PrivacyNotAchievableError, AuditFailedError) as error:
        return str(error)


@pytest.mark.slow
@examples(8)
@given(
    st.integers(40, 120),
    st.integers(0, 2**32),
    st.fixed_dictionaries(
        {
            "attacker": st.sampled_from(["naive-bayes", "c45"]),
            "metric": st.sampled_from(["accuracy", "auc"]),
            "max_breach_increase": st.sampled_from([0.0, -5.0]),
            "sensitive": st.sampled_from([None, "ill"]),
        }
    ),
    st.sampled_from(["in.parquet", "in.csv"]),
    st.sampled_from(["out.parquet", "out.csv"]),
)
def test_a_file_that_fits_in_the_sample_is_released_as_in_memory(n_rows, seed, parameters, source_name, output_name):
    """The same bytes, the same manifest."""
    with TemporaryDirectory() as name, small_blocks():
        folder = Path(name)
        source = folder / source_name
        write_file(random_cells(n_rows, seed), source)
        for part in ("memory", "large"):
            (folder / part).mkdir()
        expected = outcome(made_in_memory, source, folder / "memory" / output_name, **parameters)
        found = outcome(made_out_of_core, source, folder / "large" / output_name, **parameters)

        if isinstance(expected, str):
            assert found == expected
            return
        assert found.table_path.read_bytes() == expected.table_path.read_bytes()
        assert json.loads(found.manifest_path.read_text()) == json.loads(expected.manifest_path.read_text())
        assert found.audit.levels == expected.audit.levels
        assert "sample" not in found.manifest_path.read_text()


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.parquet"
    write_file(random_cells(), path)
    return path


@pytest.fixture
def sample_of_few():
    with small_sample():
        yield


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    write_file(random_cells(), folder / "in.parquet")
    with small_sample():
        return made_out_of_core(folder / "in.parquet", folder / "out.csv")


@pytest.fixture
def published(made_once, tmp_path, sample_of_few):
    """Give a copy of the release of ``source``, whose files a test may change."""
    table, manifest = (Path(shutil.copy(path, tmp_path)) for path in (made_once.table_path, made_once.manifest_path))
    return replace(made_once, table_path=table, manifest_path=manifest)


def test_breach_aware_is_able():
    assert "breach-aware" in mechanisms_without_all_rows()


@pytest.mark.slow
def test_all_rows_of_the_chosen_columns_are_written(published, source):
    """Every row, with every cell as it is; the order is that of the cells."""
    chosen = published.release.manifest.guarantees[0]["columns"]
    original = described(read_table(source))
    kept = [name for name in original.schema.names() if name in chosen or name in ("ill", "note")]

    assert "town" not in chosen
    written = read_table(published.table_path).to_arrow()
    rows = original.keep(kept).to_arrow().cast(written.schema).to_pylist()
    assert written.column_names == kept
    assert sorted(written.to_pylist(), key=repr) == sorted(rows, key=repr)


@pytest.mark.slow
def test_the_manifest_says_on_how_many_rows_it_was_estimated(published, source):
    """And gives what counts of all rows show."""
    manifest = json.loads(published.manifest_path.read_text())
    risk, rows = manifest["evidence"]["risk"], random_cells().to_pydict()

    assert (risk["estimated_on_rows"], risk["of_rows"]) == (N_SAMPLED, N_ROWS)
    assert f"a sample of {N_SAMPLED} of {N_ROWS} rows" in risk["what_this_is"]
    assert (manifest["input"]["rows"], manifest["output"]["rows"]) == (N_ROWS, N_ROWS)
    assert sorted(manifest["dropped_columns"]) == sorted({"id", "age", "sex", "town", "illness"} - {*_chosen(manifest)})
    chosen = zip(*(rows[name] for name in _chosen(manifest)), strict=True)
    assert risk["anonymity_level"] == min(Counter(chosen).values())
    share = max(Counter(rows["illness"]).values()) / N_ROWS
    assert risk["share_of_the_most_frequent_value"] == in_three_digits(share)


def _chosen(manifest):
    return manifest["guarantees"][0]["columns"]


@pytest.mark.slow
def test_the_choice_is_that_of_the_sampled_rows_alone(published, source):
    """Estimates are those of a table of these rows in memory."""
    rows = sampled._drawn_rows(N_ROWS, N_SAMPLED)
    assert len(rows) == N_SAMPLED == len(set(rows.tolist()))
    assert rows.min() >= 0
    assert rows.max() < N_ROWS
    table = described(read_table(source)).take(rows)
    expected = BreachAwareSelector(**QUICK).release(table).manifest.to_dict()
    found = json.loads(published.manifest_path.read_text())

    assert found["evidence"]["choice"] == json.loads(json.dumps(expected["evidence"]["choice"]))
    assert found["evidence"]["utility"] == expected["evidence"]["utility"]
    assert found["guarantees"][0]["columns"] == list(expected["guarantees"][0]["columns"])


def test_every_row_can_be_drawn():
    """Rows from all parts of a file, one as likely as another."""
    with patch.object(breach, "SAMPLE_ROWS", 50_000):
        samples = sampled._drawn_rows(100_000, 50_000), breach.sampled_rows(100_000, 3)
    for rows in samples:
        assert (abs(np.bincount(rows // 10_000, minlength=10) - 5_000) < 300).all()
    assert not np.array_equal(*samples)


def test_of_very_many_columns_fewer_rows_are_drawn():
    """Twenty million cells on both sides."""
    for size in (sampled._sample_size, breach.sample_size):
        assert [size(n) for n in (1, 100, 200, 20_000)] == [200_000, 200_000, 100_000, 1_000]


@pytest.mark.slow
def test_both_audits_confirm_it_and_say_that_they_sampled(published, source):
    """The audit in memory takes the same sample of its own, so that it finds the same level."""
    table, manifest = published.table_path, published.manifest_path
    in_memory = audit_published(table, manifest, original=described(read_table(source)), check_roles=True)
    large = audit_published(table, manifest, memory=MEMORY, original=opened(source), check_roles=True)

    assert in_memory.passed, in_memory.failures
    assert large.passed, large.failures
    assert in_memory.levels == large.levels
    assert in_three_digits(large.levels) == [json.loads(manifest.read_text())["guarantees"][0]["audited"]]
    said = f"estimated on the audit's own sample of {N_SAMPLED} of {N_ROWS} rows"
    assert any(said in check.message for check in large.checks)


@pytest.mark.slow
def test_what_an_attacker_wants_may_be_the_target(source, tmp_path, sample_of_few):
    """Then it is released, and the bound is about others."""
    published = made_out_of_core(source, tmp_path / "out.csv", sensitive="ill")
    manifest = json.loads(published.manifest_path.read_text())

    assert "ill" in read_table(published.table_path).schema.names()
    assert manifest["guarantees"][0]["sensitive"] == "ill"
    assert manifest["guarantees"][0]["audited"] <= 1e-9
    original = described(read_table(source))
    report = audit_published(published.table_path, published.manifest_path, original=original, check_roles=True)
    assert report.passed, report.failures


@pytest.mark.slow
def test_without_the_original_it_is_not_checked(published):
    report = audit_published(published.table_path, published.manifest_path, memory=MEMORY)

    assert report.verdict == "confirmed except"
    assert any("breach-bound was not measured" in one.message for one in report.unchecked if one.name == "promises")


@pytest.mark.slow
def test_a_release_made_in_memory_can_be_audited_on_a_sample(source, tmp_path):
    """Its audited level is that of the audit's own sample, so that every audit finds it again."""
    with small_sample():
        published = made_in_memory(source, tmp_path / "out.csv")
        reports = both_audits(published, source)

    for report in reports:
        assert report.passed, report.failures
        assert any(f"the audit's own sample of {N_SAMPLED} of {N_ROWS} rows" in c.message for c in report.checks)
    assert "estimated_on_rows" not in json.loads(published.manifest_path.read_text())["evidence"]["risk"]


def both_audits(published, source):
    """Audit in memory and out of core."""
    table, manifest = published.table_path, published.manifest_path
    in_memory = audit_published(table, manifest, original=described(read_table(source)), check_roles=True)
    return in_memory, audit_published(table, manifest, memory=MEMORY, original=opened(source), check_roles=True)


@pytest.mark.slow
def test_a_manifest_cannot_choose_that_its_audited_level_is_not_compared(published, source):
    """By not saying that its estimates rest on a sample."""

    def state_another(manifest):
        for name in ("estimated_on_rows", "of_rows"):
            del manifest["evidence"]["risk"][name]
        manifest["guarantees"][0]["audited"] = -99.0

    changed_manifest(published.manifest_path, state_another)
    for report in both_audits(published, source):
        (failure,) = report.failures
        assert "gives -99 as audited, found" in failure


@pytest.mark.parametrize("way", ["in memory", "out of core"])
def test_an_attacker_who_is_never_right_shows_nothing(source, tmp_path, sample_of_few, way):
    """Both ways say so with the same error."""
    make = made_in_memory if way == "in memory" else made_out_of_core
    said = "breach-bound cannot be measured: .*is right in no row"
    with (
        patch("sfumato.audit.attackers.Attack.scores", lambda *_: np.zeros(5)),
        pytest.raises(AuditFailedError, match=said),
    ):
        make(source, tmp_path / "out.csv")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]


@pytest.mark.slow
def test_a_bound_that_does_not_hold_is_refused_in_the_same_words_in_memory_and_out_of_core(source, tmp_path):
    """An attacker who does better by the released columns than by all, in every fold."""
    said = []

    def better_by_fewer(attack, columns, attacker):
        return np.linspace(0.8, 0.9, 5) - 0.1 * len(columns)

    for make in (made_in_memory, made_out_of_core):
        with (
            patch("sfumato.audit.attackers.Attack.scores", better_by_fewer),
            pytest.raises(AuditFailedError) as refused,
        ):
            make(source, tmp_path / "out.csv")
        said.append(str(refused.value))

    assert said[0] == said[1]
    assert "breach-bound does not hold: promised max_breach_increase = 0, found" in said[0]


def test_a_missing_value_can_be_the_commonest_of_a_long_column(tmp_path):
    """Values in one row each, all of them missing, are then guessed rightly, as in memory."""
    wanted = [None] * 100 + [f"w{i % 4}" for i in range(200)]
    column = [f"one {i}" for i in range(30)] + ["none"] * 70 + [f"c{i % 4}" for i in range(200)]
    pyarrow.parquet.write_table(pa.table({"c": column, "w": wanted}), tmp_path / "in.parquet")
    table = read_table(tmp_path / "in.parquet")
    with small_blocks():
        large = open_large(tmp_path / "in.parquet", memory=3 * 4000)
        found = determining_columns(large, ["c"], "w", MEMORY.n_bytes)

    assert large.is_open("w")
    assert naively_tells(column, wanted) == {True}
    assert breach.determines(table["c"].codes, table["w"].codes)
    assert found == ["c"]


@pytest.mark.slow
def test_combinations_that_do_not_fit_are_left_out_in_words(source, tmp_path, sample_of_few):
    """No level is stated then, and none is judged."""
    with patch.object(Memory, "most_cells", lambda *_: 1):
        published = made_out_of_core(source, tmp_path / "out.csv")

    risk = json.loads(published.manifest_path.read_text())["evidence"]["risk"]
    assert "anonymity_level" not in risk
    assert "too many" in risk["anonymity_level_left_out"]


def with_wrong_rows(rows_wrong, n_rows=N_ROWS):
    """Give a column that equals the illness but for some rows."""
    illness = random_cells(n_rows).column("illness").to_pylist()
    return [
        "flu" if i in rows_wrong and own != "flu" else "cold" if i in rows_wrong else own
        for i, own in enumerate(illness)
    ]


@pytest.mark.parametrize("role", [Role.OTHER, Role.QUASI_IDENTIFIER])
def test_a_column_that_gives_the_illness_away_in_all_rows_is_refused(tmp_path, sample_of_few, role):
    """Also when the sample holds so many of the rows in which it is wrong that it does not show there."""
    wrong = set(sampled._drawn_rows(N_ROWS, N_SAMPLED)[:6].tolist())
    source = tmp_path / "in.parquet"
    write_file(random_cells(code=with_wrong_rows(wrong)), source)

    with pytest.raises(SchemaError, match="'code': gives the sensitive column 'illness' away"):
        propose(opened(source, ROLES | {"code": role}), BreachAwareSelector(**QUICK), MEMORY)
    table = described(read_table(source), ROLES | {"code": role})
    BreachAwareSelector(**QUICK).release(table.take(sampled._drawn_rows(N_ROWS, N_SAMPLED)))


@pytest.mark.slow
def test_a_column_that_gives_it_away_in_the_sample_only_is_not_refused(tmp_path, sample_of_few):
    """All rows decide."""
    drawn = set(sampled._drawn_rows(N_ROWS, N_SAMPLED).tolist())
    wrong = set([i for i in range(N_ROWS) if i not in drawn][:60])
    source, roles = tmp_path / "in.parquet", ROLES | {"code": Role.QUASI_IDENTIFIER}
    write_file(random_cells(code=with_wrong_rows(wrong)), source)

    published = made_out_of_core(source, tmp_path / "out.csv", roles)

    assert "code" not in _chosen(json.loads(published.manifest_path.read_text()))
    with pytest.raises(SchemaError, match="gives the sensitive column"):
        BreachAwareSelector(**QUICK).release(described(read_table(source), roles).take(np.array(sorted(drawn))))


@pytest.mark.slow
def test_long_columns_are_judged_on_all_rows_by_the_audit(tmp_path):
    """Their values are not listed, so only the sample shows anything before; nothing appears."""
    n_rows = 1_200
    drawn = set(sampled._drawn_rows(n_rows, N_SAMPLED).tolist())
    kinds = {"flu": 0, "cold": 1, "gout": 2}
    illness = random_cells(n_rows).column("illness").to_pylist()
    # In the sample a value stands in fewer than three rows on average, which shows nothing.
    codes = [3 * (i // 24) + kinds[own] for i, own in enumerate(illness)]
    source, roles = tmp_path / "in.parquet", ROLES | {"code": Role.OTHER}
    write_file(random_cells(n_rows, code=pa.array(codes)), source)
    assert len(set(codes)) * 3 <= n_rows
    assert len({codes[i] for i in drawn}) * 3 > N_SAMPLED

    with small_sample():
        large = opened(source, roles, memory=100 * 4000)
        assert large.is_open("code")
        proposal = propose(large, BreachAwareSelector(**QUICK), MEMORY)
        with pytest.raises(AuditFailedError, match="given away by 'code'"):
            publish(proposal, tmp_path / "out.csv", memory=MEMORY)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]


@pytest.mark.slow
def test_a_long_quasi_identifier_is_offered_by_its_cells(tmp_path):
    """It is judged like another number, and written if it is chosen."""
    numbers = random_cells().column("ill").to_numpy(zero_copy_only=False) + np.arange(N_ROWS) / 5000
    source, roles = tmp_path / "in.parquet", ROLES | {"score": Role.QUASI_IDENTIFIER}
    write_file(random_cells(score=pa.array(numbers)), source)
    with small_sample():
        large = opened(source, roles, memory=400 * 4000)
        assert large.is_open("score")
        proposal = propose(large, BreachAwareSelector(**QUICK), MEMORY)
        published = publish(proposal, tmp_path / "out.csv", memory=MEMORY)

    assert "score" in _chosen(json.loads(published.manifest_path.read_text()))
    written = read_table(published.table_path).to_arrow().column("score").to_pylist()
    assert sorted(float(number) for number in written) == sorted(numbers.tolist())


def test_a_rare_target_that_the_sample_misses_is_said(tmp_path, sample_of_few):
    drawn = set(sampled._drawn_rows(N_ROWS, N_SAMPLED).tolist())
    rare = next(i for i in range(N_ROWS) if i not in drawn)
    source = tmp_path / "in.parquet"
    cells = random_cells()
    write_file(cells.set_column(5, "ill", pa.array([i == rare for i in range(N_ROWS)])), source)

    with pytest.raises(SchemaError, match=f"'ill': has one value only in the sample of {N_SAMPLED} rows"):
        propose(opened(source), BreachAwareSelector(**QUICK), MEMORY)


def changed_manifest(path, change):
    data = json.loads(path.read_text())
    change(data)
    data["digest"] = manifest_digest(data)
    path.write_text(text_of(data), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["guarantees"][0].update(audited=-50.0), "as audited, found"),
        (lambda m: m["guarantees"][0].update(max_breach_increase=-99.0), "breach-bound"),
        (lambda m: m["guarantees"][0].update(baseline=m["guarantees"][0]["columns"], numeric=[]), "quasi-identifiers"),
        (lambda m: m["guarantees"][0].update(numeric=[]), "taken as numbers"),
        (lambda m: m["guarantees"][0].update(sensitive="nobody"), "breach-bound cannot be measured"),
        (lambda m: m["guarantees"][0].update(sensitive="note"), "columns to be protected are released"),
        (lambda m: m["evidence"]["risk"].update(anonymity_level=99), "anonymity level: the manifest gives 99"),
        (
            lambda m: m["evidence"]["risk"].update(estimated_on_rows=N_ROWS + 1),
            "are not possible sizes of a sample of 600 rows",
        ),
        (lambda m: m["evidence"]["risk"].update(of_rows=N_ROWS - 1), "are not possible sizes of a sample of 600 rows"),
        (lambda m: m["guarantees"][0].update(statement="nothing is learned"), "does not say what is promised"),
    ],
)
def test_a_changed_manifest_is_refused(published, source, change, said):
    changed_manifest(published.manifest_path, change)
    report = audit_published(
        published.table_path, published.manifest_path, memory=MEMORY, original=opened(source), check_roles=True
    )

    assert any(said in failure for failure in report.failures), report.failures


@pytest.mark.slow
def test_a_changed_cell_is_refused(published, source):
    lines = published.table_path.read_text().splitlines()
    other = min({line.rpartition(",")[2] for line in lines[1:]} - {lines[300].rpartition(",")[2]})
    lines[300] = lines[300].rpartition(",")[0] + f",{other}"
    published.table_path.write_text("\n".join(lines) + "\n")
    report = audit_published(
        published.table_path, published.manifest_path, memory=MEMORY, original=opened(source), check_roles=True
    )

    assert any("SHA-256" in failure for failure in report.failures)
    assert any(not check.passed and check.name == "cells" for check in report.checks)


@pytest.mark.slow
def test_a_bound_that_does_not_hold_on_the_audits_sample_is_refused(source, tmp_path, sample_of_few):
    """Where the released columns tell more than all of them did, the lower end is above the bound."""
    proposal = propose(opened(source), BreachAwareSelector(**QUICK), MEMORY)
    with (
        patch.object(breach, "estimate", lambda *_: 12.5),
        pytest.raises(
            AuditFailedError,
            match=r"breach-bound does not hold: promised max_breach_increase = 0, found 12\.5, estimated on the",
        ),
    ):
        publish(proposal, tmp_path / "out.csv", memory=MEMORY)


def naively_tells(column, wanted):
    """Follow the definition, value by value."""
    n_rows = len(column)
    groups = {value: Counter(w for c, w in zip(column, wanted, strict=True) if c == value) for value in set(column)}
    n_wanted = len(set(wanted))
    if all(len(group) == 1 for group in groups.values()) and len(groups) == n_wanted and n_wanted <= 0.9 * n_rows:
        return {True}
    if 3 * len(groups) > n_rows:
        return {False}
    counts = Counter(wanted)
    answers = set()
    for common in [value for value, n in counts.items() if n == max(counts.values())]:
        right = sum(max(g.values()) if g.total() > 1 else g[common] for g in groups.values())
        wrong = n_rows - right
        answers.add(100 * wrong <= n_rows and 10 * wrong <= n_rows - counts[common])
    return answers


@st.composite
def nearly_told(draw):
    """Rows of two columns of which the first tells the second, but for some rows."""
    n_values, n_rows = draw(st.integers(1, 8)), draw(st.integers(1, 150))
    meaning = draw(st.lists(st.integers(0, 2), min_size=n_values, max_size=n_values))
    column = draw(st.lists(st.integers(0, n_values - 1), min_size=n_rows, max_size=n_rows))
    wanted = [meaning[value] for value in column]
    for row in draw(st.lists(st.integers(0, n_rows - 1), max_size=3)):
        wanted[row] = draw(st.integers(0, 2))
    return column, wanted


@given(nearly_told())
def test_pairs_of_values_show_what_rows_show(columns):
    """On both sides; the column that is most frequent may be any of several."""
    column, wanted = ([sorted(set(own)).index(value) for value in own] for own in columns)
    expected = naively_tells(column, wanted)
    pairs = Counter(zip(column, wanted, strict=True))
    codes = np.array([*pairs]).T

    assert pairs_give_away(codes[0], codes[1], np.array([*pairs.values()])) in expected
    assert gives_away(np.array(column), np.array(wanted)) in expected
    assert breach.determines(np.array(column, np.int32), np.array(wanted, np.int32)) in expected


@pytest.mark.slow
@examples(15)
@given(nearly_told(), st.sampled_from(["few", "by DuckDB", "long"]), st.booleans())
def test_the_audit_finds_telling_columns_in_blocks(columns, way, has_missing):
    """However many values there are."""
    column, wanted = columns
    cells = [None if has_missing and value == 0 else float(value) for value in column]
    with (
        TemporaryDirectory() as folder,
        small_blocks(),
        patch.object(breach, "_SHARE_OF_PAIRS", 16 if way == "few" else 10**12),
    ):
        path = Path(folder) / "in.parquet"
        pyarrow.parquet.write_table(pa.table({"c": pa.array(cells), "w": pa.array([f"w{w}" for w in wanted])}), path)
        large = open_large(path, memory=3 * 4000 if way == "long" else MEMORY.n_bytes)
        found = determining_columns(large, ["c"], "w", MEMORY.n_bytes)

    assert (found == ["c"]) in naively_tells(column, wanted)


@pytest.mark.slow
def test_on_the_command_line(source, tmp_path, sample_of_few):
    """Release and audit with --memory."""
    output = tmp_path / "out.parquet"
    roles = [
        "--identifiers=id",
        "--quasi-identifiers=age,sex,town",
        "--sensitive=illness",
        "--target=ill",
        "--other=note",
    ]
    runner = CliRunner()
    released = runner.invoke(
        sfumato, ["release", str(source), "-m", "breach-aware", "--memory", "600MB", "-o", str(output), *roles]
    )
    assert released.exit_code == 0, released.output
    assert f"sample of {N_SAMPLED} of {N_ROWS} rows" in released.output
    audit = ["audit", str(output), "--manifest", f"{output}.manifest.json", "--original", str(source)]
    for more in (["--memory", "600MB"], []):
        audited = runner.invoke(sfumato, [*audit, *roles, *more])
        assert audited.exit_code == 8, audited.output
        assert "confirmed except: figures — " in audited.output
        accepted = runner.invoke(sfumato, [*audit, *roles, *more, "--accept", "figures"])
        assert accepted.exit_code == 0, accepted.output


@pytest.mark.slow
def test_an_original_without_roles_is_audited_too(published, source):
    original = open_original(source, ReadOptions(), MEMORY.n_bytes)
    report = audit_published(published.table_path, published.manifest_path, memory=MEMORY, original=original)

    assert report.passed, report.failures
    assert report.verdict == "confirmed except"
    assert {one.name for one in report.unchecked} == {"roles", "figures"}
    said = "breach-bound: whether the columns compared with are all quasi-identifiers of the original, with their kinds"
    assert said in [one.message for one in report.unchecked if one.name == "roles"]
