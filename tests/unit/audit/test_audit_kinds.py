"""How the audit judges every guarantee is complete, and said once."""

import subprocess
import sys
from dataclasses import fields

import pytest

from sfumato.audit.kinds import JUDGED, Judging, judge
from sfumato.audit.levels.registry import is_measurable
from sfumato.guarantees import GUARANTEES, DifferentialPrivacy


def test_every_guarantee_is_judged_by_entries_that_it_has():
    assert set(JUDGED) == set(GUARANTEES)
    for kind, guarantee in GUARANTEES.items():
        assert set(JUDGED[kind].parameters) <= {one.name for one in fields(guarantee)}


def test_all_but_differential_privacy_can_be_measured_and_say_their_level_first():
    for kind, guarantee in GUARANTEES.items():
        if guarantee is not DifferentialPrivacy:
            assert JUDGED[kind].parameters[0] == guarantee.level.name
            assert is_measurable(guarantee)
    assert not is_measurable(DifferentialPrivacy)


@pytest.mark.slow
def test_the_account_is_complete_whichever_module_is_loaded_first():
    for module in ("kinds", "claims"):
        code = f"import sfumato.audit.{module}; from sfumato.audit.kinds import JUDGED; print(len(JUDGED))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert int(done.stdout) == len(GUARANTEES)


def test_a_kind_is_not_judged_by_two_rules():
    with pytest.raises(TypeError, match="twice"):
        judge("k-anonymity", Judging())
