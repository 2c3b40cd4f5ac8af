"""Noisy descent on exact answers: what it leans by, what it asks, what it refuses, and that it learns."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.fits import OnStep
from helpers.priced import RATE, STEPS
from helpers.regressing import SCHEMA, exactly, people
from stratsynth import Budget, Neighbours, fit, open_table
from stratsynth.adapters import FairSGD
from stratsynth.adapters.fair_sgd.leaning import Leaning
from stratsynth.adapters.predictors.network import Network
from stratsynth.errors import Unsupported, UsageError
from stratsynth.fitting import fitted
from stratsynth.mechanisms import Public
from stratsynth.questions import NoisySum
from stratsynth.questions.sums.base import GRID

USUAL = {"target": "D", "features": ["G", "X", "C"], "groups": ["G"], "mitigation": "surrogate", "iterations": 40}
BUDGET = Budget(4, 1e-6)


def made(**settings):
    return FairSGD(**{**USUAL, **settings})


def task(size=1000, **settings):
    return made(**settings).task(Public(SCHEMA, size, Neighbours.ADD_REMOVE), BUDGET)


def told(values, sigma=1e-9):
    """An answer of these values."""
    values = np.asarray(values, float)
    return NoisySum(np.rint(values * GRID).astype(np.int64), 1 / GRID, sigma)


@pytest.mark.parametrize("mitigation", ["surrogate", "group_clip", "global_adapt", "none"])
def test_it_learns(mitigation):
    frame = people(3000, share=0.3, slopes=(0.5, 0.2))
    model, asked = exactly(made(mitigation=mitigation, iterations=200), frame, budget=BUDGET)
    wrong = model.predict(model.shown(frame)) != frame.D
    assert wrong.mean() < 0.17
    assert len(asked) == 200
    assert {a.question.rate for a, _ in asked} == {1.0}


def test_without_mitigation_it_is_gradient_descent():
    """By hand, on the same clipped gradients."""
    from stratsynth.data.load import load_rows
    from stratsynth.data.sources import open_source
    from stratsynth.questions import Gradients

    frame = people(500)
    model, _ = exactly(made(mitigation="none", iterations=5, clip=1.0, tail=0.0), frame, budget=BUDGET)
    rows, design, theta = load_rows(SCHEMA, open_source(frame)), model.design, np.zeros(5)
    direction = np.zeros(5)
    for _ in range(5):
        asked = np.rint(theta * 2**20) / 2**20
        (units,) = rows.sums([((), Gradients(design, "D", "logistic", asked[None], 1.0), 1.0)], None)[0]
        direction = 0.9 * direction + units / GRID / 500
        theta = theta - 1.9 * 4 / design.most_features * direction
    assert np.allclose(model.theta, theta, atol=1e-9)


@pytest.mark.parametrize("mitigation", ["surrogate", "group_clip", "global_adapt", "none"])
def test_a_network_learns_what_no_line_tells_apart(mitigation):
    """D is yes in the middle."""
    frame = people(3000)
    frame["D"] = np.where(frame.X.abs() < 0.5, "yes", "no")
    how = made(model="network", hidden=6, mitigation=mitigation, features=["X", "C"], iterations=600, rate=1.5)
    model, asked = exactly(how, frame, budget=BUDGET)
    assert isinstance(model, Network)
    assert (model.predict(model.shown(frame)) == frame.D).mean() > 0.85
    assert {a.question.query.hidden for a, _ in asked} == {6}
    assert model.facts["described"]["Model"].startswith("network of 6 hidden units")


@pytest.mark.parametrize("model", ["logistic", "network"])
def test_gamma2_evens_distances_from_the_boundary(model):
    """Towards each other, as far as the loss lets them."""
    frame, apart = people(2000, share=0.3), []
    frame["D"] = np.where((frame.G == "b") & (frame.X < 0.9), "no", frame.D)
    for gamma in (0.0, 1.0):
        settings = {"gamma1": 0.0, "gamma2": gamma} if gamma else {"mitigation": "none"}
        how = made(model=model, hidden=4, features=["G", "X"], iterations=200, **settings)
        fitted, _ = exactly(how, frame, budget=BUDGET)
        near = 1 - (fitted.predictor().probabilities(fitted.shown(frame)) ** 2).sum(axis=1)
        apart.append(abs(near[frame.G == "a"].mean() - near[frame.G == "b"].mean()))
    assert apart[1] < 0.9 * apart[0]


def test_a_network_without_mitigation_is_gradient_descent_by_hand():
    from stratsynth.data.load import load_rows
    from stratsynth.data.sources import open_source
    from stratsynth.questions import NetworkGradients
    from stratsynth.questions.sums.networks import layers

    frame = people(500)
    how = made(model="network", hidden=3, mitigation="none", iterations=5, tail=0.0)
    model, asked = exactly(how, frame, budget=BUDGET)
    rows, theta = load_rows(SCHEMA, open_source(frame)), asked[0][0].question.query.theta
    for _ in range(5):
        hidden, output = layers(np.rint(theta * 2**20) / 2**20, 3, 5)
        (units,) = rows.sums([((), NetworkGradients(model.design, "D", hidden, output, 1.0), 1.0)], None)[0]
        theta = theta - 1.0 * units / GRID / 500
    assert np.allclose(np.concatenate([model.hidden.ravel(), model.output.ravel()]), theta, atol=1e-5)


def test_weights_of_the_surrogate_are_the_derivative_of_the_papers_penalty():
    """The sum over groups of |T_a - T|, its sign held: w_a / n is what a row of group a adds to it."""
    leaning = Leaning.start(task(gamma1=0.0, gamma2=0.7))
    assert (leaning.now().noise_slopes == 0).all()
    leaning.learn({"tally": told([300, 500, 100, 100]), "boundary": told([160, 80])})
    found = leaning.now().noise_slopes
    sizes = np.array([800.0, 200.0])

    def penalty(sums):
        return np.abs(sums / sizes - sums.sum() / 1000).sum()

    sums = np.array([160.0, 80.0])
    slope = np.array([penalty(sums + 1e-3 * e) - penalty(sums - 1e-3 * e) for e in np.eye(2)]) / 2e-3
    assert found == pytest.approx(0.7 * slope * 1000, rel=1e-5)  # the loss is a mean over 1000 rows


def test_what_is_not_known_does_not_push():
    leaning = Leaning.start(task(gamma1=0.0))
    leaning.learn({"tally": told([300, 500, 100, 100]), "boundary": told([160, 80], sigma=1e4)})
    assert 0 < np.abs(leaning.now().noise_slopes).max() < 0.03


def test_a_tiny_group_has_a_bounded_weight():
    leaning = Leaning.start(task(gamma1=0.0, most_weight=3.0))
    leaning.learn({"tally": told([500, 499, 1, -3]), "boundary": told([100, 30])})
    assert np.abs(leaning.now().noise_slopes).max() <= 3.0


def test_slopes_of_clipping_go_with_what_clipping_takes_away():
    """u_a and d are those of equation 6: group b's mean gradient lies along what is cut."""
    leaning = Leaning.start(task(gamma2=0.0, clip=0.5))
    d = np.array([1.0, 0, 0, 0, 0])
    pulls = np.concatenate([800 * 0.1 * d, 200 * 0.9 * d])
    leaning.learn({"tally": told([500, 300, 100, 100]), "pulls": told(pulls), "excess": told(1000 * 0.2 * d)})
    lean = leaning.now()
    assert lean.direction == pytest.approx(0.2 * d, abs=1e-5)
    signs = np.array([-1.0, 1.0])  # of <g_a - g_D, d>
    assert lean.clip_slopes == pytest.approx(signs * 1000 / np.array([800, 200]) - signs.sum(), abs=1e-4)
    noisy = Leaning.start(leaning.task)
    noisy.learn({"tally": told([500, 300, 100, 100]), "pulls": told(pulls, 9e3), "excess": told(200 * d, 9e3)})
    assert (noisy.now().direction == 0).all()


