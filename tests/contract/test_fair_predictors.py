"""Predictors that weigh people by shares of a sensitive attribute, as FERMI does: the shares must be public."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from helpers.priced import RATE, STEPS, remember
from helpers.small import even
from helpers.toys import Toy
from stratsynth.models import Predictor, Returns, State
from stratsynth.questions import Design, Gradients, Total, total
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.testing import World, check_contract

SCHEMA = Schema(
    {
        "GROUP": Categorical(levels=("a", "b", "c")),
        "AGE": Numeric(lower=0, upper=40, bins=3),
        "WORK": Categorical(levels=("no", "yes")),
    }
)
WORLD = World(SCHEMA, ("GROUP",), even(SCHEMA, "GROUP"))
FEATURES, GROUPS = Design(("AGE",)), SCHEMA.levels("GROUP")


@dataclass(frozen=True)
class Scores(Predictor):
    """A linear score, corrected by group."""

    kind: ClassVar[str] = "scores"
    schema: Schema
    theta: Any
    shares: Any
    hidden: Any = field(default=None, compare=False)
    """Facts that predictions use and `state` does not tell."""

    @property
    def inputs(self):
        return ("GROUP", "AGE")

    def predict(self, rows):
        shares = self.shares if self.hidden is None else self.hidden
        return self.theta.sum() * rows["AGE"] / shares[rows["GROUP"]]

    def state(self):
        return State({}, {"theta": self.theta, "shares": self.shares})

    @classmethod
    def from_state(cls, schema, state):
        return cls(schema, **state.arrays)


@dataclass(frozen=True)
class Fermi(Toy):
    """Some steps of noisy gradients on Poisson samples, each scaled by the shares of the groups."""

    shares: Any = field(default=None, metadata={"describe": False}, compare=False)
    name: ClassVar[str] = "fermi_like"
    needs: ClassVar = frozenset({Total})
    returns: ClassVar = Returns.PREDICTIONS

    def price(self, public, budget):
        return budget.sampled(rate=RATE, steps=STEPS)

    def steps(self, public, allot, rng):
        theta = np.zeros(len(FEATURES.names(SCHEMA)))
        for _ in range(round(allot.amount)):
            gradient = Gradients(FEATURES, "WORK", "logistic", theta[None], clip=1.0)
            (part,) = yield from total(gradient, noise=allot.noise, rate=allot.rate)
            theta = theta - self.step(part.values)
        return self.learned(theta)

    def step(self, gradient):
        return 0.01 * gradient

    def learned(self, theta):
        return Scores(SCHEMA, theta, np.full(len(GROUPS), 1 / len(GROUPS)))


class ScalesItsSteps(Fermi):
    """The exact shares scale each step, as in the published code."""

    def step(self, gradient):
        return 0.01 * gradient / self.shares.max()


class StoresShares(Fermi):
    """The exact shares end in the model."""

    def learned(self, theta):
        return Scores(SCHEMA, theta, self.shares)


class PredictsByShares(Fermi):
    """The exact shares end in predictions alone."""

    def learned(self, theta):
        return Scores(SCHEMA, theta, np.full(len(GROUPS), 1 / len(GROUPS)), self.shares)


def found(kind, **further):
    def build(world, rows):
        exact = np.array([(rows["GROUP"] == level).sum() + 1.0 for level in GROUPS])
        return kind(shares=exact / exact.sum())

    return {finding.kind for finding in check_contract(build, among=[WORLD], tables=4, neighbours=4, **further)}


def test_public_shares_pass():
    remember()
    assert found(Fermi) == set()


@pytest.mark.parametrize(
    ("kind", "what"), [(ScalesItsSteps, "questions"), (StoresShares, "result"), (PredictsByShares, "result")]
)
def test_exact_shares_are_caught(kind, what, monkeypatch):
    monkeypatch.setattr("stratsynth.testing.contract.CAN_FORK", False)  # by replaying alone
    assert what in found(kind)
