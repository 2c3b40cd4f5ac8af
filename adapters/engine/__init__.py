"""Graphical models fitted to noisy tables, in numpy and without compilation.

structure   which columns go together: triangulation and junction tree
forest      message passing in log space, over many trees at once
solve       the marginals that fit noisy tables best, by mirror descent
model       the fitted model: marginals of any columns, sampling, storage
"""

from stratsynth.adapters.engine.model import Graphical
from stratsynth.adapters.engine.solve import Measured, Problem, Solution, engine, solve
from stratsynth.adapters.engine.structure import JunctionTree, junction_tree

__all__ = ["Graphical", "JunctionTree", "Measured", "Problem", "Solution", "engine", "junction_tree", "solve"]
