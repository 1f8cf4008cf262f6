"""The form of a manifest: which keys it has at every depth, and of which type, as a JSON Schema.

It follows from what guarantees and mechanisms declare, and is closed: what is not listed is refused, because a reader
could take it for something that was checked. Whoever reads a manifest, the audit too, reads it by
:func:`parsed_manifest`. ``docs/manifest/3.schema.json`` is this table as a file (``python -m sfumato.manifest_schema
docs/manifest`` writes it), and a test compares with a validator of that standard.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from sfumato.errors import ManifestError, ManifestRefusedError
from sfumato.guarantees import GUARANTEES, Guarantee
from sfumato.guarantees.forms import (
    COUNT,
    NOTHING,
    NUMBER,
    TEXT,
    TRUTH,
    Form,
    exactly,
    form_of_guarantee,
    list_of,
    named,
    number,
    or_null,
    record,
    word,
)
from sfumato.schema import Kind, Role

MANIFEST_VERSION = 3
"""Version of the form; a manifest of any other version is refused."""

SMALLEST = 1e-9
"""Numbers among the settings of a mechanism are 0 or at least so far from it."""

_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_HASH_OR_NULL = or_null(_HASH)
_TEXT_OR_NULL = or_null(TEXT)
_WORD = {"type": "string", "pattern": "^[a-z0-9][a-z0-9.-]{0,59}$"}
_NUMBER_OR_NULL = or_null(NUMBER)
_COUNT_OR_NULL = or_null(COUNT)
_LEVEL = {**COUNT, "maximum": 100}
_SEED_OR_NULL = {"oneOf": [NOTHING, {**COUNT, "maximum": 2**32 - 1}]}

_TEXTS = list_of(TEXT)
_NUMBERS = list_of(NUMBER)
_ROLE, _KIND = word(*map(str, Role)), word(*map(str, Kind))

_VALUE_LABEL = record({"value": {"oneOf": [NUMBER, TEXT]}, "label": TEXT})
_COLUMN = record(
    {"name": TEXT, "role": _ROLE, "kind": _KIND},
    {
        "domain": _TEXTS,
        "missing": _TEXTS,
        "unit": TEXT,
        "confirmed": TRUTH,
        "label": TEXT,
        "value_labels": list_of(_VALUE_LABEL),
    },
)


def _recoding(rule: str, required: Mapping[str, Form], optional: Mapping[str, Form] | None = None) -> Form:
    return record({"name": TEXT, "column": TEXT, "rule": exactly(rule), **required}, optional)


_RECODING = {
    "oneOf": [
        _recoding("as-is", {}),
        _recoding("missing", {}),
        _recoding("one-of", {}, {"values": _TEXTS}),
        _recoding("interval", {}, {"above": NUMBER, "upto": NUMBER}),
        _recoding("generalized", {"kind": _KIND}, {"domain": _TEXTS}),
        _recoding("typical", {"kind": _KIND}, {"domain": _TEXTS}),
        _recoding("hierarchy", {"kind": _KIND, "labels": named(_TEXTS)}, {"levels": list_of(_LEVEL), "domain": _TEXTS}),
    ]
}

_RULE_OF_A_PLAN = {
    "oneOf": [
        word("values", "as-is", "drop"),
        record({"cuts": _NUMBERS}),
        record({"bands": COUNT}),
        record({"one_of": _TEXTS}, {"name": TEXT}),
    ]
}
_PLAN = record(
    {
        "bands": {**COUNT, "maximum": 1000},
        "missing_features": TRUTH,
        "unlisted": TEXT,
        "columns": named(_RULE_OF_A_PLAN),
    },
)
PLAN_OR_NOTHING = {"oneOf": [NOTHING, _PLAN]}
_AGREED = record(
    {},
    {
        "mode": TEXT,
        "sharing": TEXT,
        "weights": _NUMBERS,
        "privacy": TEXT,
        "epsilon": _NUMBER_OR_NULL,
        "min_count": _COUNT_OR_NULL,
        "max_rows": COUNT,
        "drop_incomplete": TRUTH,
        "dry_run": TRUTH,
        "ranking": TEXT,
        "tradeoff": TEXT,
        "joint_k": COUNT,
        "generalization_sha256": _HASH,
        "missing": _TEXTS,
    },
)
_FURTHER = ("anonymity", "uniqueness")
_PARAMETERS: dict[str, Form] = {
    **dict.fromkeys(("k", "r", "n_features", "n_folds", "n_random_orders", "min_samples_leaf"), COUNT),
    **dict.fromkeys(("n_beside_sensitive", "max_values_checked", "n_stale", "n_repeats"), COUNT),
    **dict.fromkeys(("n_slices", "random_state", "k_map"), _COUNT_OR_NULL),
    **dict.fromkeys(
        ("l", "t", "c", "beta", "delta", "alpha", "delta_max", "delta_min", "max_unique_fraction"), _NUMBER_OR_NULL
    ),
    **dict.fromkeys(("epsilon", "max_breach_increase", "min_privacy_gain", "max_suppressed_fraction"), NUMBER),
    **dict.fromkeys(("penalty_weight", "max_added_error"), NUMBER),
    "min_disclosure_bits": _NUMBER_OR_NULL,
    **dict.fromkeys(("max_false_fraction", "threshold", "max_seconds", "time_budget", "min_released_fraction"), NUMBER),
    **dict.fromkeys(("max_performance_loss",), _NUMBER_OR_NULL),
    **dict.fromkeys(("allow_increase", "refine", "regroup", "slicing", "strict", "keep_frequent"), TRUTH),
    **dict.fromkeys(("variant", "distance", "likeness", "attacker", "learner", "metric"), TEXT),
    **dict.fromkeys(("calibration", "loss"), TEXT),
    **dict.fromkeys(("criterion", "choose", "search", "lists", "test", "generalization", "rule"), TEXT),
    **dict.fromkeys(("split", "splits", "on_infeasible", "gain_correction", "guide", "direction"), TEXT),
    **dict.fromkeys(("sensitive", "gain_target"), _TEXT_OR_NULL),
    "targets": {"oneOf": [_TEXT_OR_NULL, _TEXTS]},
    "reveals": TEXT,
    "hierarchies": {"oneOf": [{"type": "null"}, _TEXTS]},
    "weights": {"oneOf": [TEXT, _NUMBERS, named(NUMBER)]},
    "factors": record({}, dict.fromkeys(_FURTHER, NUMBER)),
    "then": TEXT,
    "then_settings": named({"oneOf": [TRUTH, NUMBER, TEXT]}),
    "binarize": {"oneOf": [_TEXT_OR_NULL, _PLAN]},
    "agreed": _AGREED,
    "shared_schema_sha256": _HASH,
    "session": record({"id": TEXT, "mode": TEXT, "parties": named(TEXT)}),
}

_UTILITY = record(
    {},
    {
        **dict.fromkeys(("n_features_offered", "n_features_released", "n_columns_offered"), COUNT),
        **dict.fromkeys(("n_columns_released", "n_groups", "n_slices", "n_buckets", "n_classes_of_cells"), COUNT),
        **dict.fromkeys(("grown_on_rows", "scored_on_rows", "of_rows", "n_rounds"), COUNT),
        **dict.fromkeys(("hamming_separation", "hamming_separation_of_all_features"), NUMBER),
        **dict.fromkeys(("hamming_separation_before_flipping", "hamming_separation_of_synthetic_rows"), NUMBER),
        **dict.fromkeys(
            ("distinguished_pairs_fraction", "distinguished_pairs_fraction_of_all_features", "flipped_fraction"),
            NUMBER,
        ),
        **dict.fromkeys(("global_certainty_penalty", "mean_rows_of_a_group", "suppressed_fraction"), NUMBER),
        **dict.fromkeys(("contingency_within_slices_fraction", "mean_share_of_values_left_open"), NUMBER),
        **dict.fromkeys(("loss", "certainty_penalty", "non_uniform_entropy", "height", "height_sum"), NUMBER),
        **dict.fromkeys(("discernibility", "average_class_size", "classification", "target_information"), NUMBER),
        "least_possible_loss": _NUMBER_OR_NULL,
        "is_proven_optimal": TRUTH,
        "levels": named({"oneOf": [_LEVEL, list_of(_LEVEL)]}),
        "information_gain_bits": named(_NUMBER_OR_NULL),
        **dict.fromkeys(("performance", "performance_of_all_columns", "performance_loss_percent"), NUMBER),
        "performance_loss_interval": _NUMBERS,
        "p_value_of_the_difference": _NUMBER_OR_NULL,
        **dict.fromkeys(("test", "tree", "suppression_limit_counts"), TEXT),
    },
)
_RISK = record(
    {},
    {
        **dict.fromkeys(("containment_level", "anonymity_level", "least_different_sensitive_values"), COUNT),
        **dict.fromkeys(("smallest_bucket", "estimated_on_rows", "of_rows"), COUNT),
        **dict.fromkeys(("unique_pattern_fraction", "unique_pattern_fraction_of_all_features"), NUMBER),
        **dict.fromkeys(("largest_share_of_a_sensitive_value", "breach_increase_percent"), NUMBER),
        "breach_increase_interval": _NUMBERS,
        **dict.fromkeys(("confidence_of_the_intervals", "attacker_performance"), NUMBER),
        **dict.fromkeys(("attacker_performance_with_all_columns", "share_of_the_most_frequent_value"), NUMBER),
        **dict.fromkeys(("sensitive_column", "what_this_is", "anonymity_level_left_out"), TEXT),
        **dict.fromkeys(("unique_row_fraction", "copied_row_fraction"), NUMBER),
    },
)
_SEARCH = record(
    {},
    {
        **dict.fromkeys(("method", "search", "chosen_by", "bound_on"), TEXT),
        "proven": TRUTH,
        **dict.fromkeys(("n_candidates", "separated_pairs", "separated_pairs_bound", "n_nodes"), COUNT),
        "n_maximal_sets": _COUNT_OR_NULL,
        **dict.fromkeys(("bound", "gap", "gap_fraction", "cross_validated_auc"), NUMBER),
    },
)
_OF_LEAVES_AND_GROUPS = tuple(
    f"{which}_{measure}_bits_of_{of}"
    for of in ("leaves", "groups")
    for measure in ("big", "icr", "tidi")
    for which in ("least", "mean")
)
_DISCLOSURE = record(
    {
        **dict.fromkeys(("n_leaves", "n_groups"), COUNT),
        **dict.fromkeys(_OF_LEAVES_AND_GROUPS, NUMBER),
        **dict.fromkeys(("n_branches_pruned", "n_branches_pruned_at_no_error"), COUNT),
        "largest_error_risk_ratio": _NUMBER_OR_NULL,
        "groups_are": TEXT,
    }
)
_REGION = word("baseline", "I", "II", "III", "IV")
_CANDIDATE = record(
    {
        "columns": _TEXTS,
        "n_columns": COUNT,
        "score": NUMBER,
        "performance": NUMBER,
        "p_value": _NUMBER_OR_NULL,
        "breach_increase_percent": NUMBER,
        "region": _REGION,
        "ranks": record(dict.fromkeys(("performance", "privacy", "size"), COUNT), dict.fromkeys(_FURTHER, COUNT)),
        "on_pareto_front": TRUTH,
        "chosen": TRUTH,
    },
    {"topsis": NUMBER, "topsis_place": COUNT, "lexicographic_place": COUNT},
)
_CHOICE = record(
    {
        "n_candidates": COUNT,
        "candidates_by_region": record(dict.fromkeys(("I", "II", "III", "IV"), COUNT)),
        "region_of_the_choice": _REGION,
        "weights": record(dict.fromkeys(("performance", "privacy", "size"), NUMBER), dict.fromkeys(_FURTHER, NUMBER)),
        "candidates": list_of(_CANDIDATE),
    },
    {
        "note_on_weights": TEXT,
        "alpha": word("distp", "baseline"),
        "first_by": record({"topsis": _TEXTS, "lexicographic": _TEXTS}),
    },
)
_STABILITY = record(
    {
        "n_random_orders": COUNT,
        "share_with_the_same_choice": NUMBER,
        "n_different_choices": COUNT,
        "most_frequent_choices": list_of(
            record({"columns": {"oneOf": [{"type": "null"}, _TEXTS]}, "share": NUMBER}),
        ),
    }
)
_EVIDENCE = record(
    {},
    {
        "utility": _UTILITY,
        "risk": _RISK,
        "search": _SEARCH,
        "choice": _CHOICE,
        "stability": _STABILITY,
        "calibration": record({"asked_epsilon": NUMBER, "proven_epsilon": NUMBER, "warning": TEXT}),
        "disclosure": _DISCLOSURE,
    },
)

_SPENDING = record(
    {
        "step": word("feature selection", "counts"),
        "noise": TEXT,
        "n_choices": COUNT,
        "sensitivity": COUNT,
        "scale": NUMBER,
        "epsilon": NUMBER,
    }
)
_FLIPPED = record({"kind": exactly("flipped"), "n_cells_changed": COUNT})
_SYNTHETIC = record({"kind": exactly("synthetic"), "threshold": NUMBER, "budget": list_of(_SPENDING)})
_BUCKETED = record(
    {"kind": exactly("bucketed"), "bucket": TEXT, "slices": list_of(_TEXTS)}, {"max_copied_fraction": NUMBER}
)
_PERTURBATION = {"oneOf": [{"type": "null"}, _FLIPPED, _SYNTHETIC, _BUCKETED]}
VERSION = {"type": "string", "pattern": "^(0|[1-9][0-9]?)(\\.(0|[1-9][0-9]?)){1,2}$"}
_PACKAGES = ("sfumato", "zlib", "pyarrow", "xlsxwriter", "opendp", "pyreadstat")

COMMITMENT_SCHEME = "hmac-sha256"
_COMMITMENT = record(
    {
        "scheme": exactly(COMMITMENT_SCHEME),
        "release": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
        "value": _HASH,
    }
)
_ORDER = word("sorted", "as-read")
_SCOPE = word("release", "project")


def _operation(name: str, required: Mapping[str, Form] | None = None) -> Form:
    return record({"column": TEXT, "operation": exactly(name), **(required or {})})


_PREPARED = {
    "oneOf": [
        _operation("drop"),
        _operation("age", {"at": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}}),
        _operation("bottom", {"value": NUMBER}),
        _operation("top", {"value": NUMBER}),
        _operation("round", {"value": {"type": "number", "exclusiveMinimum": 0}}),
        _operation("mask", {"keep_first": COUNT, "keep_last": COUNT, "character": TEXT}),
        _operation("pseudonym", {"scope": _SCOPE}),
        _operation("shift", {"days": COUNT, "scope": _SCOPE, "by": _TEXT_OR_NULL}),
    ]
}
_PERSON_ROWS = record({"column": TEXT, "rule": word("first", "last", "random"), "n_dropped": COUNT})


_INPUT = record(
    {
        "name": _TEXT_OR_NULL,
        "commitment": {"oneOf": [{"type": "null"}, _COMMITMENT]},
        "format": _WORD,
        "rows": COUNT,
        "columns": COUNT,
    },
    {
        "one_row_per_person": _PERSON_ROWS,
        "read_as": named(TEXT),
        "parties": COUNT,
        "prepared": list_of(_PREPARED),
    },
)
_OUTPUT = record(
    {
        "name": _TEXT_OR_NULL,
        "sha256": _HASH_OR_NULL,
        "format": _WORD,
        "rows": COUNT,
        "order": _ORDER,
        "columns": list_of(_COLUMN),
    },
    {"escaped_formulas": TRUTH},
)
_ENTRIES = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": f"sfumato manifest, version {MANIFEST_VERSION}",
    "description": "Strict: no other keys at any depth, none twice, no NaN. Keys come in the order of this schema, "
    "those of mappings by name in the order of their characters; the file is indented by two blanks and ends in "
    "one line feed. The digest is the SHA-256 of the manifest without it, as JSON with sorted keys and no blanks.",
    **record(
        {
            "sfumato_manifest": {"const": MANIFEST_VERSION},
            "input": {"oneOf": [{"type": "null"}, _INPUT]},  # null: nothing is said under differential privacy
            "output": _OUTPUT,
            "mechanism": {},  # see _schema_with: the level of every guarantee may be a parameter
            "missing": record(
                {"tokens": _TEXTS}, {"rows": word("kept", "dropped"), "n_dropped": COUNT, "columns": named(_TEXTS)}
            ),
            "dropped_columns": _TEXTS,
            "recodings": list_of(_RECODING),
            "suppressed_rows": COUNT,
            "guarantees": {},  # see _schema_with: of every guarantee that is known
            "evidence": _EVIDENCE,
            "versions": record({}, dict.fromkeys(_PACKAGES, VERSION)),
            "perturbation": _PERTURBATION,
            "digest": _HASH,
        }
    ),
}


PARAMETERS: Mapping[str, Mapping[str, Form]] = json.loads(
    (Path(__file__).parent / "parameters.json").read_text(encoding="utf-8")
)
"""Parameters of every mechanism of this package as manifests state them; see ``mechanisms.stated_parameters``."""
_SESSION = {
    "agreed": record(
        {},
        {
            "mode": word("totals", "selection-only"),
            "sharing": word("seeds", "shares"),
            "weights": list_of(number(0, 10**6)),
            "privacy": word("pooled", "average"),
            "epsilon": {"oneOf": [NOTHING, number(0, 10**6)]},
            "min_count": {"oneOf": [NOTHING, {**COUNT, "maximum": 10**6}]},
            "max_rows": {**COUNT, "maximum": 10**6},
            "drop_incomplete": TRUTH,
            "dry_run": TRUTH,
            "ranking": word(
                *("mutual-information", "normalized", "gain-ratio", "symmetrical-uncertainty", "chi-squared", "gini")
            ),
            "tradeoff": word("mean", "product", "harmonic"),
            "joint_k": {**COUNT, "maximum": 10**6},
            "generalization_sha256": _HASH,
            "missing": _TEXTS,
        },
    ),
    "shared_schema_sha256": _HASH,
    "session": _PARAMETERS["session"],
}
_OF_SEVERAL_PARTIES: Mapping[str, Mapping[str, Form]] = {
    "collaboration": {"min_privacy_gain": number(0, 1), **_SESSION},
    "joint-k": {"k": {**COUNT, "minimum": 2, "maximum": 10**6}, **_SESSION},
}


KNOWN_MECHANISMS = frozenset({*PARAMETERS, *_OF_SEVERAL_PARTIES})
"""Mechanisms of which it is known what their settings may be."""


def _mechanisms(levels: Mapping[str, Form]) -> Form:
    """Form of the mechanism: closed by its name; of another package's, whose parameters nobody here knows, open."""
    own = {**PARAMETERS, **_OF_SEVERAL_PARTIES}
    closed = [
        record({"name": exactly(name), "parameters": record({}, forms), "seed": _SEED_OR_NULL})
        for name, forms in own.items()
    ]
    foreign = {**_WORD, "not": {"enum": [*own]}}
    parameters = record({}, {**_PARAMETERS, **levels})
    return {"oneOf": [*closed, record({"name": foreign, "parameters": parameters, "seed": _SEED_OR_NULL})]}


