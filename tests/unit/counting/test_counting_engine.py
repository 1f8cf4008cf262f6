"""The engine: where it keeps its files, what it opens, and what its errors may say."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.counting.classes import class_size_counts, equivalence_classes
from sfumato.counting.engine import Engine, default_engine
from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError, SchemaError
from strategies import CategoricalRows

PEOPLE = CategoricalRows(("sex", "town"), [("m", "Ulm"), ("f", None), ("m", "Ulm"), ("f", "Bonn")])
CANARY = "canary-4711"


@pytest.fixture
def engine():
    with Engine(threads=1) as opened:
        yield opened


def setting(engine, name):
    return engine._connection.execute("SELECT current_setting(?)", [name]).fetchall()[0][0]


def test_spill_folder_is_private_and_removed_on_closing():
    engine = Engine()
    folder = Path(setting(engine, "temp_directory"))
    mode = stat.S_IMODE(folder.stat().st_mode)

    engine.close()

    assert mode == 0o700
    assert not folder.exists()


def test_spill_folder_is_not_the_working_directory(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine.collect(engine.frame(PEOPLE.arrow()))

    assert not list(tmp_path.iterdir())


def test_forked_child_leaves_the_parents_spill_folder(monkeypatch):
    engine = Engine()
    folder = Path(setting(engine, "temp_directory"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        engine.close()

    assert folder.exists()
    folder.rmdir()


def test_extensions_are_neither_installed_nor_loaded(engine):
    assert setting(engine, "autoinstall_known_extensions") is False
    assert setting(engine, "autoload_known_extensions") is False


def test_memory_and_threads_are_limited_as_asked():
    with Engine(memory_limit="512MiB", threads=1) as engine:
        assert setting(engine, "threads") == 1
        assert setting(engine, "memory_limit") == "512.0 MiB"


@pytest.mark.parametrize("limit", ["much", "0", "12 parsecs"])
def test_memory_limit_without_a_unit_is_refused(limit):
    with pytest.raises(InvalidParameterError, match="a number with a unit"):
        Engine(memory_limit=limit)


def test_at_least_one_thread_is_asked_for():
    with pytest.raises(InvalidParameterError, match="at least 1"):
        Engine(threads=0)


def test_default_engine_is_made_once():
    assert default_engine() is default_engine()


FORKING = """
import os, signal, sys
import pyarrow as pa
from sfumato.counting.engine import Engine, default_engine

def count(engine):
    return engine.collect(engine.frame(cells)).num_rows

cells = pa.table({"a": list(range(200_000))})
own = Engine(threads=4)
count(own), count(default_engine())
folder = default_engine()._connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
child = os.fork()
if child == 0:
    code = 0 if count(default_engine()) == 200_000 else 1
    own.close()
    del own
    os._exit(code) if sys.argv[1] == "at once" else sys.exit(code)
signal.signal(signal.SIGALRM, lambda *_: os.kill(child, 9))
signal.alarm(30)  # a child that hangs
_, status = os.waitpid(child, 0)
assert status == 0, status
assert os.path.isdir(folder)
assert count(default_engine()) == count(own) == 200_000
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("end", ["at once", "as usual"])
def test_forked_child_counts_with_an_engine_of_its_own_and_ends(end, tmp_path):
    """In a process of its own: the threads of the test's process must not be forked."""
    command = [sys.executable, "-c", FORKING, end]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # a child that ends at once leaves its empty spill folder
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)

    assert ran.returncode == 0, ran.stderr


def test_coded_table_is_opened_as_its_codes(engine):
    opened = engine.frame(PEOPLE.table())

    assert opened.implementation == nw.Implementation.DUCKDB
    assert engine.collect(opened).to_pydict() == {"sex": [1, 0, 1, 0], "town": [1, 2, 1, 0]}


