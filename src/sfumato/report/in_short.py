"""A release in five plain lines: promised, prediction kept, columns emptied, people found, what is not covered.

The same for the command line, the page and the report, and the warnings that go with it. No line holds a cell value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.audit.reading.columns import Classes, Columns, group_rows, joint_counts
from sfumato.errors import SfumatoError, on_one_line
from sfumato.guarantees import Containment
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.progress import Progress
from sfumato.report.guarantee_texts import share_in_words
from sfumato.schema import Role

if TYPE_CHECKING:
    from sfumato.evaluation.scores import Estimate

MOST_NAMED = 12
MOST_ROWS = 20_000
MOST_LOST = 1 / 3
MOST_UNIQUE = 0.05
_CLASSIFIERS = ("logistic-regression", "gradient-boosting")
_N_FOLDS = 3


@dataclass(frozen=True)
class Prediction:
    """How well a classifier predicts the target from the original and from the release.

    The one of a linear and a boosted model that does better on the original, by AUC. The mechanism was fitted in every
    training fold, and the test rows were new to it.

    Parameters
    ----------
    classifier : str
    auc_before, auc_after : Estimate or None
        ``None`` where no fold has two classes.
    accuracy_before, accuracy_after : Estimate
    majority : float
        Accuracy of always naming the most frequent class.
    n_rows : int
        Rows that were used; fewer than the table has where a sample was drawn.
    """

    classifier: str
    auc_before: Estimate | None
    auc_after: Estimate | None
    accuracy_before: Estimate
    accuracy_after: Estimate
    majority: float
    n_rows: int

    def in_words(self) -> str:
        """Say it on one line."""
        auc = ""
        if self.auc_before is not None and self.auc_after is not None:
            margin = (self.auc_after.high - self.auc_after.low) / 2
            auc = f"AUC {self.auc_after.mean:.3f} ± {margin:.3f} (original {self.auc_before.mean:.3f}), "
        return (
            f"{auc}accuracy {self.accuracy_after.mean:.1%} (original {self.accuracy_before.mean:.1%}, "
            f"always the most frequent class {self.majority:.1%})"
        )


@dataclass(frozen=True)
class InShort:
    """What somebody should know of a release before giving it away.

    Parameters
    ----------
    promises : tuple of str
        What is promised, with the level that the audit found.
    prediction : Prediction or str
        Or the reason why it was not measured.
    lost_columns : tuple of str
        Columns that tell nothing any more: dropped, or released with the same cell in every row.
    n_columns : int
        Columns of the original other than the target and identifiers, without those that were constant before.
    found : float or None
        Expected share of people whom an attacker names rightly who knows all their quasi-identifiers; ``None`` where
        the original was not given or that cannot be told.
    one_class : float or None
        Share of the rows in groups of equal quasi-identifiers that all have one target value; ``None``: no target.
    unique : float
        Share of the rows that all released columns but the target tell apart from every other row.
    is_about_ones : bool
        Whether k-anonymity by containment is promised: against attackers who know ones of a person, and no zeros.
    is_compared : bool
        Whether the original was given. Otherwise the columns are those of the release, and one with the same cell in
        every row may have been so before.
    """

    promises: tuple[str, ...]
    prediction: Prediction | str
    lost_columns: tuple[str, ...]
    n_columns: int
    found: float | None
    one_class: float | None
    unique: float
    is_about_ones: bool = False
    is_compared: bool = True

    def headed(self) -> dict[str, str]:
        """Give the five sentences by their headings."""
        said = self.prediction.in_words() if isinstance(self.prediction, Prediction) else None
        found = "not measured without the original"
        if self.found is not None:
            found = f"{share_in_words(self.found)} are named rightly by somebody who knows all their quasi-identifiers"
        sentences = {
            "Promised": "; ".join(self.promises),
            "Prediction": said or f"not measured: {self.prediction}",
            "Lost": self._lost(),
            "People": found,
            "Not covered": self._not_covered(),
        }
        return {heading: on_one_line(sentence) for heading, sentence in sentences.items()}

    def lines(self) -> list[str]:
        """Give the five lines."""
        return [f"{heading + ':':<13}{sentence}" for heading, sentence in self.headed().items()]

    def _lost(self) -> str:
        if not self.lost_columns:
            which = "column" if self.is_compared else "released column"
            return f"nothing whole: every {which} still tells rows apart"
        named = ", ".join(f"'{name}'" for name in self.lost_columns[:MOST_NAMED])
        more = f" and {len(self.lost_columns) - MOST_NAMED:,} more" if len(self.lost_columns) > MOST_NAMED else ""
        return f"{self._how_many_lost()}: {named}{more}"

    def _how_many_lost(self) -> str:
        what = "carry nothing any more" if self.is_compared else "are the same in every row"
        return f"{len(self.lost_columns):,} of {self.n_columns:,} columns {what}"

    def _not_covered(self) -> str:
        said = [f"{share_in_words(self.unique)} of the rows are unique in all released columns together"]
        if self.one_class is not None:
            alike = share_in_words(self.one_class)
            said.insert(0, f"{alike} of the rows are in groups that all have one target value, which is thereby told")
        if self.is_about_ones:
            said.insert(0, "somebody who also knows what a person does not have (the zeros)")
        return "; ".join(said)

    def warnings(self) -> list[str]:
        """Say what should make one stop."""
        said = []
        if isinstance(self.prediction, Prediction):
            kept = self.prediction
            if kept.accuracy_after.mean <= kept.majority:
                neither = "; nor does the original" if kept.accuracy_before.mean <= kept.majority else ""
                said.append(f"this release predicts no better than always naming the most frequent class{neither}")
        if len(self.lost_columns) > MOST_LOST * self.n_columns:
            said.append(self._how_many_lost())
        if self.unique > MOST_UNIQUE:
            said.append(
                f"{share_in_words(self.unique)} of the rows are unique in all released columns together: who knows "
                "sensitive or other columns of a person finds the row. Give columns that attackers may know the role "
                "of quasi-identifiers, or leave them out"
            )
        return [on_one_line(sentence) for sentence in said]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the page and the report."""
        return {"headed": self.headed(), "warnings": self.warnings()}


