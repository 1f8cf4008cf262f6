"""From a table in any form, with as much said about it as is known, to an audited release: the way of Python."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.base import Mechanism, Release, columns_with_hierarchies, name_of
from sfumato.mechanisms.baselines.features import described_publicly
from sfumato.mechanisms.registry import build_mechanism, is_differentially_private
from sfumato.progress import Progress
from sfumato.project.file import DEFAULT_MECHANISM
from sfumato.publishing.propose import make_release, refuse_preparation
from sfumato.publishing.reaudit import read_original
from sfumato.schema import Role, as_roles
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table
from sfumato.table.io.read import ReadOptions
from sfumato.table.preparing.declared import Preparation, preparations_of
from sfumato.table.roles import NO_TARGET_GIVEN, with_confirmed
from sfumato.table.understanding import Understood, read_understood


def release(
    data: Any,
    mechanism: Mechanism | str | None = None,
    *,
    target: Hashable | None = None,
    roles: Mapping[Any, Role | str] | None = None,
    k: int | None = None,
    confirmed: Sequence[Hashable] = (),
    keep_order: bool = False,
    population: Any = None,
    prepare: Mapping[str, Any] | None = None,
    escape_formulas: bool = False,
    cells: str | None = None,
    max_copies: float | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Release:
    """Make a release of a table and have it audited against the original; nothing is written.

    The roles of columns that are not given are guessed as ``sfumato init`` does, but never a target: without one the
    release serves none, and a column that looks like one is warned about. Dates of birth become ages. ``guesses`` of
    the result says what was guessed, and why; look at it before anything is published. For differential privacy nothing
    is guessed from the rows: the target and the quasi-identifiers must be given, and no other column is released.

    Parameters
    ----------
    data : frame, path, Table or BinaryTable
        What :func:`sfumato.read_table` reads: a pandas, Polars or pyarrow frame, a path, …. A ``Table`` keeps the roles
        that it has; nothing is guessed of it. Names of columns that are no texts (``0``, ``1``) become texts (``"0"``)
        in the release and all that is made of it; here they may be given either way.
    mechanism : Mechanism or str, optional
        An object such as ``sfumato.Mondrian(k=5)``, or a name such as ``"mondrian"``; by default
        ``"auto"``, as on the command line: strict k-anonymity, and l-diversity of sensitive columns.
    target : str, optional
        Column that recipients predict. It is never guessed; a mechanism that needs one refuses to go without.
    roles : mapping of str to Role or str, optional
        Roles that are known, such as ``{"age": "quasi-identifier", "diagnosis": "sensitive"}``.
    k : int, optional
        Size of the groups, for a mechanism that is given by name.
    confirmed : sequence of str
        Columns that may be released although their values look as if they named people.
    keep_order : bool
        Leave the rows in the order of ``data`` where they are handed out or written. Two releases of the same table can
        then be joined by the numbers of their rows, and together may single out people whom neither does alone.
    population : frame, path or Table, optional
        Table of the population that the people of ``data`` are from, one row a person: what ``k_map`` and ``delta_max``
        of the mechanism are promised about.
    prepare : mapping, optional
        What is done to columns before the mechanism sees them, such as
        ``{"income": {"top": 100000, "round": 1000}, "born": {"age_at": "2026-01-01"}}``: see the guide on preparing
        columns. Pseudonyms and shifts of dates rest on a secret that is drawn for this release and kept by nobody.
    escape_formulas : bool
        Write texts that a spreadsheet program would run with an apostrophe in front, into CSV and TSV files.
    cells : {"ranges", "values", "draws"}, optional
        ``"values"``: every quasi-identifying cell is one value that is typical of its class (median, most frequent
        value), in the column's own type, so that any library can train on the release. ``"draws"``: the values of each
        class, dealt out to its rows anew; a column ``bucket`` names the class. By default ranges, sets and labels,
        unless the mechanism makes values by itself.
    max_copies : float, optional
        For draws: the largest share of released rows that may equal, on all quasi-identifiers, an original row that is
        the only one of its kind.
    progress : callable, optional
        Called as ``progress(done, total, what)``.
    parameters
        Further parameters of a mechanism that is given by name.

    Returns
    -------
    Release
        Give it to :func:`sfumato.publish`, with the same data as ``original``, to write it.

    Raises
    ------
    ColumnNotFoundError
        If a role is given to a column that does not exist.
    SchemaError
        If a column that may name people would be released and nobody has confirmed it.
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise on this table.
    AuditFailedError
        If the audit does not confirm the proposal.

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame = pa.table({"sex": list("fm") * 20, "smokes": list("yynn") * 10, "ill": list("ynnn") * 10})
    >>> made = release(frame, target="ill", k=5)
    >>> made.manifest.mechanism["name"], made.table.n_rows
    ('mondrian', 40)
    >>> [(guess.column.name, str(guess.column.role)) for guess in made.guesses]
    [('sex', 'quasi-identifier'), ('smokes', 'quasi-identifier')]
    """
    built = _mechanism(mechanism, k, parameters)
    built = built if cells is None and max_copies is None else built.with_cells(cells, max_copies)
    if population is not None:
        from sfumato.mechanisms.population import Population  # takes learners with it

        people = population if isinstance(population, Table) else read_original(population, ReadOptions())
        built = built.with_population(Population.of(people))
    given = _given_roles(target, roles)
    asked = preparations_of({str(name): entries for name, entries in (prepare or {}).items()})
    names = [str(name) for name in confirmed]
    if asked and is_differentially_private(built):
        refuse_preparation(name_of(built))
    if is_differentially_private(built) and not isinstance(data, Table | BinaryTable):
        made = make_release(described_publicly(data, ReadOptions(), given), built, progress=progress).summed_up(None)
        return made.with_order_kept() if keep_order else made
    understood = _understood(data, given, asked, (*names, *columns_with_hierarchies(built)))
    original = understood.prepared()
    made = replace(make_release(original, built, progress=progress), description=understood.guesses)
    made = made.summed_up(original)
    made = made.with_formulas_escaped() if escape_formulas else made
    return made.with_order_kept() if keep_order else made


def _mechanism(mechanism: Mechanism | str | None, k: int | None, parameters: Mapping[str, Any]) -> Mechanism:
    settings = {**({} if k is None else {"k": k}), **parameters}
    if mechanism is None or isinstance(mechanism, str):
        return build_mechanism(DEFAULT_MECHANISM if mechanism is None else mechanism, settings)
    if not callable(getattr(mechanism, "release", None)):
        problem = f"got a {type(mechanism).__name__}"
        hint = "give a mechanism such as sfumato.Mondrian(k=5), or the name of one"
        raise InvalidParameterError("mechanism", problem, allowed="a mechanism or the name of one", hint=hint)
    if settings:
        problem = f"got {', '.join(settings)} and a {type(mechanism).__name__}, which has its own"
        raise InvalidParameterError("the parameters", problem, allowed="given with a mechanism by name only")
    return mechanism


def _given_roles(target: Hashable | None, roles: Mapping[Any, Role | str] | None) -> dict[str, Role]:
    """Read the roles; names of columns are texts, as in every table that was read."""
    given = {str(name): role for name, role in as_roles(roles or {}).items()}
    if target is None:
        return given
    target = str(target)
    named = [name for name, role in given.items() if role is Role.TARGET and name != target]
    if named or given.get(target, Role.TARGET) is not Role.TARGET:
        raise InvalidParameterError("target", "but the roles name a different one", allowed="given once")
    return {**given, target: Role.TARGET}


def _understood(
    data: Any, given: dict[str, Role], asked: tuple[Preparation, ...], confirmed: Sequence[str]
) -> Understood:
    """Read what is no table yet, with guessed roles but for a target; change the given roles of what is one."""
    if isinstance(data, Table | BinaryTable):
        plain = data.coded_part
        described = data.with_coded_part(plain.with_schema(given) if given else plain)
        return Understood(with_confirmed(described, confirmed), (), asked)
    found = read_understood(data, roles=given, preparations=asked, confirmed=confirmed, guess_target=False)
    schema = found.table.coded_part.schema
    passed_over = [guess for guess in found.guessed if guess.reason.startswith(NO_TARGET_GIVEN)]
    for guess in passed_over:
        name = guess.column.name
        message = (
            f"no target was given, so the release serves none; '{name}' looks like one and is released as "
            f"{guess.column.role}: name it with target='{name}', or give it a role"
        )
        warnings.warn(message, UserWarning, stacklevel=3)
    # features of a sparse table have no role to guess
    return replace(found, guesses=tuple(guess for guess in found.guesses if guess.column.name in schema))
