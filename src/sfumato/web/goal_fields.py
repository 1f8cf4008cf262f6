"""Facts of the form on the Goal step: from the project file, the table's choices and what was typed; light."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.schema import Role
from sfumato.web.goal_guarantees import level_names
from sfumato.web.inputs import DATA, DESCRIPTION, HIERARCHY, content_of, noted

FIELD_PREFIX = "set-"
"""Begins the name of every field that holds a guarantee's level or a parameter."""
_FIRST_CHOICE = ("greedy-containment", {"k": 5})  # of a project file that was just made


@dataclass(frozen=True)
class Written:
    """What a project file says of the goal.

    Parameters
    ----------
    signature : str
        Over all that the risk and a comparison depend on: how the table is described, the data and the hierarchies.
    """

    signature: str
    mechanism: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""

    @property
    def is_first_choice(self) -> bool:
        """Whether the choice is the one that every new project file comes with."""
        return (self.mechanism or _FIRST_CHOICE[0], {**_FIRST_CHOICE[1], **self.parameters}) == _FIRST_CHOICE


@dataclass(frozen=True)
class Typed:
    """What was typed into the form.

    Parameters
    ----------
    values : mapping of str to str
        Texts by guarantee or parameter.
    shown : str
        Mechanism whose fields were shown; without script it may be another than the chosen one.
    """

    mechanism: str
    target: str
    values: Mapping[str, str]
    shown: str

    def usable_values(self) -> dict[str, str]:
        """Values that mean something: parameters of a mechanism that was then not chosen do not."""
        is_own = self.shown in ("", self.mechanism)
        return {name: text for name, text in self.values.items() if is_own or name in level_names()}


def read_written(path: Path) -> Written:
    """Read what a project file says; one that cannot be read says nothing, and the task that loads it says why."""
    signature = json.dumps(noted(path, DESCRIPTION, DATA, HIERARCHY))
    try:
        content = content_of(path) or {}
        columns, made = content.get("columns", {}), content.get("release", {})
        target = next((name for name, entry in columns.items() if entry.get("role") == Role.TARGET), "")
        return Written(signature, made.get("mechanism", ""), dict(made.get("parameters", {})), target)
    except (ValueError, TypeError, AttributeError):
        return Written(signature)


def form_facts(
    choices: Mapping[str, Any],
    written: Written,
    recommended: Mapping[str, Any],
    typed: Typed | None,
    problems: Mapping[str, str],
    *,
    is_chosen: bool,
) -> dict[str, Any]:
    """Lay the form out.

    Parameters
    ----------
    choices : mapping
        Of :func:`sfumato.web.tasks.goal_form.choices_for`.
    recommended : mapping
        ``mechanism``, ``why`` and, after a comparison, ``parameters``.
    typed : Typed or None
        ``None`` shows what the project file says, or what is recommended where it says nothing of its own.
    problems : mapping of str to str
        By field.
    is_chosen : bool
        Whether the project file's choice was made by the user, even if it is the one it came with.
    """
    mechanisms = {one["name"]: one for one in choices["mechanisms"]}
    name = typed.mechanism if typed is not None and typed.mechanism in mechanisms else ""
    uses_own = written.mechanism in mechanisms and (is_chosen or not written.is_first_choice)
    name = name or (written.mechanism if uses_own else recommended["mechanism"])
    chosen = mechanisms[name]
    proposed = chosen["proposed"] | (recommended.get("parameters", {}) if name == recommended["mechanism"] else {})
    known = written.parameters if uses_own and name == written.mechanism else proposed
    values = _shown_values(chosen, known, typed)
    parameters = [
        {**one, "value": values[one["name"]]} for one in chosen["parameters"] if one["name"] not in level_names()
    ]
    fields = {"target", "mechanism", *(one["name"] for one in (*choices["guarantees"], *chosen["parameters"]))}
    return {
        "targets": choices["targets"],
        "target": typed.target if typed is not None else written.target,
        "guarantees": [
            {**one, "value": values.get(one["name"], ""), "is_taken": one["name"] in chosen["guarantees"]}
            for one in choices["guarantees"]
        ],
        "parameters": parameters,
        "has_own_settings": any(
            one["value"] != as_text(proposed.get(one["name"], one["default"])) or one["name"] in problems
            for one in parameters
        ),
        "mechanism": chosen,
        "usable": [one for one in mechanisms.values() if one["unavailable"] is None or one is chosen],
        "unusable": [one for one in mechanisms.values() if one["unavailable"] is not None and one is not chosen],
        "recommended": recommended,
        "problems": dict(problems),
        "other_problems": [text for key, text in problems.items() if key not in fields],
    }


def _shown_values(chosen: Mapping[str, Any], known: Mapping[str, Any], typed: Typed | None) -> dict[str, str]:
    """Texts by field: as typed; after a change of the mechanism only levels that the new one takes stay."""
    values = {one["name"]: as_text(known.get(one["name"], one["default"])) for one in chosen["parameters"]}
    if typed is None:
        return values
    if typed.shown in ("", chosen["name"]):
        return {**values, **typed.values}
    return values | {name: text for name, text in typed.values.items() if name in chosen["guarantees"] and text}


def as_text(value: Any) -> str:
    """Write a value as people type it.

    Examples
    --------
    >>> as_text(True), as_text(None), as_text(0.5), as_text({"age": "ones", "sex": "both"})
    ('true', '', '0.5', 'age=ones, sex=both')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={as_text(entry)}" for name, entry in value.items())
    return str(value)
