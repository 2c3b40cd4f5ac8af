"""`Total`: a noisy sum of clipped per-row vectors, over all rows or over a Poisson sample of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import PRICED, Currency, Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.exact import narrowed, widened
from stratsynth.checks import number
from stratsynth.errors import MechanismError
from stratsynth.noise import Entropy, gaussian, laplace
from stratsynth.questions.admission import known
from stratsynth.questions.base import (
    Answer,
    Kept,
    Program,
    Question,
    Seen,
    Setting,
    check_positive,
    check_weights,
    read_only,
    shared,
    squared,
)
from stratsynth.questions.reading import Exact, Ints, Wanted
from stratsynth.questions.sums.base import GRID, Query, check_query
from stratsynth.questions.sums.published import PublishedSum, columns_read, summed
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.schema import Schema

WIDEST = 2.0**50
"""Largest scale of noise that samplers draw, in units of the grid."""


@dataclass(frozen=True)
class NoisySum:
    """One released block: exact integer sums plus integer noise, in units of the grid."""

    units: NDArray[np.int64]
    """Noisy sum in units of the grid; read-only."""
    grid: float
    """Value of one unit of the grid."""
    sigma: float
    """Standard deviation of the noise in a coordinate, in the sum's own unit."""

    @property
    def values(self) -> NDArray[np.float64]:
        """Noisy sum as floats in the unit of the summed numbers: `units` x `grid`."""
        return self.units.astype("float64") * self.grid


