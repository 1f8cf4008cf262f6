"""Audit releases that are on disk together: find out whose rows each holds, from originals or from a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.audit.checks import AuditReport, Check, Unchecked
from sfumato.audit.claims import Claims, read_claims
from sfumato.audit.original.preparation import with_original_prepared
from sfumato.audit.reading.columns import Columns
from sfumato.audit.together.appearances import NamedRows, Promised, named_rows
from sfumato.audit.together.verify import NAME, are_rows_of, check_together
from sfumato.errors import InputError, InvalidParameterError, SchemaError
from sfumato.manifest import AnyTable
from sfumato.publishing.ledger import Ledger
from sfumato.publishing.reaudit import read_manifest, read_released
from sfumato.schema import Role

MANIFEST_SUFFIX = ".manifest.json"


@dataclass(frozen=True, eq=False)
class OnDisk:
    """A release on disk, and its original where that is at hand."""

    manifest_path: Path
    table_path: Path
    original: AnyTable | None = None

    @classmethod
    def beside(cls, manifest_path: str | Path, original: AnyTable | None = None) -> OnDisk:
        """Find the released file next to its manifest: by the manifest's own name, else by the name stated in it.

        Raises
        ------
        InputError
            If it is not there.
        """
        path = Path(manifest_path)
        names = [path.name.removesuffix(MANIFEST_SUFFIX)] if path.name.endswith(MANIFEST_SUFFIX) else []
        names.append(Path(str(read_manifest(path)[0].output.get("name"))).name)
        for name in names:
            if (path.parent / name).exists():
                return cls(path, path.parent / name, original)
        problem = "the released file of this manifest is not next to it"
        raise InputError(problem, path=path, hint=f"put '{names[-1]}' there")


def audited_together(
    report: AuditReport, releases: Sequence[OnDisk], *, person: str | None, ledger: Ledger | None = None
) -> AuditReport:
    """Add to the report of a release what it says together with others.

    Parameters
    ----------
    releases : sequence of OnDisk
        The audited one first.
    person : str or None
        Column of the originals that tells persons apart; ``None``: the one that has the role, or is the only
        identifier.
    ledger : Ledger or None
        Where releases without an original are looked up by the hash of their file.
    """
    found = list(_found(releases, person, ledger))
    return AuditReport(
        (*report.checks, *(one for one in found if isinstance(one, Check))),
        report.levels,
        (*report.unchecked, *(one for one in found if isinstance(one, Unchecked))),
        report.accepted,
    )


def _found(releases: Sequence[OnDisk], person: str | None, ledger: Ledger | None) -> Iterator[Check | Unchecked]:
    kept = {entry.released_sha256: entry.rows for entry in ledger.entries()} if ledger is not None else {}
    judged: list[tuple[str, Promised, NamedRows | str]] = []
    for one in releases:
        manifest, entries = read_manifest(one.manifest_path)
        claims = read_claims(entries)
        released = read_released(one.table_path, manifest)
        digest = released.source.sha256 if released.source else None
        if digest != claims.output_sha256:
            yield Check(NAME, False, f"'{one.table_path.name}' has not the SHA-256 that its manifest states")
            return
        promised = Promised.of(claims)
        rows: NamedRows | str = kept.get(digest or "") or _from_original(one, released, entries, person, ledger)
        if not isinstance(rows, str) and digest in kept and not are_rows_of(rows, released):
            yield Check(NAME, False, f"the ledger's entry of '{one.table_path.name}' has other classes than the file")
            return
        judged.append((one.table_path.name, promised, rows))
    yield from check_together(judged)


def _from_original(
    one: OnDisk, released: AnyTable, entries: dict[str, object], person: str | None, ledger: Ledger | None
) -> NamedRows | str:
    """Name the rows of a release by its original, or say why that cannot be done."""
    claims = read_claims(entries)
    if one.original is None:
        return (
            "its original was not given, and no ledger has it" if ledger is not None else "its original was not given"
        )
    name = person or _person_of(one.original)
    if name is None:
        return "no column of its original tells persons apart"
    if not Promised.of(claims).has_classes:
        return "it has no classes"
    original = as_claimed(one.original, claims, name)
    if original is None:
        return "its dates were shifted by a secret that was not given"
    try:
        rows = named_rows(released, original, claims, name)
    except (InvalidParameterError, SchemaError) as exc:
        return exc.message.removesuffix(".")
    return rows if ledger is None or not len(ledger) else ledger.named(rows)


def as_claimed(original: AnyTable, claims: Claims, person: str) -> AnyTable | None:
    """Prepare an original as its release claims, all but the column that tells persons apart.

    ``None`` comes back where dates that ranges run over were shifted by a secret that is not at hand.
    """
    plain = original.coded_part
    done, keys = plain.prepared, plain.prepared.keys if plain.prepared is not None else None
    as_read = plain if done is None else plain.as_read
    secrets = (None, None) if keys is None else (keys.release, keys.project)
    made, _, _, is_comparable = with_original_prepared(original.with_coded_part(as_read), claims, *secrets)
    if not is_comparable:
        return None
    columns = {**made.coded_part.columns, **({person: as_read[person]} if person in as_read.columns else {})}
    return made.with_coded_part(replace(made.coded_part, columns=columns))


def _person_of(original: AnyTable) -> str | None:
    columns = Columns(original)
    named = columns.with_role(Role.PERSON) or columns.with_role(Role.IDENTIFIER)
    return named[0] if len(named) == 1 else None
