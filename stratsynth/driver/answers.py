"""Answers as stored states, so that a resumed fit is given the very answers it was given before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stratsynth.files.npz import State
from stratsynth.questions import Answer, NoisySum, NoisyTable

if TYPE_CHECKING:
    from numpy.typing import NDArray


def to_state(answers: Sequence[Answer]) -> State:
    """The answers of one moment: a candidate's number, or noisy parts with an array each."""
    facts: list[Any] = []
    arrays = {}
    for i, answer in enumerate(answers):
        if isinstance(answer, int):
            facts.append(answer)
            continue
        parts = []
        for j, part in enumerate(answer):
            if isinstance(part, NoisyTable):
                parts.append({"clique": list(part.clique), "sigma": part.sigma})
                arrays[f"{i}/{j}"] = part.values
            else:
                parts.append({"grid": part.grid, "sigma": part.sigma})
                arrays[f"{i}/{j}"] = part.units
        facts.append(parts)
    return State(facts, arrays)


def from_state(state: State) -> list[Answer]:
    """The same answers again."""
    return [
        fact if isinstance(fact, int) else tuple(_part(part, state.arrays[f"{i}/{j}"]) for j, part in enumerate(fact))
        for i, fact in enumerate(state.facts)
    ]


def _part(fact: Mapping[str, Any], values: NDArray[Any]) -> NoisyTable | NoisySum:
    values.flags.writeable = False
    if "clique" in fact:
        return NoisyTable(tuple(fact["clique"]), values, fact["sigma"])
    return NoisySum(values, fact["grid"], fact["sigma"])
