"""What can be promised, and of what: every mechanism with every guarantee, by rows and by persons.

A cell of the matrix is made, audited and judged by the definition, or it is refused for a reason that is declared here.
A table of rows is one of persons in which every row is its own person.
"""

from collections import Counter, defaultdict
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from sfumato import release
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.verify import audit_release
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import GUARANTEES
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from tests import oracles, person_oracles

ROW, PERSON = "row", "patient"
UNITS = (ROW, PERSON)
KNOWN, FLAGS = ("age", "town"), tuple(f"x{i}" for i in range(5))

# The mechanisms: settings beside those that ask for a guarantee, and the quasi-identifiers that they are given.

EVERY_ROW = {"max_suppressed_fraction": 0.0}
MECHANISMS = {
    "mondrian": ("mondrian", {}, KNOWN),
    "relaxed mondrian": ("mondrian", {"strict": False}, KNOWN),
    "global-recoding": ("global-recoding", EVERY_ROW, KNOWN),
    "gain-recoding": ("gain-recoding", EVERY_ROW, KNOWN),
    "local-recoding": ("local-recoding", {}, KNOWN),
    "uniform tree": ("error-risk-tree", {"generalization": "uniform"}, KNOWN),
    "tiered tree": ("error-risk-tree", {"generalization": "tiered"}, KNOWN),
    "auto": ("auto", {}, KNOWN),
    "mdav": ("mdav", {}, KNOWN),
    "anatomy": ("anatomy", {}, KNOWN),
    "slicing": ("slicing", {}, KNOWN),
    "breach-aware": ("breach-aware", {"max_breach_increase": 200.0, "allow_increase": True, "n_folds": 3}, KNOWN),
    "best-first-wrapper": ("best-first-wrapper", {"allow_increase": True, "n_folds": 3, "n_repeats": 1}, KNOWN),
    "greedy-containment": ("greedy-containment", {}, FLAGS),
    "exact-containment": ("exact-containment", {}, FLAGS),
    "maximal-containment": ("maximal-containment", {}, FLAGS),
    "optimal-containment": ("optimal-containment", {}, FLAGS),
    "random-flipping": ("random-flipping", {}, FLAGS),
    "exponential-dp": ("exponential-dp", {"n_features": 3}, FLAGS),
    "laplace-dp": ("laplace-dp", {"n_features": 3}, FLAGS),
}

# The guarantees: the kind, and the settings that ask for it.

ASKED = {
    "k-anonymity": ("k-anonymity", {"k": 3}),
    "distinct l": ("l-diversity", {"k": 3, "l": 3}),
    "entropy l": ("l-diversity", {"k": 3, "l": 2.5, "variant": "entropy"}),
    "recursive l": ("l-diversity", {"k": 3, "l": 2, "variant": "recursive", "c": 1.5}),
    "equal t": ("t-closeness", {"k": 3, "t": 0.4}),
    "ordered t": ("t-closeness", {"k": 3, "t": 0.3, "distance": "ordered"}),
    "basic β": ("beta-likeness", {"k": 3, "beta": 1.2}),
    "enhanced β": ("beta-likeness", {"k": 3, "beta": 1.5, "likeness": "enhanced"}),
    "δ-disclosure": ("delta-disclosure", {"k": 3, "delta": 1.6}),
    "(α,k)": ("alpha-k-anonymity", {"k": 3, "alpha": 0.5}),
    "k-map": ("k-map", {"k": 3, "k_map": 7}),
    "δ-presence": ("delta-presence", {"k": 3, "delta_max": 0.6}),
    "(k,k)": ("kk-anonymity", {"k": 3}),
    "global (1,k)": ("global-anonymity", {"k": 3}),
    "containment": ("containment", {"k": 3}),
    "unique patterns": ("unique-patterns", {"k": 3, "max_unique_fraction": 0.2}),
    "bucket size": ("bucket-size", {"k": 3}),
    "bucket diversity": ("bucket-diversity", {"l": 2}),
    "breach bound": ("breach-bound", {}),
    "ε": ("differential-privacy", {"epsilon": 1.0}),
}
OF_CLASSES = tuple(ASKED)[:10]
OF_VALUES = OF_CLASSES[1:]
OF_WEIGHTS = OF_VALUES[1:]
OF_POPULATIONS = ("k-map", "δ-presence")
CONTAINMENT = tuple(name for name in MECHANISMS if name.endswith("-containment"))
RECODERS = ("mondrian", "global-recoding", "gain-recoding")

# What each mechanism makes. Nobody can ask it for anything else: it has no such parameter, or promises another thing.

