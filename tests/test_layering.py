"""The flow has one direction: a module imports from its own layer or an earlier one, and the audit stands apart."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "sfumato"

LAYERS = [
    "errors",
    "atomic",
    "private_folders",
    "child_processes",
    "schema",
    "guarantees",
    "table",
    "counting",
    "measures",
    "manifest_schema",
    "manifest",
    "contract",
    "datasets",
    "project",
    "toml_edit",
    "project_edit",
    "describing_project",
    "learning",
    "selection",
    "recoding",
    "perturbation",
    "mechanisms",
    "audit",
    "reaudit",
    "publishing",
    "releasing",
    "large",
    "cluster",
    "project_release",
    "attack",
    "evaluation",
    "displays",
    "report",
    "collaboration",
    "web",
    "cli",
]
AUDIT_MAY_USE = {
    "errors",
    "private_folders",
    "schema",
    "guarantees",
    "table",
    "audit",
}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def imported_layers(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "sfumato":
                yield parts[1] if len(parts) > 1 else "sfumato"


def layer_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_upward(path):
    own = LAYERS.index(layer_of(path))
    for layer in imported_layers(path):
        assert layer in LAYERS, f"{path.name} imports {layer}, which is in no layer"
        assert LAYERS.index(layer) <= own


@pytest.mark.parametrize("path", [p for p in MODULES if layer_of(p) == "audit"], ids=lambda path: path.name)
def test_audit_shares_no_code_with_what_it_judges(path):
    assert set(imported_layers(path)) <= AUDIT_MAY_USE


@pytest.mark.parametrize("path", [p for p in MODULES if layer_of(p) == "audit"], ids=lambda path: path.name)
def test_audit_takes_of_a_guarantee_its_data_and_no_words_or_forms(path):
    """How a guarantee looks in a manifest and what it means the audit says for itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    sources = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not sources & {"sfumato.guarantees.base", "sfumato.guarantees.forms"}
    taken = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not taken & {"form_field", "asked_as", "left_open", "not_promised"}
