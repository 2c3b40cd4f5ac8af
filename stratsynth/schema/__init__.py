"""The public description of a table: columns, levels, bounds and the privacy unit.

Reading rows against a schema is in `stratsynth.schema.encoding`, which is imported only where rows are read.
"""

from stratsynth.schema.columns import Categorical, Column, Numeric
from stratsynth.schema.nested import Nested
from stratsynth.schema.rules import Rule
from stratsynth.schema.schema import Schema, Unit
from stratsynth.schema.temporal import Temporal

__all__ = ["Categorical", "Column", "Nested", "Numeric", "Rule", "Schema", "Temporal", "Unit"]
