"""Without PyTorch: refusals that name the extra, before any charge; and all that needs no PyTorch."""

import sys

import numpy as np
import pytest

import stratsynth as ss
from helpers.regressing import SCHEMA, people
from stratsynth.adapters import DPFermi
from stratsynth.adapters.networks import Blueprint, Module
from stratsynth.adapters.sklearn import FermiClassifier
from stratsynth.errors import Unsupported, UsageError
from stratsynth.questions import Coded

NAMES = r'pip install "\.\[torch\]"'
BUDGET = ss.Budget(3, 1e-6)
HOW = {
    "target": "D",
    "features": ["X", "C"],
    "groups": ["G"],
    "penalty": 1.0,
    "network": "mlp",
    "sampling": 0.5,
    "iterations": 3,
}


@pytest.fixture(autouse=True)
def _missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)


def test_a_fit_is_refused_and_leaves_no_ledger(tmp_path):
    table = ss.open_table(people(100), schema=SCHEMA, declared_size=100, ledger=tmp_path / "people.ledger")
    with pytest.raises(Unsupported, match=NAMES):
        ss.fit(DPFermi(**HOW), table, BUDGET)
    assert not list(tmp_path.iterdir())


def test_an_estimator_is_refused():
    x = np.zeros((20, 4))
    how = FermiClassifier(epsilon=1, delta=1e-6, bounds=(-1, 1), classes=[0, 1], penalty=0, network="mlp")
    with pytest.raises(Unsupported, match=NAMES):
        how.fit(x, np.arange(20) % 2)


def test_a_stored_network_is_read_and_says_what_predictions_need():
    made = Module(SCHEMA, Coded(("X", "C")), "D", Blueprint("mlp", (4,), (), 3, 2), np.ones(26), {"steps": 3})
    again = Module.from_state(SCHEMA, made.state())
    assert (again.blueprint, again.facts) == (made.blueprint, made.facts)
    with pytest.raises(Unsupported, match=NAMES):
        again.predict(again.shown(people(5)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"network": "rnn"}, 'network is "mlp" or "conv"'),
        ({"network": 3}, 'network is "mlp" or "conv"'),
        ({"network": "conv"}, "image, of two or three numbers"),
        ({"image": [2, 2]}, "goes with network"),
        ({"network": "conv", "image": [4]}, "two or three"),
        ({"network": "conv", "image": [2, 0]}, "image"),
        ({"hidden": []}, "at least one layer"),
        ({"hidden": [2.0]}, "hidden"),
        ({"hidden": 8}, "list of whole numbers"),
        ({"hidden": [True]}, "hidden"),
        ({"network": "conv", "image": "22"}, "list of whole numbers"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        DPFermi(**{**HOW, **settings})
