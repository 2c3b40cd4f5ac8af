"""Laws of numbers within bins that a release draws by: slopes of tails from noisy counts, public numbers of a prior.

All of it is post-processing: noisy counts of everybody, by least squares over all tables, and public rows. A Pareto
tail is a model of what lies beyond the last bins that noise leaves visible: of how many there are, not how large.

- The tail starts at the last edge above which the noisy count T exceeds 2.5 standard deviations of its noise. The bins
  from there on are one for drawing: noise that is cut off at 0 in each of them would be mass at the largest numbers.
- With e the edge of the tail and d the highest edge below it with T(d) >= 4 T(e), the slope is
  log(T(d) / T(e)) / log(e / d), cut to the slopes that the schema declares.
- Numbers within the bins from d on fall off by that slope; those from e on are drawn with the tail's bins as one.
- Where the column's clipped sum was measured, the slope of the tail follows it too (`tail_sums`).
- Bins above 0 that hold more than three tenths of all records are no tail: of so few records the last bin alone is one,
  with the middle of the declared slopes.

Strata have everybody's law: what is known of the tails of few people is too little for a slope of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from stratsynth.answers.clipped import clipped_sums
from stratsynth.answers.sizes import squares_of
from stratsynth.answers.squares import Functions, Squares
from stratsynth.certificate import InsideStated
from stratsynth.models import Returns
from stratsynth.models.calibrated import Calibrated
from stratsynth.release.measured_bins import bin_answers, bin_counts, within
from stratsynth.release.tail_sums import with_sum
from stratsynth.schema import Numeric
from stratsynth.schema.drawn import PARETO, PRIOR
from stratsynth.schema.inside import Inside, Tail, declared

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.certificate import Certificate
    from stratsynth.mechanisms import Prepared
    from stratsynth.models import Model, TableModel
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

SURE = 2.5
"""Noisy count at the start of a tail, in standard deviations of its noise, that is no noise."""
RATIO = 4.0
"""Least quotient of the two noisy counts that a slope is of."""
MOST = 0.3
"""Largest part of all records that a tail may have."""
UNMEASURED = "no noisy table of everybody has the column"
HIDDEN = "noise hides how many records are in the last bins"
WIDE = "the bins that noise leaves visible hold too many of the records to be a tail"
FLAT = "no edge below has four times as many records above it"


@dataclass(frozen=True, eq=False)
class TailCounts:
    """Noisy numbers of everybody's records from each bin of a column on, without those of spikes."""

    above: Floats
    noise: Floats
    """Standard deviation of the noise of each."""
    records: float
    """Noisy number of all records."""


def laws_of(
    prepared: Prepared, model: Model, certificate: Certificate, measurements: pa.Table
) -> tuple[dict[str, Inside], tuple[InsideStated, ...]]:
    """Return ({column: `Inside`}, tuple of `InsideStated`) of a prepared fit; both are empty if it draws no rows.

    They follow from the fit's prior, the model, its certificate and `measurements`, an Arrow table of the noisy
    answers.
    """
    if model.returns is not Returns.ROWS:
        return {}, ()
    rows = None if prepared.prior is None else prepared.prior.rows
    densities = None if rows is None else rows.densities
    return laws(model.schema, certificate, measurements, lambda: model, densities)


def laws(
    schema: Schema,
    certificate: Certificate,
    measurements: pa.Table,
    model: Callable[[], Model],
    densities: Mapping[str, Floats] | None = None,
) -> tuple[dict[str, Inside], tuple[InsideStated, ...]]:
    """Return ({column: `Inside`, a law beyond the schema's shape}, tuple of `InsideStated` on them).

    Args:
        schema: All columns of the release.
        certificate: The certificate, which names the strata.
        measurements: Every noisy answer, an Arrow table.
        model: Function that loads the model; called only if strata are split again, or a clipped sum tells of a tail.
        densities: Mapping from column to an array (bins, places) of weights in a prior's rows; None without.
    """
    columns = {name: column for name, column in schema.columns.items() if isinstance(column, Numeric)}
    tails = [name for name, column in columns.items() if column.shape == PARETO]
    declares = any(column.places or column.heaps for column in columns.values())
    answers = bin_answers(schema, measurements) if declares else {}
    placed = [name for name, one in answers.items() if one.places is not None]
    squares = squares_of(schema, certificate, measurements, model) if tails or placed else None
    counts = {} if squares is None else tail_counts(squares, tails)
    inside = {} if squares is None or not placed else bin_counts(squares, placed)
    sums = {one.column: one for one in clipped_sums(schema, measurements) if not one.stratum}
    found, stated = dict[str, Inside](), []
    for name, column in columns.items():
        tail, why = None, ""
        if name in tails:
            tail, why = (None, UNMEASURED)
            if name in counts:
                tail, why = fitted_tail(column, counts[name], starts_of(schema, name))
            tail = tail or declared(column).tail
        density = None if densities is None or column.within != PRIOR else densities.get(name)
        law = Inside(tail, density)
        if name in answers:
            law = within(column, law, answers[name], inside.get(name))
        summed = None
        if name in sums and squares is not None and tail is not None and not why and column.within != PRIOR:
            summed = with_sum(name, column, law, sums[name], squares, _drawn(model()).oneway(name))
            law = summed or law
        if tail is not None or law.density is not None or law.heaps is not None:
            found[name] = law
        if name in found or column.round or column.within == PRIOR:
            stated.append(_stated(name, column, law, why, density, summed=summed is not None))
    return found, tuple(stated)


