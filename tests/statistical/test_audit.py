"""Every question of the real driver audited, and every broken driver caught.

No test here fails by bad luck: a violation is judged at 1e-4, and in two runs, each with noise of its own; the numbers
of runs leave all other bounds five or more standard deviations away.
"""

import pytest

from helpers.audits import judged_twice
from stratsynth.accounting.budget import Neighbours
from stratsynth.evaluation.audit import audit_primitives
from stratsynth.evaluation.audit.attribute import attribute_steps
from stratsynth.evaluation.audit.choices import choices, enumerated
from stratsynth.evaluation.audit.harness import HALF, THREE_QUARTERS
from stratsynth.evaluation.audit.report import NEEDED
from stratsynth.evaluation.audit.sampled import sampled_steps
from stratsynth.evaluation.audit.tables import move, tables
from stratsynth.evaluation.audit.totals import gaussian_total, laplace_total

TIGHT = 0.6
FAMILIES = {
    "counts": (tables, 200_000),
    "one table": (lambda: tables(1), 200_000),
    "exact": (lambda: tables(accounting="exact"), 200_000),
    "move": (move, 200_000),
    "choose": (choices, 12_000),
    "total": (gaussian_total, 80_000),
    "exchanged": (lambda: gaussian_total(Neighbours.REPLACE), 80_000),
    "pure": (laplace_total, 50_000),
    "sampled": (sampled_steps, 11_200),
    "attribute": (attribute_steps, 24_000),
}


@pytest.fixture(scope="module", params=FAMILIES)
def audit(request):
    make, runs = FAMILIES[request.param]
    experiment = make()
    return judged_twice(lambda: experiment.run(runs))


def test_nothing_is_lost_beyond_the_claim_and_nearly_all_of_it_is_seen(audit):
    assert audit.verdict == "within"
    assert audit.lower >= TIGHT * audit.claim
    assert audit.sure <= audit.claim


def test_every_broken_driver_is_caught(audit):
    assert {HALF, THREE_QUARTERS} <= {control.name for control in audit.controls}
    for control in audit.controls:
        assert control.must
        assert control.power >= NEEDED
        assert control.state == "caught", control


def test_broken_drivers_lose_what_their_fault_says(audit):
    if audit.unit == "mu":
        half, quarters = audit.controls[:2]
        assert half.lower == pytest.approx(2 * audit.claim, rel=0.3)
        assert quarters.lower == pytest.approx(audit.claim / 0.75, rel=0.2)


def test_no_law_of_a_choice_passes_its_epsilon():
    """Also exhausted: some tables and candidates reach it."""
    found = enumerated(400)
    assert found.verdict == "within"
    assert found.lower > 0.9
    assert [control.state for control in found.controls] == ["caught", "caught"]


def test_a_move_costs_more_than_adding_or_removing():
    found = judged_twice(lambda: move().run(200_000))
    cheap = found.controls[-1]
    # `sure` is the bound that judges; `lower`, of a lesser level, may pass a claim that holds
    assert cheap.claim < found.sure < min(found.lower, found.claim)
    assert found.claim == pytest.approx(2**0.5 * cheap.claim)
    assert cheap.state == "caught"


@pytest.mark.slow
def test_the_long_form():
    report = audit_primitives(long=True)
    assert report.passed, report.to_text()
    assert all(audit.share > 0.7 for audit in report.audits)
