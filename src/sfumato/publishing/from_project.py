"""From a project file to a release: the one way that command line, page and Python take, so that the bytes agree."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from sfumato.engines.memory_limit import Memory
from sfumato.engines.protocol import Rows
from sfumato.errors import InvalidParameterError
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms.base import Mechanism, Release, name_of, settings_of
from sfumato.mechanisms.baselines.features import public_columns, public_options
from sfumato.mechanisms.registry import build_mechanism, is_differentially_private, mechanism_info
from sfumato.progress import Progress
from sfumato.project.file import DEFAULT_MECHANISM, Project, load_project
from sfumato.project.keys import ProjectKey, ReleaseKey, key_of_manifest
from sfumato.publishing.ledger import Ledger
from sfumato.publishing.manifest_file import manifest_path_for
from sfumato.publishing.proposals.base import DEFAULT_MEMORY, Proposal
from sfumato.publishing.proposals.in_memory import InMemory
from sfumato.publishing.propose import prepared_rows, propose, refuse_preparation, why_written_whole
from sfumato.publishing.publish import Published, check_targets, publish
from sfumato.publishing.together import LedgerUse, at_last_levels, checked_together
from sfumato.schema import PROJECT_NAME
from sfumato.table.coding import Source
from sfumato.table.preparing.keyed import PreparationKeys

OpenRows = Callable[..., Rows]
"""Opens the table of a path, described by ``schema`` or as it is, read with ``options``."""


def mechanism_of_project(project: Project) -> tuple[str, dict[str, Any]]:
    """Name a project's mechanism and what it is built with.

    A project that names none gets ``auto``. The plan for binary features is for mechanisms that need
    such features; others are built without it.
    """
    name = project.mechanism or DEFAULT_MECHANISM
    takes_plan = "binarize" in {parameter.name for parameter in mechanism_info(name).parameters}
    return name, project.settings if takes_plan else dict(project.parameters)


def built_for(project: Project) -> Mechanism:
    """Build a project's mechanism, with cells of the form that the project asks for."""
    built = build_mechanism(*mechanism_of_project(project))
    return built.with_cells(project.cells, project.max_copies)


def release_project(
    project: Project, *, is_published: bool = False, ledger: LedgerUse = "check", progress: Progress | None = None
) -> tuple[Release, AnyTable]:
    """Make the release that a project asks for and have it audited; nothing is written.

    Returns
    -------
    tuple of Release and Table or BinaryTable
        The release and the original, which :func:`sfumato.publishing.publish.publish` audits it against.

    See Also
    --------
    propose_project : What the parameters mean.
    """
    made = propose_project(project, is_published=is_published, ledger=ledger, progress=progress)
    if not isinstance(made, InMemory):
        raise AssertionError
    return made.release, made.original


def propose_project(
    project: Project,
    *,
    mechanism: Mechanism | None = None,
    open_rows: OpenRows | None = None,
    memory: Memory = DEFAULT_MEMORY,
    is_published: bool = False,
    target: Path | None = None,
    ledger: LedgerUse = "check",
    progress: Progress | None = None,
) -> Proposal:
    """Propose the release that a project asks for; nothing is written.

    Parameters
    ----------
    project : Project
        As :func:`sfumato.project.file.load_project` gives it.
    mechanism : Mechanism, optional
        The project's own, where it was built already.
    open_rows : callable, optional
        Opens the data by their description and how they are read where they are; by default they are read into memory.
    memory : Memory
        For rows that are not in memory.
    is_published : bool
        Whether it is published next, which audits it: then a release in memory is not audited here.
    target : path or None
        Where it is written then; some formats need all rows in memory.
    ledger : {"check", "same-levels", "off"}
        ``same-levels``: take the levels of the last release in the project's ledger. It is checked together with these
        releases by :func:`sfumato.publishing.together.checked_together`, not here.
    progress : callable, optional
        Called as ``progress(done, total, what)``.
    """
    if ledger not in get_args(LedgerUse):
        raise InvalidParameterError("ledger", f"got {ledger!r}", allowed=" or ".join(get_args(LedgerUse)))
    mechanism = mechanism or built_for(project)
    is_private = is_differentially_private(mechanism)
    kept = Ledger.of_project(project.path)
    kept.check_key()
    original: AnyTable | Rows
    if open_rows is None:
        original = read_publicly(project) if is_private else project.read_unprepared()
        schema = original.coded_part.schema
    else:
        opening = partial(open_rows, project.data, options=project.options)
        original = project.opened_by(lambda described: opening(schema=described))
        schema = original.schema
    if ledger == "same-levels":
        mechanism = at_last_levels(mechanism, schema, kept)
    if is_published and any(asked.scope == "project" for asked in project.preparations):
        ProjectKey.load_or_create(project.path.parent)  # which these releases and all later ones share
    with release_key(project, mechanism, original.source, is_published=is_published) as key:
        if isinstance(original, Rows):
            keys = preparation_keys(project, key)
            original = prepared_rows(original, project.preparations, memory, keys, progress)
        elif not is_private:
            original = project.prepared(original, preparation_keys(project, key))
        why = why_written_whole(target, escapes_formulas=project.escape_formulas)
        made = propose(original, mechanism, memory, key=key, all_rows_for=why, progress=progress)
        if isinstance(made, InMemory) and not is_published:
            made = replace(made, release=made.audited_in_memory())
    made = made.with_order_kept() if project.keep_order else made
    return made.with_formulas_escaped() if project.escape_formulas else made


def preparation_keys(project: Project, key: ReleaseKey | None) -> PreparationKeys:
    """Give the secrets of pseudonyms and shifted dates of a release; drawn for once where there is no key."""
    own = ProjectKey.load(project.path.parent) or ProjectKey.ephemeral()
    if key is None:
        return PreparationKeys.ephemeral(own.preparation)
    return PreparationKeys(key.secret, own.preparation)


