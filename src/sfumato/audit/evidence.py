"""Whether what a manifest states besides its promises holds: the risk that is left, rows left out, labels listed.

Of the utility that a manifest states counts, the suppressed fraction and (beside the original) the certainty penalty of
ranges and sets are computed anew. Other figures are the publisher's word, which is an exception.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.audit.checks import GIVE_BOTH, GIVE_KEY, AuditReport, Check, Unchecked, check_figure, listed
from sfumato.audit.claims import BUCKETED, ClaimedCommitment, Claims, is_number, read_claims
from sfumato.audit.descriptions import described_otherwise
from sfumato.audit.levels.anonymity import SMALLEST_CLASS, containment_level
from sfumato.audit.levels.buckets import LARGEST_SHARE
from sfumato.audit.levels.diversity import DISTINCT
from sfumato.audit.original.copies import COPIED_ROWS
from sfumato.audit.original.preparation import keyed
from sfumato.audit.original.release_vs_original import PENALTY
from sfumato.audit.reading.columns import AnyTable, Columns
from sfumato.audit.reading.equivalence import classes_of_rows
from sfumato.audit.reading.values import GENERALIZED, numbers_in
from sfumato.errors import ManifestError, SchemaError
from sfumato.guarantees import BucketDiversity
from sfumato.manifest_schema import KNOWN_MECHANISMS
from sfumato.schema import WITHHELD, Kind, Role
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Source

Measure = Callable[[Columns, Claims], float]
_SHARE_OF_UNIQUE = "SELECT coalesce(count(*) FILTER (size = 1) / sum(size), 0) FROM classes"
_N_CLASSES = "SELECT count(*) FROM classes"
_MEAN_CLASS = "SELECT coalesce(sum(size) / count(*), 0) FROM classes"


def _of_quasi_identifiers(query: str) -> Measure:
    """Ask the classes of rows that are equal on all quasi-identifiers."""

    def measure(columns: Columns, claims: Claims) -> float:
        with classes_of_rows(columns, columns.with_role(Role.QUASI_IDENTIFIER)) as classes:
            return classes.ask(query)

    return measure


def _of_buckets(query: str) -> Measure:
    """Ask the buckets."""

    def measure(columns: Columns, claims: Claims) -> float:
        with classes_of_rows(columns, [_bucket(claims)]) as buckets:
            return buckets.ask(query)

    return measure


def _bucket(claims: Claims) -> str:
    if claims.perturbation is None or claims.perturbation.bucket is None:
        problem = "the release is not stated to be in buckets"
        raise SchemaError(problem)
    return claims.perturbation.bucket


def _containment(columns: Columns, claims: Claims) -> float:
    return containment_level(columns, columns.with_role(Role.QUASI_IDENTIFIER))


def _unique_rows(columns: Columns, claims: Claims) -> float:
    """Share of rows that no other row equals on everything that is released."""
    made = {name for name, claimed in claims.prepared.items() if claimed.has("pseudonym")}
    names = [name for name in columns.names if name not in made]  # a pseudonym is unique and says nothing
    with classes_of_rows(columns, names) as classes:
        return classes.ask(_SHARE_OF_UNIQUE)


def _least_different_values(columns: Columns, claims: Claims) -> float:
    """Distinct l over all quasi-identifiers, the least of all sensitive columns."""
    sensitive = columns.with_role(Role.SENSITIVE)
    if not sensitive:
        problem = "no released column is sensitive"
        raise SchemaError(problem)
    found = []
    for name in sensitive:
        with classes_of_rows(columns, columns.quasi_identifiers_without(name), name) as classes:
            found.append(classes.ask(DISTINCT))
    return min(found)


def _largest_share(columns: Columns, claims: Claims) -> float:
    promised = [p.guarantee.sensitive for p in claims.promises if isinstance(p.guarantee, BucketDiversity)]
    if not promised:
        problem = "nothing is promised of the sensitive values in buckets"
        raise SchemaError(problem)
    found = []
    for name in promised:
        with classes_of_rows(columns, [_bucket(claims)], name) as buckets:
            found.append(buckets.ask(LARGEST_SHARE))
    return max(found)


def _n_quasi(columns: Columns, claims: Claims) -> float:
    return len(claims.names(Role.QUASI_IDENTIFIER))


def _n_slices(columns: Columns, claims: Claims) -> float:
    return len(claims.perturbation.slices) if claims.perturbation is not None else 0


def _flipped(columns: Columns, claims: Claims) -> float:
    n_cells = columns.n_rows * len(claims.names(Role.QUASI_IDENTIFIER))
    if claims.perturbation is None or not n_cells:
        problem = "no cell is stated to be flipped"
        raise SchemaError(problem)
    return claims.perturbation.n_cells_changed / n_cells


UNIQUE_ROWS = "unique_row_fraction"
"""Risk over all released columns, which are more than those that are counted together where rows are not in memory."""
MEASURED: Mapping[str, Measure] = {
    "containment_level": _containment,
    "anonymity_level": _of_quasi_identifiers(SMALLEST_CLASS),
    "unique_pattern_fraction": _of_quasi_identifiers(_SHARE_OF_UNIQUE),
    "least_different_sensitive_values": _least_different_values,
    "smallest_bucket": _of_buckets(SMALLEST_CLASS),
    "largest_share_of_a_sensitive_value": _largest_share,
    UNIQUE_ROWS: _unique_rows,
    "n_features_released": _n_quasi,
    "n_columns_released": _n_quasi,
    "n_classes_of_cells": _of_quasi_identifiers(_N_CLASSES),
    "n_groups": _of_buckets(_N_CLASSES),
    "n_buckets": _of_buckets(_N_CLASSES),
    "mean_rows_of_a_group": _of_buckets(_MEAN_CLASS),
    "n_slices": _n_slices,
    "flipped_fraction": _flipped,
}
"""Figures of risk and utility that are measured on the release alone."""


SAMPLE_SIZES = ("estimated_on_rows", "grown_on_rows", "scored_on_rows")
ALL_ROWS = "of_rows"
"""Sizes of samples that mechanisms rest on, and the number of rows that these were drawn from."""

_LARGEST = 10**15  # larger numbers are no level of any table


def check_stated_figures(claims: Claims, measure: Callable[[str], float | Unchecked]) -> Iterator[Check | Unchecked]:
    """Measure the stated figures again on the release."""
    for part, every in (("risk", claims.stated_risk), ("utility", claims.stated_utility)):
        for name, stated in every.items():
            if name not in MEASURED:
                continue
            try:
                found = measure(name)
            except SchemaError as exc:
                label = name.replace("_", " ")
                yield Check(f"{part}: {label}", False, f"{label} cannot be measured: {exc}", stated)
                continue
            yield found if isinstance(found, Unchecked) else check_figure(part, name, stated, found)


def taken_on_trust(claims: Claims, has_original: bool) -> Iterator[Unchecked]:
    """Name the figures that the publisher states and no check computes again."""
    known = {*MEASURED, *SAMPLE_SIZES, ALL_ROWS, "suppressed_fraction"}
    known |= {PENALTY} if has_original and _is_penalty_measured(claims) else set()
    is_counted = claims.perturbation is None or claims.perturbation.kind == BUCKETED  # other rows are nobody's copies
    known |= {COPIED_ROWS} if has_original and is_counted else set()
    parts = (claims.stated_utility, claims.stated_risk)
    names = [
        name for part in parts for name, value in part.items() if name not in known and not _is_known_text(name, value)
    ]
    names += [name for name in claims.stated_sections if name not in ("utility", "risk")]
    has_levels = any(recoding.has_levels for recoding in claims.recodings.values())
    names += ["levels"] if has_levels and "levels" not in names else []
    if names:
        said = f"figures that the publisher states and no check recomputes: {listed(names, most=20)}"
        yield Unchecked("figures", said.replace("_", " "))
    if claims.output_rows and UNIQUE_ROWS not in claims.stated_risk:
        said = "the share of rows that are unique on all released columns together, which the manifest does not state"
        yield Unchecked("figures", said)


def _is_penalty_measured(claims: Claims) -> bool:
    """Whether the certainty penalty is computed again from the original: of ranges and sets, with no row left out."""
    by_ranges = any(r.rule == GENERALIZED and r.name == r.column for r in claims.recodings.values())
    return by_ranges and not claims.suppressed_rows


_ON_SAMPLE = re.compile(
    "; they rest on a sample of [0-9,]+ of [0-9,]+ rows; columns that give the sensitive one away are looked for in "
    "all rows before anything is published$"
)
_KNOWN_TEXTS: Mapping[str, Sequence[str]] = {
    "what_this_is": (
        "estimates by cross-validation for one kind of attacker; nothing is proven",
        "a measure of what was dropped; nothing is promised about the columns that are released",
        "k counts rows of all parties together: a person with rows at several parties counts several times. A party "
        "knows which rows are its own, and all parties but one together know the rest",
    ),
    "sensitive_column": (
        "not released",
        "the target, which is released: the bound is about people whose value is not in the release",
    ),
    "anonymity_level_left_out": ("the combinations are too many to be counted",),
    "test": ("corrected", "paired"),
    "tree": tuple(
        f"no split of the tree is left at this k: {rest}"
        for rest in (
            "rows were divided by the scores alone, as mondrian does",
            "rows were divided by the penalty alone, whatever the target, as mondrian does",
            "all rows are one group",
        )
    ),
}
"""Sentences that releases have among their figures; any other text is the publisher's own."""


