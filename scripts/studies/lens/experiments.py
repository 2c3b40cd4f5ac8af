"""INTERNAL. The experiments of paper 001, each a frame; of simulated people and of real ones alike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from stratsynth.accounting.budget import Budget
from stratsynth.data.table import open_table
from stratsynth.evaluation.lens.predictors import losses, unclipped
from stratsynth.evaluation.lens.twins import fit_internal
from stratsynth.evaluation.tables import EncodedRows, group_numbers
from stratsynth.mechanisms import make, prepare
from studies.lens.losses import Linear, Logistic, Loss, Tanh
from studies.lens.output import fitted, perturbed, spread
from studies.lens.simulate import by_groups
from studies.lens.step import Step, decompose
from studies.lens.theorem import compare
from studies.lens.training import Training, descend, risks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from numpy.random import Generator
    from numpy.typing import NDArray

    from studies.lens.cases import Case
    from studies.lens.people import People

    Floats = NDArray[np.float64]

CLIP, MULTIPLIER, BATCH, STEPS, RATE = 0.3, 5.0, 32, 400, 0.5
"""The paper's multiplier and batch; its clip of 0.1 and rate of 1e-4 would take far more steps to learn anything."""
PAPERS_CLIP = 0.1
PENALTY, EPSILON, DELTA = 0.01, 1.0, 1e-5
HIDDEN = 5
FITTED = {"iterations": 300, "batch": 400, "clip": 0.2}
"""Settings of `fair_sgd`."""
MODELS = ("logistic", "network")
WAYS: Mapping[str, Mapping[str, Any]] = {
    "none": {"mitigation": "none"},
    "gamma1 and gamma2 of 1": {},
    "gamma1 and gamma2 of 0.1": {"gamma1": 0.1, "gamma2": 0.1},
    "gamma1 alone": {"gamma2": 0.0},
    "gamma2 alone": {"gamma1": 0.0},
    "group_clip": {"mitigation": "group_clip"},
    "global_adapt": {"mitigation": "global_adapt"},
}
"""Ways to lean against unequal risk, and none."""


def output(cases: Sequence[Case], runs: int, rng: Generator) -> pd.DataFrame:
    """Figure 8: traces and excessive risk under output perturbation, of linear and logistic models."""
    frames = []
    for case in cases:
        people = case.people
        longest = float(np.sqrt((people.x**2).sum(axis=1).max()))
        kinds: dict[str, tuple[Loss, float]] = {
            "linear": (Linear(), 0.1),  # squared loss has no Lipschitz constant: the noise is set, not calibrated
            "logistic": (Logistic(), spread(EPSILON, DELTA, 2 * longest / (people.size * PENALTY))),
        }
        for name, (loss, noise) in kinds.items():
            theta = fitted(loss, people, PENALTY)
            frames.append(perturbed(loss, people, theta, noise, runs, rng).assign(world=case.name, model=name))
    return pd.concat(frames, ignore_index=True)


def kinds(people: People) -> Iterator[tuple[str, Loss, Floats]]:
    """A logistic model and a network, each with where it starts."""
    features = people.x.shape[1]
    yield "logistic", Logistic(), np.zeros(features)
    network = Tanh(HIDDEN)
    yield "tanh", network, network.start(features, 0)


