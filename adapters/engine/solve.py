"""The graphical model whose marginals fit noisy tables best: weighted least squares over consistent marginals.

    minimise  1/2 sum over tables t of  |marginal_t - noisy_t|^2 / sigma_t^2  +  prior x KL(model, base)

over all distributions with the given total; the base is uniform unless another is given. The fitted distribution is
base x exp(sum of a term for each table), and the unknowns are these terms: mirror descent, a step against the gradient,
message passing, and a line search for each model; models of all strata are solved together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine.dense import is_large, laid_out
from stratsynth.adapters.engine.forest import Floats, Indices
from stratsynth.adapters.engine.goal import Objectives
from stratsynth.adapters.engine.restricted_fit import extended, reduced
from stratsynth.adapters.engine.structure import Clique, JunctionTree, check_size, junction_tree
from stratsynth.questions import NoisyTable, Solver

CHECK = 25
"""Steps between two checks of a model's progress."""
PAYS = 0.7
"""Fraction of all cells: when unfinished models have less, finished ones are removed from the batch."""
MOST_CELLS = 2**24
"""Largest model, in cells: 128 MB a copy."""
TOGETHER = 2**16
"""Largest batch of small models, in cells: a fit holds some twenty copies of them."""
FARTHEST = 50.0
"""Largest change of a log potential in one step. Without it, steps grow without bound if the optimum is a corner."""
MOST_MOMENTUM = 300
"""Largest number of steps whose momentum adds up, for that reason: together they move at most about 100 steps."""


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """One noisy table to be fitted: cells, noise scale, and a mask of the cells that count."""

    clique: Clique
    values: NDArray[np.int64] | Floats
    """Noisy counts; of a public table, numbers of records that need not be integers."""
    sigma: float
    counted: NDArray[np.bool_] | None = None
    """Mask of the cells that are fitted; None for all."""

    @classmethod
    def of(cls, table: NoisyTable, counted: NDArray[np.bool_] | None = None) -> MeasuredTable:
        """Return a released `NoisyTable` as a `MeasuredTable`, to be fitted in all cells or in those of a mask.

        The mask is `counted`.
        """
        return cls(table.clique, table.values, table.sigma, counted)


@dataclass(frozen=True, eq=False)
class Problem:
    """One stratum's fitting problem: noisy tables, public facts, start and stopping rule."""

    sizes: tuple[tuple[str, int], ...]
    """Every column of the model with its number of levels."""
    tables: tuple[MeasuredTable, ...]
    total: float | None = None
    """Number of records if it is public; otherwise it is estimated from the tables."""
    forbidden: Mapping[Clique, Indices] = field(default_factory=dict)
    """Impossible cells, row-major, by clique."""
    base: Solution | None = None
    """Model that the fit departs from; None for the uniform distribution."""
    start: Solution | None = None
    """Warm start: tables of its cliques begin with its terms."""
    prior: float = 0.0
    """Weight of the divergence from the base, in records. Where noise drowns the tables, the best fit alone would be a
    single row favoured by noise; with a prior it is near the base."""
    iterations: int = 1000
    tolerance: float = 1e-4
    """Stop when the last `CHECK` steps together improved the objective by at most this fraction of it."""

    def tree(self) -> JunctionTree:
        """Return the `JunctionTree` that covers every table, every structural zero and the base."""
        cliques = {table.clique for table in self.tables} | set(self.forbidden)
        if self.base is not None:
            cliques |= set(self.base.tree.cliques)
        return junction_tree(self.sizes, tuple(sorted(cliques)))


@dataclass(frozen=True, eq=False)
class Solution:
    """A fitted model: log potentials on the cliques of a junction tree, and its total."""

    tree: JunctionTree
    potentials: tuple[Floats, ...]
    """Log potentials: one table a clique of the tree, in its shape."""
    total: float
    objective: float
    """Misfit: half the sum of squared differences from the tables, each divided by its table's sigma."""
    iterations: int
    terms: tuple[tuple[Clique, Floats], ...] = ()
    """Each table's clique and its addition to the log potentials: the start of a later fit."""


def engine(name: str) -> Solver[Problem, Solution]:
    """Return the `Solver`, `Problem` to `Solution`, of graphical models by name: Private-PGM's for `mbi`, else ours."""
    if name == "mbi":
        from stratsynth.adapters.engine.reference import solve_mbi

        return Solver(solve_mbi, size=_cells, hasty=_hasty)
    return ENGINE


