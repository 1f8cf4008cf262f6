"""How much of a column's detail a release leaves: the share of certainty kept, never a number of different texts.

A released column has more different texts than the original where ranges overlap, and says less. Its detail is one less
the mean certainty penalty of its cells (NCP of Xu et al., as in :mod:`sfumato.measures.loss`): the width of a range
over that of the column, the values of a set over those of the column; 1 for a column that is released unchanged, 0 for
one that is dropped or shows ``*`` in every row.
"""

from __future__ import annotations

import numpy as np

from sfumato.attack.correspondence import Correspondence
from sfumato.audit.original.release_vs_original import cell_penalties
from sfumato.audit.reading.values import TYPICAL
from sfumato.errors import SchemaError
from sfumato.schema import WITHHELD, Role


def detail_left(tables: Correspondence, name: str) -> float | None:
    """Share of the detail of an original column that its released cells keep.

    Returns
    -------
    float or None
        ``None`` where no cell says what it may stand for: values were moved, changed or drawn, made the typical one of
        a class, or turned into several 0/1 features.
    """
    released = [one for one in tables.released.names if (tables.source_of(one) or one) == name]
    if not released:
        return 0.0
    recoding = tables.recodings.get(name)
    differs = tables.is_synthetic or tables.is_moved(name) or (recoding is not None and recoding.rule == TYPICAL)
    differs |= tables.is_flipped and name in tables.quasi_identifiers
    if released != [name] or differs or name not in tables.original or tables.released.feature(name) is not None:
        return None
    before, after = tables.original.coded(name), tables.released.coded(name)
    if not after.n_rows:
        return None
    try:
        read = tables.column(name).containing
    except SchemaError:
        return None
    penalties = cell_penalties(read, before, tables.original.describe(name), before.codes)
    if penalties is None or not np.isfinite(penalties).all():
        return None
    return 1 - float(np.clip(penalties @ after.counts / after.n_rows, 0.0, 1.0))


def mean_detail_left(tables: Correspondence) -> float | None:
    """Mean over the columns that may be released, the target left out; ``None`` where one cannot be measured."""
    apart = (Role.TARGET, *WITHHELD)
    names = [name for name in tables.original.names if tables.original.describe(name).role not in apart]
    found = [detail_left(tables, name) for name in names]
    known = [share for share in found if share is not None]
    return float(np.mean(known)) if known and len(known) == len(found) else None
