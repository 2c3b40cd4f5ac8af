"""Strata: the declared groups, how they are merged, which are small, and budgets of their own."""

from stratsynth.strata.strata import (
    MOST_STRATA,
    Cell,
    Partition,
    Stratum,
    StratumPath,
    check_by,
    crossing,
    disjoint,
    impossible,
    label,
    within,
)

__all__ = [
    "MOST_STRATA",
    "Cell",
    "Partition",
    "Stratum",
    "StratumPath",
    "check_by",
    "crossing",
    "disjoint",
    "impossible",
    "label",
    "within",
]
