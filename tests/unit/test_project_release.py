"""A project file gives the same bytes from the command line, from Python and by the two steps that the page takes."""

import json

import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.cli.making.release import command
from sfumato.cli.options.asked import project_with_flags
from sfumato.errors import InputError, InvalidParameterError, OutputError, PrivacyNotAchievableError
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.project.describe import describe_to_project, write_demo
from sfumato.project.edit import ProjectChanges, edit_project
from sfumato.project.file import load_project
from sfumato.publishing.from_project import mechanism_of_project, publish_project, release_project
from sfumato.publishing.publish import publish
from sfumato.schema import Role

WAYS = {
    "auto": {"k": 5},
    "greedy-containment": {"k": 5, "on_infeasible": "skip"},
    "gain-recoding": {"k": 5, "max_suppressed_fraction": 0.1},
    "mondrian": {"k": 7},
    "slicing": {"k": 4, "l": 2, "sensitive": "illness", "random_state": 3},
}
PEOPLE = "name,age,sex,town,illness,paid\n" + "".join(
    f"p{n},{20 + n % 11},{'fm'[n % 2]},{'abcd'[n * 7 % 4]},{'xyz'[n % 3]},{'yn'[n % 4 == 0]}\n" for n in range(160)
)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    path = tmp_path / "sfumato.toml"
    roles = {"name": Role.IDENTIFIER, "illness": Role.SENSITIVE, "paid": Role.TARGET}
    describe_to_project(tmp_path / "people.csv", path, roles=roles)
    return path


def release_by_command(project, output, *more):
    return run(["release", "--project", str(project), "-o", str(output), *more])


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", WAYS)
def test_all_ways_give_the_same_bytes(mechanism, project, tmp_path, monkeypatch, capsys):
    edit_project(project, ProjectChanges(mechanism=mechanism, parameters=WAYS[mechanism]))
    folders = [tmp_path / name for name in ("command", "python", "steps")]
    for folder in folders:
        folder.mkdir()

    code = release_by_command(project, folders[0] / "release.csv", "--quick")
    published = publish_project(project, folders[1] / "release.csv")
    monkeypatch.chdir(tmp_path)
    release, original = release_project(load_project("sfumato.toml"), progress=lambda *step: None)
    publish(release, folders[2] / "release.csv", original=original)

    assert code == 0, capsys.readouterr().err
    command, python, by_steps = map(files, folders)
    assert list(command) == ["release.csv", "release.csv.manifest.json"]
    assert command == python == by_steps
    manifest = json.loads(command["release.csv.manifest.json"])
    assert manifest["mechanism"]["name"] == ("mondrian" if mechanism == "auto" else mechanism)
    assert load_project(project).sha256.encode() not in b"".join(command.values())
    assert published.table_path == folders[1] / "release.csv"


