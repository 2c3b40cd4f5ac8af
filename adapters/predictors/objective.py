"""Objective of a regression over its groups: f of their mean losses, under a bound on each of them.

    h(theta) = f(L) + G max(0, g(L))      L_k group k's mean loss, g(L) = max_k (L_k - bound_k)

f is a weighted sum of the L_k (`pooled`: by the groups' sizes; `balanced`: equal weights; or given weights), their
maximum, or the smooth maximum log(sum_k exp(b L_k)) / b. The gradient of h is sum_k slope_k grad L_k, and the slopes
come from noisy losses, where they are needed at all. (Paper 000 takes g(L) = max L_k <= 0, which no positive loss
meets; and losses have to be divided by their clip to lie between 0 and 1.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from stratsynth.checks import number
from stratsynth.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["pooled", "balanced", "maximum", "smooth_maximum", "weights"]


@dataclass(frozen=True)
class Objective:
    """Objective h over groups: the function f of their mean losses, and the bounds of g with their multiplier."""

    kind: Kind = "pooled"
    """The function f."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weight of each group's mean loss by label, with kind `weights`; they add up to 1."""
    sharpness: float = 10.0
    """Sharpness b, with kind `smooth_maximum`. The larger, the nearer to the maximum, and the more noise moves the
    slopes."""
    bounds: Mapping[str, float] = field(default_factory=dict)
    """Largest allowed mean loss of a group, as a fraction of the loss's clip, by label; the key "" is for all
    others."""
    multiplier: float = 10.0
    """Slope G of the penalty for a broken bound."""

    def check(self, who: str, labels: Sequence[str]) -> None:
        """Refuse weights or bounds that name none of the groups' `labels`, or lie outside [0, 1].

        Refused too are weights with another kind of objective than `weights`, that lack a group or do not add up to 1
        within 0.001. `who` opens the messages.
        """
        if bool(self.weights) != (self.kind == "weights"):
            raise UsageError(f'{who}: group_weights go with objective = "weights".')
        for what, given in (("group_weights", self.weights), ("loss_bounds", self.bounds)):
            for label, value in given.items():
                if label not in labels and not (what == "loss_bounds" and label == ""):
                    raise UsageError(f"{who}: {what} names {label!r}, which is not a group.")
                number(f"{who}: {what} of {label or 'all others'}", value, least=0, most=1)
        if self.weights and (set(self.weights) != set(labels) or abs(sum(self.weights.values()) - 1) > 1e-3):
            raise UsageError(f"{who}: group_weights names every group, and its numbers add up to 1.")

    @property
    def asks_losses(self) -> bool:
        """True if the slopes depend on the groups' losses, which have to be asked for at each step."""
        return self.kind in {"maximum", "smooth_maximum"} or bool(self.bounds)

    def slopes(
        self, labels: Sequence[str], shares: NDArray[np.float64], losses: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return an array, one weight a group, of its mean gradient: the objective's derivative by its mean loss.

        Args:
            labels: The groups.
            shares: Their fractions of all records.
            losses: Their noisy mean losses as fractions of the clip; ignored unless `asks_losses`.
        """
        found: NDArray[np.float64]
        if self.kind == "pooled":
            found = shares / shares.sum()
        elif self.kind == "balanced":
            found = np.full(len(labels), 1 / len(labels))
        elif self.kind == "weights":
            given = np.array([self.weights[label] for label in labels])
            found = given / given.sum()
        elif self.kind == "maximum":
            found = (np.arange(len(labels)) == losses.argmax()).astype(np.float64)
        else:
            # derivative of the smooth maximum log(sum exp(t loss)) / t
            power = np.exp(self.sharpness * (losses - losses.max()))
            found = power / power.sum()
        if self.bounds:
            # paper 000, Algorithm 2, line 17: G x [g >= 0] x gradient of g, which is 1 for the worst group
            others = self.bounds.get("", np.inf)
            excess = losses - np.array([self.bounds.get(label, others) for label in labels])
            worst = int(excess.argmax())
            found = found + self.multiplier * (excess[worst] >= 0) * (np.arange(len(labels)) == worst)
        return found
