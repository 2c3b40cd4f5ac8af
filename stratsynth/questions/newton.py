"""What a Newton step of a logistic model asks of rows: its curvature and its gradient at the same coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import fixed, is_plain
from stratsynth.questions.queries import Block, Design, Query, check_clip, check_target

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema


@known
@dataclass(frozen=True, eq=False)
class Curvature(Query):
    """The upper triangle of 4 p (1 - p) x x', and (p - y) x, for rows clipped to |x| <= clip.

    p is the probability of the target's second level at the given coefficients, and y whether it is that level. Since
    4 p (1 - p) <= 1 and |p - y| <= 1, the blocks are bounded as those of `Moments`, of the vector sqrt(4 p (1 - p)) x
    and of x: exchanging a row moves the first by at most sqrt(2) clip^2. The log loss has a quarter of it as its
    curvature.
    """

    design: Design
    target: str
    """A categorical column of two levels."""
    theta: NDArray[np.float64]
    """One coefficient a feature."""
    clip: float

    def __post_init__(self) -> None:
        """Keep a copy of the coefficients that nobody can change."""
        object.__setattr__(self, "theta", fixed(self.theta))

    def check(self, schema: Schema) -> None:
        """A sound design, a target of two levels outside it, and finite coefficients for its features."""
        check_target("curvature", self.design, self.target, schema, numeric=False)
        check_clip("curvature", self.clip)
        if schema.size(self.target) != 2:
            raise MechanismError(f"curvature: the target needs two levels; {self.target} has not.")
        size = len(self.design.names(schema))
        if not is_plain(self.theta) or self.theta.shape != (size,) or not np.isfinite(self.theta).all():
            raise MechanismError(f"curvature: theta must be {size} finite numbers.")

    def replayed(self) -> Any:
        """All but the coefficients' values, which come from earlier answers."""
        return "curvature", self.design, self.target, self.theta.shape, f"{self.clip:.9g}"

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """The curvature, then the gradient."""
        size = len(self.theta)
        return (Block(size * (size + 1) // 2, self.clip**2, math.sqrt(2)), Block(size, self.clip))
