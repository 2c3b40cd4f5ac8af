"""The experiments of paper 000 on linear models: what each varies, on simulated and on real people.

The paper gives sets of slopes and sizes of groups, and neither the law of its features nor how many there are. Here
features are uniform from -1 to 1, `COEFFICIENTS` of them, over which a slope is divided evenly; "coefficients" varies
their number on small tables, where privacy noise matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from studies.regression import real
from studies.regression.simulate import Bound, People, Steps, make_people
from studies.regression.trials import METHODS, Trial

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.random import Generator

RHOS = tuple(epsilon**2 / 2 for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0))
FEW = (0.005, 0.125, 8.0)
"""The values of rho where something else is varied."""
RATIOS = (5, 20, 50, 100)
SLOPES = ((-10.0, 10.0), (10.0, -10.0), (10.0, 1.0), (-10.0, -1.0), (-1.0, 1.0), (1.0, -1.0))
"""The paper's own."""
MAJORITY, COEFFICIENTS = 10_000, 6
SMALL = ((2_000, 50), (1_000, 100))
"""Sizes of the two groups of small tables."""
NUMBERS = (1, 6, 12)
SPLITS = (0.05, 0.2, 0.4, 0.6, 0.8)
"""Parts tau of rho for stage 1; 0.2 in the paper."""
TESTED = 2_000
"""People of each group that errors are measured on."""
BOUND = 1.0
"""Bound of each group's mean squared residual, between that of the smaller group in a model of everybody and the least
that both groups can have."""
WITH_POOLED = (*METHODS, ("DPNoSE", "paper", "pooled"))
"""Pooled weights without tailoring, as the paper counts, for comparison with tailoring under bounds."""
SLOWER = Steps(number=300)
"""With bounds: multipliers take their time."""
REAL = Steps(clip=1.0, rate=0.25)
PLENTY, SMALL_TABLES, GROUPS = "two groups", "small tables", "groups"
CONSTRAINED, SPLIT = "bounded group loss", "split of the budget"


def trials(law: Path | None, credit: Path | None, rng: Generator) -> Iterator[Trial]:
    """Every experiment at every value of what it varies, in turn."""
    yield from _plenty(rng)
    yield from _small_tables(rng)
    yield from _groups(rng)
    yield from _constrained(rng)
    yield from _splits(rng)
    for path, load in ((law, real.law), (credit, real.credit)):
        if path is not None:
            name, train, test = load(path, rng)
            yield from (Trial(name, f"rho {rho:g}", train, test, rho, REAL) for rho in RHOS)


def two_groups(
    sizes: tuple[int, ...], slopes: tuple[float, ...], spread: float, rng: Generator, features: int = COEFFICIENTS
) -> tuple[People, People]:
    """People to fit and to test; a group's slope is divided evenly over the features, by their root."""
    each = np.array(slopes)[:, None] * np.ones(features) / np.sqrt(features)
    spreads = (spread,) * len(sizes)
    return make_people(sizes, each, spreads, rng), make_people((TESTED,) * len(sizes), each, spreads, rng)


def _plenty(rng: Generator) -> Iterator[Trial]:
    """Figures 2 to 4 and 6: ten thousand people and fewer, by the ratio of sizes, slopes and noise."""
    for ratio in RATIOS:
        people = two_groups((MAJORITY, MAJORITY // ratio), SLOPES[0], 1.0, rng)
        yield from (Trial(PLENTY, f"ratio {ratio}", *people, rho) for rho in RHOS)
    for slopes in SLOPES:
        people = two_groups((MAJORITY, MAJORITY // 20), slopes, 1.0, rng)
        yield from (Trial(PLENTY, f"slopes {slopes[0]:g} {slopes[1]:g}", *people, rho) for rho in FEW)
    for spread in (0.5, 2.0):
        people = two_groups((MAJORITY, MAJORITY // 20), (-1.0, 1.0), spread, rng)
        yield from (Trial(PLENTY, f"noise {spread:g}", *people, rho) for rho in FEW)


def _small_tables(rng: Generator) -> Iterator[Trial]:
    """Not in the paper: so few people and so many coefficients that privacy noise matters."""
    for sizes in SMALL:
        for number in NUMBERS:
            people = two_groups(sizes, (-1.0, 1.0), 1.0, rng, number)
            varied = f"{sizes[0]} and {sizes[1]}, {number} features"
            yield from (Trial(SMALL_TABLES, varied, *people, rho) for rho in (*RHOS[:1], 0.05, *RHOS[1:]))


def _groups(rng: Generator) -> Iterator[Trial]:
    """Tables 1 to 3: one large group, and others of a twentieth of its size that differ from it."""
    for number in (5, 10, 15, 20):
        sizes = (MAJORITY, *[MAJORITY // 20] * (number - 1))
        people = two_groups(sizes, (1.0, *[-6.0] * (number - 1)), 1.0, rng)
        yield from (Trial(GROUPS, f"{number} groups", *people, rho) for rho in (2.0, 4.5, 8.0))


def _constrained(rng: Generator) -> Iterator[Trial]:
    """Algorithm 2: bounded group loss."""
    for sizes in ((MAJORITY, MAJORITY // 20), SMALL[1]):
        people = two_groups(sizes, (-1.0, 1.0), 0.5, rng)
        for rho in (*FEW, 0.5):
            free = Trial(CONSTRAINED, f"{sizes[0]} and {sizes[1]}, no bound", *people, rho, SLOWER, methods=WITH_POOLED)
            yield free
            yield replace(free, varied=f"{sizes[0]} and {sizes[1]}, bound {BOUND:g}", bound=Bound(BOUND))


def _splits(rng: Generator) -> Iterator[Trial]:
    """The parts of rho for the two stages."""
    people = two_groups(SMALL[1], (-1.0, 1.0), 1.0, rng)
    for first in SPLITS:
        yield from (Trial(SPLIT, f"tau {first:g} rho", *people, rho, first=first) for rho in FEW)
