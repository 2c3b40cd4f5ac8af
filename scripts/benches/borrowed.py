"""`prior --only borrowed`: fits of groups by a prior, with other constants for the part that a group borrows.

`LENT`, `KIN` and `WORTH` are described where they are defined. One is changed at a time, in this process; differences
from the fits with all of them as they are, are paired by seed. `--base pooled` measures `pooled`, any other base MST in
each group.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from benches.prior import SCORES, _census, _files, _fitted, _paired, _shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from studies.figures import Figure

TIMES = (0.1, 0.3, 3.0, 10.0)
"""Factors by which each constant is multiplied."""
CONSTANTS = {
    "LENT": "stratsynth.mechanisms.prior_rows",
    "KIN": "stratsynth.mechanisms.prior_rows",
    "WORTH": "stratsynth.adapters.tilted.borrowed_rows",
}


def run(
    acs: str | None = None,
    prior: str | None = None,
    wrong: str | None = None,
    *,
    base: str = "strata",
    epsilons: Sequence[float] = (0.1, 1.0),
    seeds: int = 5,
    rows: int | None = None,
) -> list[Figure]:
    """The scores with every value, for each prior that should help; `wrong` is not fitted."""
    case = _files(acs, prior, wrong) if acs is not None and prior is not None else _census(rows or 10_000)
    kind = "pooled" if base == "pooled" else "strata"
    figures: list[Figure] = []
    for year, frame in case.good.items():
        given = case.prior(frame)
        for epsilon in epsilons:
            plain = [_fitted(case, kind, epsilon, given, seed) for seed in range(seeds)]
            what = f"{kind}, epsilon {epsilon:g}, prior {year}"
            figures += _shown(f"{what}, constants as they are", plain, [""] * 3, [None] * 3)
            mean = np.mean([found for found, _ in plain], axis=0)
            for name, times in ((name, times) for name in CONSTANTS for times in TIMES):
                with _changed(name, times) as value:
                    runs = [_fitted(case, kind, epsilon, given, seed) for seed in range(seeds)]
                ratios = np.mean([found for found, _ in runs], axis=0) / mean
                against = [f"{r:.3f} of as they are, {_paired(runs, plain, i)}" for i, r in enumerate(ratios)]
                figures += _shown(f"{what}, {name} {value:g}", runs, against, [None] * len(SCORES))
    return figures


@contextmanager
def _changed(name: str, times: float) -> Iterator[float]:
    """A constant so many times as large for a while."""
    module = sys.modules[CONSTANTS[name]]  # the fits before have loaded it
    before = getattr(module, name)
    setattr(module, name, times * before)
    try:
        yield times * before
    finally:
        setattr(module, name, before)
