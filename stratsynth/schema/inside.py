"""Laws of numbers within bins: the declared shape, and what public rows and noisy answers add to it.

The drawn scale of a bin is the scale on which the shape is even: numbers themselves, or sign(x) log(1 + |x| / unit).
`Inside` holds what a fit knows beyond the shape; decoding draws by it, and means of bins follow it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import ReleaseError
from stratsynth.schema.bins import LINEAR
from stratsynth.schema.drawn import PARETO
from stratsynth.schema.multiples import heaped, multiples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.schema.columns import Numeric

    Floats = NDArray[np.float64]
    Codes = NDArray[np.integer[Any]]

PLACES = 128
"""Number of places of equal width, on the drawn scale, at which densities within a bin are known."""
POINTS = 256
"""Number of points in a bin at which its mean is computed; sixteen times as many in a tail."""


@dataclass(frozen=True)
class Tail:
    """Pareto tail of a column: bins that are one for drawing, with a density that falls as x to the -slope - 1."""

    first: int
    """Index of the first of its bins; it holds all bins from there on but spikes."""
    slope: float
    begin: int | None = None
    """Index of the first bin within which numbers fall off by the slope; None for `first`. Bins from there to the tail
    keep their own numbers of records."""

    def bins(self, column: Numeric) -> NDArray[np.intp]:
        """Return an integer array: ascending codes of the numeric column's bins that this tail covers; no spikes."""
        return np.array(
            [i for i, (low, _) in enumerate(column.extents) if i >= self.first and low not in column.spikes]
        )

    def steep(self, column: Numeric) -> NDArray[np.intp]:
        """Return an integer array: codes of a numeric column's bins, from `begin` on, in which numbers fall off."""
        return replace(self, first=self.first if self.begin is None else self.begin).bins(column)

    def masses(self, column: Numeric) -> Floats:
        """Return an array, sum 1: the probability of a number in each of the tail's `bins` in a numeric column."""
        extents = [column.extents[i] for i in self.bins(column)]
        start = extents[0][0]
        over = [
            (_power(low / start, -self.slope), _power((top + column.integer) / start, -self.slope))
            for low, top in extents
        ]
        found = np.array([max(a - b, 0.0) for a, b in over])
        return found / found.sum() if found.sum() > 0 else np.full(len(found), 1 / len(found))

    def redrawn(self, column: Numeric, codes: Codes, rng: Generator, allowed: frozenset[int] | None = None) -> Codes:
        """Return the array `codes`, by row, with those in this tail's bins of a numeric column drawn again by `rng`.

        New ones are among the bins in the set `allowed`, None for all; with fewer than two such bins, none are drawn.
        """
        own, masses = self.bins(column), self.masses(column)
        if allowed is not None:
            kept = np.isin(own, list(allowed))
            own, masses = own[kept], masses[kept]
        inside = np.flatnonzero(np.isin(codes, own))
        if len(own) < 2 or not inside.size or not masses.sum() > 0:
            return codes
        found = codes.copy()
        found[inside] = rng.choice(own, size=inside.size, p=masses / masses.sum())
        return found


@dataclass(frozen=True, eq=False)
class Inside:
    """Law of one column's numbers within its bins, beyond the shape that its schema declares."""

    tail: Tail | None = None
    """Pareto tail of the last bins; None for other shapes."""
    density: Floats | None = None
    """Array (bins, `PLACES`): weight of each place of a bin on its drawn scale; a bin of zeros keeps the shape. None if
    all bins do."""
    heaps: Floats | None = None
    """Array (bins, multiples + 1): weight of the multiples of each of the column's `heaps` that are none of a larger
    one, and last of all other numbers of the bin. None if nothing was measured."""

    def __post_init__(self) -> None:
        """Refuse arrays of other shapes or with other values than weights (ReleaseError)."""
        for key, width in (("density", PLACES), ("heaps", None)):
            array = getattr(self, key)
            if array is None:
                continue
            array = np.asarray(array, np.float64)
            if (
                array.ndim != 2
                or width not in (None, array.shape[1])
                or not np.isfinite(array).all()
                or array.min() < 0
            ):
                raise ReleaseError(f"the law of numbers within bins is damaged: its {key}.")
            object.__setattr__(self, key, array)

    def fits(self, column: Numeric) -> bool:
        """True if this law's arrays have a row for each bin of a numeric column, and its tail has such bins above 0."""
        bins = len(column.extents)
        sizes = all(array is None or len(array) == bins for array in (self.density, self.heaps))
        steps = self.heaps is None or self.heaps.shape[1] == len(column.heaps) + 1
        return sizes and steps and (self.tail is None or _is_tail(column, self.tail))


