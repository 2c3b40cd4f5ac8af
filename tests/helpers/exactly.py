"""Sums answered without noise, to compare a mechanism's result with exact values."""

import numpy as np

from helpers.replies import Replies
from stratsynth import Budget
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import run
from stratsynth.mechanisms import Public
from stratsynth.questions import NoisySum
from stratsynth.questions.sums.base import GRID


def exact_sums(query, frame, schema):
    """Sums of a question over all rows of a frame, in units of its grid."""
    return [np.asarray(x) for x in load_rows(schema, open_source(frame)).sums([((), query, 1.0)], None)[0]]


def exactly(mechanism, schema, frame, *, declared=None, budget=None):
    """The model, and every question with the deviation its noise would have had."""
    budget = budget or Budget(1, 1e-9)
    rows, asked = load_rows(schema, open_source(frame)), []

    def answer(batch):
        replies = []
        for a in batch:
            (units,) = rows.sums([(a.path, a.question.query, 1.0)], None)[0]
            (block,), (scale,) = a.question.query.blocks(a.schema), a.question.scales(a.schema, budget.neighbours)
            asked.append((a.question, scale * block.clip / GRID))
            replies.append((NoisySum(units, block.clip / GRID, scale * block.clip / GRID),))
        return replies

    public = Public(schema, declared, budget.neighbours)
    allot = mechanism.price(public, budget)
    return run(mechanism.steps(public, allot, np.random.default_rng(0)), schema, Replies(answer)), asked
