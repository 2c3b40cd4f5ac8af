"""Different texts of a column's values: for drafts, which are INTERNAL, and of public files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.schema.values import as_texts, distinct_values, hashable

if TYPE_CHECKING:
    import pyarrow as pa


def counted(data: pa.ChunkedArray) -> dict[str, int]:
    """INTERNAL. Return {text: number of rows} for the Arrow column `data`; null and unreadable values are left out."""
    found: dict[str, int] = {}
    for piece in distinct_values(data):
        where = piece.indices.drop_null().to_numpy()
        times = np.bincount(where, minlength=len(piece.dictionary))
        for text, count in zip(texts(piece.dictionary, keep_null=True), times.tolist(), strict=True):
            if text is not None and count:
                found[text] = found.get(text, 0) + count
    return found


def texts(distinct: pa.Array, *, keep_null: bool = False) -> list[Any]:
    """INTERNAL. Return a list of texts of the Arrow array `distinct`; nulls left out, or None if `keep_null`."""
    found = as_texts(hashable(distinct)).to_pylist()
    return found if keep_null else [text for text in found if text is not None]