_AMONG = (
    "chosen among the [0-9,]{1,15} most frequent of [0-9,]{1,15} features; distinct rows of more features do not fit "
    "in the memory given, and rarer ones may be better"
)
_RAISED = re.compile(
    "only levels from these on were searched: (.*); the distinct rows of finer values do not fit in the memory given, "
    "and finer levels may lose less"
)
_SEARCHES = (
    *("best-first wrapper", "all maximal sets compared", "greedy selections and exchanges", "all sets compared"),
    *("branch and bound", "greedy and exchanges"),
)
_KNOWN_FORMS: Mapping[str, str] = {
    "method": f"({'|'.join(_SEARCHES)})(, {_AMONG})?|{_AMONG}",
    "search": "forward|backward|top-r|best",
    "chosen_by": "criterion|cross_validation|performance alone; what the columns tell about the sensitive one had no "
    "part in it",
    "bound_on": "hamming_separation|size",
    "groups_are": "those that are released|those of the tree; tiered cells keep its leaves apart|those of the tree, "
    "which were divided further before release",
    "note_on_weights": r"the weights summed to [0-9][0-9.e+-]{0,11} and were divided by it",
    "warning": "noise as the paper prints it: not differentially private at the epsilon that was asked for",
    "suppression_limit_counts": "rows and persons",
    **dict.fromkeys(("region", "region_of_the_choice", "alpha"), ".*"),  # of which the form lists the words
}
"""Texts of other parts of the evidence, as regular expressions."""
_BY_COLUMN = ("levels", "information_gain_bits")


