"""Networks by PyTorch: their gradients, what couples rows and is refused, what is stored; skipped without it."""

import numpy as np
import pytest

import stratsynth as ss
from helpers.fits import OnStep
from helpers.ledgers import lines_of
from helpers.regressing import SCHEMA, exactly, people
from helpers.small import even
from stratsynth import fitting
from stratsynth.adapters import DPFermi
from stratsynth.adapters.fermi.network_task import FermiNetworkProblem
from stratsynth.adapters.networks import Blueprint, Module, per_row
from stratsynth.adapters.sklearn import FermiClassifier
from stratsynth.errors import MechanismError, StratsynthError, Unsupported, UsageError
from stratsynth.files.npz import State
from stratsynth.questions.sums.perrow import BATCH

torch = pytest.importorskip("torch", reason="PyTorch is not installed; scripts/test --with torch installs it")
nn = torch.nn
pytestmark = pytest.mark.torch
RNG = np.random.default_rng(0)
MLP, CONV = Blueprint("mlp", (4, 3), (), 5, 3), Blueprint("conv", (3, 2), (6, 4), 24, 3)
BUDGET = ss.Budget(3, 1e-6)
HOW = {
    "target": "D",
    "features": ["X", "C"],
    "groups": ["G"],
    "penalty": 1.0,
    "network": "mlp",
    "hidden": [4],
    "sampling": 0.5,
}


def rows(blueprint):
    x = np.clip(RNG.uniform(-1.5, 1.5, (BATCH, blueprint.features)), -1, 1)
    return x, RNG.integers(blueprint.classes, size=BATCH), RNG.normal(size=(BATCH, blueprint.classes))


@pytest.mark.parametrize("blueprint", [MLP, CONV, Blueprint("conv", (2,), (2, 4, 3), 24, 2)])
def test_gradients_are_those_of_finite_differences(blueprint):
    made = per_row("fermi", blueprint, 1.0)
    weights, (x, levels, slopes) = RNG.normal(0, 0.5, made.weights), rows(blueprint)
    found, chances = made.function(weights, x, levels, slopes)

    def values(weights):
        p = made.function(weights, x, levels, slopes)[1]
        return -np.log(p[np.arange(BATCH), levels]) + (slopes * p).sum(axis=1)

    for i in RNG.permutation(made.weights)[:20]:
        step = np.eye(1, made.weights, i)[0] * 1e-5
        by_hand = (values(weights + step) - values(weights - step)) / 2e-5
        assert np.abs(found[:, i] - by_hand).max() < 1e-6
    assert np.allclose(chances.sum(axis=1), 1)


def test_a_penalty_alone_has_the_gradient_of_its_closed_form():
    """A network without hidden layers is softmax regression with a constant."""
    made = per_row("fermi", Blueprint(linear, (), (), 5, 3), 1.0)
    weights, (x, levels, slopes) = RNG.normal(size=18), rows(MLP)
    found, p = made.function(weights, x, levels, slopes)
    residuals = p - np.eye(3)[levels] + p * (slopes - (p * slopes).sum(axis=1, keepdims=True))
    by_hand = np.concatenate([(residuals[:, :, None] * x[:, None]).reshape(BATCH, -1), residuals], axis=1)
    assert np.abs(found - by_hand).max() < 1e-12


def linear(features, classes):
    return nn.Linear(features, classes)


def normed(*layers):
    return lambda features, classes: nn.Sequential(nn.Linear(features, 6), *layers, nn.Linear(6, classes))


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([nn.BatchNorm1d(6)], r"BatchNorm1d \(1\) takes means .* Take GroupNorm or LayerNorm"),
        ([nn.BatchNorm1d(6, track_running_stats=False)], "BatchNorm1d"),
        ([nn.InstanceNorm1d(6, track_running_stats=True)], "InstanceNorm1d"),
        ([nn.Sequential(nn.Tanh(), nn.Dropout(0.1))], r"Dropout \(1.1\) draws at random"),
    ],
)
def test_layers_that_couple_rows_are_refused_with_the_reason(layers, words):
    with pytest.raises(Unsupported, match=words):
        per_row("fermi", Blueprint(normed(*layers), (), (), 5, 3), 1.0)


@pytest.mark.parametrize("layers", [[nn.LayerNorm(6)], [nn.GroupNorm(2, 6)], [nn.ReLU()], [nn.GELU(), nn.Identity()]])
def test_layers_of_one_row_are_taken(layers):
    assert per_row("fermi", Blueprint(normed(*layers), (), (), 5, 3), 1.0).weights > 50


