"""Fits of reductions to answers, and refusals before anything is charged."""

import math

import numpy as np
import pandas as pd
import pytest

from helpers.reducing import BUDGET, FEW, SCHEMA, asked_by, people
from helpers.small import even
from stratsynth import Budget, Categorical, Schema, Stratified, fit, open_table
from stratsynth.accounting.charges import Spending
from stratsynth.adapters import Reductions
from stratsynth.adapters.reductions.amounts import Amount
from stratsynth.adapters.reductions.oracles import DescentOracle, ExponentialOracle, OracleCost, shifted, thresholds
from stratsynth.adapters.reductions.rates import Sizes
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.errors import BudgetRefused, UsageError
from stratsynth.mechanisms import Public
from stratsynth.planning.foresee import plan
from stratsynth.questions import Choose, Counts, Gradients, Total


def odds(model, frame):
    """The largest difference of false positive or false negative rates, and the error, by exact chances."""
    p, yes = model.probabilities(model.shown(frame))[:, 1], (frame.D == "yes").to_numpy()
    found = [abs(p[(yes == d) & (frame.G == "a")].mean() - p[(yes == d) & (frame.G == "b")].mean()) for d in (0, 1)]
    return max(found), float(np.where(yes, 1 - p, p).mean())


@pytest.mark.parametrize(
    ("how", "most"),
    [
        ({}, 0.03),
        ({"mixing": "classic", "iterations": 60, "multiplier": 1.0, "smoothness": 0.1}, 0.08),
        ({"oracle": "exponential", "features": ["X", "G"]}, 0.03),
        ({"smoothing": "softmax"}, 0.03),
    ],
)
def test_odds_are_equalised_at_little_error(how, most):
    frame = people(4000)
    plain, _ = asked_by(Reductions(groups=["G"], features=["X", "G"], iterations=1), frame)
    settings = {"groups": ["G"], "features": ["X", "G"], "constraints": {"equalized_odds": 0.02}, **how}
    fair, _ = asked_by(Reductions(**settings), frame)
    (before, error), (after, paid) = odds(plain, frame), odds(fair, frame)
    assert before > 0.1
    assert after < most
    assert paid < error + 0.05


def test_what_is_stated_is_what_counting_gives():
    frame = people(3000)
    model, _ = asked_by(Reductions(groups=["G"], constraints={"equalized_odds": 0.05}), frame)
    violation, error = odds(model, frame)
    objective, constraint = model.facts["goals"]
    assert objective["value"] == pytest.approx(error, abs=2e-3)
    assert constraint["value"] == pytest.approx(violation, abs=5e-3)
    assert constraint["status"] == ("holds" if constraint["value"] <= 0.05 else "broken")
    alone = model.without_chance()
    violation, error = odds(alone, frame)
    assert alone.facts["deterministic"][0]["value"] == pytest.approx(error, abs=2e-3)
    assert alone.facts["deterministic"][1]["value"] == pytest.approx(violation, abs=5e-3)


@pytest.mark.parametrize("objective", ["error", "worst_error", "g_mean", "h_mean"])
def test_with_epsilon_to_infinity_the_best_of_two_hundred_thresholds_is_drawn(objective):
    """Brute force over all of them."""
    frame = people(1500)
    how = Reductions(
        features=["X"],
        groups=["G"],
        method="sampling",
        candidates="thresholds",
        number=200,
        objective=objective,
        constraints={"equalized_odds": 0.2},
    )
    model, asked = asked_by(how, frame, clear=1e12)
    (choice,) = [a.question for a, _ in asked if isinstance(a.question, Choose)]
    assert len(choice.scores) == 200
    tables = np.array(load_rows(SCHEMA, open_source(frame)).sums([((), choice.scores[0].query, 1.0)], None)[0]) / 2**30
    truth = pd.crosstab(frame.G, frame.D).to_numpy(float)
    goal = how.goal(Sizes(("a", "b"), truth))
    values = np.array([goal.value(table) for table in tables])
    chosen = np.flatnonzero((thresholds(200) == model.thetas[0]).all(axis=1))[0]
    assert values[chosen] <= values.min() + 1e-9


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"oracle": "exponential"},
        {"method": "sampling"},
        {"oracle": "exponential", "candidates": "net"},
        {"sizes": {"a|no": 9, "a|yes": 9, "b|no": 9, "b|yes": 9}, "sizes_citation": "here"},
        {"objective": "worst_log_loss", "constraints": {"bounded_squared_loss": 0.2}},
    ],
)
def test_a_fit_spends_its_budget_and_no_more(settings):
    budget = Budget(1, 1e-9)
    how = Reductions(
        **{
            "groups": ["G"],
            "constraints": {"equalized_odds": 0.1},
            "iterations": 4,
            "number": 10,
            **FEW,
            **settings,
        }
    )
    _, asked = asked_by(how, people(100), budget=budget, clear=1.0)
    charges = [charge for _, each in asked for charge in each]
    spent = float(Spending(budget.neighbours, charges).spent())
    assert spent <= budget.zcdp().amount
    assert spent == pytest.approx(budget.zcdp().amount, rel=1e-6)
    kinds = {type(a.question) for a, _ in asked}
    assert kinds == how.needs
    assert (Counts in kinds) == ("sizes" not in settings)


