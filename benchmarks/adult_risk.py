"""The risk of Adult as it is: k, distinct l and t of eight quasi-identifiers, with the salary class sensitive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender, Outcome
from benchmarks.generated import n_bytes

FILE = DATA / "adult-arx" / "adult.csv"
SENSITIVE = "salary-class"
QUASI_IDENTIFIERS = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")


def load_table(folder: Path) -> Any:
    """Read Adult into a coded table with its roles."""
    import pyarrow as pa
    import pyarrow.csv

    from sfumato.schema import Column, Role, Schema
    from sfumato.table.coding import Table

    cells = pa.csv.read_csv(FILE, parse_options=pa.csv.ParseOptions(delimiter=";"))
    roles = dict.fromkeys(QUASI_IDENTIFIERS, Role.QUASI_IDENTIFIER) | {SENSITIVE: Role.SENSITIVE}
    return Table.from_arrow(cells, Schema.of(Column(name, roles[name]) for name in cells.column_names))


def profile_with_counts(table: Any) -> Any:
    """Count once, measure three times."""
    from sfumato.counting.classes import class_value_counts
    from sfumato.measures.anonymity import anonymity_level
    from sfumato.measures.diversity import distinct_diversity, t_closeness

    counts = class_value_counts(table, QUASI_IDENTIFIERS, SENSITIVE)
    diversity = int(distinct_diversity(counts).min())
    return [anonymity_level(counts.class_sizes), diversity, t_closeness(counts)]


def profile_with_audit(table: Any) -> Any:
    """Take the same three from the auditor's whole profile, which shares no code with the counting."""
    from sfumato.audit.profile import risk_profile

    profile = risk_profile(table)
    sensitive = profile["sensitive"][SENSITIVE]
    return [profile["k"], sensitive["distinct_l"], sensitive["t_equal"]]


def assess(table: Any, answer: Any) -> Outcome:
    """Answer, with the bytes of the coded table."""
    return Outcome(answer, {"bytes": n_bytes(table)})


def load_frame(folder: Path) -> Any:
    """Read Adult with pandas."""
    import pandas as pd

    return pd.read_csv(FILE, sep=";")


def profile_with_pycanon(frame: Any) -> Any:
    """Ask pycanon for the three."""
    from pycanon import anonymity

    columns, sensitive = list(QUASI_IDENTIFIERS), [SENSITIVE]
    return [
        int(anonymity.k_anonymity(frame, columns)),
        int(anonymity.l_diversity(frame, columns, sensitive)),
        float(anonymity.t_closeness(frame, columns, sensitive)),
    ]


BENCHMARK = Benchmark(
    title="k, distinct l and t of Adult (30,162 rows, 8 quasi-identifiers)",
    goal="at least 100 × faster than pycanon, with the same values",
    needs=(FILE,),
    contenders=(
        Contender("sfumato counting", profile_with_counts, load_table, ("sfumato", "duckdb"), 15, assess=assess),
        Contender("sfumato risk_profile", profile_with_audit, load_table, ("sfumato",), 15, assess=assess),
        Contender("pycanon", profile_with_pycanon, load_frame, ("pycanon", "pandas"), repeats=1, peer=True),
    ),
)
