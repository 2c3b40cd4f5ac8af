"""INTERNAL. Each column by itself: the share of every level among real and synthetic rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.evaluation.tables import Pair, share, stamped

if TYPE_CHECKING:
    import pandas as pd


def column_frame(pair: Pair) -> pd.DataFrame:
    """Frame with a row for each level of each column of a pair's schema: its share of real rows, of synthetic ones.

    The difference is beside them; all rows, no groups.
    """
    import pandas as pd

    parts = []
    for name in pair.schema.names:
        rows = [pair.tabulated(side, name, weigh=False)[-1] for side in (0, 1)]
        real, made = (share(c, c.sum()) for c in (pair.tabulated(side, name)[-1] for side in (0, 1)))
        parts.append(
            pd.DataFrame(
                {
                    "column": pd.array([name] * len(real), "string"),
                    "level": pd.array(list(pair.schema.levels(name)), "string"),
                    "n": rows[0],
                    "n_synthetic": rows[1],
                    "real": real,
                    "synthetic": made,
                    "value": made - real,
                }
            )
        )
    return stamped(pd.concat(parts, ignore_index=True))
