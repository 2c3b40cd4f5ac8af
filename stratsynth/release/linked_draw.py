"""Two linked tables drawn from a release."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from stratsynth.checks import check_integer, check_seed

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.release.release import Release

STATED = ("parents", "rows", "backed_off", "relaxed", "other_bands")
"""Counts of a drawing that certificates state."""


def linked_draw(
    release: Release, n: int | None, seed: int | None, counted: MutableMapping[str, Any] | None = None
) -> Mapping[str, pa.Table]:
    """Return a mapping from table's name to Arrow table: n parents (None: as declared), then child rows, by `seed`.

    What drawing had to give up is noted in `counted`, as the certificate's `drawn` states it. UsageError for a release
    of no linked tables, or a number that is unknown or none.
    """
    import numpy as np

    check_integer("n", n, 0, optional=True)
    check_seed(seed)
    number = release.model.rows_to_draw(n, release.declared_size)
    found: dict[str, Any] = {}
    tables = release.model.linked_tables(number or 0, np.random.default_rng(seed), found)
    if counted is not None:
        counted.update((key, value) for key, value in found.items() if key in STATED)
    return tables
