"""Whether an attacker gains by the choice of columns, estimated again from the original with own folds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.audit.checks import DECLARE, Check, Unchecked, listed
from sfumato.audit.claims import Claims
from sfumato.audit.kinds import Evidence, FindDetermining, Judging, UndecidableError, check_quasi_identifiers, judge
from sfumato.audit.levels.persons import released_rows
from sfumato.audit.original.offered_rows import offered_rows
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.block_counting import stored_type
from sfumato.audit.reading.columns import Columns, group_rows
from sfumato.engines.blocks.database import batches_in_database
from sfumato.engines.protocol import Rows
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import BreachBound
from sfumato.progress import Progress
from sfumato.schema import Kind, Role
from sfumato.table.coding import CodedColumn

Numbers = NDArray[np.float64]
SAMPLE_ROWS = 200_000
"""Rows on which the audit estimates, in memory and out of core, whatever a manifest says of its own estimates."""
_SAMPLE_CELLS = 20 * 10**6
_SAMPLE_SEED = 20_190_711


def measure(guarantee: BreachBound, pair: ReleaseVsOriginal) -> float:
    """Lower end of the interval around the privacy breach increase, in percent.

    Both sets of columns are taken from the original; that the release has the same cells is checked elsewhere. Where
    released cells are coarser, the attacker is given these. Of more rows than :func:`sample_size` the audit draws its
    own sample, so that every audit of a release finds one level.

    Raises
    ------
    SchemaError
        If a column is not in the original, or the sensitive one has fewer than two values.
    InvalidParameterError
        If there is nothing to compare with: no released column, or an attacker who is never right.
    UndecidableError
        If cells are coarser and sorted rows do not show whose they are, or scikit-learn is not installed.
    """
    if coarsened_columns(guarantee, pair.claims):
        return _measure_coarsened(guarantee, pair)
    columns = {name: pair.original.coded(name) for name in _compared(guarantee)}
    if not sample_words(guarantee, len(pair.rows)):
        return estimate(guarantee, columns, pair.rows)
    rows = pair.rows[sampled_rows(len(pair.rows), len(columns))]
    return estimate(guarantee, {name: column.take(rows) for name, column in columns.items()}, np.arange(len(rows)))


def coarsened_columns(guarantee: BreachBound, claims: Claims) -> list[str]:
    """Columns of a bound whose released cells are not the original's."""
    return [name for name in guarantee.columns if name in claims.recodings]


def _measure_coarsened(guarantee: BreachBound, pair: ReleaseVsOriginal) -> float:
    """Compare an attacker who has the released cells of every row with one who has all columns of the original."""
    try:
        found = released_rows(guarantee.columns, pair)
    except UndecidableError as exc:
        raise UndecidableError(str(exc), at_least=math.inf) from None  # nothing is known of the level
    first_of_group = np.unique(group_rows(pair.released, guarantee.columns).ids, return_index=True)[1]
    drawn = sampled_rows(len(found.places), len(_compared(guarantee)))
    rows, released = found.places[drawn], first_of_group[found.groups[drawn]]
    columns = {name: pair.original.coded(name).take(rows) for name in _compared(guarantee)}
    cells = {
        name: _as_attacked(columns[name], pair.released.coded(name).take(released), name in guarantee.numeric)
        for name in guarantee.columns
    }
    return estimate(guarantee, columns, np.arange(len(rows)), cells)


def _as_attacked(original: CodedColumn, released: CodedColumn, is_number: bool) -> CodedColumn:
    """Released cells as categories, or a coarsened number as the mean of the values that the cell stands for."""
    if not is_number:
        return released
    try:
        values = original.numbers()[original.codes]
    except ValueError:
        raise InvalidParameterError("numeric", "some are not", allowed="columns that hold numbers") from None
    is_known, n_cells = ~np.isnan(values), len(released.values)
    cells = released.codes[is_known]
    totals, counts = np.bincount(cells, values[is_known], n_cells), np.bincount(cells, minlength=n_cells)
    means = pa.array(totals / np.maximum(counts, 1), pa.float64(), mask=counts == 0)
    return CodedColumn(released.codes, means)


