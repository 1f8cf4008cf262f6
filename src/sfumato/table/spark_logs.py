"""Spark's own log of failed queries, kept silent where its errors are told in words of ours."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_QUOTING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def without_quoted_cells() -> Iterator[None]:
    """Keep PySpark from writing errors of queries to the terminal in the block: they quote cells.

    They are raised as well. Each block has a filter of its own, so that several threads may be in one.
    """

    def is_told(record: logging.LogRecord) -> bool:
        return False

    with ExitStack() as at_the_end:
        for logger in _quoting_loggers():
            logger.addFilter(is_told)
            at_the_end.callback(logger.removeFilter, is_told)
        yield


def _quoting_loggers() -> list[logging.Logger]:
    loaded = sys.modules.get("pyspark.logger")  # before any error of PySpark is raised
    return [] if loaded is None else [loaded.PySparkLogger.getLogger(name) for name in _QUOTING]
