"""Whether a manifest is whole and describes the files and the columns it came with."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.audit.checks import Check, listed
from sfumato.audit.claims import Claims
from sfumato.audit.columns import AnyTable, Columns
from sfumato.audit.values import numbers_in
from sfumato.errors import ManifestError
from sfumato.schema import Kind, Role
from sfumato.table.binary import BinaryTable

_ORDERED_SINCE = 2


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
    said = "fits its content" if passed else "does not fit its content: it was changed after it was written"
    return Check("manifest digest", passed, f"the manifest's digest {said}", _shown(claims.digest), found)


def check_hash(which: str, claimed: str | None, found: str) -> Check:
    """Whether a file is the one that the manifest speaks of."""
    name = f"{which} file"
    if claimed is None:
        return Check(name, False, f"the manifest has no SHA-256 of the {which} file", None, found)
    passed = claimed.lower() == found.lower()
    said = "is the one" if passed else "is not the one"
    return Check(
        name, passed, f"the {which} file {said} that the manifest names by its SHA-256", _shown(claimed), found
    )


def _shown(claimed: str) -> str | None:
    """Return a claimed SHA-256 only if it looks like one: what else stands there is not repeated."""
    return claimed if re.fullmatch(r"[0-9a-fA-F]{64}", claimed) else None


def check_shape(released: AnyTable, columns: Columns, claims: Claims) -> Iterator[Check]:
    """Whether rows, column names, roles and kinds are as the manifest says.

    Columns of a coded table must come in the manifest's order; the features of a sparse one have none of their own.
    """
    rows = columns.n_rows
    passed = rows == claims.output_rows and rows > 0
    reason = " (a release without rows keeps no promise)" if rows == 0 else ""
    yield Check(
        "rows", passed, f"{claims.output_rows:,} rows are stated, {rows:,} were found{reason}", claims.output_rows, rows
    )
    yield _check_names(isinstance(released, BinaryTable), columns, claims)
    identifiers = claims.names(Role.IDENTIFIER)
    said = f"identifiers are released: {listed(identifiers)}" if identifiers else "no released column is an identifier"
    yield Check("roles", not identifiers, said)
    yield _check_kinds(columns, claims)
    if claims.version >= _ORDERED_SINCE:
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
        problems.append("they come in another order")
    said = f": {'; '.join(problems)}" if problems else ""
    message = f"{len(claimed):,} columns are stated, {len(found):,} were found{said}"
    return Check("columns", not problems, message, len(claimed), len(found))


def _check_kinds(columns: Columns, claims: Claims) -> Check:
    """Whether columns stated to be numeric hold numbers; the other kinds put no limit on values."""
    wrong = []
    for claimed in claims.columns:
        if (
            claimed.kind is Kind.NUMERIC
            and claimed.name in columns
            and numbers_in(columns.coded(claimed.name).values)[1].any()
        ):
            wrong.append(claimed.name)
    said = (
        f"stated to be numeric, but not all values are numbers: {listed(wrong)}"
        if wrong
        else "numeric columns hold numbers"
    )
    return Check("kinds", not wrong, said)
