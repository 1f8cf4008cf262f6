"""A release as one plain dict: what was asked, done, promised and found. It holds no cell value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from sfumato.attack.correspondence import Correspondence
from sfumato.attack.risk import attacked_rows
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.reading.columns import Columns
from sfumato.audit.verify import AuditReport, audit_release
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.mechanisms.registry import find_mechanism
from sfumato.progress import Progress
from sfumato.report.detail import detail_left
from sfumato.report.guarantee_texts import assumptions_of, guarantee_in_words, number_in_words
from sfumato.report.in_short import InShort, in_short
from sfumato.report.measured import risk_left, risk_section, utility_kept
from sfumato.report.not_covered import not_promised
from sfumato.report.prepared_columns import prepared_in_words
from sfumato.report.reproduction import Asked, audit_command, command_for, mechanism_of
from sfumato.schema import Role

# What became of every column: names, roles and how much detail is left, never a value.


KEPT, DROPPED, COARSENED, FEATURES = "kept unchanged", "dropped", "coarsened", "turned into 0/1 features"
MOVED, FLIPPED, DRAWN, ADDED = "moved within buckets", "some cells flipped", "drawn at random", "added"
PREPARED = "prepared, then "
TYPICAL = "made the typical value of each class"
MOST_SHOWN = 200

_CELL_RULES = ("generalized", "hierarchy")


def column_changes(
    manifest: Manifest, released: AnyTable, original: AnyTable | None = None, *, most: int | None = MOST_SHOWN
) -> dict[str, Any]:
    """List the columns of the original, and those that the release adds.

    Parameters
    ----------
    original : Table or BinaryTable or None
        Without it, roles of dropped columns and how much detail is left are not known.
    most : int or None
        How many are listed; ``None``: all.

    Returns
    -------
    dict
        ``n_columns``, and ``changes``: of up to ``most`` columns the ``name``, ``role``, ``change``, ``detail_left``
        (see :func:`sfumato.report.detail.detail_left`; ``None`` where not known) and ``n_features``, the released
        columns made of it. A column that is neither released nor named by the manifest is not named (decision 0005).
    """
    after, before = Columns(released), Columns(original) if original is not None else None
    tables = None
    if original is not None:
        tables = Correspondence(attacked_rows(original, manifest), released, manifest)
    rules = {str(entry["name"]): entry for entry in manifest.recodings if "name" in entry and "column" in entry}
    made: dict[str, list[str]] = {}
    for name in after.names:
        made.setdefault(str(rules[name]["column"]) if name in rules else name, []).append(name)
    dropped = frozenset(manifest.dropped_columns)
    prepared = {str(entry["column"]) for entry in manifest.prepared}
    sources = before.sources if before is not None else ()
    in_order = [name for name in sources if name in made or name in dropped]
    known = dict.fromkeys([*in_order, *made, *manifest.dropped_columns])
    changes = []
    for name in islice(known, most):
        left = None if tables is None or name not in tables.original else detail_left(tables, name)
        done = _in_words(name, made.get(name, []), rules, manifest.perturbation or {}, after)
        if done == COARSENED and left == 1:
            done = KEPT  # no class needed a range of it
        change = f"{PREPARED if name in prepared and name in made else ''}{done}"
        described = _described(name, made.get(name, []), after, before)
        changes.append(described | {"change": change, "detail_left": left})
    return {"n_columns": len(known), "changes": changes}


def _described(name: str, made: Sequence[str], after: Columns, before: Columns | None) -> dict[str, Any]:
    is_known = before is not None and name in before
    role: str | None = None
    if before is not None and is_known:
        role = str(before.describe(name).role)
    elif made:
        role = str(after.describe(made[0]).role)
    return {
        "name": name,
        "role": role,
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
    if rule.get("rule") == "typical":
        return TYPICAL
    if rule.get("rule") in _CELL_RULES:
        return KEPT if rule.get("levels") == [0] else COARSENED
    is_drawn = done.get("kind") == "synthetic"
    is_flipped = done.get("kind") == "flipped" and made[0] in after.with_role(Role.QUASI_IDENTIFIER)
    happened = [FEATURES] if rule or list(made) != [name] else []
    happened += [DRAWN] if is_drawn else [FLIPPED] if is_flipped else []
    return ", ".join(happened) or KEPT


SUMMARY_VERSION = 1

_LONGEST_VALUE = 300
_PERTURBED = {
    "flipped": "{n_cells_changed:,} cells of the features were changed at random; the release does not say which.",
    "synthetic": "The released rows were drawn from noisy counts: no row belongs to a person.",
    "bucketed": "Values of {n_slices} slices of columns were moved among the rows that share a value of '{bucket}'.",
}


def summarize(
    release: Release,
    original: AnyTable | None = None,
    *,
    mechanism: Mechanism | None = None,
    audit: AuditReport | None = None,
    asked: Asked | None = None,
    quick: bool = False,
    risk: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Collect everything that a report says.

    Parameters
    ----------
    original : Table or BinaryTable or None
        With it utility and risk are measured, and the columns are compared.
    mechanism : Mechanism or None
        What made the release; by default it is built again from the manifest.
    audit : AuditReport or None
        An audit of the files; by default the tables at hand are audited.
    asked : Asked or None
        How the original was described, for the shell line that makes the release again.
    quick : bool
        Whether to leave out the training of classifiers.
    risk : mapping or None
        That of an earlier summary of the same release, not to be measured again.

    Raises
    ------
    AuditFailedError
        If the audit does not confirm the release: there is no report of such a one.
    ManifestError
        If an entry that the audit does not look at is not as this program writes it.

    Examples
    --------
    >>> from sfumato import Mondrian, release
    >>> from sfumato.datasets.admissions import admissions
    >>> table = admissions(n_rows=50).keep(["age", "sex", "readmitted"])
    >>> summarize(release(table, Mondrian(k=5)))["guarantees"][0]["title"]
    'k-anonymity'
    """
    manifest, known = release.manifest, asked or Asked()
    is_proposal = manifest.output.get("sha256") is None  # whose rows are in the original's order
    places = np.arange(release.table.n_rows) if is_proposal else None
    checked = audit or audit_release(
        release.table,
        manifest.to_dict(),
        AuditorHas(
            original=original,
            original_sha256=original.source.sha256 if original is not None and original.source else None,
            key=release.audit_key,
            roles=True,
        ),
        publisher=PublisherKnows(places=places),
    )
    checked.raise_if_failed()
    rebuilt = mechanism or mechanism_of(manifest, known.declared, original)
    utility = utility_kept(release, original, rebuilt, quick=quick, progress=progress)
    risk = risk if risk is not None else risk_section(risk_left(release, original, progress=progress))
    columns = column_changes(manifest, release.table, original)
    command, notes = command_for(manifest, original, known)
    done = _done(manifest)
    guarantees = [guarantee_in_words(entry) for entry in manifest.guarantees]
    verdict, told = _verdicts(release, original, utility, risk)
    return {
        "sfumato_report": SUMMARY_VERSION,
        "audience": "internal",
        "name": manifest.output.get("name"),
        "verdict": verdict.to_dict(),
        "verdict_for_others": told.to_dict(),
        "in_short": _in_short(manifest, done, guarantees, checked),
        "asked": _asked(manifest),
        "done": done,
        "guarantees": guarantees,
        "not_promised": not_promised(release),
        "assumptions": assumptions_of(manifest),
        "audit": {
            "verdict": checked.verdict,
            "last_line": checked.last_line,
            "unchecked": [
                {"name": one.name, "message": one.message, "remedy": one.remedy} for one in checked.unchecked
            ],
            "n_checks": len(checked.checks),
            "with_original": original is not None,
            "checks": [check.message for check in checked.checks],
        },
        "utility": utility,
        "risk": risk,
        "columns": columns,
        "reproduction": {
            "command": command,
            "notes": notes,
            "audit_command": _audit_command(manifest),
            "hashes": _hashes(manifest),
            "versions": dict(manifest.versions),
            "seed": manifest.mechanism.get("seed"),
        },
    }


