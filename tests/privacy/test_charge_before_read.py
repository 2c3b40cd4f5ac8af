"""The order is the guarantee: refuse, charge, read, add noise; and never read again."""

import copy
import gc
import weakref

import pyarrow as pa
import pytest

import stratsynth.data.backends as loading
from helpers import small
from helpers.accounts import reserve, scaled
from helpers.ledgers import without_account
from stratsynth import Budget, fit
from stratsynth.accounting.process import ProcessLedger
from stratsynth.adapters import Independent
from stratsynth.data.backends import Memory
from stratsynth.data.sources import open_source
from stratsynth.data.table import PrivateTable
from stratsynth.errors import BudgetRefused, StratsynthError
from stratsynth.mechanisms import Public
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Counts, Split, counts
from stratsynth.strata import Stratum


class Spy:
    """A source that tells when it is read, and what had been reserved by then."""

    def __init__(self, ledger, error=None):
        self.source = open_source(small.people())
        self.ledger = ledger
        self.error = error
        self.reads = []

    def columns(self):
        return self.source.columns()

    def batches(self, columns):
        self.reads.append(releases(self.ledger))
        if self.error:
            raise self.error
        return self.source.batches(columns)


def releases(ledger):
    """Number of fits that had reserved before now: a small one more tells."""
    other = copy.deepcopy(ledger)
    other.cap_epsilon = None
    return reserve(other).releases - 1


def watched(error=None, cap=None):
    ledger = ProcessLedger(cap)
    spy = Spy(ledger, error)
    return spy, PrivateTable(Memory(spy, small.SCHEMA), small.SCHEMA, small.SIZE, ledger)


def test_opening_and_pricing_read_nothing():
    spy, table = watched()
    small.stratified().price(Public(table.schema, table.declared_size), small.BUDGET)
    assert spy.reads == []


def test_the_reservation_stands_before_the_rows_are_read():
    spy, table = watched()
    fit(small.stratified(), table, small.BUDGET)
    assert spy.reads == [1]


class Free(Counts):
    """A question that names its own price."""

    def charges(self, *arguments):
        return ()


class Loud(Counts):
    """A question that says how little noise it wants."""

    def sigmas(self, *arguments):
        return [0.01] * len(self.cliques)


@pytest.mark.parametrize("kind", [Free, Loud])
def test_the_questions_are_a_closed_set(kind):
    """Prices and noise are the package's own: a subclass of a question is no question."""

    class Cheat(Independent):
        def steps(self, public, allot, rng):
            yield kind((("SEX",),), allot.rho / 2)
            return (yield from Independent.steps(self, public, scaled(allot, 0.5), rng))

    spy, table = watched()
    with pytest.raises(StratsynthError):
        fit(Cheat(), table, small.BUDGET)
    assert spy.reads == []


def test_a_subclass_of_split_cannot_declare_overlapping_strata_disjoint():
    class Overlapping(Split):
        def check(self, schema):
            pass

    class Cheat(Independent):
        def steps(self, public, allot, rng):
            strata = [Stratum.of({"SEX": "1"}), Stratum.of({"GROUP": "a"})]
            yield Overlapping({s: Independent().steps(public.within(s, 0.5), allot, rng) for s in strata})

    spy, table = watched()
    with pytest.raises(StratsynthError):
        fit(Cheat(), table, small.BUDGET)
    assert spy.reads == []


class Twice(Independent):
    """Asks a second time when it has its first answers."""

    def steps(self, public, allot, rng):
        yield from counts(public.schema.oneways, rho=allot.rho / 2)
        return (yield from Independent.steps(self, public, scaled(allot, 0.5), rng))


def test_the_rows_are_read_once_however_often_a_mechanism_asks():
    spy, table = watched()
    release = fit(Twice(), table, small.BUDGET)
    assert len(release.certificate["charges"]) == 2
    assert spy.reads == [1]


def test_what_was_charged_before_a_refusal_stays_charged_and_the_fit_fails():
    class GreedyLater(Twice):
        def steps(self, public, allot, rng):
            return Twice.steps(self, public, scaled(allot, 1.5), rng)

        def rehearsal(self, public, allot, rng):
            return Twice.steps(self, public, allot, rng)

    spy, table = watched()
    with pytest.raises(BudgetRefused, match="before reading"):
        fit(GreedyLater(), table, small.BUDGET)
    assert spy.reads == [1]
    assert releases(spy.ledger) == 1


