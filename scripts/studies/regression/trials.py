"""One experiment of paper 000: the methods side by side at the same true budget, on the same people.

A method is a mode (`DPSE`: budgets by stage 1's residual errors; `DPNoSE`: alike), an accounting, and a weighting of
the groups (`pooled`: 1/n a record; `balanced`: 1/(K n_k)). DPSE spends a fifth of rho on stage 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.regression.simulate import People, Steps, Way, descend

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

METHODS = (
    ("DPNoSE", "combined", "pooled"),
    ("DPNoSE", "combined", "balanced"),
    ("DPNoSE", "parallel", "balanced"),
    ("DPNoSE", "paper", "balanced"),
    ("DPSE", "paper", "pooled"),
    ("DPSE", "paper", "balanced"),
    ("DPSE", "parallel", "balanced"),
)
FIRST = 0.2
"""The part of rho for stage 1."""


@dataclass(frozen=True)
class Trial:
    """Experiment at one value of the parameter that it varies."""

    name: str
    """The experiment that it belongs to."""
    varied: str
    """Varied parameter and its value, for tables."""
    train: People
    test: People
    rho: float
    steps: Steps


def errors(people: People, rho: float, clip: float, runs: int, rng: Generator) -> Floats:
    """Stage 1 (Algorithm 1, corrected): each group's part of the noisy mean squared residuals, one row a run.

    Moments of everybody for rho / (K + 1), a half for either; then each group's residuals for rho / (K + 1). The paper
    adds noise of the deviation D^2 / sqrt(2 rho) to residuals that are cut at D; D / sqrt(2 rho) is right.
    """
    x, y, size, groups = people.x, people.y, people.x.shape[1], len(people.ends)
    part, norm = rho / (groups + 1), float(np.linalg.norm(x, axis=1).max())
    bound = clip * 10
    target = np.clip(y, -bound, bound)
    noise = rng.normal(size=(runs, size, size)) * norm**2 / math.sqrt(part)
    noise = np.triu(noise) + np.triu(noise, 1).transpose(0, 2, 1)
    levels, vectors = np.linalg.eigh(x.T @ x + noise)
    levels = np.maximum(levels, norm**2 / math.sqrt(part) * math.sqrt(size))
    product = x.T @ target + rng.normal(size=(runs, size)) * norm * bound / math.sqrt(part)
    inner = np.einsum("rij,ri->rj", vectors, product) / levels
    thetas = np.einsum("rij,rj->ri", vectors, inner)
    square = np.clip((x @ thetas.T - y[:, None]) ** 2, 0, clip)
    sums = np.add.reduceat(square, (0, *people.ends[:-1]), axis=0).T
    sigma = clip / math.sqrt(2 * part)
    found = np.maximum(sums + rng.normal(size=sums.shape) * sigma, sigma) / people.sizes
    shares: Floats = found / found.sum(axis=1, keepdims=True)
    return shares


def way(people: People, method: tuple[str, str, str], rho: float, steps: Steps, runs: int, rng: Generator) -> Way:
    """Weights and noise of a method at a true budget, for records that are added or removed."""
    mode, accounting, weighting = method
    groups, sizes = len(people.ends), people.sizes
    weights = np.full(groups, 1 / sizes.sum()) if weighting == "pooled" else 1 / (groups * sizes)
    shares = np.full((1, groups), 1 / groups)
    if mode == "DPSE":
        shares = errors(people, FIRST * rho, steps.clip**2, runs, rng)
        rho = rho * (1 - FIRST)
    each = rho / steps.number
    if accounting == "combined":  # one noise, of the deviation max v D / sqrt(2 rho), is put on the first group
        sigma = np.zeros((1, groups))
        sigma[0, 0] = weights.max() / weights[0] * steps.clip / math.sqrt(2 * each)
        return Way(weights, sigma)
    parts = shares if accounting == "paper" else shares / shares.max(axis=1, keepdims=True)
    return Way(weights, steps.clip / np.sqrt(2 * each * parts))


def outcomes(trial: Trial, runs: int, rng: Generator) -> list[dict[str, Any]]:
    """Return each method's error on new people: the mean over runs, by group."""
    found = []
    for method in METHODS:
        chosen = way(trial.train, method, trial.rho, trial.steps, runs, rng)
        square = trial.test.errors(descend(trial.train, chosen, trial.steps, runs, rng))
        mode, accounting, weighting = method
        found += [
            {
                "experiment": trial.name,
                "varied": trial.varied,
                "rho": trial.rho,
                "mode": mode,
                "accounting": accounting,
                "weighting": weighting,
                "group": k + 1,
                "size": int(trial.train.sizes[k]),
                "error": float(square[:, k].mean()),
                "deviation": float(square[:, k].std()),
            }
            for k in range(square.shape[1])
        ]
    return found