def _before(manifest: Manifest) -> Mapping[str, Any]:
    """Give what the manifest says of the original: nothing, where the release is differentially private."""
    return manifest.input or {}


def _target(manifest: Manifest) -> str | None:
    columns = manifest.output["columns"]
    return next((column["name"] for column in columns if column["role"] == str(Role.TARGET)), None)


def _asked(manifest: Manifest) -> dict[str, Any]:
    name = str(manifest.mechanism["name"])
    info = find_mechanism(name)
    stated = manifest.mechanism.get("parameters") or {}
    return {
        "mechanism": name,
        "why": info.why if info else "",
        "target": _target(manifest),
        "parameters": [{"name": key, "value": _shown(value)} for key, value in stated.items() if value is not None],
    }


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"


def _done(manifest: Manifest) -> dict[str, Any]:
    perturbed = dict(manifest.perturbation or {})
    words = _PERTURBED.get(str(perturbed.get("kind")), "")
    return {
        "n_rows_before": _before(manifest).get("rows"),
        "n_rows_after": manifest.output["rows"],
        "n_suppressed": manifest.suppressed_rows,
        "n_incomplete": manifest.missing.get("n_dropped", 0),
        "n_columns_before": _before(manifest).get("columns"),
        "n_columns_after": len(manifest.output["columns"]),
        "n_dropped": len(manifest.dropped_columns),
        "perturbation": words.format(**perturbed, n_slices=len(perturbed.get("slices", ()))),
        "prepared": prepared_in_words(manifest),
        "stated": _stated(manifest),
        "is_synthetic": perturbed.get("kind") == "synthetic",
    }


