"""How many people two k-anonymous releases of the same table tell apart together, each made without the other.

Two years of Adult: of 30,162 people 15 % are in the first year only, 15 % in the second only; everybody is a year older
in the second. Eight quasi-identifiers, ``occupation`` is sensitive, k = 5 and l = 2::

    python -m benchmarks.several_releases [STAYS]

``STAYS`` is the share of people who are in both years (default .7). The second release of ``global-recoding`` is made
with the levels of the first, too. The figures are for ``docs/guide/several-releases.md``.

With ``visits`` instead of a share: Diabetes130, where patients have several stays. The stays with the lower half of the
numbers, which ascend in time, are the first period, the others the second; ``diag_1`` is sensitive, k = 5 and l = 2.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from reproductions.public_data import load_adult, load_diabetes130
from sfumato.audit.claims import read_claims
from sfumato.audit.together.appearances import NamedRows, judged_together, n_in_common, named_rows
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.registry import build_mechanism
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

QUASI = ("age", "workclass", "education", "marital-status", "relationship", "race", "sex", "native-country")
K, L = 5, 2


def two_years(stays: float = 0.7, seed: int = 0, n_rows: int | None = None) -> tuple[Table, Table]:
    """Split Adult into two years with arrivals and departures; the row number tells persons apart."""
    adult = load_adult(complete=True).keep([*QUASI, "occupation", "salary"]).to_arrow()
    order = np.random.default_rng(seed).permutation(adult.num_rows)[:n_rows]
    n_away = round(len(order) * (1 - stays) / 2)
    first = adult.take(pa.array(np.sort(order[: len(order) - n_away])))
    chosen = np.sort(order[n_away:])
    second = adult.take(pa.array(chosen))
    ages = [str(int(age) + 1) for age in second.column("age").to_pylist()]
    second = second.set_column(second.column_names.index("age"), "age", pa.array(ages))
    numbers = np.sort(order[: len(order) - n_away]), chosen
    one, two = (
        _described(t.append_column("person", pa.array(n))) for t, n in zip((first, second), numbers, strict=True)
    )
    return one, two


def _described(table: pa.Table) -> Table:
    numeric = ("age",)
    columns = [Column(n, Role.QUASI_IDENTIFIER, Kind.NUMERIC if n in numeric else Kind.CATEGORICAL) for n in QUASI]
    columns += [Column("occupation", Role.SENSITIVE), Column("salary", Role.TARGET), Column("person", Role.PERSON)]
    return Table.from_arrow(table, Schema.of(columns))


VISIT_QUASI = ("race", "gender", "age", "admission_type_id", "time_in_hospital")


def two_periods(n_rows: int | None = None) -> tuple[Table, Table]:
    """Split the stays of Diabetes130 by their numbers; patients may have several, in either period or in both."""
    stays = load_diabetes130()
    order = np.argsort(np.array(stays["encounter_id"].values.to_pylist(), dtype=np.int64)[stays["encounter_id"].codes])
    order = order[:n_rows]
    roles = dict.fromkeys(VISIT_QUASI, Role.QUASI_IDENTIFIER)
    roles |= {"patient_nbr": Role.PERSON, "diag_1": Role.SENSITIVE, "readmitted": Role.TARGET}
    table = stays.keep([*roles])
    table = table.with_schema(table.schema.with_roles(roles))
    half = len(order) // 2
    return table.take(np.sort(order[:half])), table.take(np.sort(order[half:]))


def rows_of(release: Release, original: Table, person: str = "person") -> NamedRows:
    """Whose row is where, as the ledger keeps it."""
    rows = release.kept_rows if release.kept_rows is not None else np.arange(original.n_rows)
    return named_rows(release.table, original, read_claims(release.manifest.to_dict()), person, rows=rows)


def told(name: str, first: NamedRows, second: NamedRows) -> None:
    """Print how many persons two releases leave below their promise together."""
    together = judged_together([first, second])
    n_both = n_in_common(second, [first])
    below = f"{len(together.persons_below()):,} persons below, smallest joint class {together.anonymity:,}"
    print(f"{name}: {first.n_persons:,} and {second.n_persons:,} persons, {n_both:,} in both; {below}")


def main() -> None:
    """Print the figures."""
    is_visits = sys.argv[1:] == ["visits"]
    person, sensitive = ("patient_nbr", "diag_1") if is_visits else ("person", "occupation")
    first, second = two_periods() if is_visits else two_years(*map(float, sys.argv[1:]))
    partition = (
        build_mechanism("mondrian", {"k": K, "l": L})
        if is_visits
        else build_mechanism("mondrian", {"k": K, "l": L, "split": "score"})
    )
    told("mondrian", *(rows_of(partition.release(table), table, person) for table in (first, second)))
    recoder = build_mechanism("global-recoding", {"k": K, "l": L, "sensitive": sensitive})
    before = rows_of(recoder.release(first), first, person)
    again = recoder.at_levels(recoder.levels_)
    told("global-recoding", before, rows_of(recoder.release(second), second, person))
    told("global-recoding, same levels", before, rows_of(again.release(second), second, person))


if __name__ == "__main__":
    main()
