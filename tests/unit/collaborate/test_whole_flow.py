"""Schema by union, agreement and release over the secure sum itself, all parties in one process."""

import numpy as np
import pytest

import sfumato
from sfumato.collaborate.schema_session import private_union
from sfumato.collaborate.secure_sum import SecureSum
from sfumato.collaborate.session.agreement import AgreementRule, agree
from sfumato.collaborate.session.party import ProjectionReleaser, SessionRecord
from sfumato.collaborate.shared_schema import SharedSchema, own_values
from sfumato.errors import PrivacyNotAchievableError
from sfumato.publishing.publish import publish
from unit.collaborate.plain_sums import table_of
from unit.collaborate.sessions import THREE, run

ROWS = 90
RNG = np.random.default_rng(1)
LABELS = RNG.integers(3, size=ROWS)
WHOLE = table_of(
    {
        f"q{n}": np.where(RNG.random(ROWS) < 0.5, LABELS, RNG.integers(n, size=ROWS)).astype(str).tolist()
        for n in range(2, 8)
    }
    | {"y": LABELS.astype(str).tolist()}
)
PARTS = {name: WHOLE.take(np.arange(i, ROWS, 3)) for i, name in enumerate(THREE)}


def flow(mode, rule, threshold):
    def work(session):
        sums = SecureSum(session, mode=mode)
        held = {name: own_values(PARTS[session.me], name) for name in WHOLE.schema.names()}
        union = private_union(sums, held, expected=50)
        schema = SharedSchema.of_values({name: union[name] for name in union if name != "y"}, {"y": union["y"]})
        counts = schema.counts(PARTS[session.me])
        return schema, agree(sums, schema, counts, min_privacy_gain=threshold, rule=rule)

    return run(work)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["seeds", "shares"])
@pytest.mark.parametrize("rule", [AgreementRule(), AgreementRule(privacy="average")], ids=["pooled", "average"])
def test_parties_agree_and_publish(tmp_path, mode, rule):
    found = flow(mode, rule, 0.2)

    assert len({outcome[0].hash() for outcome in found.values()}) == 1
    assert len({outcome[1].removed for outcome in found.values()}) == 1
    for name, (schema, agreed) in found.items():
        session = SessionRecord("s-1", mode, dict.fromkeys(THREE, "00" * 32), rule.to_dict())
        release = sfumato.release(PARTS[name], ProjectionReleaser(schema, agreed.removed, 0.2, session))
        done = publish(release, tmp_path / f"{name}.csv", original=PARTS[name])

        assert done.audit.passed
        assert done.audit.levels[0] == pytest.approx(agreed.own_gains[-1])


def test_the_result_over_the_secure_sum_is_that_of_all_rows_in_one_place():
    schema, agreed = flow("seeds", None, 0.1)["b"]
    totals = dict(zip(schema.names, schema.matrices(schema.counts(WHOLE)), strict=True))

    assert all(np.array_equal(agreed.totals[name], totals[name]) for name in schema.names)


def test_all_parties_end_with_the_same_reachable_gain():
    found = flow("seeds", None, 0.9)

    assert all(isinstance(outcome, PrivacyNotAchievableError) for outcome in found.values())
    assert len({outcome.best_level for outcome in found.values()}) == 1