NOTHING = Inside()


def declared(column: Numeric) -> Inside:
    """Return the `Inside` of a numeric column's schema alone: of a Pareto shape the last bin, and the middle slope."""
    if column.shape != PARETO:
        return NOTHING
    last = max(i for i, (low, _) in enumerate(column.extents) if low not in column.spikes)
    return Inside(Tail(last, sum(column.slopes) / 2))


def numbers(column: Numeric, codes: Codes, share: Floats, inside: Inside) -> Floats:
    """Return an array, by row: the number in the bin of `codes` below which the part `share`, 0 to 1, of the law lies.

    `codes` and `share` are arrays by row; `inside`, an Inside, is the numeric column's law. Numbers are rounded as it
    declares.
    """
    low, top = np.asarray(column.extents, np.float64)[codes].T
    end = top + column.integer
    place, dense = share, np.zeros(len(codes), bool)
    if inside.density is not None:
        place, dense = _placed(codes, share, inside.density)
    if column.shape in LINEAR:
        # Not low + place * (end - low), whose difference can overflow; rounding must not leave the bin.
        drawn = low * (1 - place) + end * place
    else:
        unit = float(column.transform_unit)
        first, last = (np.copysign(np.log1p(np.abs(x) / unit), x) for x in (low, end))
        at = first + place * (last - first)
        with np.errstate(over="ignore"):  # at the largest numbers there are
            drawn = np.copysign(np.expm1(np.abs(at)) * unit, at)
    if inside.tail is not None:
        there = ~dense & np.isin(codes, inside.tail.steep(column))
        drawn[there] = pareto(low[there], end[there], share[there], inside.tail.slope)
    if column.integer:
        drawn = np.floor(drawn)
    drawn = np.clip(drawn, low, top) + 0.0
    return multiples(column, drawn, low, top) if column.round else drawn


def middles(column: Numeric, inside: Inside | None = None) -> tuple[float, ...]:
    """Return a tuple, one a bin: the mean of the numbers drawn in it; for bins of a tail, the mean of the whole tail.

    Args:
        column: The numeric column.
        inside: Its law; that of the schema alone if None.
    """
    law = declared(column) if inside is None else inside
    own = [] if law.tail is None else law.tail.bins(column).tolist()
    plain = column.shape in LINEAR and not column.round and law.density is None and law.heaps is None
    found = []
    for i, (low, top) in enumerate(column.extents):
        if plain or low == top:
            found.append(low / 2 + top / 2)
        else:
            points = 16 * POINTS if i in own else POINTS
            drawn = numbers(column, np.full(points, i), (np.arange(points) + 0.5) / points, law)
            found.append(
                math.fsum(drawn.tolist()) / points if law.heaps is None else _heaped_mean(column, i, drawn, law)
            )
    if law.tail is not None:
        mean = float(law.tail.masses(column) @ np.array([found[i] for i in own]))
        found = [mean if i in own else middle for i, middle in enumerate(found)]
    return tuple(found)


def density_of(column: Numeric, values: Floats, codes: Codes, weights: Floats, floor: float) -> Floats:
    """Return an array (bins, `PLACES`): how much weight of public numbers each place of their bin has, plus `floor`.

    Bins without a number stay zero. Weights are scaled to a mean of 1.

    Args:
        column: The numeric column.
        values: Array of public numbers, within the bounds.
        codes: Array of the bin of each.
        weights: Array of the weight of each.
        floor: Added to each place of a bin that has a number.
    """
    bins, codes = len(column.extents), codes.astype(np.int64)
    low, top = np.asarray(column.extents, np.float64)[codes].T
    ends, unit = [low, top + column.integer, values + 0.5 * column.integer], float(column.transform_unit)
    if column.shape not in LINEAR:
        ends = [np.copysign(np.log1p(np.abs(x) / unit), x) for x in ends]
    first, last, at = ends
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(last > first, (at - first) / (last - first), 0.0)
    cells = np.clip(np.floor(part * PLACES), 0, PLACES - 1).astype(np.int64)
    scaled = weights / weights.mean() if weights.size and weights.mean() > 0 else np.ones(len(values))
    found = np.bincount(codes * PLACES + cells, scaled, bins * PLACES).reshape(bins, PLACES)
    there = np.bincount(codes, minlength=bins) > 0
    return np.where(there[:, None], found + floor, 0.0)


