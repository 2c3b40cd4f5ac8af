"""Mechanisms, one a file. Each yields questions and returns a model; none of them sees a row."""

from stratsynth.adapters.external import External
from stratsynth.adapters.independent import Independent
from stratsynth.adapters.means import ClippedMean, CoinPress
from stratsynth.adapters.mst import MST

__all__ = ["MST", "ClippedMean", "CoinPress", "External", "Independent"]
