"""Objective of a regression over its groups: f of their mean losses, under a bound on each of them.

    f(L) + sum_k lambda_k (L_k - bound_k)      L_k group k's mean loss, lambda_k >= 0 its multiplier

f is a weighted sum of the L_k (`pooled`: by the groups' sizes; `balanced`: equal weights; or given weights), their
maximum, or the smooth maximum log(sum_k exp(b L_k)) / b. The gradient of the sum is sum_k slope_k grad L_k, and the
slopes come from noisy losses, where they are needed at all. (Paper 000 takes g(L) = max L_k <= 0, which no positive
loss meets; and losses have to be divided by their clip to lie between 0 and 1.)

The multipliers are those of equation 3, with its missing n, steered in the one fit. The paper's Algorithm 2 adds the
whole slope G whenever the worst bound is broken. Steps have a length of their own, so that each such step throws the
model far inside the bound, and half of the noise alone breaks a bound that is met: the fit ends where no group's loss
comes near its bound, at the cost of the others. A multiplier that follows its group's excess, up to G, does not.
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
PACE, PUSH = 0.3, 2.0
"""Movement of a multiplier by an excess of 1 over its bound: for good in each step, and beside it in this step only."""


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
    """Largest multiplier G of a bound."""

    def check(self, who: str, labels: Sequence[str]) -> None:
        """Raise UsageError on weights or bounds that name none of the groups' `labels`, or lie outside [0, 1].

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
        """Return an array, one weight a group, of its mean gradient: the derivative of f by its mean loss.

        Args:
            labels: The groups.
            shares: Array of their fractions of all records.
            losses: Array of their noisy mean losses as fractions of the clip; ignored unless `asks_losses`.
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
        return found

    def multipliers(self, labels: Sequence[str]) -> Multipliers:
        """Return Multipliers, all 0, with the settings' own bounds of groups of these `labels`; inf where none."""
        others = self.bounds.get("", np.inf)
        return Multipliers(np.array([self.bounds.get(label, others) for label in labels]), self.multiplier)


@dataclass
class Multipliers:
    """Multipliers of the groups' bounds, which a fit steers by noisy losses: m <- m + pace (loss - bound), in [0, G].

    Noise of mean 0 moves none of them for long.
    """

    bounds: NDArray[np.float64]
    """Largest allowed mean loss of each group, as a fraction of the clip; infinite without a bound."""
    most: float
    held: NDArray[np.float64] = field(init=False)
    """The multipliers, but for what the last loss alone makes of them."""

    def __post_init__(self) -> None:
        """Set the array `held`, the multipliers, to 0: one a bound."""
        self.held = np.zeros_like(self.bounds)

    def step(self, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Move the multipliers by `losses`, an array of the groups' noisy mean losses.

        Return those of this step, an array.
        """
        excess = np.where(np.isinf(self.bounds), 0.0, losses - self.bounds)
        self.held = np.clip(self.held + PACE * excess, 0, self.most)
        found: NDArray[np.float64] = np.clip(self.held + PUSH * excess, 0, self.most)
        return found
