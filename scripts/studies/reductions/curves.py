"""Excess risk of exponential sampling by epsilon n, from its exact law, beside a lower bound for every mechanism.

The mechanism's own question is taken, its scores are computed from the rows as the driver does, and the draw's law
follows: no noise is drawn, so the curves are exact expectations. NOT PRIVATE.

Lower bound, by packing. Take M cells of a number and n records without any information, the same in all tables, and
let table D_j have m records more in which the label changes between cells j and j + 1: half of them in cell j without
it, half in cell j + 1 with it. A threshold at j errs in none of these, any other in at least m / 2: its excess is at
least m / 2(n + m). Any two of the tables are 2 m records apart, so whoever is epsilon-DP for a record more or fewer
finds j on D_j with probability at most exp(2 m epsilon) / (M - 1) for one of the j. With m = log((M - 1) / 2) / 2
epsilon that is a half, and the mean excess on that table is at least m / 4(n + m).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

import stratsynth as ss
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.answering import Reader
from stratsynth.mechanisms import Public, make
from stratsynth.noise import SystemEntropy
from stratsynth.questions import Choose, Composite
from stratsynth.questions.base import Setting
from stratsynth.questions.sums.base import GRID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

SCHEMA = ss.Schema({"X": ss.Numeric(lower=-1, upper=1, bins=2), "D": ss.Categorical(levels=("no", "yes"))})
BUDGET = ss.Budget(1, 1e-6)
NUMBER = 4_000
"""Candidates: half as many thresholds, in either direction. They lie closer than records, so that the scores' steps are
records and not candidates."""


@dataclass(frozen=True)
class Law:
    """The law of one draw."""

    epsilon: float
    """Cost of the draw, as pure epsilon."""
    chances: Floats
    """Probability of each candidate."""
    goals: Floats
    """Goal of each candidate; the mean, weighted by the chances, less the smallest is the excess."""

    @property
    def excess(self) -> float:
        """The expected excess of the goal over that of the best candidate."""
        return float(self.chances @ self.goals - self.goals.min())


def law_of(frame: pd.DataFrame, schema: Schema, settings: Mapping[str, Any], sizes: Mapping[str, float]) -> Law:
    """The exact law of `reductions` by exponential sampling over public candidates, with these public sizes."""
    public = Public(schema, len(frame))
    how = make("reductions", {"method": "sampling", **settings, "sizes": dict(sizes), "sizes_citation": "simulated"})
    question = next(how.steps(public, how.price(public, BUDGET), np.random.default_rng(0)))
    assert isinstance(question, Choose)  # noqa: S101 - what it asks first, of public candidates and sizes
    rows = load_rows(schema, open_source(frame))
    (exact,) = Reader(rows, SystemEntropy()).each([((), question.wanted())])
    scores = cast("tuple[Composite, ...]", question.scores)
    units, reach = Composite.units(scores, exact, Setting(schema, BUDGET.neighbours), {})
    power = np.array([question.epsilon * float(unit - max(units)) / (2 * reach) for unit in units])
    chances = np.exp(power)
    goals = [
        sum(float(term.value([int(x) // GRID for x in exact.sums[0][score.model]])) for term in score.terms)
        for score in scores
    ]
    return Law(question.epsilon, chances / chances.sum(), np.array(goals))


def thresholds(frame: pd.DataFrame, **settings: Any) -> Law:
    """The law among thresholds of X."""
    counts = frame["D"].value_counts()
    sizes = {level: float(counts.get(level, 0)) for level in SCHEMA.levels("D")}
    return law_of(frame, SCHEMA, {"features": ["X"], "candidates": "thresholds", "number": NUMBER, **settings}, sizes)


def people(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """X is uniform; D is yes above a threshold, but for a fifth of the records."""
    x = rng.uniform(-1, 1, rows)
    yes = (x > 0.1) != (rng.random(rows) < 0.2)
    return pd.DataFrame({"X": x, "D": np.where(yes, "yes", "no")})


def packed(rows: int, planted: int, at: int, cells: int) -> pd.DataFrame:
    """Table D_j of the lower bound: `rows` records without information, and `planted` about one cell's upper end."""
    middle = -1 + (np.arange(cells) + 0.5) * 2 / cells
    half = planted // 2
    plain = np.tile(np.repeat(middle, 2), -(-rows // (2 * cells)))[:rows]
    x = np.concatenate([plain, np.full(half, middle[at]), np.full(half, middle[at + 1])])
    d = np.concatenate([np.resize(["no", "yes"], rows), np.full(half, "no"), np.full(half, "yes")])
    return pd.DataFrame({"X": x, "D": d})


def curve(sizes: Sequence[int], tables: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the mean excess on simulated people, by the number of rows."""
    found = []
    for rows in sizes:
        laws = [thresholds(people(rows, rng)) for _ in range(tables)]
        found.append(
            {"rows": rows, "epsilon_n": laws[0].epsilon * rows, "excess": float(np.mean([law.excess for law in laws]))}
        )
    return pd.DataFrame(found)


def slope(table: pd.DataFrame) -> float:
    """Return the slope of log excess by log epsilon n, by least squares."""
    return float(np.polyfit(np.log(table["epsilon_n"]), np.log(table["excess"]), 1)[0])


def beside_the_bound(sizes: Sequence[int], cells: int) -> pd.DataFrame:
    """The worst mean excess over the tables of the lower bound, beside that bound and the mechanism's guarantee."""
    found = []
    for rows in sizes:
        epsilon = thresholds(packed(cells * 2, 2, 0, cells)).epsilon
        planted = max(2, 2 * math.floor(math.log((cells - 1) / 2) / (4 * epsilon)))
        laws = [thresholds(packed(rows, planted, j, cells), number=2 * (cells + 1)) for j in range(0, cells - 1, 5)]
        n = rows + planted
        found.append(
            {
                "rows": n,
                "epsilon_n": epsilon * n,
                "excess": max(law.excess for law in laws),
                "lower_bound": planted / (4 * n),
                "upper_bound": math.log(2 * (cells + 1)) * 2 / (epsilon * n),
            }
        )
    return pd.DataFrame(found)
