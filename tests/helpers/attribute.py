"""Tables of which one column alone is protected, in tests."""

from dataclasses import replace

from helpers.regressing import SCHEMA as ALL
from helpers.small import even
from stratsynth import Categorical, Numeric, Schema
from stratsynth.accounting.budget import Budget, Neighbours
from stratsynth.testing import World

BUDGET = Budget(3, 1e-6, Neighbours.ATTRIBUTE)
OPEN = ("X", "Z", "C", "Y", "D")
"""All columns of `helpers.regressing` but G."""
SCHEMA = replace(
    ALL,
    columns={n: replace(c, public=True) if n in OPEN else replace(c, outside="a") for n, c in ALL.columns.items()},
)
"""Schema of `helpers.regressing`, for people whose group alone is protected."""
SMALL = Schema(
    {
        "GROUP": Categorical(levels=("a", "b", "c"), outside="c"),
        "AREA": Categorical(levels=("n", "s"), public=True),
        "AGE": Numeric(lower=0, upper=40, bins=3, missing=True, public=True),
        "JOB": Categorical(levels=("x", "y", "z"), public=True),
        "SECOND": Categorical(levels=("1", "2"), outside="missing"),
        "WORK": Categorical(levels=("no", "yes"), outside="no", public=True),
    }
)
"""Two protected columns, and public values that leave rows out."""
WORLD = World(SMALL, ("AREA",), even(SMALL, "AREA"), neighbours=Neighbours.ATTRIBUTE)
