"""Group thresholds: what is chosen from counts by hand, the model that has them, and what is refused and told."""

import numpy as np
import pytest

import stratsynth as ss
from helpers.regressing import SCHEMA, exactly, people
from stratsynth.adapters import DPFermi
from stratsynth.adapters.fermi.thresholds import best_thresholds, counted
from stratsynth.errors import NoticeWarning, Unsupported, UsageError
from stratsynth.mechanisms import Public

BUDGET = ss.Budget(20, 1e-9)
RNG = np.random.default_rng(0)
FRAME = people(2000, seed=1, share=0.4).assign(
    X=lambda f: (0.5 * f.X + 0.5 * (f.G == "b") - 0.2).clip(-1, 1),
    D=lambda f: np.where(f.X + 0.5 * (f.G == "b") + f.Z / 5 - 1.2 + 0.7 * RNG.normal(size=len(f)) > 0, "yes", "no"),
)
COMMON = {"target": "D", "features": ["X", "Z"], "gap": 0.05, "clip": 50.0, "iterations": 100, "thresholds": True}


def rates_of(model, groups):
    """Return accuracy, and the share of `yes` in each group."""
    said = np.asarray(model.predict(model.shown(FRAME))) == "yes"
    return (said == (FRAME.D == "yes")).mean(), FRAME.assign(said=said).groupby(groups).said.mean()


@pytest.mark.parametrize("groups", [["G"], ["G", "C"]])
def test_on_exact_counts_the_rates_are_within_the_wanted_gap_and_fewer_are_wrong(groups):
    """A crossing of two columns has thresholds of its own for each pair of levels."""
    model, asked = exactly(DPFermi(**COMMON, groups=groups), FRAME, budget=BUDGET)
    accuracy, rates = rates_of(model, groups)
    assert np.ptp(rates) < 0.05 + 0.01
    assert model.facts["gap"]["measured"] == pytest.approx(np.ptp(rates), abs=0.005)
    assert len(asked) == 100
    assert len({(a.question.price, a.question.rate) for a, _ in asked}) == 1
    free = rates_of(exactly(DPFermi(**{**COMMON, "gap": 1.0}, groups=groups), FRAME, budget=BUDGET)[0], groups)
    assert np.ptp(free[1]) > 0.3
    assert accuracy <= free[0]
    if groups == ["G"]:  # a rule that is not told the group does no better at the same gap
        steered = exactly(DPFermi(**{**COMMON, "thresholds": False}, groups=groups), FRAME, budget=BUDGET)[0]
        assert accuracy > rates_of(steered, groups)[0] - 0.005


def test_thresholds_are_those_of_fewest_errors_within_the_bound():
    # of 100 records a group, counts by threshold and true class; errors are false positives and missed ones
    positive = np.array([[[40, 50], [8, 40]], [[10, 45], [5, 35]], [[0, 20], [0, 5]]], float)
    sizes, logits = np.array([[50.0, 50.0], [60.0, 40.0]]), np.array([-1.0, 0.0, 1.0])
    free = best_thresholds(positive, sizes, logits, 1.0)
    assert free == pytest.approx([0.0, -1.0], abs=0.05)  # rates .55 and .48: 15 and 8 errors
    same = best_thresholds(positive, sizes, logits, 0.0)
    rates = [np.interp(at, logits, positive[:, g].sum(axis=1) / 100) for g, at in enumerate(same)]
    assert rates[0] == pytest.approx(rates[1], abs=0.01)


def test_noisy_counts_become_numbers_that_fall_with_the_threshold():
    true = np.array([[[20.0, 80.0]], [[60.0, 40.0]], [[90.0, 10.0]]])[:, :, None].repeat(2, axis=2)
    noisy = true + np.random.default_rng(0).normal(0, 30, true.shape)
    positive, sizes = counted(noisy)
    assert (np.diff(positive, axis=0) <= 1e-9).all()
    assert ((positive >= 0) & (positive <= sizes)).all()
    exact, whole = counted(true)
    assert np.allclose(exact, true[..., 1])
    assert np.allclose(whole, 100)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gap": None, "penalty": 1.0}, "thresholds go with a gap"),
        ({"criterion": "odds"}, "decisions by chance"),
        ({"iterations": 2}, "at least 3 steps"),
        ({"groups": ["X"]}, "one or two categorical columns"),
        ({"groups": ["G", "C", "Y"]}, "one or two categorical columns"),
    ],
)
def test_what_thresholds_cannot_be_is_refused_before_anything_is_charged(settings, words):
    with pytest.raises((UsageError, Unsupported), match=words):
        DPFermi(**{**COMMON, "features": ["Z"], "groups": ["G"], **settings}).price(Public(SCHEMA, 1000), BUDGET)


@pytest.mark.filterwarnings("ignore", category=NoticeWarning)
@pytest.mark.usefixtures("seeded_noise")
def test_a_release_says_that_decisions_use_the_group_and_predicts_with_it():
    table = ss.open_table(FRAME, schema=SCHEMA, declared_size=2000)
    release = ss.fit(DPFermi(**{**COMMON, "iterations": 20}, groups=["G"]), table, ss.Budget(5, 1e-6))
    (gap,) = release.statement.gaps
    assert (gap.wanted, gap.multipliers) == (0.05, ())
    assert "Decisions use the group" in release.model.facts["described"]["Thresholds"]
    assert set(release.model.inputs) == {"G", "X", "Z"}
    with pytest.raises(UsageError, match="G"):
        release.predict(FRAME.drop(columns="G"))
