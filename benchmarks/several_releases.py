"""What a repaired second release of Adult loses, against one without regard to the first, and against both made anew.

Two years of Adult: of 30,162 people 15 % are in the first year only, 15 % in the second only; everybody is a year older
in the second. Eight quasi-identifiers, ``occupation`` is sensitive, ``salary`` the target, k = 5 and l = 2::

    python -m benchmarks.several_releases [STAYS]

``STAYS`` is the share of people who are in both years (default .7). Prints a table for
``docs/guide/several-releases.md``.

With ``visits`` instead of a share: Diabetes130, where patients have several stays. The stays with the lower half of the
numbers, which ascend in time, are the first period, the others the second; ``diag_1`` is sensitive, k = 5 and l = 2.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reproductions.public_data import load_adult, load_diabetes130
from sfumato.audit.claims import read_claims
from sfumato.audit.together.appearances import NamedRows, judged_together, n_in_common, named_rows
from sfumato.manifest import Manifest
from sfumato.mechanisms.axes import axes_of
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.earlier_releases import EarlierReleases, GroupLimit
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.mondrian.division import mondrian_partition
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.recoder import Cover, Recoding
from sfumato.mechanisms.score_guide import PENALTY_WEIGHT, ScoreGuide
from sfumato.publishing.ledger import Ledger
from sfumato.publishing.repair import repaired
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


def visits() -> None:
    """Print what a second period of stays costs."""
    first, second = two_periods()
    mechanism = Mondrian(k=K, l=L)
    one, two = mechanism.release(first), mechanism.release(second)
    rows = [rows_of(made, table, "patient_nbr") for made, table in ((one, first), (two, second))]
    together = judged_together(rows)
    in_both = n_in_common(rows[1], rows[:1])
    print(f"stays: {first.n_rows:,} and {second.n_rows:,}; patients {rows[0].n_persons:,} and {rows[1].n_persons:,}")
    print(f"in both: {in_both:,} patients")
    print(f"independent: {len(together.persons_below()):,} patients below, smallest joint class {together.anonymity}")
    coarse = GlobalRecoder(k=K, l=L, sensitive="diag_1", max_suppressed_fraction=0.01)
    print("| second period | rows released | GCP |\n| --- | --- | --- |")
    penalty = two.manifest.evidence["utility"]["global_certainty_penalty"]
    print(f"| without regard to the first | {two.table.n_rows:,} (100%) | {penalty:.3f} |")
    for name, made in (("repaired", one), ("repaired after global-recoding", coarse.release(first))):
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(Path(folder) / ".sfumato-ledger")
            recorded(ledger, made, first, "patient_nbr")
            began = time.monotonic()
            held = repaired(mechanism, second, ledger).release(second)
            seconds = time.monotonic() - began
        after = judged_together([rows_of(made, first, "patient_nbr"), rows_of(held, second, "patient_nbr")])
        penalty = held.manifest.evidence["utility"]["global_certainty_penalty"]
        share = held.table.n_rows / second.n_rows
        print(f"| {name} | {held.table.n_rows:,} ({share:.0%}) | {penalty:.3f} |")
        print(f"below: {len(after.persons_below()):,}, smallest joint class {after.anonymity}; {seconds:.0f} s")


def rows_of(release: Release, original: Table, person: str = "person") -> NamedRows:
    """Whose row is where, as the ledger keeps it."""
    rows = release.kept_rows if release.kept_rows is not None else np.arange(original.n_rows)
    return named_rows(release.table, original, read_claims(release.manifest.to_dict()), person, rows=rows)


def auc_of(released: Table) -> float:
    """Area under the curve of a logistic regression over the released cells as categories, five folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    names = [*QUASI, "occupation"]
    cells = np.column_stack([released[name].codes for name in names])
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=300))
    scores = cross_val_score(model, cells, released["salary"].codes, cv=5, scoring="roc_auc")
    return float(np.mean(scores))


