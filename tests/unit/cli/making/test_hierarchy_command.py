"""``sfumato hierarchy``, and releases over hierarchies, as a user types them."""

import json

import pytest

from sfumato.cli.main import run
from sfumato.mechanisms.hierarchies.files import read_hierarchy

STAYS = """age,postcode,day,size,job,ill
17,02139,2024-01-05,small,nurse,yes
25,02140,2024-02-05,medium,cook,no
39,02141,2023-02-05,large,doctor,yes
64,94103,2023-03-05,small,waiter,no
90,94104,2022-12-24,?,driver,no
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stays.csv").write_text(STAYS)
    return tmp_path


def hierarchy(capsys, *arguments):
    code = run(["hierarchy", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.parametrize(
    ("column", "options", "first"),
    [
        ("age", ["-m", "width", "--width", "10"], "17;[0, 19];[0, 39];[0, 79];*"),
        ("age", ["-m", "width", "--width", "10", "--start", "7", "--merge", "5"], "17;[17, 26];[7, 56];*"),
        ("age", ["-m", "cuts", "--cuts", "0,18,65", "--merge", "2"], "17;[0, 17];[0, 64];*"),
        ("age", ["-m", "quantile", "--intervals", "2"], "17;< 40;*"),
        ("postcode", ["-m", "mask", "--step", "2"], "02139;021**;*"),
        ("day", ["-m", "dates"], "2022-12-24;2022-Q4;*"),
        ("day", [], "2022-12-24;2022-Q4;*"),
        ("size", ["-m", "groups", "--order", "small,medium,large"], "small;[small, medium];*"),
        ("size", ["-m", "groups", "--order", "small,medium,large", "--sizes", "1,2"], "small;[small, medium];*"),
        ("job", ["--target", "ill"], "cook;{cook|driver|waiter};{cook|driver|waiter};*"),
        ("job", [], "cook;{cook|doctor};{cook|doctor|waiter};*"),
    ],
)
def test_built_hierarchies_cover_the_column(folder, capsys, column, options, first):
    code, out, err = hierarchy(capsys, "build", "stays.csv", "--column", column, *options, "-o", "h.csv")

    assert code == 0, err
    assert out == ""
    assert (folder / "h.csv").read_text().splitlines()[0] == first
    assert hierarchy(capsys, "check", "h.csv", "--data", "stays.csv", "--column", column)[0] == 0


def test_output_may_be_standard_output(folder, capsys):
    code, out, _ = hierarchy(capsys, "build", "stays.csv", "--column", "ill", "-o", "-")

    assert code == 0
    assert out == "no;*\nyes;*\n"


def test_show_lists_levels_and_labels(folder, capsys):
    (folder / "h.csv").write_text("nurse;health;*\ncook;kitchen;*\ndoctor;health;*\n")

    code, out, _ = hierarchy(capsys, "show", "h.csv")

    assert code == 0
    assert out.splitlines() == [
        "3 values, 3 levels",
        "level 0: 3 labels, the largest joins 33.3% of the values",
        "  nurse  cook  doctor",
        "level 1: 2 labels, the largest joins 66.7% of the values",
        "  health  kitchen",
        "level 2: 1 label, the largest joins 100.0% of the values",
        "  *",
        "for instance: nurse → health → *",
    ]


def test_the_hint_about_an_encoding_can_be_followed(folder, capsys):
    (folder / "h.csv").write_bytes("café;place;*\nbar;place;*\n".encode("latin-1"))

    code, _, err = hierarchy(capsys, "show", "h.csv")
    assert code == 3
    assert "--encoding" in err
    code, out, _ = hierarchy(capsys, "show", "h.csv", "--encoding", "latin-1")
    assert code == 0
    assert "for instance: café → place → *" in out


def test_check_says_what_will_happen(folder, capsys):
    (folder / "h.csv").write_text("small;not large\nmedium;not large\nlarge;large\nhuge;large\n")

    code, out, _ = hierarchy(capsys, "check", "h.csv", "--data", "stays.csv", "--column", "size")

    assert code == 0
    assert out.splitlines() == [
        "ok   2 levels, nested; covers all 4 values of the column",
        "note 1 row without a value: missing stays separate below the highest level",
        "note 1 value of the hierarchy not in the column",
        "note the highest level has 2 labels; a level of * above it is added when it is used",
    ]


def test_check_lists_every_fault(folder, capsys):
    (folder / "h.csv").write_text("17;a;*\n25;a;*\n17;a;*\n39;;*\n64;a;x\n")

    code, out, err = hierarchy(capsys, "check", "h.csv", "--data", "stays.csv", "--column", "age")

    assert code == 3
    places = [line.split(": ")[0] for line in out.splitlines()]
    assert places == ["FAIL h.csv, line 4", "FAIL h.csv, line 3", "FAIL h.csv, line 5"]
    assert "is not a hierarchy" in err


def test_check_counts_what_is_not_covered_and_shows_no_value(folder, capsys):
    (folder / "h.csv").write_text("17;a\n25;a\n")

    code, out, err = hierarchy(capsys, "check", "h.csv", "--data", "stays.csv", "--column", "age")

    assert code == 3
    assert "column 'age': its hierarchy does not cover 3 of 5 values (3 of 5 rows)" in err
    assert "Hint:" in err
    assert not any(value in out + err for value in ("39", "64", "90"))


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--column", "job", "-m", "width", "--width", "5"], 3, "5 of 5 values are not finite numbers"),
        (["--column", "age", "-m", "width"], 2, "--width must be given with --method width"),
        (["--column", "age", "-m", "cuts"], 2, "--cuts must be given"),
        (["--column", "age", "-m", "cuts", "--cuts", "a,b"], 2, "--cuts must be numbers"),
        (["--column", "age", "-m", "width", "--width", "5", "--merge", "1.5"], 2, "--merge must be whole numbers"),
        (["--column", "job", "-m", "dates"], 3, "5 of 5 values are not dates"),
        (["--column", "size", "-m", "groups", "--order", "small,large"], 3, "does not cover 1 of 4 values"),
        (["--column", "agee"], 3, "did you mean 'age'?"),
        (["--column", "age", "--target", "illl"], 3, "did you mean 'ill'?"),
        (["--column", "age", "-m", "guess"], 2, "Invalid value for '-m'"),
    ],
)
def test_bad_input_is_refused_and_nothing_written(folder, capsys, options, code, said):
    found, _, err = hierarchy(capsys, "build", "stays.csv", *options, "-o", "h.csv")

    assert (found, said in err) == (code, True), err
    assert not (folder / "h.csv").exists()


def test_files_that_exist_are_kept_unless_forced(folder, capsys):
    build = ["build", "stays.csv", "--column", "ill", "-o", "stays.csv"]

    assert hierarchy(capsys, *build)[0] == 3
    assert (folder / "stays.csv").read_text() == STAYS
    (folder / "h.csv").write_text("old")
    assert hierarchy(capsys, *build[:-1], "h.csv", "--force")[0] == 0
    assert read_hierarchy(folder / "h.csv").values == ("no", "yes")


def test_the_data_are_never_written_over(folder, capsys):
    code, _, err = hierarchy(capsys, "build", "stays.csv", "--column", "ill", "-o", "stays.csv", "--force")

    assert code == 3
    assert "is the input" in err
    assert (folder / "stays.csv").read_text() == STAYS


def test_features_need_no_hierarchy(folder, capsys):
    (folder / "f.svm").write_text("1 1:1 3:1\n0 2:1\n")

    code, _, err = hierarchy(capsys, "build", "f.svm", "--format", "libsvm", "--column", "c", "-o", "h.csv")

    assert code == 3
    assert "need no hierarchy" in err


JOBS = "job,age,ill\n" + "".join(
    f"{job},{age},{ill}\n" for job in ("cook", "waiter", "nurse", "doctor") for age in (20, 21, 40, 41) for ill in "yn"
)
BY_PLACE = "cook;kitchen;*\nwaiter;kitchen;*\nnurse;ward;*\ndoctor;ward;*\n"
BY_SHIFT = "cook;early;*\nwaiter;late;*\nnurse;early;*\ndoctor;late;*\n"


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """Make a working folder with jobs and, in a folder within, a project that names the data and a hierarchy."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("jobs.csv", "sub/jobs.csv"):
        (tmp_path / name).write_text(JOBS)
    (tmp_path / "job.csv").write_text(BY_PLACE)
    (tmp_path / "sub" / "job.csv").write_text(BY_SHIFT)
    (tmp_path / "sub" / "age.csv").write_text("20;young;*\n21;young;*\n40;old;*\n41;old;*\n")
    (tmp_path / "sub" / "sfumato.toml").write_text(
        '[data]\npath = "jobs.csv"\n[columns]\njob = { role = "quasi-identifier" }\n'
        'age = { role = "quasi-identifier" }\nill = { role = "target" }\n[release]\nmechanism = "global-recoding"\n'
        "[release.parameters]\nk = 8\nmax_suppressed_fraction = 0\n"
        'hierarchies = { job = "job.csv", age = "age.csv" }\n'
    )
    return tmp_path