def check_texts(claims: Claims, manifest: Mapping[str, Any]) -> Iterator[Check]:
    """Whether the evidence holds no text but the sentences that releases have, and names of columns.

    Nobody knows those of a mechanism of another package, which is an exception of its own.
    """
    if claims.mechanism not in KNOWN_MECHANISMS:
        return
    columns = {*claims.names(), *claims.dropped_columns, *(r.column for r in claims.recodings.values())}
    wrong = sorted({name for name, text in _texts("", manifest["evidence"]) if not _is_sentence(name, text, columns)})
    said = f"that no release has: {listed(wrong)}" if wrong else "that releases have"
    yield Check("texts", not wrong, f"texts among the figures of the manifest are sentences {said}")


def _texts(name: str, data: object) -> Iterator[tuple[str, str]]:
    """Texts at any depth with the name of their entry; a list has texts under its name and an s, for columns."""
    if isinstance(data, Mapping):
        for key, part in data.items():
            if name in _BY_COLUMN:
                yield "column", key
            yield from _texts(key, part)
    elif isinstance(data, list | tuple):
        for part in data:
            yield from [("column", part)] if isinstance(part, str) else _texts(name, part)
    elif isinstance(data, str):
        yield name, data


def _is_sentence(name: str, text: str, columns: set[str]) -> bool:
    if name == "column":
        return text in columns
    if name == "method" and (raised := _RAISED.fullmatch(text)) is not None:
        left = raised[1]
        for column in sorted(columns, key=len, reverse=True):
            left = re.sub(rf"(^|, )'{re.escape(column)}' [0-9]{{1,2}}(?=, |$)", "", left)
        return not left
    return re.fullmatch(_KNOWN_FORMS.get(name, "(?!)"), text) is not None or _is_known_text(name, text)