def schema() -> Form:
    """Give the JSON Schema of a manifest, with the form of every guarantee that is known."""
    return _schema_with(tuple(GUARANTEES.values()))


@lru_cache(maxsize=8)
def _schema_with(guarantees: tuple[type[Guarantee], ...]) -> Form:
    forms = list_of({"oneOf": [form_of_guarantee(guarantee) for guarantee in guarantees]})
    levels = {name: _NUMBER_OR_NULL for name in (g.level.name for g in guarantees) if name not in _PARAMETERS}
    own = {"mechanism": _mechanisms(levels), "guarantees": forms}
    return {**_ENTRIES, "properties": {**_ENTRIES["properties"], **own}}


def problems_in(data: Any, form: Form | None = None, place: str = "") -> Iterator[str]:
    """Say where data are not of a form; neither keys nor values of the data are shown, for they may be cells.

    Without a form, that of a whole manifest is meant.
    """
    where = place or "the manifest"
    form = schema() if form is None else form
    if "oneOf" in form:
        chosen = _chosen(data, form["oneOf"])
        if chosen is None:
            yield f"{where} is of no kind that is known"
        else:
            yield from problems_in(data, chosen, place)
        return
    if "const" in form:
        if data != form["const"] or isinstance(data, bool):
            yield f"{where} is another one than expected"
        return
    if not _is_of_type(data, form["type"]):
        yield f"{where} is not {_in_words(form)}"
        return
    if isinstance(data, Mapping):
        yield from _problems_in_mapping(data, form, place)
    elif isinstance(data, list | tuple):
        for i, item in enumerate(data):
            yield from problems_in(item, form["items"], f"{place}[{i}]")
    elif not _is_in_range(data, form):
        yield f"{where} is not {_in_words(form)}"


