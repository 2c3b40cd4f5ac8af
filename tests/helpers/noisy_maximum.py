"""Kind of question from outside the package: the count of a clique's largest cell, with noise.

The whole of it is in this file, as it would be in `stratsynth/questions` with the decorator `known`, which takes
classes of that folder alone; in tests, `joined` makes it one of the closed set.

One row more or fewer changes one cell, so the largest moves by at most the row's weight. A row that is exchanged
takes its weight from one cell and adds it to another: the largest can lose no more than the one and gain no more than
the other, so it moves by at most one weight too. An exchange costs no more than a row more or fewer.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, cast

import numpy as np

from stratsynth.accounting.budget import PRICED, Currency
from stratsynth.accounting.charges import Charge
from stratsynth.noise import gaussian
from stratsynth.questions import Clique, Program, Question
from stratsynth.questions.base import Kept, Seen, check_clique, check_positive
from stratsynth.questions.counts import check_cells
from stratsynth.questions.reading import Wanted


@dataclass(frozen=True)
class Maximum:
    """The answer."""

    value: int
    """The largest count plus integer noise."""
    sigma: float
    """The parameter of the discrete Gaussian noise."""


@dataclass(frozen=True)
class Largest(Question):
    """The largest count of a clique's cells, for `rho`."""

    dearest: ClassVar[Mapping[Currency, int]] = {**Question.dearest, Currency.ZCDP: 1}
    reads: ClassVar[frozenset[str]] = frozenset({"tables"})
    clique: Clique
    rho: float

    def sigma(self, schema):
        """The noise that rho pays for, rounded up."""
        return schema.row_weight.most / math.sqrt(2 * self.rho) * (1 + 1e-15)

    def check(self, schema):
        check_clique("largest", self.clique, schema)
        check_positive("largest: rho", self.rho)
        check_cells("largest", [self.clique], schema)

    def charges(self, schema, path, neighbours):
        moved = dict.fromkeys(PRICED, float(schema.row_weight.most))
        return (Charge(path, "largest", self.rho, moved, {"sigma": self.sigma(schema)}),)

    def wanted(self):
        return Wanted(cliques=[self.clique])

    def answer(self, at, exact, entropy, memory):
        sigma = self.sigma(at.schema)
        return Maximum(largest_of(exact) + int(gaussian.sample(sigma, (1,), entropy)[0]), sigma)

    def tv_error(self, at):
        return gaussian.tv_error(self.sigma(at.schema))

    def simulate(self, at, path, rows, rng):
        sigma = self.sigma(at.schema)
        value = round(rows / at.schema.cells(self.clique) + rng.normal(0, sigma))
        return Maximum(value, sigma), Seen(path, "largest", cells=1)

    @classmethod
    def keep(cls, answer):
        return Kept([answer.value, answer.sigma])

    @classmethod
    def recall(cls, kept):
        return Maximum(*kept.facts)

    @classmethod
    def shape(cls, answer):
        return answer.sigma

    def cost(self, at, here, there, answer):
        return Fraction((largest_of(here) - largest_of(there)) ** 2) / (2 * Fraction(answer.sigma) ** 2)

    def standard_noise(self, at, exact, answer):
        return [np.array([(answer.value - largest_of(exact)) / answer.sigma])]


def largest(clique, *, rho) -> Program[Maximum]:
    """Ask for it: `answer = yield from largest(("SEX", "AGE"), rho=...)`."""
    answer = yield Largest(tuple(clique), float(rho))
    return cast("Maximum", answer)


def largest_of(exact):
    """The largest cell of the one table that was read."""
    (table,) = exact.tables
    return int(table.max(initial=0))
