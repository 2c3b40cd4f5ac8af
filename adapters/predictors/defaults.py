"""Defaults of a private descent on regressions' gradients, from public numbers alone.

The mean gradient of n records, each no longer than the clip, has noise of clip sqrt(T) / (n mu) in each coordinate and
each of T steps, mu being the parameter of Gaussian differential privacy that the budget affords. So the reach n mu says
if noise or the number of steps limits a descent:

    T = reach / 5 steps, from 30 to 300       clip = reach / 8000, from a quarter to all, of the longest gradient

With all of it no gradient is cut. All records take part in every step: at one budget Poisson samples have as much noise
in a mean gradient, and their own chance beside it. The numbers were chosen on three public data sets and a made-up
one, of 2,200 to 84,000 rows; they cost nothing. `scripts/bench fair` prints what accuracy they come to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stratsynth.adapters.predictors.descent import CURVATURE, RESIDUAL, largest_norm

if TYPE_CHECKING:
    from stratsynth.accounting.budget import Budget
    from stratsynth.mechanisms import Public
    from stratsynth.questions import Coded
    from stratsynth.questions.sums.gradients import Link

LEAST_STEPS, MOST_STEPS = 30, 300
"""Fewest and most steps by default; the most where no size is declared."""
REACH_OF_STEP = 5.0
"""Reach for each step."""
LEAST_CLIP = 0.25
"""Smallest default clip, as a part of the longest gradient."""
UNDECLARED_CLIP = 0.5
"""Default clip where no size is declared, as a part of the longest gradient."""
UNCUT = 8_000.0
"""Reach from which no gradient is cut."""
LARGEST_EXPONENT = 700.0
"""Largest epsilon whose exponential is taken."""
MOMENTUM = 0.9
"""Part of the last direction that a step keeps: descents go further in as many steps, and average their noise."""
AGAINST = 0.5
"""Momentum against an adversary, who learns from step to step: with more of it large penalties do not settle."""


@dataclass(frozen=True)
class Pace:
    """Numbers that decide a descent's path: as set, or by default."""

    steps: int
    clip: float
    """Largest L2 norm of a row's gradient."""
    rate: float
    """Learning rate of the coefficients."""
    momentum: float
    """Part of the last direction that a step keeps."""

    @classmethod
    def of(
        cls, settings: Any, public: Public, budget: Budget, design: Coded, link: Link, usual: float = MOMENTUM
    ) -> Pace:
        """Return the `Pace` of a regression with this link and design: by `settings`, or public numbers where None.

        The momentum is `usual` where the settings have none; budget and declared size give the number of steps.
        """
        far = reach(public, budget)
        part = UNDECLARED_CLIP if far is None else min(1.0, max(LEAST_CLIP, far / UNCUT))
        clip = part * RESIDUAL[link] * largest_norm(design)
        momentum = usual if settings.momentum is None else settings.momentum
        # a heavy ball diverges from twice this rate on
        rate = (1 + momentum) / (CURVATURE[link] * largest_norm(design) ** 2)
        return cls(steps_by(far), clip, rate, momentum).as_set(settings)

    def as_set(self, settings: Any) -> Pace:
        """Return a copy of the pace with those of `iterations`, `clip`, `rate` and `momentum` that `settings` have."""
        given = {
            "steps": settings.iterations,
            "clip": settings.clip,
            "rate": settings.rate,
            "momentum": settings.momentum,
        }
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def described(self, steps: int, sampling: float) -> str:
        """Return a text on `steps` steps, in which records take part with probability `sampling`."""
        of = "all records" if sampling == 1 else f"Poisson samples of rate {sampling:.3g}"
        return f"{steps} steps on {of}, learning rate {self.rate:.3g}, momentum {self.momentum:g}"


def steps_by(far: float | None) -> int:
    """Return the default number of steps at the reach `far`, n mu; MOST_STEPS for None, where no size is declared."""
    return MOST_STEPS if far is None else min(MOST_STEPS, max(LEAST_STEPS, round(far / REACH_OF_STEP)))


def reach(public: Public, budget: Budget) -> float | None:
    """Return n mu, a float: n is the public declared size in rows of the largest weight, mu the budget's.

    None without.
    """
    if public.size is None:
        return None
    weight = public.schema.row_weight
    return public.size * weight.each / weight.most / budget.rows * gaussian_mu(budget.epsilon, budget.delta)


@lru_cache(maxsize=64)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu at which a mu-Gaussian mechanism is (epsilon, delta)-differentially private.

    By Balle and Wang 2018: delta = F(mu/2 - epsilon/mu) - exp(epsilon) F(-mu/2 - epsilon/mu), F the normal law's; found
    by bisection, and rounded to six digits, so that a fit goes on where the last ones are others. Public rows may have
    an epsilon whose exponential no float holds: it counts as LARGEST_EXPONENT.
    """
    epsilon = min(epsilon, LARGEST_EXPONENT)

    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2  # which is right far below 0 too, as 1 + erf is not

    def spent(mu: float) -> float:
        return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)

    low, high = 1e-6, 1e-6
    while spent(high) <= delta and high < 1e3:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= delta else (low, middle)
    return float(f"{low:.6g}")
