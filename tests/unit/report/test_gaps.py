"""What no guarantee is about is said alike on the command line, on the page and in the report."""

from collections import Counter
from html import unescape

import pyarrow as pa
import pytest

from sfumato.cli.speaking.summary import show_release
from sfumato.guarantees import LDiversity
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import registered_mechanisms
from sfumato.publishing.propose import make_release
from sfumato.report.not_covered import MOST_NAMED, not_promised
from sfumato.report.summarize import summarize
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.roles import with_confirmed
from unit.report.releases import made, page_of, summary_of

N_ROWS = 40


def table_with(others, *, role=Role.OTHER):
    """Make a table of two quasi-identifiers and further columns, given by how many of their values are unique."""
    cells = {"age": [str(row % 4) for row in range(N_ROWS)], "sex": ["fm"[row % 2] for row in range(N_ROWS)]}
    for name, n_unique in others.items():
        cells[name] = [f"secret {row}" if row < n_unique else "same" for row in range(N_ROWS)]
    roles = {name: Role.QUASI_IDENTIFIER if name in ("age", "sex") else role for name in cells}
    return Table.from_arrow(pa.table(cells), Schema.of(Column(name, role) for name, role in roles.items()))


def naive_shares(release):
    """Share of values that occur once, by column that is neither target nor quasi-identifier."""
    plain = release.table.to_arrow()
    columns = {entry["name"]: entry["role"] for entry in release.manifest.output["columns"]}
    shares = {}
    for name, role in columns.items():
        if role in ("sensitive", "other"):
            counts = Counter(plain[name].to_pylist())
            shares[name] = sum(count == 1 for count in counts.values()) / plain.num_rows
    return shares


def uncovered(sentences):
    return [sentence for sentence in sentences if "no guarantee covers" in sentence]


@pytest.mark.parametrize("role", [Role.OTHER, Role.SENSITIVE])
def test_columns_that_are_released_as_they_are_are_named_with_their_unique_values(role):
    release = make_release(
        with_confirmed(table_with({"few": 3, "ref": N_ROWS, "none": 0}, role=role), ["few", "ref"]), Mondrian(k=5)
    )

    shares = naive_shares(release)
    assert list(shares) == ["few", "ref", "none"]
    assert uncovered(not_promised(release)) == [
        f"published unchanged; no guarantee covers it: '{name}' ({words})"
        for name, words in (
            ("ref", "in 100 % of rows its value occurs only once"),
            ("few", f"in {100 * shares['few']:.1f} % of rows its value occurs only once"),
            ("none", "no value occurs only once"),
        )
    ]


def test_a_sensitive_column_under_a_guarantee_is_not_among_them():
    table = table_with({"ill": 0, "ref": 7}, role=Role.SENSITIVE)
    cells = table.to_arrow().set_column(2, "ill", pa.array(["xyz"[row % 3] for row in range(N_ROWS)]))
    table = with_confirmed(Table.from_arrow(cells, table.schema), ["ref"])

    said = uncovered(not_promised(make_release(table, Mondrian(k=5, privacy=[LDiversity(2, sensitive="ill")]))))

    assert len(said) == 1
    assert "'ref'" in said[0]


def test_very_many_columns_are_counted_and_the_most_telling_ones_named():
    others = {f"c{place}": place for place in range(MOST_NAMED + 5)}
    said = uncovered(not_promised(make_release(with_confirmed(table_with(others), others), Mondrian(k=5))))

    assert len(said) == MOST_NAMED + 1
    assert f"'c{MOST_NAMED + 4}'" in said[0]
    assert said[-1] == "published unchanged; no guarantee covers them: 5 further columns"


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", list(registered_mechanisms()))
def test_command_summary_and_report_say_the_same(mechanism, capsys):
    release, summary = made(mechanism), summary_of(mechanism)
    show_release(release)
    told = capsys.readouterr().err

    assert summary["not_promised"] == not_promised(release)
    pages = [unescape(page_of(mechanism, external=external)) for external in (False, True)]
    for sentence in summary["not_promised"]:
        assert sentence in told
        assert all(sentence[1:] in page for page in pages)


@pytest.mark.slow
def test_a_release_of_noise_says_what_is_taken_as_known_and_has_no_column_as_it_is():
    said = summary_of("laplace-dp")["not_promised"]

    assert len(said) <= 2
    assert said[0].startswith("not promised: anything about the number of rows, the class of each")
    assert all(line.startswith("read as 0/1 without looking at the rows") for line in said[1:])
    assert 'id="left-open"' in page_of("laplace-dp")


@pytest.mark.slow
def test_others_are_told_what_the_release_itself_tells():
    """The sentences need neither the original nor what only the data holder has."""
    release = make_release(with_confirmed(table_with({"ref": N_ROWS}), ["ref"]), Mondrian(k=5))

    assert summarize(release)["not_promised"] == not_promised(release)
    assert not any("secret" in sentence for sentence in not_promised(release))


@pytest.mark.parametrize("mechanism", ["error-risk-tree", "breach-aware", "greedy-containment"])
@pytest.mark.parametrize("evidence", [{}, {"risk": {}}, {"risk": {"unique_pattern_fraction": "x"}}])
def test_evidence_that_is_not_there_is_not_quoted(mechanism, evidence):
    release = made(mechanism)
    less = not_promised(release.with_manifest(evidence=evidence))

    assert not any("smallest equivalence class" in sentence or "pattern" in sentence for sentence in less)
    assert uncovered(less) == uncovered(not_promised(release))


def test_names_stay_on_one_line():
    release = make_release(table_with({"line\nend": 2}), Mondrian(k=5))

    assert "'line end'" in uncovered(not_promised(release))[0]
