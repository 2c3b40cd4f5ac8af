"""INTERNAL. Each column by itself: the share of every level among real and synthetic rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from stratsynth.evaluation.tables import Pair, share, stamped

if TYPE_CHECKING:
    import pandas as pd


def column_frame(pair: Pair) -> pd.DataFrame:
    """For everybody, a row for each column and level: shares of real and synthetic rows, and synthetic minus real."""
    import pandas as pd

    parts = []
    for name in pair.schema.names:
        counts = np.stack([pair.tabulated(side, name)[-1] for side in (0, 1)])
        real, made = share(counts, counts.sum(axis=1, keepdims=True))
        parts.append(pd.DataFrame({
            "column": pd.array([name] * counts.shape[1], "string"),
            "level": pd.array(list(pair.schema.levels(name)), "string"),
            "n": counts[0], "n_synthetic": counts[1], "real": real, "synthetic": made, "value": made - real,
        }))  # fmt: skip
    return stamped(pd.concat(parts, ignore_index=True))
