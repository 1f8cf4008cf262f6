"""Golden releases: every mechanism on every table, in memory, out of core and on Spark, as hashes.

A release is made by the command line, as a user would make it. Of each we keep the exit code and the hashes of the
released file, of the manifest and of what was printed. A combination that is refused is frozen as well: its exit code
and its message are what the user sees. On Spark releases are made of frames, in one session on this machine, because a
command would start a session each time.

What differs by nature is taken out before hashing:

- ``versions`` and ``digest`` of the manifest: the first names the installed packages and Python, the second covers it.
- Hidden choices of anatomy and random flipping, which are drawn anew without a project's key, get a seed.
- Noise of the differentially private mechanisms. It comes from OpenDP's secure generator, which takes no seed, so the
  two measurements that sfumato calls are replaced by seeded ones. Everything around the noise is hashed as usual.
- On Spark: the bytes of the Parquet files, the order of the rows, and the hashes of input and output in the manifest.
  They follow from the versions of Spark and pyarrow and from which worker is done first. Rows are hashed sorted.

Time limits are set so far away that every search ends by itself. Absolute paths do not occur: each release
is made in the folder that holds the tables.

Figures in a manifest are rounded to a few digits, and most mechanisms count in whole numbers. Three use floating-point
libraries whose last bits may depend on the processor: breach-aware (classifiers, SciPy's t-test), optimal-containment
and exact-containment (SciPy's HiGHS). Should only these differ on a new machine, compare with a run of the old
commit on that same machine before you look for a defect.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.dataset

import sfumato
from sfumato.cli.main import run
from sfumato.mechanisms.registry import build_mechanism
from tests.golden.inputs import ADULT, DEMO, DEMO_FLAGS, PU1, PU1_TABLE, Input

MEMORY = "600MB"
TABLES = (DEMO, DEMO_FLAGS, ADULT, PU1, PU1_TABLE)

_SEARCH = ("max_seconds=1e6",)
_BUDGET = ("time_budget=1e6",)
_WORK = ("max_values_checked=30000000",)
_FOLDS = ("n_folds=3", "n_workers=1")
SETTINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "anatomy": {"default": ("random_state=0",), "other": ("l=3", "random_state=7")},
    "best-first-wrapper": {"default": ("n_folds=2", "n_repeats=1", "n_stale=1")},
    "breach-aware": {
        "default": _FOLDS,
        "other": (*_FOLDS, "search=forward", "metric=auc", "learner=c45", "random_state=7"),
    },
    "error-risk-tree": {
        "default": (),
        "other": ("k=8", "generalization=uniform", "rule=literal", "refine=false"),
        "multiway": ("k=8", "generalization=uniform", "rule=literal", "refine=false", "splits=multiway"),
    },
    "auto": {"default": ()},
    "exact-containment": {
        "default": _BUDGET,
        "other": (*_BUDGET, "k=40", "criterion=distinguished_pairs"),
    },
    "exponential-dp": {"default": ("n_features=4",), "other": ("n_features=3", "calibration=paper")},
    "gain-recoding": {
        "default": _SEARCH,
        "slicing": (*_SEARCH, "slicing=true", "gain_correction=none"),
        "diverse": (*_SEARCH, "k=3", "l=2", "variant=entropy", "max_suppressed_fraction=0.1"),
    },
    "global-recoding": {
        "default": _SEARCH,
        "other": (*_SEARCH, "k=10", "loss=discernibility", "regroup=false"),
        "close": (*_SEARCH, "t=0.4", "weights=gain", "max_suppressed_fraction=0.1"),
    },
    "greedy-containment": {
        "default": (),
        "other": ("on_infeasible=skip", "criterion=mutual_information", "reveals=both"),
    },
    "laplace-dp": {"default": ("n_features=4",), "other": ("n_features=3", "calibration=paper")},
    "local-recoding": {
        "default": _WORK,
        "other": (*_WORK, "k=10", "weights=gain", "min_released_fraction=0.05"),
        "close": (*_WORK, "t=0.4", "loss=target_information"),
    },
    "maximal-containment": {"default": _BUDGET, "other": (*_BUDGET, "k=20", "search=best")},
    "mdav": {"default": ()},
    "mondrian": {
        "default": (),
        "median": ("split=median",),
        "relaxed": ("strict=false", "split=median"),
        "diverse": ("k=8", "l=2", "variant=entropy", "split=gain"),
    },
    "optimal-containment": {"default": _BUDGET, "other": (*_BUDGET, "k=20")},
    "random-flipping": {"default": ("random_state=0",), "other": ("keep_frequent=true", "random_state=7")},
    "slicing": {"default": (), "other": ("k=8", "l=3", "n_slices=2", "random_state=7")},
}
"""Settings of every mechanism, by a name: the defaults, and others that lead along other paths."""
ENDLESS = {
    (PU1.name, "exact-containment", "default"),
    (PU1.name, "exact-containment", "other"),
    (PU1.name, "maximal-containment", "other"),
    (PU1.name, "optimal-containment", "default"),
    (PU1.name, "optimal-containment", "other"),
}
"""Left out: with 300 words these searches end by their time limit only, so that their result depends on the clock."""
ON_SPARK = ("gain-recoding", "global-recoding", "local-recoding")


@dataclass(frozen=True)
class Case:
    """One release: where the rows live, the mechanism with a name of its settings, and the table."""

    home: str
    mechanism: str
    setting: str
    table: Input

    @property
    def name(self) -> str:
        """What the case is called among its home's hashes."""
        return f"{self.table.name} {self.mechanism} {self.setting}"

    def arguments(self, output: str) -> list[str]:
        """Command line that makes it."""
        settings = [part for setting in SETTINGS[self.mechanism][self.setting] for part in ("-p", setting)]
        where = ("--memory", MEMORY) if self.home == "out_of_core" else ()
        if self.mechanism == "auto":
            where += ("--quick",)  # scores of classifiers are no part of what is frozen
        return ["release", self.table.file, "-m", self.mechanism, *settings, *self.table.options, *where, "-o", output]


