"""Drawing rows from a calibrated junction tree, a whole clique at a time.

Randomised rounding: among the rows that share a separator cell, the levels of the other columns are taken in equal
steps from their conditional distribution, from one random offset and in random order. Every row follows the model
exactly, and each cell's count stays within about a record of its expectation, which is less noise than independent
draws have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine.forest import Floats
from stratsynth.adapters.engine.structure import JunctionTree

if TYPE_CHECKING:
    from numpy.random import Generator


def sample(
    tree: JunctionTree, calibrated: Sequence[Floats], n: int, rng: Generator
) -> dict[str, NDArray[np.integer[Any]]]:
    """Return a dict of level numbers by column: `n` rows drawn by `rng` from the tables of a junction tree's cliques.

    The arrays are of small types; `calibrated` are the tables, of probabilities, in the cliques' order.
    """
    rows: dict[str, NDArray[np.integer[Any]]] = {}
    sizes = dict(tree.sizes)
    for clique, separator, table in zip(tree.cliques, tree.separators, calibrated, strict=True):
        new = [column for column in clique if column not in separator]
        if not new:  # a model of no column at all
            continue
        axes = [clique.index(column) for column in (*separator, *new)]
        given = math.prod(sizes[column] for column in separator)
        conditional = np.transpose(table, axes).reshape(given, -1)
        place = [rows[column] for column in separator], [sizes[column] for column in separator]
        cell = np.ravel_multi_index(*place) if separator else np.zeros(n, dtype=np.int64)
        drawn = draw(conditional, cell, rng)
        for column, codes in zip(new, np.unravel_index(drawn, [sizes[c] for c in new]), strict=True):
            rows[column] = codes.astype(np.min_scalar_type(sizes[column] - 1))
    return rows


def draw(weights: Floats, given: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
    """Return an array, for each row a column number of `weights`, odds of line given[row].

    They are drawn by rounding at random by `rng`.
    """
    n, (lines, width) = len(given), weights.shape
    order = rng.permutation(n)
    # few lines sort by counting digits: a small type is several times faster
    order = order[np.argsort(given[order].astype(np.min_scalar_type(lines)), kind="stable")]
    line = given[order]
    size = np.bincount(line, minlength=lines)
    # positions (rank + offset) / size are equal steps through [0, 1) with one random offset a line
    rank = np.arange(n) - (np.cumsum(size) - size)[line]
    offset = rng.random((lines,))
    position = (rank + offset[line]) / size[line]
    totals = weights.sum(axis=1, keepdims=True)
    bounds = np.cumsum(np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0), axis=1)
    bounds += np.arange(lines)[:, None]  # line i takes up [i, i + 1): one search serves all lines
    picked = np.searchsorted(bounds.ravel(), position + line, side="right") - line * width
    np.clip(picked, 0, width - 1, out=picked)
    # rounding at a line's end may pick a cell of weight 0: the line's heaviest takes its place
    never = weights[line, picked] <= 0
    picked[never] = weights[line[never]].argmax(axis=1)
    drawn = np.empty(n, dtype=np.int64)
    drawn[order] = picked
    return drawn
