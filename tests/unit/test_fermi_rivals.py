"""Baselines of paper 004 beside `fermi`: the Lagrangian dual approach, single fits, and problems that readers bring."""

import math

import numpy as np
import pandas as pd
import pytest

from stratsynth.errors import UsageError
from stratsynth.evaluation.fermi.columns import CurveFit
from stratsynth.evaluation.fermi.curve import CurveRows
from studies import brought, data
from studies.fermi import STUDY, rivals
from studies.fermi.lagrangian import MOST, _dual, dual_fits

PROBLEM = data.correlated(2000, 0, 2.0)


def measured(criterion, steps, epsilon=math.inf):
    """Violations and errors of the dual approach, one a step of its multipliers."""
    settings = {"target": "Y", "groups": ["S"], "criterion": criterion, "iterations": 100, "clip": 20.0}
    models = dual_fits(
        PROBLEM.frame, PROBLEM.schema, [CurveFit(up, epsilon, 0) for up in steps], delta=1e-6, settings=settings
    )
    seen = CurveRows.of(PROBLEM.frame, PROBLEM.schema, "Y", ["S"])
    found = [seen.measured(seen.predictions(model)) for model in models]
    return [one[criterion] for one in found], [one["error"] for one in found]


@pytest.mark.parametrize("criterion", ["parity", "odds"])
def test_without_noise_larger_steps_of_the_multipliers_leave_less_of_the_gap(criterion):
    apart, wrong = measured(criterion, [0.0, 0.01, 0.1])
    assert apart[0] > apart[1] > apart[2]
    assert apart[2] < 0.5 * apart[0]
    assert wrong[2] > wrong[0]


def test_a_multiplier_grows_by_the_size_of_a_gap_never_falls_and_has_an_end():
    records, shape = np.array([[[30.0, 70.0]]]), (1, 2)
    apart = np.array([[[0.6 * 30, 0.4 * 70]]])  # everybody's mean is .46
    grown, slopes = _dual(records, np.array([[[1.0, 1.0]]]), apart, np.array([0.5]), shape)
    assert grown[0, 0] == pytest.approx([1 + 0.5 * 0.14, 1 + 0.5 * 0.06])
    # the derivative of sum of multiplier_g |v_g| times the records, by the probability of a row of each group
    pull = grown[0, 0] * [1, -1]
    assert slopes[0] == pytest.approx(
        [100 * (pull[0] / 30 - pull.sum() / 100), 100 * (pull[1] / 70 - pull.sum() / 100)]
    )
    assert _dual(records, np.full((1, 1, 2), MOST), apart, np.array([0.5]), shape)[0].max() == MOST
    even, _ = _dual(records, np.ones((1, 1, 2)), np.array([[[15.0, 35.0]]]), np.array([0.5]), shape)
    assert even.tolist() == [[[1, 1]]]


def test_rivals_are_lines_of_a_trade_off_curve(monkeypatch):
    few = {
        "fair_sgd": {0.0: {"mitigation": "none", "iterations": 10}},
        "reductions": {0.1: {"iterations": 2, "constraints": {}}},
    }
    monkeypatch.setattr(rivals, "_single", lambda _: few)
    monkeypatch.setattr(rivals, "STEPS_UP", (0.01,))
    made = data.correlated(300, 0)
    frame = rivals.rivals(made, made.frame, made.frame, "parity", [3.0], delta=1e-6, seeds=1, iterations=10)
    assert frame["method"].tolist() == ["Lagrangian dual", "fair_sgd", "reductions"]
    assert frame["penalty"].tolist() == [0.01, 0.0, 0.1]
    assert frame["error"].between(0, 1).all()
    assert set(frame["criterion"]) == {"parity"}


def people(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(200)],
            "age": rng.integers(20, 80, 200),
            "test_time": rng.uniform(0, 9, 200),
            "sex": rng.integers(0, 2, 200),
            "town": rng.choice(["a", "b"], 200),
            "score": rng.uniform(0, 60, 200),
        }
    )
    frame.loc[0, "test_time"] = np.nan
    path = folder / "people.csv"
    frame.to_csv(path, index=False)
    return path, frame


def test_a_file_of_ones_own_is_a_problem_of_its_numbers_and_values(tmp_path):
    path, frame = people(tmp_path)
    problem = brought.named(path, "score", "sex", above=30, leave=["id"])
    assert (problem.name, problem.target, problem.group, problem.positive) == ("people", "score", "sex", "yes")
    assert problem.features == ["age", "test_time", "town", "sex"]
    assert len(problem.frame) == 199  # a row without a number is left out
    assert (problem.frame.score == "yes").sum() == (frame.score[1:] > 30).sum()
    assert problem.schema.column("age").upper == frame.age.max()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target": "score"}, "score has 199 values, and two are needed"),
        ({"target": "town", "above": 3}, "town is no number"),
        ({"target": "town", "leave": ["sex"]}, "sex cannot be left out"),
        ({"target": "town", "leave": []}, "id has more than 100 values that are no numbers: --leave id"),
        ({"target": "colour"}, "people.csv lacks the column colour"),
    ],
)
def test_files_that_make_no_problem_are_refused_with_the_remedy(tmp_path, settings, words):
    path, _ = people(tmp_path)
    with pytest.raises(UsageError, match=words):
        brought.named(path, group="sex", **{"leave": ["id"], **settings})


def test_a_file_goes_with_its_target_and_its_attribute(tmp_path, capsys):
    path, _ = people(tmp_path)
    assert STUDY.main(["--data", str(path), "--target", "score"]) == 2
    assert "--data goes with --target and --by" in capsys.readouterr().err


def test_the_problem_of_few_rows_is_measured_on_rows_that_no_model_saw():
    problem = brought.scarce(100)
    train, test = problem.split(np.random.default_rng(0))
    assert (len(train), len(test)) == (100, brought.MEASURED)
    assert sum(name.startswith("Z") for name in problem.features) == brought.IDLE
    made = brought.loans(500)
    assert made.frame.equals(brought.loans(500).frame)
    assert made.frame.groupby("SEX").INCOME.mean().is_monotonic_increasing


def test_incomes_are_of_those_who_work(tmp_path):
    frame = pd.DataFrame(
        {
            "AGEP": [30, 15, 40, 50],
            "PINCP": [60_000, 60_000, 20_000, 50],
            "WKHP": [40, 40, 40, 40],
            "PWGTP": [1, 1, 1, 1],
            "SEX": [1, 1, 2, 2],
            "COW": ["1", "1", "2", "2"],
            "SCHL": [21, 21, 16, 16],
            "MAR": [1, 1, 5, 5],
            "RAC1P": [1, 1, 2, 2],
        }
    )
    frame.to_parquet(tmp_path / "acs.parquet")
    problem = brought.income(tmp_path / "acs.parquet")
    assert problem.frame[["SEX", "INCOME"]].to_numpy().tolist() == [["male", "yes"], ["female", "no"]]
