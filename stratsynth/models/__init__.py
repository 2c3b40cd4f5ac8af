"""Results of mechanisms: models that draw rows, estimates, predictors; combining, storing and showing them."""

from stratsynth.models.base import Codes, Model, Returns, State, TableModel, Where, combine
from stratsynth.models.calibrated import Calibrated
from stratsynth.models.estimate import Estimate, Figures
from stratsynth.models.mixture import Mixture
from stratsynth.models.predictor import ByGroup, Predictor

__all__ = [
    "ByGroup",
    "Calibrated",
    "Codes",
    "Estimate",
    "Figures",
    "Mixture",
    "Model",
    "Predictor",
    "Returns",
    "State",
    "TableModel",
    "Where",
    "combine",
]
