"""Mechanisms and drivers that are broken on purpose. Each must be caught, and for what is wrong with it."""

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from helpers.broken_kinds import planted
from helpers.contract import caught
from helpers.toys import Toy, by_hand
from stratsynth import Groups, Stratified, Weights
from stratsynth.adapters import Independent
from stratsynth.adapters.independent import Product
from stratsynth.data.load import load_rows
from stratsynth.driver.private import PrivateAnswers
from stratsynth.models import combine
from stratsynth.questions import Counts, NoisyTable, Split, counts, split
from stratsynth.schema import Categorical
from stratsynth.strata import Stratum, crossing
from stratsynth.testing import check_contract
from stratsynth.testing.worlds import worlds
from stratsynth.weights import Resolved


@dataclass(frozen=True, eq=False)
class Cheat(Toy):
    """An Independent that has been slipped the private rows."""

    rows: pd.DataFrame
    name = "cheat"
    needs = frozenset({Counts})


class DomainFromData(Cheat):
    """Reads the levels that occur from the rows, as many libraries do."""

    def steps(self, public, allot, rng):
        seen = {
            name: replace(column, levels=tuple(x for x in column.levels if (self.rows[name] == x).any()) or ("?",))
            if isinstance(column, Categorical) and column.outside is None and column.not_applicable is None
            else column
            for name, column in public.schema.columns.items()
        }
        schema = replace(public.schema, columns=seen)
        tables = yield from counts(public.schema.oneways, rho=allot.rho)
        kept = [replace(t, values=t.values.ravel()[: schema.size(t.clique[0])]) for t in tables]
        return Product.of(schema, kept)


class GroupsFromData(Cheat):
    """Fits only the groups that occur, of those that it declares."""

    needs = frozenset({Counts, Split})

    def strata(self, public, budget):
        return by_hand(public, budget, public.schema.names[:1])

    def steps(self, public, allot, rng):
        column = public.schema.names[0]
        strata = [s for s in crossing(public.schema, [column]) if (self.rows[column] == s.label).any()]
        strata = strata or list(crossing(public.schema, [column]))
        parts = yield from split({s: Independent().steps(public.within(s, 0.5), allot, rng) for s in strata})
        return combine(public.schema, parts, Resolved(dict.fromkeys(parts, 1 / len(parts))))


def weights_from_data(world, rows):
    strata = crossing(world.schema, world.by)
    sizes = [
        1 + int((rows[list(world.by)].astype(object) == list(s.to_dict().values())).all(axis=1).sum()) for s in strata
    ]
    shares = [{**s.to_dict(), "share": n / sum(sizes)} for s, n in zip(strata, sizes, strict=True)]
    return Stratified(Independent(), world.by, Weights.public(pd.DataFrame(shares), citation="trust me"))


def merged_from_data(world, rows):
    """Merges the first two levels where few rows have them."""
    column = world.by[0]
    levels = world.schema.levels(column)[:2]
    few = int(rows[column].isin(levels).sum()) < 60
    groups = Groups(merge={column: {"two": levels}}) if few else Groups()
    return Stratified(Independent(), world.by, world.weights, groups)


class SizeIsPublic(Cheat):
    """Takes the number of rows for granted."""

    def steps(self, public, allot, rng):
        tables = yield from counts(public.schema.oneways, rho=allot.rho)
        scaled = [replace(t, values=t.values + len(self.rows)) for t in tables]
        return Product.of(public.schema, scaled)


class SizeSetsThePrice(Cheat):
    """Spends less on small tables."""

    def steps(self, public, allot, rng):
        tables = yield from counts(public.schema.oneways, rho=allot.rho * (1 if len(self.rows) > 20 else 0.5))
        return Product.of(public.schema, tables)


class SmallTableSkipped(Cheat):
    """Does not bother to ask about few rows."""

    def steps(self, public, allot, rng):
        asked = public.schema.oneways if len(self.rows) > 30 else public.schema.oneways[:1]
        tables = yield from counts(asked, rho=allot.rho)
        missing = [
            NoisyTable(c, np.ones(public.schema.shape(c), np.int64), 1.0) for c in public.schema.oneways[len(asked) :]
        ]
        return Product.of(public.schema, [*tables, *missing])


class CrashesWhenEmpty(Cheat):
    """Divides by the number of rows."""

    def steps(self, public, allot, rng):
        tables = yield from counts(public.schema.oneways, rho=allot.rho)
        _ = 1 / len(self.rows)
        return Product.of(public.schema, tables)


class Chatty(Cheat):
    """Logs how many rows there are."""

    def steps(self, public, allot, rng):
        logging.getLogger("cheat").warning("fitting %d rows", len(self.rows))
        tables = yield from counts(public.schema.oneways, rho=allot.rho)
        return Product.of(public.schema, tables)


class GlobalRandomness(Cheat):
    """Draws from numpy's global state."""

    def steps(self, public, allot, rng):
        np.random.random()  # noqa: NPY002
        tables = yield from counts(public.schema.oneways, rho=allot.rho)
        return Product.of(public.schema, tables)


class WritesInTheTable(Cheat):
    """Changes the caller's rows."""

    def steps(self, public, allot, rng):
        self.rows.loc[len(self.rows)] = [None] * self.rows.shape[1]
        tables = yield from counts(public.schema.oneways, rho=allot.rho)
        return Product.of(public.schema, tables)


