"""Programs of the two stages: residual errors and the budgets made of them, then descent on noisy gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stratsynth.accounting.budget import Neighbours
from stratsynth.adapters.predictors.accounting import Accounting, divided
from stratsynth.adapters.predictors.descent import GRID
from stratsynth.adapters.predictors.moments import Estimated, NoisyMoments
from stratsynth.questions import Moments, NoisySum, Program, Query, split, total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stratsynth.adapters.predictors.descent import Descent
    from stratsynth.adapters.predictors.task import PredictorProblem

    Floats = NDArray[np.float64]

PRECURSOR = 5
"""Ratio of stage 2's steps to those of stage 1 of `softmax`."""
NEWTON = 5
"""Newton steps in stage 1 of `logistic`, each with twice the budget of the one before: an early step only has to come
near enough for the next, and the error of the last one decides that of the coefficients."""


class Descending(Protocol):
    """Model of stage 2: regression (`PredictorProblem`) or network (`NetworkProblem`); its numbers are one vector."""

    def descent(self, start: Floats) -> Descent:
        """Return a `Descent` from the array of numbers `start`, with the settings' rate, momentum and steps."""
        ...

    def gradients(
        self, theta: Floats, group: int | None = None, by: tuple[str, ...] = (), parts: Floats | None = None
    ) -> Query:
        """Return the question, a `Query`, for a sum of clipped gradients at numbers `theta`, an array.

        It is of the group of number `group`, or of all for None. A row's gradient is multiplied by the entry of
        `parts`, an array over the cells of the columns `by`, for its cell; None multiplies by 1.
        """
        ...

    def losses(self, theta: Floats, group: int | None = None) -> Query:
        """Return the question, a `Query`, for a sum of clipped losses at the numbers `theta`, an array.

        It is of the group of number `group`, or of all for None.
        """
        ...

    def widened(self, gradient: Floats, group: int) -> Floats:
        """Return the array `gradient` of a group, by number, over everybody's numbers: 0 where its design has none."""
        ...


@dataclass(frozen=True)
class First:
    """Result of stage 1: a precursor's coefficients, and the groups' residual errors if they were asked."""

    theta: Floats
    """Coefficients of the precursor."""
    errors: Floats | None
    """Squared residual error of each group (s_k^2), normalised to add up to 1; None where they were not asked."""
    estimated: Estimated | None
    """Coefficients of a linear or logistic precursor with their errors."""


@dataclass(frozen=True)
class Tailored:
    """Budgets of stage 2: the rho of a step's gradients and losses, and how groups share it."""

    sizes: Floats
    """Sizes of the groups, in records."""
    shares: Floats
    """Proportions of the groups' budgets; they add up to 1."""
    gradient: float
    """The rho of one step's gradients: of the largest group budget, or of all together under `paper`."""
    loss: float
    """The rho of one step's losses, likewise; 0 where none are asked."""
    usual: Floats
    """Slopes of the first step, at losses of 0."""

    @classmethod
    def of(cls, task: PredictorProblem, rho: float, sizes: Floats, errors: Floats | None, moves: int) -> Tailored:
        """Return a `PredictorProblem`'s `Tailored` budgets of stage 2: `rho` divided by its steps, shared among groups.

        `sizes` is an array of groups' records, `errors` one of the parts in which they share, None for equal ones;
        `moves`, by `loss_moves`, divides what losses cost.
        """
        shares = np.ones(len(sizes)) if errors is None else errors
        # uniform composition: every step of Algorithm 2 gets an equal part of stage 2's budget
        each = rho / task.steps
        loss = each / 2 if task.settings.plan_of.asks_losses else 0.0
        usual = task.settings.plan_of.slopes(task.labels, sizes / sizes.sum(), np.zeros(len(sizes)))
        return cls(sizes, shares / shares.sum(), each - loss, loss / moves, usual)


def ask(query: Query, rho: float) -> Program[NoisySum]:
    """Program that asks a query of one block at the price `rho`, and returns its `NoisySum`."""
    (answer,) = yield from total(query, rho=rho)
    return answer


def by_group(task: PredictorProblem, queries: Sequence[Query], rhos: Sequence[float]) -> Program[list[NoisySum]]:
    """Program of a `PredictorProblem` that asks queries[k] of group k at rhos[k].

    Returns a list of `NoisySum`s in order. Both are lists by group. Without groups the first of the queries is asked of
    everybody, and the list has one entry.
    """
    if not task.groups:
        return [(yield from ask(queries[0], rhos[0]))]
    asked, found = iter(zip(queries, rhos, strict=True)), list[NoisySum]()
    # groups of one family are disjoint and ask side by side; families add up
    for layout in task.families.layouts:
        answers = yield from split({group: ask(*next(asked)) for group in layout.strata})
        found += [answers[group] for group in layout.strata]
    return found


