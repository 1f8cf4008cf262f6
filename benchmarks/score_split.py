"""What a classifier keeps under Mondrian's label split and score split, on seven public tables; writes SCORE_SPLIT.md.

    python -m benchmarks.score_split                          # all: about half an hour of one core
    python -m benchmarks.score_split --tables pima mgm --k 5  # some, printed only
    python -m benchmarks.score_split --done /tmp/done.jsonl   # keeps what was measured, and goes on there

Protocol: stratified three folds, five seeds (tables of 10,000 rows: fewer, the table says how many). The mechanism and
all its models are fitted on the training rows of a fold. Classifiers are trained on the released training rows (means
of cells and values drawn from them, decision 0030) and tested twice: on test rows in the release's form, and on
untouched test rows. Logistic regression as comparisons use it,
boosted trees with 100 rounds; loss is the mean of both, against the same classifiers trained on the training rows
as they are. With more than two classes the area under the ROC curve is the mean of each class against the rest.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, ROOT

os.environ.setdefault("OMP_NUM_THREADS", "1")
RESULTS = ROOT / "benchmarks" / "SCORE_SPLIT.md"
N_FOLDS = 3
MOST_ROWS = 10_000
SMALL_SEEDS, LARGE_SEEDS = 5, 1
KS = (5, 25, 100)
SPLITS = ("gain", "score")
DIABETES = (
    *("race", "gender", "age", "admission_type_id", "discharge_disposition_id", "admission_source_id", "payer_code"),
    *("medical_specialty", "time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications"),
    *("number_inpatient", "number_emergency", "number_diagnoses"),
)


def adult() -> Any:
    """Take 10,000 rows of ARX's Adult: eight quasi-identifiers, of which age is a number."""
    return built(read("adult-arx/adult.csv", ";"), "salary-class", numeric=("age",))


def diabetes130() -> Any:
    """Take one row of each of 10,000 patients; the target is whether they came back."""
    import numpy as np
    import pyarrow as pa

    cells = read("diabetes130/diabetic_data.csv.gz", ",")
    first = np.unique(cells["patient_nbr"].to_numpy(), return_index=True)[1]
    cells = cells.take(np.sort(first))
    came_back = pa.array(["no" if value == "NO" else "yes" for value in cells["readmitted"].to_pylist()])
    cells = cells.select(list(DIABETES)).append_column("readmitted", came_back)
    return built(cells, "readmitted", numeric=[name for name in DIABETES if name.startswith(("num", "time"))])


def cahousing() -> Any:
    """Take 10,000 rows of California housing, all numbers; the target is the place by the ocean."""
    cells = read("k-anonml/cahousing.csv.gz", ";").drop_columns(["ID"])
    return built(cells, "ocean_proximity", numeric=[name for name in cells.column_names if name != "ocean_proximity"])


def cmc() -> Any:
    """Read contraceptive method choice: three classes."""
    return built(read("k-anonml/cmc.csv.gz", ";").drop_columns(["ID"]), "method", numeric=("age", "children"))


def mgm() -> Any:
    """Read mammographic masses."""
    return built(read("k-anonml/mgm.csv.gz", ";").drop_columns(["ID"]), "severity", numeric=("age",))


def ilpd() -> Any:
    """Read Indian liver patients."""
    cells = read("ilpd/ilpd.csv", ",")
    return built(cells, "Label", numeric=[name for name in cells.column_names if name not in ("Gender", "Label")])


def pima() -> Any:
    """Read Pima Indians."""
    cells = read("pima/pima-indians-diabetes.csv", ",", header=False)
    *columns, target = cells.column_names
    return built(cells, target, numeric=columns)


TABLES = {make.__name__: make for make in (adult, diabetes130, cahousing, cmc, mgm, ilpd, pima)}
LARGE = ("adult", "diabetes130", "cahousing")


def read(name: str, delimiter: str, *, header: bool = True) -> Any:
    """Read a public file as it is; ``?`` and nothing are missing."""
    from pyarrow import csv

    return csv.read_csv(
        DATA / name,
        read_options=csv.ReadOptions(autogenerate_column_names=not header),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(null_values=["?", ""], strings_can_be_null=True),
    )


def built(cells: Any, target: str, numeric: Any) -> Any:
    """Make a table of at most 10,000 rows, drawn with one seed."""
    import numpy as np
    import pyarrow as pa

    from sfumato.schema import Column, Kind, Role, Schema
    from sfumato.table.coding import Table

    if len(cells) > MOST_ROWS:
        cells = cells.take(np.sort(np.random.default_rng(0).permutation(len(cells))[:MOST_ROWS]))
    columns = []
    for place, name in enumerate(cells.column_names):
        if name not in numeric:
            cells = cells.set_column(place, name, cells[name].cast(pa.string()))
        kind = Kind.NUMERIC if name in numeric else Kind.CATEGORICAL
        columns.append(Column(name, Role.TARGET if name == target else Role.QUASI_IDENTIFIER, kind))
    return Table.from_arrow(cells, Schema.of(columns))


