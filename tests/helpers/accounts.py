"""Parts of the accounting, made from the few facts that a test sets."""

import dataclasses

from stratsynth.accounting.account import FitAccount, Request
from stratsynth.accounting.budget import Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.accounting.prices import prices
from stratsynth.accounting.standing import Standing

BUDGET = Budget(1, 1e-9)
STANDING = Standing(None, None, 1.0, 1)


def allotment(rho, budget=BUDGET):
    return Allotment(Currency.ZCDP, rho, budget)


def scaled(allot, factor):
    return dataclasses.replace(allot, amount=allot.amount * factor)


def charge(rho, *path, replace=2.0):
    """A charge whose answer moves by 1 for a record, and by the square root of `replace` for an exchange."""
    return Charge(path, "counts", rho, {Neighbours.ADD_REMOVE: 1.0, Neighbours.REPLACE: replace**0.5})


def spent(*charges, neighbours=Neighbours.ADD_REMOVE):
    return Spending(neighbours, charges).spent()


def priced(*charges, reserved, neighbours=Neighbours.ADD_REMOVE, delta=1e-9):
    """Return the certificate's prices of a fit that made these charges out of a reserved rho."""
    budget = Budget(1, delta, neighbours)
    return prices(Spending(neighbours, charges), budget, allotment(reserved, budget))


class Account(FitAccount):
    """An account of one rho, charged without ceremony."""

    def __init__(self, rho=1.0):
        super().__init__(BUDGET, allotment(rho), STANDING, seed=0)

    def charge(self, charges, distance=0.0):
        super().charge(0, "", charges, distance)


def reserve(ledger, budget=BUDGET, rho=None):
    """Return the ledger's standing after a fit has reserved its budget, or just some rho."""
    allot = budget.zcdp() if rho is None else allotment(rho, budget)
    return ledger.open(Request("an identity", "independent", budget, allot, None)).standing
