"""Risk left in a release, by every attack that applies, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.attack.class_risk import class_size_distribution
from sfumato.attack.correspondence import ABSENT, Correspondence
from sfumato.attack.inference import KeptScores, attribute_inference
from sfumato.attack.reidentification import candidates_per_person, n_found, reidentification_risk
from sfumato.attack.uniques import LARGEST_SET, minimal_uniques
from sfumato.audit.reading.cells import packed
from sfumato.audit.reading.columns import Columns
from sfumato.audit.reading.values import INTERVAL, KNOWN_RULES, MISSING, ONE_OF
from sfumato.errors import InvalidParameterError, NotBinaryError
from sfumato.manifest import AnyTable, Manifest
from sfumato.progress import Progress
from sfumato.schema import Role
from sfumato.table.coding import Table
from sfumato.table.persons import one_row_per_person

# Containment matching on sparse 0/1 tables: an attacker knows some ones of a person, and looks for rows with them all.
#
# The attacker of k-anonymity by containment [kAC17]_ knows items that a person bought, words used or conditions had,
# and nothing of what the person did not. Items that were not released are of no use. The candidates are the released
# rows that have all the known items which were released.
#
# References ---------- .. [kAC17] Zhang, Wang, Cheng, Liu, Zhu, Wang: Feature selection for classification under
# anonymity constraint. Transactions on Data Privacy 10 (2017).


Ids = NDArray[np.int64]
Words = NDArray[np.uint64]

ITEMS_KNOWN = (1, 2, 3, 5)
CROWDS = (2, 5, 10)
MOST_PEOPLE = 2_000


class ContainmentAttack:
    """People's ones, and the released rows that have them.

    Parameters
    ----------
    ones : sparse matrix
        People × items.
    released : sparse matrix
        Released rows × released items.
    place : sequence of int
        For each item its column in the release, -1 for one that was not released.

    Examples
    --------
    >>> people = sp.csr_matrix([[1, 1], [1, 0]])
    >>> attack = ContainmentAttack(people, people, [0, 1])
    >>> attack.candidates(np.array([[0, 1], [0, 0]])).tolist()
    [1, 2]
    """

    def __init__(self, ones: sp.spmatrix, released: sp.spmatrix, place: Sequence[int]) -> None:
        self._ones = sp.csr_matrix(ones)
        by_item = sp.csc_matrix(released)
        self._n_released = by_item.shape[0]
        self._place = np.asarray(place, dtype=np.int64)
        self._bits = np.vstack([*(_bits(by_item, item) for item in range(by_item.shape[1])), self._every()])

    def _every(self) -> Words:
        return packed(np.ones(self._n_released, dtype=np.bool_))

    @property
    def n_items(self) -> Ids:
        """Number of ones of each person."""
        return np.asarray(np.diff(self._ones.indptr), dtype=np.int64)

    def known_items(self, people: Ids, n_known: int, random: np.random.Generator) -> Ids:
        """Draw some different ones of each of these people, who have so many: one row a person."""
        starts, lengths = self._ones.indptr[people], self.n_items[people]
        drawn = np.empty((len(people), n_known), dtype=np.int64)
        for number, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            drawn[number] = self._ones.indices[start + random.choice(length, n_known, replace=False)]
        return drawn

    def candidates(self, known: Ids) -> Ids:
        """Count the released rows that have all known items; items that were not released are passed over."""
        places = self._place[known]
        found = np.zeros(len(known), dtype=np.int64)
        for number, row in enumerate(places):
            common = np.bitwise_and.reduce(self._bits[row], axis=0)  # place -1 is the last row: all bits
            found[number] = np.bitwise_count(common).sum(dtype=np.int64)
        return found


def _bits(by_item: sp.csc_matrix, item: int) -> Words:
    flags = np.zeros(by_item.shape[0], dtype=np.bool_)
    flags[by_item.indices[by_item.indptr[item] : by_item.indptr[item + 1]]] = True
    return packed(flags)


def containment_attack(tables: Correspondence) -> ContainmentAttack | None:
    """Prepare the attack; ``None`` where the released quasi-identifiers are not all 0/1.

    The items are the original's quasi-identifiers where all of them are 0/1 and released as they are or not at all;
    else the released features, which are evaluated on the original.
    """
    released = tables.quasi_identifiers
    try:
        shown = tables.released.ones(released)
    except NotBinaryError:
        return None
    if not released:
        return None
    items = tables.original.with_role(Role.QUASI_IDENTIFIER)
    rules = {tables.recodings[name].rule for name in released if name in tables.recodings}
    ones = _ones(tables.original, items)
    if ones is not None and rules.isdisjoint((ONE_OF, INTERVAL, MISSING)):
        place_of = {tables.source_of(name): place for place, name in enumerate(released)}
        return ContainmentAttack(ones, shown, [place_of.get(item, -1) for item in items])
    if any(tables.source_of(name) is None for name in released):
        return None
    features = _features(tables, released)
    return None if features is None else ContainmentAttack(features, shown, list(range(len(released))))


def _features(tables: Correspondence, released: Sequence[str]) -> sp.csr_matrix | None:
    """Evaluate released 0/1 columns on the original; ``None`` where one of them is not 0/1 there."""
    found = sp.lil_matrix((tables.original.n_rows, len(released)), dtype=np.int8)
    for place, name in enumerate(released):
        recoding = tables.recodings.get(name)
        if tables.released.feature(name) is not None or (recoding is not None and recoding.rule in KNOWN_RULES):
            rows = np.flatnonzero(tables.column(name).places == 1)
        else:
            try:
                rows = tables.original.rows_with_one(tables.source_of(name) or name)
            except NotBinaryError:
                return None
        found[rows, place] = 1
    return found.tocsr()


def _ones(columns: Columns, names: Sequence[str]) -> sp.csr_matrix | None:
    try:
        return columns.ones(names) if names else None
    except NotBinaryError:
        return None


def containment_matching(
    attack: ContainmentAttack,
    *,
    items_known: Sequence[int] = ITEMS_KNOWN,
    crowds: Sequence[int] = CROWDS,
    seed: int = 0,
    most_people: int = MOST_PEOPLE,
) -> list[dict[str, Any]]:
    """Match people of whom a few random ones are known.

    Parameters
    ----------
    items_known : sequence of int
        How many ones the attacker knows.
    crowds : sequence of int
        Numbers k; counted are the people with fewer than k candidates, but at least one.
    most_people : int
        People drawn at random, each with random ones; the same seed draws the same.

    Returns
    -------
    list of dict
        For each number of items: ``n_known``, ``n_people`` (drawn; people with fewer ones are not), ``least`` and
        ``mean`` candidates, ``n_without`` candidates, ``below`` with the share of people for each k, and ``expected``,
        the share found when one candidate is picked at random.
    """
    for name, numbers in (("items_known", items_known), ("crowds", crowds)):
        if any(isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1 for n in numbers):
            raise InvalidParameterError(name, "some are not", allowed="whole numbers of at least 1")
    return [_matched(attack, int(n), crowds, np.random.default_rng([seed, int(n)]), most_people) for n in items_known]


def _matched(
    attack: ContainmentAttack, n_known: int, crowds: Sequence[int], random: np.random.Generator, most_people: int
) -> dict[str, Any]:
    people = np.flatnonzero(attack.n_items >= n_known)
    if len(people) > most_people:
        people = np.sort(random.choice(people, most_people, replace=False))
    found = attack.candidates(attack.known_items(people, n_known, random))
    matched = found[found > 0]
    n_people = max(len(people), 1)
    return {
        "n_known": n_known,
        "n_people": len(people),
        "n_without": len(found) - len(matched),
        "least": int(matched.min()) if len(matched) else None,
        "mean": float(matched.mean()) if len(matched) else None,
        "below": {str(crowd): float(np.count_nonzero(matched < crowd) / n_people) for crowd in crowds},
        "expected": float((1 / matched).sum() / n_people),
    }


N_BACKGROUND = (1, 2, 3)
NOT_APPLICABLE = "not_applicable"

_MOST_SETS_ROWS = 20_000_000
_MOST_COLUMNS = 50
_TIMES_SLOWER = 10  # matching with the nearest rows
_SYNTHETIC = "the released rows were drawn at random and belong to nobody"
_IN_PIECES = "values were moved within buckets, so the 1-values of a row are not those of a person"
_NOT_BINARY = "the released quasi-identifiers are not all 0/1"
_NO_COLUMNS = "no released quasi-identifier comes from a column of the original"
_NO_SENSITIVE = "the original has no sensitive column"


class Attacked:
    """A table that is attacked by its original: what each attack finds, made when it is first asked for.

    Parameters
    ----------
    original, released : Table or BinaryTable
        The original's roles say which columns are sensitive, the release's which are quasi-identifiers. The risk before
        anything is done is that of the original, attacked by itself.
    manifest : Manifest or None
        Tells how columns were recoded; ``None`` takes all released cells as values.
    sample_fraction : float or None
        Share of the population that was released, see :func:`sfumato.attack.class_risk.risks_of_classes`.
    include_target : bool
        Whether to infer the target too.
    seed : int
        Of everything that is drawn.
    kept : KeptScores or None
        What attackers score with the original, from attacks on other releases of it: this is then not measured again.
        See :class:`sfumato.attack.inference.ScoresInMemory`.
    kept_rows : array or None
        Rows of the original that were released, where whoever made the release says so.

    Raises
    ------
    SchemaError
        If released cells cannot be read beside the original's.
    ManifestError
        If the manifest cannot be read.
    """

    def __init__(
        self,
        original: AnyTable,
        released: AnyTable,
        manifest: Manifest | None = None,
        *,
        sample_fraction: float | None = None,
        include_target: bool = False,
        seed: int = 0,
        kept: KeptScores | None = None,
        kept_rows: NDArray[np.intp] | None = None,
    ) -> None:
        self.original, self.released, self.manifest, self.kept_rows = original, released, manifest, kept_rows
        self.tables = Correspondence(original, released, manifest)
        self.sample_fraction, self.include_target, self.seed, self.kept = sample_fraction, include_target, seed, kept
        self._results: dict[str, Any] = {}

    @property
    def rows_are_people(self) -> bool:
        """Whether everybody has one row."""
        return not self.tables.may_repeat

    def result(self, attack: str) -> Any:
        """Give what one of :data:`ATTACKS` finds, or ``{"not_applicable": reason}``."""
        if attack not in self._results:
            self._results[attack] = ATTACKS[attack].run(self)
        return self._results[attack]

    def applied(self, attack: str) -> Any:
        """Give what an attack finds; ``None`` where it does not apply."""
        found = self.result(attack)
        return None if isinstance(found, Mapping) and NOT_APPLICABLE in found else found

    def by_rows(self) -> Self:
        """Give the same table with shares of rows where re-identification was counted by persons as well as by rows."""
        found, other = self.result("reidentification"), copy(self)
        other._results = self._results | {"reidentification": found.get("by_rows", found)}
        return other

    def reidentified(self) -> dict[str, Any]:
        """Re-identification alone, as :func:`risk_of` measures it: ``headline`` and ``reidentification``.

        For those who compare many releases: the other attacks take far longer, and show what is left of one release.
        """
        found = self.result("reidentification")
        return {"headline": _headline(found), "reidentification": found}

    def to_dict(self, progress: Progress | None = None) -> dict[str, Any]:
        """Make every attack, and give what :func:`risk_of` does."""
        found: dict[str, Any] = {}
        for number, name in enumerate(ATTACKS):
            if progress is not None:
                progress(number, len(ATTACKS), name.replace("_", " "))
            found[name] = self.result(name)
        if progress is not None:
            progress(len(ATTACKS), len(ATTACKS), "risk")
        return {"headline": _headline(found["reidentification"]), "rows_are_people": self.rows_are_people} | found


def in_one_unit(before: Attacked, after: Attacked) -> tuple[Attacked, Attacked]:
    """Give an original and a release with risks both of people or, where only these were counted in one, of rows.

    Of one unit there is one risk, so that its mean, and the share re-identified, are never above the highest.
    """
    found = [one.applied("reidentification") for one in (before, after)]
    if None in found or found[0]["counted"] == found[1]["counted"]:
        return before, after
    return before.by_rows(), after.by_rows()


def risk_of(
    original: AnyTable,
    released: AnyTable,
    manifest: Manifest | None = None,
    *,
    sample_fraction: float | None = None,
    include_target: bool = False,
    seed: int = 0,
    kept: KeptScores | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Attack a release in every way that applies.

    Parameters
    ----------
    original, released, manifest, sample_fraction, include_target, seed, kept
        See :class:`Attacked`.

    Returns
    -------
    dict
        ``headline`` (``marketer``: expected share of people named by one who knows all quasi-identifiers;
        ``highest_prosecutor``; both ``None`` where no row is anybody's; ``counted``: ``people``, or ``rows`` where a
        person may have several and persons cannot be counted), ``rows_are_people`` (whether everybody has one row;
        where not, linkage and containment count rows), ``reidentification``, ``class_sizes``, ``uniques``,
        ``inference``, ``linkage`` and ``containment``. Where an attack does not apply, its entry is
        ``{"not_applicable": reason}``. Fit for JSON; no cell value is in it: a feature such as ``sex=f`` is named by
        its column and a number.

    Raises
    ------
    SchemaError
        If released cells cannot be read beside the original's.
    ManifestError
        If the manifest cannot be read.
    InvalidParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Schema
    >>> from sfumato.table.coding import Table
    >>> people = Table.from_arrow(pa.table({"job": ["a", "a", "b"]}), Schema.of([Column("job")]))
    >>> risk_of(people, people)["headline"]
    {'marketer': 0.666666666667, 'highest_prosecutor': 1.0, 'counted': 'people'}
    """
    settings: dict[str, Any] = {"sample_fraction": sample_fraction, "include_target": include_target}
    return Attacked(original, released, manifest, seed=seed, kept=kept, **settings).to_dict(progress)


