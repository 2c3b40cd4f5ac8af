"""Graphical models fitted to noisy tables, in numpy and without compilation.

structure   which columns go together: triangulation and junction tree
forest      message passing in log space, over many trees at once
goal        what a fit minimises
solve       the marginals that fit noisy tables best, by mirror descent
reduced     a fit that moves a base, on the tables' columns alone
moved       the marginals of a base that one table has moved
marginals   of any columns, many at once
model       the fitted model: marginals, sampling, storage
"""

from stratsynth.adapters.engine.model import Graphical
from stratsynth.adapters.engine.solve import Measured, Problem, Solution, engine, solve
from stratsynth.adapters.engine.structure import JunctionTree, junction_tree

__all__ = ["Graphical", "JunctionTree", "Measured", "Problem", "Solution", "engine", "junction_tree", "solve"]
