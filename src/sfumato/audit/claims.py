"""What a manifest claims, read from plain data with every type checked; a malformed one raises ``ManifestError``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from sfumato.audit.kinds import JUDGED
from sfumato.audit.manifest_form import OWN_PARAMETERS, Limited, Names, check_form, is_strict
from sfumato.errors import InvalidParameterError, ManifestError, ManifestRefusedError
from sfumato.guarantees import DifferentialPrivacy, Guarantee, guarantee_from_dict
from sfumato.schema import Kind, Role

KNOWN_VERSIONS = (1, 2, 3)
NO_PLAIN_HASH = 3
"""Version since which the input is named by a commitment, if at all, and the project file by nothing."""
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
    n_levels: int | None = 1
    """Levels of a hierarchy that the labels are from: no value has more labels; ``None`` where that is not stated."""
    has_levels: bool = False
    """Whether these levels are listed."""


@dataclass(frozen=True)
class Promise:
    """A guarantee with the sentence and the audited level that the manifest gives for it."""

    guarantee: Guarantee
    columns: tuple[str, ...]
    statement: str | None
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
    threshold: int | None = None
    bucket: str | None = None
    slices: tuple[tuple[str, ...], ...] = ()
    max_copied_fraction: float | None = None

    @property
    def moved(self) -> frozenset[str | None]:
        """Columns that are judged bucket by bucket."""
        return frozenset(name for names in self.slices for name in names) | {self.bucket}


PERSON_RULES = ("first", "last", "random")


@dataclass(frozen=True)
class ClaimedPersons:
    """Which row of each person was kept, by which column persons are told apart, and how many rows were left out."""

    column: str
    rule: str
    n_dropped: int


@dataclass(frozen=True)
class ClaimedCommitment:
    """A keyed hash of the input: it fits one input and one key, and tells nothing to whoever has no key."""

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
    """A manifest as typed data; ``version`` 1 was written before every key and byte was accounted for."""

    version: int
    digest: str
    input_sha256: str | None
    """Plain hash of the input, which versions 1 and 2 had."""
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
    output_order: str | None
    """Whether released rows are "sorted" or "as-read"; ``None`` before version 3, which did not say."""
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

    def names(self, *roles: Role) -> tuple[str, ...]:
        """Names of the released columns with one of these roles (all columns when none is given)."""
        return tuple(c.name for c in self.columns if not roles or c.role.is_one_of(roles))


def read_claims(manifest: Mapping[str, Any]) -> Claims:
    """Read a manifest (the parsed JSON).

    Raises
    ------
    ManifestError
        If the format's version is not one that this audit knows: the version says how to read everything else.
    ManifestRefusedError
        If an entry is missing or of a wrong type; in a strict manifest also if there is one that the form has not.
    """
    top = _Entry(manifest, "")
    if top.count("sfumato_manifest") not in KNOWN_VERSIONS:
        problem = "the manifest has a version that this audit does not know"
        raise ManifestError(problem, hint=f"expected sfumato_manifest = {' or '.join(map(str, KNOWN_VERSIONS))}")
    if is_strict(manifest):
        check_form(manifest)
    withholds = is_synthetic(manifest) or _promises_noise(manifest)
    source = None if withholds and manifest.get("input") is None else top.entry("input")
    output, missing = top.entry("output"), top.entry("missing")
    version = top.count("sfumato_manifest")
    is_keyed = version >= NO_PLAIN_HASH
    says_rows = not withholds or "rows" in missing.data or "n_dropped" in missing.data
    mechanism = top.entry("mechanism")
    columns = tuple(_column(entry) for entry in output.entries("columns"))
    recodings = [_recoding(entry, is_strict(manifest)) for entry in top.entries("recodings")]
    _refuse_repetition([c.name for c in columns], "output.columns")
    _refuse_repetition([r.name for r in recodings], "recodings")
    if is_keyed:
        sources = [recoding.column for recoding in recodings]
        _check_settings(mechanism, {*(c.name for c in columns), *sources, *top.texts("dropped_columns")})
    return Claims(
        version=version,
        digest=top.text("digest"),
        input_sha256=source.optional_text("sha256") if source and not is_keyed else None,
        input_commitment=_commitment(source) if source and is_keyed else None,
        input_name=source.optional_text("name") if source else None,
        input_format=source.text("format") if source else None,
        input_rows=source.count("rows") if source else None,
        input_columns=source.count("columns") if source else None,
        input_parties=_parties(source, mechanism) if source else None,
        output_name=output.optional_text("name"),
        output_format=output.text("format"),
        output_sha256=output.optional_text("sha256"),
        output_rows=output.count("rows"),
        output_order=output.one_of("order", (SORTED, AS_READ)) if is_keyed else None,
        columns=columns,
        mechanism=mechanism.text("name"),
        parameters=mechanism.entry("parameters").data,
        missing_tokens=missing.texts("tokens"),
        missing_by_column=missing.texts_by_name("columns") if "columns" in missing.data else {},
        persons=_persons(source) if source else None,
        drops_incomplete_rows=says_rows and missing.one_of("rows", ("kept", "dropped")) == "dropped",
        n_incomplete_dropped=missing.count("n_dropped") if says_rows else 0,
        dropped_columns=top.texts("dropped_columns"),
        recodings={r.name: r for r in recodings},
        suppressed_rows=top.count("suppressed_rows"),
        promises=tuple(_promise(entry) for entry in top.entries("guarantees")),
        stated_risk=_Entry(top.entry("evidence").data.get("risk", {}), "evidence.risk").data,
        stated_utility=_Entry(top.entry("evidence").data.get("utility", {}), "evidence.utility").data,
        stated_sections=tuple(top.entry("evidence").data),
        stated_disclosure=_Entry(top.entry("evidence").data.get("disclosure", {}), "evidence.disclosure").data,
        versions=top.entry("versions").data,
        seed=mechanism.data.get("seed"),
        perturbation=_perturbation(top.entry("perturbation")) if manifest.get("perturbation") is not None else None,
        escapes_formulas=is_keyed and output.data.get("escaped_formulas") is True,
        prepared=_prepared(source) if source and is_keyed and "prepared" in source.data else {},
        read_as=_formats(source) if source and is_keyed and "read_as" in source.data else {},
    )


_SEED_OF_SAMPLES = 20_261_116
"""By which rows of tables that do not fit into memory are drawn."""


def _check_settings(mechanism: _Entry, known: set[str]) -> None:
    """Refuse settings that name columns which the manifest has not, and a seed that is not among the settings."""
    given = mechanism.entry("parameters")
    forms = OWN_PARAMETERS.get(mechanism.text("name"), {})
    for key, own in given.data.items():
        if not set(_named_columns(own, forms.get(f"{key}?"), known)) <= known:
            problem = f"{given.place}.{key} in the manifest names a column that is neither released nor left out"
            raise ManifestRefusedError(problem)
    if mechanism.data.get("seed") not in (None, _SEED_OF_SAMPLES, given.data.get("random_state")):
        problem = "mechanism.seed in the manifest is not the random_state among the settings"
        raise ManifestRefusedError(problem)


def _named_columns(found: Any, form: Any, known: set[str]) -> Iterator[str]:
    if isinstance(form, tuple):
        for one in form:
            yield from _named_columns(found, one, known)
    elif isinstance(form, list) and isinstance(found, list):
        for item in found:
            yield from _named_columns(item, form[0], known)
    elif isinstance(form, Names) and form.of_columns and isinstance(found, Mapping):
        yield from found
    elif isinstance(form, Limited) and form.names_columns and isinstance(found, str):
        yield from [found] if found in known else [name.strip() for name in found.split(",")]


def _formats(source: _Entry) -> dict[str, str]:
    named = source.entry("read_as")
    return {name: named.text(name) for name in named.data}


def _commitment(source: _Entry) -> ClaimedCommitment | None:
    if source.data.get("commitment") is None:
        return None
    entry = source.entry("commitment")
    return ClaimedCommitment(entry.text("scheme"), entry.text("release"), entry.text("value"))


def _parties(source: _Entry, mechanism: _Entry) -> int | None:
    """Read how many parties' rows the input was; there must be so many in the session."""
    if "parties" not in source.data:
        return None
    stated = source.count("parties")
    listed = mechanism.entry("parameters").entry("session").entry("parties").data
    if stated != len(listed) or stated < _FEWEST_PARTIES:
        problem = f"input.parties in the manifest is not the session's number of parties, from {_FEWEST_PARTIES} on"
        raise ManifestRefusedError(problem)
    return stated


