"""The graphical model whose marginals fit noisy tables best: weighted least squares over consistent marginals.

    minimise  1/2 sum over tables t of  |marginal_t - noisy_t|^2 / sigma_t^2  +  prior x distance from the base

over all marginals of a common distribution with the given total; the distance is Kullback and Leibler's, and
the base even unless another is given. The fitted distribution is the base times exp(sum of a term for each
table), so what is searched for are these terms: mirror descent, a step against the gradient, message passing,
and a line search for each model; models of all strata go together.
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
from stratsynth.adapters.engine.goal import Goal
from stratsynth.adapters.engine.reduced import extended, reduced
from stratsynth.adapters.engine.structure import Clique, JunctionTree, check_size, junction_tree
from stratsynth.questions import NoisyTable, Solver

CHECK = 25
"""The steps between two looks at a model's progress."""
PAYS = 0.7
"""When unfinished models hold less than this share of all cells, the finished ones are taken out."""
MOST_CELLS = 2**24
"""The largest model, in numbers: 128 MB a copy."""
TOGETHER = 2**16
"""The most numbers of small models that are solved at once: a fit holds some twenty copies of them."""
FARTHEST = 50.0
"""The most that a step moves a log potential. Where the best fit is a corner, steps would grow without bound."""
MOST_MOMENTUM = 300
"""The most steps whose momentum adds up, for the same reason: together they move no more than about 100 of them."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A noisy table as the fit sees it: its cells, and which of them count."""

    clique: Clique
    values: NDArray[np.int64] | Floats
    """Noisy counts; of a table that is public, numbers of records that need not be whole."""
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
    base: Solution | None = None
    """The model that is moved to fit the tables; the even distribution when not given."""
    start: Solution | None = None
    """A warm start: tables of its cliques begin with the terms that they had there."""
    prior: float = 0.0
    """The weight of the pull towards the base, in records. Where noise drowns the tables, the best fit alone would be
    a single row that noise favours; with a prior it is the base."""
    iterations: int = 1000
    tolerance: float = 1e-4
    """Stop when the last `CHECK` steps together improved the objective by less than this share of it."""

    def tree(self) -> JunctionTree:
        """The structure that holds every table and every forbidden cell."""
        cliques = {table.clique for table in self.tables} | set(self.forbidden)
        if self.base is not None:
            cliques |= set(self.base.tree.cliques)
        return junction_tree(self.sizes, tuple(sorted(cliques)))


@dataclass(frozen=True, eq=False)
class Solution:
    """A fitted model: log potentials on the cliques of a junction tree, and its total."""

    tree: JunctionTree
    potentials: tuple[Floats, ...]
    """One table of log potentials for each maximal clique, of its shape."""
    total: float
    objective: float
    """Half the squared distances from the tables, in units of their noise."""
    iterations: int
    terms: tuple[tuple[Clique, Floats], ...] = ()
    """What each table added to the log potentials: where a warm start begins."""


def engine(name: str) -> Solver[Problem, Solution]:
    """The solver of that name: `numpy` is this module's, `mbi` is Private-PGM's."""
    if name == "mbi":
        from stratsynth.adapters.engine.reference import solve_mbi

        return Solver(solve_mbi, size=_cells, hasty=_hasty)
    return ENGINE


def _cells(problem: Problem) -> float:
    """About how much work it is: the cells of its model."""
    return problem.tree().cells


def _hasty(problem: Problem) -> Problem:
    """One step."""
    return replace(problem, iterations=1)


def solve(problems: Sequence[Problem]) -> list[Solution]:
    """Solve all problems; those that move a base, on the columns that they measure."""
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
    """Large ones alone, one on each core, small ones together as far as memory allows."""
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
        # numpy works outside Python's lock; no more memory than small ones take together
        at_once = MOST_CELLS // max(trees[i].cells for [i] in large)
        with ThreadPoolExecutor(max(1, min(len(large), os.cpu_count() or 1, at_once))) as pool:
            for [i], [solution] in zip(large, pool.map(solved, large), strict=True):
                found[i] = solution
    return [found[i] for i in range(len(problems))]