@pytest.mark.slow
def test_flags_of_the_command_go_before_the_project(project, tmp_path, capsys):
    code = release_by_command(project, tmp_path / "out.csv", "-m", "mondrian", "-k", "9")

    assert code == 0, capsys.readouterr().err
    mechanism = json.loads((tmp_path / "out.csv.manifest.json").read_text())["mechanism"]
    assert (mechanism["name"], mechanism["parameters"]["k"]) == ("mondrian", 9)


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--memory", "1GB")], ids=["in memory", "out of core"])
def test_a_kept_order_is_part_of_a_release_s_number_wherever_it_is_asked_for(project, tmp_path, capsys, more):
    """Else a sorted and an unsorted release of the same settings would have one number, and one commitment."""
    edit_project(project, ProjectChanges(mechanism="global-recoding", parameters={"k": 5}))
    asked = {"sorted": (), "by flag": ("--keep-order",), "by file": ()}
    found = {}
    for name, flags in asked.items():
        if name == "by file":
            written = project.read_text()
            project.write_text(written.replace("[release]\n", "[release]\nkeep_order = true\n"))
            assert load_project(project).keep_order
        assert release_by_command(project, tmp_path / f"{name}.csv", *flags, *more) == 0, capsys.readouterr().err
        found[name] = json.loads((tmp_path / f"{name}.csv.manifest.json").read_text())
    numbers = {name: manifest["input"]["commitment"]["release"] for name, manifest in found.items()}

    assert numbers["sorted"] != numbers["by flag"] == numbers["by file"]
    assert found["by flag"]["input"]["commitment"] == found["by file"]["input"]["commitment"]
    assert found["sorted"]["input"]["commitment"]["value"] != found["by flag"]["input"]["commitment"]["value"]
    assert (tmp_path / "by flag.csv").read_bytes() == (tmp_path / "by file.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("chosen", registered_mechanisms())
def test_parameters_of_the_project_s_mechanism_do_not_break_another_one(chosen, project, capsys):
    """Whatever mechanism the project is about, with all its parameters written down, any other can be chosen."""
    for own, info in registered_mechanisms().items():
        written = {p.name: p.default for p in info.parameters if isinstance(p.default, p.type)}
        edit_project(project, ProjectChanges(mechanism=own, parameters=written))
        asked = project_with_flags(project, command.make_context("release", ["-m", chosen]).params)
        built = build_mechanism(chosen, asked.parameters)
        note = capsys.readouterr().err

        assert asked.mechanism == chosen
        unused = [name for name in written if name not in asked.parameters]
        assert (f" for {own}; not used" in note) == bool(unused)
        assert all(name in note for name in unused)
        assert own != chosen or not unused
        for name, value in asked.parameters.items():
            own_value = getattr(built, name, value)
            assert (list(own_value) if isinstance(value, list) else own_value) == value


@pytest.mark.slow
def test_anatomy_is_released_though_the_project_has_a_k(project, tmp_path, capsys):
    assert "k = 5" in project.read_text()
    code = release_by_command(project, tmp_path / "out.csv", "-m", "anatomy")

    err = capsys.readouterr().err
    assert code == 0, err
    assert "note: sfumato.toml sets k for auto; not used, anatomy does not take it" in err


@pytest.mark.parametrize("given", [["-k", "4"], ["-p", "k=4"]])
def test_a_parameter_on_the_command_line_must_be_the_mechanism_s(project, tmp_path, capsys, given):
    code = release_by_command(project, tmp_path / "out.csv", "-m", "anatomy", *given)

    assert code == 2
    assert "a parameter of anatomy must be one of l, sensitive, random_state, got 'k'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["1", "1.0"])
@pytest.mark.parametrize("mechanism", ["gain-recoding", "global-recoding"])
def test_a_limit_of_all_rows_goes_from_project_and_flag_to_an_audited_release(
    project, tmp_path, capsys, mechanism, limit
):
    by_flag = release_by_command(
        project, tmp_path / "a.csv", "-m", mechanism, "-p", f"max_suppressed_fraction={limit}", "-p", "max_seconds=5"
    )
    project.write_text(project.read_text().replace("k = 5", f"k = 5\nmax_suppressed_fraction = {limit}"))
    edited = project.read_text().replace('mechanism = "auto"', f'mechanism = "{mechanism}"')
    project.write_text(edited)
    by_project = release_by_command(project, tmp_path / "b.csv")

    assert (by_flag, by_project) == (0, 0), capsys.readouterr().err
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert len((tmp_path / "a.csv").read_text().splitlines()) > 1
    names = ("b.csv", "b.csv.manifest.json", "people.csv")
    table, manifest, original = (str(tmp_path / name) for name in names)
    audited = run(["audit", table, "--manifest", manifest, "--original", original])
    assert audited in (0, 8), capsys.readouterr().err


@pytest.mark.parametrize("key", ["kk", "criterion"])
def test_a_parameter_that_nobody_takes_is_refused_with_another_mechanism_too(project, tmp_path, capsys, key):
    project.write_text(project.read_text().replace("k = 5", f'{key} = "typo"'))
    code = release_by_command(project, tmp_path / "out.csv", "-m", "mondrian")

    assert code == 2
    assert "must be one of" in capsys.readouterr().err


@pytest.mark.slow
def test_a_plan_for_binary_features_serves_only_mechanisms_that_need_them(project, tmp_path, capsys):
    project.write_text(project.read_text() + "[binarize.columns]\nage = { cuts = [25] }\n")
    plan = {"columns": {"age": {"cuts": [25]}}}

    assert mechanism_of_project(load_project(project)) == ("auto", {"k": 5})
    edit_project(project, ProjectChanges(mechanism="greedy-containment", parameters={"k": 5}))
    assert mechanism_of_project(load_project(project)) == ("greedy-containment", {"k": 5, "binarize": plan})
    edit_project(project, ProjectChanges(mechanism="mondrian", parameters={"k": 5}))
    assert load_project(project).settings == {"k": 5, "binarize": plan}
    assert mechanism_of_project(load_project(project)) == ("mondrian", {"k": 5})
    code = release_by_command(project, tmp_path / "command.csv")
    assert code == 0, capsys.readouterr().err
    publish_project(project, tmp_path / "python.csv")

    assert (tmp_path / "command.csv").read_bytes() == (tmp_path / "python.csv").read_bytes()


@pytest.mark.slow
def test_the_project_names_where_the_release_goes(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    published = sfumato.publish_project()

    assert published.table_path.resolve() == tmp_path / "release.csv"
    with pytest.raises(OutputError, match="exists already"):
        publish_project(project)
    before = (tmp_path / "release.csv").read_bytes()
    publish_project(project, force=True)
    assert (tmp_path / "release.csv").read_bytes() == before


def test_what_cannot_be_written_is_refused_before_the_table_is_read(project, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.project.file.Project.read", lambda self: pytest.fail("the table was read"))
    bare = tmp_path / "bare.toml"
    bare.write_text('[data]\npath = "people.csv"\n')

    with pytest.raises(InvalidParameterError, match=r"output must be given, got none.*bare\.toml"):
        publish_project(bare)
    with pytest.raises(OutputError, match="is the input"):
        publish_project(project, tmp_path / "people.csv", force=True)
    with pytest.raises(OutputError, match="its folder does not exist"):
        publish_project(project, tmp_path / "nowhere" / "release.csv")


def test_nothing_is_written_when_the_guarantee_cannot_be_met(project, tmp_path):
    edit_project(project, ProjectChanges(mechanism="mondrian", parameters={"k": 161}))

    with pytest.raises(PrivacyNotAchievableError):
        publish_project(project)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "sfumato.toml"]


def test_a_changed_data_file_is_refused(project, tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE + "p,20,f,a,x,y\n")

    with pytest.raises(InputError, match="SHA-256 differs"):
        publish_project(project)


@pytest.mark.slow
def test_the_demo_is_the_same_each_time_and_its_roles_are_right(tmp_path):
    first, second = (write_demo(tmp_path / name) for name in ("a", "b"))

    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert first.text == second.text == (tmp_path / "a" / "sfumato.toml").read_text(encoding="utf-8")
    table = load_project(tmp_path / "a" / "sfumato.toml").read()
    assert table.schema.target == "readmitted"
    with pytest.raises(OutputError, match="exists already"):
        write_demo(tmp_path / "a")
    with pytest.raises(OutputError, match="is a file"):
        write_demo(tmp_path / "a" / "sfumato.toml")


def test_describing_writes_what_init_writes(tmp_path, monkeypatch, capsys):
    (tmp_path / "data").mkdir()
    data = tmp_path / "data" / "people.csv"
    data.write_text(PEOPLE)
    monkeypatch.chdir(tmp_path)

    described = describe_to_project(data, "mine.toml", roles={"paid": Role.TARGET})
    assert run(["init", "data/people.csv", "--target", "paid", "-o", "theirs.toml"]) == 0
    capsys.readouterr()
    assert run(["init", "data/people.csv", "--target", "paid", "-o", "-"]) == 0

    texts = [(tmp_path / name).read_text(encoding="utf-8") for name in ("mine.toml", "theirs.toml")]
    assert texts[0] == texts[1] == described.text == capsys.readouterr().out
    assert load_project("mine.toml").data_path.resolve() == data
    assert [guess.column.name for guess in described.guesses] == PEOPLE.split("\n")[0].split(",")
    with pytest.raises(OutputError, match="is the input"):
        describe_to_project(data, data, force=True)
    with pytest.raises(InputError, match="standard input"):
        describe_to_project("-", "other.toml")


def test_features_of_a_sparse_table_are_guessed_but_not_listed(tmp_path):
    (tmp_path / "mail.svm").write_text("1 1:1 3:1\n-1 2:1\n1 1:1\n")

    described = describe_to_project(tmp_path / "mail.svm", tmp_path / "sfumato.toml")
    project = load_project(tmp_path / "sfumato.toml")

    assert len(described.guesses) == len(described.table.features) + len(project.columns)
    assert project.default_role is Role.QUASI_IDENTIFIER
    assert project.read().n_rows == 3


def test_a_word_for_the_ledger_that_is_none_is_refused(project):
    with pytest.raises(InvalidParameterError, match="check or same-levels or off"):
        release_project(load_project(project), ledger="repair")