def _persons(source: _Entry) -> ClaimedPersons | None:
    if "one_row_per_person" not in source.data:
        return None
    entry = source.entry("one_row_per_person")
    return ClaimedPersons(entry.text("column"), entry.one_of("rule", PERSON_RULES), entry.count("n_dropped"))


_NUMBERS = ("age", "bottom", "top", "round")
"""Operations that may be done to one column, in this order; every other one is done alone."""
_ALONE = ("drop", "mask", "pseudonym", "shift")


def _prepared(source: _Entry) -> dict[str, ClaimedPreparation]:
    """Read what was done to columns; what cannot have been done, or not in this order, is refused."""
    listed: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for entry in source.entries("prepared"):
        operation = entry.one_of("operation", (*_NUMBERS, *_ALONE))
        _check_operation(entry, operation)
        listed.setdefault(entry.text("column"), []).append((operation, entry.data))
    for operations in listed.values():
        names = [name for name, _ in operations]
        in_order = [name for name in _NUMBERS if name in names]
        if names != in_order and (len(names) != 1 or names[0] not in _ALONE):
            problem = "input.prepared in the manifest lists operations of a column that do not go together"
            raise ManifestRefusedError(problem)
    return {name: ClaimedPreparation(name, tuple(operations)) for name, operations in listed.items()}