def _compared(guarantee: BreachBound) -> tuple[str, ...]:
    """Columns of the original that an estimate needs."""
    by_persons = (guarantee.unit,) if guarantee.by_persons else ()
    return (*guarantee.baseline, guarantee.sensitive, *by_persons)


def sample_words(guarantee: object, n_rows: int) -> str:
    """Words on the sample on which a promise is judged; empty where all rows are."""
    if not isinstance(guarantee, BreachBound):
        return ""
    size = sample_size(len(_compared(guarantee)))
    return f"sample of {size:,} of {n_rows:,} rows" if n_rows > size else ""


def sample_size(n_columns: int) -> int:
    """Rows of a sample: of very many columns fewer rows fit."""
    return min(SAMPLE_ROWS, max(_SAMPLE_CELLS // n_columns, 1))


def sampled_rows(n_rows: int, n_columns: int) -> NDArray[np.int64]:
    """Rows of the audit's own sample, ascending, each set of rows as likely as any other; all where they are few."""
    size = sample_size(n_columns)
    if n_rows <= size:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(_SAMPLE_SEED).choice(n_rows, size, replace=False, shuffle=False))


def estimate(
    guarantee: BreachBound,
    columns: Mapping[str, CodedColumn],
    rows: NDArray[np.intp],
    cells: Mapping[str, CodedColumn] | None = None,
) -> float:
    """As :func:`measure`, from some rows of the columns that are compared and of the sensitive one.

    ``cells`` are what is released of the columns, where that is not what they hold.
    """
    try:
        from sfumato.audit.attackers import Attack  # scikit-learn, which no other check needs: half a second
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] not in ("sklearn", "threadpoolctl"):
            raise
        problem, remedy = "it needs scikit-learn", "install scikit-learn"
        raise UndecidableError(problem, math.inf, exception="breach", remedy=remedy) from None
    if not guarantee.columns:
        raise InvalidParameterError("columns", "got none", allowed="at least one")
    is_numeric = [name in guarantee.numeric for name in guarantee.baseline]
    wanted = columns[guarantee.sensitive]
    # In an order that follows from the values alone: folds must not depend on the kind that somebody declares.
    wanted = wanted.recode(wanted.values, Kind.NUMERIC)
    values, sensitive = np.unique(wanted.codes[rows], return_inverse=True)
    if len(values) < 2:
        problem = "has fewer than two values, so there is nothing to predict"
        raise SchemaError(problem, column=guarantee.sensitive)
    if _is_nearly_unique(len(values), len(sensitive)):
        problem = "has a value of its own in (almost) every row, so there is nothing to learn"
        raise SchemaError(problem, column=guarantee.sensitive)
    compared = [columns[name] for name in guarantee.baseline]
    released = [guarantee.baseline.index(name) for name in guarantee.columns]
    if cells is not None:
        released = list(range(len(compared), len(compared) + len(cells)))
        is_numeric += [name in guarantee.numeric for name in cells]
        compared += cells.values()
    try:
        persons = columns[guarantee.unit].codes[rows].astype(np.int64) if guarantee.by_persons else None
        attack = Attack(compared, is_numeric, rows, sensitive.astype(np.int64), guarantee.metric, persons)
    except ValueError:
        raise InvalidParameterError("numeric", "some are not", allowed="columns that hold numbers") from None
    ours = attack.scores(released, guarantee.attacker)
    everything = attack.scores(range(len(guarantee.baseline)), guarantee.attacker)
    return lower_end(ours, everything, guarantee.confidence)


