"""Exact sums over the rows of a path, or over a sample of them: piece by piece, with the weights of rows.

A row's integer vector is computed by the sum itself, in `stratsynth.questions.sums`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import is_known
from stratsynth.questions.sums.base import Sum
from stratsynth.questions.sums.clipping import ROWS, Ints

if TYPE_CHECKING:
    from stratsynth.schema.rows import CodedRows, Which


def exact_sums(query: Sum, rows: CodedRows, chosen: NDArray[Any] | None = None) -> list[NDArray[Any]]:
    """Return a list, a flat array a block: the query's exact sum over `CodedRows`, or those `chosen`, indices or mask.

    With weights of rows, the sum of weight x vector: for each binary digit of the weights, the sum over the rows that
    have it, times the digit's value. So every query is weighted by the same few lines, and a row's vector is the same
    as without weights. Python's integers are unlimited: a score of such a sum cannot wrap around.
    """
    if rows.weights is None:
        return list[NDArray[Any]](_plain_sums(query, rows, chosen))
    numbers = np.arange(rows.size) if chosen is None else _numbered(chosen)
    weights = rows.weights[numbers]
    totals = [np.zeros(block.size, object) for block in query.blocks(rows.schema)]
    for digit in range(rows.schema.row_weight.most.bit_length()):
        # Each binary digit of the weights: the rows that have it, times 2^digit.
        having = numbers[(weights >> digit) & 1 == 1]
        for block, part in enumerate(_plain_sums(query, rows, having)):
            totals[block] += part.astype(object) << digit
    return totals


@np.errstate(all="ignore")
def _plain_sums(query: Sum, rows: CodedRows, chosen: NDArray[Any] | None) -> list[Ints]:
    """Return a list, a flat int array a block: the query's sum over coded rows, or `chosen` ones; or MechanismError."""
    if not is_known(query):
        raise MechanismError(f"{type(query).__name__} is not one of the known queries.")
    totals = [np.zeros(block.size, np.int64) for block in query.blocks(rows.schema)]
    for which in _pieces(rows.size, chosen):
        for block, part in enumerate(type(query).exact(query, rows, which)):  # by its class: no method of its own
            if part.shape != totals[block].shape:  # a shorter sum would be repeated, and its noise averaged away
                raise MechanismError("a sum has another size than its query says.")
            totals[block] += part
    return totals


def _pieces(size: int, chosen: NDArray[Any] | None) -> Iterator[Which]:
    """Yield slices of range(`size`) or, with `chosen`, indices or a mask, arrays of indices, of up to ROWS rows."""
    if chosen is None:
        yield from (slice(start, min(start + ROWS, size)) for start in range(0, size, ROWS))
        return
    numbers = _numbered(chosen)
    yield from (numbers[start : start + ROWS] for start in range(0, len(numbers), ROWS))


def _numbered(chosen: NDArray[Any]) -> NDArray[np.intp]:
    """Return the row numbers of a boolean mask `chosen`; an array of row numbers unchanged."""
    return np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
