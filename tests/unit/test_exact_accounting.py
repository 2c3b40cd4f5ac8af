"""Fits with accounting = "exact": what they may ask, what it costs, and how they add up on an account."""

import dataclasses
import math
import re
import shutil
import sys
from typing import Any

import numpy as np
import pytest

import stratsynth as ss
from helpers import small
from helpers.contract import caught, violations
from helpers.fits import requested
from helpers.ledgers import interrupted, kinds, ladder, lines_of, table
from helpers.releases import edited, record_of, saved
from helpers.toys import Toy
from stratsynth import Budget, Numeric, Stratified, StratumBudgets, Weights
from stratsynth.accounting.budget import IN_RHO, Currency
from stratsynth.accounting.exact import epsilon_exact
from stratsynth.accounting.history import read_ledger
from stratsynth.accounting.standing import afford_all, largest, rule
from stratsynth.accounting.totals import in_rho
from stratsynth.accounting.totals import total as all_fits
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.adapters import AIM, CoinPress, Independent
from stratsynth.certificate import Certificate
from stratsynth.errors import BudgetRefused, MechanismError, Unsupported, UsageError
from stratsynth.mechanisms import make
from stratsynth.questions import Coded, Columns, Counts, Distance, Total, Usable, choose, counts, total
from stratsynth.questions.minimiser import Minimiser
from stratsynth.release.page.words import accounting, promise
from stratsynth.schema import Schema, Unit
from stratsynth.schema.weight import RowWeight
from stratsynth.testing import check_contract, worlds

PLAIN = Budget(1, 1e-9)
EXACT = dataclasses.replace(PLAIN, accounting="exact")
SHARES = Weights.public(small.shares_frame(), citation="made up for testing")
MEAN = Columns(("AGE",), (4.5,), (4.5,), clip=1.0, norm="l1")
HOWS = {
    "independent": Independent,
    "fixed": lambda: make("fixed", {"tables": [["SEX", "AGE"], ["WORK"]]}),
    "strata": lambda: Stratified(Independent(), by=["SEX", "GROUP"], weights=SHARES),
    "means": CoinPress,
}


def exact(epsilon):
    return dataclasses.replace(EXACT, epsilon=epsilon)


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exact")
    return {name: saved(how(), folder / name, budget=EXACT) for name, how in HOWS.items()}


@pytest.fixture
def copy(releases, tmp_path):
    return shutil.copytree(releases["independent"], tmp_path / "copy")


@pytest.mark.parametrize("name", HOWS)
def test_a_release_states_theorem_and_errors_of_tests_and_is_verified(name, releases):
    stated = record_of(releases[name])
    guarantee = stated["guarantee"]
    assert guarantee["currency"] == "exact"
    assert guarantee["mu"] == pytest.approx(math.sqrt(2 * guarantee["rho"]))
    assert guarantee["rho"] > PLAIN.zcdp().rho
    assert epsilon_exact(guarantee["rho"], 1e-9 * (1 - 1e-6)) <= 1
    assert stated["prices"]["add-remove"] == pytest.approx(1, abs=1e-6)
    assert "Gaussian Differential Privacy" in stated["conversion"]["source"]
    assert [each["alpha"] for each in guarantee["tradeoff"]] == [0.001, 0.01, 0.05, 0.1]
    assert all(0.8 < each["beta"] < 1 - each["alpha"] for each in guarantee["tradeoff"])
    verdict = ss.verify(releases[name])
    assert any("sigma^2 = s^2 + 1 + s / 100" in line for line in verdict.checked)
    assert [f for f in verdict.findings if "seeded" not in f and "promises nothing" not in f] == []


def test_pages_say_errors_of_tests_and_never_more_than_holds(releases):
    certificate = Certificate.from_dict(record_of(releases["independent"]))
    (said,) = [line for line in promise(certificate) if line.startswith("Put as a test")]
    stated = {each.alpha: each.beta for each in certificate.guarantee.tradeoff}
    told = float(re.search(r"5 of 100 cases of the one is wrong in fewer than ([\d.]+) of 100", said)[1])
    assert stated[0.05] - 1e-4 <= told / 100 <= stated[0.05]
    assert "Gaussian DP by its exact curve" in accounting(certificate)
    plain = Certificate.from_dict(dict(small.small_release(seed=1).certificate))
    assert not any(line.startswith("Put as a test") for line in promise(plain))
    assert accounting(plain) == "zcdp"


