"""One experiment of paper 000: the methods side by side at the same true budget, on the same people.

A method is a mode (`DPSE`: budgets by stage 1's residual errors; `DPNoSE`: alike), an accounting, and a weighting of
the groups (`pooled`: 1/n a record; `balanced`: 1/(K n_k)). DPSE spends a part tau of rho on stage 1. All descend from
0, so that no start differs (the mechanism starts from stage 1's coefficients): clipped gradients of opposite groups
cancel over wide regions, in which a descent ends where it began.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.regression.simulate import Bound, People, Steps, Way, descend

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
"""The part of rho for stage 1, in the paper."""
RESIDUAL = 2.0
"""Largest squared residual in stage 1, the paper's Delta."""


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
    steps: Steps = field(default_factory=Steps)
    first: float = FIRST
    """The part of rho for stage 1 of DPSE."""
    bound: Bound | None = None
    methods: tuple[tuple[str, str, str], ...] = METHODS


def errors(people: People, rho: float, accounting: str, runs: int, rng: Generator) -> tuple[Floats, Floats]:
    """Stage 1 (Algorithm 1, corrected): each group's part of the noisy mean squared residuals; the precursor.

    One row a run. As the paper counts, moments of everybody and each group's residuals cost rho / (K + 1); in parallel,
    moments cost a half and every group's residuals the other one. X'X and X'y have a half of the moments' each. The
    paper adds noise of the deviation D^2 / sqrt(2 rho) to residuals that are cut at D; D / sqrt(2 rho) is right.
    """
    x, y, size, groups = people.x, people.y, people.x.shape[1], len(people.ends)
    norm = math.sqrt(size)  # features lie between -1 and 1
    part = rho / (groups + 1) if accounting == "paper" else rho / 2
    rest = part if accounting == "paper" else rho - part
    target = np.clip(y, -people.reach, people.reach)
    sigma = norm**2 / math.sqrt(part)
    noise = rng.normal(size=(runs, size, size)) * sigma
    noise = np.triu(noise) + np.triu(noise, 1).transpose(0, 2, 1)
    levels, vectors = np.linalg.eigh(x.T @ x + noise)
    levels = np.maximum(levels, sigma * math.sqrt(size))
    product = x.T @ target + rng.normal(size=(runs, size)) * norm * people.reach / math.sqrt(part)
    thetas = np.einsum("rpj,rj->rp", vectors, np.einsum("rij,ri->rj", vectors, product) / levels)
    square = np.clip((x @ thetas.T - y[:, None]) ** 2, 0, RESIDUAL)
    sums = np.add.reduceat(square, (0, *people.ends[:-1]), axis=0).T
    spread = RESIDUAL / math.sqrt(2 * rest)
    found = np.maximum(sums + rng.normal(size=sums.shape) * spread, spread) / people.sizes
    return found / found.sum(axis=1, keepdims=True), thetas


def way(trial: Trial, method: tuple[str, str, str], runs: int, rng: Generator) -> Way:
    """Weights and noise of a method at the trial's true budget, for records that are added or removed."""
    mode, accounting, weighting = method
    people, rho = trial.train, trial.rho
    groups, sizes = len(people.ends), people.sizes
    slopes = sizes / sizes.sum() if weighting == "pooled" else np.full(groups, 1 / groups)
    shares = np.full((1, groups), 1 / groups)
    if mode == "DPSE":
        shares, _ = errors(people, trial.first * rho, accounting, runs, rng)
        rho = rho * (1 - trial.first)
    each = rho / trial.steps.number
    gradient = each if trial.bound is None else each / 2
    losses = None
    if trial.bound is not None:
        losses = trial.bound.clip / np.sqrt(2 * _parts(accounting, each / 2, shares))
    if accounting == "combined":
        return Way(slopes, None, gradient, losses)
    return Way(slopes, trial.steps.clip / np.sqrt(2 * _parts(accounting, gradient, shares)), gradient, losses)


def _parts(accounting: str, rho: float, shares: Floats) -> Floats:
    """Return each group's rho of one step, one row a run: their sum is `rho` as the paper counts, else the largest."""
    whole = shares.sum(axis=1, keepdims=True) if accounting == "paper" else shares.max(axis=1, keepdims=True)
    found: Floats = rho * shares / whole
    return found


def outcomes(trial: Trial, runs: int, rng: Generator) -> list[dict[str, Any]]:
    """Return each method's error on new people: the mean over runs, by group."""
    found = []
    for method in trial.methods:
        chosen = way(trial, method, runs, rng)
        thetas = descend(trial.train, chosen, trial.steps, runs, rng, trial.bound)
        square = trial.test.errors(thetas)
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
