"""Rows sorted by the cells of some columns, in two passes and with little memory: a stable counting sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.driver.counting import BLOCK, add, cell_numbers, pieces
from stratsynth.files.space import Space
from stratsynth.progress import phase
from stratsynth.questions.sums.clipping import Ints
from stratsynth.schema.rows import CodedRows


def by_cell(parts: Sequence[CodedRows], columns: tuple[str, ...], space: Space) -> tuple[CodedRows, Ints]:
    """Return (`CodedRows`: all of `parts` sorted by cell in the columns' crossing, in `space`; array of cell ends)."""
    schema = parts[0].schema
    shape, counts = schema.shape(columns), np.zeros(schema.cells(columns), np.int64)
    with phase("sorting", lambda: -(-2 * sum(rows.size for rows in parts) // BLOCK)) as done:
        for rows in pieces(parts, space, BLOCK):
            add(rows, columns, counts)
            done()
        ends = np.cumsum(counts)
        size = int(ends[-1])
        found = parts[0].mapped(lambda array: space.empty(array.dtype, size), size)
        free = ends - counts  # where the next row of each cell goes
        for rows in pieces(parts, space, BLOCK):
            cell = cell_numbers(rows, columns, shape, slice(None))
            order = np.argsort(cell, kind="stable")
            here = np.bincount(cell.astype(np.intp), minlength=len(free))
            place = np.arange(rows.size) + np.repeat(free - (np.cumsum(here) - here), here)
            for target, source in ((found.codes, rows.codes), (found.numbers, rows.numbers)):
                for name, array in source.items():
                    target[name][place] = array[order]
            if found.weights is not None and rows.weights is not None:
                found.weights[place] = rows.weights[order]
            free += here
            done()
    return found, ends


def joined(array: NDArray[Any], slices: Sequence[slice], space: Space) -> NDArray[Any]:
    """Return the slices of an array as one new array in `space`, in order; a view of it for a single slice."""
    if len(slices) == 1:
        return array[slices[0]]
    found, at = space.empty(array.dtype, sum(s.stop - s.start for s in slices)), 0
    for part in slices:
        found[at : at + part.stop - part.start] = array[part]
        at += part.stop - part.start
    space.touched(2 * found.nbytes)
    return found


def renamed(codes: NDArray[Any], levels: Sequence[int], space: Space) -> NDArray[Any]:
    """Return for each code its index in `levels`, which ascend and include all that occur; an array in `space`."""
    found = space.empty(codes.dtype, len(codes))
    for start in range(0, len(codes), BLOCK):
        block = slice(start, start + BLOCK)
        found[block] = np.searchsorted(levels, codes[block])
    space.touched(2 * found.nbytes)
    return found
