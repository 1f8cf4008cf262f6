"""A release that promises the guarantee of ``docs/adding-a-guarantee.md``, taken from manifest to report.

Run by ``test_adding_a_guarantee.py`` with a copy of the package that has this guarantee; prints what it finds.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from sfumato.audit import audit_release
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.manifest_form import parsed_manifest
from sfumato.datasets.admissions import admissions
from sfumato.evaluation.comparison import short_guarantees
from sfumato.evaluation.requested_guarantees import AskedGuarantee, is_readable
from sfumato.manifest import Manifest, manifest_digest
from sfumato.manifest_schema import problems_in, schema
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.publishing.publish import make_release
from sfumato.report.not_covered import not_promised
from sfumato.report.render import report_html
from sfumato.report.summarize import summarize
from sfumato.web.goal_guarantees import goal_guarantees

QUASI = ("age", "sex")


def promise(m: float) -> Any:
    """Make the guarantee, which only the copy of the package has."""
    return import_module("sfumato.guarantees.group_mean").GroupMean(m, QUASI)


class LargeGroups(Mondrian):
    """Mondrian, which promises large groups on average as well."""

    def release(self, table, *, progress=None):
        """Add the promise."""
        made = super().release(table, progress=progress)
        entry = promise(5.0).to_dict() | {"statement": promise(5.0).describe(), "audited": None}
        mechanism = made.manifest.mechanism
        used = {**mechanism, "name": "large-groups", "parameters": {**mechanism["parameters"], "m": 5.0}}
        return made.with_manifest(guarantees=(*made.manifest.guarantees, entry), mechanism=used)


def main() -> None:
    """Release, read, audit, tamper, show and ask."""
    table = admissions(n_rows=120).keep([*QUASI, "readmitted"])
    release = make_release(table, LargeGroups(k=5))
    text = release.manifest.to_json()
    manifest = json.loads(text)

    def audited(**changes: Any) -> Any:
        promises = [*manifest["guarantees"][:-1], manifest["guarantees"][-1] | changes]
        changed = manifest | {"guarantees": promises}
        sealed = changed | {"digest": manifest_digest(changed)}
        return audit_release(release.table, sealed, AuditorHas(original=table, roles=True))

    def failed(**changes: Any) -> list[str]:
        return [check.name for check in audited(**changes).checks if not check.passed]

    honest, summary = audited(), summarize(release)
    rows = release.table.to_arrow().select(list(QUASI)).to_pylist()
    asked, plain = AskedGuarantee.parse("m=6"), [{**entry, "is_partial": False} for entry in manifest["guarantees"]]
    forms = schema()["properties"]["guarantees"]["items"]["oneOf"]
    words = next(one for one in summary["guarantees"] if one["kind"] == "group-mean")
    found = {
        "reader": Manifest.from_json(text).promised()[-1] == promise(5.0),
        "audit's reader": parsed_manifest(text) == manifest,
        "problems": [*problems_in(manifest)],
        "form": forms[-1]["properties"]["m"],
        "audited": manifest["guarantees"][-1]["audited"],
        "mean": len(rows) / len({tuple(row.values()) for row in rows}),
        "passed": honest.passed,
        "checks": [check.name for check in honest.checks if check.name.startswith("group-mean")],
        "too much": failed(m=1000.0, statement=promise(1000.0).describe()),
        "other words": failed(statement="every row is one of 1000"),
        "other level": failed(audited=60.0),
        "title": words["title"],
        "found": words["found"],
        "in report": words["title"] in report_html(summary, release.manifest),
        "left open": not_promised(release),
        "asked": [str(asked), asked.level_of(plain), asked.is_promised_by(plain), is_readable(plain[-1])],
        "short": short_guarantees(plain)[-1],
        "fields": [one.kind for one in goal_guarantees()],
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
