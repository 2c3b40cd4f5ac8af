"""`predict --only attribute`: DP-FERMI that protects the sensitive attribute alone, beside one that protects all."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

import stratsynth as ss
from benches.fermi import STEPS, sized_like_adult
from benches.figures import seconds, timed
from stratsynth.accounting.budget import Neighbours
from stratsynth.mechanisms import make
from studies import data
from studies.fermi.reproduce import DELTA
from studies.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stratsynth.models import Predictor

PENALTIES = (0.5, 2.0)
EPSILONS = (0.25,)
TRAIN, TEST = 20_000, 20_000
PROTECTED = {"all": Neighbours.ADD_REMOVE, "sensitive": Neighbours.ATTRIBUTE}


def run(*, seeds: int = 3) -> list[Figure]:
    """Error and violation of parity on new people, and the time of one fit."""
    return [*_correlated(seeds), _speed()]


def opened(problem: data.Problem) -> data.Problem:
    """Return the problem with a schema that names all but the group public, and a group that leaves no row out."""
    columns = {
        name: dataclasses.replace(column, outside="a") if name == "S" else dataclasses.replace(column, public=True)
        for name, column in problem.schema.columns.items()
    }
    return dataclasses.replace(problem, schema=dataclasses.replace(problem.schema, columns=columns))


def _fitted(problem: data.Problem, protect: str, epsilon: float, penalty: float, steps: int, seed: int) -> Predictor:
    """Fit once, on a table of its own."""
    size = len(problem.frame)
    table = ss.open_table(
        problem.frame.assign(RUN=f"{protect} {epsilon} {penalty} {seed}"), schema=problem.schema, declared_size=size
    )
    settings = {"target": "Y", "groups": ["S"], "iterations": steps, "penalty": penalty, "protect": protect}
    release = ss.fit(make("fermi", settings), table, ss.Budget(epsilon, DELTA, PROTECTED[protect]), progress=False)
    return release.model.predictor()


def _correlated(seeds: int) -> Iterator[Figure]:
    for epsilon in EPSILONS:
        for penalty in PENALTIES:
            for protect in PROTECTED:
                found = np.array([_scores(protect, epsilon, penalty, seed) for seed in range(seeds)])
                head = f"correlated problem, epsilon {epsilon:g}, lambda {penalty:g}, protect {protect}"
                for name, values in zip(("error", "violation of parity"), found.T, strict=True):
                    spread = float(np.ptp(values)) / 2
                    yield Figure(f"{head}: {name}", float(values.mean()), "", seeds, spread)


def _scores(protect: str, epsilon: float, penalty: float, seed: int) -> tuple[float, float]:
    """Error and violation, on new people."""
    train, test = opened(data.correlated(TRAIN, seed)), data.correlated(TEST, 1_000 + seed)
    model = _fitted(train, protect, epsilon, penalty, 1_000, seed)
    said = np.asarray(model.predict(model.shown(test.frame))) == "yes"
    group = (test.frame.S == "b").to_numpy()
    error = float((said != (test.frame.Y == "yes").to_numpy()).mean())
    return error, abs(float(said[group].mean() - said[~group].mean()))


def _speed() -> Figure:
    people = opened(sized_like_adult())
    what = f"one fit, {STEPS:,} steps on {len(people.frame):,} rows, protect sensitive, its certificate included"
    return seconds(what, timed(lambda: _fitted(people, "sensitive", 3.0, 1.0, STEPS, 0), 1, warm=False))
