"""Per-row gradients of networks by third-party code: tested for row-locality, and clipped in integers.

The function that evaluates the network is not ours, and its matrix products may round a row's last digits differently
beside other rows. So only the clip holds by construction:

- The driver clips each row's vector to GRID - RESERVE units, in integers, whatever the function returned. A clip
  is GRID = 2^30 units. RESERVE = 2^20 units, a thousandth of the clip, is left for what one row's presence changes in
  the last digits of others: it covers a unit in each of P coordinates of n rows of a sample, while n sqrt(P) <= 2^20.
- That no row changes by more than a unit is tested, when a `PerRow` is made, on made-up rows. It is not
  proven, so every release that asked such a function is stamped `unverified`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.checks import check_integer
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import OPAQUE, known
from stratsynth.questions.base import is_plain
from stratsynth.questions.reading import Clique
from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import GRID, HUGE, Block, Floats, Ints, Sum, check_clip
from stratsynth.questions.sums.design import Design, check_target
from stratsynth.questions.sums.fairness import check_slopes
from stratsynth.questions.sums.kernel import cells_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

Function = Callable[[Floats, Floats, Ints, Floats], tuple[Floats, Floats]]

RESERVE = 2**20
"""Units of the clip that are reserved for the last digits of other rows."""
RADIUS = GRID - RESERVE
"""Largest norm of a row's vector, in units."""
BATCH = 128
"""Rows in every call; missing ones are zeros."""
MOST_WEIGHTS = 2**18
"""Largest number of weights: each of `BATCH` rows has a derivative by each of them."""
SEED = 20190
"""Public seed of made-up rows."""
SCALES = (0.03, 0.3)
"""Standard deviations of made-up weights."""
REMEDY = "a network must treat each row by itself: no batch statistics, nothing random, nothing kept between calls"


@known
@dataclass(frozen=True, eq=False)
class PerRow:
    """A tested function of weights that gives each row's gradient and class probabilities.

    It is called with the weights, and for `BATCH` rows with their features between -1 and 1, their levels, and the
    penalty's number for each class (`slopes`). It returns the gradients of  log loss + <slopes, probabilities>  by the
    weights, one line per row, and the probabilities, one line per row.
    """

    lasting: ClassVar[bool] = True
    function: Function = field(metadata={"digest": False, OPAQUE: True})
    features: int
    """Number of features, without the constant."""
    classes: int
    weights: int
    clip: float
    """Clip of a row's gradient, in the L2 norm."""

    def __post_init__(self) -> None:
        """Raise MechanismError on a function that fails the test of row-locality on made-up rows."""
        _ = self.tested

    @cached_property
    def tested(self) -> bool:
        """True once the function passed the test of row-locality, on made-up rows and weights alone.

        An object may have been made without its class's own constructor, so every user reads this.

        Raises:
            MechanismError: It fails, returns something else, or a row's vector depends on other rows, or on time.
            Unsupported: There are too many weights.
        """
        for name in ("features", "classes", "weights"):
            check_integer(f"per-row gradients: {name}", getattr(self, name), 1, error=MechanismError)
        check_clip("per-row gradients", self.clip)
        if self.weights > MOST_WEIGHTS:
            raise Unsupported(
                f"a network of {self.weights:,} weights is too large: at most {MOST_WEIGHTS:,}. Take fewer units."
            )
        # A public seed: the test reads no data.
        rng = np.random.default_rng(SEED)
        for scale in SCALES:
            self._try(rng.normal(0, scale, self.weights), rng)
        return True

    def _try(self, weights: Floats, rng: np.random.Generator) -> None:
        """Raise MechanismError if made-up rows' (`rng`) vectors at `weights` differ between calls."""
        x = np.clip(rng.uniform(-1.5, 1.5, (BATCH, self.features)), -1, 1)
        rows = x, rng.integers(self.classes, size=BATCH), rng.normal(size=(BATCH, self.classes))
        wanted = self._units(*self._called(weights, *rows))
        for how, places in _arrangements(rng):
            given = tuple(np.where((places >= 0).reshape(-1, *[1] * (part.ndim - 1)), part[places], 0) for part in rows)
            found = self._units(*self._called(weights, *given))
            here = places >= 0
            # One unit for each coordinate is what RESERVE covers.
            if not (np.abs(found[here] - wanted[places[here]]) <= 1).all():
                raise MechanismError(f"per-row gradients: made-up rows get other gradients when they {how}; {REMEDY}.")

    def _called(self, weights: Floats, x: Floats, levels: Ints, slopes: Floats) -> tuple[Floats, Floats]:
        """Return function(`weights`, `x`, `levels`, `slopes`), (gradients, probabilities), or MechanismError."""
        try:
            gradients, chances = self.function(weights.copy(), x.copy(), levels.copy(), slopes.copy())
        except Exception as problem:
            raise MechanismError(f"per-row gradients: the function fails on made-up rows: {problem!r}.") from problem
        shapes = (BATCH, self.weights), (BATCH, self.classes)
        for found, shape in zip((gradients, chances), shapes, strict=True):
            if not is_plain(found) or found.shape != shape or not np.isfinite(found).all():
                raise MechanismError(f"per-row gradients: the function must return finite float64 of shape {shape}.")
        if chances.min() < 0 or abs(chances.sum(axis=1) - 1).max() > 1e-6:
            raise MechanismError("per-row gradients: the probabilities of a row's classes must be 1 together.")
        return gradients, chances

    def _units(self, gradients: Floats, chances: Floats) -> Floats:
        """Return an array, a line per row: gradient clipped, then probabilities `chances`, in grid units."""
        length = np.sqrt((gradients * gradients).sum(axis=1, keepdims=True))
        return np.hstack([gradients * (GRID / np.maximum(length, self.clip)), chances * GRID])

    def sound(self, weights: Floats, x: Floats, levels: Ints, slopes: Floats) -> tuple[Floats, Floats] | None:
        """Return (gradients, probabilities) by own function of `weights`, rows `x`, `levels`, `slopes`; else None."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                gradients, chances = self.function(weights, x, levels, slopes)
            except (Exception, SystemExit):  # noqa: BLE001 - its message could quote a row
                return None
        fits = is_plain(gradients) and gradients.shape == (len(x), self.weights)
        return (gradients, chances) if fits and is_plain(chances) and chances.shape == slopes.shape else None


def _arrangements(rng: np.random.Generator) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Yield (text, order by `rng`) in which to call made-up rows again: the row at each place, -1 for zeros."""
    order = np.arange(BATCH)
    yield "come in another order", rng.permutation(BATCH)
    yield "come in reverse", order[::-1]
    yield "come with fewer others", np.where(rng.random(BATCH) < 0.5, rng.permutation(BATCH), -1)
    for row in rng.permutation(BATCH)[:4]:
        yield f"come alone (row {row})", np.where(order == 0, row, -1)
    yield "are called a second time", order


