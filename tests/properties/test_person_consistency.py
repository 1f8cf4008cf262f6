"""(k,k) and global (1,k) by persons of small generalized tables against the definitions: all pairs, all matchings."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.audit.levels import fitting_persons as module
from sfumato.audit.levels.fitting_persons import PersonsThatFit
from sfumato.audit.original.assignment import Pairs
from sfumato.audit.reading import cells as bit_rows
from sfumato.audit.reading.columns import Classes
from sizes import examples
from tests import person_oracles as oracles
from tests.properties.test_consistency_properties import is_consistent, measured, releases


def levels(found, persons):
    """(k,k) and global (1,k) by persons, as the audit measures them where it knows whose rows are whose."""
    persons = np.unique(persons, return_inverse=True)[1].astype(np.int64)
    sides = [PersonsThatFit.of_classes(found, persons)]
    sides.append(PersonsThatFit.of_originals(found, persons, found.released_per_original))
    if found.in_one_component is None:
        return min(side.fewest() for side in sides), 0
    assigned = PersonsThatFit.of_originals(
        found, persons, found.assignable_per_original, found.in_one_component
    ).fewest()
    return min(side.fewest() for side in sides), assigned


def drawn(data, is_true=True):
    kinds, rows, texts, meanings = data.draw(releases(is_true))
    persons = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    edges = [[is_consistent(row, meaning) for meaning in meanings] for row in rows]
    return measured(kinds, rows, texts), edges, persons


@pytest.mark.slow
@given(st.data(), st.booleans())
@examples(60)
def test_levels_by_persons_are_those_of_the_definition(data, is_true):
    found, edges, persons = drawn(data, is_true)
    assume(persons)

    assert levels(found, persons) == (oracles.kk_level(edges, persons), oracles.global_level(edges, persons))
    assert oracles.global_level_by_matchings(edges, persons) == oracles.global_level(edges, persons)


@pytest.mark.slow
@given(st.data())
@examples(20)
def test_levels_do_not_depend_on_the_sizes_of_the_pieces(data):
    found, edges, persons = drawn(data)
    assume(persons)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bit_rows, "CHUNK_WORDS", 1)
        patch.setattr(module, "_PAIRS_AT_ONCE", 1)
        patch.setattr(module, "_MOST_WAITING", 0)
        assert levels(found, persons) == (oracles.kk_level(edges, persons), oracles.global_level(edges, persons))


@given(st.data())
@examples(20)
def test_with_one_row_a_person_levels_are_those_of_rows(data):
    found, _, persons = drawn(data)
    assume(persons)

    assert levels(found, list(range(len(persons)))) == (found.level_kk, found.level_global)


@pytest.mark.slow
@given(st.data(), st.sampled_from([1, 1 << 18]))
@examples(50)
def test_bounds_hold_whichever_rows_belong_together(data, at_once):
    """Sorted rows: over all ways in which rows can belong together, the level lies between the bounds."""
    found, edges, persons = drawn(data)
    assume(persons)
    n = len(persons)
    others = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))  # a column that is released as it is
    fits = [[edges[i][j] and others[i] == others[j] for j in range(n)] for i in range(n)]
    ways = [p for p in permutations(range(n)) if all(fits[p[j]][j] for j in range(n))]
    before, after = np.nonzero(np.array(fits))
    single = Classes(np.arange(n), np.ones(n, dtype=np.int64))
    assigned = [{p[i] for p in permutations(range(n)) if all(edges[a][p[a]] for a in range(n))} for i in range(n)]
    for is_global in (False, True):
        own = [assigned[i] if is_global else {j for j in range(n) if edges[i][j]} for i in range(n)]
        possible = [min(len({persons[p[j]] for j in fitting}) for fitting in own) for p in ways]
        numbered = np.unique(persons, return_inverse=True)[1].astype(np.int64)
        n_rows = found.assignable_per_original if is_global else found.released_per_original
        fitting = PersonsThatFit.of_originals(found, numbered, n_rows, found.in_one_component if is_global else ())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_PAIRS_AT_ONCE", at_once)
            least, most = fitting.fewest_whoever(Pairs(single, single, before, after))
        assert least <= min(possible)
        assert max(possible) <= most


def test_bounds_of_rows_that_fit_one_original_each_are_exact():
    """Three released rows, each of one person for certain."""
    kinds, rows = [], [()] * 3
    found = measured(kinds, rows, [[]] * 3)
    persons = np.array([0, 1, 1])
    single = Classes(np.arange(3), np.ones(3, dtype=np.int64))
    own = np.arange(3)

    fitting = PersonsThatFit.of_originals(found, persons, found.released_per_original)
    assert fitting.fewest_whoever(Pairs(single, single, own, own)) == (2, 2)
    assert fitting.fewest_whoever(None) == (0, 3)