def _is_known_text(name: str, value: object) -> bool:
    if not isinstance(value, str) or name == "suppression_limit_counts":  # which another check looks at
        return isinstance(value, str)
    return _ON_SAMPLE.sub("", value) in _KNOWN_TEXTS.get(name, ())


def check_samples(claims: Claims) -> Iterator[Check]:
    """Whether stated sizes of samples are possible: some of the rows, and the rows are those of the original."""
    n_rows = _n_rows(claims)
    for stated in (claims.stated_risk, claims.stated_utility):
        sizes = [name for name in SAMPLE_SIZES if name in stated]
        if not sizes and ALL_ROWS not in stated:
            continue
        label = " and ".join(name.replace("_", " ") for name in (*sizes, ALL_ROWS))
        passed = bool(sizes) and all(1 <= stated[name] <= n_rows for name in sizes) and stated.get(ALL_ROWS) == n_rows
        said = "are possible sizes of a sample" if passed else f"are not possible sizes of a sample of {n_rows:,} rows"
        yield Check(f"sample: {label}", passed, f"{label} in the manifest {said}")


def _n_rows(claims: Claims) -> int:
    """Rows that a mechanism was given; where nothing is said of the original, the release has as many."""
    n_before = claims.output_rows if claims.input_rows is None else claims.input_rows
    return n_before - claims.n_incomplete_dropped - (claims.persons.n_dropped if claims.persons else 0)


def check_suppression(claims: Claims) -> Iterator[Check]:
    """Whether the stated share of rows left out is that of the stated numbers, and within the mechanism's limit."""
    n_rows = _n_rows(claims)
    found = claims.suppressed_rows / n_rows if n_rows > 0 else 0.0
    if "suppressed_fraction" in claims.stated_utility:
        yield check_figure("utility", "suppressed_fraction", claims.stated_utility["suppressed_fraction"], found)
    if "max_suppressed_fraction" in claims.parameters:
        limit = claims.parameters["max_suppressed_fraction"]
        if not is_number(limit) or not 0 <= limit <= 1:
            said = "the mechanism's limit of suppressed rows is not a number from 0 to 1"
            yield Check("suppression limit", False, said)
            return
        passed = claims.suppressed_rows <= Fraction(str(limit)) * max(n_rows, 0)
        message = f"the share of suppressed rows is {found:.6g}, the mechanism's limit is {limit:.6g}"
        yield Check("suppression limit", passed, message, limit, found)


def check_figures(claims: Claims, manifest: Mapping[str, Any]) -> Iterator[Check]:
    """Whether figures that may rest on rows which are not released have three digits: more would tell about these.

    Figures of a synthetic release follow from the released rows, and are compared to the last digit elsewhere.
    """
    if claims.is_synthetic:
        return
    levels = [p.audited for p in claims.promises if p.guarantee.rests_on_original]
    counted = {*MEASURED, *SAMPLE_SIZES, ALL_ROWS}  # in these two parts, where they are compared to the last digit
    exact = {"utility": counted, "risk": counted}
    parts = [
        [v for key, v in part.items() if key != PENALTY and (isinstance(v, float) or key not in exact.get(name, ()))]
        for name, part in manifest["evidence"].items()
    ]
    stated = list(_figures(parts))
    n_fine = sum(float(f"{figure:.2e}") != figure for figure in [*stated, *_figures(levels)])
    n_fine += sum(not _is_likely(figure) for figure in stated)
    said = f"{n_fine:,} figures of the manifest have more" if n_fine else "figures of the manifest have no more"
    yield Check("figures", not n_fine, f"{said} than three significant digits")


