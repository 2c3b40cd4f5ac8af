"""Squared and log losses as goals of reductions: what is stated is what counting gives, and goals are pursued."""

import re

import numpy as np
import pandas as pd
import pytest

from helpers.reducing import BUDGET, FEW, SCHEMA, asked_by, people
from helpers.small import even
from stratsynth import Budget, Categorical, Numeric, Release, Schema, Stratified, fit, open_table
from stratsynth.adapters import Reductions
from stratsynth.errors import UsageError
from stratsynth.planning.foresee import plan

CLIP = 2.0


def losses(model, frame, measure, which=None):
    """Of the mixture, by group, and by group and label: the mean over its draws."""
    rows, yes = model.shown(frame), (frame.D == "yes").to_numpy()
    p = 1 / (1 + np.exp(-model._logits(rows)))
    own = np.where(yes[:, None], p, 1 - p)
    each = (1 - own) ** 2 if measure == "squared" else np.minimum(-np.log(np.maximum(own, 1e-300)), CLIP)
    mean = each @ model.weights if which is None else each[:, which]
    table = pd.DataFrame({"G": frame.G, "D": frame.D, "loss": mean})
    return table.loss.mean(), table.groupby("G").loss.mean(), table.groupby(["G", "D"]).loss.mean()


@pytest.mark.parametrize("measure", ["squared", "log"])
def test_what_is_stated_is_what_counting_gives(measure):
    frame = people(3000)
    how = Reductions(
        groups=["G"],
        objective=f"{measure}_loss",
        constraints={f"bounded_{measure}_loss": {"a": 0.5, "b|yes": 0.1}},
        iterations=5,
        loss_clip=CLIP,
    )
    model, _ = asked_by(how, frame)
    everybody, groups, cells = losses(model, frame, measure)
    objective, constraint = model.facts["goals"]
    assert objective["value"] == pytest.approx(everybody, abs=2e-3)
    excess = max(groups["a"] - 0.5, cells["b", "yes"] - 0.1)
    assert constraint["value"] == pytest.approx(excess, abs=3e-3)
    assert constraint["status"] == ("holds" if excess <= 0 else "broken")
    rates = {(r["group"], r["loss"]): r["value"] for r in model.facts["rates"]}
    for (group, label), truth in cells.items():
        name = f"{measure}_loss_{'second' if label == 'yes' else 'first'}"
        assert rates[group, name] == pytest.approx(truth, abs=3e-3)
    assert rates["", f"{measure}_loss"] == objective["value"]
    alone = losses(model, frame, measure, model.best)[0]
    assert model.facts["deterministic"][0]["value"] == pytest.approx(alone, abs=2e-3)


def test_the_stated_noise_is_that_of_a_sum_over_the_number():
    """Without noise in the sizes: clip x sigma x |weights| over the records of the group."""
    frame = people(400)
    sizes = {f"{g}|{d}": int(((g == frame.G) & (d == frame.D)).sum()) for g in "ab" for d in ("no", "yes")}
    how = Reductions(groups=["G"], objective="log_loss", sizes=sizes, sizes_citation="x", iterations=2, **FEW)
    model, asked = asked_by(how, frame, clear=1e8)
    sigma = asked[-1][0].question.scales(SCHEMA, BUDGET.neighbours)[0] / 2**30 / 1e4
    row = next(r for r in model.facts["rates"] if (r["group"], r["loss"]) == ("b", "log_loss"))
    n = sizes["b|no"] + sizes["b|yes"]
    assert row["noise"] == pytest.approx(4 * sigma * np.sqrt(2) * np.linalg.norm(model.weights) / n, rel=1e-6)


def test_the_mean_probability_is_no_worse_than_what_is_stated():
    frame = people(2000)
    model, _ = asked_by(Reductions(groups=["G"], objective="squared_loss", iterations=4), frame)
    score, yes = model.mean_probability(model.shown(frame)), frame.D == "yes"
    assert ((score - yes) ** 2).mean() <= losses(model, frame, "squared")[0] + 1e-9
    told = model.seeded(1).table(model.shown(frame))
    assert (told["mean_probability"] == score).all()
    best = model.without_chance()
    expected = 1 / (1 + np.exp(-model._logits(model.shown(frame))[:, model.best]))
    assert np.allclose(best.mean_probability(best.shown(frame)), expected)
    plain, _ = asked_by(Reductions(groups=["G"], iterations=2, **FEW), frame)
    assert "mean_probability" not in plain.seeded(1).table(plain.shown(frame))


def test_a_plan_says_the_noise_in_losses():
    found = plan(
        Reductions(groups=["G"], objective="log_loss", loss_clip=CLIP), SCHEMA, Budget(1, 1e-9), declared_size=1000
    )
    said = found.strata[0].verdict
    rates, log = map(float, re.fullmatch(r".*smallest cell: rates ([\d.]+), log loss ([\d.]+)", said).groups())
    assert log == pytest.approx(CLIP * np.sqrt(2) * rates, rel=0.1)


TASK = Schema(
    {
        "G": Categorical(levels=("a", "b")),
        "X": Numeric(lower=-1, upper=1, bins=2),
        "D": SCHEMA.column("D"),
    }
)


def opposed(n, seed=0):
    """The minority's D goes with X the other way round: one line for both must choose between them."""
    rng = np.random.default_rng(seed)
    group, x = np.where(rng.random(n) < 0.25, "b", "a"), rng.uniform(-1, 1, n)
    chance = 1 / (1 + np.exp(-np.where(group == "a", 4.0, -4.0) * x))
    return pd.DataFrame({"G": group, "X": x, "D": np.where(rng.random(n) < chance, "yes", "no")})


