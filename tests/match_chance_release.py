"""Releases that promise the guarantee of ``docs/adding-a-guarantee.md``, made by mechanisms that do not know it.

Run by ``test_adding_a_guarantee.py`` with a copy of the package that has this guarantee; prints what it finds.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

import sfumato
from sfumato.audit import audit_release
from sfumato.audit.auditor import AuditorHas
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.evaluation.comparison import short_guarantees
from sfumato.evaluation.requested_guarantees import AskedGuarantee, is_readable
from sfumato.guarantees import GUARANTEES
from sfumato.manifest import Manifest, manifest_digest
from sfumato.manifest_schema import parsed_manifest, problems_in, schema
from sfumato.report.render import report_html
from sfumato.report.summarize import summarize
from sfumato.schema import Role
from sfumato.web.goal_guarantees import goal_guarantees

QUASI, ILL = ("age", "sex"), "discharge_diagnosis"
CHANCE = 0.45
MAKERS = {
    "mondrian": (),
    "global-recoding": ("-p", "max_suppressed_fraction=0.2"),
    "error-risk-tree": ("-p", "generalization=uniform"),
}


def match_chance(rows: list[dict[str, str]]) -> float:
    """Largest chance in a class, by the definition."""
    classes: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        classes.setdefault(tuple(row[name] for name in QUASI), []).append(row[ILL])
    return max(sum(n**2 for n in Counter(values).values()) / len(values) ** 2 for values in classes.values())


def rows_of(path: str) -> list[dict[str, str]]:
    """Rows of a file."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def command(*words: str) -> tuple[int, str]:
    """Run a command, and give its exit code and what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(list(words))
    return code, out.getvalue()


def made(name: str, more: tuple[str, ...], *asked: str) -> dict[str, Any]:
    """Release by a command, audit by another, and measure by hand."""
    source = "visits.csv" if more else "people.csv"
    roles = ("--quasi-identifiers", ",".join(QUASI), "--sensitive", ILL, "--target", "readmitted", *more)
    settings = (*MAKERS[name], *(word for one in asked for word in ("-p", one)))
    code, said = command("release", source, "-m", name, "-k", "4", *settings, *roles, "-o", "out.csv", "--force")
    if code:
        return {"code": code, "said": said}
    audit = command("audit", "out.csv", "--manifest", "out.csv.manifest.json", "--original", source, *roles)
    manifest = json.loads(Path("out.csv.manifest.json").read_text())
    promised = {(own["kind"], own["unit"]): own["audited"] for own in manifest["guarantees"]}
    return {
        "code": code,
        "audit": audit[0],
        "chance": match_chance(rows_of("out.csv")),
        "promised": promised.get(("match-chance", "row")),
        "by persons": promised.get(("match-chance", "patient")),
        "parameter": manifest["mechanism"]["parameters"].get("chance"),
    }


def main() -> None:
    """Release, read, audit, tamper, show and ask."""
    own = GUARANTEES["match-chance"]
    table = admissions(n_rows=400).keep([*QUASI, ILL, "readmitted"])
    people = table.to_arrow()
    visits = people.append_column("patient", pa.array([f"P{place // 2:04}" for place in range(400)]))  # two visits each
    for path, rows in (("people.csv", people), ("visits.csv", visits)):
        pyarrow.csv.write_csv(rows, path)
    found: dict[str, Any] = {
        "makers": {name: [made(name, (), f"chance={CHANCE}"), made(name, ())] for name in MAKERS},
        "persons": made("mondrian", ("--person", "patient"), f"chance={CHANCE}"),
        "out of reach": made("mondrian", (), "chance=0.01"),
        "refused": command("release", "people.csv", "-m", "mdav", "-p", "chance=0.5", "-o", "no.csv")[1],
        "help": command("mechanisms", "mondrian")[1],
    }
    table = table.with_schema({ILL: Role.SENSITIVE, "readmitted": Role.TARGET})
    release = sfumato.release(table, sfumato.Mondrian(k=4, privacy=[own(CHANCE)]))  # type: ignore[call-arg]
    text = release.manifest.to_json()
    manifest = json.loads(text)
    promise = release.manifest.promised()[-1]

    def audited(**changes: Any) -> Any:
        return of_promises([*manifest["guarantees"][:-1], manifest["guarantees"][-1] | changes])

    def of_promises(promises: list[dict[str, Any]]) -> Any:
        changed = manifest | {"guarantees": promises}
        sealed = changed | {"digest": manifest_digest(changed)}
        return audit_release(release.table, sealed, AuditorHas(original=table, roles=True))

    def failed(**changes: Any) -> list[str]:
        return [check.name for check in audited(**changes).checks if not check.passed]

    honest, summary = audited(), summarize(release)
    asked, plain = AskedGuarantee.parse("chance=0.3"), [{**e, "is_partial": False} for e in manifest["guarantees"]]
    forms = schema()["properties"]["guarantees"]["items"]["oneOf"]
    words = next(one for one in summary["guarantees"] if one["kind"] == "match-chance")
    less = own(0.01, ILL, QUASI)  # type: ignore[call-arg]
    found |= {
        "reader": Manifest.from_json(text).promised()[-1] == promise,
        "audit's reader": parsed_manifest(text) == manifest,
        "problems": [*problems_in(manifest)],
        "form": forms[-1]["properties"]["chance"],
        "audited": manifest["guarantees"][-1]["audited"],
        "passed": honest.passed,
        "checks": [check.name for check in honest.checks if check.name.startswith("match-chance")],
        "too little": failed(chance=0.01, statement=less.describe()),
        "other words": failed(statement="no two rows are alike"),
        "other level": failed(audited=0.2),
        "not promised": [check.name for check in of_promises(manifest["guarantees"][:-1]).checks if not check.passed],
        "title": words["title"],
        "found": words["found"],
        "in report": words["title"] in report_html(summary, release.manifest),
        "asked": [str(asked), asked.level_of(plain), asked.is_promised_by(plain), is_readable(plain[-1])],
        "short": short_guarantees(plain)[-1],
        "fields": [one.kind for one in goal_guarantees()],
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
