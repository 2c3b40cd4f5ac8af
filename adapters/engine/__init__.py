"""Graphical models fitted to noisy tables, in numpy and without compilation.

structure   triangulation of the graph of cliques, and its junction tree
forest      message passing in log space, over many trees at once
goal        the objective of a fit and its gradient
solve       marginals nearest to the noisy tables, by mirror descent
reduced     a fit relative to a base model, on the measured columns alone
moved       marginals of a base multiplied by one table's term
marginals   of any columns, many at once
model       the fitted model: marginals, sampling, storage
completing  the other columns of rows of which some are known, each row's own; `beliefs` has the sums and products
"""

from stratsynth.adapters.engine.model import Graphical
from stratsynth.adapters.engine.solve import MeasuredTable, Problem, Solution, engine, solve
from stratsynth.adapters.engine.structure import JunctionTree, junction_tree

__all__ = ["Graphical", "JunctionTree", "MeasuredTable", "Problem", "Solution", "engine", "junction_tree", "solve"]
