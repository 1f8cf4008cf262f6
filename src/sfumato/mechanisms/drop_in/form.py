"""Give a proposed release cells of the form that its mechanism was asked for."""

from __future__ import annotations

from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.mechanisms.drop_in.draws import with_drawn_values
from sfumato.mechanisms.drop_in.typical import in_values


def in_asked_form(mechanism: Mechanism, table: AnyTable, proposed: Release) -> Release:
    """Put ranges, typical values or drawn ones into the classes of a proposal, as the mechanism's ``cells`` says."""
    if mechanism.cells == "values":
        return in_values(table, proposed)
    return with_drawn_values(table, proposed, mechanism.max_copies) if mechanism.cells == "draws" else proposed
