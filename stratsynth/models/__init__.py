"""What mechanisms return: models that draw rows, and estimates; how they are combined and stored."""

from stratsynth.models.base import Codes, Model, Returns, State, TableModel, Where
from stratsynth.models.estimate import Estimate, Figures
from stratsynth.models.mixture import Mixture, combine

__all__ = ["Codes", "Estimate", "Figures", "Mixture", "Model", "Returns", "State", "TableModel", "Where", "combine"]
