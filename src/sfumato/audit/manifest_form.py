"""The audit's own account of a manifest's form: every key at every depth, its type, and its place.

What is not listed here is refused: a reader could take it for something that was checked. A key that ends in ``?`` may
be left out; a type that ends in ``?`` may be null; a tuple holds alternatives, and a set the words that are allowed.
Parameters of mechanisms are listed in ``sfumato/parameters.json``, which is made from their declarations: the audit
shares these data with mechanisms and no code.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.audit.guarantee_forms import FORMS, GuaranteeForm
from sfumato.errors import ManifestError, ManifestRefusedError
from sfumato.guarantees import GUARANTEES, ROW
from sfumato.schema import Kind, Role

MANIFEST_VERSION = 3
"""Version of the form that this audit knows."""


@dataclass(frozen=True)
class Names:
    """A mapping whose keys are names from the data (columns, labels, parties), with the same form for each."""

    each: Any
    of_columns: bool = False


@dataclass(frozen=True)
class Kinds:
    """Records that a word distinguishes; what they share comes first, and ``last`` before what may be left out."""

    by: str
    first: Mapping[str, Any]
    own: Mapping[str, Mapping[str, Any] | GuaranteeForm]
    last: Mapping[str, Any]
    or_null: bool = False
    other: Mapping[str, Any] | None = None
    """Form of records with another word, where there may be some."""

    def record(self, word: str) -> dict[str, Any]:
        """Give the form of one kind."""
        known = self.own[word]
        own = known.form if isinstance(known, GuaranteeForm) else known
        optional = {key: form for key, form in own.items() if key.endswith("?")}
        required = {key: form for key, form in own.items() if key not in optional}
        is_of_rows = isinstance(known, GuaranteeForm) and not GUARANTEES[word].counts_persons
        unit = {"unit": frozenset({ROW})} if is_of_rows else {}
        return {**self.first, self.by: "text", **unit, **required, **self.last, **optional}


@dataclass(frozen=True)
class Limited:
    """A text, or a number in its range and with its digits, as a mechanism declares it."""

    form: Mapping[str, Any]

    def fits(self, found: Any) -> bool:
        """Whether an entry is of this form."""
        if self.form["type"] == "string":
            return isinstance(found, str) and re.fullmatch(self.form.get("pattern", ".*"), found, re.DOTALL) is not None
        if not (_is_whole(found) if self.form["type"] == "integer" else _is_finite(found)):
            return False
        limits: Mapping[str, Callable[[Any, Any], bool]] = {
            "minimum": operator.ge,
            "exclusiveMinimum": operator.gt,
            "maximum": operator.le,
            "exclusiveMaximum": operator.lt,
            "digits": _has_digits,
        }
        return all(holds(found, self.form[name]) for name, holds in limits.items() if name in self.form)

    @property
    def names_columns(self) -> bool:
        """Whether the text names columns."""
        return self.form.get("names") == "columns"


def _has_digits(found: float, digits: int) -> bool:
    """Whether a number has so many significant digits at most, and is no smaller than a setting ever is."""
    return float(f"{found:.{digits - 1}e}") == found and not 0 < abs(found) < _SMALLEST


_SMALLEST = 1e-9
RELEASE_NUMBER = r"(0|[1-9][0-9]?)(\.(0|[1-9][0-9]?)){1,2}"
"""First numbers of a version, which are all that a manifest has of it."""


def _each(names: str, form: Any) -> dict[str, Any]:
    return {f"{name}?": form for name in names.split()}


_LEVEL = Limited({"type": "integer", "minimum": 0, "maximum": 100})
_STEP = frozenset({"feature selection", "counts"})
_REGION = frozenset({"baseline", "I", "II", "III", "IV"})
_WHOLE_COLUMN = frozenset({"values", "as-is", "drop"})
_ROWS = frozenset({"kept", "dropped"})

_GUARANTEES = Kinds("kind", {"kind": "text", "unit": "text"}, FORMS, {"statement": "text", "audited": "number?"})

_RECODINGS = Kinds(
    "rule",
    {"name": "text", "column": "text"},
    {
        "as-is": {},
        "missing": {},
        "one-of": {"values?": ["text"]},
        "interval": {"above?": "number", "upto?": "number"},
        "generalized": {"kind": "kind", "domain?": ["text"]},
        "typical": {"kind": "kind", "domain?": ["text"]},
        "hierarchy": {"kind": "kind", "labels": Names(["text"]), "levels?": [_LEVEL], "domain?": ["text"]},
    },
    {},
)

_PERTURBATION = Kinds(
    "kind",
    {},
    {
        "flipped": {"n_cells_changed": "count"},
        "bucketed": {"bucket": "text", "slices": [["text"]], "max_copied_fraction?": "number"},
        "synthetic": {
            "threshold": "number",
            "budget": [
                {
                    "step": _STEP,
                    "noise": "text",
                    "n_choices": "count",
                    "sensitivity": "count",
                    "scale": "number",
                    "epsilon": "number",
                }
            ],
        },
    },
    {},
    or_null=True,
)

_PLAN = {
    "bands": Limited({"type": "integer", "minimum": 0, "maximum": 1000}),
    "missing_features": "truth",
    "unlisted": "text",
    "columns": Names((_WHOLE_COLUMN, {"cuts": ["number"]}, {"bands": "count"}, {"one_of": ["text"], "name?": "text"})),
}
_PARAMETERS = {
    **_each("k r n_features n_folds n_random_orders min_samples_leaf n_beside_sensitive max_values_checked", "count"),
    **_each("n_stale n_repeats", "count"),
    **_each("n_slices random_state k_map", "count?"),
    **_each("l t c beta delta alpha delta_max delta_min max_unique_fraction", "number?"),
    **_each("epsilon max_breach_increase min_privacy_gain max_suppressed_fraction penalty_weight", "number"),
    "max_added_error?": "number",
    "min_disclosure_bits?": "number?",
    **_each("max_false_fraction threshold max_seconds time_budget min_released_fraction", "number"),
    **_each("max_performance_loss", "number?"),
    **_each("allow_increase refine regroup slicing strict keep_frequent", "truth"),
    **_each("variant distance likeness attacker learner metric calibration loss", "text"),
    **_each("criterion choose search lists test generalization rule split splits on_infeasible", "text"),
    **_each("gain_correction guide direction", "text"),
    **_each("sensitive gain_target", "text?"),
    "targets?": ("text?", ["text"]),
    "reveals?": "text",
    "hierarchies?": ("null", ["text"]),
    "weights?": ("text", ["number"], Names("number")),
    "factors?": _each("anonymity uniqueness", "number"),
    "then?": "text",
    "then_settings?": Names(("truth", "number", "text")),
    "binarize?": ("text?", _PLAN),
    "agreed?": {
        **_each("mode sharing", "text"),
        "weights?": ["number"],
        "privacy?": "text",
        "epsilon?": "number?",
        "min_count?": "count?",
        "max_rows?": "count",
        **_each("drop_incomplete dry_run", "truth"),
        **_each("ranking tradeoff", "text"),
        "joint_k?": "count",
        "generalization_sha256?": "hash",
        "missing?": ["text"],
    },
    "shared_schema_sha256?": "hash",
    "session?": {"id": "text", "mode": "text", "parties": Names("text")},
}


def _declared(form: Mapping[str, Any]) -> Any:
    """Put the form of a parameter, which is JSON Schema, into the words of this module."""
    if "oneOf" in form:
        return tuple(_declared(one) for one in form["oneOf"])
    if "enum" in form:
        return frozenset(form["enum"])
    if form["type"] == "array":
        return [_declared(form["items"])]
    if form["type"] == "object" and "properties" in form:
        keys = {key if key in form["required"] else f"{key}?": own for key, own in form["properties"].items()}
        return {key: _declared(own) for key, own in keys.items()}
    if form["type"] == "object":
        return Names(_declared(form["additionalProperties"]), of_columns=form.get("names") == "columns")
    return {"null": "null", "boolean": "truth"}.get(form["type"]) or Limited(form)


_SHIPPED = Path(__file__).parents[1] / "parameters.json"
OWN_PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    name: {f"{key}?": _declared(form) for key, form in forms.items()}
    for name, forms in json.loads(_SHIPPED.read_text(encoding="utf-8")).items()
}
"""Parameters of the mechanisms of this package, by the mechanism's name."""