def _stated(manifest: Manifest) -> list[dict[str, str]]:
    """Single figures of the manifest's evidence; lists are for pictures."""
    figures = [entry for found in manifest.evidence.values() for entry in found.items()]
    return [
        {"name": name.replace("_", " "), "value": number_in_words(value)}
        for name, value in figures
        if isinstance(value, str | int | float)
    ]


def _verdicts(
    release: Release, original: AnyTable | None, utility: Mapping[str, Any], risk: Mapping[str, Any]
) -> tuple[InShort, InShort]:
    """Sum the release up for the data holder, and for others.

    Others are told of the columns that they see; of a release drawn with noise, nothing measured beside the original.
    """
    holder, seen = in_short(release, original, utility=utility, risk=risk), in_short(release)
    is_noisy = release.manifest.is_differentially_private or _done(release.manifest)["is_synthetic"]
    told = replace(seen, prediction=holder.prediction, reidentified=holder.reidentified, counts_rows=holder.counts_rows)
    return holder, seen if is_noisy else told


def _in_short(
    manifest: Manifest,
    done: Mapping[str, Any],
    guarantees: list[dict[str, Any]],
    audit: AuditReport,
) -> list[str]:
    """Say what was made, and how the audit ended."""
    of_all = f" of {done['n_rows_before']:,}" if done["n_rows_before"] is not None else ""
    rows = f"{done['n_rows_after']:,}{of_all} rows"
    names = ", ".join(entry["title"] for entry in guarantees)
    return [
        f"{rows} were released by {manifest.mechanism['name']}, in {done['n_columns_after']:,} columns.",
        _audit_in_short(names, audit),
    ]


def _audit_in_short(names: str, audit: AuditReport) -> str:
    if not audit.unchecked:
        return f"An independent audit confirms the promises: {names}."
    exceptions = ", ".join(dict.fromkeys(one.name for one in audit.unchecked))
    return f"Promised: {names}. An independent audit confirms this except for what it could not check: {exceptions}."


def _audit_command(manifest: Manifest) -> str | None:
    name = manifest.output.get("name")
    return audit_command(name) if name else None


def _hashes(manifest: Manifest) -> list[dict[str, Any]]:
    """Hash of what is published; the manifest has no plain hash of anything else."""
    return [{"what": "release", "sha256": manifest.output.get("sha256") or "not written down"}]
