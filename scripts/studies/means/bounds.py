"""Error bounds of Laplace means: of a fresh one (equation 1) and of a stratified one (Proposition 8), with constants.

The paper states both up to constants, in the O of complexity. Here they are numbers that hold: for the noise of means
of public sizes that are clipped at B = R + w(n), w(n) = sqrt(2 log(2 n / gamma)), and released for an exchanged record,
so that a group of n people gets Laplace noise of scale 2 B / (n epsilon). Each bound fails with probability gamma at
most; that some value is clipped at all has the probability gamma besides, if values are normal.

The noise of the stratified mean is a sum of independent Laplace variables of the scales s_i = 2 B(|G_i|) / (n epsilon):
equal group sizes cancel, so that a small group adds as much noise as a large one, but for its logarithm. With
probability 1 - gamma such a sum is at most sqrt(8 log(2 / gamma)) max(sqrt(sum s_i^2), max s_i sqrt(log(2 / gamma)))
(Chan, Shi and Song 2011). As log and its root are concave, sum s_i^2 is largest where all groups are equal, which gives
Proposition 8, the factor sqrt(k).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.checks import number
from stratsynth.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def half_width(n: float, gamma: float) -> float:
    """Return w(n): n normal values of deviation 1 all lie within it of their mean with probability 1 - gamma."""
    return math.sqrt(2 * math.log(2 * n / gamma))


def scales(sizes: Sequence[float], radius: float, epsilon: float, gamma: float) -> NDArray[np.float64]:
    """Return the Laplace scale that each group's noise has in the mean of all, for groups of these sizes."""
    number("bounds: epsilon", epsilon, above=0)
    number("bounds: the radius", radius, least=0)
    number("bounds: gamma", gamma, above=0, below=1)
    if not sizes or min(sizes) < 1:
        raise UsageError("bounds: sizes is a list of numbers of at least 1.")
    return np.array([2 * (radius + half_width(size, gamma)) / (sum(sizes) * epsilon) for size in sizes])


def fresh(n: float, radius: float, epsilon: float, gamma: float) -> float:
    """Equation (1): largest distance of a fresh private mean of n people from their own mean."""
    (scale,) = scales([n], radius, epsilon, gamma)
    return float(math.log(1 / gamma) * scale)


def stratified(sizes: Sequence[float], radius: float, epsilon: float, gamma: float) -> float:
    """Proposition 8 for groups of these sizes: largest distance of the stratified mean from the people's own mean."""
    each, tail = scales(sizes, radius, epsilon, gamma), math.log(2 / gamma)
    return math.sqrt(8 * tail) * max(float(np.linalg.norm(each)), float(each.max()) * math.sqrt(tail))


def stratified_at_worst(n: float, k: int, radius: float, epsilon: float, gamma: float) -> float:
    """Proposition 8, whatever the sizes of k groups of n people together: no `stratified` is larger."""
    (equal,) = scales([n / k] * k, radius, epsilon, gamma)[:1]
    (largest,) = scales([n], radius, epsilon, gamma)
    tail = math.log(2 / gamma)
    return math.sqrt(8 * tail) * max(math.sqrt(k) * float(equal), float(largest) * math.sqrt(tail))


def spread(sizes: Sequence[float], radius: float, epsilon: float, gamma: float) -> float:
    """Standard deviation of the noise in the stratified mean; of one group, in the fresh one."""
    return float(math.sqrt(2) * np.linalg.norm(scales(sizes, radius, epsilon, gamma)))
