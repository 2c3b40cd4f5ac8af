"""Mechanisms of a few lines, with the declarations that they share."""

from helpers.small import even
from stratsynth.layout.layout import lay_out
from stratsynth.mechanisms import Mechanism
from stratsynth.models import Returns
from stratsynth.questions import Choose, Counts, Split, Total, Work
from stratsynth.strata.groups import Groups

ANYTHING = frozenset({Counts, Choose, Total, Work})
"""Kinds of questions that toys may ask of everybody."""


class Toy(Mechanism):
    """Spends the whole budget in zCDP, on whatever it likes, in a fixed order; draws rows, and discloses nothing."""

    name = "toy"
    needs = ANYTHING
    returns = Returns.ROWS
    adaptive = False
    unprotected = ()

    def price(self, public, budget):
        return budget.zcdp()


class Grouped(Toy):
    """A toy that splits by hand, by the columns `by`, into strata of equal shares."""

    needs = ANYTHING | {Split}

    def strata(self, public, budget):
        return by_hand(public, budget, self.by)


def by_hand(public, budget, by):
    """Strata of equal shares, as a mechanism declares them that splits by hand."""
    return lay_out(public.schema, by, Groups(), even(public.schema, *by), None, public.size, budget.epsilon)
