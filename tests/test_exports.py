"""The public interface is exactly what is listed, and loads nothing until it is used."""

import subprocess
import sys

import pytest

import sfumato


def test_every_listed_name_exists():
    for name in sfumato.__all__:
        assert getattr(sfumato, name) is not None
    assert len(sfumato.__all__) > 50
    assert sorted(sfumato.__all__) == sfumato.__dir__()


def test_release_is_the_function_and_not_a_module():
    assert callable(sfumato.release)


def test_a_project_is_published_by_one_call():
    from sfumato.publishing.from_project import publish_project

    assert sfumato.publish_project is publish_project


def test_importing_the_package_and_the_command_line_loads_no_heavy_library():
    code = "import sys, sfumato, sfumato.cli.main; print([m for m in sys.modules if m in HEAVY])"
    code = code.replace("HEAVY", "('numpy', 'pyarrow', 'duckdb', 'sklearn', 'scipy', 'rich', 'pandas', 'matplotlib')")

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_release_in_memory_and_its_audit_load_neither_duckdb_nor_scikit_learn():
    """Only tables out of core and bounds of breach need them."""
    code = "import sys, sfumato.publishing.publish; print([m for m in ('duckdb', 'sklearn') if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_subpackages_are_found_without_an_import_of_their_own():
    code = "import sfumato; print(sfumato.audit.measured_level.__name__, sfumato.mechanisms.__name__)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["measured_level", "sfumato.mechanisms"]
    for name in ("nothing", "_nothing"):
        with pytest.raises(AttributeError, match="no attribute"):
            getattr(sfumato, name)


@pytest.mark.slow
def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "sfumato", "--version"], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("sfumato, version ")
