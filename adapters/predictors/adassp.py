"""AdaSSP: least squares from noisy second moments, with a ridge no larger than their noise calls for; and boosted.

    theta = (A + r I)^-1 b        A = X'X + E, b = X'y + e        r = max(0, s sqrt(d log(2 d^2 / .05)) - lambda)

s is the noise of an entry of A, d the number of features and lambda the smallest eigenvalue of A, at least 0. Wang
(2018) asks for that eigenvalue of X'X by a third question, for a third of the budget; A is paid for, and tells it.
Further rounds are those of Tang and others (2023): each solves the same equations for the clipped residuals that are
left. One noisy A serves all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stratsynth import papers
from stratsynth.adapters.predictors.descent import RESIDUAL, Region, largest_norm, rounded
from stratsynth.adapters.predictors.moments import mirrored
from stratsynth.adapters.predictors.regression import Regression
from stratsynth.adapters.shared.settings import check_columns, check_interactions, check_target, design_of, target_of
from stratsynth.mechanisms import Mechanism, Public, once
from stratsynth.models import Returns
from stratsynth.questions import Coded, Gradients, Moments, Program, Question, Total, total
from stratsynth.schema import Numeric
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment, Budget

    Floats = NDArray[np.float64]

FAILURE = 0.05
"""Probability with which the noise of A may exceed the bound that the ridge is made of; Wang's."""


@dataclass(frozen=True, kw_only=True)
class AdaSSP(Mechanism[Regression]):
    """A linear regression from noisy second moments, with a ridge that adapts to their noise; boosted with `rounds`."""

    name: ClassVar[str] = "adassp"
    paper: ClassVar = papers.ADASSP
    returns: ClassVar[Returns] = Returns.PREDICTIONS
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Total})
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    target: str = ""
    """Numeric column to predict; by default the last one."""
    features: Sequence[str] = at(())
    """Columns that predict the target; by default all others."""
    rounds: int = at(1, least=1, most=1_000)
    """Number of rounds; 1 is AdaSSP, more is boosted AdaSSP."""
    share: float = at(0.5, above=0, below=1)
    """Fraction of the budget for the moments of the features; the rounds divide the rest equally."""
    clip: float | None = at(None, above=0, most=1e6)
    """Largest L2 norm of a row's gradient, in the rounds after the first; by default that of a residual of half the
    target's half range, times the largest norm of a row's features."""
    radius: float = at(5.0, above=0, most=1000)
    """Largest distance from 0 of coefficients of scaled features."""
    reference: Mapping[str, str] = at({})
    """Reference level of categorical columns; the first level by default."""
    interactions: Sequence[Sequence[str]] = ()
    """Pairs of features whose products are features too."""

    def __post_init__(self) -> None:
        """Raise UsageError: values out of range, a target among the features, interactions not pairs."""
        super().__post_init__()
        check_target(self, ())
        check_interactions(self)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the whole budget as a zCDP allotment (rho per row); Unsupported: settings unfit for public facts."""
        self.task(public)
        return budget.zcdp()

    @once
    def task(self, public: Public) -> tuple[Coded, str]:
        """Return (`Coded` design, target's name) by public facts and settings.

        Unsupported if the schema does not allow them.
        """
        check_columns(self.name, self.features, public)
        target = target_of(
            self.name, self.target, self.features, public, lambda c: isinstance(c, Numeric), "a numeric column"
        )
        design = design_of(self.name, self.features, target, (), public, self.reference, self.interactions)
        self._gradients(design, target, np.zeros(len(design.names(public.schema)))).check(public.schema)
        return design, target

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Regression]:
        """Program on public facts, for the allotment: moments, then rounds of gradients; returns a `Regression`.

        `rng` is not used. The first round's gradient at coefficients of 0 is X'y, of targets within their bounds: no
        residual is clipped.
        """
        design, target = self.task(public)
        region, each = Region("box", self.radius), (1 - self.share) / self.rounds
        first = allot.rho * (self.share + each) * (1 - 1e-9)
        moments = Moments(design, target, largest_norm(design))
        square, product = yield from total(moments, rho=first, weights=(self.share, each))
        ridge, inverse = _inverted(mirrored(square.values, product.units.size), square.sigma)
        theta = region.project(inverse @ product.values)
        for _ in range(1, self.rounds):
            asked = self._gradients(design, target, theta)
            (gradient,) = yield from total(asked, rho=allot.rho * each * (1 - 1e-9))
            theta = region.project(theta - inverse @ gradient.values)
        rounds = f"{self.rounds} round{'s' if self.rounds > 1 else ''}"
        noise = f"{square.sigma:.3g} in a sum of products of two features, {product.sigma:.3g} in one with the target"
        described = {
            "Model": f"linear regression of {target} on {len(theta)} features, by AdaSSP in {rounds}",
            "Ridge": f"{ridge:.3g}, added to the sum of squares of each feature",
            "Noise": noise,
        }
        foretold = f"{rounds}, ridge at most {_bound(square.sigma, len(theta)):.3g}; noise of {noise}"
        facts = {"ridge": ridge, "foretold": foretold, "described": described}
        return Regression(public.schema, design, target, "linear", theta, None, facts)

    def _gradients(self, design: Coded, target: str, theta: Floats) -> Gradients:
        norm = largest_norm(design)
        clip = RESIDUAL["linear"] * norm if self.clip is None else self.clip
        return Gradients(design, target, "linear", rounded(theta)[None], clip)


def _bound(sigma: float, size: int) -> float:
    """Return the L2 norm exceeded with chance FAILURE by a symmetric `size` x `size` matrix of noise `sigma`."""
    return sigma * math.sqrt(size * math.log(2 * size**2 / FAILURE))


def _inverted(a: Floats, sigma: float) -> tuple[float, Floats]:
    """Return (ridge r; array, the inverse of A + r I) for the matrix `a` of noisy moments, each entry of noise `sigma`.

    Eigenvalues that the ridge leaves below the noise's own, sigma sqrt(d), are lifted to it: the bound fails sometimes.
    """
    size = len(a)
    levels, vectors = np.linalg.eigh(a)
    ridge = max(0.0, _bound(sigma, size) - max(0.0, float(levels[0])))
    lifted = np.maximum(levels + ridge, sigma * math.sqrt(size))
    return ridge, (vectors / lifted) @ vectors.T