def lower_end(scores: Numbers, baseline: Numbers, confidence: float) -> float:
    """Lower end of a two-sided interval of the percentage by which scores are above a baseline's.

    The interval is that of the corrected resampled t-test (Nadeau and Bengio, Machine Learning 52, 2003) for the
    difference, over the mean of the baseline.

    Examples
    --------
    >>> round(lower_end(np.array([0.8, 0.7, 0.9]), np.array([0.8, 0.8, 0.8]), 0.95), 1)
    -49.1
    """
    from scipy import stats

    if baseline.mean() <= 0:
        problem = "is right in no row"
        raise InvalidParameterError("the attacker with all columns", problem, allowed="right now and then")
    differences, n_folds = scores - baseline, len(scores)
    error = float(np.sqrt((1 / n_folds + 1 / (n_folds - 1)) * differences.var(ddof=1)))
    lowest = float(differences.mean()) - float(stats.t.ppf((1 + confidence) / 2, n_folds - 1)) * error
    return 100 * lowest / float(baseline.mean())


def check_breach_promise(guarantee: BreachBound, evidence: Evidence) -> Iterator[Check | Unchecked]:
    """Whether a bound compares with what it should, and what it protects is not simply released."""
    claims, original, check_roles = evidence.claims, evidence.original, evidence.has_roles
    compared = original if check_roles else None  # with more columns to compare with, any release would look safe
    yield check_quasi_identifiers(guarantee.name, "compared with", guarantee.baseline, claims, compared)
    yield _check_sensitive(guarantee, claims, original, check_roles)
    if original is not None and check_roles:
        yield _check_numeric(guarantee, original)
    else:
        said = "whether the columns compared with are all quasi-identifiers of the original, with their kinds"
        yield Unchecked("roles", f"{guarantee.name}: {said}", DECLARE)
    if original is not None and guarantee.sensitive in original:
        yield _check_given_away(guarantee, claims, original, evidence.find_determining)


def _check_numeric(guarantee: BreachBound, original: Columns) -> Check:
    """Compare with the declared kinds: who takes categories for numbers, or numbers for categories, is weak."""
    kinds = {column: original.describe(column).kind for column in guarantee.baseline if column in original}
    wrong = [column for column, kind in kinds.items() if (kind is Kind.NUMERIC) != (column in guarantee.numeric)]
    said = f"are not the original's: {listed(wrong)}" if wrong else "are the original's"
    return Check(f"{guarantee.name}: numbers", not wrong, f"{guarantee.name}: the columns taken as numbers {said}")


def _check_sensitive(guarantee: BreachBound, claims: Claims, original: Columns | None, check_roles: bool) -> Check:
    """Only the original's target may be both released and what the bound is about: recipients are to predict it."""
    name = guarantee.sensitive
    released = _released_sources(claims)
    is_target = name in claims.names(Role.TARGET)
    if original is not None and check_roles:
        is_target = is_target and name in original.with_role(Role.TARGET)
    wrong = {name} & released if not is_target else set()
    wrong |= released & set(original.with_role(Role.SENSITIVE) if original is not None else ())
    if wrong:
        said = f"columns to be protected are released: {listed(sorted(wrong))}"
    elif original is None or not check_roles:
        said = "the column to be protected is released as the target" if name in released else "it is not released"
    elif name in released:
        said = "the column to be protected is the original's target, which recipients predict"
    else:
        said = "no sensitive column of the original is released"
    return Check(f"{guarantee.name}: sensitive", not wrong, f"{guarantee.name}: {said}")


def _released_sources(claims: Claims) -> set[str]:
    """Columns of the original that stand in the release, as they are or recoded."""
    recoded = {recoding.column for recoding in claims.recodings.values()}
    return recoded | {name for name in claims.names() if name not in claims.recodings}


