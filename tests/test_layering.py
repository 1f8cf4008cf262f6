"""The flow has one direction: a module imports from its own layer or an earlier one, and the audit stands apart."""

import ast
from pathlib import Path

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


def test_imports_point_upward():
    """Every layer that a module imports is in the list, and none comes after its own."""
    wrong = []
    for path in MODULES:
        allowed = LAYERS[: LAYERS.index(layer_of(path)) + 1]
        wrong += [
            f"{path.relative_to(PACKAGE)} imports {layer}" for layer in imported_layers(path) if layer not in allowed
        ]

    assert wrong == []


AUDIT = [path for path in MODULES if layer_of(path) == "audit"]


def test_audit_shares_no_code_with_what_it_judges():
    wrong = {path.name: others for path in AUDIT if (others := set(imported_layers(path)) - AUDIT_MAY_USE)}

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