@known
@dataclass(frozen=True)
class Total(Question):
    """The noisy sum of a query's per-row vectors.

    In `zcdp` and `exact`, `price` is the rho of the whole question, divided among the blocks by `weights`; noise is
    discrete Gaussian. In `pure`, it is epsilon, and noise is discrete Laplace with an exact tail. In `sampled`, it is
    the noise multiplier that the fit has reserved, and each row takes part with probability `rate`.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"sums"})
    query: Query
    price: float
    currency: Currency = Currency.ZCDP
    weights: tuple[float, ...] | None = None
    """Positive weight of each block's part of the price; equal if None."""
    rate: float = 1.0
    """Probability with which each row takes part, by an independent coin."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: query unsound in `schema`, bad weights, low price, rate or norm unfit to currency."""
        check_query("total", self.query, schema)
        check_positive("total: price", self.price)
        blocks = self.query.blocks(schema)
        check_weights("total", self.weights, len(blocks))
        if self.currency == Currency.PURE and max(self.scales(schema, Neighbours.REPLACE)) > WIDEST:
            raise MechanismError("total: epsilon, or a part of it, is too small to be paid in noise.")
        if self.currency == Currency.SAMPLED:
            number("total: the rate", self.rate, above=0, most=1, error=MechanismError)
        elif self.rate != 1:
            raise MechanismError("total: only the currency `sampled` accounts for a Poisson sample.")
        if self.currency == Currency.PURE and any(b.size > 1 for b in blocks) and self.query.norm != "l1":
            raise MechanismError("total: pure epsilon needs a query clipped in the l1 norm.")

    def shares(self, schema: Schema) -> list[float]:
        """Return a list: each block's part of `price` in `schema`, rho or epsilon, by `weights`; equal if None."""
        return shared(self.price, self.weights or (1.0,) * len(self.query.blocks(schema)))

    def scales(self, schema: Schema, neighbours: Neighbours) -> list[float]:
        """Return a list: each block's noise in a schema for `neighbours`, in grid units, up: sigma, Laplace's scale.

        With several blocks, `sampled` gives each the multiplier z / sqrt(share), where the shares of `weights` sum to
        1: a row that fills all of them then counts as one query of multiplier z, since 1/z^2 adds up.
        """
        blocks, weight = self.query.blocks(schema), schema.row_weight.most
        reach = [GRID * weight * b.reach(neighbours) for b in blocks]
        if self.currency == Currency.SAMPLED:
            parts = shared(1.0, self.weights or (1.0,) * len(blocks))
            return [GRID * weight * self.price / math.sqrt(part) * (1 + 1e-12) for part in parts]
        shares = self.shares(schema)
        # Pure epsilon: scale = reach / epsilon.
        if self.currency == Currency.PURE:
            return [r / epsilon * (1 + 1e-12) for r, epsilon in zip(reach, shares, strict=True)]
        # zCDP: sigma = reach / sqrt(2 rho), with the L2 reach of the declared neighbours.
        sigmas = [r / math.sqrt(2 * rho) * (1 + 1e-12) for r, rho in zip(reach, shares, strict=True)]
        return [widened(sigma) for sigma in sigmas] if self.currency == Currency.EXACT else sigmas

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """Return a tuple, a `Charge` (rho, epsilon) a block at `path` by schema, neighbours; one of `sampled` steps."""
        blocks = self.query.blocks(schema)
        if self.currency == Currency.SAMPLED:
            details = {"noise": self.price, "rate": self.rate}
            return (Charge(path, "total", 1.0, dict.fromkeys(PRICED, 1.0), details, self.currency),)
        scales = self.scales(schema, neighbours)
        return tuple(
            Charge(
                path,
                "total",
                share,
                {n: schema.row_weight.most * b.sensitivity(n) for n in PRICED},
                {"scale" if self.currency == Currency.PURE else "sigma": scale / GRID * b.clip},
                self.currency,
            )
            for share, b, scale in zip(self.shares(schema), blocks, scales, strict=True)
        )

    def wanted(self) -> Wanted:
        """Return a `Wanted`: the query's sum, over rows taken with probability `rate` each."""
        return Wanted(sums=[(self.query, self.rate)])

    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> tuple[NoisySum, ...]:
        """Return a tuple, a `NoisySum` a block, at a Setting: sums in `exact` plus noise of `entropy`; no `memory`."""
        sampler = laplace if self.currency == Currency.PURE else gaussian
        weight = at.schema.row_weight.each
        # int64 wraps around where a weighted sum or the tail of Laplace noise is longer: that is post-processing
        return self._parts(
            at,
            lambda i, scale: (
                wrapped(exact.sums[0][i]) * weight + sampler.sample(scale, exact.sums[0][i].shape, entropy)
            ),
        )

    def tv_error(self, at: Setting) -> float:
        """Return a float at a Setting: total variation of sampled and stated noise, over coordinates; 0 for Laplace."""
        if self.currency == Currency.PURE:
            return 0.0
        scales = self.scales(at.schema, at.neighbours)
        sizes = [block.size for block in self.query.blocks(at.schema)]
        return math.fsum(n * gaussian.tv_error(scale) for n, scale in zip(sizes, scales, strict=True))

    def simulate(
        self, at: Setting, path: StratumPath, rows: float, rng: Generator
    ) -> tuple[tuple[NoisySum, ...], Seen]:
        """Return (noisy sums at a Setting by `rng`, around 0, or `rows` for a count as a sum; a `Seen` at `path`)."""
        blocks = self.query.blocks(at.schema)
        middle = rows * GRID if self.query.each_row_adds_clip(at.schema) else 0.0
        made = self._parts(at, lambda i, scale: np.rint(middle + rng.normal(0, scale, blocks[i].size)).astype(np.int64))
        return made, Seen(path, "total", cells=sum(block.size for block in blocks))

    def _parts(self, at: Setting, units: Callable[[int, float], Ints]) -> tuple[NoisySum, ...]:
        """Return a tuple, a `NoisySum` a block, at a Setting; `units`(block, noise in units) gives its integers."""
        spread = math.sqrt(2) if self.currency == Currency.PURE else 1.0  # Laplace: from scale to deviation
        blocks, scales = self.query.blocks(at.schema), self.scales(at.schema, at.neighbours)
        grids = [block.clip / GRID for block in blocks]
        parts = [
            NoisySum(units(i, scale), grid, scale * grid * spread)
            for i, (scale, grid) in enumerate(zip(scales, grids, strict=True))
        ]
        read_only(part.units for part in parts)
        return tuple(parts)

    @classmethod
    def keep(cls, answer: Answer) -> Kept:
        """Return the `Kept` parts of `answer`, noisy sums: grid and sigma of each block as facts, its integer array."""
        return Kept([{"grid": part.grid, "sigma": part.sigma} for part in answer], [part.units for part in answer])

    @classmethod
    def recall(cls, kept: Kept) -> tuple[NoisySum, ...]:
        """Return a tuple of noisy sums, with read-only arrays, from the `Kept` parts that `keep` made."""
        read_only(kept.arrays)
        return tuple(
            NoisySum(units, fact["grid"], fact["sigma"]) for fact, units in zip(kept.facts, kept.arrays, strict=True)
        )

    def replayed(self) -> Any:
        """Return a tuple for the journal key: the query's replayed part, price, currency, weights and rate."""
        return self.query.replayed(), self.price, self.currency, self.weights, self.rate

    def records(self, schema: Schema, answer: Answer) -> Sequence[tuple[float, float]]:
        """Return [(noisy count, sigma)] if the answer's sum counts records of `schema`, all rows; else nothing."""
        if self.rate != 1 or not self.query.counts_records(schema):
            return ()
        clip = self.query.blocks(schema)[0].clip
        return [(float(answer[0].values[0]) / clip, answer[0].sigma / clip)]

    def released(self, schema: Schema, answer: Answer) -> Sequence[PublishedSum]:
        """Return a list by `schema`, a `PublishedSum` a block of the answer; () if `sampled`: steps of unknown rows."""
        if self.currency == Currency.SAMPLED:
            return ()
        noise, read = ("laplace" if self.currency == Currency.PURE else "gaussian"), columns_read(self.query)
        return [
            PublishedSum(read, part.units, part.sigma / part.grid, part.grid, summed(self.query, schema, i, noise))
            for i, part in enumerate(answer)
        ]

    def unverified(self) -> str:
        """Return the query's sentence if a row's vector is tested, not proven, to be that row's alone; else empty."""
        return self.query.unverified

    @classmethod
    def shape(cls, answer: Answer) -> Any:
        """Return a list, per block of the answer: (array shape, dtype as text, grid, sigma); no sum."""
        return [(part.units.shape, str(part.units.dtype), part.grid, part.sigma) for part in answer]

    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Return the Fraction that telling two `Exact` apart at a Setting costs by the answer's noise, over blocks."""
        blocks, weight = zip(here.sums[0], there.sums[0], answer, strict=True), at.schema.row_weight.each
        return sum((self._block_cost(at, weight * x, weight * y, part) for x, y, part in blocks), Fraction(0))

    def _block_cost(self, at: Setting, here: Ints, there: Ints, part: NoisySum) -> Fraction:
        noise = Fraction(part.sigma) / Fraction(part.grid)  # in the units that the sums are in
        if self.currency == Currency.PURE:
            steps = sum(abs(int(a) - int(b)) for a, b in zip(here, there, strict=True))
            return Fraction(steps) * Fraction(math.sqrt(2)) / noise
        if self.currency == Currency.SAMPLED:  # one step, as long as a row keeps to the clip; exchanged, to two
            clips = 1 if at.neighbours == Neighbours.ADD_REMOVE else 4
            return Fraction(squared(here, there)) * Fraction(self.price) ** 2 / noise**2 / clips
        noise = Fraction(narrowed(float(noise))) if self.currency == Currency.EXACT else noise
        return Fraction(squared(here, there)) / (2 * noise**2)

    def standard_noise(self, at: Setting, exact: Exact, answer: Answer) -> list[NDArray[np.float64]]:
        """Return a list, a float array a block: (answer - `exact`) at a Setting as a standard normal; [] for samples.

        Laplace noise is mapped to the normal number of equal tail probability, so that its squares have one law too.
        """
        if self.rate != 1:
            return []
        found = [
            (part.units - at.schema.row_weight.each * truth).astype(np.float64) * part.grid / part.sigma
            for part, truth in zip(answer, exact.sums[0], strict=True)
        ]
        if self.currency != Currency.PURE:
            return found
        from scipy.stats import norm

        return [np.sign(x) * norm.isf(np.exp(-math.sqrt(2) * np.abs(x)) / 2) for x in found]


def wrapped(sums: NDArray[Any]) -> Ints:
    """Return the sums as 64-bit integers, modulo 2^64 where they are Python integers of any size."""
    if sums.dtype != object:
        return sums
    return np.array([int(x) % 2**64 for x in sums], np.uint64).view(np.int64)


def total(
    query: Query,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    noise: float | None = None,
    rate: float = 1.0,
    weights: Sequence[float] | None = None,
) -> Program[tuple[NoisySum, ...]]:
    """Ask a query by `yield from`: a tuple, a `NoisySum` a block by `weights`, for rho, epsilon or noise and `rate`."""
    prices = {Currency.ZCDP: rho, Currency.PURE: epsilon, Currency.SAMPLED: noise}
    given = [(currency, price) for currency, price in prices.items() if price is not None]
    if len(given) != 1:
        raise MechanismError("total: give one of rho, epsilon and noise.")
    (currency, price), parts = given[0], None if weights is None else tuple(map(float, weights))
    answer = yield Total(query, float(price), currency, parts, rate)
    return cast("tuple[NoisySum, ...]", answer)
