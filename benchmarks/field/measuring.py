"""One point of the field: a contender on a table at one k, fold by fold, each classifier asked twice."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.field.contenders import ORIGINAL, Contender
from benchmarks.field.peer_recodings import PeerFailedError, PeerRecoder
from benchmarks.field.tables import SMALL, FieldTable
from sfumato.errors import SfumatoError
from sfumato.evaluation.classifiers import CLASSIFIERS, Encoded
from sfumato.evaluation.encoding import GeneralizedEncoder, values_as_cells
from sfumato.evaluation.scores import MOST_VALUES, HeldOutFold, held_out_fold
from sfumato.evaluation.treatment import Treated, class_column, learned_from, stratified_folds, treated
from sfumato.table.coding import CodedColumn, Table

FOLDS = 3
HONEST, LEAKY = "honest", "leaky"
FORM, UNTOUCHED = "form", "original rows"
ENCODING = "0030"
"""Decision that says how cells become numbers; results of another encoding are not kept beside these."""
NAMES = ("logistic-regression", "gradient-boosting", "random-forest")


@dataclass(frozen=True)
class Point:
    """What is measured in one go, and its line in the file of results."""

    table: str
    contender: str
    k: int
    seed: int
    protocol: str = HONEST

    def key(self) -> str:
        """Name it in the file of results; k does not matter for the original."""
        return "/".join([self.table, self.contender, f"k={self.k}", f"seed={self.seed}", self.protocol])


def kept_results(path: Path) -> dict[str, dict[str, Any]]:
    """Read finished points by key; a line that was cut off, or has another encoding, is measured again."""
    found = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                result = json.loads(line)
            except json.JSONDecodeError:
                continue
            if result.get("encoding") == ENCODING:
                found[result["key"]] = result
    return found


def keep(path: Path, result: dict[str, Any]) -> None:
    """Append one finished point; one write, so that two runs can share the file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result, ensure_ascii=False) + "\n")


def classifiers_of(n_rows: int) -> tuple[str, ...]:
    """Linear, boosted and forest; and, on small tables, a support vector machine."""
    return (*NAMES, "linear-svm") if n_rows <= SMALL else NAMES


def measured(point: Point, contender: Contender, described: FieldTable, table: Table) -> dict[str, Any]:
    """Measure one point; a contender that gives no release has the reason instead of scores."""
    result: dict[str, Any] = {"key": point.key(), **vars(point), "encoding": ENCODING, "n_rows": table.n_rows}
    target = class_column(table)
    started, cpu = time.perf_counter(), time.process_time()
    try:
        folds = [_scores(*part) for part in _parts(point, contender, described, table, target)]
    except (SfumatoError, PeerFailedError) as error:
        return result | {"failed": str(error)[:200]}
    means: dict[str, dict[str, Any]] = {}
    for name in folds[0]["scores"]:
        means[name] = {
            what: [round(float(fold["scores"][name][what]), 4) for fold in folds] for what in folds[0]["scores"][name]
        }
    return result | {
        "scores": means,
        "n_constant": round(float(np.mean([fold["n_constant"] for fold in folds])), 2),
        "n_columns": folds[0]["n_columns"],
        "suppressed": round(float(np.mean([fold["suppressed"] for fold in folds])), 4),
        "majority": round(float(target.counts.max() / table.n_rows), 4),
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }


def _parts(
    point: Point, contender: Contender, described: FieldTable, table: Table, target: CodedColumn
) -> Iterator[tuple[Treated, Table, CodedColumn, Any, Any]]:
    """Training and test rows of each fold; in the leaky protocol one release of all rows is divided into folds."""
    mechanism = _mechanism(point, contender, described)
    names = learned_from(table.schema)
    folds = stratified_folds(target.codes, FOLDS, point.seed)
    if point.protocol == LEAKY:
        whole = treated(mechanism, table, table)
        rows = np.arange(table.n_rows) if whole.rows is None else whole.rows
        for _, test_rows in folds:
            is_test = np.isin(rows, test_rows)
            train = Treated(
                whole.train.take(~is_test), whole.train.take(is_test), whole.columns, _taken(whole.target, ~is_test)
            )
            yield train, values_as_cells(table.keep(names).take(rows[is_test]), names), target, ~is_test, rows[is_test]
        return
    for train_rows, test_rows in folds:
        test = table.take(test_rows)
        part = treated(mechanism, table.take(train_rows), test)
        yield part, values_as_cells(test.keep(names), names), target, train_rows, test_rows


def _taken(column: CodedColumn | None, rows: Any) -> CodedColumn | None:
    return None if column is None else column.take(rows)


def _mechanism(point: Point, contender: Contender, described: FieldTable) -> Any:
    if contender.name == ORIGINAL:
        return None
    if contender.peer:
        return PeerRecoder(contender.peer, point.k, described)
    return contender.build(point.k, described)


def _scores(part: Treated, untouched: Table, target: CodedColumn, train_rows: Any, test_rows: Any) -> dict[str, Any]:
    encoder = GeneralizedEncoder(max_values=MOST_VALUES).fit(part.train, part.columns)
    kinds = Encoded(encoder.is_share_, encoder.is_piece_)
    forms = {FORM: encoder.transform(part.test), UNTOUCHED: encoder.transform(untouched)}
    number_of = {value: number for number, value in enumerate(target.values.to_pylist())}
    if part.target is None:
        raise AssertionError
    classes = np.array([number_of[v] for v in part.target.values.to_pylist()], dtype=np.int32)[part.target.codes]
    own = encoder.training_rows(part.train, classes)
    truth = target.codes[test_rows]
    scores = {}
    both = (np.vstack(list(forms.values())), np.concatenate([truth, truth]))
    for name in classifiers_of(len(target.codes)):
        asked = held_out_fold(CLASSIFIERS[name].build(0, kinds), own, both, target.n_distinct)
        scores[name] = {
            f"{what}, {form}": score
            for place, form in enumerate(forms)
            for what, score in _of_part(asked, slice(place * len(truth), (place + 1) * len(truth))).items()
        }
    is_constant = [part.train[name].n_distinct <= 1 for name in part.columns]
    n_train = int(np.count_nonzero(train_rows)) if train_rows.dtype == np.bool_ else len(train_rows)
    return {
        "scores": scores,
        "n_constant": sum(is_constant),
        "n_columns": len(part.columns),
        "suppressed": 1 - part.train.n_rows / n_train,
    }


def _of_part(asked: HeldOutFold, rows: slice) -> dict[str, float]:
    part = HeldOutFold(asked.target[rows], asked.predicted[rows], asked.evidence[rows])
    return {"auc": part.area(), "accuracy": part.accuracy()}


def mean_score(result: dict[str, Any], what: str, names: Sequence[str]) -> float:
    """Mean over folds and some classifiers of one kind of score."""
    return float(np.mean([np.mean(result["scores"][name][what]) for name in names]))
