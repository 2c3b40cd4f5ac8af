"""Driver for programs of tables and choices: answers by hand, exactly or with noise, and a list of the questions."""

import numpy as np
import pandas as pd

from helpers.small import BUDGET
from stratsynth import Categorical, Neighbours, Schema
from stratsynth.accounting.budget import Allotment, Currency
from stratsynth.mechanisms import Public
from stratsynth.questions import Choose, Counts, Distance, NoisyTable, Work
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact

LEVELS = {"a": 3, "b": 2, "c": 2, "d": 4, "e": 2}


def rows_of(n, seed=0):
    """c is the exclusive or of b and e, seen in no pair; d goes with a; the rest is even."""
    rng = np.random.default_rng(seed)
    rows = {"a": rng.integers(3, size=n), "b": rng.integers(2, size=n), "e": rng.integers(2, size=n)}
    rows["c"] = np.where(rng.random(n) < 0.9, rows["b"] ^ rows["e"], rng.integers(2, size=n))
    rows["d"] = np.where(rng.random(n) < 0.7, rows["a"], rng.integers(4, size=n))
    return {name: rows[name] for name in LEVELS}


def schema_of(levels, rules=()):
    return Schema({n: Categorical(levels=tuple(map(str, range(k)))) for n, k in levels.items()}, rules=rules)


def frame_of(rows):
    return pd.DataFrame({name: np.asarray(codes).astype(str) for name, codes in rows.items()})


def allotted(rho):
    return Allotment(Currency.ZCDP, rho, BUDGET)


class ByHand:
    """Answers a program by hand, exactly unless told otherwise, and remembers what was asked."""

    def __init__(self, schema, rows, *, neighbours=Neighbours.ADD_REMOVE, rng=None):
        self.schema, self.rows, self.neighbours, self.rng = schema, rows, neighbours, rng
        self.asked = []

    def table(self, clique):
        exact = np.zeros(self.schema.shape(clique), dtype=np.int64)
        np.add.at(exact, tuple(np.asarray(self.rows[c], dtype=np.int64) for c in clique), 1)
        return exact

    def answer(self, question):
        self.asked.append(question)
        question.check(self.schema)
        if isinstance(question, Counts):
            sigmas = question.sigmas(self.schema, self.neighbours)
            return tuple(self.noisy(c, sigma) for c, sigma in zip(question.cliques, sigmas, strict=True))
        if isinstance(question, Choose):
            if self.rng is not None:
                return int(self.rng.integers(len(question.scores)))
            exact, at = Exact([self.table(c) for c in question.wanted().cliques]), Setting(self.schema, self.neighbours)
            return int(np.argmax(Distance.units(question.scores, exact, at, {})[0]))
        assert isinstance(question, Work)
        return question.solver.solve([question.problem])[0]

    def noisy(self, clique, sigma):
        noise = 0 if self.rng is None else np.rint(self.rng.normal(0, sigma, self.schema.shape(clique))).astype(int)
        return NoisyTable(clique, self.table(clique) + noise, sigma)

    def run(self, mechanism, *, rho=1.0, size=None, way="steps"):
        public = Public(self.schema, size, self.neighbours)
        program = getattr(mechanism, way)(public, allotted(rho), np.random.default_rng(0))
        answer = None
        try:
            while True:
                answer = self.answer(program.send(answer))
        except StopIteration as stop:
            return stop.value

    def of(self, kind):
        return [question for question in self.asked if isinstance(question, kind)]


def paid(driver):
    """Return kind and price of the questions, in order."""
    return [(type(q).__name__, q.rho) for q in driver.asked if not isinstance(q, Work)]
