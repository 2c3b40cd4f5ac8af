"""Private models that predict: regressions and networks by noisy gradient descent, with budgets tailored to groups."""

from stratsynth.adapters.predictors.adassp import AdaSSP
from stratsynth.adapters.predictors.mechanism import GroupRegression
from stratsynth.adapters.predictors.network import Network
from stratsynth.adapters.predictors.regression import Regression

__all__ = ["AdaSSP", "GroupRegression", "Network", "Regression"]