def _check_operation(entry: _Entry, operation: str) -> None:
    """Check the parameters of an operation, as far as their form does not."""
    if operation in ("bottom", "top", "round"):
        entry.number("value")
    elif operation == "age":
        try:
            date.fromisoformat(entry.text("at"))
        except ValueError:
            problem = f"{entry.place}.at in the manifest is no day"
            raise ManifestRefusedError(problem) from None
    elif operation == "mask" and len(entry.text("character")) != 1:
        problem = f"{entry.place}.character in the manifest is not one character"
        raise ManifestRefusedError(problem)
    elif operation == "shift" and entry.count("days") < 1:
        problem = f"{entry.place}.days in the manifest is not above 0"
        raise ManifestRefusedError(problem)


def is_synthetic(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest says that its rows are synthetic from noisy counts: nothing is said of the original then."""
    stated = manifest.get("perturbation")
    return isinstance(stated, Mapping) and stated.get("kind") == SYNTHETIC


def _promises_noise(manifest: Mapping[str, Any]) -> bool:
    stated = manifest.get("guarantees")
    kinds = [g.get("kind") for g in stated if isinstance(g, Mapping)] if isinstance(stated, list | tuple) else []
    return DifferentialPrivacy.kind in kinds


class _Entry:
    """A mapping of the manifest and where it stands; every accessor checks the type."""

    def __init__(self, data: Any, place: str) -> None:
        if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
            problem = f"{place or 'the manifest'} is not a mapping of names to entries"
            raise ManifestRefusedError(problem)
        self.data: Mapping[str, Any] = data
        self.place = place

    def _get(self, key: str) -> Any:
        if key not in self.data:
            problem = f"the manifest lacks {self._where(key)}"
            raise ManifestRefusedError(problem)
        return self.data[key]

    def _where(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def _refuse(self, key: str, wanted: str) -> ManifestRefusedError:
        return ManifestRefusedError(f"{self._where(key)} in the manifest is not {wanted}")

    def entry(self, key: str) -> _Entry:
        return _Entry(self._get(key), self._where(key))

    def entries(self, key: str) -> list[_Entry]:
        found = self._list(key)
        return [_Entry(item, f"{self._where(key)}[{i}]") for i, item in enumerate(found)]

    def _list(self, key: str) -> Sequence[Any]:
        found = self._get(key)
        if not isinstance(found, list | tuple):
            raise self._refuse(key, "a list")
        return found

    def text(self, key: str) -> str:
        found = self._get(key)
        if not isinstance(found, str):
            raise self._refuse(key, "a text")
        return found

    def optional_text(self, key: str) -> str | None:
        return None if self._get(key) is None else self.text(key)

    def texts(self, key: str) -> tuple[str, ...]:
        found = self._list(key)
        if not all(isinstance(item, str) for item in found):
            raise self._refuse(key, "a list of texts")
        return tuple(found)

    def lists_of_texts(self, key: str) -> tuple[tuple[str, ...], ...]:
        found = self._list(key)
        if not all(isinstance(item, list) and all(isinstance(text, str) for text in item) for item in found):
            raise self._refuse(key, "a list of lists of texts")
        return tuple(map(tuple, found))

    def one_of(self, key: str, allowed: Sequence[str]) -> str:
        found = self.text(key)
        if found not in allowed:
            raise self._refuse(key, f"one of {', '.join(allowed)}")
        return found

    def count(self, key: str) -> int:
        found = self._get(key)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < _LIMIT:
            raise self._refuse(key, "a whole number from 0")
        return found

    def counts(self, key: str) -> tuple[int, ...]:
        found = self._list(key)
        if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < _LIMIT for n in found):
            raise self._refuse(key, "a list of whole numbers from 0")
        if list(found) != sorted(set(found)):
            raise self._refuse(key, "a list of ascending numbers")
        return tuple(found)

    def texts_by_name(self, key: str) -> dict[str, tuple[str, ...]]:
        named = self.entry(key)
        return {name: named.texts(name) for name in named.data}

    def counts_by_name(self, key: str) -> dict[str, int]:
        named = self.entry(key)
        return {name: named.count(name) for name in named.data}

    def numbers_by_name(self, key: str) -> dict[str, tuple[float, ...]]:
        named = self.entry(key)
        for name in named.data:
            if not all(is_number(item) for item in named._list(name)):
                raise named._refuse(name, "a list of numbers")
        return {name: tuple(map(float, named._list(name))) for name in named.data}

    def number_or_text(self, key: str) -> float | str:
        found = self._get(key)
        if isinstance(found, str):
            return found
        if not is_number(found):
            raise self._refuse(key, "a number or a text")
        return float(found)

    def number(self, key: str) -> float | None:
        found = self.data.get(key)
        if found is None:
            return None
        if not is_number(found):
            raise self._refuse(key, "a number")
        return float(found)


def is_number(found: object) -> bool:
    """Whether an entry is a number that calculations can take: no truth value, not infinite, no endless digits."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    return abs(found) < _LIMIT if isinstance(found, int) else math.isfinite(found)


def _column(entry: _Entry) -> ClaimedColumn:
    role = entry.one_of("role", tuple(Role))
    kind = entry.one_of("kind", tuple(Kind))
    label = entry.text("label") if entry.data.get("label") is not None else None
    labelled = entry.entries("value_labels") if entry.data.get("value_labels") is not None else []
    values = tuple((own.number_or_text("value"), own.text("label")) for own in labelled)
    unit = entry.text("unit") if entry.data.get("unit") is not None else None
    described = _domain(entry), _own_missing(entry), label, values, unit
    return ClaimedColumn(
        entry.text("name"), Role(role), Kind(kind), *described, is_confirmed=entry.data.get("confirmed") is True
    )


def _own_missing(entry: _Entry) -> tuple[str, ...] | None:
    return entry.texts("missing") if entry.data.get("missing") is not None else None


def _domain(entry: _Entry) -> tuple[str, ...] | None:
    return entry.texts("domain") if entry.data.get("domain") is not None else None


def _recoding(entry: _Entry, strict: bool) -> ClaimedRecoding:
    values = entry.texts("values") if "values" in entry.data else ()
    if strict and len(set(values)) < len(values):
        problem = f"{entry.place}.values in the manifest names a value twice"
        raise ManifestRefusedError(problem)
    name, column, rule = entry.text("name"), entry.text("column"), entry.text("rule")
    kind = entry.one_of("kind", tuple(Kind)) if "kind" in entry.data else Kind.CATEGORICAL
    above, upto = entry.number("above"), entry.number("upto")
    labels = entry.entry("labels") if "labels" in entry.data else None
    listed = {label: labels.texts(label) for label in labels.data} if labels else {}
    levels = entry.counts("levels") if "levels" in entry.data else ()
    n_levels = max(len(levels), 1) if levels or strict else None
    described = values, above, upto, Kind(kind), _domain(entry), listed, n_levels
    return ClaimedRecoding(name, column, rule, *described, has_levels=bool(levels))


def _promise(entry: _Entry) -> Promise:
    """Read a guarantee; its constructor checks ranges, this function the types that it takes on trust."""
    fields = {key: value for key, value in entry.data.items() if key not in ("statement", "audited")}
    judging = JUDGED.get(entry.text("kind"))
    columns = entry.texts("columns")
    _refuse_repetition(list(columns), f"{entry.place}.columns")
    for key, form in judging.form.items() if judging is not None else ():
        if key.removesuffix("?") in fields:
            _check_type(entry, key.removesuffix("?"), form)
    try:
        guarantee = guarantee_from_dict(fields)
    except InvalidParameterError as exc:
        problem = f"{entry.place} promises a parameter out of range: {exc}"
        raise ManifestRefusedError(problem.removesuffix(".")) from None
    for key in judging.above_zero if judging is not None else ():
        if fields.get(key) is not None and not fields[key] > 0:
            problem = f"{entry.place}.{key} in the manifest is not above 0"
            raise ManifestRefusedError(problem)
    statement = entry.optional_text("statement") if "statement" in entry.data else None
    return Promise(guarantee, columns, statement, entry.number("audited"))


def _check_type(entry: _Entry, key: str, form: Any) -> None:
    """Refuse an entry of a guarantee that is not of the type of its form; ranges are the constructor's matter."""
    if isinstance(form, frozenset):
        entry.one_of(key, sorted(form))
    elif isinstance(form, Names):
        (entry.numbers_by_name if isinstance(form.each, list) else entry.counts_by_name)(key)
    elif isinstance(form, list):
        entry.texts(key)
    elif form in ("text", "hash"):
        entry.text(key)
    elif form in ("count", "crowd"):
        entry.count(key)
    else:
        entry.number(key)


def _perturbation(entry: _Entry) -> ClaimedPerturbation:
    kind = entry.one_of("kind", (FLIPPED, SYNTHETIC, BUCKETED))
    if kind == FLIPPED:
        return ClaimedPerturbation(kind, entry.count("n_cells_changed"))
    if kind == BUCKETED:
        limit = entry.number("max_copied_fraction") if "max_copied_fraction" in entry.data else None
        slices = entry.lists_of_texts("slices")
        return ClaimedPerturbation(kind, bucket=entry.text("bucket"), slices=slices, max_copied_fraction=limit)
    threshold = entry.count("threshold") if "threshold" in entry.data else None
    budget = tuple(_spending(part) for part in entry.entries("budget"))
    return ClaimedPerturbation(kind, budget=budget, threshold=threshold)


def _spending(entry: _Entry) -> Spending:
    scale, epsilon = entry.number("scale"), entry.number("epsilon")
    if scale is None or epsilon is None or scale < 0 or epsilon < 0:
        problem = f"{entry.place} in the manifest lacks a scale or an epsilon from 0"
        raise ManifestRefusedError(problem)
    step = entry.one_of("step", (SELECTION, COUNTS))
    return Spending(step, entry.text("noise"), entry.count("n_choices"), entry.count("sensitivity"), scale, epsilon)


def _refuse_repetition(names: list[str], place: str) -> None:
    if len(set(names)) != len(names):
        problem = f"{place} in the manifest names a column twice"
        raise ManifestRefusedError(problem)
