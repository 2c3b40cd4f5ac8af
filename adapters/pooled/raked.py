"""Models of strata, moved together until their mixture has everybody's tables.

Strata measure with more noise than everybody did, so their mixture is farther from the tables that everybody's model
was fitted to than that model is. One factor for each cell of these tables, common to all strata, is therefore added to
their models (raking). The factors minimise, over all strata s with shares w,

    sum of w KL(raked s, s)  +  1/2 sum over tables t of  |mixture's t - everybody's t|^2 / v_t

with v_t = `SURE` x (sigma_t / records)^2 + `SURER` x (sigma_t / sigma)^2, where sigma is the noise of a stratum's own
table: everybody's tables count as much as their noise allows beside that of strata. This is least squares, as in
`stratsynth.adapters.engine.solve`, solved in its dual, where factors are bounded. Targets are everybody's fitted
tables, as noisy ones would be fitted twice; cells that were not fitted to their noise get no factor.

Every stratum's tree holds everybody's tables, so a raked model is a graphical model on the same tree: impossible cells
stay impossible, and strata keep their shares. Strata that measured nothing have everybody's tables already, and keep
their model. Misfit and steps that a model states stay those of its own fit. Answers by measured tables do not depend
on any of this, which is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.engine import Graphical
from stratsynth.adapters.engine.dense import is_large, laid_out
from stratsynth.adapters.engine.forest import NEVER
from stratsynth.adapters.shared.graphical import GraphicalLearner
from stratsynth.adapters.tilted.arbiter import Arbiter
from stratsynth.models import Mixture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.engine import MeasuredTable
    from stratsynth.adapters.engine.forest import Floats, Forest, Maps
    from stratsynth.adapters.shared.learner import Learner
    from stratsynth.models import Model
    from stratsynth.questions import Clique
    from stratsynth.strata import Stratum

SURE, SURER = 1_000.0, 0.01
"""Weight of the strata's models beside everybody's tables: in records, and in (records / sigma)^2, which grows with
their budget. Chosen on the excerpt by `scripts/bench pooled`."""
FARTHEST = math.log(5)
"""Largest change of a log potential by one table."""
STEPS = 15
"""Largest number of steps."""
MOST_CELLS = 2**22
"""Largest number of cells of all moved strata's models together: more are left as they are, which saves time."""
SELDOM = 1e-5
"""Probability of a cell below which steps are scaled as for one of this probability."""


def raked(model: Model, everybody: Learner[Any], sigma: float) -> Model:
    """Return the mixture of strata's models, moved to the tables of everybody's learner.

    `sigma` is the usual noise scale of a stratum's own table. The model itself is returned where nothing is to be
    moved: without graphical models that measured something, with rows of a prior, or above `MOST_CELLS` cells.
    """
    if isinstance(everybody, Arbiter):  # whose own learner strata went on from, where they left the prior
        everybody = everybody.own
    if not isinstance(model, Mixture) or not isinstance(everybody, GraphicalLearner):
        return model
    if any(part.of_prior for part in model.parts.values()):
        return model
    moved = {s: part for s, part in model.parts.items() if isinstance(part, Graphical) and part.terms}
    weights = np.array([model.weights[stratum] for stratum in moved])
    if not everybody.tables or not weights.sum() > 0 or sum(part.tree.cells for part in moved.values()) > MOST_CELLS:
        return model
    tables = _largest(everybody.tables)
    cliques = [table.clique for table in tables]
    blocks = _blocks(moved, weights / weights.sum(), cliques)
    goal = _Goal(
        blocks,
        np.concatenate([np.asarray(table, np.float64).ravel() for table in everybody.marginals(cliques)]),
        np.concatenate([np.full(t.values.size, t.sigma**2) for t in tables])
        * (SURE / everybody.total**2 + SURER / sigma**2),
        np.concatenate([np.ones(t.values.size, bool) if t.counted is None else t.counted.ravel() for t in tables]),
    )
    factors = goal.factors()
    return replace(
        model, parts={**model.parts, **{s: part for block in blocks for s, part in block.with_factors(factors)}}
    )


