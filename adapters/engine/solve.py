"""The graphical model whose marginals fit noisy tables best: weighted least squares over consistent marginals.

    minimise  1/2 sum over tables t of  |marginal_t - noisy_t|^2 / sigma_t^2  -  prior x entropy

over all marginals of a common distribution with the given total. Mirror descent in the log potentials: a step
against the gradient, message passing, and a line search for each model; models of all strata go together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from stratsynth.adapters.engine.forest import NEVER, Floats, Forest, Indices
from stratsynth.adapters.engine.structure import Clique, JunctionTree, check_size, junction_tree

from stratsynth.questions import NoisyTable

CHECK = 25
"""Every so many steps a model's progress is looked at."""
PAYS = 0.7
"""The share of all cells that must still be at work; below it, what is done is taken out."""
MOST_CELLS = 2**24
"""The largest model, in numbers: 128 MB a copy."""
FARTHEST = 50.0
"""The most that a step moves a log potential. Where the best fit is a corner, steps would grow without bound."""
MOST_MOMENTUM = 300
"""For the same reason: so many steps in one direction add up to no more than about 100 of them a step."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A noisy table as the fit sees it: its cells, and which of them count."""

    clique: Clique
    values: NDArray[np.int64]
    sigma: float
    counted: NDArray[np.bool_] | None = None
    """The cells that are fitted; all of them when not given."""

    @classmethod
    def of(cls, table: NoisyTable, counted: NDArray[np.bool_] | None = None) -> Measured:
        """A released table."""
        return cls(table.clique, table.values, table.sigma, counted)


@dataclass(frozen=True, eq=False)
class Problem:
    """Noisy tables of one stratum, and what is known besides."""

    sizes: tuple[tuple[str, int], ...]
    """Every column of the model with its number of levels."""
    tables: tuple[Measured, ...]
    total: float | None = None
    """The number of records if it is public; otherwise it is estimated from the tables."""
    forbidden: Mapping[Clique, Indices] = field(default_factory=dict)
    """Cells, row-major, that cannot occur."""
    start: Solution | None = None
    """A fitted model to start from: one whose cliques are among this one's makes a warm start."""
    prior: float = 0.0
    """How much evenness counts against the misfit: one is as much as a record seen. Where noise drowns the tables,
    the best fit alone would be a single row, the noise's favourite; with a prior it is even."""
    iterations: int = 1000
    tolerance: float = 1e-4
    """Stop when the last `CHECK` steps together improved the objective by less than this share of it."""

    @property
    def size(self) -> int:
        """How much work it is, about: the cells of its model."""
        return self.tree().cells

    def tree(self) -> JunctionTree:
        """The structure that holds every table and every forbidden cell."""
        cliques = {table.clique for table in self.tables} | set(self.forbidden)
        if self.start is not None:
            cliques |= set(self.start.tree.cliques)
        return junction_tree(self.sizes, tuple(sorted(cliques)))


@dataclass(frozen=True, eq=False)
class Solution:
    """A fitted model: log potentials on the cliques of a junction tree, and its total."""

    tree: JunctionTree
    potentials: tuple[Floats, ...]
    """One table of log potentials for each maximal clique, of its shape."""
    total: float
    objective: float
    iterations: int


def engine(name: str) -> Callable[[Sequence[Problem]], list[Solution]]:
    """The solver of that name: `numpy` is this module's, `mbi` is Private-PGM's."""
    if name == "mbi":
        from stratsynth.adapters.engine.reference import solve_mbi

        return solve_mbi
    return solve


def solve(problems: Sequence[Problem]) -> list[Solution]:
    """Solve all problems, together as far as memory allows."""
    trees = [problem.tree() for problem in problems]
    for tree in trees:
        check_size(tree, MOST_CELLS)
    found: list[Solution] = []
    start = 0
    while start < len(problems):
        end, cells = start + 1, trees[start].cells
        while end < len(problems) and cells + trees[end].cells <= MOST_CELLS:
            cells += trees[end].cells
            end += 1
        found.extend(_together(problems[start:end], trees[start:end]))
        start = end
    return found


