"""Guarantee recomputed from a certificate alone, by code that is not the package's."""

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np

ORDERS = 1 + np.exp(np.linspace(-15, 25, 400_001))


def total_rho(charges):
    """The dearest way down: every leaf-to-root sum is bounded by the sum of own charges and dearest strata."""
    own, below = Fraction(0), defaultdict(lambda: defaultdict(list))
    for charge in charges:
        if charge["path"]:
            first, *rest = charge["path"]
            below[frozenset(first)][frozenset(first.items())].append({**charge, "path": rest})
        else:
            own += Fraction(charge["rho"])
    return own + sum(max(total_rho(part) for part in strata.values()) for strata in below.values())


def epsilon(rho, delta):
    """The best of four hundred thousand orders: an upper bound, right to about nine digits."""
    if rho == 0:
        return 0.0
    a = ORDERS
    bound = rho * a + (math.log(1 / delta) + (a - 1) * np.log1p(-1 / a) - np.log(a)) / (a - 1)
    return max(0.0, float(bound.min()))


def check(certificate):
    """Every figure of a certificate that follows from others."""
    guarantee, charges = certificate["guarantee"], certificate["charges"]
    delta = guarantee["delta"] - guarantee["truncation_delta"]
    spent = total_rho(charges)
    assert 0 < spent <= Fraction(guarantee["rho"])
    assert epsilon(guarantee["rho"], delta) <= guarantee["epsilon"] * (1 + 1e-8)
    assert math.isclose(certificate["prices"]["add-remove"], epsilon(guarantee["rho"], delta), rel_tol=1e-8)
    declared = certificate["neighbours"]
    for charge in charges:
        if charge["kind"] == "choose":
            assert Fraction(charge["rho"]) >= Fraction(charge["epsilon"]) ** 2 / 8
            continue
        moved = Fraction(charge["sensitivity"][declared]) ** 2
        assert Fraction(charge["rho"]) >= moved / (2 * Fraction(charge["sigma"]) ** 2)
