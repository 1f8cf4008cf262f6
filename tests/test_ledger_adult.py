"""Adult in two years with arrivals and departures: refused, as many as brute force counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from benchmarks.several_releases import QUASI, K, L, two_years
from reproductions.public_data import load_adult
from sfumato.errors import InputError, PrivacyNotAchievableError
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.ledger import Ledger
from sfumato.publishing.proposals.in_memory import InMemory
from sfumato.publishing.propose import propose_release
from sfumato.publishing.publish import publish
from sfumato.publishing.together import checked_together
from sfumato.table.coding import Table

N_PEOPLE = 6_000


@pytest.fixture(scope="module")
def years() -> tuple[Table, Table]:
    try:
        load_adult()
    except InputError as exc:
        pytest.skip(str(exc))
    return two_years(n_rows=N_PEOPLE)


def rows(table: Table) -> list[dict[str, object]]:
    return table.to_arrow().to_pylist()


def published(release: Release, original: Table, ledger: Ledger, path: Path) -> list[dict[str, object]]:
    """Publish with the ledger and read the file back, as anybody would."""
    from sfumato.publishing.reaudit import read_manifest, read_released

    recorded = checked_together(InMemory(release, original), ledger)
    found = publish(release, path, original=original, recorded=recorded)
    assert found.audit.verdict == "confirmed"
    return rows(read_released(path, read_manifest(found.manifest_path)[0]))


def classes_by_person(release: Release, original: Table) -> dict[object, tuple[object, ...]]:
    """Cells of each person's row: the proposal's rows are the original's, or those of them that were kept."""
    kept = range(original.n_rows) if release.kept_rows is None else release.kept_rows.tolist()
    people = rows(original)
    shown = rows(release.table)
    assert len(shown) == len(kept)
    return {people[i]["person"]: tuple(row[q] for q in QUASI) for i, row in zip(kept, shown, strict=True)}


def joint_levels(found: list[dict[object, tuple[object, ...]]], years: tuple[Table, Table]) -> tuple[int, int, int]:
    """Smallest joint class, fewest values in one, and persons below k or l: by the definition, person by person."""
    ill = {row["person"]: row["occupation"] for year in years for row in rows(year)}
    everybody = set(found[0]) | set(found[1])
    joint = {person: (found[0].get(person), found[1].get(person)) for person in everybody}
    sizes = Counter(joint.values())
    values = defaultdict(set)
    for person, both in joint.items():
        values[both].add(ill[person])
    below = [p for p, both in joint.items() if sizes[both] < K or len(values[both]) < L]
    return min(sizes.values()), min(map(len, values.values())), len(below)


def test_two_years_of_adult_are_refused(years, tmp_path):
    first, second = years
    ledger = Ledger(tmp_path / ".sfumato-ledger")
    mechanism = build_mechanism("mondrian", {"k": K, "l": L})
    one, two = propose_release(first, mechanism), propose_release(second, mechanism)
    file = published(one, first, ledger, tmp_path / "one.csv")
    classes = [classes_by_person(one, first), classes_by_person(two, second)]
    smallest, fewest, n_below = joint_levels(classes, years)
    assert (smallest, fewest) == (1, 1)
    assert n_below > 1_000
    with pytest.raises(PrivacyNotAchievableError, match=f"{n_below:,} persons fall below what was promised"):
        checked_together(InMemory(two, second), ledger)
    # the file holds these classes, and nothing else
    assert Counter(classes[0].values()) == Counter(tuple(row[q] for q in QUASI) for row in file)