def _together(problems: Sequence[Problem], trees: Sequence[JunctionTree]) -> list[Solution]:
    """Solve some problems at once; those that are done drop out, so that the slowest do not hold up the rest."""
    totals = np.array([total(problem) for problem in problems])
    found: dict[int, Solution] = {}
    left, state = list(range(len(problems))), None
    while left:
        forest = Forest([trees[i] for i in left])
        mine = [problems[i] for i in left]
        loss = _Loss(forest, mine, totals[left])
        state = _descend(forest, loss, state or _State.first(forest, loss, mine), mine)
        misfit, _ = loss(forest.marginals(state.potentials))
        for place, i in enumerate(left):
            if not state.running[place]:
                tables = _tables(forest, place, state.potentials)
                objective, taken = float(misfit[place]), int(state.taken[place])
                found[i] = Solution(trees[i], tables, float(totals[i]), objective, taken)
        left = [i for place, i in enumerate(left) if state.running[place]]
        state = state.only(forest)
    return [found[i] for i in range(len(problems))]


def total(problem: Problem) -> float:
    """The public total, or the best linear combination of the tables' sums; at least one record."""
    if problem.total is not None:
        return max(1.0, problem.total)
    sums = np.array([table.values.sum() for table in problem.tables], dtype=np.float64)
    weights = np.array([1 / (table.values.size * table.sigma**2) for table in problem.tables])
    return max(1.0, float(sums @ weights / weights.sum())) if len(sums) else 1.0


class _Loss:
    """The objective and its gradient, for all models at once."""

    def __init__(self, forest: Forest, problems: Sequence[Problem], totals: Floats) -> None:
        source, target, owner, noisy, weight, place = [], [], [], [], [], 0
        for number, problem in enumerate(problems):
            for table in problem.tables:
                cells, part = forest.cells_of(number, table.clique)
                source.append(cells)
                target.append(part + place)
                size = table.values.size
                place += size
                owner.append(np.full(size, number, dtype=np.intp))
                noisy.append(table.values.ravel() / totals[number])
                # marginals are probabilities: a difference counts total / sigma times
                counted = 1.0 if table.counted is None else table.counted.ravel()
                weight.append(np.full(size, (totals[number] / table.sigma) ** 2) * counted)
        empty = [np.zeros(0, dtype=np.intp)]
        self._source, self._target = np.concatenate(source or empty), np.concatenate(target or empty)
        self._owner = np.concatenate(owner or empty)
        self._noisy, self._weight = (np.concatenate(x or [np.zeros(0)]) for x in (noisy, weight))
        self._forest, self._number = forest, len(problems)
        self._prior = np.array([problem.prior for problem in problems])
        even, _ = _start(forest, [replace(problem, start=None) for problem in problems])
        self._widest = forest.beliefs(even)[1]
        """The entropy of each model when everything that can occur is equally likely."""

    def at(self, potentials: Floats) -> tuple[Floats, Floats, Floats]:
        """Every cell's probability, what each model minimises, and its gradient."""
        logs, constants = self._forest.beliefs(potentials)
        owner = self._forest.owner
        marginals = np.exp(logs - constants[owner])
        value, gradient = self(marginals)
        if self._prior.any():  # entropy is logZ minus the mean of the potentials, and they are its gradient
            possible = np.where(potentials > NEVER / 2, potentials, 0.0)
            less = np.bincount(owner, weights=possible * marginals, minlength=self._number) - constants + self._widest
            value, gradient = value + self._prior * less, gradient + self._prior[owner] * possible
        return marginals, value, gradient

    def __call__(self, marginals: Floats) -> tuple[Floats, Floats]:
        """The misfit of each model, and its gradient at every cell."""
        fitted = np.bincount(self._target, weights=marginals[self._source], minlength=len(self._noisy))
        off = fitted - self._noisy
        pull = self._weight * off
        objective = np.bincount(self._owner, weights=0.5 * pull * off, minlength=self._number)
        gradient = np.bincount(self._source, weights=pull[self._target], minlength=self._forest.cells)
        return objective.astype(np.float64, copy=False), gradient.astype(np.float64, copy=False)

    def steepness(self) -> Floats:
        """The largest curvature of each model's objective: where its first step starts."""
        found = np.ones(self._number)
        np.maximum.at(found, self._owner, self._weight)
        return found


def _start(forest: Forest, problems: Sequence[Problem]) -> tuple[Floats, NDArray[np.bool_]]:
    """Uniform, or an earlier solution; and which cells cannot occur."""
    potentials, out = np.zeros(forest.cells), np.zeros(forest.cells, dtype=bool)
    for number, problem in enumerate(problems):
        if problem.start is not None:
            for clique, table in zip(problem.start.tree.cliques, problem.start.potentials, strict=True):
                cells, part = forest.cells_of(number, clique)
                potentials[cells] += table.ravel()[part]
        for clique, never in problem.forbidden.items():
            cells, part = forest.cells_of(number, clique)
            out[cells[np.isin(part, never)]] = True
    out |= potentials < NEVER / 2  # what an earlier solution ruled out stays out
    potentials[out] = NEVER
    return potentials, out