@pytest.mark.parametrize(
    ("make", "implementation"),
    [
        (lambda arrow: pl.from_arrow(arrow).lazy(), nw.Implementation.POLARS),
        (pl.from_arrow, nw.Implementation.POLARS),
        (lambda arrow: arrow.to_pandas(), nw.Implementation.PANDAS),
        (lambda arrow: duckdb.connect().from_arrow(arrow), nw.Implementation.DUCKDB),
        (lambda arrow: arrow, nw.Implementation.DUCKDB),
        (lambda arrow: nw.from_native(arrow), nw.Implementation.PYARROW),
    ],
    ids=["polars-lazy", "polars", "pandas", "duckdb", "arrow", "narwhals"],
)
def test_frames_are_counted_where_they_are(engine, make, implementation):
    source = make(PEOPLE.arrow())

    assert engine.frame(source).implementation == implementation
    assert engine.frame(source, ["town"]).collect_schema().names() == ["town"]
    assert engine.n_rows(source) == 4
    assert class_size_counts(source, ["sex", "town"], engine) == {1: 2, 2: 1}


def test_names_that_differ_only_in_case_can_be_counted_but_not_opened_together(engine):
    source = pa.table({"age": [1, 1], "Age": [1, 2], "": [3, 3]})

    assert equivalence_classes(source, ["age", "Age", ""], engine).sizes.tolist() == [1, 1]
    assert engine.collect(engine.frame(source, ["Age"])).to_pydict() == {"Age": [1, 2]}
    with pytest.raises(SchemaError, match="differ only in case"):
        engine.frame(source)


def test_unknown_column_is_named_with_the_nearest(engine):
    for source in (PEOPLE.table(), PEOPLE.arrow(), PEOPLE.arrow().to_pandas()):
        with pytest.raises(ColumnNotFoundError, match="did you mean 'town'"):
            engine.keys(source, ["twon"])


def test_column_whose_name_occurs_twice_is_refused_only_when_needed(engine):
    source = pa.table([[1, 2], [3, 3], [5, 6]], names=["a", "b", "a"])

    assert class_size_counts(source, ["b"], engine) == {2: 1}
    with pytest.raises(SchemaError, match="more than once"):
        engine.keys(source, ["b", "a"])


def test_only_needed_columns_of_a_wide_table_are_handed_over(engine):
    codes = np.zeros(3, dtype=np.int32)
    wide = pa.table([pa.array(codes)] * 25_000, names=[f"w{i}" for i in range(25_000)])

    opened = engine.keys(wide, ["w24999", "w3"])

    assert opened.collect_schema().names() == ["c0", "c1"]
    assert engine.collect(opened).num_rows == 3


def test_too_little_memory_is_said_with_the_remedy():
    texts = pa.table({"a": [f"{i:0100d}" for i in range(50_000)]})

    with Engine(memory_limit="1MB", threads=1) as engine, pytest.raises(InputError, match="memory_limit"):
        equivalence_classes(texts, ["a"], engine)


@pytest.mark.slow
def test_what_does_not_fit_in_memory_is_counted_by_spilling():
    numbers = np.arange(1_000_000)
    table = pa.table({"a": numbers, "b": numbers % 7, "c": numbers // 3})

    with Engine(memory_limit="48MB", threads=1) as engine:
        assert class_size_counts(table, ["a", "b", "c"], engine) == {1: 1_000_000}


def test_closed_engine_says_so():
    engine = Engine()
    opened = engine.frame(PEOPLE.arrow())
    engine.close()

    with pytest.raises(InputError, match="engine is closed"):
        engine.collect(opened)
    with pytest.raises(InputError, match="engine is closed"):
        engine.frame(PEOPLE.arrow())


def test_column_of_mixed_types_is_refused_without_showing_values(engine):
    mixed = pd.DataFrame({"a": [1, CANARY, 2.5]}, dtype=object)

    with pytest.raises(InputError, match="mixes types") as caught:
        equivalence_classes(mixed, ["a"], engine)

    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
