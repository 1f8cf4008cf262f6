"""Compare a few mechanisms: what a classifier still learns, and what an attacker still finds."""

from sfumato import GlobalRecoder, GreedyContainmentSelector, Mondrian, release
from sfumato.attack.risk import risk_of
from sfumato.datasets.admissions import admissions
from sfumato.evaluation.scores import evaluate

COLUMNS = ["age", "sex", "insurance", "smoker", "diabetes", "copd", "heart_failure", "readmitted"]
table = admissions(n_rows=1000).keep(COLUMNS)
mechanisms = {
    "original": None,
    "mondrian": Mondrian(k=5),
    "global recoding": GlobalRecoder(k=5),
    "greedy containment": GreedyContainmentSelector(k=5, on_infeasible="skip"),
}

print(f"{'':<20}{'AUC':>8}{'re-identified':>15}")
for name, mechanism in mechanisms.items():
    found = evaluate(table, mechanism, classifiers=["logistic-regression"], n_folds=3)
    made = release(table, mechanism) if mechanism else None
    risk = risk_of(table, made.table, made.manifest) if made else risk_of(table, table)
    auc = found.classifiers["logistic-regression"].auc
    print(f"{name:<20}{auc.mean if auc else 0:>8.3f}{risk['headline']['marketer']:>15.1%}")
