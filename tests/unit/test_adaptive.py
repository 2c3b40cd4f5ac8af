"""A mechanism whose questions depend on answers has a move or an exchange priced for every course, not for one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import stratsynth as ss
from helpers import small
from helpers.contract import violations
from helpers.toys import Toy
from stratsynth.accounting.zcdp import epsilon_of, rho_of
from stratsynth.adapters import MST
from stratsynth.adapters.independent import Product
from stratsynth.questions import Choose, Counts, Distance, choose, counts
from stratsynth.release.page.summary import summary
from stratsynth.testing import check_contract

RHO = rho_of(1, 1e-9 - 1e-15)


@dataclass(frozen=True)
class Undecided(Toy):
    """Half on tables; the rest on tables too, or on a choice, as the noise has it."""

    name: ClassVar[str] = "undecided"
    needs: ClassVar = frozenset({Counts, Choose})
    adaptive: ClassVar[bool] = True
    forced: bool | None = None

    def steps(self, public, allot, rng):
        names = public.schema.oneways
        first = yield from counts(names, rho=allot.rho / 2)
        choice = first[0].values.flat[0] % 2 == 0 if self.forced is None else self.forced
        if choice:
            shape = first[0].values.shape
            yield from choose([Distance(first[0].clique, np.zeros(shape))] * 2, rho=allot.rho / 2)
        else:
            yield from counts(names, rho=allot.rho / 2)
        return Product.of(public.schema, first)


class Silent(Undecided):
    """A mechanism of the kind above that does not declare it."""

    name: ClassVar[str] = "silent"
    adaptive: ClassVar[bool] = False


class Tables(Undecided):
    """Says that it asks for tables alone."""

    name: ClassVar[str] = "tables"
    needs: ClassVar = frozenset({Counts})


def priced(how, neighbours="add-remove"):
    return ss.fit(how, small.table(), ss.Budget(1, 1e-9, neighbours)).certificate["prices"]


def near(times):
    return pytest.approx(epsilon_of(times * RHO, 1e-9 - 1e-15), rel=1e-9)


def test_the_course_taken_makes_no_difference():
    assert (
        priced(Undecided(True))
        == priced(Undecided(False))
        == {"add-remove": near(1), "move": near(4), "replace-within-group": near(4), "replace": near(4)}
    )


def test_the_cheaper_course_alone_would_be_priced_too_low():
    """Fault: a course that happened to ask for tables only said 2 rho, where its neighbour asks a choice."""
    assert priced(Silent(False))["replace"] == near(2)
    assert priced(Silent(True))["replace"] == near(1 + 2)
    assert priced(Undecided(False))["replace"] > priced(Silent(True))["replace"]


def test_one_that_can_ask_for_tables_only_costs_twice():
    assert priced(Tables(False))["replace"] == near(2)


def test_in_strata_a_move_leaves_one_and_enters_another():
    """Neither may cost more than the allotment, whatever course it takes."""
    how = ss.Stratified(Undecided(), ["SEX"], small.even(small.SCHEMA, "SEX"))
    assert how.adaptive
    assert priced(how) == {"add-remove": near(1), "move": near(2), "replace-within-group": near(4), "replace": near(4)}


def test_strata_in_strata_are_priced_as_dear_as_can_be():
    inner = ss.Stratified(Undecided(), ["GROUP"], small.even(small.SCHEMA, "GROUP"))
    assert priced(ss.Stratified(inner, ["SEX"], small.even(small.SCHEMA, "SEX")))["move"] == near(4)


def test_where_an_exchange_is_what_was_declared_no_step_costs_more():
    assert list(priced(Undecided(), "replace").values()) == pytest.approx([1] * 4, rel=1e-9)


def test_mst_asks_in_a_fixed_order_and_keeps_its_price():
    assert not MST().adaptive
    assert priced(MST())["replace"] == pytest.approx(1.510844483231594, rel=1e-6)
    assert priced(MST())["replace-within-group"] == pytest.approx(1.510844483231594, rel=1e-6)


def test_the_certificate_says_so_and_the_plan_too():
    release = ss.fit(Undecided(), small.table(), ss.Budget(1, 1e-9))
    assert release.certificate["mechanism"]["adaptive"] is True
    assert "the worst case" in " ".join(summary(release.certificate).split())
    foreseen = ss.plan(Undecided(), small.SCHEMA, ss.Budget(1, 1e-9), declared_size=100)
    assert foreseen.prices == release.certificate["prices"]
    assert foreseen.adaptive
    assert "adaptive" not in ss.fit(MST(), small.table(), ss.Budget(1, 1e-9)).certificate["mechanism"]


def test_a_mechanism_that_keeps_quiet_about_it_is_found_out():
    assert violations(lambda world, rows: Undecided()) == []
    found = check_contract(lambda world, rows: Silent(), tables=12, neighbours=4, orders=1)
    assert {finding.kind for finding in found} == {"adaptive"}
