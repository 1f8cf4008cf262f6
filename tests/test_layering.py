"""What the contracts in pyproject.toml cannot see: imports by name in a string, and what the audit takes of guarantees.

The order of the folders and the audit's independence are import-linter's contracts, checked by ``make lint``.
"""

import ast
import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "src" / "sfumato"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
AUDIT = [path for path in MODULES if path.relative_to(PACKAGE).parts[0] == "audit"]
A_MODULE = re.compile(r"sfumato(\.[a-z_0-9]+)+(:\w+)?")
LOADED_ON_DEMAND = {
    ("mechanisms/base.py", "displays"): "Release.plot",
    ("mechanisms/base.py", "report"): "Release.report",
    ("web/jobs/preload.py", "cli"): "imported once before tasks are forked, which run commands",
}


def layers():
    """Folders and modules below ``sfumato``, the lowest first, as the contract lists them."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    return contract["layers"][::-1]


def named_in_strings(path):
    """Modules of sfumato that a string of a module names, which it may import by name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and A_MODULE.fullmatch(node.value)
            and node.value not in ("sfumato.toml", "sfumato.key")
        ):
            yield node.value.partition(":")[0]


def test_modules_named_in_strings_are_there_and_point_the_same_way():
    order, wrong = layers(), []
    for path in MODULES:
        relative = path.relative_to(PACKAGE)
        own = relative.parts[0].removesuffix(".py")
        for name in named_in_strings(path):
            target = PACKAGE.joinpath(*name.split(".")[1:])
            layer = name.split(".")[1]
            if not (target.with_suffix(".py").exists() or target.is_dir()):
                wrong.append(f"{relative} names {name}, which is not there")
            elif order.index(layer) > order.index(own) and (relative.as_posix(), layer) not in LOADED_ON_DEMAND:
                wrong.append(f"{relative} names {name}, which is above it")

    assert wrong == []


def test_the_audit_imports_nothing_by_name_but_its_own():
    wrong = {
        path.name: found for path in AUDIT if (found := {n.split(".")[1] for n in named_in_strings(path)} - {"audit"})
    }

    assert AUDIT
    assert wrong == {}


def test_audit_takes_of_a_guarantee_its_data_and_no_words_or_forms():
    """How a guarantee looks in a manifest and what it means the audit says for itself."""
    others = {"sfumato.guarantees.base", "sfumato.guarantees.forms"}
    words = {"form_field", "asked_as", "left_open", "not_promised"}
    wrong = {}
    for path in AUDIT:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        sources = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        taken = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if found := sources & others | taken & words:
            wrong[path.name] = found

    assert wrong == {}
