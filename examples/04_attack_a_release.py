"""Attack the original table and its release: who is found, and what is still guessed."""

from sfumato import ErrorRiskTree, release
from sfumato.attack.risk import risk_of
from sfumato.datasets.admissions import admissions

COLUMNS = ["age", "sex", "postcode_area", "smoker", "diabetes", "discharge_diagnosis", "readmitted"]
table = admissions(n_rows=1000).keep(COLUMNS)
made = release(table, ErrorRiskTree(k=5))

before, after = risk_of(table, table), risk_of(table, made.table, made.manifest)
for name, found in (("before", before), ("after", after)):
    worst = found["linkage"][-1]
    print(f"{name}: {found['headline']['marketer']:.1%} of the people are expected to be re-identified;")
    print(f"  {worst['n_reidentified']} are found by {', '.join(worst['columns'])} alone")
guess = after["inference"][0]
print(f"diagnosis guessed rightly: {guess['with_original']:.1%} before, {guess['with_release']:.1%} after")
