"""Honest releases of tables with odd spellings are confirmed by our own audit, whatever mechanism, cells and format."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from odd_spellings import case, outcome
from sfumato.cli.main import run
from sfumato.evaluation.encoding import cells_of_release
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import propose_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.generalized import read_cell
from sfumato.table.io.read import read_table
from sizes import IS_FULL

RUNS = 5000 if IS_FULL else 100
PAGE = Path(__file__).parents[1] / "docs" / "guide" / "reading-a-release.md"
BATCHES = 10 if IS_FULL else 5
"""Tests among which the runs are shared out."""


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_honest_release_of_odd_spellings_is_refused(tmp_path, batch):
    """Whatever is written is confirmed, at once and read again; whatever is not leaves nothing behind."""
    wrong, n_confirmed = [], 0
    for number in range(batch, RUNS, BATCHES):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = case(number)
        what, words = outcome(made, folder)
        n_confirmed += what == "confirmed"
        wrong += [f"{what}: {made}: {words}"] if words else []

    assert not wrong, "\n".join(wrong)
    assert n_confirmed > RUNS / BATCHES / 2  # so that the runs say something


def schooling(tmp_path):
    """Write 400 people of whom one has a level of education that nobody else has."""
    rng = np.random.default_rng(33)
    levels = ["9th", "HS-grad", "Bachelors", "Masters", "Doctorate"]
    rows = [
        f"{age},{levels[level]},{'mf'[sex]},{'low' if (age + 9 * level) % 40 < 25 else 'high'}"
        for age, level, sex in rng.integers([18, 0, 0], [80, 5, 2], size=(400, 3)).tolist()
    ]
    rows[7] = "33,Preschool,f,low"
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age,education,sex,income", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("asked", [["-m", "mdav"], ["-m", "mondrian", "--cells", "values"]], ids=["mdav", "values"])
def test_an_ordered_column_with_one_rare_level_is_released_and_the_level_named_nowhere(tmp_path, asked):
    """Typical values of a recognised order pass the audit, and manifest and table are silent about the rare level."""
    path, out = schooling(tmp_path), tmp_path / "released.csv"
    given = ["release", str(path), *asked, "-k", "5", "--target", "income", "--quick", "-o", str(out)]

    assert run([*given, "--quasi-identifiers", "age,education,sex"]) == 0
    manifest = (tmp_path / "released.csv.manifest.json").read_text(encoding="utf-8")
    assert "HS-grad" in out.read_text(encoding="utf-8")
    assert '"ordered"' in manifest
    assert "Preschool" not in out.read_text(encoding="utf-8") + manifest
    assert run(["audit", str(out), "--manifest", f"{out}.manifest.json", "--original", str(path)]) in (0, 8)


def odd_codes(tmp_path):
    """Write 60 people with numbers in several spellings, one of them declared numeric."""
    rows = [f"{['7', '07', '+7', '1e1'][i % 4]},{i % 3},{'uvw'[i % 3]},{'ny'[i % 2]}" for i in range(60)]
    path = tmp_path / "codes.csv"
    path.write_text("\n".join(["code,group,ill,y", *rows]) + "\n", encoding="utf-8")
    table = read_table(path)
    roles = {"code": Role.QUASI_IDENTIFIER, "group": Role.QUASI_IDENTIFIER, "ill": Role.SENSITIVE, "y": Role.TARGET}
    columns = [Column(n, r, Kind.NUMERIC if n in ("code", "group") else Kind.CATEGORICAL) for n, r in roles.items()]
    return table.with_schema(Schema.of(columns))


@pytest.mark.parametrize(
    ("mechanism", "cells"),
    [
        ("anatomy", "ranges"),
        ("slicing", "ranges"),
        ("random-flipping", "ranges"),
        ("mondrian", "draws"),
        ("mdav", "draws"),
    ],
)
def test_rows_that_were_moved_or_flipped_keep_the_spelling_of_their_original(tmp_path, mechanism, cells):
    """Odd spellings of an original of texts are no refusal where rows are dealt anew: its own texts are compared."""
    table = odd_codes(tmp_path)
    settings = {"k": 3} if mechanism in ("mondrian", "mdav") else {}
    made = build_mechanism(mechanism, settings).with_cells(cells, 1.0 if cells == "draws" else None)
    done = publish(propose_release(table, made), tmp_path / "released.csv", original=table)

    assert audit_published(done.table_path, done.manifest_path, original=table, check_roles=True).passed


@pytest.mark.parametrize("moved", ["7", "007"])
def test_a_spelling_that_the_original_does_not_have_is_still_refused(tmp_path, moved):
    """The texts of moved rows are the original's, not merely of the same size."""
    table = odd_codes(tmp_path)
    done = publish(propose_release(table, build_mechanism("anatomy", {})), tmp_path / "released.csv", original=table)
    content = done.table_path.read_text(encoding="utf-8")
    done.table_path.write_text(content.replace("\n07,", f"\n{moved},", 1), encoding="utf-8")

    assert not audit_published(done.table_path, done.manifest_path, original=table).passed


@pytest.mark.parametrize("mechanism", ["local-recoding", "gain-recoding", "mondrian"])
def test_a_raw_value_that_looks_like_a_set_is_escaped_where_sets_occur(tmp_path, mechanism):
    """A value {a|b} is told from the set of a and b in every column that holds sets, by its cell and by our readers."""
    words = ["a", "b", "{a|b}", "c", "d", "e"]
    frequent = [*words[:2], *words[2:3] * 9, *words[3:]] * 4
    rows = [f'"{word}",{i % 2},{"y" if word in "ab" else "n"}' for i, word in enumerate(frequent)]
    path = tmp_path / "words.csv"
    path.write_text("\n".join(["word,n,y", *rows]) + "\n", encoding="utf-8")
    table = read_table(path).with_schema({"word": "quasi-identifier", "n": "quasi-identifier", "y": "target"})
    settings = {"k": 6} | ({"max_suppressed_fraction": 0} if mechanism == "gain-recoding" else {})
    done = publish(propose_release(table, build_mechanism(mechanism, settings)), tmp_path / "r.csv", original=table)
    cells, _ = cells_of_release(done.release.manifest.to_dict(), done.release.table)
    labels = next(e.get("labels", {}) for e in done.release.manifest.recodings if e["name"] == "word")
    texts = done.release.table["word"].values.to_pylist()

    assert any(text.startswith("{") for text in texts)  # sets occur
    assert r"\{a\|b\}" in texts
    assert labels.get("{a|b}", ["a", "b"]) == ["a", "b"]
    read = {cell.values for cell in map(read_cell, cells["word"].values.to_pylist())}
    assert ("{a|b}",) in read
    assert all(set(values) <= set(words) for values in read)
    reader = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    scope = {}
    exec(compile(reader, str(PAGE), "exec"), scope)
    shares = scope["read_release"](str(done.table_path))
    assert {name for name in shares if name.startswith("word=")} <= {f"word={word}" for word in words}
    is_raw = pd.read_csv(done.table_path, dtype=str)["word"] == r"\{a\|b\}"
    assert (shares["word={a|b}"][is_raw] == 1).all()