MADE = {
    **dict.fromkeys(RECODERS, (*OF_CLASSES, *OF_POPULATIONS)),
    **dict.fromkeys(("relaxed mondrian", "local-recoding", "uniform tree"), OF_CLASSES),
    "tiered tree": ("(k,k)", "global (1,k)"),
    "auto": ("k-anonymity", "distinct l"),
    "mdav": ("k-anonymity",),
    "anatomy": ("bucket diversity",),
    "slicing": ("bucket size", "bucket diversity"),
    "breach-aware": ("k-anonymity", "breach bound"),
    "best-first-wrapper": ("breach bound",),
    **dict.fromkeys(CONTAINMENT, ("containment",)),
    "greedy-containment": ("containment", "unique patterns"),
    "random-flipping": ("k-anonymity",),
    **dict.fromkeys(("exponential-dp", "laplace-dp"), ("ε",)),
}


class Refused(NamedTuple):
    """Cells that are refused though the mechanism has the parameters, and the reason."""

    mechanisms: tuple[str, ...]
    asked: tuple[str, ...]
    units: tuple[str, ...]
    error: type[Exception]
    said: str
    why: str


REFUSED = [
    Refused(
        ("mdav", "anatomy", "slicing", "random-flipping"),
        tuple(ASKED),
        (PERSON,),
        InvalidParameterError,
        "the mechanism must be one that counts persons",
        "their groups and buckets are of rows, and rows of one person can be seen to belong together",
    ),
    Refused(
        ("exponential-dp", "laplace-dp"),
        tuple(ASKED),
        (PERSON,),
        SchemaError,
        "bounds what one row can change",
        "noise hides one row, and not all rows of a person",
    ),
    Refused(
        (*RECODERS, "relaxed mondrian"),
        OF_POPULATIONS,
        (PERSON,),
        InvalidParameterError,
        "some persons have several rows",
        "a register has everybody once, and a row of it is no row of the table",
    ),
    Refused(
        ("relaxed mondrian",),
        OF_POPULATIONS,
        (ROW,),
        InvalidParameterError,
        "strict",
        "cells of relaxed cuts overlap, so that people fit several of them",
    ),
    Refused(
        ("relaxed mondrian",),
        OF_WEIGHTS,
        (PERSON,),
        InvalidParameterError,
        "strict",
        "two groups may get the same cells, and groups that keep a limit of weights need not keep it when joined",
    ),
    Refused(
        ("tiered tree",),
        (*OF_VALUES, "bucket diversity"),
        UNITS,
        InvalidParameterError,
        "generalization must be uniform",
        "tiered cells are shared between groups",
    ),
]

FOLLOWING = {"k-anonymity", "kk-anonymity", "global-anonymity", "containment", "l-diversity"}
"""Promises by rows that follow from those by persons, and stand beside them: of l-diversity, the distinct one."""
OF_ROWS_ONLY = {"unique-patterns"}
"""Promises that count rows, whatever tells persons apart: the audit says what holds of persons."""
WITHOUT_ORACLE = {"breach-bound", "differential-privacy"}
"""An estimate, and a promise about how a release came about: no table has a level of them."""
OPEN = {(name, ROW): {"epsilon", "noise"} for name in ("exponential-dp", "laplace-dp")}
"""What no audit can judge; figures that are no promises are left out here and below."""
OPEN_WHEN_SORTED = {
    **{(name, ROW): {"cells"} for name in ("mdav", "anatomy", "random-flipping")},
    **{(name, PERSON): {"promises"} for name in ("local-recoding", "tiered tree")},
}
"""What an audit of a sorted file cannot tell beside its original: whose rows are whose. Publishing measures it."""


# The table.


@lru_cache
def table_of(unit, columns):
    """Make visits: some people come often, mostly with the same illness; most of their visits look alike."""
    random = np.random.default_rng(1)
    n_rows, n_persons = 160, 70
    persons = np.minimum(random.geometric(6 / n_persons, n_rows) - 1, n_persons - 1)
    ages = random.integers(20, 80, n_persons)[persons] + random.integers(0, 2, n_rows)
    usual = random.integers(0, 5, n_persons)[persons]
    flags = (random.random((n_persons, 5)) < np.linspace(0.2, 0.7, 5))[persons] ^ (random.random((n_rows, 5)) < 0.1)
    illness = np.where(random.random(n_rows) < 0.7, usual, random.integers(0, 5, n_rows))
    cells = {
        PERSON: [f"p{person}" for person in persons],
        "age": ages,
        "town": np.array(["Ulm", "Bonn", "Kiel", "Jena"])[random.integers(0, 4, n_persons)[persons]],
        **{name: flags[:, i].astype(int) for i, name in enumerate(FLAGS)},
        "illness": np.array(["cold", "cough", "flu", "gout", "mumps"])[illness],
        "better": np.where(random.random(n_rows) < ages / 100, "no", "yes"),
    }
    described = [
        Column(PERSON, Role.PERSON if unit == PERSON else Role.IDENTIFIER),
        *(Column(n, Role.QUASI_IDENTIFIER, Kind.NUMERIC if n == "age" else Kind.CATEGORICAL) for n in columns),
        Column("illness", Role.SENSITIVE),
        Column("better", Role.TARGET),
    ]
    return Table.from_arrow(pa.table({one.name: pa.array(cells[one.name]) for one in described}), Schema.of(described))


