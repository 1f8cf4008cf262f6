"""Whatever a released SPSS, Stata or SAS file holds beyond its cells and the stated labels is refused.

Each attack makes the manifest's hash and digest fit, so that only the account of bytes, or the comparison of labels
with the original's, can find it.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
import pytest

import sfumato
from manifest_texts import text_of
from sfumato.audit.bytes.files import check_file
from sfumato.audit.checks import AuditReport, Check
from sfumato.audit.claims import read_claims
from sfumato.errors import SfumatoError
from sfumato.guarantees import KAnonymity
from sfumato.manifest import draft_manifest, manifest_digest
from sfumato.mechanisms.base import Release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Role
from sfumato.table.coding import Table
from sfumato.table.io.read import read_table
from sfumato.table.io.statistics.write import with_fixed_time
from sizes import IS_FULL
from statistics_files import CANARY, write_survey

SUFFIXES = (".sav", ".zsav", ".dta", ".xpt")
KEPT = ["sex", "region", "sat", "share", "note", "day", "ill"]

pytestmark = pytest.mark.slow  # each file is parsed in a process


class AsItIs:
    """A mechanism for this test: leaves columns out and promises the k that remains."""

    def release(self, table: Any, *, progress: Any = None) -> Release:
        kept = table.keep(KEPT)
        promised = [KAnonymity(2, ("sex", "region"))]
        settings: dict[str, Any] = {"mechanism": "mdav", "parameters": {"k": 2}, "evidence": {}}
        return Release(kept, draft_manifest(table, kept, guarantees=promised, **settings))


class Published:
    """A release on disk whose bytes can be changed and whose manifest is then made to fit."""

    def __init__(self, folder: Path, suffix: str) -> None:
        self.suffix = suffix
        table = read_table(write_survey(folder / f"survey{suffix}"))
        roles = dict.fromkeys(("sat", "share", "note", "day"), Role.OTHER)
        self.original = table.with_schema({"person": Role.IDENTIFIER, "ill": Role.TARGET, **roles})  # type: ignore[union-attr]
        self.path = folder / f"out{suffix}"
        done = publish(sfumato.release(self.original, AsItIs()), self.path, original=self.original)  # type: ignore[arg-type]
        self.content = done.table_path.read_bytes()
        self.manifest = json.loads(done.manifest_path.read_text())

    def audited(self, content: bytes, manifest: dict[str, Any] | None = None) -> AuditReport:
        data = json.loads(json.dumps(manifest or self.manifest))
        data["output"]["sha256"] = hashlib.sha256(content).hexdigest()
        data["digest"] = manifest_digest(data)
        stated = self.path.with_name("t.json")
        stated.write_text(text_of(data))
        self.path.write_bytes(content)
        try:
            return audit_published(self.path, stated, original=self.original, check_roles=True)  # type: ignore[arg-type]
        except SfumatoError:
            return AuditReport(())  # refused as unreadable
        finally:
            self.path.write_bytes(self.content)

    def is_refused_by_bytes(self, content: bytes, manifest: dict[str, Any] | None = None) -> bool:
        """Whether the account of bytes alone refuses a file."""
        self.path.write_bytes(content)
        try:
            found = list(check_file(self.path, read_claims(manifest or self.manifest), None))
        finally:
            self.path.write_bytes(self.content)
        return not all(one.passed for one in found if isinstance(one, Check))

    def written_again(self, **changes: Any) -> bytes:
        """Write the release again with something else in it."""
        read: dict[str, Callable[..., Any]] = {".dta": pyreadstat.read_dta, ".xpt": pyreadstat.read_xport}
        frame, book = read.get(self.suffix, pyreadstat.read_sav)(self.path)
        frame = changes.pop("frame", lambda own: own)(frame)
        settings: dict[str, Any] = {"column_labels": book.column_names_to_labels}
        if self.suffix != ".xpt":
            settings["variable_value_labels"] = book.variable_value_labels
        if self.suffix in (".sav", ".zsav"):
            settings |= {"variable_measure": book.variable_measure, "compress": self.suffix == ".zsav"}
        days = book.original_variable_types["day"]
        settings["variable_format"] = {"day": days}
        for name, own in changes.items():
            settings[name] = settings.get(name, {}) | own if isinstance(own, dict) else own
        writers: dict[str, Callable[..., Any]] = {".dta": pyreadstat.write_dta, ".xpt": pyreadstat.write_xport}
        settings = ({"version": 14} if self.suffix == ".dta" else {}) | settings
        target = self.path.with_name(f"again{self.suffix}")
        writers.get(self.suffix, pyreadstat.write_sav)(frame, target, **settings)
        return with_fixed_time(target.read_bytes(), self.suffix[1:])


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Published]:
    return {suffix: Published(tmp_path_factory.mktemp("bytes"), suffix) for suffix in SUFFIXES}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_untouched_release_is_accounted_for(releases: dict[str, Published], suffix: str) -> None:
    report = releases[suffix].audited(releases[suffix].content)

    assert report.verdict == "confirmed", (report.failures, report.unchecked)
    assert {"bytes", "labels", "row order"} <= {check.name for check in report.checks}
    assert CANARY.encode() not in releases[suffix].content


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_byte_can_be_changed_added_or_taken_away(releases: dict[str, Published], suffix: str) -> None:
    release = releases[suffix]
    content, rng = release.content, random.Random(11)
    step, n_drawn = (20, 16) if IS_FULL else (60, 5)  # each place starts a process that reads the file
    places = [*range(0, 180, step), *(rng.randrange(len(content)) for _ in range(n_drawn))]
    attacks = [content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :] for at in places]
    attacks += [content + b" ", content + b"\0" * 80, content[:-1]]

    passed = [attack for attack in attacks if not release.is_refused_by_bytes(attack)]
    # A changed cell is another table, which the account of bytes accepts and the comparison with the original does not.
    assert all(release.audited(attack).verdict == "refused" for attack in passed)


SPSS = (".sav", ".zsav")
ATTACKS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (SUFFIXES, {"file_label": CANARY}),
    (SPSS, {"note": CANARY}),
    (SUFFIXES, {"column_labels": {"region": CANARY}}),
    ((*SPSS, ".dta"), {"variable_value_labels": {"sex": {1: "male", 2: "female", 3: CANARY}}}),
    ((*SPSS, ".dta"), {"variable_value_labels": {"sex": {1: "female", 2: "male"}}}),
    (SPSS, {"missing_ranges": {"sat": [77]}}),
    (SPSS, {"variable_display_width": {"sat": 17}}),
    (SPSS, {"variable_measure": {"sat": "nominal"}}),
    (SPSS, {"variable_format": {"sat": "F8.1"}}),
    ((".dta",), {"variable_format": {"sat": "%9.1f"}}),
    ((".xpt",), {"variable_format": {"sat": "BEST12"}}),
    ((".sav",), {"row_compress": True}),
    ((".xpt",), {"table_name": "SEVEN"}),
    ((".dta",), {"version": 13}),
]


@pytest.mark.parametrize(
    ("suffix", "change"),
    [
        pytest.param(suffix, change, id=f"{next(iter(change))}{suffix}")
        for suffixes, change in ATTACKS
        for suffix in suffixes
    ],
)
def test_what_the_manifest_does_not_state_is_refused(
    releases: dict[str, Published], suffix: str, change: dict[str, Any]
) -> None:
    release = releases[suffix]

    assert release.written_again() == release.content
    attack = release.written_again(**change)
    assert attack != release.content
    assert release.is_refused_by_bytes(attack)


def of_another_pyreadstat(manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "versions": {**manifest["versions"], "pyreadstat": "1.0.0"}}


@pytest.mark.parametrize(
    ("suffix", "change"),
    [
        pytest.param(suffix, change, id=f"{next(iter(change))}{suffix}")
        for suffixes, change in ATTACKS
        for suffix in suffixes
    ],
)
def test_what_the_manifest_does_not_state_is_refused_of_every_writer(
    releases: dict[str, Published], suffix: str, change: dict[str, Any]
) -> None:
    release = releases[suffix]

    assert release.is_refused_by_bytes(release.written_again(**change), of_another_pyreadstat(release.manifest))


def test_other_bytes_of_another_writer_are_an_exception(releases: dict[str, Published]) -> None:
    release = releases[".sav"]
    name = b"@(#) SPSS DATA FILE"  # of the program that wrote the file, which pyreadstat does not read
    assert name in release.content[:64]
    changed = release.content.replace(name, name.lower(), 1)
    report = release.audited(changed, of_another_pyreadstat(release.manifest))

    assert [exception.name for exception in report.unchecked] == ["writer"]
    assert report.verdict == "confirmed except"
    assert release.is_refused_by_bytes(changed)
    assert release.is_refused_by_bytes(changed + b" ", of_another_pyreadstat(release.manifest))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_time_of_writing_is_no_place_for_a_message(releases: dict[str, Published], suffix: str) -> None:
    content = releases[suffix].content
    moved = {".dta": b"01 Jan 2000 00:00", ".xpt": b"01JAN00:00:00:00"}.get(suffix, b"01 Jan 0000:00:00")

    assert moved in content
    assert releases[suffix].is_refused_by_bytes(content.replace(moved, moved[:-1] + b"7", 1))


def with_column(manifest: dict[str, Any], name: str, **entries: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(manifest))
    for column in data["output"]["columns"]:
        if column["name"] == name:
            column.update(entries)
    return data


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
@pytest.mark.parametrize(
    ("entries", "change"),
    [
        ({"label": CANARY}, {"column_labels": {"region": CANARY}}),
        (
            {"value_labels": [{"value": i, "label": t} for i, t in enumerate(["North", "East", CANARY], start=1)]},
            {"variable_value_labels": {"region": {1: "North", 2: "East", 3: CANARY}}},
        ),
        (
            {"value_labels": [{"value": i, "label": t} for i, t in enumerate(["East", "North", "South"], start=1)]},
            {"variable_value_labels": {"region": {1: "East", 2: "North", 3: "South"}}},
        ),
        (
            {
                "value_labels": [
                    {"value": i, "label": t} for i, t in enumerate(["North", "East", "South", "no"], start=1)
                ]
            },
            {"variable_value_labels": {"region": {1: "North", 2: "East", 3: "South", 4: "no"}}},
        ),
    ],
    ids=["label", "value label", "swapped labels", "label of no row"],
)
def test_labels_that_are_not_the_originals_are_refused_even_if_stated(
    releases: dict[str, Published], suffix: str, entries: dict[str, Any], change: dict[str, Any]
) -> None:
    release = releases[suffix]
    content = release.written_again(**change)
    report = release.audited(content, with_column(release.manifest, "region", **entries))

    assert report.verdict == "refused"
    assert CANARY not in str(report.failures)


def test_a_minus_zero_is_refused(releases: dict[str, Published]) -> None:
    release = releases[".sav"]

    def minus(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(sat=np.where(frame["sat"] == 0, -0.0, frame["sat"]))

    assert release.is_refused_by_bytes(release.written_again(frame=minus))


def test_a_token_beside_missing_texts_is_refused(releases: dict[str, Published]) -> None:
    release = releases[".dta"]

    def token(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(note=["NA", *frame["note"][1:]])

    assert release.is_refused_by_bytes(release.written_again(frame=token))


def test_a_label_may_be_cut_but_not_changed(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, 2] * 5, "ill": [0, 1] * 10})
    pyreadstat.write_sav(frame, tmp_path / "in.sav", column_labels={"a": "Q" * 90 + CANARY})
    table = read_table(tmp_path / "in.sav").with_schema({"ill": Role.TARGET})  # type: ignore[union-attr]
    assert isinstance(table, Table)

    class Whole:
        def release(self, table: Any, *, progress: Any = None) -> Release:
            settings: dict[str, Any] = {"mechanism": "mdav", "parameters": {"k": 2}, "evidence": {}}
            return Release(table, draft_manifest(table, table, guarantees=[KAnonymity(2, ("a",))], **settings))

    done = publish(sfumato.release(table, Whole()), tmp_path / "out.dta", original=table)  # type: ignore[arg-type]

    assert done.audit.verdict == "confirmed"
    assert pyreadstat.read_dta(tmp_path / "out.dta")[1].column_labels[0] == "Q" * 80
