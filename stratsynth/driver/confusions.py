"""Exact confusion counts of linear classifiers, many side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.driver import design
from stratsynth.driver.models import logits_of
from stratsynth.questions.total import GRID

if TYPE_CHECKING:
    from stratsynth.driver.clipping import Ints, PathRows, Which
    from stratsynth.questions.confusions import Confusions


def confusions(query: Confusions, rows: PathRows, which: Which) -> list[Ints]:
    """Each classifier's rows by group, label and prediction: every row adds exactly one GRID to one coordinate."""
    whole, _ = design.whole(query.design, rows, which)
    said = logits_of(whole.astype(np.float64), query) > 0  # whole numbers: exact
    names, size = (*query.by, query.target), query.cells(rows.schema)
    cell = np.ravel_multi_index([rows.codes[n][which].astype(np.intp) for n in names], rows.schema.shape(names))
    first = size * np.arange(len(said))[:, None]
    found = np.bincount((first + 2 * cell + said).ravel(), minlength=size * len(said))
    return list(found.reshape(len(said), size) * GRID)