def _cells(problem: Problem) -> float:
    """Return the work of a problem, for sharing it out: the cells of its model."""
    return problem.tree().cells


def _hasty(problem: Problem) -> Problem:
    """Return a copy of the problem with one iteration, for rehearsals, which ignore the fit."""
    return replace(problem, iterations=1)


def solve(problems: Sequence[Problem]) -> list[Solution]:
    """Return a list of the problems' `Solution`s; those with a base use measured columns alone where that pays.

    Unsupported for a model above `MOST_CELLS` cells.
    """
    moving = {i: problem for i, problem in enumerate(problems) if problem.base is not None}
    fewer = {i: less for i, problem in moving.items() if (less := reduced(problem)) is not None}
    for i in fewer:
        check_size(problems[i].tree(), MOST_CELLS)
    some = _solved(list(fewer.values()))
    found = {i: extended(problems[i], solution) for i, solution in zip(fewer, some, strict=True)}
    others = [i for i in range(len(problems)) if i not in fewer]
    found.update(zip(others, _solved([problems[i] for i in others]), strict=True))
    return [found[i] for i in range(len(problems))]


def _solved(problems: Sequence[Problem]) -> list[Solution]:
    """Return a list of the problems' `Solution`s: large ones alone, one a core; small ones in batches.

    A batch has `TOGETHER` cells.
    """
    trees = [problem.tree() for problem in problems]
    for tree in trees:
        check_size(tree, MOST_CELLS)
    large = [[i] for i, tree in enumerate(trees) if is_large(tree)]
    small = [i for i, tree in enumerate(trees) if not is_large(tree)]

    def solved(some: list[int]) -> list[Solution]:
        return _together([problems[i] for i in some], [trees[i] for i in some])

    found: dict[int, Solution] = {}
    for some in _batches(small, trees):
        found.update(zip(some, solved(some), strict=True))
    if large:
        # numpy releases Python's lock; at most MOST_CELLS cells are solved at a time
        at_once = MOST_CELLS // max(trees[i].cells for [i] in large)
        with ThreadPoolExecutor(max(1, min(len(large), os.cpu_count() or 1, at_once))) as pool:
            for [i], [solution] in zip(large, pool.map(solved, large), strict=True):
                found[i] = solution
    return [found[i] for i in range(len(problems))]


def _batches(numbers: Sequence[int], trees: Sequence[JunctionTree]) -> Iterator[list[int]]:
    """Yield lists of `numbers` of models, whose trees have at most `TOGETHER` cells unless one alone has more.

    `trees` has every model's junction tree, by number.
    """
    some, cells = list[int](), 0
    for i in numbers:
        if some and cells + trees[i].cells > TOGETHER:
            yield some
            some, cells = [], 0
        some.append(i)
        cells += trees[i].cells
    if some:
        yield some


def _together(problems: Sequence[Problem], trees: Sequence[JunctionTree]) -> list[Solution]:
    """Return a list of `Solution`s of problems on junction `trees`, solved at once; finished ones leave the batch."""
    totals = np.array([total(problem) for problem in problems])
    found: dict[int, Solution] = {}
    left, state = list(range(len(problems))), None
    while left:
        forest = laid_out([trees[i] for i in left])
        mine = [problems[i] for i in left]
        goal = Objectives(forest, mine, totals[left])
        state = _descend(goal, state or _State.first(goal, mine), mine)
        misfit, potentials = goal.misfit(state.terms), goal.potentials(state.terms)
        for place, i in enumerate(left):
            if not state.running[place]:
                tables, terms = forest.views(potentials, place), goal.split(place, state.terms)
                objective, taken = float(misfit[place]), int(state.taken[place])
                found[i] = Solution(
                    trees[i], tuple(table.copy() for table in tables), float(totals[i]), objective, taken, terms
                )
        left = [i for place, i in enumerate(left) if state.running[place]]
        state = state.only(goal.owner)
    return [found[i] for i in range(len(problems))]


def total(problem: Problem) -> float:
    """Return a problem's number of records, at least 1: the public one, or the tables' sums averaged by precision."""
    if problem.total is not None:
        return max(1.0, problem.total)
    sums = np.array([table.values.sum() for table in problem.tables], dtype=np.float64)
    # a table's sum has the variance cells x sigma^2
    weights = np.array([1 / (table.values.size * table.sigma**2) for table in problem.tables])
    return max(1.0, float(sums @ weights / weights.sum())) if len(sums) else 1.0


