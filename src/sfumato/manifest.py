"""The manifest: what a release says about itself, as data that may be published with it."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from typing import Any

from sfumato.counting.unique_rows import n_unique_rows
from sfumato.guarantees import GUARANTEES, ROW, DifferentialPrivacy, Guarantee, guarantee_from_dict
from sfumato.manifest_schema import MANIFEST_VERSION, VERSION, canonical_text, parsed_manifest
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table
from sfumato.table.labels import Code, ColumnLabels
from sfumato.table.preparing.declared import Preparation, preparations_of_entries
from sfumato.table.preparing.prepared import preparation_entries
from sfumato.table.row_order import SORTED
from sfumato.table.weighted import CountedTable

AnyTable = Table | BinaryTable


@dataclass(frozen=True)
class Manifest:
    """A release's papers; everything in it may be published with the release, so it holds no dropped cell value.

    Parameters
    ----------
    input, output : mapping
        ``name``, ``format``, ``rows``; the input's ``columns`` is their number, the output's is the list of released
        columns with ``name``, ``role`` and ``kind``. The output's ``sha256`` is null for a release not written to a
        file; its ``order`` says whether rows are "sorted" or "as-read". The input's ``commitment`` is null without a
        project's key: a plain hash would let anybody confirm a guess of the input. Its ``prepared`` lists what was
        done to columns right after they were read, where something was. A differentially private release
        has no input: None, see :func:`synthetic_manifest`.
    mechanism : mapping
        ``name``, ``parameters``, ``seed``.
    missing : mapping
        ``tokens`` (texts read as missing; ``columns`` where some have their own), ``rows`` ("kept" as a value of
        their own, or "dropped") and ``n_dropped``.
    dropped_columns : tuple of str
        Input columns that were not released.
    recodings : tuple of mapping
        For every released column that was computed from another: its ``name``, the ``column`` and the rule.
    guarantees : tuple of mapping
        A guarantee's own fields, its ``statement`` and, once audited, the ``audited`` level.
    evidence : mapping
        Utility kept and risk left, by name, in three significant digits.
    perturbation : mapping or None
        For a release whose cells are not the original's: its ``kind``. ``flipped``: ``n_cells_changed`` cells of the
        features were changed, and which ones is not said. ``synthetic``: the rows were drawn anew from noisy counts,
        with the ``budget`` that the noise spends. ``bucketed``: within the rows that share a value of the column
        ``bucket``, the values of each of the ``slices`` (lists of columns) were moved, each slice by itself.
    """

    input: Mapping[str, Any] | None
    output: Mapping[str, Any]
    mechanism: Mapping[str, Any]
    missing: Mapping[str, Any]
    dropped_columns: tuple[str, ...] = ()
    recodings: tuple[Mapping[str, Any], ...] = ()
    suppressed_rows: int = 0
    guarantees: tuple[Mapping[str, Any], ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    perturbation: Mapping[str, Any] | None = None

    def promised(self) -> tuple[Guarantee, ...]:
        """Return the guarantees as objects."""
        own = ("statement", "audited")
        return tuple(guarantee_from_dict({k: v for k, v in g.items() if k not in own}) for g in self.guarantees)

    @property
    def is_differentially_private(self) -> bool:
        """Whether differential privacy is promised, under which nothing may be said that depends on the rows."""
        return any(guarantee.get("kind") == DifferentialPrivacy.kind for guarantee in self.guarantees)

    @property
    def states_levels(self) -> bool:
        """Whether an audit has found the levels already that are given as audited; some have none to be found."""
        return any(entry.get("audited") is not None for entry in self.guarantees)

    @property
    def prepared(self) -> tuple[Mapping[str, Any], ...]:
        """What was done to columns right after they were read: the column, the operation, its public parameters."""
        return tuple((self.input or {}).get("prepared", ()))

    @property
    def preparations(self) -> tuple[Preparation, ...]:
        """The same as declarations.

        Raises
        ------
        SchemaError
            If an entry is none that a declaration makes.
        """
        return preparations_of_entries(self.prepared)

    @property
    def missing_tokens(self) -> tuple[str, ...]:
        """Texts that were read as missing."""
        return tuple(self.missing["tokens"])

    @property
    def missing_tokens_by_column(self) -> dict[str, tuple[str, ...]]:
        """Texts that were read as missing in the columns that have such texts of their own."""
        return {name: tuple(tokens) for name, tokens in self.missing.get("columns", {}).items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the version of the format first and a digest over everything else last."""
        data = {"sfumato_manifest": MANIFEST_VERSION} | {f.name: getattr(self, f.name) for f in fields(self)}
        return data | {"digest": manifest_digest(data)}

    def to_json(self) -> str:
        """Return the manifest as people and programs read it, in its one canonical form."""
        return canonical_text(self.to_dict())

    @classmethod
    def from_json(cls, text: str, *, path: str | None = None) -> Manifest:
        """Read a manifest; whether its digest fits is the audit's question, not the reader's.

        No unknown keys at any depth, no key twice, no number that is none, and the text is the canonical one.

        Raises
        ------
        ManifestError
            If the text is no manifest, or one of another version.
        ManifestRefusedError
            If it is one and breaks the rules of its form.
        """
        data = parsed_manifest(text, path)
        found = {f.name: data[f.name] for f in fields(cls)}
        entries: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in found.items()}
        return cls(**entries)