def test_group_clips_are_dpsgd_fs_and_noise_is_for_the_largest_of_all_declared_groups():
    leaning = Leaning.start(task(mitigation="group_clip", clip=0.5))
    leaning.learn({"tally": told([700, 100, 100, 100])})
    lean = leaning.now()
    parts = np.array([100 / 800, 100 / 200]) / (200 / 1000)
    assert lean.clip * lean.cuts == pytest.approx(0.5 * (1 + parts), rel=1e-6)
    leaning.learn({"tally": told([7000, 1000, 0, 0])})  # group b is in no sample now, and its clip stands
    lean = leaning.now()
    assert lean.clip == pytest.approx((lean.clip * lean.cuts).max())
    assert lean.cuts.shape == (2,)


def test_the_adaptive_clip_moves_as_published_by_the_expected_size():
    leaning = Leaning.start(task(mitigation="global_adapt", clip=0.5, clip_rate=0.1))
    leaning.learn({"tally": told([100, 400])})  # 500 rows were drawn, 1000 expected
    assert leaning.clip == pytest.approx(0.5 * np.exp(0.4 - 0.1), rel=1e-6)
    assert leaning.scale == pytest.approx(0.5 / leaning.clip)
    for _ in range(200):
        leaning.learn({"tally": told([0, 1000])})
    assert leaning.clip == 5.0  # most_clip


