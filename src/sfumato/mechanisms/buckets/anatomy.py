"""Anatomy: quasi-identifiers as they are, and sensitive values only by groups in which all of them differ.

References
----------
.. [XT06] Xiao, Tao: Anatomy: Simple and Effective Privacy Preservation. VLDB (2006).
.. [Kif09] Kifer: Attacks on Privacy and deFinetti's Theorem. SIGMOD (2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import ClassVar

import numpy as np
import pyarrow as pa

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees.buckets import BucketDiversity
from sfumato.guarantees.forms import NOTHING
from sfumato.manifest import AnyTable
from sfumato.measures.anonymity import anonymity_level
from sfumato.mechanisms.base import Compared, Mechanism, MechanismInfo, Release, combinations
from sfumato.mechanisms.buckets.buckets import (
    BUCKETED,
    LINKS_ROWS,
    Ids,
    bucketed_release,
    check_seed,
    checked_table,
    free_name,
    sensitive_codes,
)
from sfumato.mechanisms.estimator import Estimator
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

GROUP = "group"
COUNT = "count"


def anatomize(
    sensitive: Ids,
    l: int,  # noqa: E741  # the field's own name
    rng: np.random.Generator,
) -> Ids:
    r"""Group rows so that each group has at least l rows and no sensitive value twice.

    Figure 3 of [XT06]_: while l values have rows left, one row of each of the l most frequent makes a group; each row
    that is left then joins a group without its value.

    Parameters
    ----------
    sensitive : ndarray of int32
        Value of each row, from 0.
    l : int
        At most rows / rows of the most frequent value (the paper's eligibility).
    rng : Generator
        Which row of a value is taken, and which group a left row joins.

    Returns
    -------
    ndarray of int32
        Group of each row, from 0.

    Raises
    ------
    PrivacyNotAchievableError
        If a value is in more than 1/l of the rows; its ``best_level`` is the largest l that is possible.

    Notes
    -----
    When l values no longer have rows, each of the others has one (Property 1 of [XT06]_), so a left row always finds a
    group. Of equally frequent values the lower code is taken, and of a value's rows each with the same probability:
    whichever way the values of a group belong to its rows, this grouping was equally likely. It tells nothing more
    about a row than its group's values, provided that ``rng`` cannot be repeated. Time O(n log m) for m values.

    Examples
    --------
    >>> groups = anatomize(np.array([0, 0, 1, 2], dtype=np.int32), 2, np.random.default_rng(0))
    >>> int(groups[0]) != int(groups[1]), np.bincount(groups).tolist()
    (True, [2, 2])
    """
    counts = np.bincount(sensitive)
    n_rows, largest = int(counts.sum()), int(counts.max(initial=0))
    if largest * l > n_rows or not n_rows:
        raise PrivacyNotAchievableError(
            f"groups of at least {l} different values in {n_rows:,} rows, of which {largest:,} share one",
            best_level=n_rows // largest if largest else 0,
            hint="l is at most the row count divided by the rows of the most frequent sensitive value",
        )
    shuffled = rng.permutation(len(sensitive))
    rows = shuffled[np.argsort(sensitive[shuffled], kind="stable")].tolist()
    upcoming = (np.cumsum(counts) - counts).tolist()
    remaining = [(-count, value) for value, count in enumerate(counts.tolist()) if count]
    heapify(remaining)
    groups = np.full(len(sensitive), -1, dtype=np.int32)
    n_groups = 0
    while len(remaining) >= l:
        for minus_count, value in [heappop(remaining) for _ in range(l)]:
            groups[rows[upcoming[value]]] = n_groups
            upcoming[value] += 1
            if minus_count < -1:
                heappush(remaining, (minus_count + 1, value))
        n_groups += 1
    for _, value in sorted(remaining):
        having = groups[sensitive == value]
        groups[rows[upcoming[value]]] = rng.choice(np.setdiff1d(np.arange(n_groups), having))
    return groups


class Anatomy(Mechanism, Estimator):
    """Release quasi-identifiers as they are and the sensitive column only by groups of at least l different values.

    Anatomy of [XT06]_ as one table: a new column names the group of a row, and the sensitive values of a group stand at
    its rows in an order that does not depend on whose they are. :func:`two_tables` makes the paper's two of it, which
    tell exactly the same. All rows are kept, in their order.

    Parameters
    ----------
    l : int, default=2
        Different values of a group; nobody's value is more probable than 1/l.
    sensitive : str or None
        Column that l is about; ``None`` takes the one with the role sensitive. A missing value is a value.
    random_state : int or None
        Seed of the grouping. Whoever knows it can confirm a guess of who has which value, so it does not stand in the
        manifest; keep it to yourself. ``None`` takes the key of the release, or the system's random numbers. The order
        within a group is a public function of the group's values.

    Notes
    -----
    Nothing hides who is in the table or which row is whose: quasi-identifiers, target and other columns are released as
    they are, and so k-anonymity is not promised. The promise takes the rows of a group as equally likely. Somebody who
    learns from all groups how quasi-identifiers and sensitive values go together can do better ([Kif09]_), as can
    somebody who knows the values of others in the group.

    **Deviations.** One table. [XT06]_ has one sensitive column, and so a table with several is
    refused.

    References
    ----------
    .. [XT06] Xiao, Tao: Anatomy: Simple and Effective Privacy Preservation. VLDB (2006).
    .. [Kif09] Kifer: Attacks on Privacy and deFinetti's Theorem. SIGMOD (2009).

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> Anatomy(l=3).release(admissions(n_rows=200)).manifest.evidence["risk"]
    {'largest_share_of_a_sensitive_value': 0.333, 'anonymity_level': 1, 'unique_row_fraction': 1.0}
    """

    mechanism_name: ClassVar[str] = "anatomy"
    hides_choices: ClassVar[bool] = True
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "l": ParameterSpec("different sensitive values of a group", at_least=2),
        "sensitive": ParameterSpec("column of l (default: the one with the role sensitive)"),
        "random_state": ParameterSpec(
            "secret seed of the grouping (default: the release's key, or random numbers)", stated=NOTHING
        ),
    }

    def __init__(
        self,
        l: int = 2,  # noqa: E741  # the field's own name
        sensitive: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.l = l
        self.sensitive = sensitive
        self.random_state = random_state

    def why_rows_count(self) -> str:
        """Say that a promise by persons would be hollow: rows of one person can be seen to belong together."""
        return LINKS_ROWS

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Group the rows of a table and describe the result.

        Raises
        ------
        PrivacyNotAchievableError
            If a sensitive value is in more than 1/l of the rows.
        """
        self.check_parameters("l")
        if self.random_state is not None:
            check_seed(self.random_state)
        table, name = checked_table(table, self.sensitive)
        codes = sensitive_codes(table, name)
        groups = anatomize(codes, int(self.l), self.hidden_rng(self.random_state))
        sizes = np.bincount(groups)
        quasi = table.schema.names(Role.QUASI_IDENTIFIER)
        bucket = free_name(GROUP, table)
        return bucketed_release(
            table,
            groups,
            [(name,)],
            bucket=bucket,
            seed=None,
            mechanism=self.mechanism_name,
            parameters=self.get_params(deep=False) | {"l": int(self.l), "random_state": None},
            guarantees=[BucketDiversity(quasi, bucket, int(self.l), name)],
            evidence={
                "utility": {"n_groups": len(sizes), "mean_rows_of_a_group": table.n_rows / len(sizes)},
                "risk": {
                    "largest_share_of_a_sensitive_value": float(1 / sizes.min()),
                    "anonymity_level": anonymity_level(np.unique(table.codes(quasi), axis=0, return_counts=True)[1]),
                },
            },
        )


def two_tables(release: Release) -> tuple[Table, Table]:
    """Take a release of :class:`Anatomy` apart into the two tables of [XT06]_, Definition 3.

    Returns
    -------
    (Table, Table)
        The quasi-identifier table: every released column but the sensitive one, with the group. The sensitive table:
        group, sensitive value and how many rows of the group have it.

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> quasi_identifiers, sensitive = two_tables(Anatomy(l=3).release(admissions(n_rows=200)))
    >>> sensitive.schema.names()
    ('group', 'discharge_diagnosis', 'count')
    """
    done, released = release.manifest.perturbation, release.table
    if not done or done.get("kind") != BUCKETED or len(done["slices"]) != 1 or not isinstance(released, Table):
        raise InvalidParameterError(
            "release", f"got one of {release.manifest.mechanism['name']}", allowed="a release of anatomy"
        )
    ((name,),), bucket = done["slices"], done["bucket"]
    apart = released.keep(n for n in released.schema.names() if n != name)
    pairs, counts = np.unique(released.codes([bucket, name]), axis=0, return_counts=True)
    count = free_name(COUNT, released)
    schema = Schema.of(
        [released.schema[bucket], released.schema[name], Column(count, Role.OTHER, Kind.NUMERIC)],
        released.schema.missing,
    )
    cells = {
        bucket: released[bucket].values.take(pa.array(pairs[:, 0])),
        name: released[name].values.take(pa.array(pairs[:, 1])),
        count: pa.array(counts),
    }
    return apart, Table.from_arrow(pa.table(cells), schema)


DECLARATION = MechanismInfo(
    Anatomy,
    why="keeps every quasi-identifier exact; for tables that need to protect one column, not who is in them",
    promises="no sensitive value of a person is more probable than 1/l from the release alone; not k-anonymity",
    compared=Compared(combinations({"l": [2, 3]}), needs_sensitive=True, most_columns=200),
    guarantee="bucket-diversity",
)