def test_every_step_asks_for_losses_before_the_next_weights():
    _, asked = asked_by(Reductions(groups=["G"], iterations=3, inner_steps=2, start_steps=1), people(50))
    kinds = [type(a.question.query).__name__ if isinstance(a.question, Total) else "Counts" for a, _ in asked]
    assert kinds == ["Counts", "Gradients", *["Gradients", "Gradients", "Confusions"] * 3]


def test_losses_of_probabilities_are_asked_after_the_counts():
    how = Reductions(groups=["G"], objective="log_loss", constraints={"bounded_squared_loss": 0.2}, iterations=1, **FEW)
    _, asked = asked_by(how, people(50))
    *_, counts, squared, log = [a.question for a, _ in asked]
    assert [type(q.query).__name__ for q in (counts, squared, log)] == ["Confusions", "GroupLosses", "GroupLosses"]
    assert [(q.query.measure, q.query.clip) for q in (squared, log)] == [("squared", 1.0), ("log", 4.0)]
    assert counts.price == squared.price == log.price


def test_a_negative_weight_flips_the_label():
    """Records without the label count as if they had it if false positives of a group are wanted."""
    task = Reductions(groups=["G"], features=["X"]).task(Public(SCHEMA))
    weights = np.zeros((2, 2, 2))
    weights[0, 0, 1], weights[0, 1, 0], weights[1, 0, 1] = 0.5, 1.0, -0.25
    program = DescentOracle(1).solve(task, Sizes(("a", "b"), np.full((2, 2), 9.0)), weights, np.zeros(2), Amount(1.0))
    query = next(program).query
    assert isinstance(query, Gradients)
    assert query.parts.tolist() == [[0.5, 1.0], [0.25, 0.0]]
    assert query.flips[1, 0]
    assert not query.flips[0].any()


def test_an_exponential_oracle_asks_with_weights_centred_by_cell():
    task = Reductions(groups=["G"], features=["X"]).task(Public(SCHEMA))
    weights = np.arange(8.0).reshape(2, 2, 2)
    program = ExponentialOracle(thresholds(4)).solve(
        task, Sizes(("a", "b"), np.ones((2, 2))), weights, np.zeros(2), Amount(1.0)
    )
    question = next(program)
    assert question.scores[0].terms[0].slopes.tolist() == [[-0.5, 0.5] * 4]


def test_oracles_declare_their_divergences():
    pure, approximate = ExponentialOracle(thresholds(4)).cost(0.02), DescentOracle(3).cost(0.02)
    assert pure.epsilon == pytest.approx(math.sqrt(8 * 0.02))
    assert math.isinf(approximate.epsilon)
    assert approximate.renyi(5) == pytest.approx(0.1)
    assert pure.approximate(1e-6) <= min(pure.epsilon, approximate.approximate(1e-6))
    assert OracleCost(3.0, 0.5).renyi(10) == 0.5


def test_a_pool_moves_the_intercept_and_the_groups_alone():
    task = Reductions(groups=["G"], features=["X", "G"]).task(Public(SCHEMA))
    theta = np.arange(3.0)
    pool = shifted(theta, task.movable, 30, 1.0)
    assert (pool[0] == theta).all()
    moved = (pool[1:] != theta).any(axis=0)
    assert dict(zip(task.features, moved, strict=True)) == {"1": True, "G=b": True, "X": False}


