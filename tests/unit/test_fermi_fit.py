"""Fits of DP-FERMI to exact answers, the cost of a step, and refusals before anything is charged."""

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from sklearn.linear_model import LogisticRegression

import stratsynth as ss
from helpers.regressing import SCHEMA, exactly, people
from helpers.replies import Replies
from helpers.small import even
from stratsynth.accounting.sampled import epsilon_sampled
from stratsynth.adapters import DPFermi
from stratsynth.adapters.fermi import ermi
from stratsynth.adapters.shared.settings import UNDECLARED
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import run
from stratsynth.errors import MechanismError, Unsupported, UsageError
from stratsynth.mechanisms import Public
from stratsynth.questions import NoisySum
from stratsynth.questions.sums.base import GRID

BUDGET = ss.Budget(1, 1e-9)
ALL = {"sampling": 1.0, "iterations": 300, "warm_up": 0.02, "clip": 50.0}
"""Every record in every step, for programs that run on exact sums."""


def fitted(frame, **settings):
    usual = {"target": "D", "features": ["X", "G"], "groups": ["G"], "penalty": 0.0, **ALL}
    return exactly(DPFermi(**{**usual, **settings}), frame, budget=BUDGET)


def joint(model, frame):
    """Of groups and mean predicted probabilities."""
    chances = model.probabilities(model.shown(frame))
    return np.array([chances[(g == frame.G).to_numpy()].sum(axis=0) for g in SCHEMA.levels("G")]) / len(frame)


FRAME = people(3000, seed=1, share=0.4, slopes=(0.5, 0.5)).assign(
    D=lambda f: np.where(f.X + 0.6 * (f.G == "b") + 0.3 * np.random.default_rng(0).normal(size=len(f)) > 0, "yes", "no")
)


def test_without_a_penalty_it_is_logistic_regression():
    model, asked = fitted(FRAME, rate=4.0, tail=0.0)
    x = np.column_stack([FRAME.G == "b", FRAME.X])
    known = LogisticRegression(C=np.inf).fit(x, FRAME.D == "yes")
    assert model.theta == pytest.approx([known.intercept_[0], *known.coef_[0]], rel=0.02)
    assert {len(a.question.query.blocks(SCHEMA)) for a, _ in asked} == {1}


@pytest.mark.parametrize("target", ["D", "C"])
@pytest.mark.parametrize("criterion", ["parity", "odds"])
@pytest.mark.usefixtures("seeded_noise")
def test_the_larger_the_penalty_the_less_predictions_tell_of_the_group(target, criterion):
    frame = FRAME.assign(C=np.where(FRAME.X > 0.5, "r", np.where(FRAME.D == "yes", "q", "p")))
    told = []
    for penalty in (0.0, 1.0, 10.0):
        model, _ = fitted(frame, target=target, criterion=criterion, penalty=penalty)
        parts = [frame] if criterion == "parity" else [frame[frame[target] == y] for y in SCHEMA.levels(target)]
        told.append(sum(len(part) / len(frame) * ermi.ermi(joint(model, part)) for part in parts))
    assert told[0] > 2 * told[1] > 4 * told[2]
    assert told[2] < 0.01


def test_shares_are_learned_from_the_first_sums_and_no_question_is_spent_on_them():
    model, asked = fitted(FRAME, penalty=1.0)
    shares = [float(text) for text in model.facts["described"]["Shares of groups"].split("(")[0].split()]
    assert shares == pytest.approx([(g == FRAME.G).mean() for g in "ab"], abs=1e-3)
    assert len(asked) == ALL["iterations"]


def test_public_shares_are_used_from_the_first_step():
    sizes = {"a": 3.0, "b": 1.0}
    model, asked = fitted(FRAME, penalty=1.0, sizes=sizes, sizes_citation="made up")
    assert "0.750 0.250 (public)" in model.facts["described"]["Shares of groups"]
    first = asked[0][0].question.query
    # W starts where predictions do not depend on the group: slopes alike for all classes
    assert np.allclose(first.slopes, first.slopes[..., :1])


@pytest.mark.usefixtures("seeded_noise")
def test_an_undeclared_size_is_learned_too():
    frame = FRAME
    how = DPFermi(target="D", features=["X", "G"], groups=["G"], penalty=1.0, **{**ALL, "rate": 4.0})
    public = Public(SCHEMA, None)
    known, unknown = how.task(Public(SCHEMA, len(frame)), BUDGET), how.task(public, BUDGET)
    assert known.records == 3000
    assert unknown.records is None
    assert DPFermi(target="D", groups=["G"], penalty=1).task(public, BUDGET).sampling == 1
    assert DPFermi(target="D", groups=["G"], penalty=1, batch=100).task(public, BUDGET).sampling == UNDECLARED
    table = ss.open_table(frame, schema=SCHEMA)
    release = ss.fit(
        DPFermi(target="D", features=["X"], groups=["G"], penalty=1, iterations=30, sampling=0.5),
        table,
        ss.Budget(3, 1e-6),
    )
    assert (release.predict(frame) == frame.D).mean() > 0.75


