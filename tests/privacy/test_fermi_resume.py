"""An interrupted fit of DP-FERMI goes on where it stopped: no step is charged or drawn twice."""

import numpy as np
import pytest

from helpers.fits import OnStep
from helpers.ledgers import lines_of
from helpers.priced import RATE, STEPS
from helpers.regressing import SCHEMA, people
from stratsynth import Budget, fit, open_table
from stratsynth.adapters import DPFermi
from stratsynth.errors import BudgetRefused
from stratsynth.fitting import fitted

BUDGET = Budget(3, 1e-6)


class Stop(Exception):
    pass


WAYS = {
    "parity": {"penalty": 1.0, "sampling": RATE},
    "odds": {"penalty": 1.0, "sampling": RATE, "criterion": "odds"},
    "a wanted gap": {"gap": 0.05, "sampling": 1.0},
    "a wanted gap by thresholds": {"gap": 0.05, "sampling": 1.0, "thresholds": True},
}


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moment", [1, 2, 3])
def test_it_resumes_without_a_second_charge(tmp_path, way, moment):
    ledger, frame, seen = tmp_path / "people.ledger", people(300), []
    how = DPFermi(target="D", groups=["G"], iterations=STEPS, warm_up=0.5, **WAYS[way])

    def tick():
        seen.append(1)
        if len(seen) == moment:
            raise Stop

    def opened():
        return open_table(frame, schema=SCHEMA, ledger=ledger, ledger_epsilon=5.0, declared_size=300)

    with pytest.raises(Stop), fitted(how, opened(), BUDGET, observer=OnStep(tick)):
        pass
    release = fit(how, opened(), BUDGET)
    assert np.isfinite(release.model.theta).all()
    assert release.certificate["ledger"]["releases"] == 1
    charges = [line for line in lines_of(ledger) if line["kind"] == "charge"]
    assert [line["moment"] for line in charges] == list(range(STEPS))
    with pytest.raises(BudgetRefused):  # another fit is another charge
        fit(how, opened(), BUDGET)
