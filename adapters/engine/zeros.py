"""Structural zeros of the schema by clique, and the part of them that a model can contain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.engine.structure import model_cells
from stratsynth.questions import Clique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

Forbidden = dict[Clique, "NDArray[np.intp]"]
"""Impossible cells, row-major, by clique."""
MOST_WITH_RULES = 2**16
"""Number of cells up to which structural rules may enlarge a model; a larger structure without rules may stay."""


def forbidden(schema: Schema) -> Forbidden:
    """Return {clique: row-major numbers of impossible cells} for each set of columns in a rule of the schema; or {}."""
    found: Forbidden = {}
    for rule in schema.rules:
        for box in rule.cells(schema):
            # a column with all levels in the box puts no restriction on it
            clique = tuple(name for name in schema.names if name in box and len(box[name]) < schema.size(name))
            if not clique:
                continue
            never = np.zeros(schema.shape(clique), dtype=bool)
            never[np.ix_(*(sorted(box[name]) for name in clique))] = True
            cells = np.flatnonzero(never)
            found[clique] = np.union1d(found[clique], cells) if clique in found else cells
    return found


def held_together(
    rules: Forbidden, sizes: tuple[tuple[str, int], ...], measured: Sequence[Clique]
) -> tuple[Forbidden, set[Clique]]:
    """Return (structural zeros, set of measured cliques), those that fit together into one model of limited size.

    `rules` are the zeros, clique -> numbers of cells, `sizes` (column, levels) pairs. The limit is the larger of
    MOST_WITH_RULES and the measured cliques' own model. Rules are certain, so they come first, the smallest at the
    head; then cliques, in the order in which they were chosen. In a stratum of few people the last cliques are noise,
    and the first to go. Sampling enforces the rules that are left out.
    """
    if not rules:
        return rules, set(measured)
    most = max(MOST_WITH_RULES, model_cells(sizes, measured))
    if model_cells(sizes, (*rules, *measured)) <= most:
        return rules, set(measured)
    levels = dict(sizes)
    held: dict[Clique, None] = {}
    # greedy: each clique stays if the model with all before it is small enough
    for clique in (*sorted(rules, key=lambda c: (math.prod(map(levels.__getitem__, c)), c)), *measured):
        if model_cells(sizes, (*held, clique)) <= most:
            held[clique] = None
    return {clique: cells for clique, cells in rules.items() if clique in held}, set(held) & set(measured)
