"""Fits of group regression to answers: by hand, in direction, and against least squares."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_ndtr
from sklearn.linear_model import LogisticRegression

from helpers.regressing import SCHEMA, exactly, people
from helpers.small import even
from stratsynth import Budget, Categorical, Numeric, Schema, Stratified, fit, open_table
from stratsynth.adapters import GroupRegression
from stratsynth.adapters.predictors.defaults import gaussian_mu
from stratsynth.adapters.predictors.descent import Descent, Region
from stratsynth.adapters.predictors.moments import NoisyMoments
from stratsynth.adapters.predictors.objective import PACE, PUSH, Objective
from stratsynth.mechanisms import Public
from stratsynth.models import ByGroup
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Gradients, Losses
from stratsynth.strata import crossing

PLAIN = {"iterations": 1, "momentum": 0.0, "tail": 0.0, "radius": 5.0}


def test_a_step_of_two_groups_of_two_is_clipped_gradient_descent_by_hand():
    schema = Schema(
        {
            "G": Categorical(levels=("a", "b")),
            "X": Numeric(lower=-1, upper=1, bins=1),
            "Y": Numeric(lower=-1, upper=1, bins=1),
        }
    )
    frame = pd.DataFrame({"G": ["a", "a", "b", "b"], "X": [0.5, -1.0, 1.0, 0.25], "Y": [1.0, 0.5, -1.0, 0.125]})
    clip, rate, rows = 0.6, 0.3, {"a": [0, 1], "b": [2, 3]}
    theta = np.zeros(2)
    for objective, share in (("pooled", 1 / 4), ("balanced", 1 / 4)):
        for accounting in ("combined", "parallel", "paper"):
            expected = np.zeros(2)
            for group in rows.values():
                for i in group:
                    x = np.array([1.0, frame.X[i]])
                    gradient = (x @ theta - frame.Y[i]) * x
                    expected -= rate * share * gradient * min(1, clip / np.linalg.norm(gradient))
            how = GroupRegression(
                target="Y",
                features=["X"],
                groups=["G"],
                sizes={"a": 2, "b": 2},
                sizes_citation="by hand",
                clip=clip,
                rate=rate,
                objective=objective,
                accounting=accounting,
                **PLAIN,
            )
            model, _ = exactly(how, frame, schema=schema)
            assert np.allclose(model.theta, expected, atol=1e-3)


def test_projection_to_a_box_and_to_a_ball():
    far = np.array([3.0, -4.0])
    assert Region("box", 3.5).project(far).tolist() == [3.0, -3.5]
    assert np.allclose(Region("ball", 1.0).project(far), [0.6, -0.8])
    assert Region("ball", 5.0).project(far).tolist() == [3.0, -4.0]


def test_the_tail_is_averaged_and_momentum_keeps_the_direction():
    descent = Descent(Region("box", 100), 1.0, 0.5, 4, 2, np.zeros(1))
    seen = []
    for _ in range(4):
        descent.step(np.array([-1.0]))
        seen.append(float(descent.theta[0]))
    assert seen == [1.0, 2.5, 4.25, 6.125]
    assert descent.result[0] == (4.25 + 6.125) / 2


LABELS, SHARES = ("a", "b", "c"), np.array([0.7, 0.2, 0.1])
LOSSES = np.array([0.1, 0.5, 0.4])


@pytest.mark.parametrize(
    ("objective", "slopes"),
    [
        (Objective("pooled"), [0.7, 0.2, 0.1]),
        (Objective("balanced"), [1 / 3, 1 / 3, 1 / 3]),
        (Objective("weights", {"a": 0.5, "b": 0.25, "c": 0.25}), [0.5, 0.25, 0.25]),
        (Objective("maximum"), [0, 1, 0]),
    ],
)
def test_slopes_of_f(objective, slopes):
    assert np.allclose(objective.slopes(LABELS, SHARES, LOSSES), slopes)


def test_multipliers_follow_each_bounds_excess_and_stay_between_0_and_the_largest():
    steered = Objective(bounds={"c": 0.1, "": 0.45}, multiplier=1.0).multipliers(LABELS)
    push = (PUSH + PACE) * np.array([0.0, 0.05, 0.3])
    assert np.allclose(steered.step(LOSSES), push)
    assert np.allclose(steered.held, PACE * np.array([0.0, 0.05, 0.3]))
    for _ in range(100):
        last = steered.step(LOSSES)
    assert last.tolist() == [0.0, 1.0, 1.0]
    for _ in range(100):
        last = steered.step(np.zeros(3))
    assert last.tolist() == [0.0, 0.0, 0.0]


def test_a_group_without_a_bound_has_no_multiplier():
    steered = Objective(bounds={"b": 0.2}).multipliers(LABELS)
    assert (steered.step(LOSSES) > 0).tolist() == [False, True, False]
    assert Objective().multipliers(LABELS).step(LOSSES).tolist() == [0.0, 0.0, 0.0]


def test_the_smooth_maximum_has_the_gradient_of_log_sum_exp():
    objective = Objective("smooth_maximum", sharpness=7.0)

    def value(losses):
        return np.log(np.exp(7.0 * losses).sum()) / 7.0

    numeric = [(value(LOSSES + h) - value(LOSSES - h)) / 2e-6 for h in np.eye(3) * 1e-6]
    assert np.allclose(objective.slopes(LABELS, SHARES, LOSSES), numeric, atol=1e-6)


@pytest.mark.parametrize("accounting", ["combined", "parallel"])
def test_balanced_groups_help_the_minority_at_the_majoritys_cost(accounting):
    """The mean squared error of either group, pooled and balanced, on exact answers."""
    frame, found = people(2000, slopes=(0.5, -0.5)), {}
    for objective in ("pooled", "balanced"):
        how = GroupRegression(
            target="Y", features=["X"], groups=["G"], objective=objective, accounting=accounting, iterations=300
        )
        model, _ = exactly(how, frame)
        error = (model.predict(model.shown(frame)) - frame.Y) ** 2
        found[objective] = error.groupby(frame.G).mean()
    assert found["balanced"]["b"] < 0.8 * found["pooled"]["b"]
    assert found["balanced"]["a"] > 1.2 * found["pooled"]["a"]


def test_a_group_as_feature_means_the_same_however_groups_are_asked():
    """Inside a group its level's coefficient is part of the intercept."""
    frame = people(500, slopes=(0.5, 0.5))
    frame["Y"] = (frame.Y + 0.3 * (frame.G == "b")).clip(-1, 1)
    common = {"target": "Y", "features": ["G", "X", "C"], "groups": ["G"], "iterations": 200, "clip": 100.0}
    models = [exactly(GroupRegression(accounting=a, **common), frame)[0] for a in ("combined", "parallel")]
    assert models[0].design.names(SCHEMA) == ("1", "G=b", "X", "C=q", "C=r")
    assert np.allclose(models[0].theta, models[1].theta, atol=1e-3)