@known
@dataclass(frozen=True, eq=False)
class PerRowGradients(Sum):
    """A `FairGradients` of one model, with the gradients and probabilities of a `PerRow`.

    The gradient of a row is clipped as one vector. The probabilities F of a row are not negative and add up to 1 at
    most, so the norm of what it adds to its cell is at most 1, and exchanging a row moves the sums by at most sqrt(2).
    """

    design: Design
    """Design whose features the network gets, without the first one, the constant."""
    target: str
    """Categorical column."""
    per_row: PerRow
    weights: Floats
    by: Clique = ()
    """Columns whose levels, fully crossed, are the cells; none if nothing is added to the loss."""
    slopes: Floats | None = None
    """Public numbers: one axis for each column of `by`, and one for classes."""
    unverified: ClassVar[str] = (
        "per-row gradients of a network that was tested on made-up rows, not proven, to treat each row by itself"
    )

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: function untested or unfit for `schema`, shapes; Unsupported: too many cells."""
        what = "per-row gradients"
        check_target(what, self.design, self.target, schema, numeric=False)
        if type(self.per_row) is not PerRow:
            raise MechanismError(f"{what}: per_row must be a PerRow, which tests its function.")
        _ = self.per_row.tested
        sizes = len(self.design.names(schema)) - self.design.intercept, schema.size(self.target)
        if (self.per_row.features, self.per_row.classes) != sizes:
            raise MechanismError(f"{what}: the function must be of {sizes[0]} features and {sizes[1]} classes.")
        shape = (self.per_row.weights,)
        if not is_plain(self.weights) or self.weights.shape != shape or not np.isfinite(self.weights).all():
            raise MechanismError(f"{what}: weights must be finite, and of shape {shape}.")
        check_slopes(what, self, schema)

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but values of weights and slopes, which earlier answers give."""
        return "per-row gradients", self.design, self.target, self.per_row.weights, f"{self.per_row.clip:.9g}", self.by

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return a tuple: a `Block` for the gradient and, with `by`, one for probabilities by cell of `schema`."""
        gradient = Block(self.per_row.weights, self.per_row.clip)
        if not self.by:
            return (gradient,)
        size = schema.cells(self.by) * schema.size(self.target)
        return gradient, Block(size, GRID / (GRID - RESERVE), exchange=math.sqrt(2))

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list of flat int arrays, coded rows `which`: clipped gradients; with `by`, probabilities by cell."""
        per_row, classes = self.per_row, self.per_row.classes
        whole, _ = design.integer_features(self.design, rows, which)
        x: Floats = whole[:, int(self.design.intercept) :] / design.UNIT
        levels = rows.codes[self.target][which].astype(np.int64)
        cell, slopes = np.zeros(len(x), np.intp), np.zeros((len(x), classes))
        if self.slopes is not None:
            cell = cells_of(self.by, rows, which)
            slopes = self.slopes.reshape(-1, classes)[cell]
        total = np.zeros(per_row.weights, np.int64)
        sums = np.zeros((rows.schema.cells(self.by) if self.by else 1, classes), np.int64)
        for places, gradients, chances in _evaluated(per_row, self.weights, x, levels, slopes):
            total += into_ball(gradients / per_row.clip * GRID, RADIUS).sum(axis=0)
            np.add.at(sums, cell[places], shares(chances))
        return [total, sums.ravel()] if self.by else [total]