def _is_likely(figure: float) -> bool:
    """Whether a figure is of a size that measures have: with powers of ten that nobody needs, more could be said."""
    return figure == 0 or _LEAST_FIGURE <= abs(figure) < _LARGEST


_LEAST_FIGURE, _LARGE = 1e-9, 10**6


def _figures(data: object) -> Iterator[float]:
    """Numbers with decimals, however deep they stand, and large whole ones that no check counts again.

    The certainty penalty is exact: it follows from released cells and is computed again to the last digit.
    """
    if isinstance(data, Mapping):
        data = list(data.values())
    if isinstance(data, list | tuple):
        for part in data:
            yield from _figures(part)
    elif isinstance(data, float) or (isinstance(data, int) and abs(data) >= _LARGE):
        yield data


def check_listed_labels(released: AnyTable, claims: Claims) -> Iterator[Check]:
    """Whether the manifest lists values of released labels only: others would tell what the release leaves out."""
    columns = Columns(released)
    stated = [r for r in claims.recodings.values() if r.labels and r.name in columns]
    stray = []
    for recoding in stated:
        texts = pc.cast(columns.coded(recoding.name).values, pa.string()).to_pylist()
        occurring = {text.strip() for text in texts if text is not None}
        if any(label.strip() not in occurring for label in recoding.labels):
            stray.append(recoding.name)
    if stated:
        said = f"are listed that do not occur, in: {listed(stray)}" if stray else "that are listed all occur"
        yield Check("listed labels", not stray, f"labels {said}")


# Whether a manifest is whole and describes the files and the columns it came with.


_MEMORY = ("<memory>", "memory")
"""Name and format of an original that was read from no file."""


def with_names_of_files(
    report: AuditReport, manifest: Mapping[str, Any], released: str | Path, original: Source | None
) -> AuditReport:
    """Compare the names in a manifest with those of the files that were audited; a file that was renamed is said."""
    claims = read_claims(manifest)
    other = ["the released file"] if str(released) != "-" and Path(released).name != claims.output_name else []
    stated = claims.input_name, claims.input_format
    if original is not None and claims.input_rows is not None and claims.input_parties is None:
        is_own = stated in (_MEMORY, (original.public_name, original.format))
        other += [] if is_own else ["the original"]
    if not other:
        return report
    said = f"why {' and '.join(other)} has another name or format than in the manifest"
    renamed = Unchecked("names", said, "audit the files under the names that they had")
    return AuditReport.of([*report.checks, *report.unchecked, renamed], report.levels)