def _check_given_away(
    guarantee: BreachBound, claims: Claims, original: Columns, find_determining: FindDetermining | None
) -> Check:
    """Look for columns that determine the protected one: they give it away, and compared with them all looks safe."""
    names = _released_sources(claims).union(guarantee.baseline) - {guarantee.sensitive}
    known = [name for name in sorted(names) if name in original]
    find = find_determining or (lambda names, sensitive: _determining_columns(claims, original, names, sensitive))
    wrong = find(known, guarantee.sensitive)
    said = f"is given away by {listed(wrong)}" if wrong else "is determined by no column released or compared with"
    name = f"{guarantee.name}: given away"
    return Check(name, not wrong, f"{guarantee.name}: the column to be protected {said}")


def _determining_columns(claims: Claims, original: Columns, names: Sequence[str], sensitive: str) -> list[str]:
    rows = offered_rows(original, claims).rows
    wanted = original.coded(sensitive).codes[rows]
    return [name for name in names if determines(original.coded(name).codes[rows], wanted)]


def determines(column: NDArray[np.int32], wanted: NDArray[np.int32]) -> bool:
    """Whether a column equals another under any labels, or determines it but for a hundredth of the rows.

    To determine it, its values must stand in three rows each on average and be wrong for at most a tenth of the rows
    without the most frequent wanted value; a value in one row only is no evidence.

    Examples
    --------
    >>> wanted = np.array([0, 0, 1] * 4)
    >>> determines(np.array([0, 1, 2] * 4), wanted), determines(np.array([0, 1] * 6), wanted)
    (True, False)
    """
    if not len(column):
        return False
    return counts_determine(sp.coo_array((np.ones(len(column), dtype=np.int64), (column, wanted))).tocsr())


def counts_determine(table: sp.csr_array) -> bool:
    """As :func:`determines`, from the numbers of rows with each value (line) and each wanted one (column)."""
    by_value, by_wanted = (np.asarray(table.sum(axis=axis)).ravel() for axis in (1, 0))
    common = int(by_wanted.argmax())
    known = np.asarray(table.max(axis=1).todense()).ravel()
    guessed = np.asarray(table[:, [common]].todense()).ravel()
    return figures_determine(
        n_rows=int(by_value.sum()),
        n_values=int(np.count_nonzero(by_value)),
        n_wanted=int(np.count_nonzero(by_wanted)),
        n_pairs=int(table.count_nonzero()),
        n_right=int(np.where(by_value > 1, known, guessed).sum()),
        n_common=int(by_wanted[common]),
    )


def figures_determine(*, n_rows: int, n_values: int, n_wanted: int, n_pairs: int, n_right: int, n_common: int) -> bool:
    """As :func:`determines`, from the numbers of values, of pairs and of rows guessed rightly."""
    if n_pairs == n_values == n_wanted and not _is_nearly_unique(n_wanted, n_rows):
        return True
    if n_rows < 3 * n_values:
        return False
    n_wrong = n_rows - n_right
    return 100 * n_wrong <= n_rows and 10 * n_wrong <= n_rows - n_common


def _is_nearly_unique(n_values: int, n_rows: int) -> bool:
    return 10 * n_values > 9 * n_rows


judge(
    BreachBound.kind,
    Judging(
        parameters=("max_breach_increase", "attacker", "metric"),
        with_original=measure,
        by_persons=measure,
        further=check_breach_promise,
    ),
)


# Whether an attacker gains by the choice of columns of a table that is not in memory.
#
# The bound is estimated anew on a sample of the original's rows that the audit draws itself. Columns that give the
# protected one away are looked for in all rows.