def test_a_group_without_positives_is_not_estimable_and_never_zero():
    frame = people(2000)
    frame = frame[(frame.G == "a") | (frame.D == "no")]
    how = Reductions(groups=["G"], constraints={"equalized_odds": 0.02}, iterations=3, **FEW)
    release = fit(how, open_table(frame, schema=SCHEMA), BUDGET)
    goals = release.model.facts["goals"]
    assert [(g["name"], g["group"], g["status"]) for g in goals[2:]] == [("equalized_odds", "b", "not_estimable")]
    assert goals[2]["value"] is None
    rates = {(r["group"], r["loss"]): r for r in release.model.facts["rates"]}
    assert rates["b", "false_negative"]["status"] == "not_estimable"
    assert rates["b", "false_negative"]["value"] is None
    assert rates["b", "false_positive"]["status"] == "ok"


@pytest.mark.usefixtures("seeded_noise")
def test_no_rows_at_all_give_a_model_that_says_nothing_is_estimable():
    frame = people(0)
    how = Reductions(groups=["G"], constraints={"equalized_odds": 0.02}, iterations=2, **FEW)
    release = fit(how, open_table(frame, schema=SCHEMA), BUDGET)
    assert {r["status"] for r in release.model.facts["rates"]} == {"not_estimable"}


PLACES = {"sizes_citation": "here", "groups": ["G"]}
REFUSED = [
    ({"constraints": {"equalized_odds": -0.1}}, "no classifier could keep"),
    ({"constraints": {"h_mean": 1.5}}, "never above 1"),
    ({"constraints": {"bounded_loss": 2}}, "no classifier"),
    ({"constraints": {"bounded_loss": {"a": -1}}, "groups": ["G"]}, "errors are shares"),
    ({"constraints": {"odds": 0.1}}, "equalized_odds"),
    ({"constraints": ["equalized_odds"]}, "table"),
    ({"constraints": {"equalized_odds": 0.1}}, "at least two"),
    ({"constraints": {"gini": 0.1}}, "at least two"),
    ({"constraints": {"bounded_loss": {"c": 0.1}}, "groups": ["G"]}, "'c', which is not a group"),
    ({"groups": ["W"]}, "not in the schema"),
    ({"features": ["W"]}, "not in the schema"),
    ({"target": "W"}, "not in the schema"),
    ({"target": "X"}, "group_regression"),
    ({"groups": ["D"], "target": "D"}, "neither"),
    ({"groups": "G"}, "list"),
    ({"objective": "auc"}, "objective"),
    ({"method": "x"}, "method"),
    ({"oracle": "x"}, "oracle"),
    ({"mixing": "x"}, "mixing"),
    ({"candidates": "x"}, "candidates"),
    ({"smoothing": "x"}, "smoothing"),
    ({"versus": "x"}, "versus"),
    ({"iterations": 0}, "iterations"),
    ({"number": 1}, "number"),
    ({"loss_share": 1.0}, "loss_share"),
    ({"tolerance": 0.0}, "tolerance"),
    ({"multiplier": -1.0}, "multiplier"),
    ({"deterministic": 1}, "true or false"),
    ({"clip": 0.0}, "clip"),
    ({"sizes": {"a": 3}}, "citation"),
    ({"sizes": {"c|no": 3}, **PLACES}, "'c|no'"),
    ({"sizes": {"a|no": 3}, **PLACES}, "lacks 'a|yes'"),
    (
        {"sizes": {"a|no": 3, "a|yes": 3, "b|no": 3, "b|yes": 0}, **PLACES, "constraints": {"equalized_odds": 0.1}},
        "group b has no record with D = yes",
    ),
    ({"objective": "log_loss", "method": "sampling"}, 'log_loss; use method = "frank_wolfe" with oracle = "gradient"'),
    ({"constraints": {"bounded_squared_loss": 0.2}, "oracle": "exponential"}, "bounded_squared_loss; use"),
    ({"constraints": {"bounded_log_loss": 4.5}}, "above 4"),
    ({"constraints": {"bounded_squared_loss": 2}}, "above 1"),
    ({"constraints": {"bounded_log_loss": {"a": 5}}, "groups": ["G"]}, "from 0 to 4"),
    ({"constraints": {"bounded_log_loss": {"a|maybe": 1}}, "groups": ["G"]}, "as 'a|no'"),
    ({"loss_clip": 0}, "clip"),
    ({"loss_clip": math.nan}, "loss_clip"),
    ({"method": "sampling", "candidates": "thresholds"}, "one feature"),
    ({"reference": {"G": "z"}}, "no level"),
]


