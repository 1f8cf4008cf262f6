"""A release in five plain lines: promised, prediction, lost columns, people re-identified, what is not covered.

The same for the command line, the page and the report, and the warnings that go with it. No line holds a cell value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.audit.levels.anonymity import UNIQUE_CLASSES
from sfumato.audit.reading.columns import Columns
from sfumato.audit.reading.equivalence import classes_of_rows
from sfumato.errors import SfumatoError, on_one_line
from sfumato.guarantees import Containment, guarantee_from_dict
from sfumato.manifest import AnyTable, Manifest
from sfumato.progress import Progress
from sfumato.report.guarantee_texts import NO_ORIGINAL, NO_TARGET, NOT_MEASURED, QUICK, share_in_words
from sfumato.schema import WITHHELD, Role

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism, Release

MOST_NAMED = 12
MOST_LOST = 1 / 3
MOST_UNIQUE = 0.05
GUESSING = 0.5
"""AUC of somebody who guesses, or always names the majority class."""
_PRIVATE = "the release is differentially private; figures from the original would disclose more than epsilon allows"
_DRAWN = "the released rows were drawn from noisy counts; no row belongs to a person"


@dataclass(frozen=True)
class Prediction:
    """How well the classifier that is best on the original, by AUC, predicts the target before and after.

    Parameters
    ----------
    name, classifier : str
        Of the classifier: in :data:`sfumato.evaluation.classifiers.CLASSIFIERS`, and for people.
    auc_before, auc_after : mapping or None
        ``mean``, ``low`` and ``high``, the ends of the 95 % interval; ``None`` where no fold has two classes.
    accuracy_before, accuracy_after : float
    majority : float
        Accuracy of always predicting the majority class.
    """

    name: str
    classifier: str
    auc_before: Mapping[str, float] | None
    auc_after: Mapping[str, float] | None
    accuracy_before: float
    accuracy_after: float
    majority: float

    @classmethod
    def of(cls, utility: Mapping[str, Any]) -> Prediction | str:
        """Read it from what was measured (see :func:`sfumato.report.measured.utility_kept`), or why nothing was."""
        if NOT_MEASURED in utility:
            return str(utility[NOT_MEASURED])
        best = next(entry for entry in utility["classifiers"] if entry["name"] == utility["best"])
        before, after = best["before"], best["after"]
        return cls(
            best["name"],
            best["title"],
            before["auc"],
            after["auc"],
            before["accuracy"]["mean"],
            after["accuracy"]["mean"],
            utility["majority_accuracy"],
        )

    def warning(self) -> str | None:
        """Say it where the release is not shown to predict better than guessing does: by AUC, whatever the threshold.

        Accuracy does not tell. Where one class is frequent, a classifier that ranks people well may call nobody the
        rare one, and is then as accurate as the majority class.
        """
        if self.auc_before is None or self.auc_after is None or self.auc_after["low"] > GUESSING:
            return None
        low, high = self.auc_after["low"], self.auc_after["high"]
        neither = "" if self.auc_before["low"] > GUESSING else ", and neither is the original"
        return (
            f"this release is not shown to predict better than guessing (AUC {GUESSING}): the 95 % interval of its AUC "
            f"is {low:.3f} to {high:.3f}{neither}"
        )

    def in_words(self) -> str:
        """Say it on one line."""
        auc = ""
        if self.auc_before is not None and self.auc_after is not None:
            mean, low, high = (self.auc_after[name] for name in ("mean", "low", "high"))
            margin = max(mean - low, high - mean)  # one end may be cut at 0 or 1
            auc = f"AUC {mean:.3f} ± {margin:.3f} (original {self.auc_before['mean']:.3f}), "
        return (
            f"{auc}accuracy {self.accuracy_after:.1%} (original {self.accuracy_before:.1%}, "
            f"majority class {self.majority:.1%}), by {self.classifier}"
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
        Columns that were dropped, or have the same cell in every row of the release.
    n_columns : int
        Columns of the original other than the target and identifiers, without those that were constant before.
    reidentified : float or str
        Share of people re-identified (marketer attack): expected when an attacker knows all their quasi-identifiers;
        or the reason why it was not measured.
    one_class : float or None
        Share of the rows in groups of equal quasi-identifiers that all have one target value; ``None``: no target.
    unique : float
        Share of the rows that are unique on all released columns together, the target among them.
    not_covered : tuple of str
        Released columns other than quasi-identifiers, where these alone make few rows unique.
    is_about_ones : bool
        Whether k-anonymity by containment is promised: against attackers who know 1-values of a person only.
    is_compared : bool
        Whether the original was given. Otherwise the columns are those of the release, and one with the same cell in
        every row may have been so before.
    counts_rows : bool
        Whether the share re-identified is one of rows: people may have several, and cannot be counted.
    """

    promises: tuple[str, ...]
    prediction: Prediction | str
    lost_columns: tuple[str, ...]
    n_columns: int
    reidentified: float | str
    one_class: float | None
    unique: float
    not_covered: tuple[str, ...] = ()
    is_about_ones: bool = False
    is_compared: bool = True
    counts_rows: bool = False

    def headed(self) -> dict[str, str]:
        """Give the five sentences by their headings."""
        kept, found = self.prediction, self.reidentified
        sentences = {
            "Promised": "; ".join(self.promises),
            "Prediction": kept.in_words() if isinstance(kept, Prediction) else f"not measured: {kept}",
            "Lost columns": self._lost(),
            "Re-identified": f"not measured: {found}" if isinstance(found, str) else self._reidentified(found),
            "Not covered": self._not_covered(),
        }
        return {heading: on_one_line(sentence) for heading, sentence in sentences.items()}

    def lines(self) -> list[str]:
        """Give the five lines."""
        return lines_of(self.headed())

    def _reidentified(self, share: float) -> str:
        of_whom = f"{share_in_words(share)} of {'rows' if self.counts_rows else 'people'}"
        return f"{of_whom}, by an attacker who knows all their quasi-identifiers (marketer attack)"

    def _lost(self) -> str:
        if not self.lost_columns:
            many = f"all {self.n_columns:,} {'columns still vary' if self.is_compared else 'released columns vary'}"
            one = f"the one {'column still varies' if self.is_compared else 'released column varies'}"
            return f"none; {one if self.n_columns == 1 else many}" if self.n_columns else "none"
        named = ", ".join(f"'{name}'" for name in self.lost_columns[:MOST_NAMED])
        more = f" and {len(self.lost_columns) - MOST_NAMED:,} more" if len(self.lost_columns) > MOST_NAMED else ""
        return f"{self._how_many_lost()}: {named}{more}"

    def _how_many_lost(self) -> str:
        is_one = len(self.lost_columns) == 1
        gone = f"{'was' if is_one else 'were'} dropped or made constant"
        what = gone if self.is_compared else f"{'has' if is_one else 'have'} one value in all rows"
        return f"{len(self.lost_columns):,} of {self.n_columns:,} columns {what}"

    def _not_covered(self) -> str:
        said = [f"{share_in_words(self.unique)} of rows are unique on all released columns together"]
        if self.one_class is not None:
            alike = share_in_words(self.one_class)
            said.insert(0, f"{alike} of rows are in groups that share one target value, which discloses it")
        if self.is_about_ones:
            said.insert(0, "attackers who also know 0-values (what a person does not have)")
        return "; ".join(said)

    def warnings(self) -> list[str]:
        """Say what should make one stop."""
        said = []
        kept = self.prediction
        if isinstance(kept, Prediction) and (useless := kept.warning()):
            said.append(useless)
        if len(self.lost_columns) > MOST_LOST * self.n_columns:
            said.append(self._how_many_lost())
        if self.unique > MOST_UNIQUE:
            share = share_in_words(self.unique)
            said.append(f"{share} of rows are unique on all released columns together: {self._found()}")
        return [on_one_line(sentence) for sentence in said]

    def _found(self) -> str:
        """Say what a unique row means, and what helps."""
        if not self.not_covered:
            return "an attacker who knows all of them of such a person finds the row"
        named = " and ".join(f"'{name}'" for name in self.not_covered) if len(self.not_covered) < 3 else "other columns"
        return (
            f"an attacker who knows {named} of such a person besides the quasi-identifiers, which alone are covered, "
            "finds the row. Make columns that attackers may know quasi-identifiers, or leave them out"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the page and the report."""
        return {"headed": self.headed(), "warnings": self.warnings()}


def lines_of(headed: Mapping[str, str]) -> list[str]:
    """Set the sentences below each other, each after its heading."""
    return [f"{heading + ':':<15}{sentence}" for heading, sentence in headed.items()]


def in_short(
    release: Release,
    original: AnyTable | None = None,
    mechanism: Mechanism | None = None,
    *,
    quick: bool = False,
    utility: Mapping[str, Any] | None = None,
    risk: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> InShort:
    """Sum a release up.

    Parameters
    ----------
    original : Table or BinaryTable or None
        With it re-identification and prediction are measured; of a differentially private release neither is.
    mechanism : Mechanism or None
        What made the release, to be fitted in training folds.
    quick : bool
        Train no classifiers.
    utility, risk : mapping or None
        What was measured already, by :func:`sfumato.report.measured.utility_kept` and
        :func:`sfumato.report.measured.risk_section`: then it is not measured again.
    progress : callable or None
        Called as ``progress(done, total, what)`` while classifiers are trained.

    Examples
    --------
    >>> from sfumato import Mondrian, release
    >>> from sfumato.datasets.admissions import admissions
    >>> table = admissions(n_rows=200).keep(["age", "sex", "readmitted"])
    >>> short = in_short(release(table, Mondrian(k=5)), table)
    >>> short.lines()[2]
    'Lost columns:  none; all 2 columns still vary'
    """
    if release.manifest.is_differentially_private:
        original = None  # what is said of the release must not depend on one more look at the rows
    shown = Columns(release.table)
    n_columns, lost = _columns(release, shown, original)
    reidentified, counts_rows = _reidentified(release, original, risk)
    return InShort(
        tuple(_promise(entry) for entry in release.manifest.guarantees),
        _prediction(release, original, mechanism, quick, progress) if utility is None else Prediction.of(utility),
        lost,
        n_columns,
        reidentified,
        _one_class(shown, release.manifest),
        unique_share(shown, shown.names),
        _not_covered(shown),
        Containment.kind in {entry["kind"] for entry in release.manifest.guarantees},
        original is not None,
        counts_rows,
    )


def unique_share(shown: Columns, names: Sequence[str]) -> float:
    """Share of the rows that are unique on some columns together."""
    with classes_of_rows(shown, names) as classes:
        return classes.ask(UNIQUE_CLASSES) / max(shown.n_rows, 1)


def _not_covered(shown: Columns) -> tuple[str, ...]:
    covered = shown.with_role(Role.QUASI_IDENTIFIER)
    if unique_share(shown, covered) > MOST_UNIQUE:
        return ()
    return tuple(name for name in shown.names if name not in covered)


def without_training(release: Release, original: AnyTable | None) -> InShort:
    """Sum a release up without training classifiers, as :func:`sfumato.release` does."""
    has_target = any(column["role"] == str(Role.TARGET) for column in release.manifest.output["columns"])
    reason = "release() trains no classifiers; Release.report(path, original=…) does" if has_target else NO_TARGET
    utility = None if release.manifest.is_differentially_private else {NOT_MEASURED: reason}
    return in_short(release, original, utility=utility)


def _promise(entry: Mapping[str, Any]) -> str:
    """Name the guarantee, say what it means, and which level the audit found."""
    guarantee = guarantee_from_dict({name: entry[name] for name in entry if name not in ("statement", "audited")})
    found, name = entry.get("audited"), guarantee.level.name
    symbol = f"{name} = " if len(name) == 1 else ""
    level = f" (audit found {symbol}{found:g})" if isinstance(found, int | float) else ""
    return f"{guarantee.explained.title}: {guarantee.in_plain_words()}{level}"


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
        apart = (Role.TARGET, *WITHHELD)
        told = [name for name in before.names if before.describe(name).role not in apart and _varies(before, name)]
    lost = [name for name in told if not any(_varies(shown, one) for one in made.get(name, ()))]
    return len(told), tuple(lost)


def _varies(columns: Columns, name: str) -> bool:
    return len(np.unique(columns.coded(name).codes)) > 1


def _prediction(
    release: Release, original: AnyTable | None, mechanism: Mechanism | None, quick: bool, progress: Progress | None
) -> Prediction | str:
    if release.manifest.is_differentially_private:
        return _PRIVATE
    if quick:
        return QUICK
    if original is None:
        return NO_ORIGINAL
    if mechanism is None:
        return "the mechanism was not given, so it cannot be fitted in training folds"
    # every release is summed up, and few train classifiers: loading them takes a third of a second
    from sfumato.report.measured import utility_kept

    return Prediction.of(utility_kept(release, original, mechanism, only_best=True, progress=progress))


def _reidentified(
    release: Release, original: AnyTable | None, risk: Mapping[str, Any] | None
) -> tuple[float | str, bool]:
    """Share re-identified, or why there is none, and whether it is one of rows."""
    if (release.manifest.perturbation or {}).get("kind") == "synthetic":
        return _DRAWN, False
    if risk is not None and NOT_MEASURED in risk:
        return str(risk[NOT_MEASURED]), False
    if risk is not None:
        return risk["reidentified"], risk["counted"] == "rows"
    if original is None:
        return NO_ORIGINAL, False
    from sfumato.attack.correspondence import Correspondence
    from sfumato.attack.reidentification import ROWS, reidentification_risk
    from sfumato.attack.risk import attacked_rows

    used = attacked_rows(original, release.manifest)
    try:
        risks = reidentification_risk(Correspondence(used, release.table, release.manifest))
    except SfumatoError as exc:
        return exc.message.removesuffix("."), False
    return float(risks["marketer"]), risks["counted"] == ROWS


def _one_class(shown: Columns, manifest: Manifest) -> float | None:
    """Share of rows in groups of one target value; where values were moved, of buckets and what stayed beside it."""
    targets = shown.with_role(Role.TARGET)
    if not targets:
        return None
    known: Sequence[str] = shown.with_role(Role.QUASI_IDENTIFIER)
    done = manifest.perturbation or {}
    if done.get("kind") == "bucketed":
        own = next((set(names) for names in done["slices"] if targets[0] in names), None)
        moved = {name for names in done["slices"] for name in names}
        known = [done["bucket"], *(name for name in known if (name not in moved if own is None else name in own))]
    with classes_of_rows(shown, known, targets[0]) as classes:
        return classes.ask("SELECT coalesce(sum(size) FILTER (n = size), 0) FROM pairs") / max(shown.n_rows, 1)
