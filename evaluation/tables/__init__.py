"""INTERNAL. Encoded rows, a real and a synthetic table side by side, and the frames of scores."""

from stratsynth.evaluation.tables.encoded import Array, Codes, EncodedRows, as_schema, chosen, level_values, weighed
from stratsynth.evaluation.tables.frames import (
    EVERYBODY,
    FAR_OFF,
    FEW,
    GROUP,
    NOT_ESTIMABLE,
    OK,
    RESERVED,
    SMALL,
    STAMP,
    joined,
    judged,
    named,
    share,
    stamped,
    statuses,
    tidy,
)  # fmt: skip
from stratsynth.evaluation.tables.pairs import By, Pair, group_numbers, groups_of

__all__ = [
    "EVERYBODY", "FAR_OFF", "FEW", "GROUP", "NOT_ESTIMABLE", "OK", "RESERVED", "SMALL", "STAMP", "Array", "By",
    "Codes", "EncodedRows", "Pair", "as_schema", "chosen", "group_numbers", "groups_of", "joined", "judged",
    "level_values", "named", "share", "stamped", "statuses", "tidy", "weighed",
]  # fmt: skip
