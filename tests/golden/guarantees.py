"""Golden releases of every guarantee by every mechanism that can be asked for it, counted by rows and by persons.

Of each we keep the hash of the released file, the guarantees with their levels as the manifest states them, and the
verdict of the audit with the original. A combination that is refused is frozen with its exit code and message: whoever
changes how something is counted sees what was released before and is refused now. Manifests and what is printed are no
part of it, so that the form of a manifest may change without the bytes of a release.

Differential privacy is left out, since its releases are random, and so is the gain by dropped columns (privacy-gain),
which only several parties promise together.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.cli.main import run
from sfumato.engines.memory_limit import Memory
from sfumato.engines.spark.opening import open_cluster
from sfumato.errors import SfumatoError
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import propose
from sfumato.publishing.publish import publish
from tests.golden.inputs import FLAGS_BY, POPULATION, UNITS, VISITS_BY, Input
from tests.golden.releases import MEMORY, hash_of, hash_of_rows, parameter_value, same_everywhere

_SEARCH = ("max_seconds=1e6",)
_BUDGET = ("time_budget=1e6",)
_SEED = ("random_state=0",)
MAKERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "global-recoding": ("global-recoding", _SEARCH),
    "keeping-all": ("global-recoding", (*_SEARCH, "max_suppressed_fraction=0")),
    "suppressing": ("global-recoding", (*_SEARCH, "max_suppressed_fraction=0.3")),
    "gain-recoding": ("gain-recoding", _SEARCH),
    "gain-slicing": ("gain-recoding", (*_SEARCH, "slicing=true", "gain_correction=none", "threshold=0.1")),
    "local-recoding": ("local-recoding", ("max_values_checked=30000000",)),
    "uniform-tree": ("error-risk-tree", ("generalization=uniform",)),
    "multiway-tree": ("error-risk-tree", ("generalization=uniform", "splits=multiway", "rule=literal", "refine=false")),
    "tiered-tree": ("error-risk-tree", ()),
    "unrefined-tree": ("error-risk-tree", ("refine=false",)),
    "unrefined-uniform-tree": ("error-risk-tree", ("generalization=uniform", "refine=false")),
    "mondrian": ("mondrian", ()),
    "gain-mondrian": ("mondrian", ("split=gain",)),
    "relaxed-mondrian": ("mondrian", ("strict=false", "split=median")),
    "auto": ("auto", ()),
    "mdav": ("mdav", ()),
    "random-flipping": ("random-flipping", _SEED),
    "greedy": ("greedy-containment", ()),
    "greedy-skipping": ("greedy-containment", ("on_infeasible=skip",)),
    "exact": ("exact-containment", _BUDGET),
    "maximal": ("maximal-containment", _BUDGET),
    "optimal": ("optimal-containment", _BUDGET),
    "breach-aware": ("breach-aware", ("n_folds=3", "n_workers=1")),
    "wrapper": ("best-first-wrapper", ("n_folds=2", "n_repeats=1", "n_stale=1", "n_workers=1")),
    "anatomy": ("anatomy", _SEED),
    "slicing": ("slicing", ()),
}
"""Mechanisms with settings by which they search differently; time limits are out of reach."""
_RECODERS = ("global-recoding", "gain-recoding", "local-recoding", "uniform-tree", "mondrian", "relaxed-mondrian")
_FEW = ("local-recoding", "global-recoding", "uniform-tree", "mondrian")
_ALL_WAYS = (*_RECODERS, "suppressing", "multiway-tree", "gain-mondrian")
_SAMPLERS = ("global-recoding", "gain-recoding", "mondrian")
_TYPICAL = ("--cells", "values")
_DEALT = ("--cells", "draws", "--max-copies", "1")


@dataclass(frozen=True)
class Promise:
    """A guarantee at a level: what asks for it, who makes it, and of which table."""

    settings: tuple[str, ...]
    makers: tuple[str, ...]
    tables: dict[str, Input]
    options: tuple[str, ...] = ()


def _of_visits(*settings: str, makers: tuple[str, ...] = _RECODERS, options: tuple[str, ...] = ()) -> Promise:
    return Promise(settings, makers, VISITS_BY, options)


def _of_flags(*settings: str, makers: tuple[str, ...]) -> Promise:
    return Promise(settings, makers, FLAGS_BY)


def _of_population(*settings: str, makers: tuple[str, ...] = _SAMPLERS) -> Promise:
    return _of_visits(*settings, makers=makers, options=("--population-table", POPULATION))


PROMISES = {
    "k": _of_visits("k=4", makers=(*_ALL_WAYS, "gain-slicing", "mdav")),
    "k-flags": _of_flags("k=4", makers=("global-recoding", "mondrian", "random-flipping")),
    "k-values": _of_visits("k=4", makers=("global-recoding", "mondrian", "uniform-tree"), options=_TYPICAL),
    "k-l": _of_visits("k=4", "l=2", makers=("auto",)),
    "l-distinct-2": _of_visits("k=3", "l=2"),
    "l-distinct": _of_visits("k=3", "l=3", makers=_ALL_WAYS),
    "l-entropy": _of_visits("k=3", "l=2.5", "variant=entropy", makers=_ALL_WAYS),
    "l-recursive": _of_visits("k=3", "l=2", "variant=recursive", "c=1.5", makers=_FEW),
    "t-equal": _of_visits("k=3", "t=0.35"),
    "t-ordered": _of_visits("k=3", "t=0.3", "distance=ordered", makers=_FEW),
    "beta-basic": _of_visits("k=3", "beta=1.5"),
    "beta-enhanced": _of_visits("k=3", "beta=1.5", "likeness=enhanced", makers=_FEW),
    "delta": _of_visits("k=3", "delta=1.5"),
    "alpha": _of_visits("k=3", "alpha=0.5", makers=_ALL_WAYS),
    "kk": _of_visits("k=4", makers=("tiered-tree", "unrefined-tree")),
    "k-disclosure": _of_visits("k=4", "min_disclosure_bits=4", makers=("unrefined-uniform-tree",)),
    "k-map": _of_population("k=1", "k_map=5"),
    "k-map-and-k": _of_population("k=3", "k_map=6"),
    "presence": _of_population("k=2", "delta_max=0.5"),
    "presence-both": _of_population("k=2", "delta_max=0.6", "delta_min=0.05", makers=("keeping-all", "mondrian")),
    "containment": _of_flags("k=9", makers=("greedy", "greedy-skipping", "exact", "maximal", "optimal")),
    "containment-both": _of_flags("k=11", "reveals=both", makers=("greedy", "greedy-skipping")),
    "unique-patterns": _of_flags("k=9", "max_unique_fraction=0.002", makers=("greedy", "greedy-skipping")),
    "breach": _of_flags(makers=("breach-aware", "wrapper")),
    "breach-k": _of_visits("k=4", "then=global-recoding", makers=("breach-aware",)),
    "breach-k-mondrian": _of_visits("k=4", "then=mondrian", makers=("breach-aware",)),
    "bucket-diversity": _of_visits("l=2", makers=("anatomy",)),
    "bucket-size": _of_visits("k=4", "l=2", makers=("slicing",)),
    "bucket-draws": _of_visits("k=4", "alpha=0.5", makers=("mondrian", "local-recoding"), options=_DEALT),
}
"""Every guarantee at a level that binds the search; on Spark the first maker is asked for it."""


@dataclass(frozen=True)
class GuaranteeCase:
    """A promise by a maker, counted by rows or by persons, and where the rows live."""

    home: str
    promise: str
    maker: str
    unit: str

    @property
    def name(self) -> str:
        """What the case is called among its home's results."""
        return f"{self.promise} {self.unit} {self.maker}"

    @property
    def asked(self) -> Promise:
        """What is promised."""
        return PROMISES[self.promise]

    @property
    def table(self) -> Input:
        """What is released."""
        return self.asked.tables[self.unit]

    @property
    def settings(self) -> tuple[str, ...]:
        """Parameters of the mechanism."""
        return (*MAKERS[self.maker][1], *self.asked.settings)

    def release(self, output: str) -> list[str]:
        """Command line that makes it."""
        settings = [part for setting in self.settings for part in ("-p", setting)]
        options = (*self.table.options, *self.asked.options, *self._where, "--quick")
        return ["release", self.table.file, "-m", MAKERS[self.maker][0], *settings, *options, "-o", output]

    def audit(self, output: str) -> list[str]:
        """Command line that audits it."""
        options = (*self.table.options, *(self.asked.options if POPULATION in self.asked.options else ()), *self._where)
        return ["audit", output, "--manifest", f"{output}.manifest.json", "--original", self.table.file, *options]

    @property
    def _where(self) -> tuple[str, ...]:
        return {"memory": (), "out_of_core": ("--memory", MEMORY), "spark": ("--engine", "spark://127.0.0.1:1")}[
            self.home
        ]