def manifest_digest(data: Mapping[str, Any]) -> str:
    """SHA-256 over a manifest's content in canonical form, its own digest left out."""
    body = {k: v for k, v in data.items() if k != "digest"}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def tool_versions() -> dict[str, str]:
    """Versions of what results depend on."""
    packages = ("sfumato", "numpy", "scipy", "scikit-learn", "pyarrow", "xlsxwriter", "duckdb", "narwhals")
    own = {"python": platform.python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION}
    return own | {name: version(name) for name in packages}


_WRITERS = {"parquet": ("pyarrow",), "excel": ("xlsxwriter", "zlib")}
_NUMBERED = re.compile(VERSION["pattern"].removesuffix("$"))


def stated_versions(format: str = "", *further: str) -> dict[str, str]:
    """Versions that a manifest states: of this package, and of what makes the bytes of a file's format.

    Their first numbers only, since a version may hold any text.
    """
    writers = ("zlib",) if format.endswith(".gz") else _WRITERS.get(format, ())
    every = tool_versions() | {name: version(name) for name in further}
    found = {name: _NUMBERED.match(every[name]) for name in ("sfumato", *writers, *further)}
    return {name: numbers[0] for name, numbers in found.items() if numbers is not None}


_OF_RELEASED_CELLS = frozenset({"global_certainty_penalty"})
_COUNTED_AGAIN = frozenset(
    {
        *("containment_level", "anonymity_level", "least_different_sensitive_values", "smallest_bucket", "of_rows"),
        *("estimated_on_rows", "grown_on_rows", "scored_on_rows", "n_features_released", "n_columns_released"),
        *("n_classes_of_cells", "n_groups", "n_buckets", "n_slices"),
    }
)
"""Whole numbers that an audit counts again, and that are exact whatever their size."""
_LARGE, _ROUNDING_ERROR = 10**6, 1e-9


def in_three_digits(figures: Any, exact: frozenset[str] = _OF_RELEASED_CELLS) -> Any:
    """Round every number with decimals, and large whole ones, to three significant digits, in data of a manifest.

    Figures computed from the original's rows tell about rows and columns that are not released: written to the last
    digit, an information gain leaves only a few tables possible. The certainty penalty of ranges and sets stays exact:
    it follows from released cells, of which no row is left out, and by it the audit finds a cell that was widened.

    Examples
    --------
    >>> in_three_digits({"gain": [0.123456, 7], "rows": 123456})
    {'gain': [0.123, 7], 'rows': 123456}
    """
    if isinstance(figures, Mapping):
        return {name: figure if name in exact else in_three_digits(figure) for name, figure in figures.items()}
    if isinstance(figures, list | tuple):
        return [in_three_digits(figure) for figure in figures]
    if isinstance(figures, int) and abs(figures) >= _LARGE:
        return int(float(f"{figures:.3g}"))
    if not isinstance(figures, float):
        return figures
    return float(f"{figures:.3g}") if abs(figures) >= _ROUNDING_ERROR else 0.0


def with_audited(
    guarantees: Sequence[Mapping[str, Any]], levels: Iterable[float | str | None]
) -> tuple[Mapping[str, Any], ...]:
    """State audited levels: as they are where released rows show them, else in three digits."""
    return tuple(
        {**entry, "audited": in_three_digits(level) if _rests_on_original(entry) else level}
        for entry, level in zip(guarantees, levels, strict=True)
    )


