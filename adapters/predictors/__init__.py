"""Private models that predict: regressions by projected noisy gradient descent, with budgets tailored to groups."""

from stratsynth.adapters.predictors.mechanism import GroupRegression
from stratsynth.adapters.predictors.regression import Regression

__all__ = ["GroupRegression", "Regression"]
