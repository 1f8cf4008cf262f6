"""The contract between mechanisms and everything around them: what one takes, gives and says about itself."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import hmac
import importlib
import inspect
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property
from html import escape
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError, on_one_line
from sfumato.guarantees import SearchedBy
from sfumato.guarantees.forms import USUAL_DIGITS
from sfumato.guarantees.request import check_request, k_of, shorthand, shorthand_parameters
from sfumato.manifest import AnyTable, Manifest
from sfumato.manifest_schema import SMALLEST, has_digits
from sfumato.parameters import Parameter, ParameterSpec, parameter_of
from sfumato.progress import Progress
from sfumato.schema import Kind, Role, Schema
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn
from sfumato.table.roles import ColumnGuess
from sfumato.table.row_order import AS_READ, canonical_order

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.axes import Axes

    from sfumato.mechanisms.population import Population
    from sfumato.table.preparing.keyed import PreparationKeys

Cells = Literal["ranges", "values", "draws"]
"""What a release shows of a class: ranges, sets and labels; a typical value a column; its own values, dealt anew."""
MOST_COPIES = 0.3
"""Largest share of drawn rows that may equal an original row which is the only one of its kind, if nobody says."""

SEEDS = 2**32
"""Seeds that a manifest states are below it."""

_ROWS_A_SECOND = 5_000
_MOST_SECONDS = 10


@dataclass(frozen=True, repr=False, eq=False)
class Release:
    """A released table and its manifest.

    Parameters
    ----------
    table : Table or BinaryTable
        Released rows in the order of the original, of which some may be left out; to hand them out, take ``data``.
    manifest : Manifest
    description : tuple of ColumnGuess
        What each column of the original was taken for, if it was no described table. It is never published.
    audit_key : bytes or None
        Secret of this release, if a project's key gave it one, by which an audit checks the commitment to the original.
        It is never published: with it a guess of the original can be confirmed.
    kept_rows : ndarray of intp or None
        Row of the original that each row was made of; ``None``: all, in their order. It is never published.
    preparation_keys : PreparationKeys or None
        Secrets of pseudonyms and shifted dates, where there are some. They are never published.
    summary : mapping or None
        The sentences that ``repr`` and notebooks show; ``None``: made when they are asked for.
    """

    table: AnyTable
    manifest: Manifest
    description: tuple[ColumnGuess, ...] = ()
    audit_key: bytes | None = None
    kept_rows: NDArray[np.intp] | None = None
    population: Population | None = None
    preparation_keys: PreparationKeys | None = None
    summary: Mapping[str, Any] | None = None

    @property
    def guesses(self) -> tuple[ColumnGuess, ...]:
        """Columns of the original whose roles were guessed, each with the reason."""
        return tuple(guess for guess in self.description if not guess.is_given)

    @property
    def data(self) -> AnyTable:
        """Released rows as they may be handed out: in their canonical order, which says nothing about the original's.

        The rows of ``table`` are in the order of the original, for those who compare the two.
        """
        return self.table.take(self.order())

    def order(self, format: str = "memory") -> NDArray[np.intp]:
        """Rows of ``table`` in the order in which they are handed out, or written in some format."""
        if self.manifest.output.get("order") == AS_READ:
            return np.arange(self.table.n_rows)
        return canonical_order(self.table, format)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the released rows to any library that reads Arrow: ``pl.from_arrow``, ``duckdb.sql``, ``pa.table``."""
        return self._arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Give the released rows one by one, as mappings: what ``pd.DataFrame`` takes."""
        return iter(self._arrow().to_pylist())

    def to_pandas(self) -> pd.DataFrame:
        """Give the released rows as a pandas data frame; names of columns are texts, numbers are numbers."""
        frame: pd.DataFrame = self._arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Give the released rows as a polars data frame; names of columns are texts, numbers are numbers."""
        import polars

        return polars.DataFrame(self._arrow())

    def _arrow(self) -> pa.Table:
        """Give the rows to hand out; numbers of a text file are texts up to here."""
        data = self.data
        plain = data.to_table() if isinstance(data, BinaryTable) else data
        cells = plain.to_arrow()
        for place, column in enumerate(plain.schema):
            if column.kind is Kind.NUMERIC and pa.types.is_string(cells.schema.field(place).type):
                cells = cells.set_column(place, column.name, _as_numbers(cells.column(place)))
        return cells

    def summed_up(self, original: AnyTable | None) -> Release:
        """Return the same release with its summary; re-identification is measured if the original is given."""
        return replace(self, summary=self._short(original))

    def _short(self, original: AnyTable | None) -> Mapping[str, Any]:
        shorts = importlib.import_module("sfumato.report.in_short")  # a later layer, which is loaded on demand
        said: Mapping[str, Any] = shorts.without_training(self, original).to_dict()
        return said

    def _headed(self) -> dict[str, str]:
        """Give what the command prints, by heading, after a line about the table; never a cell."""
        manifest, said = self.manifest, self.summary or self._short(None)
        rows = f"{manifest.output['rows']:,}" + (f" of {manifest.input['rows']:,}" if manifest.input else "")
        columns = f"{len(manifest.output['columns']):,} columns ({len(manifest.dropped_columns):,} dropped)"
        headed = {"Release": f"{rows} rows, {columns}, by {manifest.mechanism['name']}", **said["headed"]}
        if self.guesses:
            headed["Guessed roles"] = f"{len(self.guesses):,} (see .guesses)"
        return headed | ({"WARNING": "; ".join(said["warnings"])} if said["warnings"] else {})

    def __repr__(self) -> str:
        shorts = importlib.import_module("sfumato.report.in_short")  # a later layer, which is loaded on demand
        return "\n".join(shorts.lines_of(self._headed()))

    def _repr_html_(self) -> str:
        """Give the same for notebooks, as a table."""
        cells = "".join(
            f'<tr><th scope="row" style="text-align: left">{escape(heading)}</th>'
            f'<td style="text-align: left">{escape(on_one_line(sentence))}</td></tr>'
            for heading, sentence in self._headed().items()
        )
        return f"<table><caption>sfumato release</caption><tbody>{cells}</tbody></table>"

    def plot(self, kind: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw what the manifest has evidence for; ``kind`` says which picture where there are several.

        Without such evidence, as of the default release, it is how many rows share their quasi-identifiers.
        """
        displays = importlib.import_module("sfumato.displays.class_sizes")  # a later layer, which is loaded on demand
        axes: Axes = displays.display_of_release(self.table, self.manifest, kind).plot(ax)
        return axes

    def report(self, path: str | Path, *, original: AnyTable | None = None, **more: Any) -> Path:
        """Write a report of this release as one HTML file.

        Parameters
        ----------
        original : Table or BinaryTable or None
            With it utility and risk are measured.
        more
            ``external``, ``quick``, ``force``, ``progress`` and ``mechanism``, see
            :func:`sfumato.report.render.write_report`.
        """
        reports = importlib.import_module("sfumato.report.render")  # a later layer, which is loaded on demand
        written: Path = reports.write_report(self, path, original=original, **more)
        return written

    def with_order_kept(self) -> Release:
        """Return the same release with its rows in the order of the original, which the manifest says.

        Two releases of the same table can then be joined by the numbers of their rows: together they may single out
        people whom neither does alone.
        """
        return self.with_manifest(output={**self.manifest.output, "order": AS_READ})

    def with_formulas_escaped(self) -> Release:
        """Return the same release, of which texts that a spreadsheet program would run are written with an apostrophe.

        That is for CSV and TSV files; the manifest says it, and whoever reads the file by it gets the cells.
        """
        return self.with_manifest(output={**self.manifest.output, "escaped_formulas": True})

    def with_manifest(self, **changes: Any) -> Release:
        """Return the same release with some manifest entries replaced."""
        return replace(self, manifest=replace(self.manifest, **changes))


def _as_numbers(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read the numbers of a column, whole ones where all are; texts that are none stay as they are."""
    for number_type in (pa.int64(), pa.float64()):
        with contextlib.suppress(pa.ArrowInvalid):
            return pc.cast(texts, number_type)
    return texts


def _checked_copies(limit: object, cells: Cells) -> float:
    is_share = isinstance(limit, int | float) and not isinstance(limit, bool) and 0 <= limit <= 1
    if cells != "draws" or not isinstance(limit, int | float) or not is_share:
        problem = f"got {limit!r}" if cells == "draws" else f"got {limit!r} for cells that are {cells}"
        raise InvalidParameterError("max_copies", problem, allowed="a share from 0 to 1, for cells that are draws")
    return float(limit)


class Needs(StrEnum):
    """What a mechanism must be given of the rows to find a release.

    A mechanism that does with less than all rows can release tables that are larger than memory or on a cluster; what
    it must offer for that is in the protocol named here.
    """

    ALL_ROWS = "all rows"
    """The whole table in memory."""
    COUNTS = "counts"
    """Distinct rows with counts (``publishing.proposals.counted.CellMechanism``).

    Where they are too many, those of merged values, if the mechanism offers that
    (``publishing.proposals.counted.MergingMechanism``)."""
    COUNTS_OR_SAMPLE = "counts or a sample"
    """Distinct rows or, where these are too many, a sample (``publishing.proposals.sampled.FittedMechanism``)."""
    SAMPLE = "a sample"
    """A sample (``publishing.proposals.sampled.SampleMechanism``). All it may promise is a ``BreachBound``."""
    FEATURE_COUNTS = "counts of features"
    """Distinct rows of binary features: :class:`sfumato.publishing.proposals.features.PatternMechanism`."""


class Mechanism(ABC):
    """Turns a table into a release, or raises ``PrivacyNotAchievableError``.

    The one base of all mechanisms. A subclass says by class attributes what others have to know of it; nobody asks of
    which class it is. Its constructor takes parameters by name and only stores them, as scikit-learn has it.

    Attributes
    ----------
    mechanism_name : str
        As the command line and manifests have it.
    needs : Needs
        What it must be given of the rows.
    counts_persons : bool
        Whether its promises count persons where a column tells them apart and some have several rows; with some
        parameters they may not, see :meth:`why_rows_count`.
    counts_crowds : bool
        Whether it counts them on distinct rows too, of which many persons' are one (:mod:`sfumato.counting.crowds`).
    takes_both_roles : bool
        Whether it can treat a column as sensitive and quasi-identifying at once; else such a table is refused.
    is_differentially_private : bool
        Whether it promises differential privacy: what it is given must be read and described without a look at the
        rows.
    hides_choices : bool
        Whether something stays hidden only while nobody can repeat its random choices: :meth:`hidden_rng` draws them.
    takes_population : bool
        Whether it can promise something about a table of the population, see :meth:`with_population`.
    population : Population or None
        That table.
    takes_cells : bool
        Whether its releases can have the original's values instead of ranges, sets and labels, see :meth:`with_cells`.
    cells : str
        Which of these they have.
    max_copies : float
        Limit of copies among drawn rows.
    parameter_specs : mapping of str to ParameterSpec
        Help and limits of every parameter of the constructor but ``privacy``, in the order in which they are shown.
    searches : tuple of SearchedBy
        What it counts besides rows while it searches, and so which guarantees it can be asked for, by a parameter
        ``privacy`` of its constructor that is a list of them.
    asked_only_with : mapping
        Settings without which it cannot be asked for any of these.
    """

    mechanism_name: ClassVar[str]
    needs: ClassVar[Needs] = Needs.ALL_ROWS
    counts_persons: ClassVar[bool] = False
    counts_crowds: ClassVar[bool] = False
    takes_both_roles: ClassVar[bool] = False
    is_differentially_private: ClassVar[bool] = False
    hides_choices: ClassVar[bool] = False
    _secret: bytes | None = None
    takes_population: ClassVar[bool] = False
    population: Population | None = None
    takes_cells: ClassVar[bool] = False
    cells: Cells = "ranges"
    max_copies: float = MOST_COPIES
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {}
    searches: ClassVar[tuple[SearchedBy, ...]] = ()
    asked_only_with: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Propose a release; whether it keeps its promise is audited elsewhere."""

    def keyed(self, secret: bytes) -> Self:
        """Give a copy whose hidden choices follow from a secret: whoever has it can make the same release again."""
        own = copy.copy(self)
        own._secret = secret
        return own

    def hidden_rng(self, random_state: int | None) -> np.random.Generator:
        """Random numbers of choices that hide something.

        They come from the seed that a caller gives, which is then theirs to keep secret; else from the secret that the
        mechanism was :meth:`keyed` with; else from the system. Nothing of this may stand in a manifest.
        """
        if random_state is not None:
            return np.random.default_rng(random_state)
        if self._secret is None:
            return np.random.default_rng(secrets.randbits(256))
        drawn = hmac.digest(self._secret, type(self).mechanism_name.encode(), hashlib.sha256)
        return np.random.default_rng(int.from_bytes(drawn, "big"))

    def for_table(self, table: AnyTable) -> Mechanism:
        """Give the mechanism that makes the release of a table: itself, unless it represents a choice among others."""
        return self

    def explained(self, error: PrivacyNotAchievableError, table: AnyTable) -> PrivacyNotAchievableError:
        """Add to an error of the mechanism for a table what else could be asked for."""
        return error

    def why_all_rows(self, schema: Schema) -> str:
        """Say which settings or columns need all rows in memory although the mechanism does not: a name and a verb."""
        return ""

    def with_population(self, population: Population) -> Self:
        """Give the same mechanism, whose k-map and δ-presence are about a table of the population.

        Raises
        ------
        InvalidParameterError
            If it promises neither.
        """
        if not self.takes_population:
            raise not_about_population(name_of(self))
        own = copy.copy(self)
        own.population = population
        return own

    def with_cells(self, cells: str | None, max_copies: float | None = None) -> Self:
        """Give the same mechanism, whose releases have cells of this form.

        Parameters
        ----------
        cells : {"ranges", "values", "draws"} or None
            ``None``: as they are.
        max_copies : float or None
            For draws: the largest share of released rows that may equal, on all quasi-identifiers, an original row
            that is the only one of its kind.

        Raises
        ------
        InvalidParameterError
            If there is no such form, or this mechanism does not coarsen values.
        """
        asked = self.cells if cells is None else cells
        if asked == self.cells and max_copies is None:
            return self
        form = next((known for known in get_args(Cells) if known == asked), None)
        if form is None:
            raise InvalidParameterError("cells", f"got {cells!r}", allowed=f"one of {', '.join(get_args(Cells))}")
        own = copy.copy(self)
        own.cells = form
        own.max_copies = self.max_copies if max_copies is None else _checked_copies(max_copies, form)
        if form != self.cells and not self.takes_cells:
            problem = f"got {cells} with {name_of(self)}, which does not make classes of rows by coarsening values"
            able = "auto, mondrian, mdav, error-risk-tree, global-recoding, gain-recoding or local-recoding"
            raise InvalidParameterError("cells", problem, allowed=f"{cells} with {able}", remedy=("mechanism",))
        return own

    def why_rows_count(self) -> str:
        """Say what the mechanism does by rows, with these parameters; empty where it counts persons.

        A verb and more, such as "counts rows", for a sentence that begins with the mechanism's name.
        """
        return "" if self.counts_persons else "counts rows"

    def check_parameters(self, *names: str) -> None:
        """Refuse values that the declarations of these parameters (of all, if none is named) do not allow."""
        for name in names or self.parameter_specs:
            declared, given = declared_parameter(type(self), name), getattr(self, name)
            declared.check(given)
            declared.check_effect(given, {other: getattr(self, other) for other in declared.only_with})


def settings_of(mechanism: Any) -> dict[str, Any]:
    """Give the settings of a mechanism as people write them: guarantees in the parameters by which they are asked for.

    Examples
    --------
    >>> from sfumato.guarantees import TCloseness
    >>> from sfumato.mechanisms.mondrian.mechanism import Mondrian
    >>> found = settings_of(Mondrian(k=10, privacy=[TCloseness(0.2)]))
    >>> found["k"], found["t"], found["distance"]
    (10, 0.2, 'equal')
    """
    given: dict[str, Any] = mechanism.get_params(deep=False)
    if "privacy" in given:
        privacy = given.pop("privacy")
        given |= shorthand(privacy) | {"k": k_of(given["k"], privacy)}
    return {name: given[name] for name in sorted(given)}


def check_digits(mechanism: Any) -> None:
    """Refuse numbers with more digits than a manifest may state: a promise is one that people can read.

    Raises
    ------
    InvalidParameterError
        Names the parameter and how many digits it may have.
    """
    specs: dict[str, ParameterSpec] = {**getattr(mechanism, "parameter_specs", {})}
    settings = {name: getattr(mechanism, name, None) for name in specs}
    if "privacy" in vars(mechanism):
        check_request(mechanism.privacy, mechanism.searches, name_of(mechanism))
    for own in getattr(mechanism, "privacy", ()):
        specs |= own.shorthand
        settings |= {name: getattr(own, name) for name in own.shorthand}
    for name, spec in specs.items():
        given, digits = settings[name], spec.digits or USUAL_DIGITS
        if not isinstance(given, float) or not np.isfinite(given):  # which the mechanism judges itself
            continue
        if (spec.stated is None or "digits" in spec.stated) and not has_digits(given, digits):
            rounded = f"{given:.{digits}g}"
            problem, hint = f"got {given!r}", f"write {rounded}" if abs(float(rounded)) >= SMALLEST else ""
            allowed = f"0, or a number from {SMALLEST:g} on of at most {digits} significant digits"
            raise InvalidParameterError(name, problem, allowed=allowed, hint=hint)


@cache
def declared_parameter(mechanism: type[Mechanism], name: str) -> Parameter:
    """Put together what the constructor and the declaration of a mechanism say about one of its parameters.

    What the constructor of a subclass leaves open, such as an annotation, is taken from those before it.
    """
    constructors = [vars(own)["__init__"] for own in mechanism.__mro__ if "__init__" in vars(own)]
    hints = [get_type_hints(one)[name] for one in constructors if name in getattr(one, "__annotations__", {})]
    taken = [own[name].default for one in constructors if name in (own := inspect.signature(one).parameters)]
    defaults = [default for default in taken if default is not inspect.Parameter.empty]
    if not hints or not defaults:
        problem = f"{mechanism.__name__}: '{name}' must have a type and a default in the constructor"
        raise TypeError(problem)
    try:
        return parameter_of(name, hints[0], defaults[0], mechanism.parameter_specs[name])
    except TypeError as exc:
        raise TypeError(f"{mechanism.__name__}: {exc}") from None


def needs_of(mechanism: object) -> Needs:
    """Say what a mechanism needs of the rows; an object that declares nothing needs them all."""
    return Needs(getattr(mechanism, "needs", Needs.ALL_ROWS))


def name_of(mechanism: object) -> str:
    """Name a mechanism as its manifests do; an object that has no such name by its class."""
    return str(getattr(mechanism, "mechanism_name", type(mechanism).__name__))


def columns_with_hierarchies(mechanism: object) -> tuple[str, ...]:
    """Columns whose values somebody has listed in a hierarchy that a mechanism was given."""
    given = getattr(mechanism, "hierarchies", None)
    return tuple(map(str, given)) if isinstance(given, Mapping) else ()


def not_about_population(name: str) -> InvalidParameterError:
    """Say of a mechanism that it promises nothing about a table of the population, and which ones do."""
    problem = f"{name} promises neither k-map nor δ-presence, which a population table is for"
    able, hint = "mondrian, global-recoding or gain-recoding", "name one of these, or leave the population table out"
    return InvalidParameterError("the mechanism", problem, allowed=able, hint=hint, remedy=("mechanism",))


def check_takes_both_roles(schema: Schema, mechanism: object) -> None:
    """Refuse a mechanism that cannot treat a column as sensitive and quasi-identifying, where a table has one.

    Raises
    ------
    SchemaError
        Names the column and the mechanism.
    """
    both = schema.names(Role.SENSITIVE_QUASI_IDENTIFIER)
    if both and not getattr(mechanism, "takes_both_roles", False):
        problem = f"is sensitive and a quasi-identifier, and {name_of(mechanism)} cannot treat a column as both"
        hint = "give it one of the two roles, or use mondrian"
        raise SchemaError(problem, column=both[0], hint=hint, remedy=("mechanism",))


def combinations(choices: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Any], ...]:
    """All settings that take one value of every list.

    Examples
    --------
    >>> combinations({"k": [5, 10], "l": [2]})
    ({'k': 5, 'l': 2}, {'k': 10, 'l': 2})
    """
    return tuple(dict(zip(choices, values, strict=True)) for values in product(*choices.values()))


@dataclass(frozen=True)
class Compared:
    """Settings of a mechanism that are compared with others where nobody says which, and what a table needs for them.

    Parameters
    ----------
    settings : sequence of mapping
        Parameters of each.
    needs_sensitive : bool
        Whether just one column must be sensitive.
    for_each_sensitive : str or None
        Parameter that gets the name of every sensitive column in turn, of which there must be some.
    most_columns : int or None
        Quasi-identifiers from which the mechanism is left out, as are tables of sparse 0/1 features.
    needs_binary : bool
        Whether every quasi-identifier must be 0/1.
    package : str or None
        Optional package that must be installed.
    time_limit : str or None
        Parameter that gets a time limit in seconds by the number of rows: 1 for 5,000 of them, at most 10.
    """

    settings: Sequence[Mapping[str, Any]]
    needs_sensitive: bool = False
    for_each_sensitive: str | None = None
    most_columns: int | None = None
    needs_binary: bool = False
    package: str | None = None
    time_limit: str | None = None

    def __call__(self, table: AnyTable) -> Sequence[Mapping[str, Any]]:
        """Give the settings for a table, or say by a ``SchemaError`` why there are none."""
        plain = table.coded_part
        names, sensitive = plain.schema.names(Role.QUASI_IDENTIFIER), plain.schema.names(Role.SENSITIVE)
        problem = ""
        if self.package is not None and find_spec(self.package) is None:
            problem = f"the package {self.package} is not installed"
        elif (self.needs_sensitive or self.for_each_sensitive) and not sensitive:
            problem = "no column is sensitive"
        elif self.needs_sensitive and len(sensitive) > 1:
            problem = f"{len(sensitive):,} columns are sensitive, and it protects one"
        elif self.most_columns is not None and isinstance(table, BinaryTable):
            problem = "the table holds sparse 0/1 features, which are not recoded"
        elif self.most_columns is not None and len(names) > self.most_columns:
            problem = f"{len(names):,} quasi-identifiers are more than {self.most_columns:,}"
        elif self.needs_binary and not all(is_zero_one(plain[name]) for name in names):
            problem = "not all quasi-identifiers are 0/1, and rules by which they become so must be given"
        if problem:
            raise SchemaError(problem)
        return self._completed(table.n_rows, sensitive)

    def _completed(self, n_rows: int, sensitive: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Add the names and limits that depend on the table."""
        settings = self.settings
        if self.for_each_sensitive is not None:
            settings = [{**setting, self.for_each_sensitive: name} for setting in settings for name in sensitive]
        if self.time_limit is not None:
            seconds = float(min(max(round(n_rows / _ROWS_A_SECOND), 1), _MOST_SECONDS))
            settings = [{**setting, self.time_limit: seconds} for setting in settings]
        return settings


def is_zero_one(column: CodedColumn) -> bool:
    """Whether a column holds nothing but 0 and 1."""
    return column.n_distinct <= 2 and {str(value) for value in column.values.to_pylist()} <= {"0", "1"}


@dataclass(frozen=True)
class MechanismInfo:
    """How a mechanism presents itself: what the registry finds by its name.

    Parameters
    ----------
    build : subclass of Mechanism
        Its constructor and its ``parameter_specs`` say which parameters there are.
    why : str
        When one would choose it.
    promises : str
        What its releases guarantee.
    compared : callable or None
        Proposes settings for a comparison on a table, or raises ``SchemaError`` with the reason why there are none;
        ``None``: it is compared with its defaults.
    guarantee : str
        Kind of the guarantee that the page explains with it.
    kind_of : callable or None
        Kind of what a setting promises, from its parameters, where it is not always ``guarantee``. Besides the kinds of
        guarantees there are ``"perturbation"`` (cells are wrong on purpose) and ``"partial"`` (some of the columns are
        not protected). A comparison tries other kinds than strict k-anonymity only on request.
    needs_target : bool or callable
        Whether it refuses a table without a target; where that depends on the parameters, a function of them. The page
        refuses such a choice at once.
    cost : float or callable
        Seconds that one release of 10,000 rows and 10 columns takes, roughly; where that depends on the parameters, a
        function of them. A comparison begins with the cheap ones.
    protects_one : bool
        Whether its l and t are about one sensitive column, so that it promises them of no table with several.
    """

    build: type[Mechanism]
    why: str
    promises: str
    compared: Callable[[AnyTable], Sequence[Mapping[str, Any]]] | None = None
    guarantee: str = "k-anonymity"
    kind_of: Callable[[Mapping[str, Any]], str] | None = None
    cost: float | Callable[[Mapping[str, Any]], float] = 1.0
    needs_target: bool | Callable[[Mapping[str, Any]], bool] = False
    protects_one: bool = False

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.build.mechanism_name

    def cost_of(self, parameters: Mapping[str, Any]) -> float:
        """Seconds that a release with these parameters takes, roughly."""
        return self.cost(parameters) if callable(self.cost) else self.cost

    def needs_target_for(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a table without a target is refused with these parameters."""
        return self.needs_target(parameters) if callable(self.needs_target) else self.needs_target

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters as they are shown: those of the constructor and those that ask for guarantees."""
        specs, taken = self.build.parameter_specs, dict(inspect.signature(self.build).parameters)
        if self.build.searches and taken.pop("privacy", None) is None:
            problem = f"{self.build.__name__}: can be asked for guarantees, and its constructor has no 'privacy'"
            raise TypeError(problem)
        if set(specs) != set(taken):
            only = sorted(set(specs) ^ set(taken))
            problem = f"{self.build.__name__}: parameters that only the constructor or only the declaration has: {only}"
            raise TypeError(problem)
        if any(parameter.default is inspect.Parameter.empty for parameter in taken.values()):
            problem = f"{self.build.__name__}: every parameter of the constructor must have a default"
            raise TypeError(problem)
        own = [declared_parameter(self.build, name) for name in specs]
        asked = [replace(one, only_with=self.build.asked_only_with) for one in self.asked_parameters]
        place = next((i + 1 for i, one in enumerate(own) if one.name == "k"), 0)  # levels together
        return (*own[:place], *asked, *own[place:])

    @property
    def asked_parameters(self) -> tuple[Parameter, ...]:
        """Parameters by which it is asked for guarantees besides k."""
        return shorthand_parameters(self.build.searches)

    @property
    def needs(self) -> Needs:
        """What the mechanism must be given of the rows."""
        return self.build.needs

    @property
    def is_differentially_private(self) -> bool:
        """Whether it promises differential privacy."""
        return self.build.is_differentially_private