def test_a_first_question_is_a_part_of_the_exact_amount(tmp_path):
    people, path = ss.census.make(4_000, seed=1), tmp_path / "people.csv"
    people.to_csv(path, index=False)
    opened = ss.open_table(path, schema=ss.census.schema(), declared_size=4_000, ledger=tmp_path / "people.ledger")
    folder = ss.fit(Independent(), opened, EXACT).save(tmp_path / "release")
    stated = record_of(folder)
    first = next(charge for charge in stated["charges"] if charge["kind"] == "usable")
    assert first["rho"] == pytest.approx(EXACT.zcdp().rho / 100, rel=1e-6)
    assert sum(charge["rho"] for charge in stated["charges"]) == pytest.approx(stated["guarantee"]["rho"], rel=1e-9)
    assert ss.verify(folder, ledger=tmp_path / "people.ledger").ok
    made = [line["allot"] for line in lines_of(tmp_path / "people.ledger") if "allot" in line]
    assert [allot["currency"] for allot in made] == ["exact", "exact"]
    scarce = Usable(1e-9, Currency.EXACT).charges(ss.census.schema(), (), EXACT.neighbours)[0].to_dict()
    edited(folder, lambda record: record["charges"][0].update(scarce))  # of noise wider than 2,400 records
    assert not any("its noise costs" in finding for finding in ss.verify(folder).findings)
    edited(folder, lambda record: record["charges"][0].update(sigma=scarce["sigma"] * (1 - 1e-6)))
    assert any("its noise costs" in finding for finding in ss.verify(folder).findings)


FORGED = {
    "mu": (lambda g: g.update(mu=g["mu"] / 2), "mu or its errors"),
    "last digits of mu": (lambda g: g.update(mu=g["mu"] - 5e-7), "mu or its errors"),
    "errors": (lambda g: g["tradeoff"][0].update(beta=0.9999), "mu or its errors"),
    "no errors": (lambda g: g.pop("tradeoff"), "mu or its errors"),
    "zcdp": (lambda g: g.update(currency="zcdp"), "above the stated"),
    "rho": (lambda g: g.update(rho=g["rho"] * 1.01), "above the stated"),
}


@pytest.mark.parametrize("what", FORGED)
def test_an_edited_guarantee_does_not_hold(what, copy):
    change, words = FORGED[what]
    edited(copy, lambda record: change(record["guarantee"]))
    assert words in " ".join(ss.verify(copy).findings)


def test_a_charge_pays_for_the_variance_that_discrete_noise_takes(copy):
    def narrower(record):
        for charge in record["charges"]:
            charge["sigma"] = charge["sensitivity"]["add-remove"] / math.sqrt(2 * charge["rho"]) * (1 + 1e-9)

    assert not any("its noise costs" in finding for finding in ss.verify(copy).findings)
    edited(copy, narrower)
    assert any("its noise costs" in finding for finding in ss.verify(copy).findings)


def test_noise_is_wider_than_it_is_priced():
    rho = EXACT.zcdp().rho
    (charge,) = Counts((("SEX",),), rho).exactly().charges(small.SCHEMA, (), EXACT.neighbours)
    assert (charge.currency, charge.amount) == (Currency.EXACT, rho)
    s = 1 / math.sqrt(2 * rho)
    assert charge.details["sigma"] ** 2 == pytest.approx(s**2 + 1 + s / 100, rel=1e-12)
    (charge,) = Total(MEAN, rho).exactly().charges(small.SCHEMA, (), EXACT.neighbours)
    assert charge.currency == Currency.EXACT
    assert charge.details["sigma"] > 1 / math.sqrt(2 * rho)


@dataclasses.dataclass(frozen=True)
class Unseen(Toy):
    """Declares tables and sums alone, and asks what a field says."""

    ask: Any
    name = "unseen"
    needs = frozenset({Counts, Total})

    def steps(self, public, allot, rng):
        yield from self.ask(allot.rho)


def a_choice(rho):
    yield from counts([("SEX",)], rho=rho / 2)
    yield from choose([Distance(("SEX",), np.zeros(2))] * 2, rho=rho / 2)


def laplace(rho):
    yield from total(MEAN, epsilon=0.5)


def a_sample(rho):
    yield from total(MEAN, noise=2.0, rate=0.5)


WRONG = {
    "aim": (lambda: AIM(rounds=2), "aim asks Choose"),
    "mst": (lambda: make("mst", {}), "mst asks Choose"),
    "pooled": (
        lambda: make(
            "pooled", {"base": "mst", "share": 0.5, "by": ["SEX"], "weights": small.even(small.SCHEMA, "SEX")}
        ),
        "asks Choose",
    ),
    "clipped_mean": (lambda: make("clipped_mean", {}), "clipped_mean spends in pure"),
    "a choice": (lambda: Unseen(a_choice), "does not price this Choose"),
    "laplace": (lambda: Unseen(laplace), "does not price this Total"),
    "a sample": (lambda: Unseen(a_sample), "does not price this Total"),
}


