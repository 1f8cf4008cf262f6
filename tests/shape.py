"""How large the program is to a reader, in numbers: ``python -m tests.shape``. It prints and judges nothing.

``--trace`` also runs ``release -m mondrian`` and counts what it passes through.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
SHORT = 5
_TABLE = re.compile(r"Table$|^Table|Rows$|Counts$|Columns?$")
_NOT_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def code_lines(text: str) -> int:
    """Count lines that hold code: no blank line, no comment, no docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type not in _NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        if is_text and isinstance(first.value.value, str):
            lines -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def modules() -> Iterator[tuple[str, str]]:
    """Give every module of the package by its dotted name, with its text."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        yield name, path.read_text("utf-8")


def cycles(texts: dict[str, str]) -> int:
    """Count groups of modules of one package that import each other in a circle, by imports anywhere in a module."""
    edges = {name: {t for t in _imported(text, texts) if _package(t) == _package(name)} for name, text in texts.items()}
    seen: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = 0

    def visit(name: str) -> None:  # Tarjan's algorithm
        nonlocal found
        seen[name] = low[name] = len(seen)
        stack.append(name)
        for other in edges[name]:
            if other not in seen:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == seen[name]:
            group = [stack.pop()]
            while group[-1] != name:
                group.append(stack.pop())
            found += len(group) > 1

    for name in edges:
        if name not in seen:
            visit(name)
    return found


def _imported(text: str, known: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from [whole] if whole in known else [node.module] if node.module in known else []


def _package(module: str) -> str:
    return ".".join(module.split(".")[:2])


def shape() -> dict[str, Any]:
    """Measure the sources."""
    texts = dict(modules())
    trees = {name: ast.parse(text) for name, text in texts.items()}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    calls = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in nodes
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    )
    is_short = [f.body[-1].end_lineno - f.body[0].lineno + 1 < SHORT for f in functions]  # type: ignore[operator]
    private = [f for f in functions if f.name.startswith("_") and not f.name.startswith("__")]
    data = [c for c in classes if any("dataclass" in ast.unparse(d) for d in c.decorator_list)]
    tests = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")]
    return {
        "src lines": sum(len(text.splitlines()) for text in texts.values()),
        "src code lines": sum(map(code_lines, texts.values())),
        "modules": len(texts),
        "functions": len(functions),
        f"functions under {SHORT} lines, %": round(100 * sum(is_short) / len(functions)),
        "private functions named once": sum(calls[f.name] == 1 for f in private),
        "classes": len(classes),
        "dataclasses": len(data),
        "kinds of table": sum(_TABLE.search(c.name) is not None for c in classes),
        "audit lines": sum(len(text.splitlines()) for name, text in texts.items() if ".audit" in name),
        "import cycles inside packages": cycles(texts),
        "tests lines": sum(len(text.splitlines()) for text in tests),
    }


def trace() -> dict[str, int]:
    """Count the functions, modules and changes of package that ``release -m mondrian`` of the demo table passes."""
    from sfumato.cli.main import run
    from sfumato.project.describe import write_demo

    functions: set[CodeType] = set()
    last, transitions, depth, deepest = "", 0, 0, 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal last, transitions, depth, deepest
        name = frame.f_globals.get("__name__", "")
        if not name.startswith("sfumato") or event not in ("call", "return"):
            return
        depth += 1 if event == "call" else -1
        if event == "return":
            return
        deepest = max(deepest, depth)
        if not frame.f_code.co_name.startswith("<"):
            functions.add(frame.f_code)
        transitions += _package(name) != last
        last = _package(name)

    with tempfile.TemporaryDirectory() as folder:
        write_demo(Path(folder))
        data, output = Path(folder) / "admissions.csv", Path(folder) / "release.csv"
        command = ["release", str(data), "--target", "readmitted", "-m", "mondrian", "--quiet", "--force"]
        run([*command, "-o", str(output)])  # what is only imported is not counted
        sys.setprofile(profile)
        try:
            run([*command, "-o", str(output)])
        finally:
            sys.setprofile(None)
    return {
        "release -m mondrian: functions": len(functions),
        "release -m mondrian: modules": len({code.co_filename for code in functions}),
        "release -m mondrian: changes of package": transitions,
        "release -m mondrian: depth": deepest,
    }


if __name__ == "__main__":
    for what, number in {**shape(), **(trace() if "--trace" in sys.argv else {})}.items():
        print(f"{what:<44} {number:>9,}")  # noqa: T201