def attacked_rows(original: AnyTable, manifest: Manifest | None) -> AnyTable:
    """Take the rows of the original that a release was made of: without those that were left out beforehand.

    Who was left out beforehand cannot be found, and would make the risk of the others look smaller.
    """
    if manifest is None:
        return original
    if manifest.missing.get("rows") == "dropped" and isinstance(original, Table):
        original = original.without_incomplete_rows()
    kept = (manifest.input or {}).get("one_row_per_person")
    return one_row_per_person(original, kept["rule"], kept["column"]) if kept else original


def _headline(found: Mapping[str, Any]) -> dict[str, Any]:
    if NOT_APPLICABLE in found:
        return {"marketer": None, "highest_prosecutor": None, NOT_APPLICABLE: found[NOT_APPLICABLE]}
    highest = found["prosecutor"]["highest"]
    return {"marketer": found["marketer"], "highest_prosecutor": highest, "counted": found["counted"]}


def _reidentification(attacked: Attacked) -> dict[str, Any]:
    if attacked.tables.is_synthetic:
        return {NOT_APPLICABLE: _SYNTHETIC}
    return reidentification_risk(attacked.tables, sample_fraction=attacked.sample_fraction)


def _class_sizes(attacked: Attacked) -> Any:
    if attacked.tables.is_synthetic:
        return {NOT_APPLICABLE: _SYNTHETIC}
    return class_size_distribution(attacked.tables.classes.sizes)


