"""Exact confusion counts of linear classifiers, many side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.driver import design
from stratsynth.driver.models import logits_of
from stratsynth.questions.total import GRID

if TYPE_CHECKING:
    from stratsynth.driver.clipping import Ints, Which
    from stratsynth.questions.confusions import Confusions
    from stratsynth.schema.rows import CodedRows


MOST = 1 << 22
"""The most rows times classifiers that are worked on at a time."""


def confusions(query: Confusions, rows: CodedRows, which: Which) -> list[Ints]:
    """Each classifier's rows by group, label and prediction: every row adds exactly one GRID to one coordinate."""
    whole, _ = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    found: list[Ints] = []
    names, size = (*query.by, query.target), query.cells(rows.schema)
    cell = np.ravel_multi_index([rows.codes[n][which].astype(np.intp) for n in names], rows.schema.shape(names))
    together = max(1, MOST // max(len(x), 1))
    for start in range(0, len(query.thetas), together):
        said = logits_of(x, replace(query, thetas=query.thetas[start : start + together])) > 0  # whole numbers: exact
        first = size * np.arange(len(said))[:, None]
        counts = np.bincount((first + 2 * cell + said).ravel(), minlength=size * len(said))
        found.extend(counts.reshape(len(said), size) * GRID)
    return found