@lru_cache
def register():
    """Everybody of the table, and as many others who look like them."""
    people = table_of(ROW, KNOWN).keep(list(KNOWN))
    return Table.from_arrow(pa.concat_tables([people.to_arrow()] * 2), people.schema)


@lru_cache
def made(mechanism, settings, unit):
    """Release of a table, with the table that the register is, where people are asked about."""
    name, more, columns = MECHANISMS[mechanism]
    asked = dict(settings)
    people = register() if {"k_map", "delta_max"} & set(asked) else None
    return release(table_of(unit, columns), build_mechanism(name, {**more, **asked}), population=people), people


def settings_of(asked):
    return tuple(ASKED[asked][1].items())


# The definitions.


def level_by_definition(entry, original, released):
    """Level of a promise, by what was released and whose rows these are."""
    before, after = original.to_arrow().to_pydict(), released.to_arrow().to_pydict()
    n_rows = released.n_rows
    units = list(range(n_rows)) if entry["unit"] == ROW else before[entry["unit"]]
    rows = list(zip(*(after[name] for name in entry["columns"]), strict=True))
    classes = list(oracles.equivalence_classes(rows).values())
    kind = entry["kind"]
    if kind == "k-anonymity":
        return min(len({units[i] for i in own}) for own in classes)
    if kind in ("kk-anonymity", "global-anonymity"):
        edges = person_oracles.edges_of(original, released, entry["columns"])
        of_pairs = {
            "kk-anonymity": person_oracles.kk_level,
            "global-anonymity": person_oracles.global_level_by_matchings,
        }
        return of_pairs[kind](edges, units)
    if kind == "containment":
        return person_oracles.contained_level(rows, units, range(len(entry["columns"])), entry.get("reveals") or None)
    if kind == "unique-patterns":
        return sum(rows.count(row) == 1 for row in rows) / n_rows
    if kind in ("k-map", "delta-presence"):
        return level_in_register(kind, entry["columns"], rows)
    if kind.startswith("bucket"):
        return level_of_buckets(entry, after)
    assert len(classes) > 1
    values = before[entry["sensitive"]]
    by_class = [[(units[i], values[i]) for i in own] for own in classes]
    if kind == "alpha-k-anonymity":
        assert min(len({units[i] for i in own}) for own in classes) >= entry["k"]
    return person_oracles.level(by_class, entry)


def level_of_rows_by_definition(entry, released):
    """Find the same by rows a second time, by definitions that know no persons."""
    cells = released.to_arrow().to_pydict()
    rows = list(zip(*(cells[name] for name in entry["columns"]), strict=True))
    if entry["kind"] == "k-anonymity":
        return oracles.anonymity_level(rows)
    if entry["kind"] == "containment":
        return oracles.containment_level(rows)
    values = cells.get(entry.get("sensitive"))
    if entry["kind"] == "l-diversity":
        if entry["variant"] == "recursive":
            return oracles.recursive_diversity_level(rows, values, entry["c"])
        by_variant = {"distinct": oracles.distinct_diversity_level, "entropy": oracles.entropy_diversity_level}
        return by_variant[entry["variant"]](rows, values)
    if entry["kind"] == "t-closeness":
        if entry["distance"] == "equal":
            return float(oracles.equal_t_closeness(rows, values))
        return float(oracles.ordered_t_closeness(rows, values, sorted(set(values))))
    return None


def level_in_register(kind, columns, rows):
    """Fewest people whom a released row fits, or the largest share of them that is released in one class."""
    people = list(zip(*(register().to_arrow().column(name).to_pylist() for name in columns), strict=True))
    fitting = {
        row: sum(all(map(person_oracles.stands_for, row, person)) for person in people) for row in sorted(set(rows))
    }
    if kind == "k-map":
        return min(fitting.values())
    assert sum(fitting.values()) == len(people)  # nobody fits two classes, and everybody one
    return max(n_rows / fitting[row] for row, n_rows in Counter(rows).items())


def level_of_buckets(entry, cells):
    """Rows of the smallest bucket, or one by the largest share of a value among what cannot be told apart there."""
    together = defaultdict(list)
    for i, bucket in enumerate(cells[entry["bucket"]]):
        together[(bucket, *(cells[name][i] for name in entry.get("beside") or ()))].append(i)
    if entry["kind"] == "bucket-size":
        return min(map(len, together.values()))
    values = [[cells[entry["sensitive"]][i] for i in own] for own in together.values()]
    return min(len(own) / max(Counter(own).values()) for own in values)