def _batches(numbers: Sequence[int], trees: Sequence[JunctionTree]) -> Iterator[list[int]]:
    """Numbers of models that are solved together."""
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
    """Solve some problems at once; those that are done drop out, so that the slowest do not hold up the rest."""
    totals = np.array([total(problem) for problem in problems])
    found: dict[int, Solution] = {}
    left, state = list(range(len(problems))), None
    while left:
        forest = laid_out([trees[i] for i in left])
        mine = [problems[i] for i in left]
        goal = Goal(forest, mine, totals[left])
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
    """The public total, or the best linear combination of the tables' sums; at least one record."""
    if problem.total is not None:
        return max(1.0, problem.total)
    sums = np.array([table.values.sum() for table in problem.tables], dtype=np.float64)
    weights = np.array([1 / (table.values.size * table.sigma**2) for table in problem.tables])
    return max(1.0, float(sums @ weights / weights.sum())) if len(sums) else 1.0


@dataclass(frozen=True, eq=False)
class _State:
    """Where the descent of each model stands."""

    terms: Floats
    last: Floats
    """The terms one step before."""
    ahead: Floats
    """Where the next step starts."""
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
    def first(cls, goal: Goal, problems: Sequence[Problem]) -> _State:
        """Before the first step."""
        terms, number = goal.first(), len(problems)
        _, objective, _ = goal.at(terms)
        step, growth = 2.0 / goal.steepness(), np.full(number, 2.0)
        taken, running = np.zeros(number, dtype=np.intp), np.ones(number, dtype=bool)
        return cls(
            terms, terms, terms, np.zeros(number), objective, objective.copy(), step, growth, taken, running
        )  # fmt: skip

    def only(self, owner: Indices) -> _State:
        """The models that are not done."""
        kept = self.running
        cells = kept[owner]
        return _State(
            self.terms[cells], self.last[cells], self.ahead[cells], self.momentum[kept], self.objective[kept],
            self.marked[kept], self.step[kept], self.growth[kept], self.taken[kept], self.running[kept],
        )  # fmt: skip


def _descend(goal: Goal, state: _State, problems: Sequence[Problem]) -> _State:
    """Mirror descent with momentum, restarted where it overshoots; every model has its own step.

    A step is taken from a point beyond the last one, in the direction of the last move. It is accepted by half
    of what the gradient promised (Armijo); a refused one is halved, and one that makes the objective worse
    than before costs the momentum. Returns when unfinished models hold less than `PAYS` of the cells.
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
        step = np.minimum(step, FARTHEST / goal.steepest(np.abs(gradient), 1e-300))
        trial = ahead - each(step * running) * gradient
        moved, reached, _ = goal.at(trial)
        sound = running & (value - reached >= 0.5 * goal.promised(gradient, fitted, moved))
        better = sound & (reached <= objective)
        growth = np.where(sound | ~running, growth, 1.2)
        step = np.where(sound, step * growth, step * 0.5)
        momentum = np.where(better, np.minimum(momentum + 1, MOST_MOMENTUM), np.where(sound, 0, momentum))
        last = np.where(each(better), terms, last)
        terms = np.where(each(better), trial, terms)
        objective = np.where(better, reached, objective)
        taken += running
        check = running & (taken % CHECK == 0)
        running &= ~check | (marked - objective > tolerance * marked)
        marked = np.where(check, objective, marked)
        running &= taken < limit
        if sound.any():
            push = np.where(better, momentum / (momentum + 3), 0.0)
            beyond = terms + each(push) * (terms - last)
            ahead = np.where(each(sound), beyond, ahead)
            fitted, value, gradient = goal.at(ahead)
    return _State(terms, last, ahead, momentum, objective, marked, step, growth, taken, running)


ENGINE = Solver(solve, size=_cells, hasty=_hasty)
"""Our own engine: all problems at once."""
