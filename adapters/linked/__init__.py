"""Two linked tables drawn from their fitted models: parents, and the child rows of each, one after another.

roles       which column says how many child rows there are, which are counted, added up, and subtracted
drawn       parents with their child rows, as codes and numbers
amounts     numbers that add up
limits      codes that the state of a parent allows its next row
assembly    the drawing, and what it counts
tables      frames with invented keys, in which counts and sums of the child rows are exact

Everything here is made of models and public declarations.
"""

from stratsynth.adapters.linked.assembly import Assembly
from stratsynth.adapters.linked.drawn import DrawnTables
from stratsynth.adapters.linked.roles import CountRole, LinkedModels, LinkRoles, SumRole

__all__ = ["Assembly", "CountRole", "DrawnTables", "LinkRoles", "LinkedModels", "SumRole"]