def _problems_in_mapping(data: Mapping[Any, Any], form: Form, place: str) -> Iterator[str]:
    where = place or "the manifest"
    known = form.get("properties")
    if known is None:
        for i, item in enumerate(data.values()):
            yield from problems_in(item, form["additionalProperties"], f"{place}[{i}]")
        return
    lacking = [key for key in form["required"] if key not in data]
    n_unknown = sum(key not in known for key in data)
    if lacking:
        yield f"{where} lacks {', '.join(lacking)}"
    if n_unknown:
        yield f"{where} has {n_unknown} unknown {'key' if n_unknown == 1 else 'keys'}"
    for key, item in data.items():
        if key in known:
            yield from problems_in(item, known[key], f"{place}.{key}" if place else key)


def _chosen(data: Any, forms: Sequence[Form]) -> Form | None:
    """Find the form that data mean to have: by the words that tell records apart, by their keys, or by the type."""
    fitting = [form for form in forms if "type" not in form or _is_of_type(data, form["type"])]
    if not isinstance(data, Mapping):
        return fitting[0] if fitting else None
    for form in fitting:
        words = {key: part["const"] for key, part in form.get("properties", {}).items() if "const" in part}
        if words and all(data.get(key) == word for key, word in words.items()):
            return form
        if not words and ("properties" not in form or set(form["required"]) <= set(data)):
            return form
    return None


