"""What mechanisms return: models that draw rows, and how they are combined and stored."""

from stratsynth.models.base import Codes, State, TableModel, Where
from stratsynth.models.mixture import Mixture, mixture

__all__ = ["Codes", "Mixture", "State", "TableModel", "Where", "mixture"]