def cases(home: str, tables: tuple[Input, ...] = TABLES) -> list[Case]:
    """All cases of a home: every mechanism and setting on every table.

    Spark takes seconds for each, so there the demo table gets all settings, Adult and PU1 the first one.
    """
    names = ON_SPARK if home == "spark" else SETTINGS
    readable = [table for table in tables if home == "memory" or table.file.endswith(".csv")]  # libsvm: memory only
    return [
        Case(home, name, setting, table)
        for table in readable
        for name in names
        for setting in SETTINGS[name]
        if (table.name, name, setting) not in ENDLESS
        if home != "spark" or table is DEMO or (setting == "default" and table is not DEMO_FLAGS)
    ]


def made(case: Case, folder: Path) -> dict[str, Any]:
    """Make a release in the folder that holds the tables, and give what is frozen of it."""
    output = _output(case, ".csv")
    printed = io.StringIO()
    with contextlib.chdir(folder), same_everywhere():
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = run(case.arguments(output))
        Path(f"{output}.printed.txt").write_text(printed.getvalue(), encoding="utf-8")  # to look at what differs
        found: dict[str, Any] = {"exit_code": code, "printed": hash_of(printed.getvalue())}
        if code != 0:
            return found | {"says": printed.getvalue().strip().splitlines()[-1]}
        manifest = comparable_manifest(Path(f"{output}.manifest.json"))
        return found | {"release": hash_of(Path(output).read_bytes()), "manifest": hash_of(manifest)}


def made_on_spark(case: Case, folder: Path, session: Any) -> dict[str, str]:
    """Make a release of a frame on Spark; what is frozen of it does not depend on the order of its rows."""
    frame = session.read.parquet(str(folder / Path(case.table.file).with_suffix(".parquet")))
    settings = dict(setting.split("=") for setting in SETTINGS[case.mechanism][case.setting])
    mechanism = build_mechanism(case.mechanism, settings)
    output = folder / _output(case, ".parquet")
    try:
        sfumato.release_large(frame, mechanism, output, roles=case.table.roles, memory=MEMORY)
    except sfumato.errors.SfumatoError as error:
        return {"says": f"{type(error).__name__}: {error}"}
    manifest = comparable_manifest(Path(f"{output}.manifest.json"))
    return {"release": hash_of_rows(output), "manifest": hash_of(re.sub(r'"sha256": "\w+"', '"sha256": "*"', manifest))}


def _output(case: Case, suffix: str) -> str:
    return f"{case.home} {case.name}".replace(" ", "_") + suffix


def parameter_value(text: str) -> Any:
    """Read a parameter's text as the command line does."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def comparable_manifest(path: Path) -> str:
    """Text of a manifest without what differs by nature; all else to the byte."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'"digest": "\w+"', '"digest": "*"', text)
    return re.sub(r'(?<="versions": \{)[^}]*', lambda block: re.sub(r': "[^"]*"', ': "*"', block[0]), text)


def hash_of(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def hash_of_rows(folder: Path) -> str:
    table = pyarrow.dataset.dataset(folder).to_table()
    rows = sorted(map(repr, table.to_pylist()))
    return hash_of("\n".join([repr([(field.name, str(field.type)) for field in table.schema]), *rows]))


@contextlib.contextmanager
def same_everywhere() -> Iterator[None]:
    """Draw the noise of OpenDP's measurements with a seed, and print as in a wide terminal without colours."""
    import opendp.measurements

    rng = np.random.default_rng(17)

    def make_geometric(*space: object, scale: float) -> Any:
        def add(values: list[int]) -> list[int]:
            chance = -np.expm1(-1 / scale)
            noise = rng.geometric(chance, len(values)) - rng.geometric(chance, len(values))
            return [int(number) for number in np.array(values) + noise]

        return add

    def make_noisy_top_k(*space: object, k: int, scale: float) -> Any:
        def choose(scores: list[int]) -> list[int]:
            return [int(i) for i in np.argsort(-(np.array(scores) / scale + rng.gumbel(size=len(scores))))[:k]]

        return choose

    with (
        mock.patch.object(opendp.measurements, "make_geometric", make_geometric),
        mock.patch.object(opendp.measurements, "make_noisy_top_k", make_noisy_top_k),
        mock.patch.dict(os.environ, {"COLUMNS": "200", "NO_COLOR": "1"}),  # what is printed has no width of a terminal
    ):
        yield