def pareto(low: Floats, end: Floats, share: Floats, slope: float) -> Floats:
    """Return an array: numbers below which `share` of a Pareto law of `slope`, from `low` to `end`, lies.

    All but `slope` are arrays with an entry a number; `low` and `end` are above 0.
    """
    left = -np.expm1(-slope * np.log(end / low))  # 1 - (low / end) ** slope
    return np.asarray(low * np.exp(-np.log1p(-share * left) / slope))


def to_arrays(laws: Mapping[str, Inside]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return (dict: tails of `laws`, `Inside` by column; dict: their arrays, "density/COLUMN" and "heaps/COLUMN").

    The first is {"columns": {column: dict of its tail, {} for none}}.
    """
    facts = {
        name: {} if law.tail is None else {key: value for key, value in vars(law.tail).items() if value is not None}
        for name, law in laws.items()
    }
    arrays = {
        f"{key}/{name}": array
        for name, law in laws.items()
        for key, array in (("density", law.density), ("heaps", law.heaps))
        if array is not None
    }
    return {"columns": facts}, arrays


def from_arrays(facts: Any, arrays: Mapping[str, NDArray[Any]], columns: Mapping[str, Any]) -> dict[str, Inside]:
    """Return a mapping from column to `Inside`, by `facts` and `arrays` as `to_arrays` gives; `columns` are by name.

    ReleaseError for damaged ones, or laws that do not fit the columns.
    """
    try:
        found = {}
        for name, tail in facts["columns"].items():
            own = Tail(int(tail["first"]), float(tail["slope"]), tail.get("begin")) if tail else None
            law = Inside(own, arrays.get(f"density/{name}"), arrays.get(f"heaps/{name}"))
            if not law.fits(columns[name]):
                raise ReleaseError(f"the law of numbers within bins is damaged: that of {name}.")
            found[name] = law
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ReleaseError(f"the law of numbers within bins is damaged ({type(error).__name__}).") from None
    return found


def _heaped_mean(column: Numeric, i: int, drawn: Floats, law: Inside) -> float:
    """Return the mean of `drawn`, numbers in bin `i` of the Numeric `column`, once rounded to multiples.

    The multiples have the weights `heaps`, not None, of the Inside `law`.
    """
    assert law.heaps is not None  # noqa: S101 - the caller looked
    weights = law.heaps[i] if law.heaps[i].sum() > 0 else np.eye(law.heaps.shape[1])[-1]
    low, top = (np.full(len(drawn), end, np.float64) for end in column.extents[i])
    means = [heaped(column, drawn, low, top, np.full(len(drawn), c)).mean() for c in range(len(weights))]
    return float(weights @ np.array(means) / weights.sum())


def _is_tail(column: Numeric, tail: Tail) -> bool:
    """True if `tail`, a `Tail`, has bins of the numeric column, above 0, and a positive slope."""
    begin = tail.first if tail.begin is None else tail.begin
    if column.shape != PARETO or not (0 <= begin <= tail.first < len(column.extents) and 0 < tail.slope < math.inf):
        return False
    return bool(tail.bins(column).size) and column.extents[int(tail.steep(column)[0])][0] > 0


def _placed(codes: Codes, share: Floats, density: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return arrays by row (place, 0 to 1, in the bin of `codes` below which `share` lies; mask: has `density`).

    `codes` and `share` are arrays by row; `density` is an array (bins, places), 0 in bins without one.
    """
    total = density.sum(axis=1)
    known = total > 0
    steps = np.cumsum(np.where(known[:, None], density, 1.0), axis=1)
    steps /= steps[:, -1:]
    flat = (steps + np.arange(len(steps))[:, None]).ravel()  # ascending: bin i from i to i + 1
    cell = np.minimum(np.searchsorted(flat, codes + share, side="right"), codes * PLACES + PLACES - 1)
    cell = np.maximum(cell, codes * PLACES)
    before = np.where(cell % PLACES > 0, flat[cell - 1], codes)
    wide = flat[cell] - before
    part = np.clip(np.divide(codes + share - before, wide, out=np.full(len(codes), 0.5), where=wide > 0), 0.0, 1.0)
    place = (cell % PLACES + part) / PLACES
    return np.where(known[codes], place, share), known[codes]


def _power(base: float, exponent: float) -> float:
    return math.exp(exponent * math.log(base)) if base > 0 else math.inf
