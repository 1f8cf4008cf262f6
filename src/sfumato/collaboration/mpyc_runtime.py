"""MPyC's runtime without its side effects: one for every thread, no sockets, nothing unpickled.

MPyC [MPyC]_ keeps numbers as Shamir shares: with m parties, any (m - 1) // 2 of them learn nothing, more than that can
open everything. It protects against parties that follow the protocol and look at what they receive, not against
parties that send something else.

Deviations
----------
Four habits of MPyC 0.11 are not taken over. It reads ``sys.argv`` and configures logging when it is imported; it opens
sockets of its own, over which it unpickles arrays; it has one runtime for a whole process; and its public test for
zero opens the product of two sharings as it is, a polynomial of degree 2t whose roots tell every single party the
tested number. Here the product is shared anew before it is opened.

References
----------
.. [MPyC] Schoenmakers: MPyC, Multiparty Computation in Python. https://github.com/lschoe/mpyc
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from sfumato.errors import InvalidParameterError

SECURITY_BITS = 64
"""Masks are so many bits longer than what they hide."""


@contextmanager
def _quiet_import() -> Iterator[None]:
    """Keep MPyC from reading ``sys.argv``, from setting up a runtime, and from configuring the root logger.

    The first two are what it does for the builders of its documentation, who set this variable.
    """
    variable = "READTHEDOCS"
    before = os.environ.get(variable)
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    os.environ[variable] = "True"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it takes names from numpy.core
            yield
    finally:
        logging.getLogger().removeHandler(handler)
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def _imported(name: str) -> ModuleType:
    try:
        with _quiet_import():
            return importlib.import_module(name)
    except ModuleNotFoundError:
        problem = "but this one needs mpyc, which is not installed"
        hint = "pip install 'sfumato[collaborate]'"
        raise InvalidParameterError("mode", problem, allowed="one whose packages are installed", hint=hint) from None


_mpyc = _imported("mpyc")
_runtimes = _imported("mpyc.runtime")
_asyncoro = _imported("mpyc.asyncoro")
_numbers = _imported("mpyc.gmpy")


class _RuntimeOfThread:
    """Stand-in for the one runtime of a process: that of the thread which asks."""

    def __init__(self) -> None:
        object.__setattr__(self, "threads", threading.local())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.threads.runtime, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.threads.runtime, name, value)


_current = _RuntimeOfThread()
for _module in (_asyncoro, _runtimes.sectypes, _runtimes.mpctools):
    vars(_module)["runtime"] = _current
os.environ.setdefault("MPYC_MAXWORKERS", "0")  # read by MPyC whenever it takes square roots

_making_types = threading.Lock()


class ChannelRuntime(_runtimes.Runtime):  # type: ignore[misc, name-defined]
    """MPyC's runtime of one party, for messages that others carry: set ``parties[i].protocol`` for every peer."""

    def __init__(self, place: int, n_parties: int) -> None:
        options = _mpyc._get_arg_parser().parse_args(["--no-log", "--no-barrier", f"-K{SECURITY_BITS}"])
        options.threshold = (n_parties - 1) // 2
        options.mix32_64bit = True  # arrays travel as plain bytes of fixed length, not pickled
        super().__init__(place, [_runtimes.Party(i) for i in range(n_parties)], options)

    @_asyncoro.mpc_coro  # type: ignore[untyped-decorator]
    async def np_is_zero_public(self, a: Any) -> asyncio.Future:  # type: ignore[type-arg]
        """Open which numbers are 0, and nothing else of them."""
        masks = self._np_randoms(type(a).sectype.field, a.size)
        numbers = await self.gather(a)
        products = await self._reshare(numbers.reshape(-1) * masks)
        opened = await self.output(products)
        return (opened == 0).reshape(numbers.shape)  # type: ignore[no-any-return]

    def _refuse(self, *_: object, **__: object) -> None:
        raise NotImplementedError

    transfer = is_zero_public = _np_is_zero = _refuse

    def secure_integers(self, n_bits: int, modulus: int) -> Any:
        """Type of shared integers of so many bits in a prime field; all threads get the same one."""
        with _making_types:
            return self.SecInt(n_bits, p=modulus)


@contextmanager
def runtime_of_this_thread(runtime: ChannelRuntime) -> Iterator[None]:
    """Make a runtime the one that MPyC finds in this thread; at the end the keys of its random numbers are dropped."""
    _current.threads.runtime = runtime
    try:
        yield
    finally:
        del _current.threads.runtime
        runtime.prfs.cache_clear()


def is_prime(number: int) -> bool:
    """Tell whether a number is prime; wrong with probability below 2^-50 for one that is not."""
    return bool(_numbers.is_prime(number))