def guarantee_cases(home: str) -> list[GuaranteeCase]:
    """All cases of a home; Spark takes seconds for each, so there every promise is made once by rows and by persons."""
    return [
        GuaranteeCase(home, name, maker, unit)
        for name, promise in PROMISES.items()
        for unit in UNITS
        for maker in promise.makers[: 1 if home == "spark" else None]
    ]


def made_with_guarantees(case: GuaranteeCase, folder: Path) -> dict[str, Any]:
    """Make and audit a release in the folder that holds the tables, and give what is frozen of it."""
    output = f"{case.home} {case.name}".replace(" ", "_") + ".csv"
    with contextlib.chdir(folder), same_everywhere():
        code, lines = _ran(case.release(output))
        if code != 0:
            return {"exit_code": code, "says": lines[-1]}
        audited, lines = _ran(case.audit(output))
        return {
            "exit_code": code,
            "release": hash_of(Path(output).read_bytes()),
            "guarantees": _guarantees(Path(f"{output}.manifest.json")),
            "verdict": f"{audited}: {_verdict(lines[-1])}",
        }


def made_with_guarantees_on_spark(case: GuaranteeCase, folder: Path, session: Any) -> dict[str, Any]:
    """Make a release of a Parquet file on Spark; the verdict is that of the audit before it is written.

    A file, and no frame: the rows of a frame have no order, and breach-aware draws some of them. Where a promise needs
    options of the command, the command is asked. It refuses them before it looks for a cluster.
    """
    if case.asked.options:
        with same_everywhere():
            code, lines = _ran(case.release("never-written.parquet"))
        return {"exit_code": code, "says": lines[-1]}
    memory = Memory.of(MEMORY)
    output = folder / f"spark {case.name}.parquet".replace(" ", "_")
    settings = dict(setting.split("=") for setting in case.settings)
    try:
        mechanism = build_mechanism(MAKERS[case.maker][0], {k: parameter_value(text) for k, text in settings.items()})
        rows = open_cluster(session, folder / Path(case.table.file).with_suffix(".parquet"), memory=memory.n_bytes)
        published = publish(propose(rows.with_schema(case.table.roles), mechanism, memory), output, memory=memory)
    except SfumatoError as error:
        return {"says": f"{type(error).__name__}: {error}".splitlines()[0]}
    return {
        "release": hash_of_rows(output),
        "guarantees": _guarantees(Path(f"{output}.manifest.json")),
        "verdict": _verdict(published.audit.last_line),
    }


def _ran(arguments: list[str]) -> tuple[int, list[str]]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = run(arguments)
    return code, printed.getvalue().strip().splitlines()


def _verdict(last_line: str) -> str:
    """How an audit ended and for what reason, without how many checks there were."""
    return re.sub(r"(: all \d+ checks passed| — .*|(?<=refused: )\d+ of \d+ checks failed: )", "", last_line)


def _guarantees(manifest: Path) -> Any:
    return json.loads(manifest.read_text(encoding="utf-8"))["guarantees"]