@dataclass(frozen=True, eq=False)
class _State:
    """State of the descent of all models in a batch: terms in one array, other numbers one a model."""

    terms: Floats
    last: Floats
    """Terms one step before."""
    ahead: Floats
    """Terms from which the next step starts, with momentum."""
    momentum: Floats
    """Number of successful steps in a row."""
    objective: Floats
    marked: Floats
    """Objective at the last check of progress."""
    step: Floats
    growth: Floats
    """Factor on the step after a success: 2 until the first failure, then 1.2."""
    taken: Indices
    running: NDArray[np.bool_]

    @classmethod
    def first(cls, goal: Objectives, problems: Sequence[Problem]) -> _State:
        """Return the `_State` of all `problems` with their `Objectives` before step 1: terms of warm starts, or 0."""
        terms, number = goal.first(), len(problems)
        _, objective, _ = goal.at(terms)
        step, growth = 2.0 / goal.steepness(), np.full(number, 2.0)
        taken, running = np.zeros(number, dtype=np.intp), np.ones(number, dtype=bool)
        return cls(terms, terms, terms, np.zeros(number), objective, objective.copy(), step, growth, taken, running)

    def only(self, owner: Indices) -> _State:
        """Return the `_State` of the unfinished models alone.

        `owner` is an array, the number of the model of each term.
        """
        kept = self.running
        cells = kept[owner]
        return _State(
            self.terms[cells],
            self.last[cells],
            self.ahead[cells],
            self.momentum[kept],
            self.objective[kept],
            self.marked[kept],
            self.step[kept],
            self.growth[kept],
            self.taken[kept],
            self.running[kept],
        )


def _descend(goal: Objectives, state: _State, problems: Sequence[Problem]) -> _State:
    """Return the `_State` after a descent of the problems' goal with momentum; each model has its own step.

    A step is taken from a point beyond the last one, in the direction of the last move. It is accepted if the objective
    falls by half of the gradient's linear prediction (Armijo); a refused step is halved, and one that makes the
    objective worse than before resets the momentum. Returns when unfinished models have at most `PAYS` of the cells.
    """
    each = goal.each
    limit = np.array([problem.iterations for problem in problems])
    tolerance = np.array([problem.tolerance for problem in problems])
    terms, objective, marked = state.terms, state.objective, state.marked
    step, growth, taken, running = state.step, state.growth, state.taken.copy(), state.running.copy()
    ahead, last, momentum = state.ahead, state.last, state.momentum
    fitted, value, gradient = goal.at(ahead)
    weight = goal.weights()
    while running.any() and weight @ running > PAYS:
        # trust region: no log potential moves by more than FARTHEST
        step = np.minimum(step, FARTHEST / goal.steepest(np.abs(gradient), 1e-300))
        trial = ahead - each(step * running) * gradient
        moved, reached, _ = goal.at(trial)
        # Armijo's rule, with half of the linear prediction
        sound = running & (value - reached >= 0.5 * goal.promised(gradient, fitted, moved))
        better = sound & (reached <= objective)
        # the first failure ends the fast search for the step's scale
        growth = np.where(sound | ~running, growth, 1.2)
        step = np.where(sound, step * growth, step * 0.5)
        # restart: a step that overshoots loses its momentum
        momentum = np.where(better, np.minimum(momentum + 1, MOST_MOMENTUM), np.where(sound, 0, momentum))
        last = np.where(each(better), terms, last)
        terms = np.where(each(better), trial, terms)
        objective = np.where(better, reached, objective)
        taken += running
        # convergence is judged over CHECK steps, since single steps may be small
        check = running & (taken % CHECK == 0)
        running &= ~check | (marked - objective > tolerance * marked)
        marked = np.where(check, objective, marked)
        running &= taken < limit
        if sound.any():
            # Nesterov's extrapolation, with k / (k + 3) after k good steps
            push = np.where(better, momentum / (momentum + 3), 0.0)
            beyond = terms + each(push) * (terms - last)
            ahead = np.where(each(sound), beyond, ahead)
            fitted, value, gradient = goal.at(ahead)
    return _State(terms, last, ahead, momentum, objective, marked, step, growth, taken, running)


ENGINE = Solver(solve, size=_cells, hasty=_hasty)
"""Our own engine: all problems at once."""
