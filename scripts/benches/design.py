"""`design`: how often design-based intervals of a mean hold, over surveys that its public shares are counted in.

A simulated population of households in areas: groups are clustered in areas, all of a household are of one group, and
small areas are sampled at higher rates. Each survey draws households by area and gives their persons a weight and 80
replicate weights by successive differences (Fay and Train 1995), as the American Community Survey has. The shares of
the groups are counted in it, and a private mean of other people is fitted in strata by them at epsilon 1.

True for the design-based interval is the mean of the private rows' own group means by the population's shares; for the
interval under simple random sampling, the mean of the population that the private rows are a simple random sample of.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import stratsynth as ss
from stratsynth.models.intervals import effective
from stratsynth.weights.table import REPLICATE
from studies.figures import Figure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GROUPS = ("a", "b", "c", "d")
MEANS = (20.0, 35.0, 55.0, 80.0)
"""Mean of the measured number in each group."""
AREAS = 40
HOUSEHOLD = 3
"""Persons in a household, all of one group."""
SIZES = (2_000, 20_000)
"""Households of small areas and of large ones, which alternate."""
SAMPLED = 12
"""Households that a survey draws in each area."""
ROWS = 3_000
"""Private rows."""
SCHEMA = ss.Schema({"g": ss.Categorical(levels=GROUPS), "x": ss.Numeric(lower=0, upper=100, bins=10)})
LEVEL = 0.95
WITHIN = 0.02
"""Largest distance of the part of intervals that hold from their level."""
PRIME = 79
"""Prime that the matrix of order 80 is made of."""


def hadamard() -> Floats:
    """Return a matrix of order 80 of 1 and -1 with orthogonal rows (Paley 1933)."""
    squares = {i * i % PRIME for i in range(1, PRIME)}
    sign = np.array([0, *(1 if i in squares else -1 for i in range(1, PRIME))], dtype=float)
    inner = sign[(np.arange(PRIME)[None, :] - np.arange(PRIME)[:, None]) % PRIME] - np.eye(PRIME)
    return np.block([[np.ones((1, 1)), np.ones((1, PRIME))], [np.ones((PRIME, 1)), inner]])


@dataclass(frozen=True)
class Population:
    """Households of areas: each area's number of households, and its groups' parts of them."""

    households: Integers
    parts: Floats
    """Array (areas, groups) of the parts of an area's households that are of each group."""

    @classmethod
    def made(cls, rng: np.random.Generator) -> Population:
        """Return areas of alternating sizes, whose groups' parts differ: the rarer, the more."""
        households = np.array([SIZES[area % 2] for area in range(AREAS)])
        return cls(households, rng.dirichlet(np.array([2.4, 0.9, 0.5, 0.2]), AREAS))

    @property
    def shares(self) -> Floats:
        """Share of each group among all persons."""
        found: Floats = self.households @ self.parts / self.households.sum()
        return found

    def survey(self, rng: np.random.Generator) -> Survey:
        """Return a survey of some households of each area, in the order of areas."""
        area = np.repeat(np.arange(AREAS), SAMPLED)
        drawn = (rng.random(len(area))[:, None] > np.cumsum(self.parts, axis=1)[area]).sum(axis=1)
        weights = self.households[area] / SAMPLED
        # each household has a row of the matrix, and the next one's: their differences are successive ones
        rows, matrix = np.arange(len(area)) % len(MATRIX), MATRIX
        factors = 1 + 2**-1.5 * (matrix[rows] - matrix[(rows + 1) % len(matrix)])
        return Survey(np.minimum(drawn, len(GROUPS) - 1), weights, weights[:, None] * factors)


MATRIX = hadamard()