def digest_of(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest without its digest, as JSON with sorted keys, no blanks, in UTF-8."""
    body = {key: value for key, value in manifest.items() if key != "digest"}
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()
    except (TypeError, ValueError, RecursionError):
        problem = "the manifest holds something that is not JSON"
        raise ManifestError(problem) from None


def check_digest(manifest: Mapping[str, Any], claims: Claims) -> Check:
    """Whether nothing in the manifest was changed after it was written (by mistake: a digest is no signature)."""
    found = digest_of(manifest)
    passed = found == claims.digest
    said = "matches its content" if passed else "does not match its content: it was changed after it was written"
    return Check("manifest digest", passed, f"the manifest's digest {said}", claims.digest, found)


def check_hash(claimed: str | None, found: str) -> Check:
    """Whether the released file is the one that the manifest speaks of."""
    name = "released file"
    if claimed is None:
        return Check(name, False, "the manifest has no SHA-256 of the released file", None, found)
    passed = claimed == found
    said = "has" if passed else "does not have"
    return Check(name, passed, f"the released file {said} the SHA-256 that the manifest states", claimed, found)


def check_commitment(stated: ClaimedCommitment, original: str | None, key: bytes | None) -> Check | Unchecked:
    """Whether the manifest commits to the original that is given, which only the release's key can show.

    The commitment is HMAC-SHA256 of the original's SHA-256. What is hashed is a list of texts, each after its length in
    eight bytes; the key for it is made of the release's key in the same way.
    """
    name = "commitment"
    if original is None or key is None:
        lacking = "the original and the key of the release" if original is None else "the key of the release"
        said = f"whether the original is the one that the manifest commits to, which needs {lacking}"
        return Unchecked(name, said, GIVE_BOTH if original is None else GIVE_KEY)
    found = keyed(keyed(key, "sfumato", "commitment"), "sfumato", "input", original.lower()).hex()
    passed = hmac.compare_digest(found, stated.value)
    said = "is to the original" if passed else "is not to this original under this key: a file or key is another one"
    return Check(name, passed, f"the commitment in the manifest {said}")


def check_shape(released: AnyTable, columns: Columns, claims: Claims) -> Iterator[Check]:
    """Whether rows, column names, roles and kinds are as the manifest says.

    Columns of a coded table must come in the manifest's order; the features of a sparse one have none of their own.
    """
    rows = columns.n_rows
    passed = rows == claims.output_rows and rows > 0
    reason = " (a release without rows keeps no promise)" if rows == 0 else ""
    yield Check(
        "rows",
        passed,
        f"the manifest states {claims.output_rows:,} rows, found {rows:,}{reason}",
        claims.output_rows,
        rows,
    )
    yield _check_names(isinstance(released, BinaryTable), columns, claims)
    identifiers = claims.names(*WITHHELD)
    none = "no released column has the role identifier"  # the role is somebody's word: no check of what cells hold
    said = f"identifiers are released: {listed(identifiers)}" if identifiers else none
    yield Check("roles", not identifiers, said)
    yield _check_kinds(columns, claims)
    yield _check_order(claims)


def _check_order(claims: Claims) -> Check:
    """Whether lists of released columns are in the order of the columns: with hundreds, another order is a message."""
    place = {name: i for i, name in enumerate(claims.names())}
    lists = {"recodings": tuple(claims.recodings)}
    lists |= {f"guarantees[{i}]": promise.columns for i, promise in enumerate(claims.promises)}
    places = {which: [place[name] for name in names if name in place] for which, names in lists.items()}
    wrong = [which for which, found in places.items() if found != sorted(found)]
    said = f"are not in the order of the columns: {', '.join(wrong)}" if wrong else "are in the order of the columns"
    return Check("order of entries", not wrong, f"lists of columns in the manifest {said}")


def _check_names(in_any_order: bool, columns: Columns, claims: Claims) -> Check:
    claimed, found = claims.names(), columns.names
    lacking = [name for name in claimed if name not in columns]
    unstated = sorted(set(found).difference(claimed))
    problems = [f"the release lacks {listed(lacking)}"] if lacking else []
    problems += [f"the manifest does not state {listed(unstated)}"] if unstated else []
    if not problems and not in_any_order and claimed != found:
        problems.append("their order differs")
    said = f": {'; '.join(problems)}" if problems else ""
    message = f"the manifest states {len(claimed):,} columns, found {len(found):,}{said}"
    return Check("columns", not problems, message, len(claimed), len(found))


def _check_kinds(columns: Columns, claims: Claims) -> Check:
    """Whether columns stated to be numeric hold numbers, and all are described as they were made."""
    wrong = []
    for claimed in claims.columns:
        if (
            claimed.kind is Kind.NUMERIC
            and claimed.name in columns
            and numbers_in(columns.coded(claimed.name).values)[1].any()
        ):
            wrong.append(claimed.name)
    problems = [f"stated to be numeric, but not all values are numbers: {listed(wrong)}"] if wrong else []
    otherwise = described_otherwise(columns, claims)
    more = f" and {len(otherwise) - 5:,} more" if len(otherwise) > 5 else ""
    problems += [f"columns are described otherwise than made: {'; '.join(otherwise[:5])}{more}"] if otherwise else []
    return Check("kinds", not problems, "; ".join(problems) or "numeric columns hold numbers")