def _drawn(model: Model) -> TableModel:
    """Return the `TableModel` that draws the rows of `model`, before any raking to published totals."""
    own = model.table_model()
    return own.base if isinstance(own, Calibrated) else own


def tail_counts(squares: Squares, names: Sequence[str]) -> dict[str, TailCounts]:
    """Return a dict from column to `TailCounts`: everybody's noisy numbers of records from each bin on.

    Columns that nothing measured are absent.

    Args:
        squares: Least squares of the release.
        names: The columns, of numbers.
    """
    schema = squares.tables.schema
    (records,), (sized,) = squares.estimate(Functions(1, {}))
    found = {}
    for name in names:
        column = cast("Numeric", schema.column(name))
        bins = len(column.extents)
        wide = np.array([low not in column.spikes for low, _ in column.extents], dtype=float)
        weights = np.zeros((bins, column.size))
        weights[:, :bins] = np.triu(np.ones((bins, bins))) * wide
        asked = Functions(bins, {name: weights})
        above, known = squares.estimate(asked)
        if known.all() and sized:
            found[name] = TailCounts(above, np.sqrt(np.maximum(squares.covariance(asked, asked), 0.0)), float(records))
    return found


def fitted_tail(column: Numeric, counts: TailCounts, starts: Sequence[int]) -> tuple[Tail | None, str]:
    """Return (Pareto tail that noisy counts of a column give, ""), or (None, sentence with the reason).

    Args:
        column: The numeric column.
        counts: A `TailCounts`: noisy numbers of records from each bin on, with their noise.
        starts: Indices of bins at which a tail may start, ascending.
    """
    above = counts.above
    sure = [i for i in starts if above[i] > SURE * counts.noise[i]]
    if not sure:
        return None, HIDDEN
    first = sure[-1]
    if above[first] > MOST * counts.records:
        return None, WIDE
    edges = [low for low, _ in column.extents]
    below = [
        i for i in range(first) if edges[i] > 0 and edges[i] not in column.spikes and above[i] >= RATIO * above[first]
    ]
    if not below:
        return Tail(first, sum(column.slopes) / 2), FLAT
    slope = math.log(above[below[-1]] / above[first]) / math.log(edges[first] / edges[below[-1]])
    return Tail(first, min(max(slope, column.slopes[0]), column.slopes[1]), below[-1]), ""


def starts_of(schema: Schema, name: str) -> list[int]:
    """Return a list of numbers of bins of column `name` where a tail may start: above 0, no spike, uncut by rules."""
    column = cast("Numeric", schema.column(name))
    wide = [i for i, (low, _) in enumerate(column.extents) if low > 0 and low not in column.spikes]
    named = [box[name] for rule in schema.rules for box in rule.cells(schema) if name in box]
    return [
        i
        for i in wide
        if all(codes.isdisjoint(own) or codes >= own for own in [set(wide[wide.index(i) :])] for codes in named)
    ]


def _stated(name: str, column: Numeric, law: Inside, why: str, prior: Floats | None, *, summed: bool) -> InsideStated:
    """Return `InsideStated`, the certificate's entry on the `Inside` `law` of the `column` called `name`.

    `why` is the reason for a tail that is not fitted, "" if it is. `prior` is an array (bins, places) of weights in a
    prior's rows, None without. `summed` is True if the slope follows the numeric column's clipped sum too.
    """
    tail = law.tail
    before = np.zeros((len(column.extents), 1)) if prior is None else prior
    placed = None if law.density is None else np.any(law.density != before, axis=1)
    own = [] if tail is None else tail.bins(column).tolist()
    return InsideStated(
        column=name,
        shape=column.shape,
        slope=None if tail is None else tail.slope,
        start=None if tail is None else float(column.extents[own[0]][0]),
        bins=len(own),
        slopes=column.slopes if tail is not None else None,
        fitted=tail is not None and not why,
        summed=summed,
        why=why,
        prior=0 if prior is None else int((prior.sum(axis=1) > 0).sum()),
        places=0 if placed is None else int(placed.sum()),
        heaps=0 if law.heaps is None else int((law.heaps.sum(axis=1) > 0).sum()),
        rounded=bool(column.round),
    )
