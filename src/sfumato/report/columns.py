"""What became of every column: names, roles and numbers of distinct values, never a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from sfumato.audit.columns import Columns
from sfumato.manifest import AnyTable, Manifest
from sfumato.schema import Role

KEPT, DROPPED, COARSENED, FEATURES = "kept as it is", "dropped", "coarsened", "turned into 0/1 features"
MOVED, FLIPPED, DRAWN, ADDED = "moved within buckets", "some cells flipped", "drawn anew", "added"
MOST_SHOWN = 200

_CELL_RULES = ("generalized", "hierarchy")


def column_changes(manifest: Manifest, released: AnyTable, original: AnyTable | None = None) -> dict[str, Any]:
    """List the columns of the original, and those that the release adds.

    Parameters
    ----------
    original : Table or BinaryTable or None
        Without it, roles of dropped columns and distinct values before are not known.

    Returns
    -------
    dict
        ``n_columns``, and ``changes``: of up to 200 columns the ``name``, ``role``, ``change``, ``n_before`` and
        ``n_after`` distinct values (``None`` where not known or not released) and ``n_features``, the released columns
        made of it. A column that is neither released nor named by the manifest is not named (decision 0005).
    """
    after, before = Columns(released), Columns(original) if original is not None else None
    rules = {str(entry["name"]): entry for entry in manifest.recodings if "name" in entry and "column" in entry}
    made: dict[str, list[str]] = {}
    for name in after.names:
        made.setdefault(str(rules[name]["column"]) if name in rules else name, []).append(name)
    dropped = frozenset(manifest.dropped_columns)
    sources = before.sources if before is not None else ()
    in_order = [name for name in sources if name in made or name in dropped]
    known = dict.fromkeys([*in_order, *made, *manifest.dropped_columns])
    changes = [
        _sizes(name, made.get(name, []), after, before)
        | {"change": _in_words(name, made.get(name, []), rules, manifest.perturbation or {}, after)}
        for name in islice(known, MOST_SHOWN)
    ]
    return {"n_columns": len(known), "changes": changes}


def _sizes(name: str, made: Sequence[str], after: Columns, before: Columns | None) -> dict[str, Any]:
    is_known = before is not None and name in before
    role: str | None = None
    if before is not None and is_known:
        role = str(before.describe(name).role)
    elif made:
        role = str(after.describe(made[0]).role)
    return {
        "name": name,
        "role": role,
        "n_before": before.coded(name).n_distinct if before is not None and is_known else None,
        "n_after": after.coded(name).n_distinct if list(made) == [name] else None,
        "n_features": len(made),
    }


def _in_words(
    name: str, made: Sequence[str], rules: Mapping[str, Mapping[str, Any]], done: Mapping[str, Any], after: Columns
) -> str:
    if not made:
        return DROPPED
    if name == done.get("bucket"):
        return ADDED
    if any(name in part for part in done.get("slices", ())):
        return MOVED
    rule = rules.get(made[0], {})
    if rule.get("rule") in _CELL_RULES:
        return KEPT if rule.get("levels") == [0] else COARSENED
    is_drawn = done.get("kind") == "synthetic"
    is_flipped = done.get("kind") == "flipped" and after.describe(made[0]).role is Role.QUASI_IDENTIFIER
    happened = [FEATURES] if rule or list(made) != [name] else []
    happened += [DRAWN] if is_drawn else [FLIPPED] if is_flipped else []
    return ", ".join(happened) or KEPT