def _uniques(attacked: Attacked) -> dict[str, Any]:
    tables = attacked.tables
    if tables.is_synthetic:
        return {NOT_APPLICABLE: _SYNTHETIC}
    found = minimal_uniques(tables.released, tables.quasi_identifiers, largest=LARGEST_SET, within=tables.pieces)
    return found.summary(_shown_names(tables, tables.quasi_identifiers))


def _shown_names(tables: Correspondence, names: Sequence[str]) -> dict[str, str]:
    """Name features by their column and a number, because their own names hold cells, as ``sex=f`` does.

    The number is the feature's place in the original if that has it, so that it is the same before and after.
    """
    places = {name: number for number, name in enumerate(names, start=1)}
    places |= {name: number for number, name in enumerate(tables.original.names, start=1) if name in places}
    shown: dict[str, str] = {}
    for name in names:
        feature, recoding = tables.original.feature(name) or tables.released.feature(name), tables.recodings.get(name)
        column = feature.column if feature is not None else name
        if column == name and recoding is not None:
            column = recoding.column
        shown[name] = name if column == name else f"{column} (feature {places[name]})"
    return shown


def _inference(attacked: Attacked) -> Any:
    settings: dict[str, Any] = {"include_target": attacked.include_target, "seed": attacked.seed, "kept": attacked.kept}
    return attribute_inference(attacked.tables, **settings) or {NOT_APPLICABLE: _NO_SENSITIVE}


