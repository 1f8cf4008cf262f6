"""Control people: whom a release was made without, so that what it says about them it says about everybody.

All rows of one person are on the same side. Of each person one row is attacked, drawn at random.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.attack.reidentification import PEOPLE, ROWS
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.manifest import AnyTable
from sfumato.schema import Column, Kind
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table, is_number_type, parse_numbers
from sfumato.table.persons import may_repeat, person_codes

Ids = NDArray[np.int64]

FEWEST_PEOPLE = 2


def hold_out(table: AnyTable, fraction: float, *, seed: int = 0) -> tuple[AnyTable, AnyTable]:
    """Divide people at random into those to be released and control people, rows of one person together.

    Parameters
    ----------
    fraction : float
        Share of the people who are held out.
    seed : int
        The same seed holds out the same people.

    Returns
    -------
    released, control : Table or BinaryTable
        Rows in the order of the table.

    Raises
    ------
    InvalidParameterError
        If the fraction is not between 0 and 1, or leaves fewer than two people on a side.

    Examples
    --------
    >>> from sfumato.schema import Column, Schema
    >>> people = Table.from_arrow(pa.table({"job": ["a", "b", "c", "d", "e"]}), Schema.of([Column("job")]))
    >>> [part.n_rows for part in hold_out(people, 0.4)]
    [3, 2]
    """
    if isinstance(fraction, bool) or not 0 < fraction < 1:
        hint = "it is a fraction, not a percentage; 20 % is 0.2"
        raise InvalidParameterError("hold_out", f"got {fraction!r}", allowed="above 0 and below 1", hint=hint)
    persons = person_codes(table)
    person_of_row = np.arange(table.n_rows) if persons is None else np.unique(persons, return_inverse=True)[1]
    n_people = int(person_of_row.max(initial=-1)) + 1
    n_control = round(fraction * n_people)
    if min(n_control, n_people - n_control) < FEWEST_PEOPLE:
        problem = f"got {fraction!r} of {n_people:,} {counted_of(table)}"
        allowed = f"such that at least {FEWEST_PEOPLE} people are released and {FEWEST_PEOPLE} held out"
        raise InvalidParameterError("hold_out", problem, allowed=allowed)
    is_control = np.zeros(n_people, dtype=np.bool_)
    is_control[np.random.default_rng(seed).permutation(n_people)[:n_control]] = True
    return table.take(~is_control[person_of_row]), table.take(is_control[person_of_row])


def without_people_of(control: AnyTable, original: AnyTable) -> AnyTable:
    """Leave out control rows of persons who are in the original, by the column that tells persons apart.

    Without such a column nobody can tell.

    Raises
    ------
    ColumnNotFoundError
        If the control table lacks that column.
    """
    name = original.coded_part.schema.person
    if name is None:
        return control
    if name not in control.coded_part.schema:
        raise ColumnNotFoundError(name, control.coded_part.schema.names(), where="the control table")
    known, asked = (as_text(table.coded_part[name].values) for table in (original, control))
    is_known = pc.is_in(asked, value_set=known).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(~is_known[control.coded_part[name].codes])
    return control if len(rows) == control.n_rows else control.take(rows)


def counted_of(table: AnyTable) -> str:
    """Say what those who are attacked are: people, or rows where an identifier repeats and nobody is told apart."""
    return ROWS if may_repeat(table) and person_codes(table) is None else PEOPLE


def drawn_people(table: AnyTable, random: np.random.Generator) -> Ids:
    """Draw one row of each person, the people in a random order."""
    order = random.permutation(table.n_rows)
    persons = person_codes(table)
    if persons is None:
        return order
    return random.permutation(order[np.unique(persons[order], return_index=True)[1]])


def stacked(original: AnyTable, control: AnyTable) -> AnyTable:
    """Put control rows below those of the original, in the original's columns that both tables have.

    A feature of a sparse table that the control table lacks is 0 there.

    Raises
    ------
    InvalidParameterError
        If one table is sparse and the other is not.
    SchemaError
        If a numeric column of the original holds other texts in the control table. No cell is shown.
    """
    if isinstance(original, Table) and isinstance(control, Table):
        return _stacked_columns(original, control)
    if isinstance(original, BinaryTable) and isinstance(control, BinaryTable):
        nothing = sp.csc_matrix((control.n_rows, 1), dtype=original.matrix.dtype)
        place = {name: i for i, name in enumerate(control.feature_names)}
        chosen = [place.get(name, len(place)) for name in original.feature_names]
        below = sp.hstack([control.matrix, nothing], format="csc")[:, chosen]
        companions = _stacked_columns(original.companions, control.companions)
        matrix = sp.vstack([original.matrix, below], format="csc")
        return replace(original, matrix=matrix, companions=companions)
    problem = "got a table of columns and one of sparse features"
    raise InvalidParameterError("control", problem, allowed="a table of the same form as the original")


def _stacked_columns(original: Table, control: Table) -> Table:
    names = [name for name in original.schema.names() if name in control.schema]
    columns = {name: _joined(original[name], control[name], original.schema[name]) for name in names}
    return Table(original.schema.keep(names), columns, original.n_rows + control.n_rows)


def _joined(first: CodedColumn, second: CodedColumn, described: Column) -> CodedColumn:
    """Join two columns; numbers of two types are joined as numbers, anything else of two types as text."""
    above, below = first.values, second.values
    if described.kind is Kind.NUMERIC:
        try:
            parse_numbers(below)
        except ValueError:
            problem, hint = "holds texts that are no numbers in the control table", "list the texts that mean 'missing'"
            raise SchemaError(problem, column=described.name, hint=hint) from None
    if above.type != below.type:
        is_number = all(is_number_type(values.type) for values in (above, below))
        wider = pa.float64() if is_number else pa.string()
        above, below = pc.cast(above, wider, safe=False), pc.cast(below, wider, safe=False)
    cells = pa.concat_arrays([above.take(pa.array(first.codes)), below.take(pa.array(second.codes))])
    return CodedColumn.encode(cells, described.kind)
