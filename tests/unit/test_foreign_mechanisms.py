"""Mechanisms of other packages, found by entry points: they work like our own, and a bad one harms no other."""

import json
import re
import sys
from pathlib import Path

import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError
from sfumato.mechanisms import registry as mechanisms
from sfumato.mechanisms.presets import PRESETS
from sfumato.table.io.write import write_table

GUIDE = Path(__file__).parents[2] / "docs" / "adding-a-mechanism.md"
CODE = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL).group(1)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install packages of one module each, as pip would: a module and a folder of metadata on the path."""
    monkeypatch.syspath_prepend(tmp_path)

    def installed(module, code, names, package=None):
        (tmp_path / f"{module}.py").write_text(code, encoding="utf-8")
        metadata = tmp_path / f"{package or module}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package or module}\nVersion: 1.0\n")
        lines = "".join(f"{name} = {module}:DECLARATION\n" for name in names)
        (metadata / "entry_points.txt").write_text(f"[sfumato.mechanisms]\n{lines}")
        forget()

    def forget():
        for module in ("few_columns", "few_columns_too"):
            sys.modules.pop(module, None)
        for known in (mechanisms._declared, mechanisms._loaded, mechanisms.registered_mechanisms):
            known.cache_clear()

    yield installed
    monkeypatch.undo()
    forget()


def written(table, path):
    with path.open("wb") as file:
        write_table(table, file, "csv")
    return path


@pytest.fixture
def command(capsys):
    """Run a command; gives exit code, stdout and stderr."""

    def ran(*arguments):
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return ran


@pytest.mark.slow
def test_the_mechanism_of_the_guide_goes_the_whole_way(install, command, tmp_path):
    """Listed, released by the command line with its guarantee audited, audited again, and used from Python."""
    install("few_columns", CODE, ["few-columns"])
    table = admissions(n_rows=300).keep(["age", "sex", "insurance", "readmitted"])
    people, out = written(table, tmp_path / "people.csv"), tmp_path / "out.csv"

    listed = {entry["name"]: entry for entry in json.loads(command("mechanisms", "--json")[1])}
    roles = ("--target", "readmitted", "--quasi-identifiers", "age,sex,insurance")
    released, _, words = command("release", people, "-m", "few-columns", "-k", 4, *roles, "-o", out)
    audit = ("audit", out, "--manifest", f"{out}.manifest.json", "--original", people, *roles)
    audited, found, _ = command(*audit)

    assert listed["few-columns"]["parameters"] == [
        {"name": "k", "default": 5, "help": "rows that are equal on the columns that stay", "choices": []}
    ]
    assert released == 0, words
    manifest = json.loads((tmp_path / "out.csv.manifest.json").read_text())
    assert manifest["mechanism"]["name"] == "few-columns"
    assert [promise["kind"] for promise in manifest["guarantees"]] == ["k-anonymity"]
    assert manifest["guarantees"][0]["audited"] >= 4
    assert audited == 8, found
    assert "confirmed except: mechanism — " in found  # nobody knows what its settings may be
    assert command(*audit, "--accept", "mechanism")[0] == 0
    assert sfumato.release(table, "few-columns", k=4).manifest.promised()[0].k == 4


def test_its_parameters_are_checked_by_what_it_declares(install):
    install("few_columns", CODE, ["few-columns"])
    with pytest.raises(InvalidParameterError, match="k must be a whole number of at least 2, got 1"):
        sfumato.release(admissions(n_rows=50), "few-columns", k=1)
    with pytest.raises(InvalidParameterError, match="a parameter of few-columns must be one of k, got 'kk'"):
        mechanisms.build_mechanism("few-columns", {"kk": 3})


def test_a_release_that_breaks_its_promise_is_refused_by_the_audit(install, command, tmp_path):
    install("few_columns", CODE.replace("< self.k:", "< 0:"), ["few-columns"])
    people = written(admissions(n_rows=300).keep(["age", "sex", "readmitted"]), tmp_path / "people.csv")
    out = tmp_path / "out.csv"

    code, _, words = command("release", people, "-m", "few-columns", "-k", 50, "--target", "readmitted", "-o", out)

    assert code == 5, words
    assert not out.exists()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module_anywhere", "No module named 'no_such_module_anywhere'"),
        ("raise OSError('no licence found')", "OSError: no licence found"),
        ("DECLARATION = 5", "an object of type int instead of a MechanismInfo"),
        (CODE.replace('"few-columns"', '"other"'), "its mechanism_name is 'other'"),
        (CODE.replace('"k": ParameterSpec', '"kk": ParameterSpec'), r"only the declaration has: \['k', 'kk'\]"),
        (CODE.replace("(Mechanism)", "(object)"), "not a subclass of sfumato.mechanisms.base.Mechanism"),
    ],
)
def test_a_broken_package_is_named_and_leaves_the_others_alone(install, code, reason):
    install("few_columns", code, ["few-columns"], package="few-columns-for-all")

    with pytest.warns(RuntimeWarning, match=f"few-columns.*few-columns-for-all.*{reason}"):
        known = mechanisms.registered_mechanisms()
    assert "few-columns" not in known
    assert len(known) == len(mechanisms._OWN)
    assert mechanisms.build_mechanism("mondrian", {"k": 3}).k == 3
    with pytest.raises(InvalidParameterError, match=f"got 'few-columns' of the package few-columns-for-all.*{reason}"):
        mechanisms.build_mechanism("few-columns", {})


def test_the_command_line_names_a_broken_package_in_a_line(install, command):
    install("few_columns", "import no_such_module_anywhere", ["few-columns"])

    code, listed, words = command("mechanisms", "--json")

    assert code == 0
    assert [line for line in words.splitlines() if "few-columns" in line and "No module named" in line]
    assert {entry["name"] for entry in json.loads(listed)} == {*mechanisms._OWN, *PRESETS}


def test_a_name_that_is_taken_is_refused(install):
    """Nobody can put a mechanism in the place of one of ours unnoticed."""
    install("few_columns", CODE.replace('"few-columns"', '"mondrian"'), ["mondrian"])

    with pytest.raises(InvalidParameterError, match="'mondrian', which sfumato and the package few_columns declare"):
        mechanisms.build_mechanism("mondrian", {})
    with pytest.warns(RuntimeWarning, match="'mondrian', which sfumato and the package few_columns declare"):
        assert "mondrian" not in mechanisms.registered_mechanisms()
    assert mechanisms.build_mechanism("anatomy", {}).l == 2


def test_a_name_that_two_packages_declare_is_refused(install):
    install("few_columns", CODE, ["few-columns"])
    install("few_columns_too", CODE, ["few-columns"])

    with pytest.raises(InvalidParameterError, match="the package few_columns and the package few_columns_too declare"):
        mechanisms.build_mechanism("few-columns", {})
