"""Mutants of a manifest: every entry changed to another plausible one, and every entry that it could have added.

A forger does no more than this with a manifest, one entry at a time. Types are those of the audit's own form, so that a
mutant is refused for what it says, and seldom for its form.
"""

import copy
from collections.abc import Iterator
from typing import Any

from sfumato.audit.manifest_form import _MANIFEST, Kinds, Limited, Names, _form_of
from sfumato.schema import Kind, Role

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
    for path, said, value in _changes(manifest, _MANIFEST, (), names, others):
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


def _changes(found: Any, form: Any, path: Path, names: list[str], others: list[str]) -> Iterator[tuple[Path, str, Any]]:
    chosen = _form_of(found, form)
    if isinstance(chosen, list):
        yield from _of_list(found, chosen[0], path, names, others)
    elif isinstance(chosen, Names):
        for key, own in found.items():
            yield (*path, key), "left out", _GONE
            yield from _changes(own, chosen.each, (*path, key), names, others)
        if found:
            yield path, "with one more", {**found, next((n for n in names if n not in found), "forged"): _any(found)}
    elif isinstance(chosen, dict):
        yield from _of_record(found, chosen, form, path, names, others)
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
    if each == "text":
        yield from (
            (path, f"with {text!r} added", [*found, text]) for text in [*names[:2], *others] if text not in found
        )


def _of_record(found, chosen, form, path, names, others):
    forms = {key.removesuffix("?"): own for key, own in chosen.items()}
    optional = [key.removesuffix("?") for key in chosen if key.endswith("?")]
    for key, own in found.items():
        if key in optional:
            yield (*path, key), "left out", _GONE
        yield from _changes(own, forms[key], (*path, key), names, others)
    for key in optional:
        if key not in found:
            for value in _added(key, forms[key], names):
                yield (*path, key), f"added: {value!r}", value
    if isinstance(form, Kinds):
        for word in form.own:
            if word != found[form.by] and set(found) <= {key.removesuffix("?") for key in form.record(word)}:
                yield (*path, form.by), f"= {word!r}", word


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
    elif isinstance(form, tuple):
        yield from _added(key, form[-1], names)
    elif isinstance(form, str):
        known = {"count": 1, "number": 0.5, "truth": True, "text": "forged", "release": "1.0", "hash": "0" * 64}
        if form.removesuffix("?") in known:
            yield known[form.removesuffix("?")]
    elif isinstance(form, frozenset):
        yield sorted(form)[0]


def _other_leaves(found: Any, form: Any, names: list[str], others: list[str]) -> Iterator[Any]:
    if isinstance(form, Limited):
        form = {"integer": "count", "number": "number", "string": "text"}[form.form["type"]]
    if isinstance(form, frozenset):
        yield from (word for word in sorted(form) if word != found)
        return
    kind = form.removesuffix("?")
    if form.endswith("?") and found is not None:
        yield None
    if found is None:
        yield from {"count": [7], "number": [0.5], "text": ["forged"], "hash": ["0" * 64]}.get(kind, [])
    elif kind in ("role", "role of version 2"):
        yield from (str(role) for role in Role if role != found)
    elif kind == "kind":
        yield from (str(own) for own in Kind if own != found)
    elif isinstance(found, bool):
        yield not found
    elif isinstance(found, int):
        yield from {found + 1, max(found - 1, 0), 2 * found, found + 10} - {found}
    elif isinstance(found, float):
        yield from {float(f"{found * 1.1 + 0.01:.2e}"), float(f"{found * 0.9:.2e}"), 0.5} - {found}
    elif kind == "hash" or kind == "number of a release":
        yield ("1" if found[0] == "0" else "0") + found[1:]
    elif kind == "day":
        yield "2001-01-01"
    elif kind == "word":
        yield from {"csv", "tsv", "parquet", "mondrian", "global-recoding"} - {found}
    elif isinstance(found, str):
        yield from ([name for name in names if name != found][:3] if found in names else [])
        yield from [f"{found}x", *others]