@pytest.mark.parametrize("measure", ["squared", "log"])
def test_the_worst_group_and_a_bound_are_minded(measure):
    """The best of one line for both groups alike is 0: a loss of 1/4, or log 2."""
    frame, even = opposed(4000), {"squared": 0.25, "log": np.log(2)}[measure]
    settings = {"features": ["X"], "groups": ["G"], "iterations": 10, "loss_clip": CLIP}

    def by_group(**more):
        model, _ = asked_by(Reductions(**settings, **more), frame, schema=TASK)
        return losses(model, frame, measure)[1]

    alike = by_group(objective=f"{measure}_loss")
    assert alike["b"] > even * 1.2
    assert alike["a"] < even * 0.9
    worst = by_group(objective=f"worst_{measure}_loss")
    assert worst.max() < even * 1.03
    bound = (alike["b"] + even) / 2
    bounded = by_group(objective=f"{measure}_loss", constraints={f"bounded_{measure}_loss": {"b": bound}})
    assert bounded["b"] < bound + 0.02
    assert bounded["a"] < even * 0.97


def test_the_log_loss_is_that_of_logistic_regression_where_nothing_else_is_asked():
    from sklearn.linear_model import LogisticRegression

    frame = people(4000)
    model, _ = asked_by(Reductions(objective="log_loss", features=["X"], loss_clip=CLIP, start_steps=400), frame)
    x, yes = frame[["X"]].to_numpy(), frame.D == "yes"
    p = LogisticRegression(C=1e6).fit(x, yes).predict_proba(x)[:, 1]
    best = np.minimum(-np.log(np.where(yes, p, 1 - p)), CLIP).mean()
    assert model.facts["goals"][0]["value"] == pytest.approx(best, abs=0.02)


def test_a_release_states_the_losses_and_predicts_probabilities(tmp_path):
    frame = people(800)
    how = Reductions(
        groups=["G"],
        objective="balanced_log_loss",
        constraints={"bounded_squared_loss": 0.3, "equalized_odds": 0.2},
        iterations=2,
        **FEW,
    )
    release = fit(how, open_table(frame, schema=SCHEMA), Budget(5, 1e-6))
    folder = release.save(tmp_path / "release")
    goals = pd.read_parquet(folder / "goals.parquet")
    assert goals.name.tolist() == ["balanced_log_loss", "bounded_squared_loss", "equalized_odds"]
    rates = pd.read_parquet(folder / "rates.parquet")
    assert {"log_loss", "squared_loss_second", "error"} <= set(rates.loss)
    assert rates.noise.min() > 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    for words in ("balanced log loss", "squared loss, second level", "sums of losses"):
        assert words in page
    columns = Release.load(folder).predictions(frame, seed=1).column_names
    assert columns == ["row", "prediction", "probability=no", "probability=yes", "mean_probability"]


def test_a_group_without_one_label_has_no_loss_of_that_label(tmp_path):
    frame = people(2000)
    frame = frame[(frame.G == "a") | (frame.D == "no")]
    how = Reductions(groups=["G"], constraints={"bounded_log_loss": {"b|yes": 0.5, "a": 1}}, iterations=2, **FEW)
    release = fit(how, open_table(frame, schema=SCHEMA), BUDGET)
    model, page = release.model, release.save(tmp_path / "release") / "report.html"
    assert "b|yes" in page.read_text(encoding="utf-8")
    lacking = [(g["name"], g["group"], g["value"]) for g in model.facts["goals"] if g["status"] == "not_estimable"]
    assert lacking == [("bounded_log_loss", "b|yes", None)]
    rates = {(r["group"], r["loss"]): r for r in model.facts["rates"]}
    assert rates["b", "log_loss_second"]["value"] is None
    assert rates["b", "log_loss_first"]["status"] == "ok"


def test_bounds_of_one_label_hold_of_errors_too():
    frame = people(3000)
    model, _ = asked_by(Reductions(groups=["G"], constraints={"bounded_loss": {"b|yes": 0.05}}, iterations=8), frame)
    rates = {(r["group"], r["loss"]): r["value"] for r in model.facts["rates"]}
    assert model.facts["goals"][1]["value"] == pytest.approx(rates["b", "false_negative"] - 0.05)
    assert rates["b", "false_negative"] < 0.1


def test_an_estimator_takes_them_too():
    from stratsynth.adapters.sklearn import ReductionsClassifier

    rng = np.random.default_rng(0)
    x, s = rng.uniform(-1, 1, (600, 1)), rng.choice(["m", "f"], 600)
    made = {"epsilon": 5, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1], "groups": ["m", "f"], "iterations": 2}
    model = ReductionsClassifier(
        **made,
        objective="worst_log_loss",
        loss_clip=3.0,
        constraints={
            "bounded_squared_loss": {"f": 0.3},
        },
    )
    model.fit(x, (x[:, 0] > 0).astype(int), sensitive_features=s)
    assert [goal["name"] for goal in model.goals_] == ["worst_log_loss", "bounded_squared_loss"]
    assert model.certificate_["mechanism"]["settings"]["loss_clip"] == 3.0
    with pytest.raises(UsageError, match="use method"):
        ReductionsClassifier(**made, objective="log_loss", method="sampling").fit(
            x, (x[:, 0] > 0).astype(int), sensitive_features=s
        )


def test_within_strata_each_has_losses_of_its_own():
    how = Stratified(Reductions(features=["X"], objective="log_loss", iterations=2, **FEW), ["G"], even(SCHEMA, "G"))
    frame = people(600)
    release = fit(how, open_table(frame, schema=SCHEMA, declared_size=600), BUDGET)
    assert "mean_probability" in release.predictions(frame, seed=1).column_names