def in_short(
    release: Release,
    original: AnyTable | None = None,
    mechanism: Mechanism | None = None,
    *,
    quick: bool = False,
    progress: Progress | None = None,
) -> InShort:
    """Sum a release up.

    Parameters
    ----------
    original : Table or BinaryTable or None
        With it people found and prediction are measured; of a differentially private release neither is.
    mechanism : Mechanism or None
        What made the release, to be fitted in training folds.
    quick : bool
        Train no classifiers.
    progress : callable or None
        Called as ``progress(done, total, what)`` while classifiers are trained.

    Examples
    --------
    >>> from sfumato import Mondrian, release
    >>> from sfumato.datasets.admissions import admissions
    >>> table = admissions(n_rows=200).keep(["age", "sex", "readmitted"])
    >>> short = in_short(release(table, Mondrian(k=5)), table)
    >>> short.lines()[2]
    'Lost:        nothing whole: every column still tells rows apart'
    """
    if release.manifest.is_differentially_private:
        original = None  # what is said of the release must not depend on one more look at the rows
    shown = Columns(release.table)
    quasi = shown.with_role(Role.QUASI_IDENTIFIER)
    beside = [name for role in (Role.SENSITIVE, Role.OTHER) for name in shown.with_role(role)]
    n_columns, lost = _columns(release, shown, original)
    return InShort(
        tuple(_promise(entry) for entry in release.manifest.guarantees),
        _prediction(release, original, mechanism, "classifiers were not trained" if quick else "", progress),
        lost,
        n_columns,
        _found(release, original),
        _one_class(shown, group_rows(shown, quasi)),
        float(np.count_nonzero(group_rows(shown, (*quasi, *beside)).sizes == 1) / max(shown.n_rows, 1)),
        Containment.kind in {entry["kind"] for entry in release.manifest.guarantees},
        original is not None,
    )


def _promise(entry: Mapping[str, Any]) -> str:
    found = entry.get("audited")
    return str(entry["statement"]) + (f" (found: {found:g})" if isinstance(found, int | float) else "")


def _columns(release: Release, shown: Columns, original: AnyTable | None) -> tuple[int, tuple[str, ...]]:
    """Count the columns that told something, and name those that no longer do."""
    made: dict[str, list[str]] = {}
    source_of = {str(entry["name"]): str(entry["column"]) for entry in release.manifest.recodings if "column" in entry}
    for name in shown.names:
        if shown.describe(name).role is not Role.TARGET:
            made.setdefault(source_of.get(name, name), []).append(name)
    told = list(made)
    if original is not None:
        before = Columns(original)
        apart = (Role.TARGET, Role.IDENTIFIER)
        told = [name for name in before.names if before.describe(name).role not in apart and _varies(before, name)]
    lost = [name for name in told if not any(_varies(shown, one) for one in made.get(name, ()))]
    return len(told), tuple(lost)


def _varies(columns: Columns, name: str) -> bool:
    return len(np.unique(columns.coded(name).codes)) > 1


def _prediction(
    release: Release, original: AnyTable | None, mechanism: Mechanism | None, skip: str, progress: Progress | None
) -> Prediction | str:
    if original is None or mechanism is None or skip:
        return skip or "that takes the original, and the mechanism fitted anew in parts of it"
    # every release is summed up, and few train classifiers: loading them takes a third of a second
    from sfumato.attack.risk import attacked_rows
    from sfumato.evaluation.scores import evaluate

    used = attacked_rows(original, release.manifest)
    settings: dict[str, Any] = {"classifiers": _CLASSIFIERS, "n_folds": _N_FOLDS, "max_rows": MOST_ROWS}
    try:
        before = evaluate(used, **settings, progress=progress)
        after = evaluate(used, mechanism, **settings, progress=progress)
    except SfumatoError as exc:
        return exc.message.removesuffix(".")
    areas = {name: scores.auc.mean if scores.auc else 0.0 for name, scores in before.classifiers.items()}
    best = max(areas, key=areas.__getitem__)
    old, new = before.classifiers[best], after.classifiers[best]
    return Prediction(best, old.auc, new.auc, old.accuracy, new.accuracy, before.majority_accuracy, before.n_rows)


def _found(release: Release, original: AnyTable | None) -> float | None:
    if original is None:
        return None
    from sfumato.attack.correspondence import Correspondence
    from sfumato.attack.reidentification import reidentification_risk
    from sfumato.attack.risk import attacked_rows

    used = attacked_rows(original, release.manifest)
    try:
        risks = reidentification_risk(Correspondence(used, release.table, release.manifest))
    except SfumatoError:
        return None
    return float(risks["marketer"])


def _one_class(shown: Columns, classes: Classes) -> float | None:
    targets = shown.with_role(Role.TARGET)
    if not targets:
        return None
    joint = joint_counts(shown, classes, targets[0])
    is_alike = np.bincount(joint.class_ids, minlength=len(classes.sizes)) == 1
    return float(classes.sizes[is_alike].sum() / max(shown.n_rows, 1))
