"""What cannot occur, as the engine takes it: the schema's structural zeros by cliques."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.questions import Clique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

Forbidden = dict[Clique, "NDArray[np.intp]"]
"""Cells, row-major, that cannot occur, by the columns they speak of."""


def forbidden(schema: Schema) -> Forbidden:
    """The schema's structural zeros, as cells of the cliques that they speak of."""
    found: Forbidden = {}
    for rule in schema.rules:
        for box in rule.cells(schema):
            # a column all of whose levels are in the box has no say in it
            clique = tuple(name for name in schema.names if name in box and len(box[name]) < schema.size(name))
            if not clique:
                continue
            never = np.zeros(schema.shape(clique), dtype=bool)
            never[np.ix_(*(sorted(box[name]) for name in clique))] = True
            cells = np.flatnonzero(never)
            found[clique] = np.union1d(found[clique], cells) if clique in found else cells
    return found