def _evaluated(
    per_row: PerRow, weights: Floats, x: Floats, levels: Ints, slopes: Floats
) -> Iterator[tuple[NDArray[np.intp], Floats, Floats]]:
    """Yield indices, gradients and probabilities of rows, from `per_row` at the network's weights.

    `x`, `levels` and `slopes` have a line per row; rows at which the function fails are left out: every call has BATCH
    rows, and those of one that fails are tried one by one.
    """
    for start in range(0, len(x), BATCH):
        together = np.arange(start, min(start + BATCH, len(x)))
        # All rows in one call; if it fails, one row per call.
        for places in (together, *together[:, None]):
            pad = BATCH - len(places)
            given = [np.concatenate([a[places], np.zeros((pad, *a.shape[1:]), a.dtype)]) for a in (x, levels, slopes)]
            found = per_row.sound(weights, given[0], given[1], given[2])
            if found is not None:
                yield places, found[0][: len(places)], found[1][: len(places)]
            if places is together and found is not None:
                break


@np.errstate(all="ignore")
def into_ball(vectors: Floats, radius: int) -> Ints:
    """Return lines of `vectors` cut to a ball of integer radius below GRID, in integers of exactly checked norm.

    As `base.into_ball`, for many coordinates: a line's float norm may be added up in any order.
    """
    vectors = np.clip(vectors, -HUGE, HUGE)
    # This norm may be summed in any order, so it decides nothing: the check below is in integers.
    length = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    scaled = np.where(np.isnan(length), 0.0, vectors * np.minimum(1.0, radius / np.maximum(length, 1.0)))
    units = np.clip(np.trunc(scaled), -GRID - 1, GRID + 1).astype(np.int64)
    fits = _within(units, radius)
    if not fits.all():
        units -= np.where(fits[:, None], 0, np.sign(units))  # a norm that was rounded up: one unit less is enough
        units[~_within(units, radius)] = 0
    return units


def _within(units: Ints, radius: int) -> NDArray[np.bool_]:
    """Return a boolean a line of `units`: its norm is at most `radius`; exact for |units| <= GRID + 1.

    A float sum of P <= 2^18 squares is right to 2^-34 of itself; below 2^62 the whole sum stays within 64 bits.
    """
    floats = units.astype(np.float64)
    small = (floats * floats).sum(axis=1) < 2.0**62
    fits: NDArray[np.bool_] = small & ((units * units).sum(axis=1) <= radius**2)
    return fits


@np.errstate(all="ignore")
def shares(chances: Floats) -> Ints:
    """Return the probabilities `chances` of each row in integer units, at most RADIUS in all; a row above is zero."""
    scaled = np.trunc(np.clip(chances, 0, 1) * RADIUS)
    units = np.where(np.isnan(chances), 0, scaled).astype(np.int64)
    units[units.sum(axis=1) > RADIUS] = 0
    return units