@pytest.mark.parametrize("accounting", ["paper", "parallel"])
def test_tailored_budgets_stand_as_the_residual_errors(accounting):
    frame = people(2000, share=0.5, spread=(0.05, 0.25), slopes=(0.5, 0.5))
    how = GroupRegression(target="Y", features=["X"], groups=["G"], mode="DPSE", accounting=accounting, iterations=2)
    model, asked = exactly(how, frame, budget=Budget(25, 1e-9))
    a, b = (group["share"] for group in model.facts["groups"])
    assert a + b == pytest.approx(1)
    assert b / a == pytest.approx(25, rel=0.3)
    sigma = {}
    for one, charges in asked:
        if isinstance(getattr(one.question, "query", None), Gradients):
            sigma[one.path[0].label] = charges[0].details["sigma"]
    assert sigma["a"] / sigma["b"] == pytest.approx((b / a) ** 0.5, rel=1e-6)


def test_stage_one_ranks_groups_by_their_true_residual_error():
    """With 500 people and more in each group, and a tau of 0.1 and more, noise included."""
    spreads = {"a": 0.1, "b": 0.25, "c": 0.45}
    schema = Schema(
        {
            "G": Categorical(levels=tuple(spreads)),
            "X": Numeric(lower=-1, upper=1, bins=1),
            "Y": Numeric(lower=-1, upper=1, bins=1),
        }
    )
    rng = np.random.default_rng(1)
    group = np.repeat(list(spreads), 600)
    x = rng.uniform(-1, 1, group.size)
    y = 0.4 * x + rng.normal(size=group.size) * pd.Series(group).map(spreads).to_numpy()
    table = open_table(pd.DataFrame({"G": group, "X": x, "Y": y.clip(-1, 1)}), schema=schema, declared_size=group.size)
    how = GroupRegression(
        target="Y",
        groups=["G"],
        mode="DPSE",
        accounting="parallel",
        stage_one=0.2,
        loss_clip=0.5,
        iterations=1,
        sizes=dict.fromkeys(spreads, 600),
        sizes_citation="made up",
    )
    for _ in range(10):
        release = fit(how, table, Budget(8, 1e-6))
        shares = [group["share"] for group in release.model.facts["groups"]]
        assert shares == sorted(shares)