def training(cases: Sequence[Case], runs: int, rng: Generator) -> pd.DataFrame:
    """Figures 9 to 12: the parts over a training, of logistic models and of networks; as it is and by groups."""
    frames = []
    how = Training(RATE, STEPS, BATCH, every=STEPS // 4)
    for case in cases:
        for scaled, here in (("by bounds", case.people), ("by groups", by_groups(case.people))):
            for name, loss, start in kinds(here):
                seed = int(rng.integers(2**32))
                found = risks(loss, here, start, CLIP, MULTIPLIER, how, runs=runs, seed=seed, samples=3)
                frames.append(found.assign(world=case.name, model=name, scaled=scaled))
    return pd.concat(frames, ignore_index=True)


def steps(cases: Sequence[Case], rng: Generator) -> pd.DataFrame:
    """Theorem 2 along a training without noise: the parts of one step, and how traces go with the boundary."""
    frames = []
    how = Training(RATE, STEPS, BATCH, every=STEPS // 2)
    for case in cases:
        people = case.people
        for name, loss, start in kinds(people):
            trail = descend(loss, people, start[:, None], np.array([math.inf]), np.zeros(1), how, rng)
            for at, thetas in zip(how.looks, trail, strict=True):
                step = Step.usual(RATE, CLIP, MULTIPLIER, BATCH, people.size)
                together = (
                    np.corrcoef(loss.traces(people.x, people.y, thetas)[:, 0], loss.boundary(people.x, thetas)[:, 0])[
                        0, 1
                    ]
                    if at
                    else np.nan
                )
                found = decompose(loss, people, thetas[:, 0], step)
                frames.append(found.assign(world=case.name, model=name, step=at, correlation=together))
    return pd.concat(frames, ignore_index=True)


def theorem(cases: Sequence[Case], rng: Generator) -> pd.DataFrame:
    """Theorem 3 and its Lemmas, along a training without noise, by the clip."""
    frames = []
    how = Training(RATE, STEPS, BATCH, every=STEPS // 2)
    for case in cases:
        for name, loss, start in kinds(case.people):
            trail = descend(loss, case.people, start[:, None], np.array([math.inf]), np.zeros(1), how, rng)
            for at, thetas in zip(how.looks, trail, strict=True):
                for clip in (PAPERS_CLIP, CLIP):
                    found = compare(loss, case.people, thetas[:, 0], clip, RATE)
                    frames.append(found.assign(world=case.name, model=name, step=at, clip=clip))
    return pd.concat(frames, ignore_index=True)


def mitigation(cases: Sequence[Case], repeats: int) -> pd.DataFrame:
    """Figure 12: `fair_sgd` in every way, each fit's excessive risk above the same plain twin; a line a group."""
    return pd.concat([mitigated(case, model, repeats) for case in cases for model in MODELS], ignore_index=True)


def mitigated(
    case: Case, model: str, repeats: int, epsilon: float = EPSILON, ways: Sequence[str] = tuple(WAYS)
) -> pd.DataFrame:
    """Return one case's and model's fits at an epsilon: a line a way, repeat and group, and one for everybody."""
    table = open_table(case.frame, schema=case.schema, declared_size=len(case.frame))
    rows = EncodedRows.read(case.frame, case.schema)
    group, labels = group_numbers(rows, (case.group,)), case.schema.levels(case.group)
    usual = {"target": case.target, "groups": [case.group], "model": model, "hidden": HIDDEN, **FITTED}
    usual["rate"] = case.rate if model == "logistic" else 1.0

    def means(values: Floats) -> Floats:
        found = [values[group == k].mean() if (group == k).any() else np.nan for k in range(len(labels))]
        return np.array([*found, values.mean()])

    plain, found = None, []
    counts = [*np.bincount(group, minlength=len(labels)), rows.rows]
    for name in ways:
        how, budget = make("fair_sgd", {**usual, **WAYS[name]}), Budget(epsilon, DELTA)
        prepared = prepare(how, case.schema, budget, len(case.frame))
        if plain is None:
            twin = unclipped(prepared)
            assert twin is not None  # noqa: S101 - it has a clip
            plain = means(losses(fit_internal(twin, table, noise=False, seed=0).model, rows, case.target))
        for repeat in range(repeats):
            # the seed is of a network's first weights, which are those of the twin; noise and samples are fresh
            fitted = fit_internal(prepared, table, noise=True, seed=0).model
            found.append(
                pd.DataFrame(
                    {
                        "world": case.name,
                        "model": model,
                        "mitigation": name,
                        "repeat": repeat,
                        "group": [*labels, "everybody"],
                        "n": counts,
                        "excess": means(losses(fitted, rows, case.target)) - plain,
                    }
                )
            )
    return pd.concat(found, ignore_index=True)
