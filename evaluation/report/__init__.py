"""INTERNAL. Common parts of the pages of evaluations and comparisons: banner, pictures, tables, disparity cards."""

from stratsynth.evaluation.tables import STAMP

BANNER = f"{STAMP.removeprefix('INTERNAL: ').capitalize()}."
