"""What all guarantees share as data: how one is written into a manifest, and whole numbers in it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from sfumato.errors import InvalidParameterError


class AsDict:
    """A guarantee (a dataclass) as plain data."""

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        fields: dict[str, Any] = asdict(self)  # type: ignore[call-overload]  # every subclass is a dataclass
        if not fields.get("protected", True):
            del fields["protected"]
        return {"kind": self.kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}


LEAST_CROWD = 2
"""Fewest rows, or different values, that a promise is about: every row is one of at least 1, so 1 promises nothing."""


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Refuse what is no whole number of at least 1, or another least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidParameterError(name, f"got {value!r}", allowed=f"a whole number of at least {least}")
