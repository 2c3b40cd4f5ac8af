"""The fitted graphical model as a table model."""

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
from stratsynth.adapters.engine.forest import NEVER, Floats, Forest
from stratsynth.adapters.engine.marginals import Marginals
from stratsynth.adapters.engine.sampling import sample
from stratsynth.adapters.engine.solve import Solution
from stratsynth.adapters.engine.structure import Clique, JunctionTree
from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.models import Codes, State, TableModel, Where

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.models import Mixture
    from stratsynth.schema import Schema


MOST_POTENTIAL = 5e8
"""Larger than any fitted log potential in size; NEVER stays far below any sum of what is allowed."""


class Asked:
    """Models that were asked last; others forget their calibrated tables, one for each of thousands of strata."""

    def __init__(self, most: int) -> None:
        """`most` is how many numbers these tables may hold together, unless one model alone holds more."""
        self.most = most
        self._held = 0
        self._models: deque[tuple[ref[Graphical], int]] = deque()
        self._lock = Lock()

    def add(self, model: Graphical) -> None:
        """Count a model's tables; those that were counted first make room for them."""
        with self._lock:
            self._models.append((ref(model), model.tree.cells))
            self._held += model.tree.cells
            while self._held > self.most and len(self._models) > 1:
                first, cells = self._models.popleft()
                self._held -= cells
                forgetting = first()
                if forgetting is not None:
                    vars(forgetting).pop("_calibrated", None)
                    vars(forgetting).pop("_marginals", None)


ASKED = Asked(2**22)
"""Of this process; 32 MB."""


@dataclass(frozen=True, eq=False)
class Graphical(TableModel):
    """A distribution that is a product of potentials on the cliques of a junction tree."""

    kind: ClassVar[str] = "graphical"
    schema: Schema
    tree: JunctionTree
    potentials: tuple[Floats, ...]
    """Log potentials, a table for each clique of the tree."""
    total: float
    """The number of records that the noisy tables spoke of; `marginal` is in probabilities."""
    objective: float = 0.0
    """How far the fit is from the noisy tables: half the squared distances in units of their noise."""
    steps: int = 0
    """How many steps the fit took."""

    @classmethod
    def of(cls, schema: Schema, solution: Solution) -> Graphical:
        """The model of a solved problem."""
        return cls(schema, solution.tree, solution.potentials, solution.total, solution.objective, solution.iterations)

    def _calibrate(self, where: Where) -> tuple[list[Floats], float]:
        """Each clique's probabilities, and the log partition sum."""
        forest = _laid_out(self.tree)
        flat = np.concatenate([table.ravel() for table in self.potentials])
        for column, allowed in where.items():
            cells, part = forest.cells_of(0, (column,))
            flat[cells[~np.isin(part, sorted(allowed))]] = NEVER
        probabilities, constants = forest.calibrated(flat)
        return forest.views(probabilities), float(constants[0])

    def marginal(self, columns: Clique) -> Floats:
        """The probabilities of some columns' cells, axes in their order."""
        return self._marginals.table(columns)

    def oneway(self, column: str) -> Floats:
        """The marginal of one column."""
        return self.marginal((column,))

    def marginals(self, cliques: Sequence[Clique]) -> list[Floats]:
        """The probabilities of many sets of columns, worked out together."""
        return self._marginals.tables(cliques)

    @cached_property
    def _calibrated(self) -> list[Floats]:
        """Each clique's probabilities, as large as the potentials: see `Asked`."""
        ASKED.add(self)
        return self._calibrate({})[0]

    @cached_property
    def _marginals(self) -> Marginals:
        """Routes through the calibrated tables, by which any columns' marginals are found."""
        return Marginals(self.tree, self._calibrated)

    @cached_property
    def _constant(self) -> float:
        """The log partition sum."""
        return self._calibrate({})[1]

    def mass(self, where: Where) -> float:
        """How much of the partition sum is left when other levels cannot occur."""
        if any(not allowed for allowed in where.values()):
            return 0.0
        return math.exp(min(0.0, self._calibrate(where)[1] - self._constant)) if where else 1.0

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Rows by randomised rounding; a condition is put into the model first, so no row is thrown away."""
        if where and not self.mass(where) > 0:
            raise MechanismError("no row can meet this condition: its mass under the model is 0.")
        tables = self._calibrate(where)[0] if where else self._calibrated
        rows = sample(self.tree, tables, n, rng)
        return {column: rows[column] for column in self.schema.names}

    def redrawn(
        self, tables: Sequence[tuple[Clique, float]], rows: float, times: int, rng: Generator
    ) -> Sequence[Graphical]:
        """The tables that this model holds, counted in it with noise of their own, and fitted all together."""
        from stratsynth.adapters.engine.redrawn import redrawn

        return redrawn(self, tables, rows, times, rng)

    @classmethod
    def redrawn_mixed(
        cls, mixture: Mixture, tables: Sequence[tuple[Clique, float]], rows: float, times: int, rng: Generator
    ) -> Sequence[Mixture]:
        """Everybody's tables, counted in the mixture with noise of their own, fitted beside the public shares."""
        from stratsynth.adapters.engine.redrawn import redrawn_mixed

        return redrawn_mixed(mixture, tables, rows, times, rng)

    def given(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> Graphical:
        """The model conditioned on these levels."""
        from stratsynth.adapters.engine.condition import condition

        solution = Solution(self.tree, self.potentials, self.total, self.objective, self.steps)
        return Graphical.of(schema, condition(solution, levels))

    def state(self) -> State:
        """Cliques as facts, potentials as arrays."""
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
        """Check what a file claims: a tree over just these columns, with finite potentials of the right shapes."""
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
    """One for all strata of the same structure, and not one for each: index arrays are larger than the potentials."""
    return laid_out([tree])


def _check(schema: Schema, tree: JunctionTree, potentials: tuple[Floats, ...]) -> None:
    seen: set[str] = set()
    for i, (clique, table) in enumerate(zip(tree.cliques, potentials, strict=True)):
        parent, separator = tree.parents[i], tree.separators[i]
        shared = () if i == 0 else tuple(c for c in clique if c in tree.cliques[parent])
        rooted = parent == -1 if i == 0 else 0 <= parent < i
        # running intersection: what a clique shares with earlier ones, it shares with its parent
        if not rooted or separator != shared or set(clique) & seen != set(shared) or len(set(clique)) < len(clique):
            raise ReleaseError("model: the stored junction tree is damaged.")
        sound = table.dtype == np.float64 and table.shape == schema.shape(clique)
        if not sound or not ((np.abs(table) <= MOST_POTENTIAL) | (table == NEVER)).all():
            raise ReleaseError("model: the stored potentials are damaged.")
        seen |= set(clique)
    if seen != set(schema.names) or not len(tree.parents) == len(tree.cliques) == len(tree.separators):
        raise ReleaseError("model: the stored junction tree does not cover the schema.")
