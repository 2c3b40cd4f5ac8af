"""INTERNAL. What the pages of evaluations and of comparisons share: the banner, pictures, tables, disparity cards."""

from stratsynth.evaluation.tables import STAMP

BANNER = f"{STAMP.removeprefix('INTERNAL: ').capitalize()}."
