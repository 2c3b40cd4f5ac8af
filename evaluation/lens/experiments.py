"""INTERNAL. The experiments of paper 001 on simulated people, each a frame."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from stratsynth.evaluation.lens.losses import Linear, Logistic, Loss, Tanh
from stratsynth.evaluation.lens.mitigated import descend_mitigated
from stratsynth.evaluation.lens.output import fitted, perturbed, spread
from stratsynth.evaluation.lens.predictors import losses, unclipped
from stratsynth.evaluation.lens.simulate import WORLDS, World, as_table, by_groups, make_people
from stratsynth.evaluation.lens.step import Step, decompose
from stratsynth.evaluation.lens.training import Training, descend, risks
from stratsynth.evaluation.lens.twins import fit_internal
from stratsynth.evaluation.tables import EncodedRows

from stratsynth.accounting.budget import Budget
from stratsynth.data.table import open_table
from stratsynth.mechanisms import make, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator
    from stratsynth.evaluation.lens.people import People

ROWS = 2_000
CLIP, MULTIPLIER, BATCH, STEPS, RATE = 0.3, 5.0, 32, 400, 0.5
"""The paper's multiplier and batch; its clip of 0.1 and rate of 1e-4 would take far more steps to learn anything."""
PENALTY, EPSILON, DELTA = 0.01, 1.0, 1e-5
HIDDEN = 5
GAMMAS = (0.0, 0.1, 1.0)
MITIGATIONS = ("none", "surrogate", "group_clip", "global_adapt")


def output(runs: int, rng: Generator) -> pd.DataFrame:
    """Figure 8: traces and excessive risk under output perturbation, of linear and logistic models."""
    frames = []
    for world in WORLDS:
        people = make_people(world, ROWS, rng)
        longest = float(np.sqrt((people.x**2).sum(axis=1).max()))
        kinds: dict[str, tuple[Loss, float]] = {
            "linear": (Linear(), 0.1),  # squared loss has no Lipschitz constant: the noise is set, not calibrated
            "logistic": (Logistic(), spread(EPSILON, DELTA, 2 * longest / (people.size * PENALTY))),
        }
        for name, (loss, noise) in kinds.items():
            theta = fitted(loss, people, PENALTY)
            frames.append(perturbed(loss, people, theta, noise, runs, rng).assign(world=world.name, model=name))
    return pd.concat(frames, ignore_index=True)


def training(runs: int, rng: Generator) -> pd.DataFrame:
    """Figures 9 to 12: the parts over a training, of logistic models and of networks; as it is and by groups."""
    frames = []
    how = Training(RATE, STEPS, BATCH, every=STEPS // 4)
    for world in WORLDS:
        people = make_people(world, ROWS, rng)
        for scaled, here in (("by bounds", people), ("by groups", by_groups(people))):
            for name, loss in (("logistic", Logistic()), ("tanh", Tanh(HIDDEN))):
                start = loss.start(here.x.shape[1], 0) if isinstance(loss, Tanh) else np.zeros(here.x.shape[1])
                found = risks(
                    loss, here, start, CLIP, MULTIPLIER, how, runs=runs, seed=int(rng.integers(2**32)), samples=3
                )
                frames.append(found.assign(world=world.name, model=name, scaled=scaled))
    return pd.concat(frames, ignore_index=True)


def steps(rng: Generator) -> pd.DataFrame:
    """Theorem 2 along a training without noise: the parts of one step, and how traces go with the boundary."""
    frames = []
    how = Training(RATE, STEPS, BATCH, every=STEPS // 2)
    for world in WORLDS:
        people = make_people(world, ROWS, rng)
        for name, loss in (("logistic", Logistic()), ("tanh", Tanh(HIDDEN))):
            start = loss.start(people.x.shape[1], 0) if isinstance(loss, Tanh) else np.zeros(people.x.shape[1])
            trail = descend(loss, people, start[:, None], np.array([math.inf]), np.zeros(1), how, rng)
            for at, thetas in zip(how.looks, trail, strict=True):
                theta = thetas[:, 0]
                step = Step.usual(RATE, CLIP, MULTIPLIER, BATCH, people.size)
                together = np.corrcoef(
                    loss.traces(people.x, people.y, thetas)[:, 0], loss.boundary(people.x, thetas)[:, 0]
                )[0, 1] if at else np.nan  # fmt: skip
                frames.append(
                    decompose(loss, people, theta, step).assign(
                        world=world.name, model=name, step=at, correlation=together
                    )
                )
    return pd.concat(frames, ignore_index=True)


def mitigation(repeats: int, rng: Generator) -> pd.DataFrame:
    """Figure 12: `fair_sgd` with each mitigation, each fit's excessive risk above the same plain twin."""
    rows = []
    for world in WORLDS:
        people = make_people(world, 4 * ROWS, rng)
        rows += list(_mitigated(world, people, repeats))
    return pd.DataFrame(rows)


def networks(runs: int, rng: Generator) -> pd.DataFrame:
    """Figure 12 for networks, whose gamma2 is simulated: each run's excessive risk above the same plain twin."""
    rows, how, gammas = [], Training(RATE, STEPS, BATCH), np.repeat(GAMMAS, runs)
    for world in WORLDS:
        people = make_people(world, ROWS, rng)
        for name, loss in (("logistic", Logistic()), ("tanh", Tanh(HIDDEN))):
            start = loss.start(people.x.shape[1], 0) if isinstance(loss, Tanh) else np.zeros(people.x.shape[1])
            plain = descend(loss, people, start[:, None], np.array([math.inf]), np.zeros(1), how, rng)[-1]
            theta = descend_mitigated(loss, people, start, CLIP, MULTIPLIER, gammas, how, rng)
            excess = people.means(loss.values(people.x, people.y, theta) - loss.values(people.x, people.y, plain))
            rows += [
                {"world": world.name, "model": name, "gamma2": gamma, **dict(zip(people.scopes, one, strict=True))}
                for gamma, one in zip(gammas, excess.T, strict=True)
            ]
    return pd.DataFrame(rows)


def _mitigated(world: World, people: People, repeats: int) -> Iterator[dict[str, object]]:
    frame, schema = as_table(people)
    table = open_table(frame, schema=schema, declared_size=len(frame))
    rows, plain = EncodedRows.read(frame, schema), None
    for name in MITIGATIONS:
        settings = {
            "target": "CLASS", "groups": ["GROUP"], "mitigation": name, "iterations": 300, "batch": 400, "clip": 0.2,
            "rate": 4.0,
        }  # fmt: skip
        prepared = prepare(make("fair_sgd", settings), schema, Budget(EPSILON, DELTA), len(frame))
        if plain is None:
            twin = unclipped(prepared)
            assert twin is not None  # noqa: S101 - it has a clip
            model = fit_internal(twin, table, noise=False, seed=0).model
            plain = people.means(losses(model, rows, "CLASS"))
        for repeat in range(repeats):
            model = fit_internal(prepared, table, noise=True, seed=repeat).model
            excess = people.means(losses(model, rows, "CLASS")) - plain
            yield {
                "world": world.name, "mitigation": name, "repeat": repeat,
                **dict(zip(people.scopes, excess, strict=True)),
            }  # fmt: skip