@pytest.mark.parametrize("target", ["D", "C"])
@pytest.mark.usefixtures("seeded_noise")
def test_without_a_declared_size_it_counts_its_samples(target):
    table = open_table(people(2000), schema=SCHEMA)
    how = made(target=target, features=["X"], sampling=RATE, iterations=STEPS)
    release = fit(how, table, Budget(3, 1e-6))
    assert "learning rate" in release.model.facts["described"]["Descent"]
    about = float(release.model.facts["described"]["Descent"].split("about ")[1].split(" ")[0].replace(",", ""))
    assert about == pytest.approx(1000, rel=0.2)


def test_it_resumes_without_a_second_charge(tmp_path):
    seen = []

    def tick():
        seen.append(1)
        if len(seen) == 2:
            raise KeyboardInterrupt

    def opened():
        return open_table(
            people(300), schema=SCHEMA, ledger=tmp_path / "people.ledger", ledger_epsilon=3.0, declared_size=300
        )

    how, budget = made(iterations=STEPS, sampling=RATE), Budget(3, 1e-6)
    with pytest.raises(KeyboardInterrupt), fitted(how, opened(), budget, observer=OnStep(tick)):
        pass
    release = fit(how, opened(), budget)
    assert release.certificate["ledger"]["releases"] == 1
    assert release.certificate["ledger"]["spent_epsilon"] == pytest.approx(3.0)
    assert [charge["kind"] for charge in release.certificate["charges"]] == ["total"] * STEPS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mitigation": "paper"}, "not private.*averages over groups"),
        ({"mitigation": "dpsgd_f"}, "not private.*present in a batch"),
        ({"mitigation": "realised_batch"}, "not private.*realised size"),
        ({"mitigation": "other"}, "must be.*not 'other'"),
        ({"scaling": "groups"}, "figure 9"),
        ({"groups": []}, "needs groups"),
        ({"gamma1": 0.0, "gamma2": 0.0}, "nothing to mitigate"),
        ({"clip": 10.0}, "gamma1 = 0"),
        ({"groups": ["Q"]}, "not in the schema"),
        ({"target": "X", "features": ["C"]}, "categorical"),
        ({"target": "Q"}, "not in the schema"),
        ({"reference": {"C": "z"}}, "no level"),
        ({"interactions": [["X", "Y"]]}, "not a feature"),
        ({"model": "network", "clip": 20.0}, "take no gradient for longer"),
        ({"model": "network", "hidden": 1000, "target": "C", "features": ["X"]}, "too many"),
    ],
)
def test_refusals_come_before_any_charge_and_name_the_remedy(change, words):
    with pytest.raises(UsageError, match=words):
        fit(made(**change), open_table(people(50), schema=SCHEMA, declared_size=50), BUDGET)


@pytest.mark.parametrize(
    "change",
    [
        {"gamma1": -1},
        {"clip": 0},
        {"iterations": 0},
        {"memory": 1.0},
        {"statistics_share": 1.0},
        {"tail": 2},
        {"groups": "G"},
        {"features": ["X", "X"]},
        {"target": "G"},
        {"reference": []},
        {"interactions": [["X"]]},
        {"most_clip": 0.5},
        {"sampling": 0.0},
        {"region": "cube"},
        {"model": "linear"},
        {"hidden": 0},
        {"hidden": True},
    ],
)
def test_settings_out_of_range_are_refused(change):
    with pytest.raises(UsageError):
        made(**change)


def test_strata_of_its_own_groups_and_without_a_rate_are_refused():
    public = Public(SCHEMA, 100, Neighbours.ADD_REMOVE, frozenset({"G"}))
    with pytest.raises(Unsupported, match="no other group"):
        made().task(replace(public, schema=SCHEMA), BUDGET)
    public = Public(SCHEMA, 100, Neighbours.ADD_REMOVE, frozenset({"AREA"}))
    assert made().task(public, BUDGET).sampling == 1  # all records of a stratum, whatever its size
    with pytest.raises(Unsupported, match=r"sampling = 0\.05"):
        made(batch=50).task(public, BUDGET)
    with pytest.raises(Unsupported, match=r"sampling = 0\.05"):
        made(model="network", hidden=2).task(public, BUDGET)
