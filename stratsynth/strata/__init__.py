"""Strata: the declared groups, their merges, the rules for small groups, and budgets of their own."""

from stratsynth.strata.crossing import check_by, crossing
from stratsynth.strata.ruled import impossible
from stratsynth.strata.strata import Cell, Stratum, StratumPath, disjoint, label, within

__all__ = ["Cell", "Stratum", "StratumPath", "check_by", "crossing", "disjoint", "impossible", "label", "within"]
