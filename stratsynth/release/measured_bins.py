"""Laws of numbers within bins from noisy sums of places and noisy numbers of multiples: post-processing alone.

The mean place m of a bin's numbers, from -1 to 1 on the drawn scale, is estimated from the noisy sum S of places (noise
s) and the noisy number N of records in it, against the mean m0 of the law that the bin has without it:

    m = (m0 / k^2 + S N / s^2) / (1 / k^2 + N^2 / s^2),    k = PRIOR, the spread of true means around m0,

and that law is then tilted, by exp(theta u), to the mean m, at most MOST in size. Bins with N below SURE times its
noise keep their law, and so do the bins of a Pareto tail. Of multiples a bin has the noisy numbers, where these are
SURE.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.answers.squares import Functions
from stratsynth.schema import Numeric
from stratsynth.schema.bins import LINEAR
from stratsynth.schema.inside import PLACES, Inside, numbers
from stratsynth.schema.multiples import heaped

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.answers.squares import Squares
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

PRIOR = 0.15
"""Standard deviation of true mean places around those of the law without them."""
MOST = 0.97
"""Largest mean place, in size."""
SURE = 3.0
"""Noisy number that is no noise, in standard deviations."""
ROUNDS = 10
"""Number of corrections by which the mean place of rounded numbers is brought to the measured one."""
LOUD = 2.0
"""Noisy number of a class of multiples below which it counts as none, in standard deviations."""
CELLS = (2 * np.arange(PLACES) + 1) / PLACES - 1
"""Middle of each cell of a density, from -1 to 1."""


@dataclass(frozen=True, eq=False)
class BinAnswers:
    """Noisy answers about one column's numbers within its bins, of everybody."""

    places: tuple[Floats, float] | None = None
    """Sum of places by bin, and the standard deviation of its noise."""
    heaps: tuple[Floats, float] | None = None
    """Numbers of records by bin and class of multiples, and the standard deviation of their noise."""


def bin_answers(schema: Schema, measurements: pa.Table) -> dict[str, BinAnswers]:
    """Return a dict from column to `BinAnswers`, noisy sums of places and numbers of multiples within bins.

    `measurements` is a release's Arrow table of them; columns of the schema without such are absent.
    """
    if "sum" not in measurements.column_names:
        return {}
    import pyarrow.compute as pc

    found: dict[str, BinAnswers] = {}
    own_rows = measurements.filter(pc.match_substring(measurements.column("sum").cast("string"), '"within bins"'))
    for question in pc.unique(own_rows.column("question")).to_pylist():
        part = own_rows.filter(pc.equal(own_rows.column("question"), question))
        said = json.loads(part.column("sum")[0].as_py())
        grid, name = float(part.column("grid")[0].as_py()), said["target"]
        values = part.column("value").to_numpy().astype(np.float64) * grid
        noise, own = float(part.column("sigma")[0].as_py()) * grid, found.get(name, BinAnswers())
        bins = len(numeric(schema, name).extents)
        if said["multiples"]:
            found[name] = replace(own, heaps=(values.reshape(bins, -1), noise))
        else:
            found[name] = replace(own, places=(values, noise))
    return found


def bin_counts(squares: Squares, names: Sequence[str]) -> Mapping[str, tuple[Floats, Floats]]:
    """Return {column: (array of everybody's noisy numbers of records in each bin, array of deviations of their noise)}.

    By the least squares `squares`; columns of `names` that are not measured are absent.
    """
    found = {}
    for name in names:
        column = numeric(squares.tables.schema, name)
        bins = len(column.extents)
        asked = Functions(bins, {name: np.eye(bins, column.size)})
        counts, known = squares.estimate(asked)
        if known.all():
            found[name] = counts, np.sqrt(np.maximum(squares.covariance(asked, asked), 0.0))
    return found


def within(column: Numeric, law: Inside, answers: BinAnswers, counts: tuple[Floats, Floats] | None) -> Inside:
    """Return a column's `Inside` with what noisy answers say of its bins; `law` itself where they say nothing.

    Args:
        column: The numeric column.
        law: Its law without them.
        answers: `BinAnswers`, noisy sums of places and numbers of multiples.
        counts: Two arrays: noisy number of records in each bin, and its noise; None if nothing tells.
    """
    found = law if answers.heaps is None else replace(law, heaps=_classes(column, *answers.heaps))
    if answers.places is not None and counts is not None:
        found = replace(found, density=_tilted(column, found, *answers.places, *counts))
    return found