def _is_of_type(data: Any, types: str | Sequence[str]) -> bool:
    return any(_TYPES[name](data) for name in ([types] if isinstance(types, str) else types))


def _is_whole(data: Any) -> bool:
    return isinstance(data, int) and not isinstance(data, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda data: data is None,
    "boolean": lambda data: isinstance(data, bool),
    "integer": _is_whole,
    "number": lambda data: _is_whole(data) or (isinstance(data, float) and math.isfinite(data)),
    "string": lambda data: isinstance(data, str),
    "array": lambda data: isinstance(data, list | tuple),
    "object": lambda data: isinstance(data, Mapping) and all(isinstance(key, str) for key in data),
}


def _is_in_range(data: Any, form: Form) -> bool:
    if isinstance(data, str):
        return ("enum" not in form or data in form["enum"]) and (
            "pattern" not in form or re.search(form["pattern"], data) is not None
        )
    if data is None or isinstance(data, bool):
        return True
    least, above = form.get("minimum", -math.inf), form.get("exclusiveMinimum", -math.inf)
    return bool(
        least <= data <= form.get("maximum", math.inf)
        and above < data < form.get("exclusiveMaximum", math.inf)
        and ("digits" not in form or has_digits(data, form["digits"]))
    )


def has_digits(figure: float, digits: int) -> bool:
    """Whether a number has no more than so many significant digits.

    Examples
    --------
    >>> has_digits(0.3333, 4), has_digits(0.33333, 4), has_digits(120000, 2)
    (True, False, True)
    """
    return float(f"{figure:.{digits - 1}e}") == figure and (figure == 0 or abs(figure) >= SMALLEST)