_SHARE_OF_PAIRS = 16
_BYTES_A_PAIR = 8
FIGURE_NAMES = ("n_rows", "n_values", "n_wanted", "n_pairs", "n_right", "n_common")
FIGURES = """
WITH wanted AS (SELECT w, sum(n) AS n FROM pairs GROUP BY w),
common AS (SELECT w, n FROM wanted ORDER BY n DESC, w NULLS LAST LIMIT 1),
by_value AS (
    SELECT count(*) AS n_pairs, sum(n) AS n, max(n) AS known,
        sum(CASE WHEN w IS NOT DISTINCT FROM common_w THEN n ELSE 0 END) AS guessed
    FROM pairs, (SELECT w AS common_w FROM common) GROUP BY c
)
SELECT CAST(sum(n) AS BIGINT) AS a, count(*) AS b, (SELECT count(*) FROM wanted) AS c,
    CAST(sum(n_pairs) AS BIGINT) AS d,
    CAST(sum(CASE WHEN n > 1 THEN known ELSE guessed END) AS BIGINT) AS e,
    (SELECT CAST(n AS BIGINT) FROM common) AS f
FROM by_value
"""
""":data:`FIGURE_NAMES`, from the pairs of values with how often each occurs."""


def measure_large(guarantee: BreachBound, original: Rows, progress: Progress | None = None) -> float:
    """Lower end of the interval around the privacy breach increase in percent, on the audit's own sample of rows.

    Raises
    ------
    SchemaError
        If a column is not in the original, or the sensitive one has fewer than two values.
    InvalidParameterError
        If there is nothing to compare with.
    """
    names = list(dict.fromkeys(_compared(guarantee)))
    drawn = sampled_rows(original.n_rows, len(names))
    return estimate(guarantee, original.taken(names, drawn, progress=progress), np.arange(len(drawn)))


def determining_columns(
    original: Rows, names: Sequence[str], sensitive: str, memory: int, progress: Progress | None = None
) -> list[str]:
    """Columns that equal or determine another one in all rows: counted in one pass, long ones by DuckDB.

    Raises
    ------
    InputError
        If a file changed while it was being read, or values cannot be counted in the memory given.
    """
    if not original.n_rows:
        return []
    few = _with_few_pairs(original, names, sensitive, memory)
    n_wanted = original.outline[sensitive].n_distinct
    counts = {name: np.zeros(original.outline[name].n_distinct * n_wanted, dtype=np.int64) for name in few}
    for block in original.blocks([*few, sensitive], progress=progress) if few else ():
        for name, counted in counts.items():
            counted += np.bincount(np.asarray(block[name]) * np.int64(n_wanted) + block[sensitive], None, len(counted))
    found = {name for name, counted in counts.items() if counts_determine(sp.csr_array(counted.reshape(-1, n_wanted)))}
    found |= {name for name in names if name not in counts and _determines(original, name, sensitive, memory)}
    return [name for name in names if name in found]


def _with_few_pairs(original: Rows, names: Sequence[str], sensitive: str, memory: int) -> list[str]:
    """Columns whose pairs of values take a small share of the memory together; long ones are not listed."""
    if original.is_open(sensitive):
        return []
    n_pairs = {n: original.outline[n].n_distinct * original.outline[sensitive].n_distinct for n in names}
    found, left = [], memory // _SHARE_OF_PAIRS // _BYTES_A_PAIR
    for name in sorted(names, key=n_pairs.__getitem__):
        if not original.is_open(name) and n_pairs[name] <= left:
            found.append(name)
            left -= n_pairs[name]
    return found


def _determines(original: Rows, name: str, sensitive: str, memory: int) -> bool:
    """Count pairs of one column by DuckDB, which spills them."""
    types = [stored_type(original, column) for column in (name, sensitive)]
    schema = pa.schema(list(zip("cw", types, strict=True)))
    blocks = original.blocks([name, sensitive])
    batches = (
        pa.record_batch([pa.array(block[column]) for column in (name, sensitive)], names=["c", "w"]) for block in blocks
    )
    with batches_in_database(schema, batches, memory, original.place) as (connection, cells):
        cells.aggregate("c, w, count(*) AS n", "c, w").create("pairs")
        (figures,) = connection.execute(FIGURES).fetchall()
    return figures_determine(**dict(zip(FIGURE_NAMES, figures, strict=True)))
