"""What a manifest claims, as typed data; one that is not of its form raises ``ManifestError``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypeGuard

from sfumato.errors import InvalidParameterError, ManifestRefusedError
from sfumato.guarantees import DifferentialPrivacy, Guarantee, guarantee_from_dict
from sfumato.manifest_schema import PARAMETERS, check_form
from sfumato.schema import Kind, Role

SORTED, AS_READ = "sorted", "as-read"
FLIPPED, SYNTHETIC, BUCKETED = "flipped", "synthetic", "bucketed"
SELECTION, COUNTS = "feature selection", "counts"
_LIMIT = 2**63
_FEWEST_PARTIES = 3


@dataclass(frozen=True)
class ClaimedColumn:
    """A released column as the manifest describes it; ``domain`` is the order of an ordered column, when given."""

    name: str
    role: Role
    kind: Kind
    domain: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None
    """Texts that mean "missing" in this column; ``None`` takes the table's."""
    label: str | None = None
    value_labels: tuple[tuple[float | str, str], ...] = ()
    """Labels that a file of a statistics package holds of the column and of its codes."""
    unit: str | None = None
    """What the original has next to every number of the column."""
    is_confirmed: bool = False
    """Whether somebody has said that the column names nobody."""


@dataclass(frozen=True)
class ClaimedRecoding:
    """How a released column was made from a column of the original.

    A 0/1 column by ``values`` or an interval; generalized cells are read by the order of ``kind`` and ``domain``.
    """

    name: str
    column: str
    rule: str
    values: tuple[str, ...] = ()
    above: float | None = None
    upto: float | None = None
    kind: Kind = Kind.CATEGORICAL
    domain: tuple[str, ...] | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    n_levels: int = 1
    """Levels of a hierarchy that the labels are from: no value has more labels."""
    has_levels: bool = False
    """Whether these levels are listed."""


@dataclass(frozen=True)
class Promise:
    """A guarantee with the sentence and the audited level that the manifest gives for it."""

    guarantee: Guarantee
    columns: tuple[str, ...]
    statement: str
    audited: float | None


@dataclass(frozen=True)
class Spending:
    """A part of a privacy budget and the noise that it paid for."""

    step: str
    noise: str
    n_choices: int
    sensitivity: int
    scale: float
    epsilon: float


@dataclass(frozen=True)
class ClaimedPerturbation:
    """How the cells came to differ from the original's: flipped, drawn at random, or moved within buckets."""

    kind: str
    n_cells_changed: int = 0
    budget: tuple[Spending, ...] = ()
    threshold: int = 0
    bucket: str | None = None
    slices: tuple[tuple[str, ...], ...] = ()
    max_copied_fraction: float | None = None

    @property
    def moved(self) -> frozenset[str | None]:
        """Columns that are judged bucket by bucket."""
        return frozenset(name for names in self.slices for name in names) | {self.bucket}


@dataclass(frozen=True)
class ClaimedPersons:
    """Which row of each person was kept, by which column persons are identified, and how many rows were left out."""

    column: str
    rule: str
    n_dropped: int


@dataclass(frozen=True)
class ClaimedCommitment:
    """A keyed hash of the input: it fits one input and one key, and says nothing to whoever has no key."""

    scheme: str
    release: str
    value: str


@dataclass(frozen=True)
class ClaimedPreparation:
    """What was done to a column of the original before anything else: operations with their parameters, in order."""

    column: str
    operations: tuple[tuple[str, Mapping[str, Any]], ...]

    def parameters(self, operation: str) -> Mapping[str, Any] | None:
        """Parameters of an operation; ``None`` where it was not done."""
        return next((given for name, given in self.operations if name == operation), None)

    def has(self, *operations: str) -> bool:
        """Whether one of some operations was done."""
        return any(name in operations for name, _ in self.operations)


