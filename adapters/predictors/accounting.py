"""Price of a step of gradient descent in which each group answers with its own noisy gradient, counted three ways.

Group k is asked at rho_k, so its noise has the variance D^2 / (2 rho_k), D being the clip. Only sum_k v_k g_k is used.

    paper      sum_k rho_k, as paper 000 counts. It charges a record for groups that it is not in.
    parallel   max_k rho_k: a record lies in one group, and the next step depends on past answers alone.
    combined   only the weighted sum is released, with noise of variance sum_k v_k^2 D^2 / (2 rho_k), and a record of
               group k moves it by at most v_k D:  max_k v_k^2 / sum_j (v_j^2 / rho_j).

All three are sound; the ledger records the questions as asked, whichever of them divided the budget: for `paper` that
is less than the fit has reserved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Accounting = Literal["combined", "parallel", "paper"]
_WHY = {
    "smooth": "Algorithm 4 of the paper scales its noise by the smoothness of f and g, which is 0 for a sum of losses "
    "and no constraint: nothing would be private",
    "bounded": "the paper's Algorithm 3 protects an exchanged record with the noise for an added one, and such a "
    "record costs four times the rho that is claimed",
}
UNSOUND = {
    name: f'is not private: {why}. Take "parallel", or neighbours = "replace" where records are exchanged.'
    for name, why in _WHY.items()
}
"""Ways of counting that the paper intends and that are not private, with the reason."""


def cost(accounting: Accounting, rhos: Sequence[float], weights: Sequence[float]) -> float:
    """Return the rho of a step where group k is asked at rhos[k], by `accounting`: "paper", "parallel" or "combined".

    `weights`, one a group, are those with which "combined" adds up noisy sums.
    """
    if accounting == "paper":
        return math.fsum(rhos)
    if accounting == "parallel":
        return max(rhos)
    # sum of w^2 sigma^2 with sigma^2 = 1 / (2 rho), against the largest weight of one record
    noise = math.fsum(v * v / rho for v, rho in zip(weights, rhos, strict=True))
    return max(v * v for v in weights) / noise


def divided(accounting: Accounting, rho: float, shares: Sequence[float]) -> list[float]:
    """Return a list, a rho for each group, in proportion to `shares`, with which a step costs `rho`.

    `shares` has one number a group. Under "paper" the groups' rhos add up to it, else the largest is it.
    """
    # paper 000 adds up all groups; side by side, a step costs as much as its dearest group
    whole = math.fsum(shares) if accounting == "paper" else max(shares)
    return [rho * (share / whole) * (1 - 1e-12) for share in shares]
