"""Reductions in tests: a table whose groups differ, and fits with little noise."""

from dataclasses import replace

import numpy as np
import pandas as pd

from helpers.replies import Replies
from stratsynth import Budget, Categorical, Numeric, Schema
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.answering import Answerer
from stratsynth.driver.lockstep import run
from stratsynth.mechanisms import Public
from stratsynth.noise import SystemEntropy
from stratsynth.questions import Total

SCHEMA = Schema(
    {
        "G": Categorical(levels=("a", "b")),
        "X": Numeric(lower=-1, upper=1, bins=2),
        "Z": Numeric(lower=0, upper=1, bins=2),
        "D": Categorical(levels=("no", "yes")),
    }
)
BUDGET = Budget(20, 1e-6)
FEW = {"inner_steps": 3, "start_steps": 5}


def people(n, seed=0):
    """D is yes where X is large, and more often so in group a: a classifier without groups treats them unlike."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.3, "b", "a")
    z = rng.random(n)
    x = np.clip(rng.normal(np.where(group == "a", 0.2, -0.2), 0.5), -1, 1)
    yes = rng.random(n) < 1 / (1 + np.exp(-6 * x))
    return pd.DataFrame({"G": group, "X": x, "Z": z, "D": np.where(yes, "yes", "no")})


def asked_by(how, frame, *, schema=SCHEMA, budget=BUDGET, clear=1e6):
    """The model, and all questions with their charges, where all noise is a millionth of what was paid for."""
    rows, asked = load_rows(schema, open_source(frame)), []
    answerer = Answerer(rows, budget.neighbours, SystemEntropy())

    def answer(batch):
        asked.extend((a, a.question.charges(a.schema, a.path, budget.neighbours)) for a in batch)
        return answerer.answer([type(a)(a.path, a.schema, cheaper(a.question)) for a in batch])

    def cheaper(question):
        changed = {"price": question.price * clear} if isinstance(question, Total) else {"rho": question.rho * clear}
        return replace(question, **changed)

    public = Public(schema, None, budget.neighbours)
    allot = how.price(public, budget)
    return run(how.steps(public, allot, np.random.default_rng(0)), schema, Replies(answer)), asked