@dataclass(frozen=True)
class Claims:
    """A manifest as typed data."""

    digest: str
    input_commitment: ClaimedCommitment | None
    input_name: str | None
    input_format: str | None
    input_rows: int | None
    input_columns: int | None
    input_parties: int | None
    """How many parties' rows the input is, of which nobody has all; ``None`` for a table that somebody has."""
    output_name: str | None
    output_format: str
    output_sha256: str | None
    output_rows: int
    output_order: str
    """Whether released rows are "sorted" or "as-read"."""
    columns: tuple[ClaimedColumn, ...]
    mechanism: str
    parameters: Mapping[str, Any]
    missing_tokens: tuple[str, ...]
    missing_by_column: Mapping[str, tuple[str, ...]]
    persons: ClaimedPersons | None
    drops_incomplete_rows: bool
    n_incomplete_dropped: int
    dropped_columns: tuple[str, ...]
    recodings: Mapping[str, ClaimedRecoding]
    suppressed_rows: int
    promises: tuple[Promise, ...]
    stated_risk: Mapping[str, Any]
    stated_utility: Mapping[str, Any]
    stated_sections: tuple[str, ...] = ()
    """Names of the parts of the evidence."""
    stated_disclosure: Mapping[str, Any] = field(default_factory=dict)
    """What is said of the groups of a decision tree, in bits; nothing of other releases."""
    versions: Mapping[str, str] = field(default_factory=dict)
    seed: Any = None
    perturbation: ClaimedPerturbation | None = None
    prepared: Mapping[str, ClaimedPreparation] = field(default_factory=dict)
    """What was done to columns of the original right after they were read, by column."""
    escapes_formulas: bool = False
    """Whether cells that a spreadsheet program would run have an apostrophe in front."""
    read_as: Mapping[str, str] = field(default_factory=dict)
    """Formats in which texts of the original were read, by column."""
    unkeyed: frozenset[str] = frozenset()
    """Prepared columns whose cells rest on a secret that the audit was not given: they cannot be computed again."""

    @property
    def is_synthetic(self) -> bool:
        """Whether its rows are synthetic from noisy counts: nothing is said of the original then."""
        return self.perturbation is not None and self.perturbation.kind == SYNTHETIC

    def names(self, *roles: Role) -> tuple[str, ...]:
        """Names of the released columns with one of these roles (all columns when none is given)."""
        return tuple(c.name for c in self.columns if not roles or c.role.is_one_of(roles))


def read_claims(manifest: Mapping[str, Any]) -> Claims:
    """Read a manifest (the parsed JSON); :func:`check_form` has settled every key and type before anything is taken.

    Raises
    ------
    ManifestError
        If it is of another version than the one that this audit knows.
    ManifestRefusedError
        If it is not of the form, or its entries contradict each other.
    """
    check_form(manifest)
    _refuse_endless(manifest)
    source, output, missing, mechanism = (manifest[key] for key in ("input", "output", "missing", "mechanism"))
    moved = manifest["perturbation"]
    has_noise = any(promise["kind"] == DifferentialPrivacy.kind for promise in manifest["guarantees"])
    withholds = has_noise or (moved is not None and moved["kind"] == SYNTHETIC)
    if source is None and not withholds:
        problem = "the manifest lacks input"
        raise ManifestRefusedError(problem)
    lacking = [f"missing.{key}" for key in ("rows", "n_dropped") if key not in missing]
    if lacking and not (withholds and len(lacking) == 2):
        problem = f"the manifest lacks {', '.join(lacking)}"
        raise ManifestRefusedError(problem)
    columns = tuple(map(_column, output["columns"]))
    recodings = [_recoding(entry, f"recodings[{i}]") for i, entry in enumerate(manifest["recodings"])]
    _refuse_repetition([c.name for c in columns], "output.columns")
    _refuse_repetition([r.name for r in recodings], "recodings")
    sources = [recoding.column for recoding in recodings]
    _check_settings(mechanism, {*(c.name for c in columns), *sources, *manifest["dropped_columns"]})
    said, evidence = source or {}, manifest["evidence"]
    return Claims(
        digest=manifest["digest"],
        input_commitment=ClaimedCommitment(**stated) if (stated := said.get("commitment")) else None,
        input_name=said.get("name"),
        input_format=said.get("format"),
        input_rows=said.get("rows"),
        input_columns=said.get("columns"),
        input_parties=_parties(said, mechanism),
        output_name=output["name"],
        output_format=output["format"],
        output_sha256=output["sha256"],
        output_rows=output["rows"],
        output_order=output["order"],
        columns=columns,
        mechanism=mechanism["name"],
        parameters=mechanism["parameters"],
        missing_tokens=tuple(missing["tokens"]),
        missing_by_column=_texts_by_name(missing.get("columns", {})),
        persons=ClaimedPersons(**kept) if (kept := said.get("one_row_per_person")) else None,
        drops_incomplete_rows=missing.get("rows") == "dropped",
        n_incomplete_dropped=missing.get("n_dropped", 0),
        dropped_columns=tuple(manifest["dropped_columns"]),
        recodings={r.name: r for r in recodings},
        suppressed_rows=manifest["suppressed_rows"],
        promises=tuple(_promise(entry, f"guarantees[{i}]") for i, entry in enumerate(manifest["guarantees"])),
        stated_risk=evidence.get("risk", {}),
        stated_utility=evidence.get("utility", {}),
        stated_sections=tuple(evidence),
        stated_disclosure=evidence.get("disclosure", {}),
        versions=manifest["versions"],
        seed=mechanism["seed"],
        perturbation=_perturbation(moved) if moved is not None else None,
        escapes_formulas=output.get("escaped_formulas") is True,
        prepared=_prepared(said.get("prepared", ())),
        read_as=said.get("read_as", {}),
    )


