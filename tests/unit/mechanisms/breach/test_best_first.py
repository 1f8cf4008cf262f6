"""Best-first search against a plain re-telling of Weka's, and against trying every set; the wrapper as a mechanism."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.audit import audit_release
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.mechanisms.breach.best_first import best_first_search, repeated_score
from sfumato.mechanisms.breach.wrapper import BestFirstWrapper
from sfumato.mechanisms.registry import build_mechanism
from unit.audit.audit_oracles import sealed, table_of


def every_set(n_columns):
    return [chosen for size in range(n_columns + 1) for chosen in combinations(range(n_columns), size)]


def scores_of(draws, n_columns):
    return dict(zip(every_set(n_columns), draws, strict=True))


def told_again(worth, n_columns, forward, n_stale):
    """Weka's search with its list: sorted, bounded, and a set that is met again may enter it again."""
    best = frozenset() if forward else frozenset(range(n_columns))
    merit = worth[tuple(sorted(best))]
    waiting = [(best, merit)]
    stale = 0
    while stale < n_stale and waiting:
        present, _ = waiting.pop(0)
        better = False
        for column in range(n_columns):
            if forward == (column in present):
                continue
            other = present | {column} if forward else present - {column}
            own = worth[tuple(sorted(other))]
            place = 0
            while place < len(waiting) and own <= waiting[place][1]:
                place += 1
            if place < n_stale:
                waiting.insert(place, (other, own))
                waiting = waiting[:n_stale]
            if own - merit > 0.00001 if forward else own > merit or (own == merit and len(other) < len(best)):
                best, merit, better = other, own, True
        stale = 0 if better else stale + 1
    return tuple(sorted(best))


SMALL = st.integers(1, 4).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.sampled_from([i / 8 for i in range(9)]), min_size=2**n, max_size=2**n))
)


@given(SMALL, st.booleans(), st.integers(1, 5))
def test_the_search_is_wekas(drawn, forward, n_stale):
    n_columns, draws = drawn
    worth = scores_of(draws, n_columns)

    found = best_first_search(
        worth.__getitem__, n_columns, direction="forward" if forward else "backward", n_stale=n_stale
    )

    assert found.columns == told_again(worth, n_columns, forward, n_stale)
    assert found.score == worth[found.columns]
    assert 1 <= found.n_scored <= 2**n_columns


@given(SMALL)
def test_with_patience_enough_it_finds_the_best_of_all_sets(drawn):
    """Sets that are met again take places on the list, so the patience must be larger than their number."""
    n_columns, draws = drawn
    worth = scores_of(draws, n_columns)

    for direction in ("forward", "backward"):
        found = best_first_search(worth.__getitem__, n_columns, direction=direction, n_stale=500)
        assert found.score == max(draws)


def test_backward_takes_the_smaller_of_equal_sets_and_forward_stays():
    same = dict.fromkeys(every_set(3), 0.7)

    assert best_first_search(same.__getitem__, 3, direction="backward").columns == ()
    assert best_first_search(same.__getitem__, 3, direction="forward").columns == ()
    worth = same | {(0,): 0.700005, (1,): 0.70002}
    assert best_first_search(worth.__getitem__, 3).columns == (1,)


@pytest.mark.parametrize(("settings", "said"), [({"direction": "up"}, "direction"), ({"n_stale": 0}, "n_stale")])
def test_settings_that_are_none_are_refused(settings, said):
    with pytest.raises(InvalidParameterError, match=said):
        best_first_search(lambda _: 0.0, 2, **settings)


class Scored:
    """Scores that are known beforehand; counts how often it is asked."""

    def __init__(self, mean):
        self.mean, self.n_asked = mean, 0

    def scores(self, columns):
        self.n_asked += 1
        return np.array([self.mean - 0.1, self.mean + 0.1])