def _in_words(form: Form) -> str:
    if "enum" in form:
        return f"one of {', '.join(form['enum'])}"
    types = [form["type"]] if isinstance(form["type"], str) else form["type"]
    words = {"integer": "a whole number", "array": "a list", "object": "a mapping of names", "null": "null"}
    said = " or ".join(words.get(name, f"a {name}") for name in types)
    limits = {"minimum": "of at least", "exclusiveMinimum": "above", "exclusiveMaximum": "below", "maximum": "to"}
    said += "".join(f" {word} {form[name]:g}" for name, word in limits.items() if name in form)
    said += f" of at most {form['digits']} digits" if "digits" in form else ""
    return said + (" of the right form" if "pattern" in form else "")


def in_order(data: Any, form: Form | None = None) -> Any:
    """Put the keys of data that are of a form in its order, names in the order of their characters."""
    form = schema() if form is None else form
    if "oneOf" in form:
        chosen = _chosen(data, form["oneOf"])
        return data if chosen is None else in_order(data, chosen)
    if isinstance(data, Mapping):
        known = form.get("properties")
        if known is None:  # names of the data; what is no mapping by its form is refused elsewhere
            each = form.get("additionalProperties")
            return data if each is None else {key: in_order(data[key], each) for key in sorted(data)}
        strangers = [key for key in data if key not in known]
        ordered = {key: in_order(data[key], known[key]) for key in known if key in data}
        return ordered | {key: data[key] for key in strangers}
    if isinstance(data, list | tuple) and "items" in form:
        return [in_order(item, form["items"]) for item in data]
    return data


