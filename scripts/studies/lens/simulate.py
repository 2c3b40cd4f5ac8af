"""INTERNAL. Simulated people of two groups that differ in one way each, for the experiments of paper 001."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from stratsynth.schema import Categorical, Numeric, Schema
from studies.lens.people import People

if TYPE_CHECKING:
    from numpy.random import Generator

FEATURES = 5
LABELS = ("majority", "minority")
BOUND = 4.0
"""Public bounds of the features: none is further from 0."""


@dataclass(frozen=True)
class World:
    """Differences between minority and majority."""

    name: str
    share: float = 0.2
    """The minority's part of everybody."""
    length: float = 1.0
    """Ratio of the length of the minority's features to the majority's."""
    sharp: float = 2.0
    """Distance of the minority from the decision boundary, in units of the logit: the majority's is 2."""
    turned: float = 0.0
    """The angle between its slopes and the majority's, in radians."""


WORLDS = (
    World("alike, but few", share=0.1),
    World("features twice as long", length=2.0),
    World("nearer to the boundary", sharp=0.5),
    World("other slopes", turned=1.0),
)


def make_people(world: World, rows: int, rng: Generator) -> People:
    """Rows with a constant and `FEATURES` features; classes follow a logistic law."""
    group = (rng.random(rows) < world.share).astype(np.intp)
    minority = group == 1
    x = rng.normal(size=(rows, FEATURES)) * np.where(minority, world.length, 1.0)[:, None]
    x = np.clip(x, -BOUND, BOUND)
    major, minor = np.zeros(FEATURES), np.zeros(FEATURES)
    major[0], minor[:2] = 1.0, (np.cos(world.turned), np.sin(world.turned))
    logit = np.where(minority, world.sharp * (x @ minor), 2.0 * (x @ major))
    y = (rng.random(rows) < 1 / (1 + np.exp(-logit))).astype(np.float64)
    return People(np.column_stack([np.ones(rows), x]), y, group, LABELS)


def by_groups(people: People) -> People:
    """Each group's features brought to mean 0 and variance 1 by its own rows: figure 9. Not private."""
    x = people.x.copy()
    for k in range(len(people.labels)):
        here = people.group == k
        if here.any():
            spread = x[here, 1:].std(axis=0)
            x[here, 1:] = (x[here, 1:] - x[here, 1:].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return People(x, people.y, people.group, people.labels)


def as_table(people: People) -> tuple[pd.DataFrame, Schema]:
    """Return the people as a frame with its schema, for mechanisms."""
    names = [f"X{i}" for i in range(FEATURES)]
    frame = pd.DataFrame(people.x[:, 1:], columns=names)
    frame["GROUP"] = np.array(people.labels)[people.group]
    frame["CLASS"] = np.where(people.y > 0, "yes", "no")
    columns: dict[str, Numeric | Categorical] = {n: Numeric(lower=-BOUND, upper=BOUND, bins=4) for n in names}
    return frame, Schema(
        {**columns, "GROUP": Categorical(levels=people.labels), "CLASS": Categorical(levels=("no", "yes"))}
    )
