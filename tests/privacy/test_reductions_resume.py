"""An interrupted fit of reductions goes on where it stopped: nothing is charged or drawn twice."""

import pytest

from helpers.fits import OnStep
from helpers.regressing import SCHEMA, people
from stratsynth import Budget, fit, open_table
from stratsynth.adapters import Reductions
from stratsynth.fitting import fitted

WAYS = {
    "gradients": {"iterations": 3, "inner_steps": 2, "start_steps": 2},
    "exponential": {"iterations": 3, "oracle": "exponential", "number": 12, "start_steps": 2},
    "sampling": {"method": "sampling", "number": 12, "start_steps": 2},
    "pure epsilon": {"iterations": 3, "oracle": "exponential", "candidates": "net", "number": 12},
}


class Stop(Exception):
    pass


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moment", [1, 3, 5])
def test_it_resumes_without_a_second_charge(tmp_path, way, moment):
    ledger, frame = tmp_path / "people.ledger", people(300)
    how = Reductions(target="D", groups=["G"], features=["X"], constraints={"equalized_odds": 0.1}, **WAYS[way])
    seen, budget = [], Budget(1, 0 if way == "pure epsilon" else 1e-6)

    def tick():
        seen.append(1)
        if len(seen) == moment:
            raise Stop

    def opened():
        return open_table(frame, schema=SCHEMA, ledger=ledger, ledger_epsilon=1.0)

    with pytest.raises(Stop), fitted(how, opened(), budget, observer=OnStep(tick)):
        pass
    release = fit(how, opened(), budget)
    assert release.certificate["ledger"]["releases"] == 1
    assert release.certificate["ledger"]["spent_epsilon"] == pytest.approx(1.0)
    assert release.model.weights.sum() == pytest.approx(1)