@dataclass(frozen=True)
class Fold:
    """Training and test rows of a table, their classes, and both as cells of one value each."""

    number: int
    train: Any
    test: Any
    classes: tuple[Any, Any]
    names: tuple[str, ...]
    described: dict[str, Any]
    plain: tuple[Any, Any]

    def cells(self, recoding: Any) -> tuple[Any, Any]:
        """Training and test rows as a recoding of the training rows releases them."""
        from sfumato.evaluation.treatment import recoded_cells

        own, new = recoding.recoded(self.train), recoding.generalized(self.test.keep(self.names))
        first, second = (recoded_cells(recoding, part, self.names).keep(self.names) for part in (own, new))
        return first, second


def folds_of(name: str, seed: int) -> Iterator[Fold]:
    """Divide a table's rows by chance, every class evenly."""
    from sfumato.evaluation.encoding import values_as_cells
    from sfumato.evaluation.treatment import learned_from, stratified_folds

    table = TABLES[name]()
    target, names = table[table.schema.target].codes, tuple(learned_from(table.schema))
    described = {column: table.schema[column] for column in names}
    for number, (train_rows, test_rows) in enumerate(stratified_folds(target, N_FOLDS, seed)):
        train, test = table.take(train_rows), table.take(test_rows)
        first, second = (values_as_cells(part.keep(names), names) for part in (train, test))
        yield Fold(number, train, test, (target[train_rows], target[test_rows]), names, described, (first, second))