@contextmanager
def release_key(
    project: Project, mechanism: Mechanism, source: Source | None, *, is_published: bool
) -> Iterator[ReleaseKey | None]:
    """Give the key of the release that a mechanism makes of a project's data.

    Its number follows from the project's key, the data and all settings that the release depends on: the same release
    has the same number wherever it is made, and every other one has another.

    Parameters
    ----------
    is_published : bool
        Whether a project that has no key gets one, which is written once the release was made in the ``with`` block;
        else such a project has no key of a release either, and nothing is written.
    """
    if is_differentially_private(mechanism) or source is None or not source.sha256:
        yield None
        return
    folder = project.path.parent
    found = ProjectKey.load(folder)
    key = ProjectKey.ephemeral() if found is None and is_published else found
    if key is None:
        yield None
        return
    yield key.subkey(key.release_number(source.sha256.encode(), _settings_of(project, mechanism)))
    if found is None:
        key.keep(folder)


def _settings_of(project: Project, mechanism: Any) -> bytes:
    """Write down what a release depends on apart from the data; the same for settings that mean the same."""
    given = settings_of(mechanism) if hasattr(mechanism, "get_params") else mechanism_of_project(project)[1]
    parameters = {name: value for name, value in given.items() if name != "n_workers"}  # which changes no byte
    hierarchies = parameters.get("hierarchies")
    if isinstance(hierarchies, Mapping):
        parameters["hierarchies"] = {name: _content_of(one) for name, one in hierarchies.items()}
    described = {
        "mechanism": name_of(mechanism),
        "parameters": parameters,
        "columns": [{**asdict(column), "hierarchy": _content_of(column.hierarchy)} for column in project.columns],
        "default_role": project.default_role,
        "options": _options_of(project),
        **({"keep_order": True} if project.keep_order else {}),
        **({"escape_formulas": True} if project.escape_formulas else {}),
        **(
            {"prepared": [entry for one in project.preparations for entry in one.entries()]}
            if project.preparations
            else {}
        ),
    }
    if mechanism.cells != type(mechanism).cells:  # numbers of releases in their usual form stay as they were
        described["cells"] = mechanism.cells
    if mechanism.max_copies != type(mechanism).max_copies:
        described["max_copies"] = mechanism.max_copies
    levels = getattr(mechanism, "fixed_levels", None)
    described |= {"levels": dict(levels)} if levels is not None else {}
    population = getattr(mechanism, "population", None)
    described |= {"population": population.sha256} if population is not None else {}
    return json.dumps(described, sort_keys=True, default=repr).encode()


def _options_of(project: Project) -> dict[str, Any]:
    """Write down how data are read; numbers of releases of files stay as they were before there were databases."""
    options = asdict(project.options)
    return {key: value for key, value in options.items() if value is not None or key not in ("query", "table")}


def _content_of(hierarchy: Any) -> Any:
    """Name the file of a hierarchy by what it holds: where it is changes no byte of a release."""
    path = Path(hierarchy) if isinstance(hierarchy, str | Path) else None
    return hashlib.sha256(path.read_bytes()).hexdigest() if path is not None and path.is_file() else hierarchy


def read_publicly(project: Project) -> AnyTable:
    """Read the table of a project for differential privacy: no cell of it is an error, whatever was declared."""
    if project.preparations:
        refuse_preparation(str(project.mechanism))
    options = public_options(project.data, project.options)
    return replace(project, options=options, columns=public_columns(project.columns)).read()


def read_project_of(path: str | Path, manifest: Manifest) -> tuple[Project, AnyTable]:
    """Read the project of a release and its table, in the way in which the release was made from it."""
    project = load_project(path)
    if manifest.is_differentially_private:
        return project, read_publicly(project)
    key = key_of_manifest(project.path.parent, manifest.to_dict()) if project.preparations else None
    return project, project.read(preparation_keys(project, key))


def publish_project(
    path: str | Path = PROJECT_NAME,
    output: str | Path | None = None,
    *,
    force: bool = False,
    ledger: LedgerUse = "check",
    progress: Progress | None = None,
) -> Published:
    """Make the release that a project file asks for, audit it, and write it with its manifest.

    Where a column tells persons apart, it is checked together with the project's earlier releases and kept in its
    ledger, see :mod:`sfumato.publishing.ledger`.

    The same as ``sfumato release --project PATH -o OUTPUT``: to the byte, unless noise is drawn without a seed or the
    clock ends a search (``max_seconds`` or ``time_budget`` of the mechanism).

    Parameters
    ----------
    path : path
        Project file.
    output : path or None
        File to write; None takes the one that the project names.
    force : bool
        Replace files that exist.
    ledger : {"check", "same-levels", "off"}
        Refuse a release that does not hold together with earlier ones; the same, made with the levels of the last
        release (``global-recoding`` and ``gain-recoding``); or leave the ledger alone.
    progress : callable, optional
        Called as ``progress(done, total, what)``.

    Raises
    ------
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise on this table, or not together with earlier releases.
    AuditFailedError
        If the audit does not confirm the release.
    """
    project = load_project(path)
    target = Path(output) if output is not None else project.output
    if target is None:
        hint = f"name a file such as release.csv here or in {project.path.name}"
        raise InvalidParameterError("output", "got none", allowed="given", hint=hint)
    source = Source(str(project.data), project.data_sha256 or "")
    check_targets(target, manifest_path_for(target), source, force=force)
    made = propose_project(project, is_published=True, ledger=ledger, progress=progress)
    recorded = checked_together(made, Ledger.of_project(project.path), ledger)
    return publish(made, target, force=force, recorded=recorded)