def _containment(attacked: Attacked) -> Any:
    tables, manifest = attacked.tables, attacked.manifest
    if tables.is_synthetic or tables.is_in_pieces:
        return {NOT_APPLICABLE: _SYNTHETIC if tables.is_synthetic else _IN_PIECES}
    attack = containment_attack(tables)
    if attack is None:
        return {NOT_APPLICABLE: _NOT_BINARY}
    promised = [entry.get("k") for entry in manifest.guarantees] if manifest is not None else []
    crowds = sorted({*CROWDS, *(k for k in promised if isinstance(k, int) and k > 1)})
    return containment_matching(attack, crowds=crowds, seed=attacked.seed)


def _linkage(attacked: Attacked) -> Any:
    """Find the set of 1, 2 and 3 columns by which most people are found, then most expected.

    All sets are tried while sets × rows are up to 20 million (2 million where cells were changed, and the nearest rows
    are sought); else the worst set before is grown by each column that is left, of the 50 that tell most alone.
    """
    tables = attacked.tables
    if tables.is_synthetic:
        return {NOT_APPLICABLE: _SYNTHETIC}
    names = list(tables.sources)
    if not names:
        return {NOT_APPLICABLE: _NO_COLUMNS}
    worst: list[dict[str, Any]] = []
    n_rows = tables.original.n_rows * (_TIMES_SLOWER if tables.may_differ else 1)
    single = {name: _linked(tables, (name,)) for name in names}
    likely = sorted(names, key=lambda name: _order(single[name]))[:_MOST_COLUMNS]
    for size in N_BACKGROUND:
        if size > len(names):
            break
        tries_all = size == 1 or comb(len(names), size) * n_rows <= _MOST_SETS_ROWS
        sets: Iterable[Sequence[str]] = combinations(names, size)
        if not tries_all:
            sets = ((*worst[-1]["columns"], name) for name in likely if name not in worst[-1]["columns"])
        found = list(single.values()) if size == 1 else [_linked(tables, tuple(chosen)) for chosen in sets]
        best = min(found, key=_order)
        worst.append(best | {"n_sets_tried": len(found), "tried_all_sets": tries_all})
    shown = _shown_names(tables, names)
    return [entry | {"columns": [shown[name] for name in entry["columns"]]} for entry in worst]


