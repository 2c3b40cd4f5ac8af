"""`scripts/bench fair`: scores of made-up predictions by hand, targets, a run on made-up rows that goes on."""

import numpy as np
import pytest

from benches import fair, fair_fits, fair_more
from benches.fair_fits import PLAIN, Scored, scored
from studies import data


def test_scores_are_accuracy_and_the_gap_between_groups_of_fifty():
    problem = data.correlated(400, 0)
    test = problem.frame.assign(S=np.where(np.arange(400) < 100, "a", "b"))
    positive = np.arange(400) < 130  # all of group a, 30 of the 300 of b
    found = scored(problem, test, positive, 1.5, {"clip": 2.0, "steps": 30})
    assert found.gap == pytest.approx(0.9)
    right = positive == (test.Y == "yes")
    assert found.accuracy == pytest.approx(right.mean())
    assert found.worst == pytest.approx(min(right[s == test.S].mean() for s in ("a", "b")))
    assert (found.seconds, found.clip, found.steps) == (1.5, 2.0, 30)
    odds = scored(problem, test, positive, 1.5, {"gap": {"status": "met"}}, odds=True)
    rates = [[positive[(y == test.Y) & (s == test.S)].mean() for s in ("a", "b")] for y in ("no", "yes")]
    assert odds.gap == pytest.approx(max(np.ptp(line) for line in rates))
    assert odds.status == "met"


def test_of_predictions_by_chance_scores_are_means_over_the_draws():
    problem = data.correlated(200, 0)
    test = problem.frame.assign(S=np.where(np.arange(200) < 100, "a", "b"), Y="yes")
    found = scored(problem, test, np.where(np.arange(200) < 100, 0.25, 0.75), 0.0, {})
    assert (found.accuracy, found.gap, found.worst) == (0.5, 0.5, 0.25)


@pytest.mark.parametrize(("rows", "reached"), [(13_999, None), (14_000, False)])
def test_the_target_is_one_of_many_rows(rows, reached):
    plain, one = [Scored(0.80, 0.1, 0.0, 0.0, 0)], [Scored(0.79, 0.1, 1.0, 1.0, 300)]
    figures = {f.name: f for f in fair._shown("x", 1.0, "fair_sgd", one, plain, rows)}
    lost = figures["x, epsilon 1: fair_sgd, accuracy lost"]
    assert lost.value == pytest.approx(0.01)
    assert lost.reached is reached


def test_the_targets_of_a_wanted_gap_are_of_its_mean_and_of_accuracy():
    title, name = "Adult, epsilon 1: fermi, gap .05", "fermi, gap .05"
    found = [Scored(0.84, gap, 1.0, 1.0, 300, "met") for gap in (0.03, 0.08)]
    figures = {f.name: f for f in fair._shown("Adult", 1.0, name, found, [], 0)}
    assert figures[f"{title}, accuracy"].reached is True
    assert figures[f"{title}, mean gap from 0.05"].value == pytest.approx(0.005)
    assert figures[f"{title}, mean gap from 0.05"].reached is True
    assert figures[f"{title}, met"].value == 1
    figures = {f.name: f for f in fair._shown("Adult", 1.0, name, [Scored(0.83, 0.1, 1.0, 1.0, 300, "missed")], [], 0)}
    assert (figures[f"{title}, accuracy"].reached, figures[f"{title}, mean gap from 0.05"].reached) == (False, False)


def test_it_runs_on_made_up_rows_alone_draws_them_and_goes_on_where_it_was(tmp_path, monkeypatch):
    few = {
        name: {**fair.METHODS[name], **({"iterations": 20} if "private" not in name else {})}
        for name in ("fermi, gap .05 by thresholds", "fair_sgd", "fairlearn, parity .05, not private")
    }
    for module in (fair, fair_fits):
        monkeypatch.setattr(module, "METHODS", few)
    monkeypatch.setattr(fair.brought, "simulated_census", lambda: data.correlated(400, 0))
    found = fair.run(seeds=1, rows=400, epsilons=[3.0], out=str(tmp_path / "kept"))
    names = {figure.name for figure in found}
    private = [name for name in few if "not private" not in name]
    assert {f"made-up loans, epsilon 3: {name}, accuracy" for name in private} <= names
    assert "made-up loans: fairlearn, parity .05, not private, accuracy" in names
    assert "correlated: part of S a" in names
    drawn = (tmp_path / "kept" / "fair.svg").read_text()
    assert "<svg" in drawn
    kept = tmp_path / "kept" / "fair.jsonl"
    kept.write_text(kept.read_text() + '["half a line')

    def again(*_):
        raise AssertionError("a kept fit is made again")

    monkeypatch.setattr(fair_fits, "fit", again)
    assert fair.run(seeds=1, rows=400, epsilons=[3.0], out=str(tmp_path / "kept")) == found
    with pytest.raises(AssertionError, match="made again"):
        fair_fits.Fits(tmp_path / "kept").scored(data.correlated(50, 0), PLAIN, 0.0, 0)


def test_several_groups_and_classes_are_measured(monkeypatch):
    monkeypatch.setattr(fair_more, "SEVERAL", ("fermi, gap .05",))
    monkeypatch.setattr(fair_more, "PENALTIES", (0.0,))
    for name in ("five_groups", "classes"):
        made = getattr(fair_more, name)(2_000)
        monkeypatch.setattr(fair_more, name, lambda made=made: made)
    found = {figure.name: figure.value for figure in fair_more.run(seeds=1)}
    assert "made-up loans, 5 groups, epsilon 1: fermi, gap .05, gap on test rows" in found
    assert 0 < found["built-in census, 3 classes, epsilon 1: fermi, penalty 0, accuracy"] < 1


def test_the_gap_of_several_classes_is_the_largest_of_any():
    problem = data.correlated(200, 0)
    groups = np.where(np.arange(200) < 100, "a", "b")
    said = np.where(np.arange(200) % 100 < np.where(groups == "a", 30, 10), "yes", "no")
    assert fair_more.largest(problem, said, groups) == pytest.approx(0.2)