def test_losses_are_asked_of_each_group_before_its_gradient_where_the_objective_needs_them():
    how = GroupRegression(
        target="D", model="logistic", features=["X"], groups=["G"], loss_bounds={"": 0.3}, iterations=1
    )
    _, asked = exactly(how, people(100))
    kinds = [(type(a.question.query), len(a.path)) for a, _ in asked[1:]]
    assert kinds == [(Losses, 1), (Losses, 1), (Gradients, 0)]
    assert all(a.question.query.measure == "log" for a, _ in asked[1:3])


def test_bounded_group_loss_brings_the_worst_group_down():
    frame, worst = people(2000, slopes=(0.5, -0.5)), {}
    for bounds in ({}, {"b": 0.03}):
        how = GroupRegression(
            target="Y", features=["X"], groups=["G"], loss_bounds=bounds, multiplier=3.0, iterations=300
        )
        model, _ = exactly(how, frame)
        worst[bool(bounds)] = float(((model.predict(model.shown(frame)) - frame.Y) ** 2)[frame.G == "b"].mean())
    assert worst[True] < 0.5 * worst[False]


@pytest.mark.parametrize(
    ("bound", "more"), [(0.15, {}), (0.2, {"accounting": "parallel"}), (0.15, {"multiplier": 3.0})]
)
def test_bounded_group_loss_takes_no_more_from_the_others_than_the_bound_needs(bound, more):
    """The best model within the bound, by search, has the bounded group at its bound and no other far above its own."""
    frame = people(4000, slopes=(0.6, -0.6))
    how = GroupRegression(target="Y", features=["X"], groups=["G"], loss_bounds={"": bound}, **more)
    model, _ = exactly(how, frame)
    found = (model.predict(model.shown(frame)) - frame.Y).pow(2).groupby(frame.G).mean()
    x, y, few = frame.X.to_numpy(), frame.Y.to_numpy(), frame.G.eq("b").to_numpy()
    losses = np.array(
        [[((slope * x - y) ** 2)[who].mean() for who in (~few, few)] for slope in np.linspace(-0.6, 0.6, 241)]
    )
    best = losses[(losses <= bound).all(axis=1), 0].min()
    assert found["b"] == pytest.approx(bound, abs=0.01)
    assert found["a"] == pytest.approx(best, abs=0.01)