def _number(least: float, most: float) -> Limited:
    return Limited({"type": "number", "minimum": least, "maximum": most, "digits": 3})


def _count(least: int, most: int) -> Limited:
    return Limited({"type": "integer", "minimum": least, "maximum": most})


_RANKINGS = frozenset(
    ["mutual-information", "normalized", "gain-ratio", "symmetrical-uncertainty", "chi-squared", "gini"]
)
_SESSION = {
    "agreed?": {
        "mode?": frozenset({"totals", "selection-only"}),
        "sharing?": frozenset({"seeds", "shares"}),
        "weights?": [_number(0, 10**6)],
        "privacy?": frozenset({"pooled", "average"}),
        "epsilon?": ("null", _number(0, 10**6)),
        "min_count?": ("null", _count(0, 10**6)),
        "max_rows?": _count(0, 10**6),
        **_each("drop_incomplete dry_run", "truth"),
        "ranking?": _RANKINGS,
        "tradeoff?": frozenset({"mean", "product", "harmonic"}),
        "joint_k?": _count(0, 10**6),
        "generalization_sha256?": "hash",
        "missing?": ["text"],
    },
    "shared_schema_sha256?": "hash",
    "session?": _PARAMETERS["session?"],
}
OF_SEVERAL_PARTIES: Mapping[str, Mapping[str, Any]] = {
    "collaboration": {"min_privacy_gain?": _number(0, 1), **_SESSION},
    "joint-k": {"k?": _count(2, 10**6), **_SESSION},
}
KNOWN_MECHANISMS = frozenset({*OWN_PARAMETERS, *OF_SEVERAL_PARTIES})
_SEED = ("null", _count(0, 2**32 - 1))
_MECHANISM = Kinds(
    "name",
    {},
    {name: {"parameters": forms, "seed": _SEED} for name, forms in {**OWN_PARAMETERS, **OF_SEVERAL_PARTIES}.items()},
    {},
    other={"name": "word", "parameters": _PARAMETERS, "seed": _SEED},
)
"""A mechanism of another package states what it likes, which is an exception."""

