"""Every kind of question passes the contract, and a question whose price is wrong is caught."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest

from helpers.broken_kinds import planted
from helpers.contract import caught, violations
from helpers.toys import Grouped, Toy
from stratsynth import Stratified
from stratsynth.driver.rows import StoredRows
from stratsynth.questions import (
    Columns,
    Design,
    Distance,
    Gradients,
    Moments,
    Peak,
    Total,
    choose,
    counts,
    split,
    total,
)
from stratsynth.schema import Numeric
from stratsynth.strata import crossing
from stratsynth.testing import check_contract


@dataclass(frozen=True)
class Chooser(Toy):
    """Measures one-ways, chooses the pair that is farthest from their product, measures it."""

    norm: str = "l1"
    name: ClassVar[str] = "chooser"

    def steps(self, public, allot, rng):
        schema = public.schema
        ones = yield from counts(schema.oneways, rho=allot.rho / 3)
        flat = {t.clique[0]: np.maximum(t.values, 0) / max(1, t.values.clip(0).sum()) for t in ones}
        pairs = list(combinations(schema.names, 2)) or [(n,) for n in schema.names]
        scores = []
        for i, pair in enumerate(pairs):
            table = 50 * flat[pair[0]]
            for column in pair[1:]:
                table = np.multiply.outer(table, flat[column])
            scores.append(Distance(pair, table, weight=1 + 0.1 * i, offset=3.5, norm=self.norm))
        chosen = yield from choose(scores, rho=allot.rho / 3)
        (table,) = yield from counts([pairs[chosen]], rho=allot.rho / 3)
        return [chosen, table.values]


@dataclass(frozen=True)
class Summer(Toy):
    """Sums of all kinds over the first numeric column and a design of the others."""

    name: ClassVar[str] = "summer"

    def steps(self, public, allot, rng):
        schema = public.schema
        numeric = [n for n, c in schema.columns.items() if isinstance(c, Numeric)]
        others = tuple(n for n in schema.names if n not in numeric[:1])
        if not numeric or not others:
            return (yield from counts(schema.oneways, rho=allot.rho))[0].values
        design, size = Design(others), len(Design(others).names(schema))
        rho = allot.rho / 4
        (middle,) = yield from total(Columns(numeric[:1], (20.0,), (7.0,), clip=1.5), rho=rho)
        products = yield from total(Moments(design, numeric[0], clip=1.2, bound=0.7), rho=rho, weights=(3, 1))
        theta = np.linspace(-1, 1, size) + middle.values[0] / 1000
        (slope,) = yield from total(Gradients(design, numeric[0], "linear", theta[None], clip=0.8), rho=rho)
        peaks = [
            Peak(Columns(numeric[:1], (c,), (7.0,), clip=1.5), np.array([[1.0], [-1.0]]), np.zeros(2), sign=-1)
            for c in (10.0, 20.0, 30.0)
        ]
        chosen = yield from choose(peaks, rho=rho)
        return [middle.units, products[0].units, products[1].units, slope.units, chosen]


def vanilla(mechanism):
    return lambda world, rows: mechanism


@dataclass(frozen=True)
class InStrata(Grouped):
    """Any mechanism in each stratum, its results side by side."""

    inner: object
    by: tuple[str, ...]
    name: ClassVar[str] = "in_strata"

    def steps(self, public, allot, rng):
        strata = crossing(public.schema, self.by)
        results = yield from split({s: self.inner.steps(public.within(s, 0.5), allot, rng) for s in strata})
        return list(results.values())


def stratified(mechanism):
    return lambda world, rows: InStrata(mechanism, world.by)


@pytest.mark.parametrize("arrange", [vanilla, stratified])
@pytest.mark.parametrize("mechanism", [Chooser(), Chooser("largest"), Summer()], ids=["l1", "largest", "sums"])
def test_questions_cost_what_they_say(arrange, mechanism):
    assert violations(arrange(mechanism)) == []


class Doubling(StoredRows):
    """Rows whose sums count everybody twice."""

    def sums(self, asked, entropy):
        return [[2 * block for block in blocks] for blocks in super().sums(asked, entropy)]


def test_a_sum_that_moves_too_far_is_caught():
    def load(schema, source):
        from stratsynth.data.load import load_rows

        rows = load_rows(schema, source)
        rows.__class__ = Doubling
        return rows

    assert "sensitivity" in caught(vanilla(Summer()), load=load)


class Quieter:
    """Adds half of the noise that was charged for a sum."""

    kind = Total

    def answer(self, proper, *given):
        return proper(replace(self, price=self.price * 4), *given)


def test_too_little_noise_in_a_sum_shows_in_its_sigma():
    """The recorded sigma is the one that was drawn, so the charge no longer covers it."""
    with planted(Quieter):
        assert "sensitivity" in caught(vanilla(Summer()))


def test_a_stratified_chooser_is_no_table_model():
    """It has no model that strata could be combined into."""
    found = check_contract(lambda world, rows: Stratified(Chooser(), world.by, world.weights), tables=1)
    assert [f.kind for f in found] == ["failure"]
    assert "list is no model" in found[0].detail
