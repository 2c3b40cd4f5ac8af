"""What mechanisms return: models that draw rows, and estimates; how they are combined and stored."""

from stratsynth.models.base import Codes, State, TableModel, Where
from stratsynth.models.estimate import Estimate, Figures
from stratsynth.models.mixture import Mixture, mixture

__all__ = ["Codes", "Estimate", "Figures", "Mixture", "State", "TableModel", "Where", "mixture"]