def _refuse_endless(found: Any) -> None:
    """Refuse whole numbers of more digits than calculations take."""
    if isinstance(found, Mapping):
        found = list(found.values())
    if isinstance(found, list | tuple):
        for item in found:
            _refuse_endless(item)
    elif isinstance(found, int) and abs(found) >= _LIMIT:
        problem = "the manifest holds a whole number that is not below 2 to the 63"
        raise ManifestRefusedError(problem)


def _texts_by_name(listed: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(texts) for name, texts in listed.items()}


_SEED_OF_SAMPLES = 20_261_116
"""By which rows of tables that do not fit into memory are drawn."""


def _check_settings(mechanism: Mapping[str, Any], known: set[str]) -> None:
    """Refuse settings that name columns which the manifest has not, and a seed that is not among the settings."""
    given = mechanism["parameters"]
    forms = PARAMETERS.get(mechanism["name"], {})
    for key, own in given.items():
        if not set(_named_columns(own, forms.get(key, {}), known)) <= known:
            problem = f"mechanism.parameters.{key} in the manifest names a column that is neither released nor left out"
            raise ManifestRefusedError(problem)
    if mechanism["seed"] not in (None, _SEED_OF_SAMPLES, given.get("random_state")):
        problem = "mechanism.seed in the manifest is not the random_state among the settings"
        raise ManifestRefusedError(problem)


def _named_columns(found: Any, form: Mapping[str, Any], known: set[str]) -> Iterator[str]:
    """Give the columns that a setting names, by its form."""
    for one in form.get("oneOf", ()):
        yield from _named_columns(found, one, known)
    if isinstance(found, list) and "items" in form:
        for item in found:
            yield from _named_columns(item, form["items"], known)
    if form.get("names") != "columns":
        return
    if isinstance(found, Mapping) and form["type"] == "object":
        yield from found
    elif isinstance(found, str) and form["type"] == "string":
        yield from [found] if found in known else [name.strip() for name in found.split(",")]


def _parties(source: Mapping[str, Any], mechanism: Mapping[str, Any]) -> int | None:
    """Read how many parties' rows the input was; there must be so many in the session."""
    if "parties" not in source:
        return None
    stated: int = source["parties"]
    session = mechanism["parameters"].get("session", {"parties": ()})
    if stated != len(session["parties"]) or stated < _FEWEST_PARTIES:
        problem = f"input.parties in the manifest is not the session's number of parties, from {_FEWEST_PARTIES} on"
        raise ManifestRefusedError(problem)
    return stated


_NUMBERS = ("age", "bottom", "top", "round")
"""Operations that may be done to one column, in this order; every other one is done alone."""
_ALONE = ("drop", "mask", "pseudonym", "shift")


def _prepared(entries: Sequence[Mapping[str, Any]]) -> dict[str, ClaimedPreparation]:
    """Read what was done to columns; what cannot have been done, or not in this order, is refused."""
    listed: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for i, entry in enumerate(entries):
        _check_operation(entry, f"input.prepared[{i}]")
        listed.setdefault(entry["column"], []).append((entry["operation"], entry))
    for operations in listed.values():
        names = [name for name, _ in operations]
        in_order = [name for name in _NUMBERS if name in names]
        if names != in_order and (len(names) != 1 or names[0] not in _ALONE):
            problem = "input.prepared in the manifest lists operations of a column that do not go together"
            raise ManifestRefusedError(problem)
    return {name: ClaimedPreparation(name, tuple(operations)) for name, operations in listed.items()}


