"""Say how values may be coarsened: your own hierarchies in, the level that was chosen for each column out."""

from pathlib import Path
from tempfile import TemporaryDirectory

from sfumato import GlobalRecoder, read_hierarchy, release
from sfumato.datasets.admissions import admissions

table = admissions(n_rows=2000).keep(["age", "sex", "insurance", "smoker", "diabetes", "readmitted"])

with TemporaryDirectory() as folder:
    file = Path(folder) / "age.csv"  # one line for each value: the value, then ever coarser labels
    lines = [
        f"{age};{age // 10 * 10}-{age // 10 * 10 + 9};{'adult' if age < 60 else '60+'};*" for age in range(18, 100)
    ]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = release(table, GlobalRecoder(k=10, hierarchies={"age": read_hierarchy(file)}))

for column, level in made.manifest.evidence["utility"]["levels"].items():
    print(f"{column:<12} level {level}")
print(made.manifest.guarantees[0]["statement"])
