"""A model of independent columns, as a solution that a fit departs from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.engine.solve import Solution
from stratsynth.adapters.engine.structure import junction_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stratsynth.adapters.engine.forest import Floats

LEAST = 1e-3
"""Number of records that a level has at least: a pair that was measured may raise what its columns have at 0."""


def product(sizes: tuple[tuple[str, int], ...], counts: Mapping[str, Floats], total: float) -> Solution | None:
    """Return the `Solution` of independent columns by their `counts` for `total` records; None without columns.

    `counts` are arrays by column, at least 0; `sizes` are (column, levels) pairs.
    """
    if not sizes:
        return None
    tree = junction_tree(sizes, tuple((name,) for name, _ in sizes))
    logs = [np.log(np.maximum(counts[name], LEAST)) for (name,) in tree.cliques]
    return Solution(tree, tuple(one - np.logaddexp.reduce(one) for one in logs), total, 0.0, 0)
