"""Arithmetic with shared secrets: sums, products, comparisons with 0, and what is opened of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.collaborate.mpyc_channel import ChannelRuntime

Residues = NDArray[np.object_]


class SharedArithmetic:
    """What the parties do together with arrays of shares: residues of which each party has another.

    Parameters
    ----------
    n_bits : int
        Bits of the numbers that are compared, the sign included, where nothing less is said.
    modulus : int
        Prime of the field, with enough bits for the masks.
    """

    def __init__(self, runtime: ChannelRuntime, n_bits: int, modulus: int) -> None:
        self._runtime = runtime
        self._n_bits, self._modulus = n_bits, modulus
        self._field = runtime.secure_integers(n_bits, modulus).field

    async def inputs(self, own: Residues) -> Residues:
        """Share one's own numbers; one row for each party's."""
        rows = await self._runtime.input(self._field.array(own))
        shares: Residues = np.stack([row.value for (row,) in rows])
        return shares

    async def reshared(self, values: Residues) -> Residues:
        """Make proper shares of sums of products of shares."""
        shares: Residues = (await self._runtime._reshare(self._field.array(values))).value
        return shares

    async def product(self, rows: Residues) -> Residues:
        """Multiply all rows."""
        result: Residues = rows[0]
        for row in rows[1:]:
            result = await self.reshared(result * row)
        return result

    async def powers(self, bases: Residues, highest: int) -> Residues:
        """First powers of all bases, the exponents 1 to ``highest`` along the first axis."""
        found = bases[None]
        while len(found) < highest:
            found = np.concatenate([found, await self.reshared(found[-1] * found[: highest - len(found)])])
        return found

    async def is_negative(self, values: Residues, *, n_bits: int | None = None) -> Residues:
        """Compare with 0; bits as shares. Numbers that are known to have fewer bits are compared faster."""
        integers = self._runtime.secure_integers(n_bits or self._n_bits, self._modulus)
        bits = self._runtime.np_sgn(integers.array(self._field.array(values)), LT=True)
        shares: Residues = (await self._runtime.gather(bits)).value
        return shares

    async def opened(self, values: Residues) -> list[int]:
        """Tell all parties the numbers themselves."""
        return [int(value) for value in (await self._runtime.output(self._field.array(values))).value]