def _order(found: Mapping[str, Any]) -> tuple[int, float]:
    return -found["n_reidentified"], -found["expected"]


def _linked(tables: Correspondence, background: tuple[str, ...]) -> dict[str, Any]:
    names = tuple(name for source in background for name in tables.sources[source])
    per_person, own = candidates_per_person(tables, names)
    confidence = np.where(per_person > 0, 1 / np.maximum(per_person, 1), 0.0)
    if own is not None and (own == ABSENT).any():
        confidence = confidence[own != ABSENT]
    return {
        "n_background": len(background),
        "columns": list(background),
        "n_reidentified": n_found(per_person, own),
        "expected": round(float(confidence.sum()), 9),
    }


@dataclass(frozen=True)
class Attack:
    """A way to attack a release; ``title`` is what people read of it, and empty where it is no attack of its own."""

    title: str
    run: Callable[[Attacked], Any]


ATTACKS: Mapping[str, Attack] = {
    "reidentification": Attack("Finding a person by all quasi-identifiers", _reidentification),
    "class_sizes": Attack("", _class_sizes),
    "uniques": Attack("Uniqueness on a few columns", _uniques),
    "inference": Attack("Guessing a sensitive value", _inference),
    "linkage": Attack("Linking with another table", _linkage),
    "containment": Attack("Matching by known 1-values", _containment),
}
"""In the order in which they are made and shown; figures read what they find (:mod:`sfumato.figures`)."""