def measured(name: str, seed: int, ks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Measure both splits in the folds of one seed."""
    import numpy as np

    from sfumato.mechanisms.mondrian.mechanism import Mondrian

    for fold in folds_of(name, seed):
        (original,) = areas(fold.plain[0], [fold.plain[1]], fold.classes, fold.described)
        for k in ks:
            for split in SPLITS:
                recoding = Mondrian(k=k, split=split).recode(fold.train)
                own, new = fold.cells(recoding)
                encodable = fold.described | recoding.encodable()
                in_form, untouched = areas(own, [new, fold.plain[1]], fold.classes, encodable)
                classes = fold.classes[0]
                pure = np.stack([np.bincount(recoding.cover.of_row, classes == c) for c in np.unique(classes)])
                is_one_class = (pure > 0).sum(axis=0) == 1
                yield {
                    "table": name,
                    "seed": seed,
                    "fold": fold.number,
                    "k": k,
                    "split": split,
                    "original": original,
                    "in form": in_form,
                    "untouched": untouched,
                    "penalty": recoding.certainty_penalty,
                    "one class": float(is_one_class[recoding.cover.of_row].mean()),
                }


def areas(train: Any, tests: list[Any], classes: Any, described: Any) -> list[list[float]]:
    """Areas under the ROC curve of logistic regression and of boosted trees, on each of some test tables."""
    return [[fold.area() for fold in of_test] for of_test in held_out_folds(train, tests, classes, described)]


def held_out_folds(train: Any, tests: list[Any], classes: Any, described: Any) -> list[list[Any]]:
    """Ask logistic regression and boosted trees about each of some test tables."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline

    from sfumato.evaluation.classifiers import CLASSIFIERS, EmptyAsZero, Encoded, WithoutPieces
    from sfumato.evaluation.encoding import GeneralizedEncoder
    from sfumato.evaluation.scores import MOST_VALUES, HeldOutFold, held_out_fold

    encoder = GeneralizedEncoder(max_values=MOST_VALUES).fit(train, described)
    boosted = HistGradientBoostingClassifier(max_iter=100, early_stopping=False, random_state=0)
    models = [
        CLASSIFIERS["logistic-regression"].build(0, Encoded(encoder.is_share_, encoder.is_piece_)),
        make_pipeline(WithoutPieces(encoder.is_piece_), EmptyAsZero(), boosted),
    ]
    rows, n_classes = encoder.training_rows(train, classes[0]), 1 + max(int(part.max()) for part in classes)
    asked = np.vstack([encoder.transform(test) for test in tests]), np.tile(classes[1], len(tests))
    found: list[list[Any]] = [[] for _ in tests]
    for model in models:
        held_out = held_out_fold(model, rows, asked, n_classes)
        parts = (np.split(of_rows, len(tests)) for of_rows in (held_out.target, held_out.predicted, held_out.evidence))
        for of_test, part in zip(found, zip(*parts, strict=True), strict=True):
            of_test.append(HeldOutFold(*part))
    return found


def losses(rows: list[dict[str, Any]], tested: str) -> Any:
    """Losses of area in thousandths, one of each fold: the mean of both classifiers."""
    import numpy as np

    return np.array([1000 * (np.mean(row["original"]) - np.mean(row[tested])) for row in rows])


def difference(label: Any, score: Any) -> str:
    """Write how much more the label loses, with the 95 % interval of a mean over folds that overlap."""
    from scipy import stats

    from sfumato.learning.fold_scores import compare_folds

    found = compare_folds(label, score, test_train_ratio=1 / (N_FOLDS - 1))
    half = stats.t.ppf(0.975, len(label) - 1) * found.standard_error
    return f"{found.difference:+.1f} ± {half:.1f}"


def described(rows: list[dict[str, Any]]) -> str:
    """Write all that was measured as Markdown."""
    import numpy as np

    lines = [
        "| table | seeds | k | original | label, in form | score, in form | difference | label, untouched | "
        "score, untouched | difference | GCP label / score | rows in one-class groups |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    means: dict[int, list[list[float]]] = {}
    for name in dict.fromkeys(row["table"] for row in rows):
        for k in sorted({row["k"] for row in rows}):
            label, score = (
                [row for row in rows if (row["table"], row["k"], row["split"]) == (name, k, split)] for split in SPLITS
            )
            cells, own = [], []
            for tested in ("in form", "untouched"):
                pair = losses(label, tested), losses(score, tested)
                own += [pair[0].mean(), pair[1].mean()]
                cells += [f"{pair[0].mean():.1f}", f"{pair[1].mean():.1f}"]
                cells.append(difference(*pair))
            means.setdefault(k, []).append(own)
            gcp = " / ".join(f"{np.mean([row['penalty'] for row in part]):.3f}" for part in (label, score))
            pure = " / ".join(f"{np.mean([row['one class'] for row in part]):.0%}" for part in (label, score))
            seeds = len({row["seed"] for row in score})
            original = np.mean([row["original"] for row in score])
            lines.append(f"| {name} | {seeds} | {k} | {original:.3f} | {' | '.join(cells)} | {gcp} | {pure} |")
    for k, own in means.items():
        a, b, c, d = np.mean(own, axis=0)
        lines.append(f"| mean | | {k} | | {a:.1f} | {b:.1f} | | {c:.1f} | {d:.1f} | | | |")
    main = [own for k in (5, 25) for own in means.get(k, [])]
    if main:
        a, b, c, d = np.mean(main, axis=0)
        lines.append(f"| **mean, k = 5 and 25** | | | | {a:.1f} | **{b:.1f}** | | {c:.1f} | **{d:.1f}** | | | |")
    return "\n".join(lines) + "\n"


HEADER = """# Label split and score split

Written by `python -m benchmarks.score_split`, which says the protocol. Loss of AUC in thousandths, mean of logistic
regression and boosted trees, against the same classifiers on the original training rows: test rows *in form* of the
release, and *untouched*. A difference above 0 is in favour of the score; ± is the 95 % interval over folds. Goal over
k = 5 and 25: at most 8 in form, at most 20 untouched.

"""


def main() -> None:
    """Measure what is asked for and not done yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--k", nargs="*", type=int, default=list(KS))
    parser.add_argument("--done", type=Path, help="file of lines that keeps what was measured")
    asked = parser.parse_args()
    known = (
        [json.loads(line) for line in asked.done.read_text().splitlines()] if asked.done and asked.done.exists() else []
    )
    for name in asked.tables:
        for seed in range(LARGE_SEEDS if name in LARGE else SMALL_SEEDS):
            done = {row["k"] for row in known if (row["table"], row["seed"]) == (name, seed)}
            todo = tuple(k for k in asked.k if k not in done)
            rows = list(measured(name, seed, todo)) if todo else []
            known += rows
            if asked.done and rows:
                with asked.done.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)
            print(f"{name}, seed {seed}: {len(rows)} measured", flush=True)
    chosen = [row for row in known if row["table"] in asked.tables and row["k"] in asked.k]
    table = described(sorted(chosen, key=lambda row: list(TABLES).index(row["table"])))
    print(table)
    if set(asked.tables) == set(TABLES) and set(asked.k) == set(KS):
        RESULTS.write_text(HEADER + table, encoding="utf-8")


if __name__ == "__main__":
    main()
