"""Fitted graphical model as a `TableModel`."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, ClassVar
from weakref import ref

import numpy as np

from stratsynth.adapters.engine.dense import laid_out
from stratsynth.adapters.engine.forest import NEVER, Floats, Forest, sample
from stratsynth.adapters.engine.marginals import Marginals
from stratsynth.adapters.engine.solve import Solution
from stratsynth.adapters.engine.structure import Clique, JunctionTree
from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.models import Codes, State, TableModel, Where

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.models import Mixture
    from stratsynth.models.base import MeasuredCounts
    from stratsynth.schema import Schema


MOST_POTENTIAL = 5e8
"""Bound on the absolute value of a finite stored potential; sums of allowed ones stay far above NEVER."""


class RecentModels:
    """Recently queried models; older ones drop their calibrated tables, so thousands of strata fit in memory."""

    def __init__(self, most: int) -> None:
        """Set `most`, the number of cells that all calibrated tables may have together; one larger model is kept."""
        self.most = most
        self._held = 0
        self._models: deque[tuple[ref[Graphical], int]] = deque()
        self._lock = Lock()

    def add(self, model: Graphical) -> None:
        """Register a model; while all have more than `most` cells, the oldest drop their calibrated tables."""
        with self._lock:
            self._models.append((ref(model), model.tree.cells))
            self._held += model.tree.cells
            while self._held > self.most and len(self._models) > 1:
                first, cells = self._models.popleft()
                self._held -= cells
                forgetting = first()
                if forgetting is not None:
                    # cached properties: the next query computes them again
                    vars(forgetting).pop("_calibrated", None)
                    vars(forgetting).pop("_marginals", None)


ASKED = RecentModels(2**22)
"""Registry of this process; 32 MB of calibrated tables."""


@dataclass(frozen=True, eq=False)
class Graphical(TableModel):
    """A distribution that is a product of potentials on the cliques of a junction tree."""

    kind: ClassVar[str] = "graphical"
    schema: Schema
    tree: JunctionTree
    potentials: tuple[Floats, ...]
    """Log potentials, one table a clique of the tree."""
    total: float
    """Number of records that the noisy tables imply, or the public one; `marginal` returns probabilities."""
    objective: float = 0.0
    """Misfit: half the sum of squared differences from the noisy tables, each divided by its table's sigma."""
    steps: int = 0
    """Steps of mirror descent taken."""
    terms: tuple[tuple[Clique, Floats], ...] = ()
    """Measured tables' cliques and additions to the log potentials, a flat array each, while a fit lasts: rows are
    completed faster by them. No file has them, but those of linked tables."""

    @classmethod
    def of(cls, schema: Schema, solution: Solution) -> Graphical:
        """Return the `Graphical` of a solved problem, `solution`, whose columns and levels are those of `schema`."""
        facts = solution.total, solution.objective, solution.iterations, solution.terms
        return cls(schema, solution.tree, solution.potentials, *facts)

    def _calibrate(self, where: Where) -> tuple[list[Floats], float]:
        """Return (list of each clique's array of probabilities, log partition sum), given `where`.

        `where` maps columns to sets of the level numbers allowed.
        """
        forest = _laid_out(self.tree)
        flat = np.concatenate([table.ravel() for table in self.potentials])
        for column, allowed in where.items():
            cells, part = forest.cells_of(0, (column,))
            # the partition sum over the remaining cells gives the condition's probability
            flat[cells[~np.isin(part, sorted(allowed))]] = NEVER
        probabilities, constants = forest.calibrated(flat)
        return forest.views(probabilities), float(constants[0])

    def marginal(self, columns: Clique) -> Floats:
        """Return the array of the probabilities of the cells of `columns`, axes in that order."""
        return self._marginals.table(columns)

    def oneway(self, column: str) -> Floats:
        """Return the probabilities of one column's levels, an array that adds up to 1."""
        return self.marginal((column,))

    def marginals(self, cliques: Sequence[Clique]) -> list[Floats]:
        """Return a list, each clique's array of cell probabilities, axes in its order; all are computed together."""
        return self._marginals.tables(cliques)

    @cached_property
    def _calibrated(self) -> list[Floats]:
        """List of each clique's probability table; computed anew from the potentials where `ASKED` has dropped it."""
        ASKED.add(self)
        return self._calibrate({})[0]

    @cached_property
    def _marginals(self) -> Marginals:
        """The `Marginals` that compute tables of any columns from the calibrated ones."""
        return Marginals(self.tree, self._calibrated)

    @cached_property
    def _constant(self) -> float:
        """Log partition sum of the model without a condition, a float."""
        return self._calibrate({})[1]

    def mass(self, where: Where) -> float:
        """Return the probability of `where`, {column: set of level numbers allowed}; 1 for {}, 0 if a set is empty."""
        if any(not allowed for allowed in where.values()):
            return 0.0
        return math.exp(min(0.0, self._calibrate(where)[1] - self._constant)) if where else 1.0

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Return `n` rows, {column: array of level numbers}, by randomised rounding by `rng`, that meet `where`.

        `where` maps columns to sets of level numbers; None is no condition. MechanismError for probability 0.
        """
        if where and not self.mass(where) > 0:
            raise MechanismError("no row can meet this condition: its mass under the model is 0.")
        tables = self._calibrate(where)[0] if where else self._calibrated
        rows = sample(self.tree, tables, n, rng)
        return {column: rows[column] for column in self.schema.names}

    def redrawn(self, tables: Sequence[MeasuredCounts], rows: float, times: int, rng: Generator) -> Sequence[Graphical]:
        """Return a list of `times` `Graphical`s refitted to `rows` x its shares in the columns of `tables`.

        Noise by `rng` is added to these; `tables` are triples (columns, counts, sigma), of which the counts are not
        used.
        """
        from stratsynth.adapters.engine.redrawn import redrawn

        return redrawn(self, tables, rows, times, rng)

    @classmethod
    def redrawn_mixed(
        cls, mixture: Mixture, tables: Sequence[MeasuredCounts], rows: float, times: int, rng: Generator
    ) -> Sequence[Mixture]:
        """Return a list of `times` mixtures refitted to `rows` x the shares of `mixture` in the columns of `tables`.

        Noise by `rng` is added to these; `tables` are (columns, counts, sigma), whose counts are not used. Unsupported
        for mixtures over merged strata.
        """
        from stratsynth.adapters.engine.redrawn import redrawn_mixed

        return redrawn_mixed(mixture, tables, rows, times, rng)

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> Graphical:
        """Return the `Graphical` of rows with allowed levels alone, in the columns of `schema`, which has no others.

        `levels` maps columns to lists of the level numbers allowed; a column that it lacks keeps all.
        """
        from stratsynth.adapters.engine.condition import condition

        solution = Solution(self.tree, self.potentials, self.total, self.objective, self.steps)
        return Graphical.of(schema, condition(solution, levels))

    def state(self) -> State:
        """Return the model for a file, a `State`: facts (tree, total, objective, steps), arrays (log potentials).

        The arrays' names are the cliques' numbers, from "0".
        """
        tree = self.tree
        facts = {
            "cliques": [list(clique) for clique in tree.cliques],
            "parents": list(tree.parents),
            "separators": [list(separator) for separator in tree.separators],
            "total": self.total,
            "objective": self.objective,
            "steps": self.steps,
        }
        return State(facts, {str(i): table for i, table in enumerate(self.potentials)})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Graphical:
        """Return the `Graphical`, in a schema, of a stored `State`.

        Refuse (ReleaseError) an unsound tree, potentials or figures.
        """
        facts = state.facts
        sizes = tuple((name, schema.size(name)) for name in schema.names)
        cliques = tuple(tuple(clique) for clique in facts["cliques"])
        separators = tuple(tuple(separator) for separator in facts["separators"])
        tree = JunctionTree(sizes, cliques, tuple(facts["parents"]), separators)
        potentials = tuple(np.asarray(state.arrays[str(i)]) for i in range(len(cliques)))
        _check(schema, tree, potentials)
        numbers = float(facts["total"]), float(facts["objective"]), int(facts["steps"])
        if not all(0 <= number < math.inf for number in numbers):
            raise ReleaseError("model: the stored figures are damaged.")
        return cls(schema, tree, potentials, *numbers)


@lru_cache(maxsize=32)
def _laid_out(tree: JunctionTree) -> Forest:
    """Return the `Forest` of a junction tree, cached for all strata of equal structure; larger than the potentials."""
    return laid_out([tree])


def _check(schema: Schema, tree: JunctionTree, potentials: tuple[Floats, ...]) -> None:
    """Refuse (ReleaseError) a junction tree, or `potentials`, one array a clique, unfit for `schema` or each other."""
    seen: set[str] = set()
    for i, (clique, table) in enumerate(zip(tree.cliques, potentials, strict=True)):
        parent, separator = tree.parents[i], tree.separators[i]
        shared = () if i == 0 else tuple(c for c in clique if c in tree.cliques[parent])
        rooted = parent == -1 if i == 0 else 0 <= parent < i
        # running intersection: the columns a clique shares with all earlier ones are those it shares with its parent
        if not rooted or separator != shared or set(clique) & seen != set(shared) or len(set(clique)) < len(clique):
            raise ReleaseError("model: the stored junction tree is damaged.")
        sound = table.dtype == np.float64 and table.shape == schema.shape(clique)
        if not sound or not ((np.abs(table) <= MOST_POTENTIAL) | (table == NEVER)).all():
            raise ReleaseError("model: the stored potentials are damaged.")
        seen |= set(clique)
    if seen != set(schema.names) or not len(tree.parents) == len(tree.cliques) == len(tree.separators):
        raise ReleaseError("model: the stored junction tree does not cover the schema.")
