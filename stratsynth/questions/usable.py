"""`Usable`: noisy numbers of records that a fit counts, and of values that the schema does not know, by column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from stratsynth.accounting.budget import IN_RHO, OPENED_IN_RHO, PRICED, Currency
from stratsynth.accounting.charges import FIRST, Charge
from stratsynth.errors import MechanismError
from stratsynth.noise import Entropy, gaussian, laplace
from stratsynth.questions.admission import known
from stratsynth.questions.base import Answer, Kept, Program, Question, Seen, Setting, check_positive, read_only, squared
from stratsynth.questions.counts import Counts, NoisyTable
from stratsynth.questions.reading import OUTSIDE, Exact, Ints, Wanted
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Neighbours
    from stratsynth.schema import Schema

WIDER = 25.0
"""Variance, in squared records, of noise beside the priced one: `accounting.sampled`, `accounting.exact` need it."""


@known
@dataclass(frozen=True)
class Usable(Question):
    """Numbers of records that a fit counts rather than leaves out, and of each column's values outside the schema.

    A value is outside if the schema has no level and no bin for it, or takes it for missing. Records count their
    weight, at most w. One record more or fewer, or exchanged, moves each of the 1 + columns numbers by at most w: the
    L2 sensitivity is w sqrt(1 + columns), the L1 sensitivity w (1 + columns). The answer is a `NoisyTable` of OUTSIDE.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"tables"})
    dearest: ClassVar[Mapping[Currency, int]] = {**Question.dearest, **dict.fromkeys((*IN_RHO, Currency.PURE), 1)}
    """Price factors: an exchanged row moves the numbers by no more than one row more or fewer."""
    price: float
    """rho in zcdp, exact and sampled, pure epsilon in pure and claimed."""
    currency: Currency = Currency.ZCDP
    """Currency of the fit."""

    @property
    def gaussian(self) -> bool:
        """True for discrete Gaussian noise, which costs rho; False for discrete Laplace noise."""
        return self.currency in OPENED_IN_RHO

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: price not positive or too small for noise in `schema`, unknown currency."""
        check_positive("usable: price", self.price)
        if type(self.currency) is not Currency or self.scale(schema) > laplace.WIDEST:
            raise MechanismError("usable: its price is in no currency, or too small to be paid in noise.")

    def sensitivity(self, schema: Schema) -> float:
        """Return a float: the most that a record of `schema` moves all numbers, in the noise's norm, rounded up."""
        weight, numbers = schema.row_weight.most // schema.row_weight.each, 1 + len(schema.names)
        return weight * (math.sqrt(numbers) * (1 + 1e-15) if self.gaussian else float(numbers))

    def scale(self, schema: Schema) -> float:
        """Return a float: sigma of the Gaussian noise in this schema, or the scale of the Laplace noise, rounded up."""
        moved = self.sensitivity(schema)
        if not self.gaussian:
            return moved / self.price * (1 + 1e-15)
        variance = moved**2 / (2 * self.price)
        return math.sqrt(max(variance, WIDER) + WIDER) * (1 + 1e-15)

    def deviation(self, schema: Schema) -> float:
        """Return a float: the standard deviation of the noise of each number in this schema, in records."""
        return self.scale(schema) * (1 if self.gaussian else math.sqrt(2))

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """Return (`Charge`,) at `path` by `schema`, any `neighbours`; rho in the details beside sampled steps."""
        details = {"sigma" if self.gaussian else "scale": self.scale(schema), "columns": len(schema.names)}
        beside = {Currency.SAMPLED: {"rho": self.price}, Currency.CLAIMED: {"delta": 0.0}}.get(self.currency, {})
        amount = 0.0 if self.currency == Currency.SAMPLED else self.price
        moved = dict.fromkeys(PRICED, self.sensitivity(schema))
        return (Charge(path, FIRST, amount, moved, {**details, **beside}, self.currency),)

    def wanted(self) -> Wanted:
        """Return a `Wanted`, with the exact numbers as the only read."""
        return Wanted(cliques=(OUTSIDE,))

    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> NoisyTable:
        """Return a `NoisyTable` at a Setting: `exact` numbers + integer noise by `entropy`, its sigma; no `memory`."""
        (numbers,), sampler = exact.tables, gaussian if self.gaussian else laplace
        return self.noisy(at.schema, numbers + sampler.sample(self.scale(at.schema), numbers.shape, entropy))

    def noisy(self, schema: Schema, values: Ints) -> NoisyTable:
        """Return the `NoisyTable` of an int array `values`, which hold the noise, with sigma in records of `schema`."""
        read_only([values])
        return NoisyTable(OUTSIDE, values, self.deviation(schema))

    def tv_error(self, at: Setting) -> float:
        """Return a float at a Setting: total variation of sampled and stated Gaussian noise; 0 for Laplace."""
        return (1 + len(at.schema.names)) * gaussian.tv_error(self.scale(at.schema)) if self.gaussian else 0.0

    def simulate(self, at: Setting, path: StratumPath, rows: float, rng: Generator) -> tuple[NoisyTable, Seen]:
        """Return (`NoisyTable` by `rng` at a Setting: `rows` usable records, none outside; its `Seen` at `path`)."""
        numbers = 1 + len(at.schema.names)
        noisy = rng.normal(0, self.deviation(at.schema), numbers)
        noisy[0] += rows
        return self.noisy(at.schema, np.rint(noisy).astype(np.int64)), Seen(path, FIRST, cells=numbers)

    @classmethod
    def keep(cls, answer: Answer) -> Kept:
        """Return the `Kept` parts of the answer for the journal, in the form of a table's: sigma, integer array."""
        return Counts.keep([answer])

    @classmethod
    def recall(cls, kept: Kept) -> NoisyTable:
        """Return the `NoisyTable` of numbers, read-only, from the `Kept` parts that `keep` made."""
        return Counts.recall(kept)[0]

    def records(self, schema: Schema, answer: Answer) -> list[tuple[float, float]]:
        """Return [(noisy number of usable records, its noise's sigma)] of `answer`, for any `schema`."""
        return [(float(answer.values[0]), answer.sigma)]

    @classmethod
    def shape(cls, answer: Answer) -> Any:
        """Return a list of one (columns, array shape, dtype as text, sigma) of the answer; no number."""
        return Counts.shape([answer])

    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Return the Fraction that telling two `Exact` apart at a Setting costs, any answer: L2^2 / 2 s^2 or L1 / s."""
        one, other = here.tables[0], there.tables[0]
        scale = Fraction(self.scale(at.schema))
        if self.gaussian:
            return Fraction(squared(one, other)) / (2 * scale**2)
        return Fraction(int(np.abs(one - other).sum())) / scale


def usable(price: float, currency: Currency) -> Program[NoisyTable]:
    """Ask for a `NoisyTable`: usable records, then values outside: `found = yield from usable(price, currency)`."""
    answer = yield Usable(float(price), currency)
    return cast("NoisyTable", answer)