def both_anew(first: Table, second: Table) -> tuple[Recoding, Recoding]:
    """Give both years classes that hold together: one division of everybody, by the first year that they are in."""
    number = {"first": _persons(first), "second": _persons(second)}
    arrived = np.array([p not in set(number["first"].tolist()) for p in number["second"].tolist()])
    joined = pa.concat_tables([first.to_arrow(), second.take(np.flatnonzero(arrived)).to_arrow()])
    everybody = _described(joined)
    persons = np.concatenate([number["first"], number["second"][arrived]])
    stays = np.isin(persons, number["second"]) & np.isin(persons, number["first"])
    pattern = np.where(stays, 0, np.where(np.isin(persons, number["first"]), 1, 2)).astype(np.int64)
    values = everybody["occupation"].codes.astype(np.int64)
    limits = (
        GroupLimit(np.arange(len(persons), dtype=np.int64), np.full(3, K, dtype=np.int64)),
        GroupLimit(values, np.full(3, L, dtype=np.int64)),
    )
    axes = axes_of(everybody, QUASI)
    guide = ScoreGuide.of(everybody, axes, "auto")
    partition = mondrian_partition(
        axes,
        K,
        split="score",
        statistics=guide.statistics,
        criterion=guide.criterion,
        order_by=guide.along,
        penalty_weight=PENALTY_WEIGHT,
        earlier=EarlierReleases(np.arange(len(persons)), pattern, limits),
    )
    group_of = dict(zip(persons.tolist(), partition.of_row.tolist(), strict=True))
    made = []
    for table, own in ((first, number["first"]), (second, number["second"])):
        groups = np.array([group_of[p] for p in own.tolist()])
        made.append(Recoding(axes_of(table, QUASI), Cover.of_groups(groups), lambda axes: np.zeros(0, dtype=np.int32)))
    return made[0], made[1]


def _persons(table: Table) -> np.ndarray[Any, Any]:
    column = table["person"]
    return np.array(column.values.to_pylist())[column.codes]


def recorded(ledger: Ledger, release: Release, original: Table, person: str = "person") -> None:
    """Put a release into a ledger without writing it anywhere else."""
    rows = ledger.named(rows_of(release, original, person))
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        written = {**release.manifest.output, "name": "release.csv", "sha256": "0" * 64, "format": "csv"}
        manifest: Manifest = release.with_manifest(output=written).manifest
        with ledger.recorded(Path(file.name), manifest, rows, person):
            pass


def main() -> None:
    """Print the table."""
    if sys.argv[1:] == ["visits"]:
        visits()
        return
    stays = float(sys.argv[1]) if len(sys.argv) > 1 else 0.7
    first, second = two_years(stays)
    mechanism = Mondrian(k=K, l=L, split="score")
    one, two = mechanism.release(first), mechanism.release(second)
    together = judged_together([rows_of(one, first), rows_of(two, second)])
    lines = [("independent", two.table, second.n_rows, two.manifest.evidence["utility"]["global_certainty_penalty"])]
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / ".sfumato-ledger")
        recorded(ledger, one, first)
        held = repaired(mechanism, second, ledger).release(second)
    after = judged_together([rows_of(one, first), rows_of(held, second)])
    lines.append(("repaired", held.table, second.n_rows, held.manifest.evidence["utility"]["global_certainty_penalty"]))
    recoder = GlobalRecoder(k=K, l=L, sensitive="occupation", max_suppressed_fraction=0.01)
    coarse = recoder.release(first)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / ".sfumato-ledger")
        recorded(ledger, coarse, first)
        other = repaired(mechanism, second, ledger).release(second)
        same = repaired(recoder, second, ledger).release(second)
    penalty = other.manifest.evidence["utility"]["global_certainty_penalty"]
    lines.append(("repaired after global-recoding", other.table, second.n_rows, penalty))
    penalty = same.manifest.evidence["utility"]["mean_share_of_values_left_open"]
    lines.append(("both by global-recoding, the second repaired", same.table, second.n_rows, penalty))
    _, anew = both_anew(first, second)
    lines.append(("both anew", anew.recoded(second), second.n_rows, anew.certainty_penalty))
    print(f"persons: {first.n_rows:,} and {second.n_rows:,}; share in both {stays:g}")
    print(f"independent: {len(together.persons_below()):,} persons below, smallest joint class {together.anonymity}")
    print(f"repaired: {len(after.persons_below()):,} persons below, smallest joint class {after.anonymity}")
    print("| second year | rows released | GCP | AUC |\n| --- | --- | --- | --- |")
    print(f"| original | {second.n_rows:,} | 0 | {auc_of(second):.3f} |")
    for name, table, n_rows, penalty in lines:
        print(f"| {name} | {table.n_rows:,} ({table.n_rows / n_rows:.0%}) | {penalty:.3f} | {auc_of(table):.3f} |")


if __name__ == "__main__":
    main()