@dataclass(frozen=True, eq=False)
class _State:
    """Where the descent of each model stands."""

    potentials: Floats
    last: Floats
    """The potentials one step before."""
    ahead: Floats
    """Where the next step starts."""
    out: NDArray[np.bool_]
    """The cells that cannot occur."""
    momentum: Floats
    """How many steps went well in a row."""
    objective: Floats
    marked: Floats
    """The objective when progress was last looked at."""
    step: Floats
    growth: Floats
    """How much a step grows after a success: fast until it fails for the first time."""
    taken: Indices
    running: NDArray[np.bool_]

    @classmethod
    def first(cls, forest: Forest, loss: _Loss, problems: Sequence[Problem]) -> _State:
        """Before the first step."""
        (potentials, out), number = _start(forest, problems), len(problems)
        _, objective, _ = loss.at(potentials)
        step, growth = 2.0 / loss.steepness(), np.full(number, 2.0)
        taken, running = np.zeros(number, dtype=np.intp), np.ones(number, dtype=bool)
        start, momentum = (potentials, potentials, potentials, out), np.zeros(number)
        return cls(*start, momentum, objective, objective.copy(), step, growth, taken, running)

    def only(self, forest: Forest) -> _State:
        """The models that are not done."""
        kept = self.running
        cells = kept[forest.owner]
        return _State(
            self.potentials[cells], self.last[cells], self.ahead[cells], self.out[cells], self.momentum[kept],
            self.objective[kept], self.marked[kept], self.step[kept], self.growth[kept], self.taken[kept],
            self.running[kept],
        )  # fmt: skip


def _descend(forest: Forest, loss: _Loss, state: _State, problems: Sequence[Problem]) -> _State:
    """Mirror descent with momentum, restarted where it overshoots; every model has its own step.

    A step is taken from a point beyond the last one, in the direction of the last move. It is accepted by half
    of what the gradient promised (Armijo); a refused one is halved, and one that makes the objective worse
    than before costs the momentum. Returns when so many models are done that going on without them pays.
    """
    number, owner = len(problems), forest.owner
    limit = np.array([problem.iterations for problem in problems])
    tolerance = np.array([problem.tolerance for problem in problems])
    potentials, objective, marked = state.potentials, state.objective, state.marked
    step, growth, taken, running = state.step, state.growth, state.taken.copy(), state.running.copy()
    ahead, last, momentum = state.ahead, state.last, state.momentum
    marginals, value, gradient = loss.at(ahead)
    starts = np.searchsorted(owner, np.arange(number))
    weight = np.bincount(owner, minlength=number) / max(1, len(owner))
    while running.any() and weight @ running > PAYS:
        steepest = np.maximum.reduceat(np.abs(gradient), starts)
        step = np.minimum(step, FARTHEST / np.maximum(steepest, 1e-300))
        trial = ahead - (step * running)[owner] * gradient
        trial[state.out] = NEVER  # what cannot occur stays out, whatever its noise pulls at
        moved, reached, _ = loss.at(trial)
        promised = np.bincount(owner, weights=gradient * (marginals - moved), minlength=number)
        sound = running & (value - reached >= 0.5 * promised)
        better = sound & (reached <= objective)
        growth = np.where(sound | ~running, growth, 1.2)
        step = np.where(sound, step * growth, step * 0.5)
        momentum = np.where(better, np.minimum(momentum + 1, MOST_MOMENTUM), np.where(sound, 0, momentum))
        last = np.where(better[owner], potentials, last)
        potentials = np.where(better[owner], trial, potentials)
        objective = np.where(better, reached, objective)
        taken += running
        check = running & (taken % CHECK == 0)
        running &= ~check | (marked - objective > tolerance * marked)
        marked = np.where(check, objective, marked)
        running &= taken < limit
        if sound.any():
            push = np.where(better, momentum / (momentum + 3), 0.0)
            beyond = potentials + push[owner] * (potentials - last)
            ahead = np.where(sound[owner], beyond, ahead)
            marginals, value, gradient = loss.at(ahead)
    return _State(potentials, last, ahead, state.out, momentum, objective, marked, step, growth, taken, running)


def _tables(forest: Forest, number: int, potentials: Floats) -> tuple[Floats, ...]:
    tree = forest.trees[number]
    return tuple(
        potentials[start : start + int(np.prod(tree.shape(clique)))].reshape(tree.shape(clique)).copy()
        for clique, start in zip(tree.cliques, forest.offsets[number], strict=True)
    )
