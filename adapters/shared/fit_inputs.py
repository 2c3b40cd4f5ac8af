"""What the fit of a graphical model is given besides noisy tables: how many records, and which of them it holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from stratsynth.adapters.engine.structure import model_cells
from stratsynth.adapters.engine.zeros import Forbidden
from stratsynth.questions import Clique, NoisyTable

if TYPE_CHECKING:
    from stratsynth.adapters.engine import Measured

MOST_WITH_RULES = 2**16
"""How many cells structural rules may make of a model; a structure that is larger by itself may stay as it is."""


def records(tables: Sequence[NoisyTable | Measured], size: int | None) -> float:
    """The number of records: the tables' sums, and the public size for what it is worth, a good guess.

    Each is weighted by its precision; a public size is taken to be right within a fifth, as old census figures
    are. At least one record.
    """
    weights = [1 / (table.values.size * table.sigma**2) for table in tables]
    values = [float(table.values.sum()) for table in tables]
    if size:
        weights.append(25 / size**2)
        values.append(float(size))
    return max(1.0, sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)) if weights else 1.0


def held_together(
    rules: Forbidden, sizes: tuple[tuple[str, int], ...], measured: Sequence[Clique]
) -> tuple[Forbidden, set[Clique]]:
    """The structural zeros and the measured cliques that a model of reasonable size can hold together.

    Rules are certain, so they come first, the smallest ones at the head; then cliques, in the order in which they
    were chosen. In a stratum of few people the last cliques are noise, and the first to go. Sampling sees to the
    rules that are left out.
    """
    if not rules:
        return rules, set(measured)
    most = max(MOST_WITH_RULES, model_cells(sizes, measured))
    if model_cells(sizes, (*rules, *measured)) <= most:
        return rules, set(measured)
    levels = dict(sizes)
    held: dict[Clique, None] = {}
    for clique in (*sorted(rules, key=lambda c: (_cells(levels, c), c)), *measured):
        if model_cells(sizes, (*held, clique)) <= most:
            held[clique] = None
    return {clique: cells for clique, cells in rules.items() if clique in held}, set(held) & set(measured)


def _cells(levels: dict[str, int], clique: Iterable[str]) -> int:
    return math.prod(levels[column] for column in clique)