class AsksNothing(Cheat):
    """Returns the exact counts."""

    def steps(self, public, allot, rng):
        yield from ()
        exact = [
            NoisyTable(c, np.array([(self.rows[c[0]] == x).sum() for x in public.schema.levels(c[0])]), 1.0)
            for c in public.schema.oneways
        ]
        return Product.of(public.schema, exact)


MECHANISMS: dict[Any, set[str]] = {
    DomainFromData: {"result"},
    GroupsFromData: {"questions"},
    SizeIsPublic: {"result"},
    SizeSetsThePrice: {"questions"},
    SmallTableSkipped: {"questions"},
    CrashesWhenEmpty: {"failure"},
    Chatty: {"output"},
    GlobalRandomness: {"state"},
    WritesInTheTable: {"state"},
    AsksNothing: {"charges"},
}


@pytest.mark.parametrize("cheat", MECHANISMS, ids=lambda c: c.__name__)
def test_broken_mechanisms_are_caught(cheat):
    found = caught(lambda world, rows: cheat(rows))
    assert found >= MECHANISMS[cheat]


def test_merges_from_data_are_caught():
    assert "questions" in caught(merged_from_data)


def test_weights_from_data_are_caught():
    assert caught(weights_from_data) == {"result", "settings"}


class DrawsLessThanItCharges:
    """Divides the noise by the weight and records the undivided sigma."""

    kind = Counts

    def answer(self, proper, *given):
        tables = proper(replace(self, rho=self.rho * 4), *given)
        return tuple(replace(t, sigma=2 * t.sigma) for t in tables)


class SmallStratumSkipped:
    """Gives no table where there are few rows."""

    kind = Counts

    def answer(self, proper, at, exact, *given):
        return () if exact.tables[0].sum() < 5 else proper(self, at, exact, *given)


class CrashesOnAnEmptyStratum:
    """Says that a group is empty."""

    kind = Counts

    def answer(self, proper, at, exact, *given):
        if not exact.tables[0].any():
            raise ValueError("cannot fit an empty group")
        return proper(self, at, exact, *given)


class WarnsOfFewRows:
    """Warns about small groups from their exact size."""

    kind = Counts

    def answer(self, proper, at, exact, *given):
        if exact.tables[0].sum() < 5:
            logging.getLogger("driver").warning("small group")
        return proper(self, at, exact, *given)


class WrongWeightCharged(PrivateAnswers):
    """Adds noise for the weights as asked, and charges half of it."""

    def __call__(self, asked):
        charged = self._account.charge
        self._account.charge = lambda moment, name, charges, distance: charged(
            moment, name, [replace(c, amount=c.amount / 2) for c in charges], distance
        )
        try:
            return super().__call__(asked)
        finally:
            self._account.charge = charged


BROKEN_KINDS = {
    DrawsLessThanItCharges: "noise",
    SmallStratumSkipped: "answers",
    CrashesOnAnEmptyStratum: "failure",
    WarnsOfFewRows: "output",
}


def stratified(world, rows):
    return Stratified(Independent(), world.by, world.weights)


@pytest.mark.parametrize("broken", BROKEN_KINDS, ids=lambda bug: bug.__name__)
def test_broken_kinds_of_questions_are_caught(broken):
    with planted(broken):
        assert BROKEN_KINDS[broken] in caught(stratified)


def test_a_driver_that_charges_less_is_caught():
    assert "sensitivity" in caught(stratified, driver=WrongWeightCharged, orders=0)


def test_the_same_checks_pass_the_real_driver():
    """At a user's depth and on the same tables every time: some bugs of the driver are seen here alone."""
    assert check_contract(stratified) == []


@dataclass
class Backend:
    """The real rows, with the tables changed on their way out."""

    rows: Any
    change: Any

    def counts(self, asked):
        return [[self.change(t) for t in tables] for tables in self.rows.counts(asked)]

    def sums(self, asked, entropy):
        return self.rows.sums(asked, entropy)


BACKENDS = {
    "normalised by n": lambda t: (1000 * t) // max(1, int(t.sum())),
    "counted twice": lambda t: 2 * t,
    "small cells merged": lambda t: np.where(t < 3, 0, t) + np.where(t < 3, t, 0).sum(),
    "rounded to tens": lambda t: 10 * np.round(t / 10).astype(np.int64),
}


@pytest.mark.parametrize("change", BACKENDS)
def test_broken_counting_is_caught(change):
    def load(*arguments):
        return Backend(load_rows(*arguments), BACKENDS[change])

    assert "sensitivity" in caught(stratified, load=load, tables=8, orders=0)


def test_a_record_that_is_counted_in_two_strata_is_caught():
    """A backend whose strata are wider than what was asked counts every record in each of them."""

    class Widened(Backend):
        def counts(self, asked):
            return self.rows.counts([(tuple(map(self.widen, path)), cliques) for path, cliques in asked])

        def widen(self, stratum):
            column, _ = stratum.items[0]
            levels = dict(stratum.items) | {column: self.change(column)}
            return Stratum.of(levels)

    class Split(Independent):
        """Asks nothing of the columns of the strata, which have other levels once they are widened."""

        def steps(self, public, allot, rng):
            kept = replace(public, schema=public.schema.restrict(["AGE"]))
            return (yield from Independent.steps(self, kept, allot, rng))

    world = next(w for w in worlds() if w.by == ("GROUP",))

    def build(world, rows):
        return Stratified(Split(), world.by, world.weights)

    def load(*arguments):
        return Widened(load_rows(*arguments), world.schema.levels)

    kinds = caught(build, load=load, among=[world], tables=8, orders=0)
    assert "sensitivity" in kinds
