"""Exact contingency tables of many cliques in one pass over the rows.

Of many rows, a few wide tables are counted, each of which holds several of the small ones that were asked for: sums of
integers over the columns that a clique lacks give exactly its counts. A table of less than 2^16 cells costs little
more to count than a small one, since cell numbers of 16 bits are computed in the cache.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from stratsynth.driver.covers import covers
from stratsynth.errors import StratsynthError
from stratsynth.files.space import Space
from stratsynth.questions import Clique
from stratsynth.questions.reading import OUTSIDE
from stratsynth.questions.sums.clipping import Ints
from stratsynth.schema.rows import CodedRows

BLOCK = 1 << 17
"""Rows whose cell numbers are computed at a time."""
STEP = 1 << 20
"""Rows of which all tables are counted before the next rows are read."""
MANY = 1 << 17
"""Number of rows from which wide tables pay: fewer rows are counted faster than wide tables are summed."""
WIDE = (1 << 16) - 1
"""Largest number of cells of a wide table: their numbers have 16 bits."""

FEW = 1 << 10
"""Number of rows up to which all tables with equally many columns are counted by one call."""
AT_ONCE = 1 << 10
"""Largest number of tables counted by one call."""


def tables(parts: Sequence[CodedRows], cliques: Sequence[Clique], space: Space) -> list[Ints]:
    """Return a list, an int array a clique, an axis a column: weighted counts of `CodedRows`, `parts`; tell `space`."""
    if OUTSIDE in cliques:
        counted = [rows.outside for rows in parts if rows.outside is not None]
        if len(cliques) > 1 or len(counted) < len(parts):
            raise StratsynthError("rows: usable records are counted of all rows as they are read, and of no stratum.")
        return [np.sum(counted, axis=0, dtype=np.int64)]
    schema = parts[0].schema
    size = sum(rows.size for rows in parts)
    if size <= FEW and len(parts) == 1 and len(cliques) > 1:
        return _of_few(parts[0], cliques)
    if size >= MANY:
        plan = covers(tuple(cliques), tuple((name, schema.size(name)) for name in schema.names), WIDE)
    else:
        plan = tuple((clique, (i,)) for i, clique in enumerate(cliques))
    counted = [np.zeros(schema.cells(columns), np.int64) for columns, _ in plan]
    _count(parts, [columns for columns, _ in plan], counted, space)
    found: dict[int, Ints] = {}
    for (columns, numbers), table in zip(plan, counted, strict=True):
        wide = table.reshape(schema.shape(columns)) * schema.row_weight.each
        for number in numbers:
            found[number] = _summed(wide, columns, cliques[number])
    return [found[number] for number in range(len(cliques))]


def _of_few(rows: CodedRows, cliques: Sequence[Clique]) -> list[Ints]:
    """Return a list, an int array for each of `cliques`, an axis a column: few `CodedRows`, one `bincount` a width.

    With few rows, time is in the number of calls.
    """
    found: dict[int, Ints] = {}
    for width in sorted(set(map(len, cliques))):
        numbers = [i for i, clique in enumerate(cliques) if len(clique) == width]
        for start in range(0, len(numbers), AT_ONCE):
            here = numbers[start : start + AT_ONCE]
            shapes = [rows.schema.shape(cliques[i]) for i in here]
            ends = list(accumulate(map(math.prod, shapes)))
            cell = np.zeros((len(here), rows.size), np.intp)
            for axis in range(width):
                cell *= np.array([shape[axis] for shape in shapes])[:, None]
                cell += np.array([rows.codes[cliques[i][axis]] for i in here])
            # Each table has its own range of cell numbers.
            cell += np.array([0, *ends[:-1]])[:, None]
            weights = None if rows.weights is None else np.tile(rows.weights, len(here))
            flat = np.bincount(cell.ravel(), weights, minlength=ends[-1]).astype(np.int64, copy=False)
            flat *= rows.schema.row_weight.each
            for i, begin, end, shape in zip(here, [0, *ends[:-1]], ends, shapes, strict=True):
                found[i] = flat[begin:end].reshape(shape)
    return [found[number] for number in range(len(cliques))]


def _summed(wide: Ints, columns: Clique, clique: Clique) -> Ints:
    """Return the clique's int array, an axis a column, exactly summed from `wide`, whose axes are `columns`."""
    if columns == clique:
        return wide
    left = [column for column in columns if column in clique]
    summed = wide.sum(axis=tuple(i for i, column in enumerate(columns) if column not in clique))
    return np.ascontiguousarray(summed.transpose([left.index(column) for column in clique]))


def _count(parts: Sequence[CodedRows], cliques: Sequence[Clique], counted: Sequence[Ints], space: Space) -> None:
    """Add `parts`, a list of `CodedRows`, by weight, to `counted`, a flat array for each of `cliques`; tell `space`."""
    threads = min(cores(), len(cliques))
    if threads < 2 or sum(rows.size for rows in parts) < STEP:
        for rows in pieces(parts, space):
            for clique, table in zip(cliques, counted, strict=True):
                add(rows, clique, table, rows.weights)
        return
    with ThreadPoolExecutor(threads) as pool:
        for rows in pieces(parts, space):
            list(pool.map(lambda clique, table, rows=rows: add(rows, clique, table, rows.weights), cliques, counted))


def pieces(parts: Sequence[CodedRows], space: Space, step: int | None = None) -> Iterator[CodedRows]:
    """Yield `CodedRows`, slices of those in the list `parts`, in order, up to `step` or STEP rows; `space` is told."""
    step = step or STEP
    for rows in parts:
        weights = () if rows.weights is None else (rows.weights,)
        width = sum(array.itemsize for array in (*rows.codes.values(), *rows.numbers.values(), *weights))
        for start in range(0, rows.size, step):
            piece = rows if rows.size <= step else rows.take(slice(start, min(start + step, rows.size)))
            yield piece
            space.touched(piece.size * width)


def add(rows: CodedRows, clique: Clique, counted: Ints, weights: Ints | None = None) -> None:
    """Add `CodedRows` in place to `counted`, the clique's table as a flat int array in row-major order, by blocks.

    Each row counts its entry of the array `weights`, or 1 if None. `bincount` then adds in floats, which is exact: a
    block of 2^17 rows of a weight of at most 2^10 adds up to at most 2^27.
    """
    shape, cells = rows.schema.shape(clique), len(counted)
    for start in range(0, rows.size, BLOCK):
        block = slice(start, start + BLOCK)
        cell = cell_numbers(rows, clique, shape, block).astype(np.intp)
        own = None if weights is None else weights[block]
        if cells <= 4 * len(cell):
            counted += np.bincount(cell, own, minlength=cells).astype(np.int64, copy=False)
        else:  # a table larger than a block is not added up once per block
            np.add.at(counted, cell, 1 if own is None else own)


def cell_numbers(rows: CodedRows, columns: Clique, shape: Sequence[int], block: slice) -> NDArray[np.integer]:
    """Return an int array, by coded row in `block`: its cell's row-major number in a table of columns and shape."""
    cell: NDArray[np.integer] = rows.codes[columns[0]][block].astype(np.uint16 if math.prod(shape) <= WIDE else np.intp)
    for column, size in zip(columns[1:], shape[1:], strict=True):
        np.multiply(cell, size, out=cell)
        np.add(cell, rows.codes[column][block], out=cell, casting="unsafe")  # a code is never negative
    return cell


def cores() -> int:
    """Return the number of processor cores that this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