@pytest.mark.parametrize(("how", "why"), WRONG.values(), ids=WRONG)
def test_what_is_no_gaussian_noise_is_refused_before_anything_is_spent(how, why, data, ledger):
    with pytest.raises((Unsupported, MechanismError), match=why):
        ss.fit(how(), table(data), EXACT)
    assert not ledger.exists() or kinds(ledger) == []


@dataclasses.dataclass(frozen=True)
class Narrow(Toy):
    """A table with `noise` records of noise."""

    noise: float
    name = "narrow"
    needs = frozenset({Counts})

    def steps(self, public, allot, rng):
        yield from counts([("SEX",)], rho=1 / (2 * self.noise**2))
        return small.clear_release(Independent()).model


def test_noise_that_costs_less_in_zcdp_is_refused(data, ledger):
    with pytest.raises(Unsupported, match=r"a standard deviation of 4 or more, not 3\.9"):
        ss.fit(Narrow(3.9), table(data), exact(5))
    assert not ledger.exists() or kinds(ledger) == []
    ss.fit(Narrow(4.01), table(data), exact(5))


def test_units_of_several_rows_keep_to_zcdp():
    with pytest.raises(Unsupported, match=r'accounting = "exact" is priced for single rows only'):
        Budget(1, 1e-9, unit="WHO", rows=3, accounting="exact").zcdp()
    with pytest.raises(UsageError, match="accounting"):
        Budget(1, 1e-9, accounting="best")
    schema = Schema(small.SCHEMA.columns, unit=Unit(column="WHO", max_rows=3))
    people = small.people().assign(WHO=range(small.SIZE))
    with pytest.raises(Unsupported, match="priced for single rows only"):
        ss.fit(Independent(), ss.open_table(people, schema=schema, declared_size=100), EXACT)


def test_strata_have_budgets_of_their_own(data):
    own = StratumBudgets.factors({"1|a": 0.5})
    how = Stratified(Independent(), by=["SEX", "GROUP"], weights=SHARES, budgets=own)
    stated = ss.fit(how, table(data), EXACT).certificate
    spent = {"|".join(c["path"][0].values()): c["rho"] for c in stated["charges"] if c["path"]}
    assert epsilon_exact(spent["1|a"], 1e-9) == pytest.approx(0.5, abs=1e-4)


# Other currencies


@dataclasses.dataclass(frozen=True)
class Sold(Toy):
    """Asks what a field says in a fit of pure epsilon."""

    ask: Any
    name = "sold"
    needs = frozenset({Counts, Minimiser})

    def price(self, public, budget):
        return budget.pure()

    def steps(self, public, allot, rng):
        yield self.ask


FIT = Minimiser(Coded(("WORK",)), "SEX", "softmax", 1.0, 1.0, 1.0)


@pytest.mark.parametrize("asked", [Counts((("SEX",),), 1.0), FIT], ids=["counts", "minimiser"])
@pytest.mark.parametrize("currency", [c for c in Currency if c not in IN_RHO])
def test_gaussian_noise_is_sold_for_rho_alone(asked, currency, data, ledger):
    with pytest.raises(MechanismError, match="priced in rho alone"):
        ss.fit(Sold(dataclasses.replace(asked, currency=currency)), table(data), PLAIN)
    assert not ledger.exists() or kinds(ledger) == []


def test_tables_that_state_pure_epsilon_do_not_hold(copy):
    def pure(record):
        spent = record["guarantee"].pop("rho")
        record["guarantee"].update(currency="pure", delta=0.0, epsilon=1.0, reserved=spent)
        for charge in record["charges"]:
            charge["epsilon"] = charge.pop("rho")

    edited(copy, pure)
    assert any("costs rho and nothing else" in finding for finding in ss.verify(copy).findings)


# Accounts


def test_an_account_that_begins_exactly_adds_up_mu_and_one_fit_is_what_it_promises(data, ledger):
    ss.fit(Independent(), table(data, cap=1.0), EXACT)
    assert read_ledger(ledger)["spent_epsilon"] == pytest.approx(1, abs=1e-6)
    assert lines_of(ledger)[1]["budget"]["accounting"] == "exact"
    with pytest.raises(BudgetRefused):
        ss.fit(Independent(), table(data, cap=1.0), dataclasses.replace(PLAIN, epsilon=0.01))