GLOBAL = [
    "release",
    "jobs.csv",
    "--target",
    "ill",
    "--quasi-identifiers",
    "job",
    "--other",
    "age",
    "-m",
    "global-recoding",
]


def released_cells(path, column):
    header, *rows = path.read_text().splitlines()
    return {row.split(",")[header.split(",").index(column)] for row in rows}


@pytest.mark.parametrize("option", [["--hierarchy", "job=job.csv"], ["-p", "hierarchies.job=job.csv"]])
def test_a_hierarchy_is_given_on_the_command_line(jobs, option):
    assert run([*GLOBAL, "-k", "16", "-p", "weights.job=2", *option, "-o", "out.csv"]) == 0

    assert released_cells(jobs / "out.csv", "job") == {"kitchen", "ward"}
    manifest = json.loads((jobs / "out.csv.manifest.json").read_text())
    assert manifest["mechanism"]["parameters"]["hierarchies"] == ["job"]


@pytest.mark.slow
def test_hierarchies_of_a_project_are_found_beside_it_and_flags_replace_single_ones(jobs):
    project = ["release", "--project", "sub/sfumato.toml", "-o", "out.csv", "--force"]

    assert run(project) == 0
    assert released_cells(jobs / "out.csv", "job") == {"early", "late"}
    assert released_cells(jobs / "out.csv", "age") == {"young", "old"}

    assert run([*project, "--hierarchy", "job=job.csv"]) == 0
    assert released_cells(jobs / "out.csv", "job") == {"kitchen", "ward"}
    assert released_cells(jobs / "out.csv", "age") == {"young", "old"}


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--hierarchy", "job.csv"], 2, "--hierarchy must be COLUMN=FILE"),
        (["--hierarchy", "=job.csv"], 2, "--hierarchy must be COLUMN=FILE"),
        (["--hierarchy", "job="], 2, "--hierarchy must be COLUMN=FILE"),
        (["-p", "hierarchies.job="], 2, "--param must be NAME=VALUE"),
        (["-p", "hierarchies.=job.csv"], 2, "--param must be NAME.ENTRY=VALUE"),
        (["-p", ".job=job.csv"], 2, "--param must be NAME.ENTRY=VALUE"),
        (["-p", 'hierarchies={job="job.csv"}'], 2, "as hierarchies.NAME=VALUE (-p hierarchies.NAME=VALUE)"),
        (["--hierarchy", "jbo=job.csv"], 3, "did you mean 'job'"),
        (["--hierarchy", "job=nowhere.csv"], 3, "nowhere.csv: does not exist"),
        (["--hierarchy", "job=job.csv", "-m", "mondrian"], 2, "gain-recoding, global-recoding, local-recoding (-m;"),
    ],
)
def test_mistakes_about_hierarchies_are_named(jobs, capsys, options, code, said):
    assert run([*GLOBAL, *options, "-o", "out.csv"]) == code

    assert said in capsys.readouterr().err
    assert not (jobs / "out.csv").exists()


