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


@pytest.mark.parametrize(("rows", "reached"), [(13_999, None), (14_000, False)])
def test_the_target_is_one_of_many_rows(rows, reached):
    one = fair.Scored(0.79, 0.1, 1.0, 1.0, 300)
    figures = {f.name: f for f in fair._shown("x", [one], [fair.Scored(0.80, 0.1, 0.0, 0.0, 0)], rows)}
    assert figures["x, accuracy lost"].value == pytest.approx(0.01)
    assert figures["x, accuracy lost"].reached is reached


def test_it_runs_on_made_up_rows_alone():
    found = {figure.name for figure in fair.run(seeds=1, rows=400, epsilons=[3.0])}
    assert {f"correlated, epsilon 3: {name}, accuracy" for name in fair.METHODS} <= found
