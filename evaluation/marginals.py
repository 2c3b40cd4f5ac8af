"""Distances between two tables' marginals, overall and in each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

Codes = Mapping[str, "NDArray[Any]"]


def coded(frame: Any, schema: Schema) -> Codes:
    """A frame, path or Arrow table as level numbers."""
    from stratsynth.schema.codec import encode
    from stratsynth.sources import open_source

    return encode(schema, open_source(frame).read(schema.names)).codes


def some_cliques(columns: Sequence[str], k: int, most: int) -> list[tuple[str, ...]]:
    """All sets of k columns, or as many fixed ones as are wanted."""
    every = list(combinations(columns, k))
    if len(every) <= most:
        return every
    return [every[i] for i in np.random.default_rng(5).permutation(len(every))[:most]]


def mean_l1(one: Codes, two: Codes, schema: Schema, cliques: Sequence[tuple[str, ...]]) -> float:
    """The mean over cliques of the L1 distance (0 to 2) of two tables' normalised counts."""
    return float(np.mean([np.abs(_share(one, schema, c) - _share(two, schema, c)).sum() for c in cliques]))


def members(codes: Codes, schema: Schema, group: Mapping[str, str]) -> Codes:
    """The rows of one group."""
    kept = np.ones(len(next(iter(codes.values()))), dtype=bool)
    for column, level in group.items():
        kept &= codes[column] == schema.index(column, level)
    return {name: column[kept] for name, column in codes.items()}


def _share(codes: Codes, schema: Schema, clique: tuple[str, ...]) -> NDArray[np.float64]:
    """Normalised counts; all zero for an empty table, which is then at distance 1 of any other."""
    shape = schema.shape(clique)
    cells = np.ravel_multi_index([codes[c].astype(np.int64) for c in clique], shape)
    counted = np.bincount(cells, minlength=int(np.prod(shape)))
    share: NDArray[np.float64] = counted / float(max(1, int(counted.sum())))
    return share