def test_on_plenty_of_data_it_is_least_squares():
    frame = people(4000, slopes=(0.5, 0.5))
    how = GroupRegression(target="Y", features=["X", "Z", "C"], iterations=300, clip=100.0)
    model, _ = exactly(how, frame)
    z = frame.Z / 5 - 1
    x = np.column_stack([np.ones(4000), frame.X, z, frame.C == "q", frame.C == "r"]).astype(float)
    assert np.allclose(model.theta, np.linalg.lstsq(x, frame.Y, rcond=None)[0], atol=2e-3)


def test_on_plenty_of_data_it_is_the_logistic_regression():
    frame = people(4000, slopes=(0.1, 0.1), spread=(0.3, 0.3))
    how = GroupRegression(target="D", model="logistic", features=["X", "C"], iterations=600, clip=10.0)
    model, _ = exactly(how, frame)
    x = np.column_stack([frame.X, frame.C == "q", frame.C == "r"]).astype(float)
    other = LogisticRegression(C=1e9, tol=1e-8).fit(x, frame.D)
    assert np.allclose(model.theta, [*other.intercept_, *other.coef_[0]], atol=0.01)


def test_by_strata_each_group_has_a_model_of_its_own():
    frame = people(3000, share=0.5)
    how = Stratified(GroupRegression(target="Y", features=["X"]), ["G"], even(SCHEMA, "G"))
    release = fit(how, open_table(frame, schema=SCHEMA, declared_size=3000), Budget(5, 1e-6))
    assert isinstance(release.model, ByGroup)
    slopes = [part.theta[1] for part in release.model.parts.values()]
    assert slopes == pytest.approx([0.5, -0.5], abs=0.1)
    assert ((release.predict(frame) - frame.Y) ** 2).mean() < 0.03


def test_intervals_cover_as_often_as_they_say():
    """Noise and sampling together: new people and new noise each time."""
    covered, slopes, truth = {0.9: [], 0.95: []}, (0.4, 0.4), {"1": 0.0, "X": 0.4, "Z": 0.0}
    schema = Schema({n: SCHEMA.column(n) for n in ("X", "Z", "Y")})
    how = GroupRegression(target="Y", stage_one=0.9, iterations=1)
    for seed in range(120):
        frame = people(1500, seed, slopes=slopes)[["X", "Z", "Y"]]
        opened = open_table(frame, schema=schema, declared_size=1500)
        release = fit(how, opened, Budget(2, 1e-6), entropy=SeededEntropy(seed))
        for level, found in covered.items():
            table = release.model.coefficients(level).set_index("feature")
            assert (table.status != "not_estimable").all()
            found += [row.lower <= truth[name] <= row.upper for name, row in table.iterrows()]
    for level, found in covered.items():
        assert abs(np.mean(found) - level) < 4 * (level * (1 - level) / len(found)) ** 0.5 + 0.01