def test_models_side_by_side_learn_what_each_learns_alone():
    how = DPFermi(target="D", features=["X", "G"], groups=["G"], penalty=1, **{**ALL, "iterations": 40})
    public = Public(SCHEMA, len(FRAME))
    allot, rows = how.price(public, BUDGET), load_rows(SCHEMA, open_source(FRAME))

    def answer(batch):
        (a,) = batch
        sums = rows.sums([((), a.question.query, 1.0)], None)[0]
        blocks = a.question.query.blocks(SCHEMA)
        return [tuple(NoisySum(units, b.clip / GRID, 0.0) for units, b in zip(sums, blocks, strict=True))]

    both = run(how.side_by_side(public, allot, [0.5, 2.0], np.random.default_rng(0)), SCHEMA, Replies(answer))
    for penalty, model in zip((0.5, 2.0), both, strict=True):
        (alone,) = run(how.side_by_side(public, allot, [penalty], np.random.default_rng(0)), SCHEMA, Replies(answer))
        assert np.allclose(alone.theta, model.theta, atol=1e-9)


def test_the_price_is_that_of_one_subsampled_gaussian_for_both_gradients():
    """And the multipliers of the two blocks come to that of the whole: 1 / z^2 adds up."""
    _, asked = fitted(FRAME.head(300), penalty=1.0, iterations=5)
    public, how = Public(SCHEMA, 10_000), DPFermi(target="D", groups=["G"], penalty=1, iterations=500, batch=1024)
    allot = how.price(public, BUDGET)
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    event = dp_accounting.PoissonSampledDpEvent(allot.rate, dp_accounting.GaussianDpEvent(allot.noise * (1 - 1e-9)))
    accountant.compose(event, 500)
    delta = BUDGET.delta - BUDGET.truncation_delta
    assert epsilon_sampled(allot.noise, allot.rate, 500, delta) == pytest.approx(
        accountant.get_epsilon(delta), abs=1e-9
    )
    assert allot.rate == 1024 / 10_000
    question = asked[0][0].question
    first, second = (s / 2**30 for s in question.scales(SCHEMA, ss.Budget(1, 1e-9).neighbours))
    assert 1 / first**2 + 1 / second**2 == pytest.approx(1 / question.price**2, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"groups": []}, "penalty = 0"),
        ({"groups": ["Q"]}, "not in the schema"),
        ({"groups": ["D"]}, "neither a feature nor a group"),
        ({"target": "Y"}, "categorical"),
        ({"target": "W"}, "not in the schema"),
        ({"criterion": "fair"}, "criterion"),
        ({"protect": "sensitive"}, 'neighbours = "attribute"'),
        ({"penalty": -1}, "penalty"),
        ({"clip": 0}, "clip"),
        ({"sampling": 1.5}, "sampling"),
        ({"iterations": 0}, "iterations"),
        ({"adversary_share": 1.0}, "adversary_share"),
        ({"sizes": {"a": 1, "b": 1}}, "sizes_citation"),
        ({"sizes": {"a": 1}, "sizes_citation": "x"}, "lacks b"),
        ({"sizes": {"a": 1, "b": 1, "z": 1}, "sizes_citation": "x"}, "names 'z'"),
        ({"sizes": {"a": 1, "b": 0}, "sizes_citation": "x"}, "sizes of b"),
        ({"criterion": "odds", "sizes": {"a": 1, "b": 1}, "sizes_citation": "x"}, "names 'a'"),
        ({"reference": {"C": "zebra"}}, "reference"),
        ({"interactions": [["X", "Y"]], "features": ["X"]}, "interactions"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_charged(settings, words):
    with pytest.raises((UsageError, Unsupported, MechanismError), match=words):
        DPFermi(**{"target": "D", "groups": ["G"], "penalty": 1.0, **settings}).price(Public(SCHEMA, 1000), BUDGET)


def test_strata_of_the_sensitive_attribute_are_refused_with_the_reason():
    table = ss.open_table(FRAME, schema=SCHEMA, declared_size=3000)
    for how, words in (
        (DPFermi(target="D", groups=["G"], penalty=1, sampling=0.1), "everybody has the same G"),
        (DPFermi(target="D", groups=["C"], penalty=1, batch=100), "sampling = 0.05"),
    ):
        with pytest.raises(Unsupported, match=words):
            ss.fit(ss.Stratified(how, ["G"], even(SCHEMA, "G")), table, BUDGET)


@pytest.mark.usefixtures("seeded_noise")
def test_strata_of_another_column_predict_by_stratum():
    how = ss.Stratified(
        DPFermi(target="D", features=["X"], groups=["G"], penalty=1, sampling=0.5, iterations=30),
        ["C"],
        even(SCHEMA, "C"),
    )
    table = ss.open_table(FRAME, schema=SCHEMA, declared_size=3000)
    release = ss.fit(how, table, ss.Budget(3, 1e-6))
    assert (release.predict(FRAME) == FRAME.D).mean() > 0.7