# The cells.


def refusal_of(mechanism, asked, unit):
    return next((one for one in REFUSED if mechanism in one[0] and asked in one[1] and unit in one[2]), None)


def is_askable(mechanism, asked):
    name, more, _ = MECHANISMS[mechanism]
    return {*more, *ASKED[asked][1]} <= {parameter.name for parameter in registered_mechanisms()[name].parameters}


CELLS = [(m, a, u) for m in MECHANISMS for a in ASKED for u in UNITS]
REFUSED_CELLS = [cell for cell in CELLS if is_askable(*cell[:2]) and refusal_of(*cell)]
MADE_CELLS = [cell for cell in CELLS if cell[1] in MADE[cell[0]] and not refusal_of(*cell)]
OTHER_CELLS = [cell for cell in CELLS if cell not in {*REFUSED_CELLS, *MADE_CELLS}]


def test_every_mechanism_is_in_the_matrix():
    assert {name for name, _, _ in MECHANISMS.values()} == set(registered_mechanisms())
    assert set(MADE) == set(MECHANISMS)
    made_together = {"privacy-gain"}  # by several parties, from no mechanism of one table
    assert set(GUARANTEES) == {kind for kind, _ in ASKED.values()} | made_together
    assert {asked for every in MADE.values() for asked in every} == set(ASKED)
    assert all(any(set(cell) <= {*one.mechanisms, *one.asked, *one.units} for cell in REFUSED_CELLS) for one in REFUSED)


@pytest.mark.parametrize(("mechanism", "asked", "unit"), MADE_CELLS)
def test_what_is_made_is_confirmed_and_holds_by_the_definition(mechanism, asked, unit):
    (found, people), original = made(mechanism, settings_of(asked), unit), table_of(unit, MECHANISMS[mechanism][2])
    released = found.table.to_table() if hasattr(found.table, "to_table") else found.table
    kind = ASKED[asked][0]
    (own,) = (
        entry
        for entry in found.manifest.guarantees
        if entry["kind"] == kind and entry["unit"] == (ROW if kind in OF_ROWS_ONLY else unit)
    )
    for name, value in ASKED[asked][1].items():
        assert name not in own or own[name] == value
    for entry, promise in zip(found.manifest.guarantees, found.manifest.promised(), strict=True):
        if entry["kind"] in WITHOUT_ORACLE:
            continue
        level = level_by_definition(entry, original, released)
        assert promise.is_met_by(level)
        assert entry["audited"] == pytest.approx(level, rel=5e-3 if promise.rests_on_original else 1e-9)
        if entry["unit"] == ROW and (again := level_of_rows_by_definition(entry, released)) is not None:
            assert level == pytest.approx(again)
    if unit == PERSON:
        of_rows = [entry for entry in found.manifest.guarantees if entry["unit"] == ROW]
        assert {entry["kind"] for entry in of_rows} <= FOLLOWING | OF_ROWS_ONLY
        assert all(entry.get("variant", "distinct") == "distinct" for entry in of_rows)
    assert PERSON not in released.schema.names()
    for places in (np.arange(released.n_rows), None):
        report = audit_release(
            found.table,
            found.manifest.to_dict(),
            AuditorHas(original=original, roles=True, register=people),
            publisher=PublisherKnows(levels_are_stated=True, places=places),
        )
        left = {one.name for one in report.unchecked} - {"figures"}
        of_sorted = OPEN_WHEN_SORTED.get((mechanism, unit), set()) if places is None else set()
        assert report.passed
        assert left == OPEN.get((mechanism, unit), set()) | of_sorted


@pytest.mark.parametrize(("mechanism", "asked", "unit"), REFUSED_CELLS)
def test_what_is_refused_is_refused_for_its_reason(mechanism, asked, unit):
    reason = refusal_of(mechanism, asked, unit)
    with pytest.raises(reason.error, match=reason.said):
        made(mechanism, settings_of(asked), unit)


@pytest.mark.parametrize(("mechanism", "asked", "unit"), OTHER_CELLS)
def test_what_nobody_can_ask_for_is_not_promised(mechanism, asked, unit):
    """There is no parameter for it, or it is one of another promise."""
    if is_askable(mechanism, asked):
        found, _ = made(mechanism, settings_of(asked), unit)
        assert ASKED[asked][0] not in {entry["kind"] for entry in found.manifest.guarantees}
    else:
        name, more, _ = MECHANISMS[mechanism]
        with pytest.raises(InvalidParameterError):
            build_mechanism(name, {**more, **ASKED[asked][1]})