def chances(n, seed, thetas=(-1.0, 1.5)):
    """People whose D is yes with the log-odds -1 + 1.5 X."""
    rng = np.random.default_rng(seed)
    frame = people(n, seed)
    odds = thetas[0] + thetas[1] * frame.X.to_numpy()
    return frame.assign(D=np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no"))[["X", "Z", "D"]]


LOGISTIC = GroupRegression(target="D", model="logistic", stage_one=0.9, iterations=1)


def test_newton_steps_on_exact_answers_find_the_largest_likelihood():
    frame = chances(2000, 0)
    model, _ = exactly(LOGISTIC, frame, schema=SCHEMA.restrict(("X", "Z", "D")), budget=Budget(20, 1e-6))
    other = LogisticRegression(C=np.inf).fit(np.column_stack([frame.X, frame.Z / 5 - 1]), frame.D == "yes")
    assert model.coefficients().estimate.to_numpy()[1:] * (1, 5) == pytest.approx(other.coef_[0], abs=2e-3)


def test_intervals_of_logistic_coefficients_cover_as_often_as_they_say():
    truth, schema = {"1": -1.0, "X": 1.5, "Z": 0.0}, SCHEMA.restrict(("X", "Z", "D"))
    covered = {0.9: [], 0.95: []}
    for seed in range(120):
        opened = open_table(chances(4000, seed), schema=schema, declared_size=4000)
        release = fit(LOGISTIC, opened, Budget(3, 1e-6), entropy=SeededEntropy(seed))
        for level, found in covered.items():
            table = release.model.coefficients(level).set_index("feature")
            sound = table[table.status != "not_estimable"]
            found += [row.lower <= truth[name] <= row.upper for name, row in sound.iterrows()]
    for level, found in covered.items():
        assert len(found) > 300
        assert abs(np.mean(found) - level) < 4 * (level * (1 - level) / len(found)) ** 0.5 + 0.01


def test_a_newton_step_that_was_too_long_makes_no_interval():
    """The curvature at the end of a last step many deviations long is another one."""
    one = np.eye(1)
    curved = NoisyMoments(one * 400, one / 400, np.array([400.0]), (0.1, 1.0), 400.0, np.zeros(1), curved=True)
    assert not curved.estimated(1.0, 1).sound.any()
    assert replace(curved, product=np.array([4.0])).estimated(1.0, 1).sound.all()
    assert replace(curved, curved=False).estimated(1.0, 1).sound.all()


def test_without_noisy_moments_no_interval_is_claimed():
    model, _ = exactly(GroupRegression(target="Y", iterations=1), people(50))
    table = model.coefficients()
    assert set(table.status) == {"not_estimable"}
    assert table[["estimate", "lower", "upper", "std_error"]].isna().all(axis=None)


def test_where_the_noise_drowns_the_moments_no_interval_is_claimed():
    how = GroupRegression(target="Y", stage_one=0.5, iterations=1)
    release = fit(how, open_table(people(30), schema=SCHEMA, declared_size=30), Budget(0.1, 1e-6))
    assert set(release.model.coefficients().status) == {"not_estimable"}


def test_persons_of_several_rows_are_protected_as_one():
    from stratsynth.schema import Unit

    schema = Schema(dict(SCHEMA.columns), unit=Unit(column="P", max_rows=2))
    frame = people(200).assign(P=[str(i // 2) for i in range(200)])
    how = GroupRegression(target="Y", groups=["G"], mode="DPSE", accounting="parallel", iterations=3)
    release = fit(how, open_table(frame, schema=schema, declared_size=200), Budget(3, 1e-6))
    assert release.certificate["unit"] == {"column": "P", "max_rows": 2}
    assert np.isfinite(release.model.theta).all()


def test_strata_of_noisy_sizes_are_asked_as_many_questions_whatever_these_are():
    """Private weights give sizes that are answers: were steps to follow from them, the course of a fit would too."""
    schema = Schema(
        {"G": Categorical(("a", "b")), "X": Numeric(lower=-1, upper=1, bins=1), "Y": Categorical(("0", "1"))}
    )
    how, public = GroupRegression(model="logistic", target="Y", features=["X"]), Public(schema, 4_000)
    (stratum, _) = crossing(schema, ["G"])

    def steps(*, exact):
        inside = (public.within(stratum, share, exact=exact) for share in (0.01, 0.3, 0.9))
        return len({how.task(one, Budget(1, 1e-9)).steps for one in inside})

    assert (steps(exact=True), steps(exact=False)) == (3, 1)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (3, 1e-9), (12, 1e-12), (25, 1e-9)])
def test_what_a_budget_affords_is_a_number_that_no_processor_rounds_otherwise(epsilon, delta):
    """Clips and steps follow from it: another last digit would be another question to a fit that goes on."""
    mu = gaussian_mu(epsilon, delta)
    spent = np.exp(log_ndtr(mu / 2 - epsilon / mu)) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
    assert spent == pytest.approx(delta, rel=1e-3)
    assert mu == float(f"{mu:.6g}")