def test_cross_validations_are_repeated_until_the_error_is_known():
    """Errors .4 and .4 deviate by nothing; .4 and .5 by .05 of .45, and the mean of .4, .5, .45 by a tenth of it."""
    times = [Scored(0.6), Scored(0.6), Scored(0.9)]
    assert repeated_score(times, (0,)) == pytest.approx(0.6)
    assert [time.n_asked for time in times] == [1, 1, 0]
    times = [Scored(0.6), Scored(0.5), Scored(0.55)]
    assert repeated_score(times, (0,)) == pytest.approx(0.55)
    assert [time.n_asked for time in times] == [1, 1, 1]


def people(n_rows=300, seed=3):
    """Forty columns of noise drown what one column tells about the secret; the same column predicts the target."""
    rng = np.random.default_rng(seed)
    secret = rng.integers(2, size=n_rows)
    telling = secret ^ (rng.random(n_rows) < 0.2)
    columns = {f"n{i}": rng.integers(40, size=n_rows) for i in range(40)} | {"telling": telling}
    y = telling ^ (rng.random(n_rows) < 0.1)
    roles = {"secret": sfumato.Role.SENSITIVE, "y": sfumato.Role.TARGET}
    return table_of({**columns, "secret": secret, "y": y}, roles)


TABLE = people()


def test_what_helps_an_attacker_is_refused_where_that_is_asked_for():
    with pytest.raises(PrivacyNotAchievableError, match="performance alone") as refused:
        BestFirstWrapper(allow_increase=False).release(TABLE)
    assert refused.value.best_level > 0
    assert "allow_increase" in str(refused.value)


@pytest.mark.slow
def test_what_is_released_states_the_measured_gain_as_an_estimate():
    release = BestFirstWrapper().release(TABLE)
    (bound,) = release.manifest.promised()
    measured = release.manifest.evidence["risk"]["breach_increase_percent"]

    assert bound.kind == "breach-bound"
    assert "telling" in bound.columns
    assert "secret" not in release.table.schema
    assert 0 < bound.max_breach_increase == pytest.approx(measured, rel=0.01)
    assert bound.describe().startswith("estimated, not proven")
    assert "had no part" in release.manifest.evidence["search"]["chosen_by"]
    report = audit_release(
        release.table,
        release.with_order_kept().manifest.to_dict(),
        AuditorHas(original=TABLE),
        publisher=PublisherKnows(levels_are_stated=False),
    )
    assert report.passed, report.failures


@pytest.mark.slow
def test_a_smaller_gain_than_measured_is_not_believed():
    manifest = BestFirstWrapper().release(TABLE).with_order_kept().manifest.to_dict()
    released = BestFirstWrapper().release(TABLE).table
    bound = manifest["guarantees"][0]
    said = f"{bound['max_breach_increase']:g}% better"
    bound["max_breach_increase"] = 0.0
    bound["statement"] = bound["statement"].replace(said, "0% better")

    report = audit_release(
        released, sealed(manifest), AuditorHas(original=TABLE), publisher=PublisherKnows(levels_are_stated=False)
    )

    assert [check.name for check in report.checks if not check.passed] == ["breach-bound: level"]


@pytest.mark.slow
def test_the_choice_does_not_depend_on_the_sensitive_column():
    other = np.random.default_rng(9).integers(2, size=TABLE.n_rows)
    columns = {name: TABLE[name].codes for name in TABLE.schema.names() if name != "secret"}
    roles = {"secret": sfumato.Role.SENSITIVE, "y": sfumato.Role.TARGET}
    chosen = [
        BestFirstWrapper().release(table).manifest.promised()[0].columns
        for table in (TABLE, table_of({**columns, "secret": other}, roles))
    ]

    assert chosen[0] == chosen[1]


def test_where_nothing_is_better_than_guessing_the_best_single_column_is_taken():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(60, 2)).astype(float)
    y = np.array([0] * 50 + [1] * 10)

    assert BestFirstWrapper().fit(X, y).get_support().sum() == 1


def test_it_is_built_by_name():
    assert build_mechanism("best-first-wrapper", {"learner": "c45", "n_stale": "3"}).n_stale == 3