def _check_operation(entry: Mapping[str, Any], place: str) -> None:
    """Check the parameters of an operation, as far as their form does not."""
    operation = entry["operation"]
    if operation == "age":
        try:
            date.fromisoformat(entry["at"])
        except ValueError:
            problem = f"{place}.at in the manifest is no day"
            raise ManifestRefusedError(problem) from None
    elif operation == "mask" and len(entry["character"]) != 1:
        problem = f"{place}.character in the manifest is not one character"
        raise ManifestRefusedError(problem)
    elif operation == "shift" and entry["days"] < 1:
        problem = f"{place}.days in the manifest is not above 0"
        raise ManifestRefusedError(problem)


def is_number(found: object) -> TypeGuard[float]:
    """Whether an entry is a number that calculations can take: no truth value, not infinite, no endless digits."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    return abs(found) < _LIMIT if isinstance(found, int) else math.isfinite(found)


def _column(entry: Mapping[str, Any]) -> ClaimedColumn:
    return ClaimedColumn(
        entry["name"],
        Role(entry["role"]),
        Kind(entry["kind"]),
        domain=_texts(entry, "domain"),
        missing=_texts(entry, "missing"),
        label=entry.get("label"),
        value_labels=tuple((_code(own["value"]), own["label"]) for own in entry.get("value_labels", ())),
        unit=entry.get("unit"),
        is_confirmed=entry.get("confirmed") is True,
    )


def _code(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(value)


def _texts(entry: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    return tuple(entry[key]) if key in entry else None


def _number(entry: Mapping[str, Any], key: str) -> float | None:
    return float(entry[key]) if entry.get(key) is not None else None


def _recoding(entry: Mapping[str, Any], place: str) -> ClaimedRecoding:
    values, levels = entry.get("values", ()), entry.get("levels", ())
    if len(set(values)) < len(values):
        problem = f"{place}.values in the manifest names a value twice"
        raise ManifestRefusedError(problem)
    if list(levels) != sorted(set(levels)):
        problem = f"{place}.levels in the manifest is not a list of ascending numbers"
        raise ManifestRefusedError(problem)
    return ClaimedRecoding(
        entry["name"],
        entry["column"],
        entry["rule"],
        values=tuple(values),
        above=_number(entry, "above"),
        upto=_number(entry, "upto"),
        kind=Kind(entry.get("kind", Kind.CATEGORICAL)),
        domain=_texts(entry, "domain"),
        labels=_texts_by_name(entry.get("labels", {})),
        n_levels=max(len(levels), 1),
        has_levels=bool(levels),
    )


def _promise(entry: Mapping[str, Any], place: str) -> Promise:
    """Read a guarantee; its constructor checks what its form cannot."""
    fields = {key: value for key, value in entry.items() if key not in ("statement", "audited")}
    columns = tuple(entry["columns"])
    _refuse_repetition(columns, f"{place}.columns")
    try:
        guarantee = guarantee_from_dict(fields)
    except InvalidParameterError as exc:
        problem = f"{place} promises a parameter out of range: {exc}"
        raise ManifestRefusedError(problem.removesuffix(".")) from None
    return Promise(guarantee, columns, entry["statement"], _number(entry, "audited"))


def _perturbation(entry: Mapping[str, Any]) -> ClaimedPerturbation:
    if entry["kind"] == FLIPPED:
        return ClaimedPerturbation(FLIPPED, entry["n_cells_changed"])
    if entry["kind"] == BUCKETED:
        slices = tuple(map(tuple, entry["slices"]))
        limit = _number(entry, "max_copied_fraction")
        return ClaimedPerturbation(BUCKETED, bucket=entry["bucket"], slices=slices, max_copied_fraction=limit)
    if not isinstance(entry["threshold"], int) or entry["threshold"] < 0:
        problem = "perturbation.threshold in the manifest is not a whole number from 0"
        raise ManifestRefusedError(problem)
    budget = tuple(Spending(**part) for part in entry["budget"])
    if any(part.scale < 0 or part.epsilon < 0 for part in budget):
        problem = "perturbation.budget in the manifest has a scale or an epsilon below 0"
        raise ManifestRefusedError(problem)
    return ClaimedPerturbation(SYNTHETIC, budget=budget, threshold=entry["threshold"])


def _refuse_repetition(names: Sequence[str], place: str) -> None:
    if len(set(names)) != len(names):
        problem = f"{place} in the manifest names a column twice"
        raise ManifestRefusedError(problem)