def _rests_on_original(entry: Mapping[str, Any]) -> bool:
    return GUARANTEES[entry["kind"]].of_original or entry["unit"] != ROW


def draft_manifest(
    original: AnyTable,
    released: AnyTable,
    *,
    mechanism: str,
    parameters: Mapping[str, Any],
    guarantees: Sequence[Guarantee],
    evidence: Mapping[str, Any],
    seed: int | None = None,
    suppressed_rows: int = 0,
    recodings: Sequence[Mapping[str, Any]] = (),
) -> Manifest:
    """Write down what a mechanism did; hashes of the output and audited levels are filled in when it is published.

    ``recodings`` are those of coded columns; the rules of binary features are taken from the released table. Figures of
    ``evidence`` are rounded here, for all mechanisms.
    """
    before, after = _input_columns(original), _outline(released)
    computed = [f.to_dict() for f in _features(released) if not _is_unchanged(f, original)]
    recoded = (*recodings, *computed)
    used = {column.name for column in after} | {recoding["column"] for recoding in recoded}
    companions = original.coded_part
    source, kept = companions.source, companions.person_rows
    return Manifest(
        input={
            "name": source.public_name if source else "<memory>",
            "commitment": None,
            "format": source.format if source else "memory",
            "rows": original.n_rows + companions.n_incomplete_dropped + (kept.n_dropped if kept else 0),
            "columns": len(_outline(original)),
        }
        | ({"one_row_per_person": asdict(kept)} if kept else {})
        | declared_formats(companions.schema)
        | ({"prepared": done} if (done := preparation_entries(original)) else {}),
        output=_unwritten(released),
        mechanism={"name": mechanism, "parameters": dict(parameters), "seed": seed},
        missing={
            "tokens": list(companions.schema.missing),
            "rows": "dropped" if companions.n_incomplete_dropped else "kept",
            "n_dropped": companions.n_incomplete_dropped,
        }
        | _tokens_of_columns(companions.schema),
        dropped_columns=tuple(name for name in before if name not in used),
        recodings=recoded,
        suppressed_rows=suppressed_rows,
        guarantees=tuple(g.to_dict() | {"statement": g.describe(), "audited": None} for g in guarantees),
        evidence=_rounded(_with_unique_rows(evidence, _without_pseudonyms(released, original))),
        versions=stated_versions(),
    )


def _rounded(evidence: Mapping[str, Any]) -> dict[str, Any]:
    exact = {"utility": _OF_RELEASED_CELLS | _COUNTED_AGAIN, "risk": _COUNTED_AGAIN}
    return {name: in_three_digits(part, exact.get(name, frozenset())) for name, part in evidence.items()}


UNIQUE_ROWS = "unique_row_fraction"
"""Risk: share of released rows that no other one equals on all released columns together."""


def _with_unique_rows(evidence: Mapping[str, Any], released: AnyTable) -> dict[str, Any]:
    """Say how many released rows are unique on everything; of rows that are not in memory it is said when written."""
    coded = released.coded_part
    is_outline = any(len(column.codes) != coded.n_rows for column in coded.columns.values())
    if is_outline or isinstance(coded, CountedTable):
        return dict(evidence)
    return stating_unique_rows(evidence, n_unique_rows(released), released.n_rows)


def _without_pseudonyms(released: AnyTable, original: AnyTable) -> AnyTable:
    """Leave out pseudonyms, which are different in every row and say nothing about anybody."""
    done = original.coded_part.prepared
    made = {asked.column for asked in done.preparations if asked.pseudonym} if done is not None else set()
    coded = released.coded_part
    return released.with_coded_part(coded.keep(n for n in coded.columns if n not in made)) if made else released


def stating_unique_rows(evidence: Mapping[str, Any], n_unique: int | None, n_rows: int) -> dict[str, Any]:
    """Add to the evidence how many rows are unique on everything that is released, if that is known."""
    if n_unique is None or not n_rows:
        return dict(evidence)
    share = in_three_digits(n_unique / n_rows)
    return {**evidence, "risk": {**evidence.get("risk", {}), UNIQUE_ROWS: share}}


