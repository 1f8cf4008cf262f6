"""Make a first release of the built-in hospital table, write it, and audit what was written."""

from pathlib import Path
from tempfile import TemporaryDirectory

from sfumato import Mondrian, publish, release
from sfumato.datasets.admissions import admissions
from sfumato.publishing.reaudit import audit_published

table = admissions(n_rows=1000)
made = release(table, Mondrian(k=5))  # raises if the audit does not confirm the promise

with TemporaryDirectory() as folder:
    published = publish(made, Path(folder) / "release.csv", original=table)
    report = audit_published(published.table_path, published.manifest_path, original=table, check_roles=True)

print(made)
print(f"{len(report.checks)} checks, all passed: {report.passed}")