@dataclass(frozen=True)
class Survey:
    """Sampled households: their groups, weights and replicate weights, which all their persons have."""

    groups: Integers
    weights: Floats
    replicates: Floats

    def shares(self) -> tuple[Floats, Floats]:
        """Return the groups' shares, and an array (groups, replicates) of those by each replicate weight."""
        ones = np.eye(len(GROUPS))[self.groups].T
        return ones @ self.weights / self.weights.sum(), ones @ self.replicates / self.replicates.sum(axis=0)

    def table(self) -> pd.DataFrame:
        """Return the groups' shares with their replicates, as `census shares` writes them."""
        shares, replicated = self.shares()
        return pd.DataFrame({"g": GROUPS, "share": shares}).join(
            pd.DataFrame(replicated, columns=list(REPLICATE["share"]))
        )

    def persons(self) -> float:
        """Return the number of persons of equal weight by Kish: a simple random sample's, which they are not."""
        return float(effective(np.repeat(self.weights, HOUSEHOLD)).sum())


def private_rows(population: Population, rng: np.random.Generator) -> pd.DataFrame:
    """Return the private rows: a simple random sample of persons."""
    group = rng.choice(len(GROUPS), ROWS, p=population.shares)
    return pd.DataFrame({"g": np.array(GROUPS)[group], "x": rng.normal(np.array(MEANS)[group], 8.0).clip(0, 100)})


def holds(low: float, high: float, truth: float) -> bool:
    """True if an interval holds the truth."""
    return bool(low <= truth <= high)


def one(population: Population, seed: int) -> dict[str, Any]:
    """Return by interval if it holds the truth, and its width: one survey, one private table, one fit."""
    rng = np.random.default_rng(seed)
    frame, survey = private_rows(population, rng), population.survey(rng)
    shares = ss.Weights.public(survey.table(), citation="a simulated survey")
    table = ss.open_table(frame, schema=SCHEMA, declared_size=ROWS)
    how = ss.Stratified("clipped_mean", ["g"], shares)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.errors.NoticeWarning)  # a survey's shares may be far off
        release = ss.fit(how, table, ss.Budget(1, 1e-9))
    found = release.estimates(LEVEL).iloc[0]
    own = frame.groupby("g")["x"].mean().reindex(GROUPS).to_numpy(float)
    truth, mean = float(population.shares @ own), float(population.shares @ np.array(MEANS))
    z, values = 1.959964, release.estimates(LEVEL)["value"].to_numpy(float)[1:]
    exact = z * float(found["noise"])
    w = survey.table()["share"].to_numpy(float)
    kish = z * float(np.hypot(found["noise"], np.sqrt(w @ (values - w @ values) ** 2 / survey.persons())))
    ends = {
        "design-based": (found["design_lower"], found["design_upper"], truth),
        "shares taken for exact": (found["value"] - exact, found["value"] + exact, truth),
        "shares of a simple random sample (Kish)": (found["value"] - kish, found["value"] + kish, truth),
        "simple random sampling of the private rows, with the design error": (found["lower"], found["upper"], mean),
    }
    return {name: (holds(low, high, true), float(high - low)) for name, (low, high, true) in ends.items()}


def run(seeds: int = 1_000) -> list[Figure]:
    """Coverage and width of each interval over `seeds` surveys, each with private rows and a fit of its own."""
    population = Population.made(np.random.default_rng(5))
    return list(_figures([one(population, seed) for seed in range(seeds)]))


def _figures(found: list[dict[str, Any]]) -> Iterator[Figure]:
    for name in found[0]:
        holds = np.array([each[name][0] for each in found], dtype=float)
        based = "design" in name
        error = float(np.sqrt(LEVEL * (1 - LEVEL) / len(holds)))
        yield Figure(
            f"{name}: intervals of {100 * LEVEL:g} % that hold",
            100 * float(holds.mean()),
            "%",
            len(holds),
            spread=100 * error,
            against=f"{100 * LEVEL:g} +- {100 * WITHIN:g}, and chance" if based else "",
            reached=abs(float(holds.mean()) - LEVEL) <= WITHIN + 3 * error if based else None,
        )
        yield Figure(f"{name}: mean width", float(np.mean([each[name][1] for each in found])), "", len(holds))
