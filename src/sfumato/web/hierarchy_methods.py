"""How a hierarchy can be built, in words for people, with the fields that each way asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MethodField:
    """One setting of a method."""

    name: str
    title: str
    hint: str = ""
    default: str = ""
    is_needed: bool = False


@dataclass(frozen=True)
class Method:
    """One way to build a hierarchy; its name is that of ``sfumato hierarchy build --method``."""

    name: str
    title: str
    why: str
    fields: tuple[MethodField, ...] = ()

    def settings(self, form: Mapping[str, object]) -> dict[str, str]:
        """Take this method's fields out of a form; empty ones are not given."""
        given = {field.name: str(form.get(self.field_id(field), "")).strip() for field in self.fields}
        return {name: text for name, text in given.items() if text}

    def field_id(self, field: MethodField) -> str:
        """Name of a field in the form, where the fields of all methods stand."""
        return f"{self.name}-{field.name}"


_MERGE = MethodField("merge", "Neighbours joined on each further level", "such as 2,2,5; empty: two, again and again")

METHODS = (
    Method("auto", "Automatic", "Suits the kind: numbers at quantiles, dates by month and year, texts by the target."),
    Method(
        "width",
        "Intervals of one width",
        "For numbers that people know in round steps, such as age in tens.",
        (
            MethodField("width", "Width of the finest intervals", "such as 5", is_needed=True),
            MethodField("start", "Where an interval begins", default="0"),
            _MERGE,
        ),
    ),
    Method(
        "quantile",
        "Intervals with equally many rows",
        "For numbers that are spread unevenly.",
        (MethodField("intervals", "Number of the finest intervals", default="16"), _MERGE),
    ),
    Method(
        "cuts",
        "Intervals at your own cuts",
        "For borders that mean something, such as 18 and 65.",
        (MethodField("cuts", "Where the finest intervals begin", "such as 0,18,40,65", is_needed=True), _MERGE),
    ),
    Method(
        "mask",
        "Mask characters from the right",
        "For codes in which the first characters say most, such as postcodes.",
        (MethodField("step", "Characters masked more on each level", default="1"),),
    ),
    Method("dates", "Month and year", "For dates written as 2024-02-29."),
    Method(
        "groups",
        "Groups of neighbours in an order",
        "For texts with an order, such as small, medium, large.",
        (
            MethodField("order", "All values from lowest to highest", "separated by commas", is_needed=True),
            MethodField("sizes", "Neighbours joined on each level", "such as 2,2; empty: two"),
        ),
    ),
)


def method_named(name: str) -> Method | None:
    """Look a method up by its name."""
    return next((method for method in METHODS if method.name == name), None)
