"""A kind of question that the package does not have: the count of a clique's largest cell, with noise.

The whole of it is in this file; a line in `stratsynth.driver.handlers` (in tests, `answered_by`) makes it known.

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
from stratsynth.questions.base import check_clique, check_positive
from stratsynth.questions.counts import check_cells
from stratsynth.questions.handler import Handler, Kept, Seen, Wanted


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


def largest(clique, *, rho) -> Program[Maximum]:
    """Ask for it: `answer = yield from largest(("SEX", "AGE"), rho=...)`."""
    answer = yield Largest(tuple(clique), float(rho))
    return cast("Maximum", answer)


class LargestHandler(Handler[Largest]):
    """The exact maximum plus discrete Gaussian noise."""

    kind = Largest
    reads = frozenset({"tables"})

    def wanted(self, question):
        return Wanted(cliques=[question.clique])

    def answer(self, question, at, exact, entropy, memory):
        sigma = question.sigma(at.schema)
        return Maximum(largest_of(exact) + int(gaussian.sample(sigma, (1,), entropy)[0]), sigma)

    def tv_error(self, question, at):
        return gaussian.tv_error(question.sigma(at.schema))

    def simulate(self, question, at, path, rows, rng):
        sigma = question.sigma(at.schema)
        value = round(rows / at.schema.cells(question.clique) + rng.normal(0, sigma))
        return Maximum(value, sigma), Seen(path, "largest", cells=1)

    def keep(self, answer):
        return Kept([answer.value, answer.sigma])

    def recall(self, kept):
        return Maximum(*kept.facts)

    def shape(self, answer):
        return answer.sigma

    def cost(self, question, at, here, there, answer):
        return Fraction((largest_of(here) - largest_of(there)) ** 2) / (2 * Fraction(answer.sigma) ** 2)

    def standard_noise(self, question, at, exact, answer):
        return [np.array([(answer.value - largest_of(exact)) / answer.sigma])]


def largest_of(exact):
    """The largest cell of the one table that was read."""
    (table,) = exact.tables
    return int(table.max(initial=0))
