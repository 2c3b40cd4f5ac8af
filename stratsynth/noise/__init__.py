"""Integer noise and exact random choices, from the operating system's entropy.

>>> from stratsynth.noise import gaussian, laplace
>>> gaussian.sample(5.8, (3, 4))     # int64 draws of the discrete Gaussian
>>> gaussian.tv_error(5.8)           # total variation between a draw and the law, to be charged to delta
>>> laplace.sample(Fraction(3, 2), 10)    # exact: nothing to be charged
"""

from stratsynth.noise import gaussian, laplace
from stratsynth.noise.bernoulli import poisson_coins
from stratsynth.noise.choice import WeightCache, exponential_choice
from stratsynth.noise.entropy import Entropy, SeededEntropy, SystemEntropy

__all__ = [
    "Entropy",
    "SeededEntropy",
    "SystemEntropy",
    "WeightCache",
    "exponential_choice",
    "gaussian",
    "laplace",
    "poisson_coins",
]