def _tilted(column: Numeric, law: Inside, sums: Floats, noise: float, counts: Floats, spread: Floats) -> Floats:
    """Return an array (bins, places): density of each bin of a numeric column by which numbers have its mean place.

    Rows of 0 keep the shape of `law`, an `Inside`. Arrays, an entry a bin: `sums`, noisy sums of places, of deviation
    `noise`, and `counts`, noisy numbers of records, of deviations `spread`. Of a bin with multiples, the density is the
    one from which they are rounded.
    """
    tail = [] if law.tail is None else law.tail.bins(column).tolist()
    found = np.zeros((len(column.extents), PLACES)) if law.density is None else law.density.copy()
    for i, (low, top) in enumerate(column.extents):
        number = counts[i]
        if low == top or i in tail or number <= SURE * spread[i]:
            continue
        base = found[i] if found[i].sum() > 0 else _shape(column, law, i)
        before = float(base @ CELLS / base.sum())
        worth = 1 / PRIOR**2, (number / noise) ** 2
        mean = float(np.clip((before * worth[0] + sums[i] / number * worth[1]) / sum(worth), -MOST, MOST))
        found[i] = tilted(base, mean)
        if law.heaps is not None and law.heaps[i].sum() > 0:
            asked = mean
            for _ in range(ROUNDS):
                asked = float(np.clip(asked + mean - _heaped_mean(column, i, found[i], law.heaps[i]), -MOST, MOST))
                found[i] = tilted(base, asked)
    return found


def _heaped_mean(column: Numeric, i: int, density: Floats, heaps: Floats) -> float:
    """Return the mean place, -1 to 1, of numbers of a numeric column's bin `i` that are drawn by `density` and rounded.

    `density` is an array over places, `heaps` one of the weights of the classes of multiples that they are rounded to.
    """
    codes, share = np.full(PLACES, i), (np.arange(PLACES) + 0.5) / PLACES
    table = np.zeros((len(column.extents), PLACES))
    table[i] = density
    drawn = numbers(column, codes, share, Inside(density=table))
    low, top = (np.full(PLACES, end, np.float64) for end in column.extents[i])
    first, last = (_drawn(column, end) for end in (low[0], top[0] + column.integer))
    means = [
        2 * (_drawn(column, heaped(column, drawn, low, top, np.full(PLACES, c)) + 0.5 * column.integer).mean() - first)
        for c in range(len(heaps))
    ]
    return float(heaps @ np.array(means) / heaps.sum() / (last - first)) - 1


def _drawn(column: Numeric, x: Floats | float) -> Floats:
    """Return an array, the numbers `x` on the scale of a numeric column's shape: themselves, or signed logarithms.

    `x` is an array or one number.
    """
    if column.shape in LINEAR:
        return np.asarray(x, np.float64)
    return np.asarray(np.copysign(np.log1p(np.abs(x) / float(column.transform_unit)), x))


def _shape(column: Numeric, law: Inside, i: int) -> Floats:
    """Return the density, an array over places, of a numeric column's bin i without answers: even on the drawn scale.

    In a bin of the tail of `law`, an `Inside`, it falls off by the tail's slope.
    """
    if law.tail is None or i not in law.tail.steep(column):
        return np.ones(PLACES)
    unit = float(column.transform_unit)
    low, end = (math.log1p(x / unit) for x in (column.extents[i][0], column.extents[i][1] + column.integer))
    x = unit * np.expm1(low + (CELLS + 1) / 2 * (end - low))
    density = np.exp(-(law.tail.slope + 1) * np.log(x / x[0])) * (unit + x)
    return np.asarray(density / density.mean())


def tilted(base: Floats, mean: float) -> Floats:
    """Return the array proportional to base x exp(theta u), u each place from -1 to 1, whose mean place is `mean`.

    `base` is an array, a density over as many places; theta is found by bisection. Beyond what a density on its cells
    can have, the steepest one.
    """
    low, high = -2.0 * PLACES, 2.0 * PLACES
    for _ in range(60):
        theta = (low + high) / 2
        weight = base * np.exp(theta * CELLS - abs(theta))
        low, high = (theta, high) if weight @ CELLS < mean * weight.sum() else (low, theta)
    return np.asarray(weight / weight.sum() * base.sum())


def _classes(column: Numeric, numbers: Floats, noise: float) -> Floats:
    """Return an array (bins, classes) of weights of a numeric column's multiples, by `numbers`, an array alike.

    These are noisy numbers of records; `noise` is their deviation. Zeros where noise hides them, or in a bin of one
    number.
    """
    wide = np.array([low < top for low, top in column.extents])
    sure = numbers.sum(axis=1) > SURE * noise * np.sqrt(numbers.shape[1])
    clear = np.where(numbers > LOUD * noise, numbers, 0.0)
    return np.where((wide & sure)[:, None], clear, 0.0)


def numeric(schema: Schema, name: str) -> Numeric:
    """Return the schema's column `name`, a `Numeric`; the caller has to know that it is one."""
    column = schema.column(name)
    assert isinstance(column, Numeric)  # noqa: S101 - the callers name columns of numbers
    return column
