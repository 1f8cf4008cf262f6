"""Write the report of a release twice: for the data holder, and for recipients."""

from pathlib import Path
from tempfile import TemporaryDirectory

from sfumato import GainRecoder, publish, release
from sfumato.datasets.admissions import admissions

table = admissions(n_rows=500).keep(["age", "sex", "insurance", "smoker", "diabetes", "copd", "readmitted"])

with TemporaryDirectory() as folder:
    published = publish(release(table, GainRecoder(k=5)), Path(folder) / "release.csv", original=table)
    own = published.release.report(Path(folder) / "report.html", original=table)
    others = published.release.report(Path(folder) / "for-recipients.html", original=table, external=True, quick=True)
    print(f"internal: {own.stat().st_size / 1000:.0f} kB, external: {others.stat().st_size / 1000:.0f} kB")
