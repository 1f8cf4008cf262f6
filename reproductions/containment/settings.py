"""What the paper leaves open about its SVM, tried: loss, weights of the classes, and what the area is taken of.

With few columns C has no effect, and the paper's areas are below ours where as many features are kept. An area of
predicted labels instead of margins is the usual reason for low ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from reproductions.containment.data import DataSet
from reproductions.containment.methods import PAPER_METHODS
from reproductions.containment.scoring import SEED, Prepared, folds

K = 5
MOST_COLUMNS = 1_000  # hinge loss has no primal solver here, and its dual does not converge on flipped rows
SQUARED, HINGE, BALANCED = "squared hinge", "hinge", "squared hinge, balanced"
LOSSES = (SQUARED, BALANCED, HINGE)


@dataclass(frozen=True)
class Areas:
    """Area under the curve of margins and of predicted labels."""

    margins: float
    labels: float


@dataclass(frozen=True)
class Tried:
    """Areas of each of the paper's methods on a data set at k = 5 and C = 1, by loss."""

    data: str
    areas: dict[str, dict[str, Areas]]


def areas(released: Prepared, loss: str = SQUARED, penalty: float = 1.0) -> Areas:
    """Cross-validate a released table by an SVM with a loss and a C."""
    is_hinge = loss == HINGE
    model = LinearSVC(
        C=penalty,
        loss="hinge" if is_hinge else "squared_hinge",
        dual=is_hinge,
        class_weight="balanced" if loss == BALANCED else None,
        random_state=SEED,
        max_iter=20_000,
    )
    matrix, classes = released.matrix.astype(float), released.classes
    margins, labels = [], []
    for train, test in folds().split(matrix, classes):
        model.fit(matrix[train], classes[train])
        margins.append(roc_auc_score(classes[test], model.decision_function(matrix[test])))
        labels.append(roc_auc_score(classes[test], model.predict(matrix[test])))
    return Areas(float(np.mean(margins)), float(np.mean(labels)))


def run(data: DataSet) -> Tried:
    """Try all losses on what each of the paper's methods makes of a data set."""
    found = {}
    for name, method in PAPER_METHODS.items():
        released = method(data.matrix, data.classes, K)
        losses = [loss for loss in LOSSES if loss != HINGE or len(released.columns) <= MOST_COLUMNS]
        found[name] = {loss: areas(released, loss) for loss in losses}
    return Tried(data.name, found)


def report(outcomes: list[Tried], printed: dict[tuple[str, str], float]) -> Iterator[str]:
    """Lines of RESULTS.md; ``printed``: the paper's area at k = 5 by data set and method."""
    yield "\n## Classifier settings that were tried\n"
    yield "AUC at k = 5 as the paper took it (of the released table, five folds), C = 1: margins / predicted labels.\n"
    yield f"| data | method | paper | {' | '.join(LOSSES)} |"
    yield f"| {' | '.join(['---'] * (3 + len(LOSSES)))} |"
    for one in outcomes:
        for name, by_loss in one.areas.items():
            cells = " | ".join(
                f"{by_loss[loss].margins:.3f} / {by_loss[loss].labels:.3f}" if loss in by_loss else "—"
                for loss in LOSSES
            )
            yield f"| {one.data} | {name} | {printed[one.data, name]:.2f} | {cells} |"
