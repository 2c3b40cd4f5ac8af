"""Cost and expected noise of a fit, before anything is read or spent."""

from stratsynth.planning.foresee import Plan, plan
from stratsynth.planning.stratum import StratumPlan

__all__ = ["Plan", "StratumPlan", "plan"]
