"""Tables of weighted rows: each by itself, or several as sums of one joint table.

To count rows takes a step for each row, and to add up a joint table's cells one for each cell. So where rows are
counted again and again, tables are taken together as long as their columns have few cells jointly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions import Clique

Codes = Mapping[str, "NDArray[np.integer[Any]]"]
Sizes = Mapping[str, int]


def cells(sizes: Sizes, columns: Iterable[str]) -> int:
    """The number of cells of some columns' table."""
    return math.prod(sizes[name] for name in columns)


def places(codes: Codes, sizes: Sizes, columns: Clique) -> NDArray[np.intp]:
    """The row-major cell of each row in some columns' table."""
    found = codes[columns[0]].astype(np.intp)
    for name in columns[1:]:
        found *= sizes[name]
        found += codes[name]
    return found


def cells_within(sizes: Sizes, columns: Clique, clique: Clique) -> NDArray[np.intp]:
    """For each cell of a table, flat, its cell in the table of some of its columns."""
    inner = np.arange(cells(sizes, clique)).reshape([sizes[name] for name in clique])
    order = sorted(range(len(clique)), key=lambda axis: columns.index(clique[axis]))
    shape = [sizes[name] if name in clique else 1 for name in columns]
    return np.broadcast_to(inner.transpose(order).reshape(shape), [sizes[name] for name in columns]).ravel()


def packed(cliques: Sequence[Clique], sizes: Sizes, most: int) -> list[tuple[Clique, list[int]]]:
    """Few sets of columns, such that each clique is part of one: their columns, and the numbers of their cliques.

    The largest clique comes first; each goes where it adds the fewest cells, and by itself where all sets would get
    more than `most`.
    """
    blocks: list[tuple[Clique, int, list[int]]] = []
    own = [cells(sizes, clique) for clique in cliques]
    for i in sorted(range(len(cliques)), key=lambda i: -own[i]):
        best, at = math.inf, -1
        for k, (columns, size, _) in enumerate(blocks):
            times = cells(sizes, [name for name in cliques[i] if name not in columns])
            if times < best and (times == 1 or times * size <= most):
                best, at = times, k
        if at < 0:
            blocks.append((cliques[i], own[i], [i]))
        else:
            columns, size, held = blocks[at]
            blocks[at] = (tuple(dict.fromkeys((*columns, *cliques[i]))), size * int(best), [*held, i])
    return [(columns, held) for columns, _, held in blocks]


def counted(
    codes: Codes, sizes: Sizes, weights: NDArray[np.float64], cliques: Sequence[Clique]
) -> list[NDArray[np.float64]]:
    """The tables of weighted rows, axes in each clique's order; cliques that begin alike share work, if in order."""
    wide = {name: codes[name].astype(np.intp) for name in {name for clique in cliques for name in clique}}
    found: list[NDArray[np.float64]] = []
    first: Clique = ()
    known = np.zeros(0, np.intp)
    for clique in cliques:
        place = wide[clique[-1]]
        if len(clique) > 1:
            if first != clique[:-1]:
                first, known = clique[:-1], places(wide, sizes, clique[:-1])
            place = known * sizes[clique[-1]] + place
        table = np.bincount(place, weights=weights, minlength=cells(sizes, clique)).astype(np.float64, copy=False)
        found.append(table.reshape([sizes[name] for name in clique]))
    return found
