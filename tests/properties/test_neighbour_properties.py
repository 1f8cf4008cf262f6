"""Nothing but the noisy outputs of differential privacy depends on what one row holds: files, words and refusals.

Neighbours are tables that differ in one row, whose class stays. The noisy outputs (which features were chosen, and the
noisy counts) are replaced by fixed ones; then everything that anybody sees must be equal to the byte.
"""

import csv
import hashlib
import io
import json
from datetime import date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.cli.main import run
from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.baselines import noisy_counts
from sfumato.mechanisms.baselines.features import public_features, public_options
from sfumato.mechanisms.baselines.noisy_counts import Cells, ExponentialReleaser, LaplaceReleaser
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binarize import TRUE_TEXTS, BinarizePlan
from sfumato.table.io.read import ReadOptions, read_table
from sizes import examples

pytest.importorskip("opendp")

NAMES = ("name", "age", "sex", "smokes", "flag", "note", "y")
FEATURES = NAMES[1:5]
N_ROWS = 12
RULES = {"age": {"cuts": [40, 60]}, "sex": {"one_of": ["f"], "name": "female"}, "smokes": "as-is"}

cell_texts = st.one_of(
    st.sampled_from(
        ["", " ", "NA", "?", "0", "1", "1.0", "2", "01", "yes", "YES", "no", "true", "f", "m", "F", "abc", "ä"]
    ),
    st.sampled_from(["40", "41", "61", "-5", "1e400", "nan", "inf", "2024-01-31", "2024-01-31 00:00:00", "31.01.2024"]),
    st.sampled_from(["a,b", 'a"b', "two\nlines", "'", "1;2"]),
)
whole_rows = st.lists(cell_texts, min_size=len(NAMES) - 1, max_size=len(NAMES) - 1)


def base_row(i):
    return [f"p{i}", str(30 + 4 * i), "fm"[i % 2], ("yes", "no")[i % 3 > 0], str(i % 2), "a", "ab"[i % 2]]


@st.composite
def neighbours(draw):
    """Two tables of texts that differ in one row, whose class stays; others may hold anything too."""
    rows = [base_row(i) for i in range(N_ROWS)]
    for odd in draw(st.lists(st.integers(0, N_ROWS - 1), max_size=2)):
        rows[odd] = [*draw(whole_rows), rows[odd][-1]]
    who = draw(st.integers(0, N_ROWS - 1))
    other = [list(row) for row in rows]
    other[who] = [*draw(whole_rows), rows[who][-1]]
    return rows, other, who


