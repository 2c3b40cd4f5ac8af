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
from stratsynth.questions.sums.base import Query, check_query
from stratsynth.questions.sums.clipping import GRID
from stratsynth.questions.sums.published import PublishedSum, columns_read, summed
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.schema import Schema

WIDEST = 2.0**50
"""The widest noise that samplers draw, in units of the grid."""


@dataclass(frozen=True)
class NoisySum:
    """One released block: exact integer sums plus integer noise, in units of the grid."""

    units: NDArray[np.int64]
    """Read-only."""
    grid: float
    """The worth of one unit."""
    sigma: float
    """The standard deviation of the noise in a coordinate, in the sum's own unit."""

    @property
    def values(self) -> NDArray[np.float64]:
        """The sum as numbers."""
        return self.units.astype("float64") * self.grid


@known
@dataclass(frozen=True)
class Total(Question):
    """The noisy sum of a query's vectors.

    In `zcdp`, `price` is the rho of the whole call, shared among the blocks by `weights`; noise is discrete
    Gaussian. In `pure`, it is epsilon, and noise is discrete Laplace with an exact tail. In `sampled`, it is
    the noise multiplier that the fit has reserved, and each row takes part with probability `rate`.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"sums"})
    query: Query
    price: float
    currency: Currency = Currency.ZCDP
    weights: tuple[float, ...] | None = None
    """One positive number a block; equal when not given."""
    rate: float = 1.0
    """The probability with which each row takes part, by a coin of its own."""

    def check(self, schema: Schema) -> None:
        """A sound query, a positive price, and a rate that fits the currency."""
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
        """The part of the price that each block gets, for zcdp and pure."""
        return shared(self.price, self.weights or (1.0,) * len(self.query.blocks(schema)))

    def scales(self, schema: Schema, neighbours: Neighbours) -> list[float]:
        """The noise of each block, in units of its grid, rounded up: sigma, or Laplace's scale for pure.

        With several blocks, `sampled` gives each the multiplier z / sqrt(share), the shares of `weights` being
        1 together: a row that fills all of them then counts as one query of multiplier z, since 1/z^2 adds up.
        """
        blocks, weight = self.query.blocks(schema), schema.row_weight.most
        reach = [GRID * weight * b.reach(neighbours) for b in blocks]
        if self.currency == Currency.SAMPLED:
            parts = shared(1.0, self.weights or (1.0,) * len(blocks))
            return [GRID * weight * self.price / math.sqrt(part) * (1 + 1e-12) for part in parts]
        shares = self.shares(schema)
        if self.currency == Currency.PURE:
            return [r / epsilon * (1 + 1e-12) for r, epsilon in zip(reach, shares, strict=True)]
        return [r / math.sqrt(2 * rho) * (1 + 1e-12) for r, rho in zip(reach, shares, strict=True)]

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """One charge a block; in `sampled`, one step."""
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
        """The one sum."""
        return Wanted(sums=[(self.query, self.rate)])

    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> tuple[NoisySum, ...]:
        """Integers plus integers, a block at a time."""
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
        """Every coordinate's; Laplace noise is exact."""
        if self.currency == Currency.PURE:
            return 0.0
        scales = self.scales(at.schema, at.neighbours)
        sizes = [block.size for block in self.query.blocks(at.schema)]
        return math.fsum(n * gaussian.tv_error(scale) for n, scale in zip(sizes, scales, strict=True))

    def simulate(
        self, at: Setting, path: StratumPath, rows: float, rng: Generator
    ) -> tuple[tuple[NoisySum, ...], Seen]:
        """Sums of noise around 0, or around the number of rows where each contributes exactly the clip."""
        blocks = self.query.blocks(at.schema)
        middle = rows * GRID if self.query.each_row_adds_clip(at.schema) else 0.0
        made = self._parts(at, lambda i, scale: np.rint(middle + rng.normal(0, scale, blocks[i].size)).astype(np.int64))
        return made, Seen(path, "total", cells=sum(block.size for block in blocks))

    def _parts(self, at: Setting, units: Callable[[int, float], Ints]) -> tuple[NoisySum, ...]:
        """The noisy sums, from their values in units of the grid by block and scale of noise."""
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
        """Grid and noise as facts, one array a block."""
        return Kept([{"grid": part.grid, "sigma": part.sigma} for part in answer], [part.units for part in answer])

    @classmethod
    def recall(cls, kept: Kept) -> tuple[NoisySum, ...]:
        """The sums."""
        read_only(kept.arrays)
        return tuple(
            NoisySum(units, fact["grid"], fact["sigma"]) for fact, units in zip(kept.facts, kept.arrays, strict=True)
        )

    def replayed(self) -> Any:
        """The part of the query that a kept answer needs, and the price."""
        return self.query.replayed(), self.price, self.currency, self.weights, self.rate

    def records(self, schema: Schema, answer: Answer) -> Sequence[tuple[float, float]]:
        """A count that is written as a sum, over the clip that each record adds."""
        if self.rate != 1 or not self.query.counts_records(schema):
            return ()
        clip = self.query.blocks(schema)[0].clip
        return [(float(answer[0].values[0]) / clip, answer[0].sigma / clip)]

    def released(self, schema: Schema, answer: Answer) -> Sequence[PublishedSum]:
        """Each block; of a step of a fit that counts steps none: they are many, and sums of a sample nobody knows."""
        if self.currency == Currency.SAMPLED:
            return ()
        noise, read = ("laplace" if self.currency == Currency.PURE else "gaussian"), columns_read(self.query)
        return [
            PublishedSum(read, part.units, part.sigma / part.grid, part.grid, summed(self.query, schema, i, noise))
            for i, part in enumerate(answer)
        ]

    def unverified(self) -> str:
        """Row-locality that is tested, not proven."""
        return self.query.unverified

    @classmethod
    def shape(cls, answer: Answer) -> Any:
        """Shapes, types and noise."""
        return [(part.units.shape, str(part.units.dtype), part.grid, part.sigma) for part in answer]

    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Each block's difference at the noise it got."""
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
        return Fraction(squared(here, there)) / (2 * noise**2)

    def standard_noise(self, at: Setting, exact: Exact, answer: Answer) -> list[NDArray[np.float64]]:
        """Of every coordinate, in standard deviations of a normal law; the exact sum of a sample is known to nobody.

        Laplace noise is given as the normal number of the same probability, so that its squares have one law too.
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
    """Integers of any size modulo 2^64, as sums in 64 bits are."""
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
    """Ask for a noisy sum, one part a block, for a rho, for a pure epsilon, or for a step of a sampled fit."""
    prices = {Currency.ZCDP: rho, Currency.PURE: epsilon, Currency.SAMPLED: noise}
    given = [(currency, price) for currency, price in prices.items() if price is not None]
    if len(given) != 1:
        raise MechanismError("total: give one of rho, epsilon and noise.")
    (currency, price), parts = given[0], None if weights is None else tuple(map(float, weights))
    answer = yield Total(query, float(price), currency, parts, rate)
    return cast("tuple[NoisySum, ...]", answer)
