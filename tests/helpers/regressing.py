"""Regressions in tests: tables to fit, and programs run on exact answers."""

import numpy as np
import pandas as pd

from helpers.replies import Replies
from stratsynth import Budget, Categorical, Numeric, Schema
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import run
from stratsynth.mechanisms import Public
from stratsynth.questions import NoisySum, NoisyTable, Total
from stratsynth.questions.sums.base import GRID

SCHEMA = Schema(
    {
        "G": Categorical(levels=("a", "b")),
        "X": Numeric(lower=-1, upper=1, bins=2),
        "Z": Numeric(lower=0, upper=10, bins=2),
        "C": Categorical(levels=("p", "q", "r")),
        "Y": Numeric(lower=-1, upper=1, bins=2),
        "D": Categorical(levels=("no", "yes")),
    }
)


def people(n, seed=0, *, share=0.2, slopes=(0.5, -0.5), spread=(0.1, 0.1)):
    """Two groups whose Y goes with X by slopes of their own; D is yes where Y is large."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < share, "b", "a")
    first = group == "a"
    x = rng.uniform(-1, 1, n)
    y = np.where(first, *slopes) * x + np.where(first, *spread) * rng.normal(size=n)
    d = np.where(y + 0.1 * rng.normal(size=n) > 0, "yes", "no")
    return pd.DataFrame(
        {
            "G": group,
            "X": x,
            "Z": rng.uniform(0, 10, n),
            "C": rng.choice(["p", "q", "r"], n),
            "Y": y.clip(-1, 1),
            "D": d,
        }
    )


def exactly(mechanism, frame, *, schema=SCHEMA, declared=None, budget=None):
    """The model made of exact answers, and what was asked, with its path and the charges it would have made."""
    budget = budget or Budget(1, 1e-9)
    rows, asked = load_rows(schema, open_source(frame)), []

    def answer(batch):
        return [one(a) for a in batch]

    def one(a):
        asked.append((a, a.question.charges(a.schema, a.path, budget.neighbours)))
        if not isinstance(a.question, Total):
            (tables,) = rows.counts([(a.path, a.question.cliques)])
            return tuple(NoisyTable(c, table, 0.0) for c, table in zip(a.question.cliques, tables, strict=True))
        blocks = a.question.query.blocks(a.schema)
        sums = rows.sums([(a.path, a.question.query, 1.0)], None)[0]
        scales = a.question.scales(a.schema, budget.neighbours)
        return tuple(
            NoisySum(units, b.clip / GRID, s * b.clip / GRID) for units, b, s in zip(sums, blocks, scales, strict=True)
        )

    public = Public(schema, len(frame) if declared is None else declared, budget.neighbours)
    allot = mechanism.price(public, budget)
    return run(mechanism.steps(public, allot, np.random.default_rng(0)), schema, Replies(answer)), asked