def shared(task: PredictorProblem, accounting: Accounting, rho: float, shares: Sequence[float]) -> list[float]:
    """Return a list, each group's rho in one round of a `PredictorProblem` that costs `rho` by `accounting`.

    Groups' parts are as `shares`, a number each. Each of several overlapping families gets an equal part of it; under
    `paper` all groups together do.
    """
    return divided(accounting, rho if accounting == "paper" else rho / max(1, len(task.families.layouts)), shares)


def records(task: PredictorProblem, sizes: Floats) -> float:
    """Return a `PredictorProblem`'s number of records: the sum of `sizes`, an array by group, over that of families.

    All records are in each family.
    """
    return float(sizes.sum()) / max(1, len(task.families.layouts))


def loss_moves(task: PredictorProblem, neighbours: Neighbours) -> int:
    """Return 1 or 2, the number of a `PredictorProblem`'s groups whose losses one step moves as far as they paid for.

    A loss lies in [0, 1], so that removing a record moves a sum of losses by as much as exchanging it does. Whoever is
    exchanged may leave one group and enter another, and both see that: 2 if `neighbours` is `replace`. A gradient is
    moved twice as far by an exchange, four times as dear, and pays for both.
    """
    moving = neighbours is Neighbours.REPLACE and bool(task.groups) and task.settings.accounting != "paper"
    return 2 if moving else 1


def stage_one(task: PredictorProblem, rho: float, sizes: Floats, moves: int, *, tailored: bool) -> Program[First]:
    """Program of a `PredictorProblem`'s Algorithm 1 for `rho`; returns a `First`: coefficients, perhaps groups' errors.

    These are there if `tailored`. `sizes` is an array of records by group, `moves` the number of groups that see one
    changed record, by `loss_moves`.
    """
    groups = len(sizes)
    alone = task.settings.accounting == "paper" and tailored
    part = rho / (groups + 1) if alone else rho * (0.5 if tailored else 0.9 if task.link == "linear" else 1 - 1e-9)
    if alone:
        rest = [part] * groups
    elif tailored:
        rest = shared(task, "parallel", (rho - part) / moves, [1.0] * groups)
    else:
        rest = [rho - part]
    # Algorithm 1, lines 8 to 15
    theta, moments = yield from _precursor(task, part, sizes)
    if task.link != "linear" and not tailored:
        return First(theta, None, _estimated(task, moments, 1.0))
    # lines 16 to 22: noisy sums of squared residuals, clipped, by group
    region = task.region
    if not tailored:
        found = [(yield from ask(task.losses(region.project(theta), squared=True), rest[0]))]
    else:
        queries = [task.losses(region.project(theta), k, squared=True) for k in range(groups)]
        found = yield from by_group(task, queries, rest)
    squares = np.array([max(float(s.values[0]), s.sigma) for s in found])
    variance = moments.residual_variance(records(task, squares)) if moments and task.link == "linear" else 1.0
    estimated = _estimated(task, moments, variance)
    if not tailored:
        return First(theta, None, estimated)
    # line 23: errors of the mean record, normalised
    errors = squares / sizes
    return First(theta, errors / errors.sum(), estimated)


def _precursor(task: PredictorProblem, rho: float, sizes: Floats) -> Program[tuple[Floats, NoisyMoments | None]]:
    """Program of a `PredictorProblem`, for `rho`: returns (array of coefficients, last step's `NoisyMoments` or None).

    Coefficients are by least squares, Newton steps or descent; the moments are None for `softmax`. `sizes` is an array
    of records by group.
    """
    # least squares needs one question: X'X and X'y
    if task.link == "linear":
        square, product = yield from total(Moments(task.design, task.target, task.norm), rho=rho)
        least_squares = NoisyMoments.of(square, product)
        return least_squares.theta, least_squares
    if task.link == "softmax":
        return (yield from _few_steps(task, rho, records(task, sizes))), None
    # each Newton step gets twice the budget of the one before: the last one decides the precision
    newton = yield from _newton_step(task, rho, np.zeros(len(task.names)), 0)
    for step in range(1, NEWTON):
        newton = yield from _newton_step(task, rho, newton.theta, step)
    return newton.theta, newton


def _newton_step(task: PredictorProblem, rho: float, start: Floats, step: int) -> Program[NoisyMoments]:
    """Program for a part of `rho` that returns the NoisyMoments of Newton step number `step` from `start`.

    `start` is an array of coefficients. The step is of a `PredictorProblem`.
    """
    query, part = task.curvature(task.region.project(start)), 2.0**step / (2.0**NEWTON - 1)
    square, gradient = yield from total(query, rho=rho * part * (1 - 1e-12))
    return NoisyMoments.newton(square, gradient, query.theta)