_ALPHA = frozenset({"distp", "baseline"})
_THREE = ("performance", "privacy", "size")
_DISCLOSURE = {
    "n_leaves": "count",
    "n_groups": "count",
    **{
        f"{which}_{measure}_bits_of_{of}": "number"
        for of in ("leaves", "groups")
        for measure in ("big", "icr", "tidi")
        for which in ("least", "mean")
    },
    "n_branches_pruned": "count",
    "n_branches_pruned_at_no_error": "count",
    "largest_error_risk_ratio": "number?",
    "groups_are": "text",
}
_EVIDENCE = {
    "utility?": {
        **_each("n_features_offered n_features_released n_columns_offered n_columns_released", "count"),
        **_each("n_groups n_slices n_buckets n_classes_of_cells grown_on_rows of_rows n_rounds", "count"),
        **_each("hamming_separation hamming_separation_of_all_features", "number"),
        **_each("hamming_separation_before_flipping hamming_separation_of_synthetic_rows", "number"),
        **_each("distinguished_pairs_fraction distinguished_pairs_fraction_of_all_features", "number"),
        **_each("flipped_fraction global_certainty_penalty mean_rows_of_a_group suppressed_fraction", "number"),
        **_each("contingency_within_slices_fraction mean_share_of_values_left_open", "number"),
        **_each("loss certainty_penalty non_uniform_entropy height height_sum", "number"),
        **_each("discernibility average_class_size classification target_information", "number"),
        "least_possible_loss?": "number?",
        "is_proven_optimal?": "truth",
        "levels?": Names((_LEVEL, [_LEVEL])),
        "information_gain_bits?": Names("number?"),
        **_each("performance performance_of_all_columns performance_loss_percent", "number"),
        "performance_loss_interval?": ["number"],
        "p_value_of_the_difference?": "number?",
        **_each("test tree suppression_limit_counts", "text"),
    },
    "risk?": {
        **_each("containment_level anonymity_level least_different_sensitive_values", "count"),
        **_each("smallest_bucket estimated_on_rows of_rows", "count"),
        **_each("unique_pattern_fraction unique_pattern_fraction_of_all_features", "number"),
        **_each("largest_share_of_a_sensitive_value breach_increase_percent", "number"),
        "breach_increase_interval?": ["number"],
        **_each("confidence_of_the_intervals attacker_performance", "number"),
        **_each("attacker_performance_with_all_columns share_of_the_most_frequent_value", "number"),
        **_each("sensitive_column what_this_is anonymity_level_left_out", "text"),
        **_each("unique_row_fraction copied_row_fraction", "number"),
    },
    "search?": {
        **_each("method search chosen_by bound_on", "text"),
        "proven?": "truth",
        **_each("n_candidates separated_pairs separated_pairs_bound n_nodes", "count"),
        "n_maximal_sets?": "count?",
        **_each("bound gap gap_fraction cross_validated_auc", "number"),
    },
    "choice?": {
        "n_candidates": "count",
        "candidates_by_region": dict.fromkeys(("I", "II", "III", "IV"), "count"),
        "region_of_the_choice": _REGION,
        "weights": {**dict.fromkeys(_THREE, "number"), **_each("anonymity uniqueness", "number")},
        "candidates": [
            {
                "columns": ["text"],
                "n_columns": "count",
                "score": "number",
                "performance": "number",
                "p_value": "number?",
                "breach_increase_percent": "number",
                "region": _REGION,
                "ranks": {**dict.fromkeys(_THREE, "count"), **_each("anonymity uniqueness", "count")},
                "on_pareto_front": "truth",
                "chosen": "truth",
                "topsis?": "number",
                **_each("topsis_place lexicographic_place", "count"),
            }
        ],
        "note_on_weights?": "text",
        "alpha?": _ALPHA,
        "first_by?": {"topsis": ["text"], "lexicographic": ["text"]},
    },
    "stability?": {
        "n_random_orders": "count",
        "share_with_the_same_choice": "number",
        "n_different_choices": "count",
        "most_frequent_choices": [{"columns": ("null", ["text"]), "share": "number"}],
    },
    "calibration?": {"asked_epsilon": "number", "proven_epsilon": "number", "warning": "text"},
    "disclosure?": _DISCLOSURE,
}

