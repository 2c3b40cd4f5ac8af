"""Drawing rows from a calibrated junction tree, a whole clique at a time.

The rows that share a separator cell take the levels of the clique's other columns from their conditional distribution,
by the randomised rounding of `Draws`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine.forest import Floats
from stratsynth.adapters.engine.structure import JunctionTree
from stratsynth.adapters.shared.drawing import Draws

if TYPE_CHECKING:
    from numpy.random import Generator


def sample(
    tree: JunctionTree, calibrated: Sequence[Floats], n: int, rng: Generator
) -> dict[str, NDArray[np.integer[Any]]]:
    """Return a dict of level numbers by column, arrays of small types: `n` rows drawn by `rng` from a tree's tables.

    `calibrated` are the tables of probabilities of the tree's cliques.
    """
    rows: dict[str, NDArray[np.integer[Any]]] = {}
    sizes = dict(tree.sizes)
    draws = Draws(n, rng)
    for clique, separator, table in zip(tree.cliques, tree.separators, calibrated, strict=True):
        new = [column for column in clique if column not in separator]
        if not new:  # a model of no column at all
            continue
        axes = [clique.index(column) for column in (*separator, *new)]
        given = math.prod(sizes[column] for column in separator)
        conditional = np.transpose(table, axes).reshape(given, -1)
        place = [rows[column] for column in separator], [sizes[column] for column in separator]
        drawn = draws.draw(conditional, np.ravel_multi_index(*place) if separator else None)
        for column, codes in zip(new, np.unravel_index(drawn, [sizes[c] for c in new]), strict=True):
            rows[column] = codes.astype(np.min_scalar_type(sizes[column] - 1))
    return rows
