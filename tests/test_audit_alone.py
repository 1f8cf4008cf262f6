"""A recipient can audit without the rest: no mechanism and no learner is imported, and scikit-learn may be missing."""

import json
import subprocess
import sys

import numpy as np
import pytest

from sfumato.cli.main import run

ROLES = ("--quasi-identifiers", "age,town", "--sensitive", "illness", "--target", "y")
MECHANISMS = {
    "mondrian": ("-m", "mondrian", "-k", "5", "-p", "l=2"),
    "breach-aware": ("-m", "breach-aware"),
}

# Runs a command where only these packages can be imported, and says last what it imported of sfumato.
ALONE = """
import importlib.abc
import json
import sys

ALLOWED = {"sfumato", "numpy", "scipy", "pyarrow", "duckdb", "click", "rich", *sys.stdlib_module_names}

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package not in ALLOWED and not package.startswith("_"):
            raise ModuleNotFoundError(f"No module named '{package}'", name=name)
        return None

sys.meta_path.insert(0, Missing())
from sfumato.cli.main import run

code = run(sys.argv[1:])
own = sorted({name.split(".")[1] for name in sys.modules if name.startswith("sfumato.")})
print(json.dumps({"code": code, "packages": own, "sklearn": "sklearn" in sys.modules}))
"""


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit-alone")
    rng = np.random.default_rng(3)
    rows = [
        f"{rng.integers(20, 60)},{'abcd'[rng.integers(4)]},{['flu', 'cold', 'none'][rng.integers(3)]},{rng.integers(2)}"
        for _ in range(300)
    ]
    original = folder / "people.csv"
    original.write_text("\n".join(["age,town,illness,y", *rows, ""]))
    made = {}
    for mechanism, options in MECHANISMS.items():
        for ending in ("csv", "parquet"):
            path = made[mechanism, ending] = folder / f"{mechanism}.{ending}"
            assert run(["release", str(original), *options, *ROLES, "-o", str(path)]) in (0, 8)
    return original, made


def audit_of(path, original):
    given = [] if original is None else ["--original", str(original), *ROLES]
    return ["audit", str(path), "--manifest", f"{path}.manifest.json", *given, "--json"]


def alone(arguments):
    """Exit code, report and what was imported, of a command without the other packages."""
    done = subprocess.run([sys.executable, "-c", ALONE, *arguments], capture_output=True, text=True, check=True)
    *report, imported = done.stdout.splitlines()
    return json.loads("\n".join(report)), json.loads(imported)


def here(arguments, capsys):
    """Exit code and report of the same command with all packages."""
    capsys.readouterr()
    code = run(arguments)
    return json.loads(capsys.readouterr().out), code


@pytest.mark.parametrize("with_original", [True, False], ids=["with its original", "alone"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_audit_without_the_other_packages_is_the_same(releases, ending, with_original, capsys):
    """No mechanism, no learner and no evaluation is imported by it."""
    original, made = releases
    arguments = audit_of(made["mondrian", ending], original if with_original else None)

    report, imported = alone(arguments)
    expected, code = here(arguments, capsys)

    assert len(expected["checks"]) > 20
    assert (report, imported["code"]) == (expected, code)
    assert not {"mechanisms", "learning", "evaluation"} & set(imported["packages"])
    assert not imported["sklearn"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_breach_bound_without_scikit_learn_is_an_exception_and_never_confirmed(releases, ending, capsys):
    original, made = releases
    arguments = audit_of(made["breach-aware", ending], original)

    report, imported = alone(arguments)
    expected, _ = here(arguments, capsys)

    estimated = {"breach-bound: level", "breach-bound: audited level"}
    assert estimated <= {check["name"] for check in expected["checks"]}
    assert report["checks"] == [check for check in expected["checks"] if check["name"] not in estimated]
    assert (imported["code"], report["verdict"]) == (8, "confirmed except")
    (breach,) = (one for one in report["unchecked"] if one["name"] == "breach")
    assert "scikit-learn" in breach["message"]
    assert [one for one in report["unchecked"] if one is not breach] == expected["unchecked"]
    assert not {"mechanisms", "learning", "evaluation"} & set(imported["packages"])
