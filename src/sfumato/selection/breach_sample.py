"""Columns chosen on a sample of a file's rows: what is known of all rows besides, and how the manifest says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.schema import Role, Schema
from sfumato.selection.breach_leaks import leaking_columns, pairs_give_away
from sfumato.selection.breach_problem import BreachProblem, sensitive_name, target_name
from sfumato.table.coding import Table

Counts = NDArray[np.int64]


class WholeFile(Protocol):
    """What is known of all rows, of which a sample is at hand."""

    @property
    def outline(self) -> Table:
        """Every column by itself, with its values and their counts."""
        ...

    @property
    def pairs(self) -> Mapping[str, Counts]:
        """Rows that hold each value of a column with each of the attacked one; columns with too many are not there."""
        ...

    def anonymity_level(self, names: Sequence[str]) -> int | None:
        """Count the rows of the rarest combination, if that is possible."""
        ...


def paired_columns(schema: Schema, sensitive: str | None) -> tuple[tuple[str, ...], str]:
    """Columns that are released or offered, and the one that an attacker wants, with which they are to be counted."""
    wanted = sensitive_name(schema, target_name(schema), sensitive)
    roles = (Role.QUASI_IDENTIFIER, Role.TARGET, Role.OTHER)
    return tuple(name for name in schema.names(*roles) if name != wanted), wanted


def judged_on_all_rows(problem: BreachProblem, target: str, whole: WholeFile, n_sampled: int) -> BreachProblem:
    """Look for columns that give the sensitive one away on all rows, where their values are not too many.

    Raises
    ------
    SchemaError
        If the sample holds one value only of a column that has several.
    """
    for name, codes in ((target, problem.target), (problem.sensitive_name, problem.sensitive)):
        if codes.min() == codes.max() and whole.outline[name].n_distinct > 1:
            text = f"has one value only in the sample of {n_sampled:,} rows, and others are too rare to be learned"
            raise SchemaError(text, column=name, hint="group its values in the file first, or choose another column")
    columns = problem.released_or_offered
    unknown = {name: codes for name, codes in columns.items() if name not in whole.pairs}
    in_sample = leaking_columns(unknown, problem.sensitive)
    leaks = tuple(name for name in columns if name in in_sample or (name in whole.pairs and _leaks(whole.pairs[name])))
    return replace(problem, leaks=leaks)


def _leaks(pairs: Counts) -> bool:
    values, wanted = np.nonzero(pairs)
    return pairs_give_away(values, wanted, pairs[values, wanted])


def risk_on_sample(risk: Mapping[str, Any], problem: BreachProblem, whole: WholeFile, n_sampled: int) -> dict[str, Any]:
    """Say which of the figures of a risk come from a sample, and put those of all rows in where they are known."""
    n_rows, counts = whole.outline.n_rows, whole.outline[problem.sensitive_name].counts
    is_counted = risk["anonymity_level"] is not None
    left_out = {} if is_counted else {"anonymity_level_left_out": "the combinations are too many to be counted"}
    share = {"share_of_the_most_frequent_value": float(counts.max() / n_rows)} if len(counts) else {}
    return {
        **{name: value for name, value in risk.items() if name != "anonymity_level" or is_counted},
        **share,
        **left_out,
        "estimated_on_rows": n_sampled,
        "of_rows": n_rows,
        "what_this_is": f"{risk['what_this_is']}; they rest on a sample of {n_sampled:,} of {n_rows:,} rows; columns "
        "that give the sensitive one away are looked for in all rows before anything is published",
    }
