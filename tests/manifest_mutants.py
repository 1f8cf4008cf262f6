"""Mutants of a manifest: every entry changed to another plausible one, and every entry that it could have added.

A forger does no more than this with a manifest, one entry at a time. Types are those of the form of manifests, so that
a mutant is refused for what it says, and seldom for its form.
"""

import copy
from collections.abc import Iterator
from typing import Any

from sfumato.guarantees.forms import TEXT
from sfumato.manifest_schema import _HASH, VERSION, _chosen, schema

Path = tuple[str | int, ...]
PLAUSIBLE = {
    "unit": ["years", "€"],
    "label": ["Age of the patient in years"],
    "value_labels": [[{"value": 1, "label": "none"}]],
    "domain": [["forged", "values"]],
    "missing": [["-9"]],
    "escaped_formulas": [True],
    "parties": [3],
    "levels": [[0, 1]],
    "register": ["0" * 64],
    "n_dropped": [1],
    "rows": ["dropped"],
    "columns": [{}],
    "read_as": [{}],
}
"""What is added where a manifest lacks an entry that it may have, by the entry's name."""


def mutants(manifest: dict[str, Any], names: list[str], others: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give every mutant with the words for it; ``names`` are the original's columns, ``others`` texts to be put in."""
    for path, said, value in _changes(manifest, schema(), (), names, others):
        if path and path[0] in ("digest", "sfumato_manifest"):
            continue
        changed = copy.deepcopy(manifest)
        place: Any = changed
        for step in path[:-1]:
            place = place[step]
        if value is _GONE:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        yield f"{'.'.join(map(str, path))} {said}", changed


_GONE = object()


def form_of(found: Any, form: Any) -> Any:
    """Find the form that an entry is meant to have, where there are alternatives."""
    while "oneOf" in form:
        form = _chosen(found, form["oneOf"])
    return form


def word_by(form: Any) -> str | None:
    """Name the entry whose word distinguishes a record from its alternatives."""
    constants = [key for key, own in form.get("properties", {}).items() if "const" in own]
    return constants[0] if constants else None


def _changes(found: Any, form: Any, path: Path, names: list[str], others: list[str]) -> Iterator[tuple[Path, str, Any]]:
    chosen = form_of(found, form)
    if "items" in chosen:
        yield from _of_list(found, chosen["items"], path, names, others)
    elif "properties" in chosen:
        yield from _of_record(found, chosen, form, path, names, others)
    elif "additionalProperties" in chosen:
        for key, own in found.items():
            yield (*path, key), "left out", _GONE
            yield from _changes(own, chosen["additionalProperties"], (*path, key), names, others)
        if found:
            yield path, "with one more", {**found, next((n for n in names if n not in found), "forged"): _any(found)}
    else:
        for value in _other_leaves(found, chosen, names, others):
            yield path, f"= {value!r}", value


def _any(found: dict[str, Any]) -> Any:
    return copy.deepcopy(next(iter(found.values())))


def _of_list(found, each, path, names, others):
    for i, own in enumerate(found):
        yield (*path, i), "left out", _GONE
        yield from _changes(own, each, (*path, i), names, others)
    if len(found) > 1:
        yield path, "turned round", found[::-1]
    if found:
        yield path, "with the first one twice", [*found, copy.deepcopy(found[0])]
    if each == TEXT:
        yield from (
            (path, f"with {text!r} added", [*found, text]) for text in [*names[:2], *others] if text not in found
        )


def _of_record(found, chosen, form, path, names, others):
    forms, by = chosen["properties"], word_by(chosen)
    optional = [key for key in forms if key not in chosen["required"]]
    for key, own in found.items():
        if key in optional:
            yield (*path, key), "left out", _GONE
        yield from _changes(own, forms[key], (*path, key), names, others)
    for key in optional:
        if key not in found:
            for value in _added(key, forms[key], names):
                yield (*path, key), f"added: {value!r}", value
    for other in form.get("oneOf", ()):
        if by is not None and word_by(other) == by and set(found) <= set(other["properties"]):
            word = other["properties"][by]["const"]
            if word != found[by]:
                yield (*path, by), f"= {word!r}", word


def _added(key: str, form: Any, names: list[str]) -> Iterator[Any]:
    if key == "prepared":
        yield from (
            [{"column": name, **operation}]
            for name in names
            for operation in (
                {"operation": "drop"},
                {"operation": "top", "value": 10**6},
                {"operation": "round", "value": 1},
                {"operation": "mask", "keep_first": 50, "keep_last": 0, "character": "#"},
                {"operation": "age", "at": "2024-01-01"},
            )
        )
    elif key == "one_row_per_person":
        yield from ({"column": name, "rule": "first", "n_dropped": 0} for name in names)
    elif key == "read_as":
        yield from ({name: "DD/MM/YYYY"} for name in names)
    elif key == "protected":
        yield from ([name] for name in names)
    elif key in PLAUSIBLE:
        yield from PLAUSIBLE[key]
    elif "oneOf" in form:
        yield from _added(key, form["oneOf"][-1], names)
    elif "enum" in form:
        yield sorted(form["enum"])[0]
    else:
        yield from _of_type(form)[:1]


def _of_type(form: Any) -> list[Any]:
    """Give a value of a plain type."""
    if form.get("pattern") in (_HASH["pattern"], VERSION["pattern"]):
        return ["0" * 64 if form["pattern"] == _HASH["pattern"] else "1.0"]
    plain = {"integer": 1, "number": 0.5, "boolean": True, "string": "forged"}
    types = [form["type"]] if isinstance(form["type"], str) else form["type"]
    return [plain[name] for name in types if name in plain]


def _other_leaves(found: Any, form: Any, names: list[str], others: list[str]) -> Iterator[Any]:
    pattern = form.get("pattern", "")
    if "null" in form.get("type", ()) and found is not None:
        yield None
    if "const" in form:
        return
    if "enum" in form:
        yield from (word for word in sorted(form["enum"]) if word != found)
    elif found is None:
        yield from _of_type(form)
    elif isinstance(found, bool):
        yield not found
    elif isinstance(found, int):
        yield from {found + 1, max(found - 1, 0), 2 * found, found + 10} - {found}
    elif isinstance(found, float):
        yield from {float(f"{found * 1.1 + 0.01:.2e}"), float(f"{found * 0.9:.2e}"), 0.5} - {found}
    elif pattern.startswith("^[0-9a-f]{"):
        yield ("1" if found[0] == "0" else "0") + found[1:]
    elif pattern.startswith("^[0-9]{4}-"):
        yield "2001-01-01"
    elif pattern.startswith("^[a-z0-9]"):
        yield from {"csv", "tsv", "parquet", "mondrian", "global-recoding"} - {found}
    else:
        yield from ([name for name in names if name != found][:3] if found in names else [])
        yield from [f"{found}x", *others]