def test_allotments_add_up_in_the_currency_of_the_first():
    one, plain = EXACT.zcdp(), PLAIN.zcdp()
    delta = 1e-9
    both = epsilon_exact(2 * one.amount, delta * (1 - 2e-6))
    assert all_fits([one, one], delta) == pytest.approx(both, rel=1e-9)
    assert all_fits([plain, plain], delta) == pytest.approx(epsilon_of(2 * plain.amount, delta * (1 - 2e-6)), rel=1e-9)
    assert all_fits([one, plain], delta) == math.inf  # zCDP would want all of delta for itself
    assert all_fits([one, plain], 2 * delta) == pytest.approx(2, abs=0.1)  # plainly, each with its own delta
    assert all_fits([plain, one], delta) > all_fits([plain, plain], delta)
    assert all_fits([plain, one], delta) < 1.5
    pure = Budget(0.5, 0).pure()
    assert all_fits([pure, one], delta) == pytest.approx(1.5, abs=1e-5)


def test_a_fit_on_samples_gives_its_account_the_currency_of_its_first_question():
    begun = dataclasses.replace(PLAIN, first=0.01).sampled(rate=0.01, steps=10)
    one = EXACT.zcdp()
    assert (begun.opening.currency, begun.currency) == (Currency.ZCDP, Currency.SAMPLED)
    assert [in_rho([part, one])[0] for part in (begun.opening, begun, one)] == [Currency.ZCDP] * 2 + [Currency.EXACT]


@pytest.mark.parametrize("first", [PLAIN, EXACT])
@pytest.mark.parametrize("cap", [1.5, 3.0])
def test_the_largest_that_fits_is_granted_and_hardly_more(first, cap):
    reserved = [first.zcdp()]
    found = largest(cap, reserved, EXACT.zcdp(), 1e-9)
    assert all_fits([*reserved, exact(found).zcdp()], 1e-9) <= cap
    assert all_fits([*reserved, exact(found * 1.002).zcdp()], 1e-9) > cap
    assert largest(cap, [EXACT.zcdp()], PLAIN.zcdp(), 1e-9) == 0


def test_a_refusal_says_how_epsilons_add_up(data):
    ss.fit(Independent(), table(data, cap=1.2), EXACT)
    with pytest.raises(BudgetRefused, match=r"Gaussian DP, as in its first fit with accounting = \"exact\""):
        ss.fit(Independent(), table(data, cap=1.2), EXACT)
    assert "zCDP among them" in rule(1e-9, Currency.EXACT)
    assert afford_all(None, [], [EXACT.zcdp()], 1e-9).currency == Currency.EXACT
    assert afford_all(None, [PLAIN.zcdp()], [EXACT.zcdp()], 1e-9).currency == Currency.ZCDP


# Interruptions


def test_a_fit_that_stopped_goes_on_in_its_currency(data, ledger):
    made = ladder(3)
    with pytest.raises(KeyboardInterrupt):
        ss.fit(made, table(data), EXACT, seed=1)
    ss.fit(ladder(), table(data), EXACT, seed=1)
    assert [line["allot"]["currency"] for line in lines_of(ledger) if line["kind"] == "reserve"] == ["exact"]
    assert (
        requested(ladder(), table(data), EXACT, seed=1).identity
        != requested(ladder(), table(data), PLAIN, seed=1).identity
    )


def test_a_fit_that_began_in_zcdp_ends_in_it(data, ledger):
    interrupted(data, seed=1)
    ss.fit(ladder(), table(data), EXACT, seed=1)
    ss.fit(ladder(), table(data), PLAIN, seed=1)
    made = [line["allot"]["currency"] for line in lines_of(ledger) if line["kind"] == "reserve"]
    assert made == ["zcdp", "exact"]


# The contract


def alone(world, rows):
    return Independent()


def in_strata(world, rows):
    return Stratified(Independent(), world.by, world.weights)


def by_sums(world, rows):
    return make("group_regression", {"iterations": 2})


SMALL = exact(0.5)


def test_mechanisms_keep_the_contract():
    assert violations(in_strata, tables=4, spend=SMALL) == []


def test_weighted_rows_keep_the_contract():
    heavy = [
        dataclasses.replace(w, schema=dataclasses.replace(w.schema, row_weight=RowWeight(5, "PWGTP"))) for w in worlds()
    ]
    assert check_contract(in_strata, among=heavy, tables=2, neighbours=3, orders=0, spend=SMALL) == []


def test_exchanged_records_and_sums_keep_the_contract():
    numbers = [w for w in worlds() if any(isinstance(w.schema.column(c), Numeric) for c in w.schema.names)]
    exchanged = [dataclasses.replace(w, neighbours="replace") for w in numbers]
    assert violations(by_sums, among=numbers, tables=2, orders=0, spend=SMALL) == []
    assert violations(alone, among=exchanged, tables=3, orders=0, spend=SMALL) == []


def test_noise_of_the_continuous_width_breaks_the_contract(monkeypatch):
    monkeypatch.setattr(sys.modules[Counts.__module__], "widened", lambda s: s)
    assert "sensitivity" in caught(alone, spend=SMALL)
