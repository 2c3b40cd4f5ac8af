"""Mechanisms, one a file. Each yields questions and returns a model; none of them sees a row."""

from stratsynth.adapters.aim import AIM
from stratsynth.adapters.external import External
from stratsynth.adapters.fair_sgd import FairSGD
from stratsynth.adapters.fermi import DPFermi
from stratsynth.adapters.fixed import Fixed
from stratsynth.adapters.gem import GEM
from stratsynth.adapters.independent import Independent
from stratsynth.adapters.means import ClippedMean, CoinPress
from stratsynth.adapters.mst import MST
from stratsynth.adapters.pooled import Pooled
from stratsynth.adapters.predictors import GroupRegression
from stratsynth.adapters.reductions import Reductions

__all__ = [
    "AIM",
    "GEM",
    "MST",
    "ClippedMean",
    "CoinPress",
    "DPFermi",
    "External",
    "FairSGD",
    "Fixed",
    "GroupRegression",
    "Independent",
    "Pooled",
    "Reductions",
]
