"""Two linked tables drawn from a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stratsynth.checks import check_integer, check_seed

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.release.release import Release


def linked_draw(release: Release, n: int | None, seed: int | None) -> Mapping[str, pa.Table]:
    """Return n parents (None: the declared number) and their child rows by `seed`, as Arrow tables, parents first.

    UsageError for a release of no linked tables, or a number that is unknown or none.
    """
    import numpy as np

    check_integer("n", n, 0, optional=True)
    check_seed(seed)
    number = release.model.rows_to_draw(n, release.declared_size)
    return release.model.linked_tables(number or 0, np.random.default_rng(seed))
