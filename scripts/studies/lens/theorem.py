"""INTERNAL. Theorem 3 of paper 001: a condition by which clipping harms one group more than another, and its Lemmas.

With everybody in every step, a learning rate of at most 1 / beta (beta the largest curvature of a group's convex loss),
g_a the mean gradient of group a, p_a its part of the rows and C the clip:

    (5)   |g_a| p_a^2 / 2  >=  5 C / 2 + |g_b| (1 + p_b + p_b^2 / 2)     then     R_clip(a) > R_clip(b)
    (24)  R_clip(a) - R_clip(b)  >=  eta (<g_a - g_b, g_D - gb_D> - (|g_D|^2 + C^2) / 2)
    (19)  -beta_a |g_D|^2  <=  E[gb' H_a gb] - E[g' H_a g]  <=  beta_a C^2

The condition suffices and is far from needed: as p_a <= 1, the gradient of group a has to be more than twice as long as
b's, and five times as long as the clip. With smaller batches (19) needs the variance of the *gradient*, not of its norm
(Lemma 2 takes E|g_B| for |g_D|, and Jensen gives the inequality alone); here there is none.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from studies.lens.losses import cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from studies.lens.losses import Loss
    from studies.lens.people import People

    Floats = NDArray[np.float64]


def compare(loss: Loss, people: People, theta: Floats, clip: float, rate: float) -> pd.DataFrame:
    """Return a row for each ordered pair of groups of a full step from `theta`, at `rate` or the largest one allowed.

    Returns:
        `group` and `other`; `left` and `right` of (5) and `met`; `apart`, the first's part of clipping less the
        other's; `bound` of (24); `lemma`, true if (19) holds for the first.
    """
    gradients = loss.local(people.x, people.y, theta).gradients
    norms = np.sqrt((gradients**2).sum(axis=1))
    whole, kept = gradients.mean(axis=0), (gradients * cut(norms, np.asarray(clip))[:, None]).mean(axis=0)
    present = [k for k in range(len(people.labels)) if people.counts[k]]
    means = {k: gradients[people.group == k].mean(axis=0) for k in present}
    hessians = {}
    for k in present:
        here = people.of(k)
        hessians[k] = loss.hessian(here.x, loss.local(here.x, here.y, theta))
    curvature = {k: float(np.linalg.eigvalsh(hessian).max()) for k, hessian in hessians.items()}
    eta = min(rate, 1 / max(curvature.values()))
    second = {k: float(kept @ h @ kept - whole @ h @ whole) for k, h in hessians.items()}
    harm = {k: eta * float(means[k] @ (whole - kept)) + eta**2 / 2 * second[k] for k in present}
    long, part = {k: float(np.linalg.norm(mean)) for k, mean in means.items()}, people.counts / people.size
    rows = []
    for a, b in permutations(present, 2):
        left, right = long[a] * part[a] ** 2 / 2, 2.5 * clip + long[b] * (1 + part[b] + part[b] ** 2 / 2)
        bound = eta * (float((means[a] - means[b]) @ (whole - kept)) - float(whole @ whole + clip**2) / 2)
        upper, lower = curvature[a] * clip**2, -curvature[a] * float(whole @ whole)
        rows.append(
            {
                "group": people.labels[a],
                "other": people.labels[b],
                "left": left,
                "right": right,
                "met": left >= right,
                "apart": harm[a] - harm[b],
                "bound": bound,
                "lemma": bool(lower - 1e-12 <= second[a] <= upper + 1e-12),
            }
        )
    return pd.DataFrame(rows)


def words(frame: pd.DataFrame) -> str:
    """Return the verdict on Theorem 3: how often its condition is met, and what the Lemmas say."""
    met, convex = frame[frame["met"]], frame[frame["model"] != "tanh"]
    said = f"The condition of Theorem 3 is met by {len(met)} of {len(frame)} ordered pairs of groups"
    if met.empty:
        least = float((frame["right"] / frame["left"].clip(lower=1e-300)).min())
        said += f", its sides being a factor of {least:.3g} apart or more: the theorem is vacuous here"
    else:
        said += f", and {int((met['apart'] > 0).sum())} of these are harmed more, as it says"
    return (
        f"{said}. Of convex losses, Lemma 2 holds in {int(convex['lemma'].sum())} of {len(convex)}, and Lemma 3's "
        f"lower bound in {int((convex['apart'] >= convex['bound'] - 1e-12).sum())}; that bound is above 0 in "
        f"{int((convex['bound'] > 0).sum())}."
    )
