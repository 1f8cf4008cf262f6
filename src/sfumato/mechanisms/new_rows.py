"""New rows in the form of a release: recoders as transformers, and the one way in which a recoding is applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self, get_args

import pyarrow as pa

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import AboutValues
from sfumato.manifest import AnyTable
from sfumato.mechanisms.estimator import Estimator
from sfumato.schema import WITHHELD, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.io.frames import like_frame
from sfumato.table.io.read import read_table

TARGET_NAME = "target"
OutputLibrary = Literal["default", "pandas", "polars"]


class Generalizing(Protocol):
    """How a table was recoded, as far as new rows need it."""

    def generalized(self, table: Table) -> Table:
        """Give the rows of another table the cells that fit them."""
        ...


def in_form_of(recoding: Generalizing, described: Schema, table: Table) -> Table:
    """Bring new rows into the form of a release: the same columns in the same order, values recoded in the same way.

    Evaluation, :meth:`RecodingTransformer.transform` and ``sfumato apply`` all come here. No row is left out, and the
    rows stay in their order.

    Parameters
    ----------
    recoding : Generalizing
        Of the table that was released.
    described : Schema
        Of that table. Columns that are never released (identifiers) are dropped, and so are columns not in it.
    table : Table
        New rows; only the target may be missing among their columns.

    Raises
    ------
    ColumnNotFoundError
        If a column is missing.
    InputError
        If a column that was numeric holds something else.
    """
    released = [column for column in described if column.role not in WITHHELD]
    names = [c.name for c in released if c.role is not Role.TARGET or c.name in table.schema]
    return recoding.generalized(table.keep(names).with_schema(described.keep(names)))


def described_frame(frame: Any, quasi_identifiers: Sequence[str], sensitive: str, target: Any = None) -> Table:
    """Read a data frame and give its columns roles.

    Parameters
    ----------
    quasi_identifiers : sequence of str
        Without any, all columns that are not sensitive.
    sensitive : str
        Columns by commas; empty: none.
    target : sequence or None
        Classes of the rows, which become a further column.
    """
    table = as_plain_table(frame)
    names = table.schema.names()
    kept_apart = {name.strip() for name in sensitive.split(",")} - {""}
    quasi = set(quasi_identifiers or names) - kept_apart
    roles = {name: Role.QUASI_IDENTIFIER if name in quasi else Role.OTHER for name in names}
    roles |= {name: Role.SENSITIVE for name in names if name in kept_apart}
    table = table.with_schema(table.schema.with_roles(roles))
    return table if target is None else _with_target(table, target)


def _with_target(table: Table, target: Any) -> Table:
    """Add the classes of the rows as a column with the role target."""
    name = TARGET_NAME
    while name in table.schema:
        name += "_"
    column = as_plain_table(pa.table({name: list(target)}))
    if column.n_rows != table.n_rows:
        problem = f"got {column.n_rows:,} classes of {table.n_rows:,} rows"
        raise InvalidParameterError("y", problem, allowed="a class of every row")
    described = [*table.schema, *column.schema.with_roles({name: Role.TARGET})]
    return Table(
        Schema.of(described, table.schema.missing), {**table.columns, **column.columns}, table.n_rows, table.source
    )


def as_plain_table(rows: Any) -> Table:
    """Read rows that are to be coarsened; refuses sparse 0/1 tables, whose features have nothing to be coarsened into.

    Raises
    ------
    SchemaError
        If they are such a table.
    """
    table: AnyTable = read_table(rows)
    if not isinstance(table, Table):
        problem = "is a sparse 0/1 table, whose features have no ranges, sets or hierarchies to be coarsened into"
        raise SchemaError(problem, hint="use a mechanism that selects features", remedy=("mechanism",))
    return table


class RecodingTransformer(Estimator):
    """What recoders have as transformers of scikit-learn: ``fit`` finds a recoding, ``transform`` applies it.

    Attributes
    ----------
    recoding_ : Recoding or LevelRecoding
        Found by the last ``fit``.
    schema_ : Schema
        Of the table that was fitted.
    """

    recoding_: Any
    schema_: Schema
    _output: OutputLibrary | None = None

    def set_output(self, *, transform: OutputLibrary | None = None) -> Self:
        """Say of which library the frames are that ``transform`` and ``fit_transform`` give back.

        As scikit-learn has it, ``set_config(transform_output=…)`` included. A table of ours gives a table in any case.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None
            ``"default"``: of the library that the rows are from. ``None``: as it is.
        """
        if transform is not None and transform not in get_args(OutputLibrary):
            allowed = f"one of {', '.join(get_args(OutputLibrary))}"
            raise InvalidParameterError("transform", f"got {transform!r}", allowed=allowed)
        self._output = self._output if transform is None else transform
        return self

    def __sklearn_clone__(self) -> Self:
        made = super().__sklearn_clone__()
        made._output = self._output
        return made

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the recoding of a table; nothing is released.

        Parameters
        ----------
        X : Table or data frame
            A table has roles. Of a data frame the columns with a hierarchy are quasi-identifiers (all columns, if none
            is given one) and those that ``privacy`` names as sensitive are that.
        y : sequence or None
            Target of the rows of a data frame. A table has its own, and ``y`` is not looked at.

        Raises
        ------
        PrivacyNotAchievableError
            If the table cannot be recoded so that the promise holds.
        """
        if not hasattr(X, "coded_part"):
            given = tuple(getattr(self, "hierarchies", None) or ())
            about = {own.sensitive for own in getattr(self, "privacy", ()) if isinstance(own, AboutValues)}
            X = described_frame(X, given, ",".join(sorted(about)), y)
        self._find_recoding(X)
        self.schema_ = X.coded_part.schema
        return self

    def _find_recoding(self, table: AnyTable) -> None:
        self.recoding_ = self.recode(table)  # type: ignore[attr-defined]  # every recoder has this method

    def transform(self, X: Any) -> Any:
        """Give new rows the form of the release of the fitted table, row by row.

        Rows stay in their order, none is left out, and identifiers are dropped. A value that the fitted table did not
        have goes where it fits best: a number to the nearest group, an unknown category where missing values go, or to
        ``*`` if the labels are those of a hierarchy. **No guarantee holds for these rows**: they are for tests of what
        was learned from a release. It is how :mod:`sfumato.evaluation` treats test rows.

        Parameters
        ----------
        X : Table or data frame
            New rows with the columns of the fitted table; the target may be missing.

        Returns
        -------
        Table or data frame
            A table for a table; else a frame of the same library, or of the one that :meth:`set_output` names. The
            columns have their names as texts.
        """
        from sklearn import get_config
        from sklearn.exceptions import NotFittedError

        if not hasattr(self, "recoding_"):
            problem = f"this {type(self).__name__} has not found a recoding yet: call fit first"
            raise NotFittedError(problem)
        recoded = in_form_of(self.recoding_, self.schema_, as_plain_table(X))
        library = self._output or get_config()["transform_output"]
        return recoded if isinstance(X, Table) else like_frame(recoded, X, None if library == "default" else library)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, then transform the same rows as if they were new ones.

        Rows that a release would leave out are kept, and cells that borrow values from other groups are those of their
        own group: to publish rows, make a release.
        """
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: object = None) -> list[str]:
        """Columns of transformed rows, if the new rows have them all."""
        return [column.name for column in self.schema_ if column.role not in WITHHELD]
