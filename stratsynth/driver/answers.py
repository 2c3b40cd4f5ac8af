"""Answers as stored states, so that a resumed fit is given the very answers it was given before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stratsynth.questions import Answer, NoisyTable
from stratsynth.storage import State


def to_state(answers: Sequence[Answer]) -> State:
    """The answers of one moment."""
    facts: list[Any] = []
    arrays = {}
    for i, answer in enumerate(answers):
        facts.append([{"clique": list(table.clique), "sigma": table.sigma} for table in answer])
        arrays.update({f"{i}/{j}": table.values for j, table in enumerate(answer)})
    return State(facts, arrays)


def from_state(state: State) -> list[Answer]:
    """The same answers again."""
    answers: list[Answer] = []
    for i, tables in enumerate(state.facts):
        noisy = []
        for j, table in enumerate(tables):
            values = state.arrays[f"{i}/{j}"]
            values.flags.writeable = False
            noisy.append(NoisyTable(tuple(table["clique"]), values, table["sigma"]))
        answers.append(tuple(noisy))
    return answers