class Odd(nn.Module):
    """Linear, after something that is done to its inputs."""

    def __init__(self, what):
        super().__init__()
        self.linear, self.what, self.seen = nn.Linear(5, 3), what, 0

    def forward(self, x):
        self.seen += 1
        return self.linear(self.what(self, x))


ODD = {
    "a counter": (lambda self, x: x * (1 + 0.01 * self.seen), "other gradients"),
    "random numbers": (lambda self, x: x + torch.randn(5, dtype=x.dtype), "fails on made-up rows.*random"),
    "random numbers of its own": (
        lambda self, x: x + float(np.random.normal()),  # noqa: NPY002 - a network with randomness of its own
        "other gradients",
    ),
    "numbers of rows": (lambda self, x: x * float(x.sum()), "fails on made-up rows"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_a_module_keeps_or_draws_is_found_on_made_up_rows(name):
    what, words = ODD[name]
    with pytest.raises(MechanismError, match=words):
        per_row("fermi", Blueprint(lambda features, classes: Odd(what), (), (), 5, 3), 1.0)


def test_what_is_no_module_or_has_no_weights_is_refused():
    for function, words in ((lambda f, c: 3, "no torch.nn.Module"), (lambda f, c: nn.Identity(), "no weights")):
        with pytest.raises(Unsupported, match=words):
            per_row("fermi", Blueprint(function, (), (), 5, 3), 1.0)


def fitted(frame=None, seed=3, **more):
    table = ss.open_table(people(800) if frame is None else frame, schema=SCHEMA, declared_size=800)
    return ss.fit(DPFermi(**{**HOW, "iterations": 6, **more}), table, BUDGET, seed=seed)


def test_a_release_is_stamped_stored_without_pickle_and_predicts(tmp_path):
    release, frame = fitted(), people(50, seed=9)
    assert "tested on made-up rows, not proven" in release.certificate["unverified"][0]
    assert "mlp of 4 hidden units" in release.model.facts["described"]["Model"]
    release.save(tmp_path / "release")
    again = ss.Release.load(tmp_path / "release")
    told = release.predict(frame)
    assert (again.predict(frame) == told).all()
    assert set(told) <= {"no", "yes"}
    for path in (tmp_path / "release" / "model").rglob("*.np*"):
        with np.load(path, allow_pickle=False) as arrays:
            assert all(arrays[name].dtype.kind in "fiu" for name in arrays.files)
    assert ss.verify(tmp_path / "release").ok


def test_it_learns_from_exact_sums_what_no_line_can_tell():
    """D is yes where X is far from 0."""
    frame = people(1000)
    frame["D"] = np.where(frame.X.abs() > 0.5, "yes", "no")
    settings = {"iterations": 300, "penalty": 0.0, "clip": 50.0, "rate": 1.0, "sampling": 1.0, "hidden": [8]}
    model, asked = exactly(DPFermi(**{**HOW, **settings}), frame)
    assert (model.predict(model.shown(frame)) == frame.D).mean() > 0.95
    assert {len(charges) for _, charges in asked} == {1}


@pytest.mark.parametrize("criterion", ["parity", "odds"])
def test_a_network_of_one_layer_learns_what_logistic_regression_learns(criterion):
    """Of its two logits both move, so half the learning rate is the same step."""
    frame = people(1000, slopes=(0.2, 0.2), share=0.5)
    frame["X"] = np.clip(frame.X + np.where(frame.G == "b", 0.6, -0.6), -1, 1)
    settings = {"iterations": 150, "clip": 50.0, "sampling": 1.0, "criterion": criterion, "penalty": 3.0, "ascent": 1.0}
    chances = []
    for network, rate in ((None, 1.0), (linear, 0.5)):
        model, _ = exactly(DPFermi(**{**HOW, **settings, "network": network, "rate": rate}), frame)
        chances.append(model.probabilities(model.shown(frame)))
    assert np.abs(chances[0] - chances[1]).max() < 0.02


def test_the_seed_reaches_the_first_weights_and_nothing_else():
    """Made of exact sums, a step of size 0 leaves what the seed decided."""
    task = DPFermi(**HOW).task(ss.mechanisms.Public(SCHEMA, 800), ss.Budget(1, 1e-9))
    one, again, other = (task.start(1, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()
    assert one.shape == (1, task.per_row.weights)


class Stop(Exception):
    pass


def test_an_interrupted_fit_goes_on_from_the_same_first_weights(tmp_path, monkeypatch):
    started, seen, begin = [], [], FermiNetworkProblem.start
    monkeypatch.setattr(FermiNetworkProblem, "start", lambda *given: started.append(begin(*given)) or started[-1])
    how = DPFermi(**{**HOW, "iterations": 3})

    def tick():
        seen.append(1)
        if len(seen) == 2:
            raise Stop

    def opened():
        ledger = tmp_path / "people.ledger"
        return ss.open_table(people(300), schema=SCHEMA, ledger=ledger, ledger_epsilon=5.0, declared_size=300)

    with pytest.raises(Stop), fitting.fitted(how, opened(), BUDGET, observer=OnStep(tick)):
        pass
    weights = ss.fit(how, opened(), BUDGET).model.weights
    assert np.isfinite(weights).all()
    assert [one.shape for one in started] == [(1, len(weights))] * 4  # each fit is rehearsed first
    assert (started[1] == started[3]).all()
    charges = [line for line in lines_of(tmp_path / "people.ledger") if line["kind"] == "charge"]
    assert [line["moment"] for line in charges] == [0, 1, 2]


def own(features, classes):
    return nn.Sequential(nn.Linear(features, 3), nn.ReLU(), nn.Linear(3, classes))


def larger(features, classes):
    return nn.Sequential(nn.Linear(features, 4), nn.ReLU(), nn.Linear(4, classes))


def test_a_release_of_ones_own_network_predicts_once_it_is_given_its_function(tmp_path):
    release, frame = fitted(network=own), people(20)
    release.save(tmp_path / "release")
    model = ss.Release.load(tmp_path / "release").model
    assert release.certificate["mechanism"]["settings"]["network"] == "own"
    with pytest.raises(Unsupported, match=r"Give it: `model.using\(function\)`"):
        model.predict(model.shown(frame))
    with pytest.raises(UsageError, match="this network"):
        model.using(larger)
    again = model.using(own)
    told = release.model
    assert (again.probabilities(again.shown(frame)) == told.probabilities(told.shown(frame))).all()
    with pytest.raises(UsageError, match="needs no function"):
        fitted().model.using(own)


def damaged(facts=None, weights=None):
    blueprint = Blueprint("conv", (2,), (2, 2), 4, 2)
    design = ss.questions.Coded(("X", "Z", "C"))
    state = Module(SCHEMA, design, "D", blueprint, np.ones(60)).state()
    return State({**state.facts, **(facts or {})}, {"weights": np.ones(60) if weights is None else weights})


@pytest.mark.parametrize(
    "state",
    [
        damaged({"network": "rnn"}),
        damaged({"hidden": [0]}),
        damaged({"hidden": [True]}),
        damaged({"image": [2, 3]}),
        damaged({"image": []}),
        damaged({"target": "Y"}),
        damaged({"target": "X"}),
        damaged({"fit": 3}),
        damaged(weights=np.ones((2, 2))),
        damaged(weights=np.ones(0)),
        damaged(weights=np.full(3, np.nan)),
        damaged(weights=np.ones(3, np.float32)),
    ],
)
def test_what_is_damaged_is_refused(state):
    assert Module.from_state(SCHEMA, damaged()).blueprint.named == "conv of 2 x 2 pixels, 2 channels"
    with pytest.raises(StratsynthError):
        Module.from_state(SCHEMA, state)


def test_the_wrong_number_of_pixels_is_refused_before_anything_is_charged(tmp_path):
    table = ss.open_table(people(100), schema=SCHEMA, declared_size=100, ledger=tmp_path / "one.ledger")
    how = DPFermi(**{**HOW, "features": ["X", "Z", "Y"], "network": "conv", "image": [2, 2]})
    with pytest.raises(Unsupported, match="2 x 2 has 4 pixels, and there are 3 features"):
        ss.fit(how, table, BUDGET)
    assert not (tmp_path / "one.ledger").exists()


def test_strata_and_odds():
    how = DPFermi(**{**HOW, "iterations": 4, "criterion": "odds"})
    table = ss.open_table(people(600), schema=SCHEMA, declared_size=600)
    release = ss.fit(ss.Stratified(how, ["C"], even(SCHEMA, "C")), table, BUDGET)
    assert len(release.predict(people(20))) == 20
    assert len(release.certificate["unverified"]) == 1


def test_the_estimator_takes_images():
    x = RNG.normal(size=(400, 16))
    y, s = np.where(x[:, 0] > 0, "a", "b"), RNG.choice(["f", "m"], 400)
    how = FermiClassifier(
        epsilon=3,
        delta=1e-6,
        bounds=(-3, 3),
        classes=["a", "b"],
        groups=["f", "m"],
        penalty=1,
        network="conv",
        image=(4, 4),
        hidden=(2,),
        iterations=4,
        sampling=0.5,
    )
    chances = how.fit(x, y, sensitive_features=s).predict_proba(x)
    assert chances.shape == (400, 2)
    assert how.certificate_["unverified"]
    assert not hasattr(how, "coef_")