@pytest.mark.parametrize(("settings", "words"), REFUSED)
def test_what_cannot_be_is_refused_before_any_charge(settings, words, tmp_path):
    ledger = tmp_path / "people.ledger"
    table = open_table(people(20), schema=SCHEMA, ledger=ledger, ledger_epsilon=30)
    with pytest.raises(UsageError, match=words):
        fit(Reductions(**settings), table, BUDGET)
    assert not ledger.exists() or "charge" not in ledger.read_text(encoding="utf-8")


def test_a_budget_that_is_spent_is_refused(tmp_path):
    table = open_table(people(50), schema=SCHEMA, ledger=tmp_path / "x.ledger", ledger_epsilon=25)
    fit(Reductions(iterations=2, **FEW), table, BUDGET)
    with pytest.raises(BudgetRefused):
        fit(Reductions(iterations=3, **FEW), table, BUDGET)


def test_within_strata_each_has_a_classifier_and_draws_of_its_own():
    frame = people(1500)
    how = Stratified(Reductions(features=["X"], iterations=2, **FEW), ["G"], even(SCHEMA, "G"))
    release = fit(how, open_table(frame, schema=SCHEMA, declared_size=1500), BUDGET)
    with pytest.raises(UsageError, match="needs a seed"):
        release.predict(frame)
    assert (release.predict(frame, seed=1) == release.predict(frame, seed=1)).all()


def test_a_plan_says_the_steps_and_the_noise_of_the_smallest_cell():
    found = plan(Reductions(groups=["G"]), SCHEMA, Budget(1, 1e-9), declared_size=1000)
    assert found.spent <= found.reserved
    assert any("20 steps of Frank-Wolfe, 15 noisy gradients each" in stratum.verdict for stratum in found.strata)


def test_weights_that_say_nothing_are_those_of_the_error():
    task, sizes = Reductions(groups=["G"], features=["X"]).task(Public(SCHEMA)), Sizes(("a", "b"), np.full((2, 2), 5.0))
    question = next(ExponentialOracle(thresholds(4)).solve(task, sizes, np.zeros((2, 2, 2)), np.zeros(2), Amount(1.0)))
    question.check(SCHEMA)
    assert question.scores[0].terms[0].slopes.tolist() == [[-0.025, 0.025, 0.025, -0.025] * 2]


def test_groups_are_called_in_the_order_in_which_they_are_named():
    schema = Schema({"H": Categorical(levels=("x", "y")), **SCHEMA.columns})
    task = Reductions(groups=["G", "H"], target="D").task(Public(schema))
    assert task.labels == ("a|x", "a|y", "b|x", "b|y")
    assert task.shape == (2, 2, 2)


def test_without_chance_what_is_stated_is_of_the_one_classifier_that_predicts():
    frame = people(3000)
    how = Reductions(groups=["G"], constraints={"equalized_odds": 0.05}, iterations=4, deterministic=True)
    model, _ = asked_by(how, frame)
    violation, error = odds(model, frame)
    objective, constraint = model.facts["goals"]
    assert (objective["value"], constraint["value"]) == pytest.approx((error, violation), abs=5e-3)
    everybody = next(r for r in model.facts["rates"] if (r["group"], r["loss"]) == ("", "error"))
    assert everybody["value"] == pytest.approx(error, abs=2e-3)


def test_groups_that_the_strata_use_up_cannot_be_compared_in_them():
    frame = people(60)
    how = Stratified(Reductions(groups=["G"], constraints={"equalized_odds": 0.1}), ["G"], even(SCHEMA, "G"))
    with pytest.raises(UsageError, match="at least two"):
        fit(how, open_table(frame, schema=SCHEMA, declared_size=60), BUDGET)
    inner = Reductions(groups=["G"], constraints={"bounded_loss": 0.4}, iterations=2, **FEW)
    release = fit(
        Stratified(inner, ["G"], even(SCHEMA, "G")), open_table(frame, schema=SCHEMA, declared_size=60), BUDGET
    )
    assert len(release.model.parts) == 2
