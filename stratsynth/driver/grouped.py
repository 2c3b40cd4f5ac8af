"""Exact sums of the losses of logistic models by group and label, many models side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.driver.models import loss_units

if TYPE_CHECKING:
    from stratsynth.driver.clipping import Ints, Which
    from stratsynth.questions.grouped import GroupLosses
    from stratsynth.schema.rows import CodedRows


def group_losses(query: GroupLosses, rows: CodedRows, which: Which) -> list[Ints]:
    """Each model's losses by group and label: every row adds a whole number from 0 to GRID to one coordinate."""
    names, size = (*query.by, query.target), query.cells(rows.schema)
    cell = np.ravel_multi_index([rows.codes[n][which].astype(np.intp) for n in names], rows.schema.shape(names))
    # bincount adds in floats: at most 2^13 rows of at most 2^30 units each, so all partial sums are exact
    found = [np.bincount(cell, weights=units, minlength=size) for units in loss_units(query, rows, which)]
    return [sums.astype(np.int64) for sums in found]