def _estimated(task: PredictorProblem, moments: NoisyMoments | None, variance: float) -> Estimated | None:
    alike = task.schema.max_multiplicity  # rows of one unit that may be equal
    return None if moments is None else moments.estimated(variance, alike)


def _few_steps(task: PredictorProblem, rho: float, rows: float) -> Program[Floats]:
    """Program for `rho`: returns an array, a `PredictorProblem`'s coefficients after a few noisy steps.

    Those are iterations / PRECURSOR. `rows` is the number of records, by which a sum of gradients is divided.
    """
    steps = max(1, task.steps // PRECURSOR)
    descent = task.descent(task.origin, steps)
    for _ in range(steps):
        answer = yield from ask(task.gradients(descent.theta), rho / steps * (1 - 1e-12))
        descent.step(answer.values.reshape(descent.theta.shape) / rows)
    return descent.result


def stage_two(
    task: PredictorProblem, model: Descending, tailored: Tailored, start: Floats
) -> Program[tuple[Floats, float]]:
    """Program of a `PredictorProblem`'s Algorithms 2 and 3 from the array `start`; returns (array, noise).

    The array has the numbers of `model`, a `Descending`, shaped as `start`; budgets are `tailored`. The noise is that
    of the first step's gradient: a standard deviation, in a coordinate of the weighted sum of the groups' mean
    gradients.
    """
    descent, noise, groups = model.descent(start), 0.0, len(tailored.sizes)
    parts = tailored.sizes / tailored.sizes.sum()
    # a group's mean gradient is its sum over its size; `most` caps one record's weight, in an equal table's records
    most = task.settings.most_weight / records(task, tailored.sizes)
    accounting = task.settings.accounting
    divide: Accounting = "parallel" if accounting == "combined" else accounting
    multipliers = task.settings.plan_of.multipliers(task.labels)
    for _ in range(task.steps):
        losses = np.zeros(groups)
        # Algorithm 2, lines 12 to 14: noisy mean losses of the groups
        if tailored.loss:
            asked = [model.losses(descent.theta, k if task.groups else None) for k in range(groups)]
            rhos = shared(
                task, divide, tailored.loss, [1.0] * groups if accounting == "combined" else [*tailored.shares]
            )
            found = yield from by_group(task, asked, rhos)
            losses = np.array([s.values[0] for s in found]) / tailored.sizes / task.settings.loss_clip
        # lines 16 and 17: derivative of f by each group's mean loss, and the multiplier of its bound
        slopes = task.settings.plan_of.slopes(task.labels, parts, losses) + multipliers.step(losses)
        v = np.minimum(slopes / tailored.sizes, most * slopes.sum())
        # lines 9 to 11: noisy sums of clipped gradients
        if accounting == "combined":
            gradient, spread = yield from _together(task, model, descent.theta, v, tailored.gradient)
        else:
            queries = [model.gradients(descent.theta, k if task.groups else None) for k in range(groups)]
            found = yield from by_group(task, queries, shared(task, divide, tailored.gradient, [*tailored.shares]))
            gradient = np.zeros_like(start)
            for k, (weight, answer) in enumerate(zip(v, found, strict=True)):
                gradient += weight * model.widened(answer.values, k)
            spread = math.sqrt(sum((weight * answer.sigma) ** 2 for weight, answer in zip(v, found, strict=True)))
        noise = noise or spread
        # line 18: projected step
        descent.step(gradient)
    return descent.result, noise


def _together(
    task: PredictorProblem, model: Descending, theta: Floats, v: Floats, rho: float
) -> Program[tuple[Floats, float]]:
    """Program of a `PredictorProblem`, for `rho`: returns (everybody's gradient at `theta`, an array; its noise).

    The gradient, one sum, is that of `model`, a `Descending`. `v` is an array, the weight of each group's rows; a row
    in several groups has their sum.
    """
    most, query, by = float(v.max()), model.gradients(theta), task.families.columns
    if by:
        # a row's weight is the sum of its groups' weights, tabulated by the groups' columns
        table = np.zeros(task.schema.shape(by))
        for weight, group in zip(v, task.groups, strict=True):
            codes = {column: task.schema.index(column, levels[0]) for column, levels in group.items}
            table[tuple(codes.get(column, slice(None)) for column in by)] += weight
        most = float(table.max())  # total weight of a record's groups, one of each family
        # parts are rounded down to the grid, so that no row is longer than its clip
        if not np.all(table == most):
            query = model.gradients(theta, None, by, np.floor(table / most * GRID) / GRID)
    answer = yield from ask(query, rho * (1 - 1e-12))
    return answer.values.reshape(theta.shape) * most, answer.sigma * most