def canonical_text(data: Mapping[str, Any]) -> str:
    """Write a manifest in its one form: keys in the order of the schema, names by their characters."""
    return json.dumps(in_order(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def check_form(data: Any, path: str | None = None) -> None:
    """Refuse a manifest of another version, or one that has other entries, lacks one or has one of another type.

    Raises
    ------
    ManifestError
        If it is none of the version that is known.
    ManifestRefusedError
        If it is one and breaks the rules of its form.
    """
    stated = data.get("sfumato_manifest") if isinstance(data, Mapping) else None
    if not _is_whole(stated) or stated != MANIFEST_VERSION:
        problem = f"is no sfumato manifest of version {MANIFEST_VERSION}, the only version that this program reads"
        raise ManifestError(problem, path=path)
    for problem in problems_in(data):
        said = problem if path or problem.startswith("the manifest ") else f"the manifest's {problem}"
        raise ManifestRefusedError(said, path=path, hint=f"see docs/manifest/{MANIFEST_VERSION}.schema.json")


def parsed_manifest(text: str, path: str | None = None) -> dict[str, Any]:
    """Parse a manifest's text: no key twice, no number that is none, of the form, and in its one spelling.

    Raises
    ------
    ManifestError
        If the text is no manifest, or one of another version.
    ManifestRefusedError
        If it is one and breaks the rules of its form.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            problem = "has a key twice: readers may disagree on its meaning"
            raise ManifestRefusedError(problem, path=path)
        return found

    def finite(digits: str) -> float:
        if not math.isfinite(float(digits)):
            problem = "holds NaN or Infinity instead of a number"
            raise ManifestRefusedError(problem, path=path)
        return float(digits)

    try:
        found: dict[str, Any] = json.loads(text, object_pairs_hook=once, parse_float=finite, parse_constant=finite)
    except ManifestRefusedError:
        raise
    except (ValueError, RecursionError):
        raise ManifestError("is not JSON", path=path) from None
    check_form(found, path)
    if text != canonical_text(found):
        problem = "is not in its canonical form: order of keys, blanks or spelling differ"
        raise ManifestRefusedError(problem, path=path)
    return found


def main(folder: str) -> None:
    """Write the schema into a folder."""
    text = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    (Path(folder) / f"{MANIFEST_VERSION}.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
