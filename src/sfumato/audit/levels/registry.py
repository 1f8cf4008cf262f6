"""The levels of guarantees that the audit can judge. Every module of this folder is loaded, so a new one is a file.

Each says by :func:`sfumato.audit.kinds.judge` how the guarantees that it measures are judged.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import sfumato.audit.levels
from sfumato.audit.kinds import JUDGED
from sfumato.audit.levels.persons import level_by_persons
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.population_table import GivenPopulation
from sfumato.audit.reading.columns import AnyTable, Columns
from sfumato.audit.reading.equivalence import classes_of_rows, n_merged_spellings
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import GUARANTEES, Guarantee

for _found in walk_packages(sfumato.audit.levels.__path__, "sfumato.audit.levels."):
    if _found.name != __name__:
        import_module(_found.name)


def needs_original(guarantee: Guarantee) -> bool:
    """Whether a guarantee can be measured only against the original."""
    return guarantee.by_persons or (guarantee.kind in JUDGED and JUDGED[guarantee.kind].with_original is not None)


def is_about_fitting_rows(guarantee: Guarantee) -> bool:
    """Whether a guarantee is about which released rows fit which original ones."""
    return guarantee.kind in JUDGED and JUDGED[guarantee.kind].is_about_fitting_rows


def is_measurable(guarantee: Guarantee) -> bool:
    """Whether a table can show that a guarantee holds; differential privacy is a property of how it was made."""
    judging = JUDGED.get(guarantee.kind)
    if judging is None:
        return True
    ways = (judging.in_classes, judging.on_release, judging.with_original, judging.in_population)
    return any(way is not None for way in ways)


def needs_population(guarantee: Guarantee) -> bool:
    """Whether a guarantee can be measured only with a table of the population."""
    return guarantee.kind in JUDGED and JUDGED[guarantee.kind].in_population is not None


def level_of(
    guarantee: Guarantee, released: AnyTable, pair: ReleaseVsOriginal | None, population: GivenPopulation | None = None
) -> float:
    """Measure a level on a release, with its original or a population where it needs one and that was given."""
    judging = JUDGED.get(guarantee.kind)
    if population is not None and judging is not None and judging.in_population is not None:
        return judging.in_population(guarantee, population.found)
    if pair is not None and judging is not None and guarantee.by_persons:
        return level_by_persons(guarantee, pair)
    if pair is not None and judging is not None and judging.with_original is not None:
        return judging.with_original(guarantee, pair)
    return measured_level(guarantee, released)


def measured_level(guarantee: Guarantee, released: AnyTable) -> float:
    """Measure on a table what a guarantee promises about it; the guarantee's ``is_met_by`` judges the result.

    Raises
    ------
    ColumnNotFoundError
        If the table lacks a column that the guarantee names.
    NotBinaryError
        If a containment guarantee names a column that is not 0/1.
    """
    judging, columns = JUDGED.get(guarantee.kind), Columns(released)
    if judging is not None and judging.on_release is not None and not guarantee.by_persons:
        return judging.on_release(guarantee, released)
    if judging is None or judging.in_classes is None or guarantee.by_persons:
        known = [kind for kind in GUARANTEES if kind in JUDGED and (JUDGED[kind].on_release or JUDGED[kind].in_classes)]
        allowed = f"one that the audit can measure ({', '.join(known)})"
        parameter = "guarantee"
        raise InvalidParameterError(parameter, f"got '{guarantee.name}'", allowed=allowed)
    over, value = judging.columns_of_classes(guarantee), getattr(guarantee, "sensitive", None)
    are_merged = judging.between_spellings and value is not None and n_merged_spellings(columns, value) > 0
    return judging.level_in(
        guarantee, lambda spelled: classes_of_rows(columns, over, value, spelled=spelled), are_merged=are_merged
    )
