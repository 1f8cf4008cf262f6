"""Threads that libraries compute in while small models are trained."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # comes with scikit-learn


def one_thread() -> AbstractContextManager[Any]:
    """Let libraries compute in one thread meanwhile; small models lose more by several than they gain."""
    limited: AbstractContextManager[Any] = _threads().limit(limits=1)
    return limited


@cache
def _threads() -> Any:
    """Thread pools of this process, which take a while to find."""
    import sklearn.ensemble
    import sklearn.linear_model  # noqa: F401  # only pools of libraries that are loaded are found

    return ThreadpoolController()
