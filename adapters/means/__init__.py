"""Private means: the clipped mean and COINPRESS. Stratified, they give group means and their weighted mean."""

from stratsynth.adapters.means.clipped import ClippedMean
from stratsynth.adapters.means.coinpress import CoinPress

__all__ = ["ClippedMean", "CoinPress"]