_PERSON_ROWS = {"column": "text", "rule": frozenset({"first", "last", "random"}), "n_dropped": "count"}
_COMMITMENT = {"scheme": frozenset({"hmac-sha256"}), "release": "number of a release", "value": "hash"}
_ORDER = frozenset({"sorted", "as-read"})
_COLUMN = {
    "name": "text",
    "role": "role",
    "kind": "kind",
    "domain?": ["text"],
    "missing?": ["text"],
    "unit?": "text",
    "confirmed?": "truth",
    "label?": "text",
    "value_labels?": [{"value": ("number", "text"), "label": "text"}],
}
_PACKAGES = "sfumato zlib pyarrow xlsxwriter opendp pyreadstat"
_SCOPE = frozenset({"release", "project"})
_PREPARED = Kinds(
    "operation",
    {"column": "text"},
    {
        "drop": {},
        "age": {"at": "day"},
        "bottom": {"value": "number"},
        "top": {"value": "number"},
        "round": {"value": "above 0"},
        "mask": {"keep_first": "count", "keep_last": "count", "character": "text"},
        "pseudonym": {"scope": _SCOPE},
        "shift": {"days": "count", "scope": _SCOPE, "by": "text?"},
    },
    {},
)


_MANIFEST = {
    "sfumato_manifest": "version",
    "input": (
        "null",
        {
            "name": "text?",
            "commitment": ("null", _COMMITMENT),
            "format": "word",
            "rows": "count",
            "columns": "count",
            "one_row_per_person?": _PERSON_ROWS,
            "read_as?": Names("text"),
            "parties?": "count",
            "prepared?": [_PREPARED],
        },
    ),
    "output": {
        "name": "text?",
        "sha256": "hash?",
        "format": "word",
        "rows": "count",
        "order": _ORDER,
        "columns": [_COLUMN],
        "escaped_formulas?": "truth",
    },
    "mechanism": _MECHANISM,
    "missing": {"tokens": ["text"], "rows?": _ROWS, "n_dropped?": "count", "columns?": Names(["text"])},
    "dropped_columns": ["text"],
    "recodings": [_RECODINGS],
    "suppressed_rows": "count",
    "guarantees": [_GUARANTEES],
    "evidence": _EVIDENCE,
    "versions": _each(_PACKAGES, "release"),
    "perturbation": _PERTURBATION,
    "digest": "hash",
}