def _largest(tables: Sequence[MeasuredTable]) -> list[MeasuredTable]:
    """Return a list of `tables`, of each clique the one with least noise, without those that are part of another."""
    best = {table.clique: table for table in sorted(tables, key=lambda table: -table.sigma)}
    return [one for clique, one in best.items() if not any(set(clique) < set(other) for other in best)]


@dataclass(frozen=True, eq=False)
class _Block:
    """Strata whose models are calibrated together."""

    strata: Mapping[Stratum, Graphical]
    weights: Floats
    """Share of each stratum."""
    forest: Forest
    potentials: Floats
    """Log potentials of all models, one after another."""
    maps: Maps
    """Maps between the models' cells and everybody's tables, once a stratum."""

    def at(self, factors: Floats) -> tuple[Floats, float]:
        """Return (array of the mixture's tables, sum of weighted log partition sums) after log `factors`."""
        every = np.tile(factors, len(self.strata))
        cells, constants = self.forest.calibrated(self.potentials + self.maps.spread(every))
        tables = self.maps.gather(cells).reshape(len(self.strata), len(factors))
        return self.weights @ tables, float(self.weights @ constants)

    def with_factors(self, factors: Floats) -> Iterator[tuple[Stratum, Graphical]]:
        """Yield (stratum, its model with the log `factors` added to its potentials)."""
        cells = self.potentials + self.maps.spread(np.tile(factors, len(self.strata)))
        cells = np.where(self.potentials <= NEVER / 2, NEVER, cells)
        for number, (stratum, part) in enumerate(self.strata.items()):
            tables = tuple(table.copy() for table in self.forest.views(cells, number))
            yield stratum, replace(part, potentials=tables, terms=())


def _blocks(strata: Mapping[Stratum, Graphical], weights: Floats, cliques: Sequence[Clique]) -> list[_Block]:
    """Return a list of `_Block`s of the strata with these weights: each large model alone, all small ones together."""
    large = [[stratum] for stratum, part in strata.items() if is_large(part.tree)]
    small = [stratum for stratum, part in strata.items() if not is_large(part.tree)]
    share = dict(zip(strata, weights.tolist(), strict=True))
    blocks = []
    for some in (*large, *([small] if small else [])):
        parts = {stratum: strata[stratum] for stratum in some}
        forest = laid_out([part.tree for part in parts.values()])
        potentials = np.concatenate([table.ravel() for part in parts.values() for table in part.potentials])
        maps = forest.maps([(number, clique) for number in range(len(parts)) for clique in cliques])
        blocks.append(_Block(parts, np.array([share[stratum] for stratum in some]), forest, potentials, maps))
    return blocks


@dataclass(frozen=True, eq=False)
class _Goal:
    """Least squares of the mixture's tables, in one line of cells."""

    blocks: Sequence[_Block]
    targets: Floats
    """Probability of each cell of everybody's tables."""
    spreads: Floats
    """The v of each cell's table."""
    fitted: NDArray[np.bool_]
    """Mask of the cells that get a factor."""

    def at(self, factors: Floats) -> tuple[Floats, float]:
        """Return (array of the mixture's tables, sum of weighted log partition sums) after log `factors`."""
        tables, constants = zip(*(block.at(factors) for block in self.blocks), strict=True)
        return np.sum(tables, axis=0), math.fsum(constants)

    def factors(self) -> Floats:
        """Return the array of log factors that reach the goal, or are near it after `STEPS` steps."""
        from scipy.optimize import minimize

        before, constant = self.at(np.zeros(len(self.targets)))
        # steps are taken in units of the curvature of each cell alone
        scale = 1 / np.sqrt(np.maximum(before, SELDOM) + self.spreads)

        def dual(steps: Floats) -> tuple[float, Floats]:
            factors = steps * scale
            tables, now = self.at(factors)
            value = now - constant - float(self.targets @ factors) + 0.5 * float(self.spreads @ factors**2)
            return value, (tables - self.targets + self.spreads * factors) * scale

        farthest = np.where(self.fitted, FARTHEST / scale, 0.0)
        bounds, options = np.stack([-farthest, farthest], axis=1), {"maxiter": STEPS}
        found = minimize(dual, np.zeros(len(scale)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        factors: Floats = found.x * scale
        return factors