def synthetic_manifest(
    released: BinaryTable,
    columns: Schema,
    *,
    mechanism: str,
    parameters: Mapping[str, Any],
    promise: DifferentialPrivacy,
    recodings: Sequence[Mapping[str, Any]],
    perturbation: Mapping[str, Any],
    evidence: Mapping[str, Any],
) -> Manifest:
    """Write down what a differentially private mechanism did: a whitelist, to which the original's rows have no way.

    Everything in it is a function of the released rows and of what is public: the parameters and the declared
    ``columns`` of the original. There is no name, commitment, size or seed of the original.
    """
    after = _outline(released)
    used = {column.name for column in after} | {recoding["column"] for recoding in recodings}
    return Manifest(
        input=None,
        output=_unwritten(released),
        mechanism={"name": mechanism, "parameters": dict(parameters), "seed": None},
        missing={"tokens": list(columns.missing)} | _tokens_of_columns(columns),
        dropped_columns=tuple(name for name in columns.names() if name not in used),
        recodings=tuple(recodings),
        guarantees=(promise.to_dict() | {"statement": promise.describe(), "audited": None},),
        evidence=evidence,
        versions=stated_versions("", "opendp"),
        perturbation=perturbation,
    )


def _unwritten(released: AnyTable) -> dict[str, Any]:
    """Describe released rows that stand in no file yet."""
    columns = [describe_column(column) for column in _outline(released)]
    return {
        "name": None,
        "sha256": None,
        "format": "memory",
        "rows": released.n_rows,
        "order": SORTED,
        "columns": columns,
    }


def _is_unchanged(feature: Feature, original: AnyTable) -> bool:
    """Whether a feature is a column of the original cell for cell; in one with missing values these became 0."""
    if feature != Feature(feature.column, feature.column):
        return False
    column = original.columns.get(feature.column) if isinstance(original, Table) else None
    return column is None or not column.n_missing


def _features(table: AnyTable) -> tuple[Feature, ...]:
    return table.features if isinstance(table, BinaryTable) else ()


def _input_columns(table: AnyTable) -> tuple[str, ...]:
    """Names of the original columns; a computed feature counts as its column, for its own name may show a value."""
    companions = table.coded_part
    return tuple(dict.fromkeys([f.column for f in _features(table)] + list(companions.schema.names())))


def _outline(table: AnyTable) -> list[Column]:
    """List all columns; features are quasi-identifying 0/1 columns."""
    companions = table.coded_part
    features = [Column(f.name, Role.QUASI_IDENTIFIER, Kind.CATEGORICAL) for f in _features(table)]
    return features + [column.restricted_to(_texts_of(companions, column)) for column in companions.schema]


def _texts_of(table: Table, column: Column) -> Iterable[str]:
    """Values of released rows, which are all that a recognised order may name."""
    return table[column.name].values.drop_null().to_pylist() if column.is_order_recognised else ()


def describe_column(column: Column) -> dict[str, Any]:
    """Name, role and kind; a declared domain too, which is the order of an ordered column, and the unit of numbers.

    A column that somebody has confirmed says so.
    """
    described: dict[str, Any] = {"name": column.name, "role": str(column.role), "kind": str(column.kind)}
    described |= {"domain": list(column.domain)} if column.domain else {}
    described |= {"missing": list(column.missing)} if column.missing is not None else {}
    described |= {"unit": column.reading.unit} if column.reading is not None and column.reading.unit else {}
    return described | ({"confirmed": True} if column.confirmed else {})


def declared_formats(schema: Schema) -> dict[str, Any]:
    """Say how texts of the original were read where whoever reads it again would guess otherwise."""
    read = {c.name: c.reading.format for c in schema if c.reading is not None and c.reading.is_own}
    named = {name: text for name, text in read.items() if schema[name].role is not Role.IDENTIFIER}
    return {"read_as": named} if named else {}


def stated_labels(labels: ColumnLabels) -> dict[str, Any]:
    """Labels of a column, for its entry: of a file that holds them."""
    values = [{"value": _in_short(code), "label": text} for code, text in labels.values]
    return ({"label": labels.label} if labels.label else {}) | ({"value_labels": values} if values else {})


def _in_short(code: Code) -> Code:
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _tokens_of_columns(schema: Schema) -> dict[str, Any]:
    """Missing tokens that columns have of their own, so that the original can be read again in the same way."""
    own = {c.name: list(c.missing) for c in schema if c.missing is not None}
    return {"columns": own} if own else {}