def _is_whole(found: Any) -> bool:
    return isinstance(found, int) and not isinstance(found, bool)


def _is_finite(found: Any) -> bool:
    return _is_whole(found) or (isinstance(found, float) and math.isfinite(found))


def _fits(pattern: str) -> Callable[[Any], bool]:
    return lambda found: isinstance(found, str) and re.fullmatch(pattern, found) is not None


_LEAVES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "null": (lambda found: found is None, "null"),
    "truth": (lambda found: isinstance(found, bool), "true or false"),
    "text": (lambda found: isinstance(found, str), "a text"),
    "word": (_fits(r"[a-z0-9][a-z0-9.-]{0,59}"), "a word of small letters, digits, dots and hyphens"),
    "day": (_fits(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "a day such as 2026-01-31"),
    "hash": (_fits(r"[0-9a-f]{64}"), "a SHA-256"),
    "release": (_fits(RELEASE_NUMBER), "a version of two or three numbers"),
    "role": (lambda found: isinstance(found, str) and found in set(Role), "a role"),
    "kind": (lambda found: isinstance(found, str) and found in set(Kind), "a kind"),
    "version": (lambda found: _is_whole(found) and found == MANIFEST_VERSION, "the version of this form"),
    "number of a release": (_fits(r"[0-9a-f]{32}"), "32 digits of a hexadecimal number"),
    "count": (lambda found: _is_whole(found) and 0 <= found < 2**63, "a whole number from 0 below 2 to the 63"),
    "crowd": (lambda found: _is_whole(found) and 2 <= found < 2**63, "a whole number from 2, since 1 promises nothing"),
    "number": (lambda found: _is_finite(found), "a finite number"),
    "share": (
        lambda found: _is_finite(found) and 0 <= found < 1,
        "from 0 and below 1, which promises nothing",
    ),
    "proper share": (
        lambda found: _is_finite(found) and 0 < found < 1,
        "above 0, which no table keeps, and below 1, which promises nothing",
    ),
    "above 0": (lambda found: _is_finite(found) and found > 0, "a number above 0"),
    "above 1": (lambda found: _is_finite(found) and found > 1, "above 1, which promises nothing"),
}


def parsed_manifest(text: str) -> Any:
    """Parse a manifest's text: JSON in which no key comes twice and every number is one.

    Raises
    ------
    ManifestError
        If it is not JSON, or no manifest of the version that this audit knows.
    ManifestRefusedError
        If a key comes twice, a number is none, an entry is not of its form, or the text is not the canonical one.
    """
    try:
        found = json.loads(text, object_pairs_hook=_without_repetition, parse_float=_finite, parse_constant=_finite)
    except ManifestRefusedError:
        raise
    except (ValueError, RecursionError):
        problem = "the manifest is not JSON"
        raise ManifestError(problem) from None
    check_form(found)
    if _canonical(found) != text:
        problem = "the manifest's bytes are not the canonical ones of its content: order, blanks or spelling differ"
        raise ManifestRefusedError(problem)
    return found


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        problem = "the manifest has a key twice: readers may disagree on its meaning"
        raise ManifestRefusedError(problem)
    return dict(pairs)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        problem = "the manifest holds NaN or Infinity, which are not numbers"
        raise ManifestRefusedError(problem)
    return number


def check_form(manifest: Any) -> None:
    """Refuse a manifest of another version, or one that has other entries, lacks one or has one of another type."""
    version = manifest.get("sfumato_manifest") if isinstance(manifest, Mapping) else None
    if not _is_whole(version) or version != MANIFEST_VERSION:
        problem = f"the manifest is not of version {MANIFEST_VERSION}, the only version that this audit knows"
        raise ManifestError(problem)
    for place, problem in _problems(manifest, _MANIFEST, ""):
        said = f"{place or 'the manifest'} {problem}"
        raise ManifestRefusedError(said, hint=f"the form is in docs/manifest/{MANIFEST_VERSION}.schema.json")


