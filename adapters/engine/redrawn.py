"""A graphical model fitted again to tables with other noise: how far noise moves what is drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from stratsynth.adapters.engine.model import Graphical
from stratsynth.adapters.engine.solve import Measured, Problem, solve
from stratsynth.adapters.engine.structure import Clique
from stratsynth.adapters.engine.zeros import forbidden

if TYPE_CHECKING:
    from numpy.random import Generator

PRIOR = 1.0
"""The pull towards uniform of every fit, in records, which mechanisms have by default."""


def redrawn(
    model: Graphical, tables: Sequence[tuple[Clique, float]], rows: float, times: int, rng: Generator
) -> list[Graphical]:
    """Models as other noise would have made them, if this one were the truth; see `TableModel.redrawn`."""
    sizes = tuple((name, model.schema.size(name)) for name in model.schema.names)
    held = [set(clique) for clique in model.tree.cliques]
    kept = [(clique, sigma) for clique, sigma in tables if any(set(clique) <= inside for inside in held)]
    rules = {clique: cells for clique, cells in forbidden(model.schema).items()
             if any(set(clique) <= inside for inside in held)}  # fmt: skip
    true = [rows * marginal for marginal in model.marginals([clique for clique, _ in kept])]
    problems = []
    for _ in range(times):
        noisy = tuple(
            Measured(clique, np.rint(counted + rng.normal(0, sigma, counted.shape)).astype(np.int64), sigma)
            for (clique, sigma), counted in zip(kept, true, strict=True)
        )
        problems.append(Problem(sizes, noisy, max(rows, 1.0), rules, prior=PRIOR))
    return [Graphical.of(model.schema, solution) for solution in solve(problems)]
