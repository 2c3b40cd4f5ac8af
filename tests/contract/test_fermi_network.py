"""DP-FERMI of networks on neighbouring tables, with PyTorch where it is installed; and a planted leak."""

import numpy as np
import pytest

from helpers.priced import RATE, STEPS, remember
from helpers.small import even
from stratsynth import Categorical, Numeric, Schema
from stratsynth.mechanisms import make
from stratsynth.questions.sums import perrow
from stratsynth.testing import World, check_contract

pytest.importorskip("torch", reason="PyTorch is not installed; scripts/test --with torch installs it")
pytestmark = pytest.mark.torch
SCHEMA = Schema(
    {
        "GROUP": Categorical(levels=("a", "b", "c")),
        "AGE": Numeric(lower=0, upper=40, bins=3, missing=True),
        "BMI": Numeric(lower=10, upper=50, bins=2),
        "WORK": Categorical(levels=("no", "yes"), outside="no"),
    }
)
WORLD = World(SCHEMA, ("GROUP",), even(SCHEMA, "GROUP"))
WAYS = {
    "parity": {"target": "WORK", "features": ["AGE", "BMI"]},
    "odds": {"target": "WORK", "features": ["AGE", "BMI"], "criterion": "odds", "tail": 0.0},
    "no penalty": {"target": "WORK", "features": ["AGE", "BMI"], "penalty": 0.0},
}


def findings(settings, monkeypatch):
    monkeypatch.setattr("stratsynth.testing.contract.CAN_FORK", False)  # PyTorch's threads do not survive a fork
    remember()

    def build(world, rows):
        how = {"iterations": STEPS, "groups": ["GROUP"], "penalty": 1.0, "sampling": RATE}
        how |= {"network": "mlp", "hidden": [3]}
        return make("fermi", {**how, **settings})

    return check_contract(build, among=[WORLD], tables=3, neighbours=3)


@pytest.mark.parametrize("way", WAYS)
def test_it_keeps_the_contract(way, monkeypatch):
    assert findings(WAYS[way], monkeypatch) == []


def test_a_clip_after_averaging_is_caught(monkeypatch):
    into_ball = perrow.into_ball

    def after(vectors, radius):
        return np.rint(into_ball(vectors / 64, radius) * 64).astype(np.int64)

    monkeypatch.setattr(perrow, "into_ball", after)
    found = {finding.kind for finding in findings({**WAYS["parity"], "clip": 0.01}, monkeypatch)}
    assert "sensitivity" in found
