"""Tables of weighted rows: each by itself, or several as sums of one joint table.

Counting rows takes a step for each row, adding up a joint table one for each cell. Where rows are counted again and
again, tables are therefore combined as long as their columns have few cells jointly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions import Clique

ROWS_A_CELL = 8
"""Smallest number of rows for each cell of combined tables."""
LIKE_SO_MANY = 10_000
"""Number of rows assumed when columns are counted, so that everybody and all strata share one layout."""
MOST_KEPT = 1 << 17
"""Largest number of cells of tables whose layout is cached; the cache has eight layouts."""

Codes = Mapping[str, "NDArray[np.integer[Any]]"]
Sizes = Mapping[str, int]


def cells(sizes: Sizes, columns: Iterable[str]) -> int:
    """Return the number of cells of the table of `columns`: the product of their `sizes` (by column).

    1 without columns.
    """
    return math.prod(sizes[name] for name in columns)


def places(codes: Codes, sizes: Sizes, columns: Clique) -> NDArray[np.intp]:
    """Return an array, each row's cell number, row-major, in the table of `columns`.

    Mappings by column name give the rows' level numbers, `codes`, and the numbers of levels, `sizes`.
    """
    found = codes[columns[0]].astype(np.intp)
    for name in columns[1:]:
        found *= sizes[name]
        found += codes[name]
    return found


def cells_within(sizes: Sizes, columns: Clique, clique: Clique) -> NDArray[np.intp]:
    """Return a flat array: for each cell of the table of `columns` the number of its cell in that of `clique`.

    The clique is a subset; `sizes` are numbers of levels by column; all are row-major.
    """
    inner = np.arange(cells(sizes, clique)).reshape([sizes[name] for name in clique])
    order = sorted(range(len(clique)), key=lambda axis: columns.index(clique[axis]))
    shape = [sizes[name] if name in clique else 1 for name in columns]
    return np.broadcast_to(inner.transpose(order).reshape(shape), [sizes[name] for name in columns]).ravel()


def packed(cliques: Sequence[Clique], sizes: Sizes, most: int) -> list[tuple[Clique, list[int]]]:
    """Return a list of (columns, numbers of cliques): few sets of at most `most` cells that cover the cliques.

    `sizes` are numbers of levels by column. The largest clique comes first; each goes where it adds the fewest cells,
    and becomes a set of its own where all others would exceed `most` cells.
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


@dataclass(frozen=True, eq=False)
class TableBlocks:
    """Joint tables, and the sums that make the requested tables of them."""

    blocks: tuple[Clique, ...]
    """Columns of each joint table."""
    starts: tuple[int, ...]
    """First cell of each joint table, then the number of all their cells."""
    cells_of: Any
    """Sparse 0/1 matrix, cells of the joint tables x cells of the requested tables: 1 where the first is part of the
    second."""


def laid_out(cliques: Sequence[Clique], sizes: Sizes, rows: int) -> TableBlocks:
    """Return a plan, TableBlocks, to count the cliques' tables of so many `rows`: joint tables, and how to sum them.

    `sizes` are numbers of levels by column.
    """
    most = rows // ROWS_A_CELL
    columns = dict.fromkeys(name for clique in cliques for name in clique)
    kept = sum(cells(sizes, clique) for clique in cliques) <= MOST_KEPT
    # rounded down to a power of two, so that slightly different numbers of rows share a layout
    return (_kept if kept else _made)(
        tuple(cliques), tuple((c, sizes[c]) for c in columns), 1 << most.bit_length() >> 1
    )


def _made(cliques: tuple[Clique, ...], columns: tuple[tuple[str, int], ...], most: int) -> TableBlocks:
    """Return the `TableBlocks` of `laid_out`, cached: joint tables of at most `most` cells that cover `cliques`.

    `columns` are (column, number of levels) pairs.
    """
    from scipy.sparse import csr_matrix

    sizes = dict(columns)
    first = np.cumsum([0, *(cells(sizes, clique) for clique in cliques)])
    blocks = packed(cliques, sizes, most)
    starts = np.cumsum([0, *(cells(sizes, names) for names, _ in blocks)])
    inside = [
        np.stack([first[k] + cells_within(sizes, names, cliques[k]) for k in held], axis=1) for names, held in blocks
    ]
    ends = np.cumsum(np.concatenate([[0], *(np.full(len(each), each.shape[1]) for each in inside)]))
    parts = np.concatenate([each.ravel() for each in inside])
    cells_of = csr_matrix((np.ones(parts.size), parts, ends), shape=(int(starts[-1]), int(first[-1])))
    return TableBlocks(tuple(names for names, _ in blocks), tuple(int(start) for start in starts), cells_of)


_kept = lru_cache(maxsize=8)(_made)


def columns_counted(
    codes: Codes, sizes: Sizes, columns: Sequence[str], *weights: NDArray[np.float64]
) -> list[list[NDArray[np.float64]]]:
    """Return a list for each of `weights`, arrays over rows: the one-column table of each of `columns`, an array.

    `codes` are the rows' level numbers by column, `sizes` the numbers of levels.
    """
    if not columns:
        return [[] for _ in weights]
    layout = laid_out([(name,) for name in columns], sizes, LIKE_SO_MANY)
    # rows are passed over once a joint table, which is then summed down to the columns
    joint = np.empty((layout.starts[-1], len(weights)))
    for start, end, names in zip(layout.starts, layout.starts[1:], layout.blocks, strict=False):
        place = places(codes, sizes, names)
        for i, some in enumerate(weights):
            joint[start:end, i] = np.bincount(place, weights=some, minlength=end - start)
    ends = np.cumsum([sizes[name] for name in columns])[:-1]
    return [np.split(every, ends) for every in (layout.cells_of.T @ joint).T]


def counted(
    codes: Codes, sizes: Sizes, weights: NDArray[np.float64], cliques: Sequence[Clique]
) -> list[NDArray[np.float64]]:
    """Return a list of arrays, one a clique: its table of the rows' `weights`, axes in the clique's order.

    `codes` are the rows' level numbers by column, `sizes` the numbers of levels.
    """
    if cliques and all(len(clique) == 1 for clique in cliques):
        return columns_counted(codes, sizes, [name for (name,) in cliques], weights)[0]
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
