"""An interrupted regression goes on where it stopped: nothing is charged or drawn twice."""

import numpy as np
import pytest

from helpers.fits import OnStep
from helpers.regressing import SCHEMA, people
from stratsynth import Budget, fit, open_table
from stratsynth.adapters import GroupRegression
from stratsynth.fitting import fitted

WAYS = {
    "combined": {"objective": "balanced", "stage_one": 0.3},
    "tailored": {"mode": "DPSE", "accounting": "parallel"},
    "bounded": {"loss_bounds": {"": 0.1}, "accounting": "parallel", "features": ["G", "X"]},
    "network": {"model": "network", "target": "D", "hidden": 3, "mode": "DPSE", "accounting": "parallel"},
    "one noise for a network": {"model": "network", "target": "D", "hidden": 3, "objective": "balanced"},
}


class Stop(Exception):
    pass


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moment", [1, 2, 5])
def test_it_resumes_without_a_second_charge(tmp_path, way, moment):
    ledger, frame = tmp_path / "people.ledger", people(300)
    how = GroupRegression(**{"target": "Y", "groups": ["G"], "iterations": 4, **WAYS[way]})
    seen = []

    def tick():
        seen.append(1)
        if len(seen) == moment:
            raise Stop

    def opened():
        return open_table(frame, schema=SCHEMA, ledger=ledger, ledger_epsilon=1.0, declared_size=300)

    with pytest.raises(Stop), fitted(how, opened(), Budget(1, 1e-6), observer=OnStep(tick)):
        pass
    release = fit(how, opened(), Budget(1, 1e-6))
    assert all(np.isfinite(array).all() for array in release.model.state().arrays.values())
    assert release.certificate["ledger"]["releases"] == 1
    assert release.certificate["ledger"]["spent_epsilon"] == pytest.approx(1.0)