@pytest.mark.parametrize("error", [RuntimeError("secret"), OSError(5, "secret"), KeyboardInterrupt()], ids=repr)
def test_the_charge_stands_when_reading_fails(error):
    spy, table = watched(error)
    with pytest.raises((StratsynthError, RuntimeError, KeyboardInterrupt)):
        fit(Independent(), table, small.BUDGET)
    assert spy.reads == [1]
    assert releases(spy.ledger) == 1


def test_an_error_of_the_disk_says_that_the_charge_stands_and_nothing_else():
    _, table = watched(OSError(5, "secret"))
    with pytest.raises(StratsynthError, match="charge stands") as failed:
        fit(Independent(), table, small.BUDGET)
    assert "secret" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


def test_a_second_fit_beyond_the_cap_is_refused_and_the_rows_never_read():
    spy, table = watched(cap=1.2)
    fit(Independent(), table, small.BUDGET)
    with pytest.raises(BudgetRefused):
        fit(Independent(), table, small.BUDGET)
    assert len(spy.reads) == 1
    assert releases(spy.ledger) == 1


class Greedy(Independent):
    """Asks for a bit more than it was allotted."""

    def steps(self, public, allot, rng):
        return Independent.steps(self, public, scaled(allot, 1 + 1e-9), rng)

    def rehearsal(self, public, allot, rng):
        """No more than it was allotted: it is the driver that must refuse."""
        return Independent.steps(self, public, allot, rng)


def test_a_question_beyond_the_allotment_is_refused_before_the_rows_are_read():
    spy, table = watched()
    with pytest.raises(BudgetRefused, match="before reading"):
        fit(Greedy(), table, small.BUDGET)
    assert spy.reads == []


def test_a_malformed_question_is_refused_before_the_rows_are_read():
    class Confused(Independent):
        def steps(self, public, allot, rng):
            return (yield from counts([("NOBODY",)], rho=allot.rho))

        def rehearsal(self, public, allot, rng):
            return Independent.steps(self, public, allot, rng)

    spy, table = watched()
    with pytest.raises(StratsynthError, match="NOBODY"):
        fit(Confused(), table, small.BUDGET)
    assert spy.reads == []


@pytest.mark.parametrize("setting", [{"seed": -1}, {"seed": 1.5}, {"seed": "1"}], ids=str)
def test_a_request_that_is_wrong_spends_nothing(setting):
    spy, table = watched()
    with pytest.raises(StratsynthError):
        fit(Independent(), table, small.BUDGET, **setting)
    assert spy.reads == []
    assert releases(spy.ledger) == 0


def test_a_budget_that_no_noise_can_serve_spends_nothing():
    spy, table = watched()
    with pytest.raises(StratsynthError):
        fit(Independent(), table, Budget(40, 1e-9))
    assert spy.reads == []
    assert releases(spy.ledger) == 0


def test_a_column_of_lists_is_refused_by_its_type_before_there_is_anything_to_spend():
    data = pa.table({**{c: pa.array(["1"]) for c in ("SEX", "GROUP", "AGE")}, "WORK": [["yes"]]})
    with pytest.raises(StratsynthError, match="WORK"):
        small.table(data)


def test_the_rows_are_gone_when_the_fit_is_done(monkeypatch):
    """Nothing that draws, saves or scores later can look at them."""
    kept = []
    load = loading.load_rows

    def remember(*arguments, **settings):
        rows = load(*arguments, **settings)
        kept.append(weakref.ref(rows))
        return rows

    monkeypatch.setattr(loading, "load_rows", remember)
    release = small.small_release()
    gc.collect()
    assert [reference() for reference in kept] == [None]
    assert len(release.sample(5)) == 5


def test_the_order_of_the_rows_leaves_no_trace():
    people = small.people()
    one, other = (
        fit(small.stratified(), small.table(data), small.BUDGET, seed=1, entropy=SeededEntropy(1))
        for data in (people, people.iloc[::-1])
    )
    assert one.measurements.equals(other.measurements)
    assert one.sample(50, seed=2).equals(other.sample(50, seed=2))
    assert without_account(one) == without_account(other)


def test_what_the_rehearsal_cannot_pay_reserves_nothing():
    class GreedyLater(Twice):
        def steps(self, public, allot, rng):
            return Twice.steps(self, public, scaled(allot, 1.5), rng)

    spy, table = watched()
    with pytest.raises(BudgetRefused, match="before reading"):
        fit(GreedyLater(), table, small.BUDGET)
    assert spy.reads == []
    assert releases(spy.ledger) == 0
