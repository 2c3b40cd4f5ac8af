"""Exact sums of clipped per-row vectors, as integers in units of clip / GRID.

Privacy needs two things here: a row's integer vector depends on that row alone, to the last bit; and its
norm is at most GRID. Both hold by construction:

- Floats are touched only one element at a time, by operations that IEEE 754 rounds correctly (+ - * / sqrt,
  rint, trunc, comparisons). So no result depends on a row's position, its neighbours, SIMD lanes or threads.
  A norm is added up one coordinate after another. exp is a public table of integers.
- The clipped vector is cut to integers towards zero, and its norm is checked again in exact integers; what
  fails that, or holds a NaN, contributes zero. So the bound does not rest on any float.
- Rows are added as integers: in int64 (2^30 a row, so 2^32 rows fit), or by float64 matrix products of
  integers. In those every product of one row is at most 2^30 and a piece has ROWS = 2^13 rows, so every
  partial sum, in any order, stays below 2^43 < 2^53 and is exact. (Logits: see `stratsynth.driver.models`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.driver import attribute, confusions, fairness, grouped, mitigation, models, networks, perrow
from stratsynth.driver.clipping import ROWS, Floats, Ints, Which, clipped
from stratsynth.errors import MechanismError
from stratsynth.questions.attribute import AttributeGradients
from stratsynth.questions.confusions import Confusions
from stratsynth.questions.fairness import FairGradients
from stratsynth.questions.gradients import Gradients, Losses
from stratsynth.questions.grouped import GroupLosses
from stratsynth.questions.locality import evaluate
from stratsynth.questions.mitigation import Mitigated
from stratsynth.questions.networks import NetworkGradients, NetworkLosses
from stratsynth.questions.newton import Curvature
from stratsynth.questions.perrow import PerRowGradients
from stratsynth.questions.queries import Columns, Glm, Moments, Query, RowVectors
from stratsynth.schema import Column, Numeric
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.transforms import forward


def exact_sums(query: Query, rows: CodedRows, chosen: NDArray[Any] | None = None) -> list[NDArray[Any]]:
    """For each block of the query, the exact sum over the rows, or over those chosen by number or by mask.

    Of rows with weights of their own, the sum of weight x vector: for each binary digit of the weights, the sum over
    the rows that have it, times what the digit is worth. So every query is weighted by the same few lines, and a row's
    vector is the one it has without. Python's integers have no end: a score of such a sum cannot wrap around.
    """
    if rows.weights is None:
        return list[NDArray[Any]](_plain_sums(query, rows, chosen))
    numbers = np.arange(rows.size) if chosen is None else _numbered(chosen)
    weights = rows.weights[numbers]
    totals = [np.zeros(block.size, object) for block in query.blocks(rows.schema)]
    for digit in range(rows.schema.row_weight.most.bit_length()):
        having = numbers[(weights >> digit) & 1 == 1]
        for block, part in enumerate(_plain_sums(query, rows, having)):
            totals[block] += part.astype(object) << digit
    return totals


def _of_the_size(part: Ints, total: NDArray[Any]) -> Ints:
    """A sum as long as its query says: a shorter one would be repeated, and its noise averaged away."""
    if part.shape != total.shape:
        raise MechanismError("a sum has another size than its query says.")
    return part


@np.errstate(all="ignore")
def _plain_sums(query: Query, rows: CodedRows, chosen: NDArray[Any] | None) -> list[Ints]:
    """The same of rows that count 1 each."""
    totals = [np.zeros(block.size, np.int64) for block in query.blocks(rows.schema)]
    for which in _pieces(rows.size, chosen):
        for block, part in enumerate(SUMS[type(query)](query, rows, which)):
            totals[block] += _of_the_size(part, totals[block])
    return totals


def _pieces(size: int, chosen: NDArray[Any] | None) -> Iterator[Which]:
    """The rows asked for, at most ROWS at a time."""
    if chosen is None:
        yield from (slice(start, min(start + ROWS, size)) for start in range(0, size, ROWS))
        return
    numbers = _numbered(chosen)
    yield from (numbers[start : start + ROWS] for start in range(0, len(numbers), ROWS))


def _numbered(chosen: NDArray[Any]) -> NDArray[np.intp]:
    """The rows chosen, by number."""
    return np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen


def _row_vectors(query: RowVectors, rows: CodedRows, which: Which) -> list[Ints]:
    """A user's function, block by block; what it fails at is NaN, and counts as zero."""
    part = rows.take(which)
    vectors = evaluate(query.function, query.size, part.schema, part.codes, part.numbers, part.size)
    return clipped(vectors.T, query.clip, query.norm)


def _columns(query: Columns, rows: CodedRows, which: Which) -> list[Ints]:
    """(x - centre) / scale, or its square, clipped; a missing value makes the norm NaN, and the row zero."""
    vectors = np.array(
        [
            (_on_scale(rows.schema.column(name), rows.numbers[name][which]) - float(centre)) / float(scale)
            for name, centre, scale in zip(query.columns, query.centre, query.scale, strict=True)
        ]
    )
    if query.square:
        vectors *= vectors
    return clipped(vectors, query.clip, query.norm)


def _on_scale(column: Column, numbers: Floats) -> Floats:
    """The numbers on the scale that the column declares."""
    assert isinstance(column, Numeric)  # noqa: S101 - the query's check
    return forward(column, numbers)


SUMS: dict[type[Query], Callable[[Any, CodedRows, Which], list[Ints]]] = {
    Columns: _columns,
    Moments: models.moments,
    Glm: models.glm,
    RowVectors: _row_vectors,
    Gradients: models.gradients,
    Losses: models.losses,
    Confusions: confusions.confusions,
    GroupLosses: grouped.group_losses,
    FairGradients: fairness.fair_gradients,
    AttributeGradients: attribute.attribute_gradients,
    Curvature: models.curvature,
    Mitigated: mitigation.mitigated,
    NetworkGradients: networks.gradients,
    NetworkLosses: networks.losses,
    PerRowGradients: perrow.per_row_gradients,
}
"""How each kind of query is summed over one piece of the rows: the sum of each block."""
