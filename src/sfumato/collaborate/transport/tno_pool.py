"""TNO's communication pool, carrying bytes and nothing else.

``tno.mpc.communication`` turns what peers send into rich objects, with plugins that load pandas, torch and others as
soon as the package is imported. Here the package is imported without its plugins, and :class:`NumberedBytes` takes the
place of its serialiser: what a peer sends stays bytes.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from types import ModuleType

_PACKAGE = "tno.mpc.communication"
_PLUGINS = f"{_PACKAGE}.serializer_plugins"
_PLUGIN_NAMES = ("bitarray", "gmpy", "int", "numpy", "pandas", "torch", "tuple")
_NUMBER_BYTES = 8


def _import_without_plugins() -> None:
    """Import TNO's package with empty modules in the place of its plugins, and take these away again."""
    if _PACKAGE in sys.modules:
        return
    names = [f"{_PLUGINS}.{name}" for name in _PLUGIN_NAMES]
    for name in names:
        empty = ModuleType(name)
        empty.register = lambda: None  # type: ignore[attr-defined]
        sys.modules[name] = empty
    try:
        importlib.import_module(_PACKAGE)
        importlib.import_module(f"{_PLUGINS}._register").PLUGINS.clear()
    finally:
        for name in names:
            del sys.modules[name]


_import_without_plugins()

from tno.mpc.communication import Communicator, Packer, Pool  # noqa: E402

__all__ = ["Communicator", "NumberedBytes", "Packer", "Pool", "number_of"]


class NumberedBytes(Packer):
    """A packet is the message's number in eight bytes, and the message.

    Examples
    --------
    >>> NumberedBytes().unpack(NumberedBytes().pack(b"abc", "7"))
    ('7', b'abc')
    """

    def pack(self, content: bytes, msg_id: str) -> bytes:
        """Put the number before the message."""
        return int(msg_id).to_bytes(_NUMBER_BYTES) + content

    def pack_multiple(self, content: bytes, msg_ids: Iterable[str]) -> tuple[bytes, ...]:
        """Put each number before the same message."""
        return tuple(self.pack(content, msg_id) for msg_id in msg_ids)

    def unpack(self, packet: bytes) -> tuple[str, bytes]:
        """Part the number from the message."""
        return str(number_of(packet)), packet[_NUMBER_BYTES:]


def number_of(packet: bytes) -> int:
    """Return the number of the message in a packet.

    Raises
    ------
    ValueError
        If the packet is too short to have one.
    """
    if len(packet) < _NUMBER_BYTES:
        problem = "a packet is too short"
        raise ValueError(problem)
    return int.from_bytes(packet[:_NUMBER_BYTES])
