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


def check_whole(name: str, value: object) -> None:
    """Refuse what is no whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidParameterError(name, f"got {value!r}", allowed="a whole number of at least 1")