@pytest.mark.slow
def test_the_order_of_a_recoded_column_is_audited_with_the_project_as_the_help_says(jobs, capsys):
    path = jobs / "sub" / "sfumato.toml"
    ordered = 'age = { role = "quasi-identifier", kind = "ordered", domain = ["20", "21", "40", "41"] }'
    path.write_text(path.read_text().replace('age = { role = "quasi-identifier" }', ordered))
    assert run(["release", "--project", "sub/sfumato.toml", "-o", "out.csv"]) == 0
    audit = ["audit", "out.csv", "--manifest", "out.csv.manifest.json"]
    capsys.readouterr()

    assert run([*audit, "--project", "sub/sfumato.toml", "--accept", "figures"]) == 0
    assert "NOT CHECKED (order)" not in capsys.readouterr().out
    assert run([*audit, "--original", "jobs.csv"]) == 8
    assert "NOT CHECKED (order): whether 'age'" in capsys.readouterr().out
    run(["audit", "--help-all"])
    said = " ".join(capsys.readouterr().out.split())
    assert "joined in its own order, give --project, which declares that order" in said


@pytest.mark.slow
def test_a_release_says_which_ready_hierarchy_it_took_and_how_to_give_another(folder, capsys):
    """Of countries, where a name that no list has is put under 'other'; in memory and in blocks alike."""
    countries = ["France", "Germany", "Peru", "Chad", "Japan", "Holand-Netherlands"]
    lines = [f"{name},{sex},{ill}" for name in countries for sex in "mf" for ill in ("yes", "no", "no")]
    (folder / "homes.csv").write_text("\n".join(["country,sex,ill", *lines, ""]))
    arguments = ["release", "homes.csv", "--target", "ill", "-m", "global-recoding", "-p", "k=7"]

    codes = [run([*arguments, "-o", "one.csv"]), run([*arguments, "--memory", "1GB", "-o", "two.csv"])]
    said = capsys.readouterr().err

    assert codes == [0, 0]
    note = "'country' is coarsened by the ready hierarchy of countries of ISO 3166; change it with --hierarchy"
    assert said.count(note) == 2
    assert (folder / "one.csv").read_bytes() == (folder / "two.csv").read_bytes()

    rows = [f"{name};{'any' if name != 'Peru' else 'south'};*" for name in countries]
    (folder / "own.csv").write_text("\n".join([*rows, ""]))

    assert run([*arguments, "--hierarchy", "country=own.csv", "-o", "three.csv"]) == 0
    assert "ready hierarchy" not in capsys.readouterr().err