def _problems(found: Any, form: Any, place: str) -> Iterator[tuple[str, str]]:
    """Say what is wrong where; keys and values are not repeated, for they may come from the data."""
    chosen = _form_of(found, form)
    if chosen is None:
        yield place, f"in the manifest is not {_words(form)}"
    elif isinstance(chosen, list):
        for i, item in enumerate(found):
            yield from _problems(item, chosen[0], f"{place}[{i}]")
    elif isinstance(chosen, Names):
        for i, item in enumerate(found.values()):
            yield from _problems(item, chosen.each, f"{place}[{i}]")
    elif isinstance(chosen, dict):
        forms = {key.removesuffix("?"): own for key, own in chosen.items()}
        lacking = [key for key in chosen if not key.endswith("?") and key not in found]
        if lacking:
            yield place, f"lacks {', '.join(lacking)}"
        if not set(found) <= set(forms):
            yield place, f"has {len(set(found) - set(forms))} unknown keys"
        for key, item in found.items():
            if key in forms:
                yield from _problems(item, forms[key], f"{place}.{key}" if place else key)


def _form_of(found: Any, form: Any) -> Any:
    """Find the form that an entry is judged by: the name of its type, a list, a record; ``None`` where none fits."""
    if isinstance(form, tuple):
        return next((own for one in form if (own := _form_of(found, one)) is not None and _is_meant(found, own)), None)
    if isinstance(form, str):
        is_null = form.endswith("?") and found is None
        return form if is_null or _LEAVES[form.removesuffix("?")][0](found) else None
    if isinstance(form, frozenset):
        return form if isinstance(found, str) and found in form else None
    if isinstance(form, Limited):
        return form if form.fits(found) else None
    if isinstance(form, list):
        return form if isinstance(found, list | tuple) else None
    if isinstance(form, Kinds) and found is None and form.or_null:
        return "null"
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        return None
    if isinstance(form, Kinds):
        word = found.get(form.by)
        if not isinstance(word, str) or word not in form.own:
            return form.other
        return form.record(word)
    return form | _levels_as_parameters() if form is _PARAMETERS else form


def _levels_as_parameters() -> dict[str, str]:
    """Give the forms of parameters that are levels of guarantees, so far as they are not listed."""
    levels = [FORMS[kind].parameters[0] for kind in GUARANTEES if kind in FORMS and FORMS[kind].parameters]
    return {f"{name}?": "number?" for name in levels if f"{name}?" not in _PARAMETERS}


def _is_meant(found: Any, form: Any) -> bool:
    """Whether an alternative is meant: of records, the one whose keys are there."""
    return not isinstance(form, dict) or all(key in found for key in form if not key.endswith("?"))


def _words(form: Any) -> str:
    if isinstance(form, tuple):
        return "of a form that is known"
    if isinstance(form, str):
        return _LEAVES[form.removesuffix("?")][1] + (" or null" if form.endswith("?") else "")
    if isinstance(form, frozenset):
        return f"one of {', '.join(sorted(form))}"
    if isinstance(form, list):
        return "a list"
    if isinstance(form, Limited):
        what = "a text" if form.form["type"] == "string" else "a number"
        return f"{what} in the range and with the digits that the mechanism declares"
    return "of a kind that is known" if isinstance(form, Kinds) else "a mapping of names to entries"


def _canonical(manifest: Mapping[str, Any]) -> str:
    """Write a manifest as its publisher must have: keys in the order of this form, names by their characters."""
    return json.dumps(_ordered(manifest, _MANIFEST), indent=2, ensure_ascii=False) + "\n"


def _ordered(found: Any, form: Any) -> Any:
    chosen = _form_of(found, form)
    if isinstance(chosen, list):
        return [_ordered(item, chosen[0]) for item in found]
    if isinstance(chosen, Names):
        return {key: _ordered(found[key], chosen.each) for key in sorted(found)}
    if isinstance(chosen, dict):
        forms = {key.removesuffix("?"): own for key, own in chosen.items()}
        return {key: _ordered(found[key], own) for key, own in forms.items() if key in found}
    return found