def as_csv(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([NAMES, *rows])
    return text.getvalue()


def fixed_outputs(patch):
    """Replace what is noisy by outputs that no table has a part in."""
    patch.setattr(noisy_counts, "noisy_top", lambda scores, n, scale: np.arange(n)[::-1])
    patch.setattr(noisy_counts, "exponential_choices", lambda scores, n, scale: np.arange(n)[::-1])

    def cells(own, scale, threshold):
        return Cells(np.array([0, 3]), np.array([threshold, threshold + 2]), own.n_features, own.n_classes)

    patch.setattr(noisy_counts, "noisy_cells", cells)


def seen(arguments, files):
    """Run a command in a folder with these files; everything that it writes and says."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        fixed_outputs(patch)
        out, err = io.StringIO(), io.StringIO()
        patch.setattr("sys.stdout", out)
        patch.setattr("sys.stderr", err)
        for name, content in files.items():
            Path(name).write_text(content, encoding="utf-8")
        code = run(arguments)
        written = {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.name not in files}
    return code, out.getvalue(), err.getvalue(), written


def project_of(data, *, mechanism, n_features, missing_rows="keep", rules=RULES):
    digest = hashlib.sha256(data.encode()).hexdigest()
    plan = "".join(f"{name} = {json.dumps(rule).replace(':', ' =')}\n" for name, rule in rules.items())
    return (
        f'[data]\npath = "in.csv"\nsha256 = "{digest}"\ndelimiter = ","\nmissing_rows = "{missing_rows}"\n'
        '[columns]\nname = { role = "identifier" }\n'
        'age = { role = "quasi-identifier", kind = "numeric" }\n'
        'sex = { role = "quasi-identifier", kind = "ordered", domain = ["f", "m"] }\n'
        'smokes = { role = "quasi-identifier" }\nflag = { role = "quasi-identifier", kind = "numeric" }\n'
        'note = { role = "sensitive", kind = "numeric" }\ny = { role = "target" }\n'
        f"[binarize.columns]\n{plan}"
        f'[release]\nmechanism = "{mechanism}"\noutput = "out.csv"\n[release.parameters]\nn_features = {n_features}\n'
    )


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["laplace-dp", "exponential-dp"])
@examples(15)
@given(pair=neighbours(), n_features=st.integers(0, 7), drop=st.booleans(), dry=st.booleans())
def test_a_project_gives_equal_files_words_and_refusals(mechanism, pair, n_features, drop, dry):
    found = []
    for rows in pair[:2]:
        data = as_csv(rows)
        rows_kept = "drop" if drop else "keep"
        project = project_of(data, mechanism=mechanism, n_features=n_features, missing_rows=rows_kept)
        command = ["release", "--json", *(["--dry-run"] if dry else [])]
        found.append(seen(command, {"in.csv": data, "sfumato.toml": project}))

    assert found[0] == found[1]
    assert found[0][0] == (2 if drop or not 1 <= n_features <= 6 else 0)
    assert set(found[0][3]) == (set() if dry or found[0][0] else {"out.csv", "out.csv.manifest.json"})


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["laplace-dp", "exponential-dp"])
@examples(15)
@given(
    pair=neighbours(),
    n_features=st.integers(1, 5),
    more=st.sampled_from([[], ["--drop-incomplete"], ["--missing", "abc"], ["-p", "calibration=paper"], ["-k", "3"]]),
)
def test_flags_give_equal_files_words_and_refusals(mechanism, pair, n_features, more):
    roles = ["--target", "y", "--quasi-identifiers", ",".join(FEATURES), "--delimiter", ","]
    command = ["release", "in.csv", "-m", mechanism, "-p", f"n_features={n_features}", *roles, *more, "-o", "out.csv"]

    found = [seen(command, {"in.csv": as_csv(rows)}) for rows in pair[:2]]

    assert found[0] == found[1]
    is_refused = n_features > len(FEATURES) or more[:1] in (["--drop-incomplete"], ["-k"])
    assert found[0][0] == (2 if is_refused else 0)


@examples(10)
@given(pair=neighbours(), roles=st.sampled_from([[], ["--target", "y"], ["--quasi-identifiers", "age"]]))
def test_roles_are_not_guessed_from_the_rows(pair, roles):
    command = ["release", "in.csv", "-m", "laplace-dp", *roles, "-o", "out.csv"]

    found = [seen(command, {"in.csv": as_csv(rows)}) for rows in pair[:2]]

    assert found[0] == found[1]
    assert found[0][0] == 2
    assert "guesses would look at the rows" in found[0][2]


def test_nothing_is_read_before_a_public_refusal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    roles = ["--target", "y", "--quasi-identifiers", "age"]

    code = run(["release", "absent.csv", "-m", "laplace-dp", *roles, "--drop-incomplete", "-o", "out.csv"])

    assert code == 2
    assert "kept for differential privacy" in capsys.readouterr().err


@pytest.mark.slow
def test_who_knows_all_rows_but_one_cannot_tell_the_candidates_apart(capfd):
    """``init`` names the data by its SHA-256 in the project file, whose own SHA-256 told the candidates apart."""
    found = []
    for candidate in range(8):
        rows = [base_row(i) for i in range(N_ROWS)]
        rows[5][1:5] = [str(30 + 5 * candidate), "fm"[candidate % 2], "yes", str(candidate // 4)]
        data = as_csv(rows)
        roles = [
            "--target",
            "y",
            "--quasi-identifiers",
            "age,sex,smokes,flag",
            "--identifiers",
            "name",
            "--other",
            "note",
        ]
        with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            Path("in.csv").write_text(data)
            assert run(["init", "in.csv", *roles]) == 0
            project = Path("sfumato.toml").read_text()
        assert hashlib.sha256(data.encode()).hexdigest() in project
        project = project.replace('"auto"', '"laplace-dp"').replace("k = 5\n", "n_features = 2\n")
        found.append(seen(["release", "--json", "-o", "out.csv"], {"in.csv": data, "sfumato.toml": project})[3])

    assert set(found[0]) == {"out.csv", "out.csv.manifest.json"}
    assert all(files == found[0] for files in found)


@pytest.mark.slow
@examples(25)
@given(pair=neighbours(), data=st.data())
def test_one_row_changes_no_feature_of_another_row_whatever_the_format(pair, data):
    """What the sensitivities rest on; with typed cells, where one text makes a whole column text."""
    typed = st.sampled_from([1, 0, 1.0, 0.5, 41, True, False, date(2024, 1, 31), datetime(2024, 1, 31, 10, 30), None])
    column = data.draw(st.sampled_from([1, 0.5, True, date(2024, 1, 31), datetime(2024, 1, 31)]))
    rows, other, who = pair
    for own in (rows, other):
        for i, row in enumerate(own):
            if i != who:
                row[1:5] = [column] * 4
    other[who][1:5] = [data.draw(typed) for _ in range(4)]
    texts = [str(column), "1", "2024-01-31", "true"]
    plan = {
        "columns": {"age": {"cuts": [0, 40]}, "sex": {"one_of": texts}, "smokes": "as-is", "flag": {"one_of": ["1.0"]}}
    }

    for write in (in_workbook, in_frame):
        binaries = [public_features(write(own), plan)[0] for own in (rows, other)]
        assert binaries[0].features == binaries[1].features
        changed = np.flatnonzero((binaries[0].matrix != binaries[1].matrix).toarray().any(axis=1))
        assert set(changed.tolist()) <= {who}


def described(read):
    roles = {name: Role.QUASI_IDENTIFIER if name in FEATURES else Role.OTHER for name in NAMES} | {"y": Role.TARGET}
    return read.with_schema(read.schema.with_roles(roles))


def in_workbook(rows):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "in.xlsx"
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet()
            day, moment = (book.add_format({"num_format": text}) for text in ("yyyy-mm-dd", "yyyy-mm-dd hh:mm"))
            for i, row in enumerate([NAMES, *rows]):
                for j, cell in enumerate(row):
                    if isinstance(cell, datetime):
                        sheet.write_datetime(i, j, cell, moment)
                    elif isinstance(cell, date):
                        sheet.write_datetime(i, j, datetime(cell.year, cell.month, cell.day), day)
                    elif isinstance(cell, str):
                        sheet.write_string(i, j, cell)
                    else:
                        sheet.write(i, j, cell)
        return described(read_table(path, options=public_options(path, ReadOptions())))


def in_frame(rows):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {name: pandas.Series([row[j] for row in rows], dtype=object) for j, name in enumerate(NAMES)}
    )
    return described(read_table(frame, options=public_options(frame, ReadOptions())))


@pytest.mark.slow
@examples(20)
@given(pair=neighbours(), mechanism=st.sampled_from(["laplace-dp", ExponentialReleaser(n_features=2)]))
def test_a_frame_is_released_without_a_guess(pair, mechanism):
    """In Python too roles that are not given would be guessed from the rows."""
    roles = dict.fromkeys(FEATURES, "quasi-identifier")
    more = {"n_features": 2} if isinstance(mechanism, str) else {}
    frames = [pa.table({name: [row[j] for row in rows] for j, name in enumerate(NAMES)}) for rows in pair[:2]]
    found = []
    with pytest.MonkeyPatch.context() as patch:
        fixed_outputs(patch)
        for frame in frames:
            made = sfumato.release(frame, mechanism, target="y", roles=roles, **more)
            with TemporaryDirectory() as folder:
                done = sfumato.publish(made, Path(folder) / "out.csv", original=frame)
                written = done.table_path.read_bytes(), done.manifest_path.read_bytes()
            found.append((written, repr(made), made._repr_html_(), made.guesses))
            with pytest.raises(InvalidParameterError, match="guesses would look at the rows"):
                sfumato.release(frame, mechanism, target="y", **more)

    assert found[0] == found[1]
    assert found[0][3] == ()


@pytest.mark.parametrize("releaser", [LaplaceReleaser, ExponentialReleaser])
@pytest.mark.parametrize("has_missing", [True, False])
def test_rows_that_were_left_out_for_what_they_lack_are_refused(tmp_path, releaser, has_missing):
    """Whether or not there was such a row: the refusal must not tell."""
    rows = [base_row(i) for i in range(N_ROWS)]
    rows[3][1] = "" if has_missing else rows[3][1]
    (tmp_path / "in.csv").write_text(as_csv(rows))
    table = described(read_table(tmp_path / "in.csv", options=ReadOptions(complete_rows_only=True)))

    with pytest.raises(InvalidParameterError) as caught:
        sfumato.release(table, releaser(n_features=2, binarize={"columns": RULES}))

    assert caught.value.name == "incomplete rows"
    assert "their number would disclose something about people" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [*((text, True) for text in TRUE_TEXTS), *((t, False) for t in ("0", "no", "2", "NA", "", "1x"))],
)
def test_a_column_taken_as_it_is_follows_one_public_rule(text, is_one):
    cells = pa.table({"x": [text, "0"], "y": ["a", "b"]})
    table = sfumato.read_table(cells).with_schema(Schema.of([Column("x"), Column("y", Role.TARGET)]))

    binary, plan = public_features(table, None)

    assert binary.matrix.toarray()[:, 0].tolist() == [int(is_one), 0]
    assert isinstance(plan, BinarizePlan)


def test_a_text_in_a_column_of_numbers_is_in_no_band():
    cells = pa.table({"x": ["30", "fifty", "50", ""], "y": ["a", "b", "a", "b"]})
    table = sfumato.read_table(cells).with_schema(Schema.of([Column("x"), Column("y", Role.TARGET)]))

    binary, _ = public_features(table, {"columns": {"x": {"cuts": [40]}}})

    assert binary.feature_names == ("x<=40", "x>40")
    assert binary.matrix.toarray().tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]


def test_kinds_and_orders_that_were_declared_refuse_no_cell(tmp_path):
    """A project may declare a column numeric or ordered; under differential privacy that is no reason to refuse."""
    data = as_csv([base_row(i) for i in range(N_ROWS)]).replace('"38"', '"thirty-eight"').replace('"m"', '"x"')
    (tmp_path / "in.csv").write_text(data)
    (tmp_path / "sfumato.toml").write_text(project_of(data, mechanism="laplace-dp", n_features=2))

    done = sfumato.publish_project(tmp_path / "sfumato.toml")

    assert done.audit.passed
    assert all(Kind(column["kind"]) is Kind.CATEGORICAL for column in done.release.manifest.output["columns"])
    code = run(
        [
            "audit",
            str(done.table_path),
            "--manifest",
            str(done.manifest_path),
            "--project",
            str(tmp_path / "sfumato.toml"),
        ]
    )
    assert code in (0, 8)


@pytest.mark.slow
@examples(6)
@given(pair=neighbours())
def test_the_report_for_others_is_equal_too(pair):
    roles = ["--target", "y", "--quasi-identifiers", ",".join(FEATURES)]
    release = [
        "release",
        "in.csv",
        "-m",
        "laplace-dp",
        "-p",
        "n_features=2",
        *roles,
        "--delimiter",
        ",",
        "-o",
        "out.csv",
    ]
    report = [
        "report",
        "out.csv",
        "--original",
        "in.csv",
        "--delimiter",
        ",",
        "--external",
        "--quick",
        "-o",
        "out.html",
    ]
    found = []
    for rows in pair[:2]:
        data = as_csv(rows)
        made = seen(release, {"in.csv": data})[3]
        files = {"in.csv": data} | {name: content.decode() for name, content in made.items()}
        found.append(seen(report, files))

    assert found[0] == found[1]
    assert set(found[0][3]) == {"out.html"}
