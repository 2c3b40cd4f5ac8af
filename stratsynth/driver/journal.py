"""Journalled answers: the key of one batch's answers, and their form on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from stratsynth.digest import Prehashed, digest
from stratsynth.files.npz import State
from stratsynth.questions.base import Answer, Kept
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from stratsynth.accounting.charges import Charge
    from stratsynth.driver.lockstep import Asked


def key(asked: Sequence[Asked], charges: Sequence[Charge]) -> str:
    """Return the journal key, a text: digest of a batch's questions `asked`, by public shape, and of their `charges`.

    An answer that was charged and journalled is given again to a question of equal shape in the same batch. It was
    paid for when it was drawn, so giving it again is post-processing, whatever the program compares it with. One
    that was charged and never journalled has been seen by nobody: the present question is answered under that charge,
    whose amount and sensitivities are equal. Amounts are compared exactly; numbers that follow from earlier
    answers, which another processor rounds differently, to nine digits.
    """
    kinds = [(_hashed(a.path, _names(a.path))[0], type(a.question).__name__, a.question.replayed()) for a in asked]
    stated = [
        _rounded({**charge.to_dict(), "path": _hashed(charge.path, _names(charge.path))[1]}) for charge in charges
    ]
    return digest(kinds, stated, [c.amount for c in charges])


def exact_key(asked: Sequence[Asked]) -> str:
    """Return a batch's journal key as 0.1.0 and 0.2.0 had it: a digest of paths and every number in `asked`."""
    return digest([(a.path, a.question.spelled()) for a in asked])


def to_state(asked: Sequence[Asked], answers: Sequence[Answer]) -> State | None:
    """Return the answers to the questions `asked` as a `State` for the journal; None if one must not be kept."""
    kept = [a.question.keep(answer) for a, answer in zip(asked, answers, strict=True)]
    if any(one is None for one in kept):
        return None
    parts = [one for one in kept if one is not None]
    arrays = {f"{i}/{j}": array for i, one in enumerate(parts) for j, array in enumerate(one.arrays)}
    return State([one.facts for one in parts], arrays)


def from_state(asked: Sequence[Asked], state: State) -> list[Answer]:
    """Return a list of answers, one an `Asked` of `asked`, from the `State` into which `to_state` put them."""
    arrays: list[list[tuple[int, str]]] = [[] for _ in state.facts]
    for name in state.arrays:
        i, j = name.split("/")
        arrays[int(i)].append((int(j), name))
    return [
        a.question.recall(Kept(facts, [state.arrays[name] for _, name in sorted(arrays[i])]))
        for i, (a, facts) in enumerate(zip(asked, state.facts, strict=True))
    ]


def _names(path: StratumPath) -> tuple[tuple[str, ...], ...]:
    """Return a tuple, for each stratum of a path, of the names of its levels, in which two equal strata may differ."""
    return tuple(stratum.names for stratum in path)


@lru_cache(maxsize=2**15)  # every stratum asks at every moment
def _hashed(path: StratumPath, _: tuple[tuple[str, ...], ...]) -> tuple[Prehashed, Prehashed]:
    """Return two `Prehashed`, cached, `_` as key: of `path`, and of its strata as dicts, as charges state them."""
    return Prehashed(path), Prehashed([stratum.to_dict() for stratum in path])


def _rounded(value: object) -> object:
    """Return a copy of nested plain values in which each float is a text of nine digits."""
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return f"{value:.9g}" if isinstance(value, float) else value
