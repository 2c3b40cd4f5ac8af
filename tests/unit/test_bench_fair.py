"""`scripts/bench fair`: scores of made-up predictions by hand, and the target by the number of rows."""

import numpy as np
import pytest

from benches import fair
from studies import data


def test_scores_are_accuracy_and_the_gap_between_groups_of_fifty():
    problem = data.correlated(400, 0)
    test = problem.frame.assign(S=np.where(np.arange(400) < 100, "a", "b"))
    positive = np.arange(400) < 130  # all of group a, 30 of the 300 of b
    scored = fair._scored(problem, test, positive, 1.5, {"clip": 2.0, "steps": 30})
    assert scored.gap == pytest.approx(0.9)
    assert scored.accuracy == pytest.approx((positive == (test.Y == "yes")).mean())
    assert (scored.seconds, scored.clip, scored.steps) == (1.5, 2.0, 30)
    odds = fair._scored(problem, test, positive, 1.5, {"gap": {"status": "met"}}, odds=True)
    rates = [[positive[(y == test.Y) & (s == test.S)].mean() for s in ("a", "b")] for y in ("no", "yes")]
    assert odds.gap == pytest.approx(max(np.ptp(line) for line in rates))
    assert odds.status == "met"


@pytest.mark.parametrize(("rows", "reached"), [(13_999, None), (14_000, False)])
def test_the_target_is_one_of_many_rows(rows, reached):
    one = fair.Scored(0.79, 0.1, 1.0, 1.0, 300)
    figures = {f.name: f for f in fair._shown("x", [one], [fair.Scored(0.80, 0.1, 0.0, 0.0, 0)], rows)}
    assert figures["x, accuracy lost"].value == pytest.approx(0.01)
    assert figures["x, accuracy lost"].reached is reached


def test_the_targets_of_a_wanted_gap_are_of_its_mean_and_of_accuracy():
    found = [fair.Scored(0.84, gap, 1.0, 1.0, 300, "met") for gap in (0.03, 0.08)]
    figures = {f.name: f for f in fair._wanted("x", "Adult", "fermi, gap .05", found, 0.05)}
    assert figures["x, accuracy"].reached is True
    assert figures["x, mean gap from 0.05"].value == pytest.approx(0.005)
    assert figures["x, mean gap from 0.05"].reached is True
    assert figures["x, met"].value == 1
    far = [fair.Scored(0.83, 0.1, 1.0, 1.0, 300, "missed")]
    figures = {f.name: f for f in fair._wanted("x", "Adult", "fermi, gap .05", far, 0.05)}
    assert (figures["x, accuracy"].reached, figures["x, mean gap from 0.05"].reached) == (False, False)


def test_it_runs_on_made_up_rows_alone():
    found = {figure.name for figure in fair.run(seeds=1, rows=400, epsilons=[3.0])}
    assert {f"correlated, epsilon 3: {name}, accuracy" for name in fair.METHODS} <= found
