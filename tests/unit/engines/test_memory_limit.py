"""Memory and its parts: what is too little is refused with the least, and the parts fit into the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines import memory_limit
from sfumato.engines.memory_limit import LEAST_BYTES, PROGRAM_BYTES, Memory
from sfumato.errors import InvalidParameterError


def test_too_little_is_refused_with_the_least_that_works() -> None:
    with pytest.raises(InvalidParameterError, match=f"at least {LEAST_BYTES // 10**6}MB, got less") as caught:
        Memory.of("599MB")

    assert "400 MB" in caught.value.hint
    assert Memory.of(f"{LEAST_BYTES // 10**6}MB").n_bytes == LEAST_BYTES


@given(n_bytes=st.integers(LEAST_BYTES, 10**13))
def test_the_parts_and_the_program_fit_into_what_is_given(n_bytes: int) -> None:
    database = memory_limit.database_bytes(n_bytes)
    block = 64 * memory_limit.cells_at_once(n_bytes)
    text = memory_limit.text_at_once(n_bytes)

    assert PROGRAM_BYTES + database + block + text <= n_bytes
    assert memory_limit.database_threads(n_bytes) >= 1
    assert memory_limit.cells_at_once(n_bytes) >= 10_000


@given(n_bytes=st.integers(0, 10**10))
def test_even_with_nothing_left_a_little_is_read_at_a_time(n_bytes: int) -> None:
    assert memory_limit.cells_at_once(n_bytes) > 0
    assert memory_limit.text_at_once(n_bytes) > 0
    assert memory_limit.listed_values(n_bytes)[0] >= 0
