"""``python -m tests.golden``: make the golden releases again and compare them, or freeze them anew.

Two checkouts are compared file by file by ``--keep FOLDER`` in each and ``diff -r`` of the folders.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tests.golden import frozen, inputs
from tests.golden.guarantees import guarantee_cases, made_with_guarantees, made_with_guarantees_on_spark
from tests.golden.public_names import public_names
from tests.golden.releases import ADULT, DEMO, DEMO_FLAGS, PU1, PU1_TABLE, cases, made, made_on_spark
from tests.spark.loopback_cluster import SMALL, why_no_cluster

HOMES = ("memory", "out_of_core", "spark")


@click.command()
@click.option("--check/--write", default=True, help="Compare with what is frozen, or freeze it anew.")
@click.option("--home", "homes", multiple=True, type=click.Choice(HOMES), help="Where the rows live. Default: all.")
@click.option("--keep", type=click.Path(path_type=Path), help="Leave all files in this new folder.")
def main(check: bool, homes: tuple[str, ...], keep: Path | None) -> None:
    """Make the golden releases again and compare them with what is frozen."""
    differing: list[str] = []
    with _folder(keep) as folder:
        tables = _written_tables(folder, needs_all=not check)
        found: dict[str, dict[str, Any]] = {frozen.PUBLIC_NAMES: json.loads(json.dumps(public_names()))}
        for home in homes or HOMES:
            found |= _made(home, tables, folder, needs_it=not check)
    for name, results in found.items():
        if not check:
            frozen.write(name, results)
            continue
        expected = frozen.read(name)
        if name in HOMES:
            expected = {key: value for key, value in expected.items() if key.split()[0] in {t.name for t in tables}}
        lines = frozen.differences(expected, results)
        click.echo(f"{name}: {len(results)} entries, {len(lines)} differences")
        differing += [f"{name}: {line}" for line in lines]
    for line in differing:
        click.echo(line)
    sys.exit(1 if differing else 0)


def _written_tables(folder: Path, *, needs_all: bool) -> tuple[inputs.Input, ...]:
    """Write the tables that are at hand; all must be where results are to be frozen."""
    inputs.write_visits(folder)
    inputs.write_demo(folder)
    tables = [DEMO, DEMO_FLAGS]
    if inputs.DATA.is_dir():
        inputs.write_adult(folder)
        inputs.write_pu1(folder)
        tables += [ADULT, PU1, PU1_TABLE]
    else:
        _say_left_out(f"Adult and PU1, no folder {inputs.DATA}; set SFUMATO_DATA", is_error=needs_all)
    return tuple(tables)


def _made(home: str, tables: tuple[inputs.Input, ...], folder: Path, *, needs_it: bool) -> dict[str, dict[str, Any]]:
    """Make all cases of a home, by the names of their files; none where there is no Spark."""
    by_guarantee = frozen.GUARANTEES + home
    if home != "spark":
        return {
            home: {case.name: made(case, folder) for case in cases(home, tables)},
            by_guarantee: {case.name: made_with_guarantees(case, folder) for case in guarantee_cases(home)},
        }
    reason = why_no_cluster()
    if reason:
        _say_left_out(f"Spark: {reason}", is_error=needs_it)
        return {}
    with _spark() as session:
        return {
            home: {case.name: made_on_spark(case, folder, session) for case in cases(home, tables)},
            by_guarantee: {
                case.name: made_with_guarantees_on_spark(case, folder, session) for case in guarantee_cases(home)
            },
        }


@contextlib.contextmanager
def _spark() -> Iterator[Any]:
    """Open a session with Spark inside its driver: two threads, no workers."""
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # nothing listens on another interface
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": SMALL,
    }
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def _say_left_out(what: str, *, is_error: bool) -> None:
    if is_error:
        raise click.ClickException(f"cannot freeze without {what}")
    click.echo(f"LEFT OUT: {what}", err=True)


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


if __name__ == "__main__":
    main()
