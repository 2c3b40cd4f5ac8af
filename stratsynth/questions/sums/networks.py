"""Sums of gradient descent for a network of one hidden layer: its clipped gradient, and its losses.

    h = tanh(hidden x)      logits = output' (h, 1)

x being a row's features, and `hidden` one row a unit. A target of two levels has one logit, that of the second level;
any other target has one for each level, under a softmax. The loss is the log loss, so with r_k = p_k - [y = k]

    d loss / d output[j, k] = r_k h_j      d loss / d hidden[j, i] = (sum_k r_k output[j, k]) (1 - h_j^2) x_i

and a row's gradient is all of these numbers as one vector, which is clipped as a whole.

Both layers are products of exact integers: features in units of 1 / UNIT = 2^-12, hidden units in 1 / TANH = 2^-16 from
a public table, weights in 1 / THETA. Everything between is done one element at a time, in a fixed order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.checks import one_of
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import known
from stratsynth.questions.base import is_plain
from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import GRID, Block, Floats, Ints, Sum, check_clip, into_ball
from stratsynth.questions.sums.design import Design, check_target
from stratsynth.questions.sums.gradients import check_parts
from stratsynth.questions.sums.kernel import LAST, STEPS, THETA, THETA_MOST, cells_of, exp_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

MOST_HIDDEN = 1 << 10
"""Largest number of hidden units."""
MOST_OUTPUT = 1 << 11
"""Largest number of output weights: a row's derivative by each is held at once, for thousands of rows."""
TANH = 1 << 16
"""Hidden units are rounded to 1 / TANH."""


@known
@dataclass(frozen=True, eq=False)
class NetworkGradients(Sum):
    """The gradient of a network's log loss at given weights: one vector per row, hidden weights first, clipped whole.

    After the clip it is multiplied by the part that `parts` has for the row's cell, as in `Gradients`.
    """

    design: Design
    target: str
    """Categorical column."""
    hidden: NDArray[np.float64]
    """One row per hidden unit, one column per feature."""
    output: NDArray[np.float64]
    """One row per hidden unit and a last one for the constant, one column per logit."""
    clip: float
    """Clip of a row's whole gradient in the L2 norm, before `parts`."""
    by: tuple[str, ...] = ()
    """Columns whose levels, fully crossed, are the cells of `parts`; none if all rows count alike."""
    parts: NDArray[np.float64] | None = None
    """Public factor from 0 to 1 for each cell of `by`, in the shape of their crossing."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: design, clip unsound in `schema`, misshapen weights, parts outside [0, 1]."""
        check_network("network gradients", self, schema)
        check_parts("network gradients", self.by, self.parts, schema)

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but the values of weights and parts, which earlier answers give."""
        shapes = self.hidden.shape, self.output.shape
        return "network gradients", self.design, self.target, shapes, f"{self.clip:.9g}", self.by

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return (`Block`,) of all weights, hidden ones first, for any `schema`: the layers share a clip."""
        return (Block(int(self.hidden.size + self.output.size), self.clip),)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list of one int array: sum of the gradients of coded rows `which`, each clipped to GRID units."""
        x, reach = design.integer_features(self.design, rows, which)
        h, logits = forward(x, self)
        output = whole_output(self) / THETA  # a power of 2: exact
        residuals = residuals_of(self, rows, which, logits)[-output.shape[1] :]
        # Backpropagation: r_k at the logits, sum_k r_k V_jk (1 - h_j^2) at hidden unit j.
        inner = back(residuals, output) * (1 - h * h)
        units = integer_lines(lines(inner, outer(h, residuals), reach), len(h), reach, self.clip)
        if self.parts is not None:
            units = np.trunc(units * self.parts.ravel()[cells_of(self.by, rows, which)]).astype(np.int64)
        return [added(units, len(h), x)]


@known
@dataclass(frozen=True, eq=False)
class NetworkLosses(Sum):
    """The sum of a network's losses, each cut at the clip: sensitivity clip under add-remove and under replace.

    `log`: the log loss. `squared`: half the squared distance between the levels' probabilities and the row's level, at
    most 1; with two levels that is the squared residual of a probability, as in `Losses`.
    """

    design: Design
    target: str
    """Categorical column."""
    hidden: NDArray[np.float64]
    """Hidden weights, as in `NetworkGradients`."""
    output: NDArray[np.float64]
    """Output weights, as in `NetworkGradients`."""
    clip: float
    """Largest loss of a row: larger ones are cut to it."""
    measure: Literal["squared", "log"] = "log"

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: weights or design unfit for `schema`, unknown measures."""
        check_network("network losses", self, schema)
        one_of("network losses: measure", self.measure, ("squared", "log"), error=MechanismError)

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but the values of the weights, which earlier answers give."""
        shapes = self.hidden.shape, self.output.shape
        return "network losses", self.design, self.target, shapes, f"{self.clip:.9g}", self.measure

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return (`Block`,) of one number, for any `schema`; its sensitivity is clip for all neighbours."""
        return (Block(1, self.clip, exchange=1.0),)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list of one array of one int: losses of coded rows `which`, cut, floored, summed, in clip / GRID."""
        features, _ = design.integer_features(self.design, rows, which)
        _, logits = forward(features, self)
        if self.measure == "log":
            levels = rows.codes[self.target][which].astype(np.intp)
            largest = logits.max(axis=0)
            weights = exp_of(largest - logits).sum(axis=0)  # from GRID to GRID times the number of levels
            step = np.rint((weights - GRID) * (STEPS / GRID)).astype(np.intp)
            found = largest - logits[levels, np.arange(len(levels))] + _log(len(logits))[step] / GRID
        else:
            found = np.zeros(len(features))
            for residual in residuals_of(self, rows, which, logits):
                found += residual * residual / 2
        share = np.clip(found / self.clip, 0, 1)
        units: Ints = np.trunc(np.where(np.isnan(share), 0.0, share) * GRID).astype(np.int64)
        return [np.array([units.sum()])]


Network = NetworkGradients | NetworkLosses


def outputs(levels: int) -> int:
    """Return the number of logits for a target of that many levels: 1 for two levels."""
    return 1 if levels == 2 else levels


def layers(weights: NDArray[np.float64], hidden: int, features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the vector `weights` as two arrays: hidden (`hidden` units x `features`), output (hidden + 1 x logits)."""
    cut = hidden * features
    return weights[:cut].reshape(hidden, features), weights[cut:].reshape(hidden + 1, -1)


def check_network(what: str, query: Network, schema: Schema) -> None:
    """Raise MechanismError, opening with `what`: a query unfit for `schema`, design to weights; Unsupported: size."""
    check_target(what, query.design, query.target, schema, numeric=False)
    check_clip(what, query.clip)
    levels = schema.size(query.target)
    if levels < 2:
        raise MechanismError(f"{what}: the target {query.target} has one level only: there is nothing to learn.")
    hidden, output, size = query.hidden, query.output, len(query.design.names(schema))
    if is_plain(output) and output.size > MOST_OUTPUT:
        raise Unsupported(f"{what}: {output.size:,} output weights are too many; take fewer hidden units or levels.")
    if not is_plain(hidden) or hidden.ndim != 2 or not 1 <= len(hidden) <= MOST_HIDDEN or hidden.shape[1] != size:
        raise MechanismError(f"{what}: hidden weights are 1 to {MOST_HIDDEN} rows, one a unit, of {size} columns.")
    if not is_plain(output) or output.shape != (len(hidden) + 1, outputs(levels)):
        raise MechanismError(f"{what}: output weights must be of shape {(len(hidden) + 1, outputs(levels))}.")
    if not (np.isfinite(hidden).all() and np.isfinite(output).all()):
        raise MechanismError(f"{what}: weights must be finite.")


def back(residuals: Floats, output: Floats) -> Floats:
    """Return an array, a line per hidden unit: the residuals propagated to it through the output weights."""
    found = np.zeros((len(output) - 1, residuals.shape[1]))
    for residual, weights in zip(residuals, output.T, strict=True):
        found += residual * weights[:-1, None]
    return found


def outer(units: Floats, residuals: Floats, constant: float = 1.0) -> list[Floats]:
    """Return a list of lines, one per output weight: residuals times each unit, then times `constant`."""
    return [line for unit in (*units, np.full(residuals.shape[1], constant)) for line in unit * residuals]


def lines(inner: Floats, outer: list[Floats], reach: Ints) -> Floats:
    """Return the coordinates to clip, a column a row: `inner`, one a hidden unit j for its part inner_j x, `outer`.

    One coordinate stands for the length of that part: inner_j times GRID / reach >= |x|, where reach is the largest
    whole m with |m x| <= GRID.
    """
    return np.array([*(inner * (GRID / reach / design.UNIT)), *outer])


def integer_lines(lines: Floats, hidden: int, reach: Ints, clip: float, radius: int | Ints = GRID) -> Ints:
    """Return `lines` / `clip` as integers, each row's norm at most `radius`; the first `hidden` ones multiply features.

    A coordinate u of a hidden unit is made c = floor(|u| reach / GRID) with its sign, so that |c x| <= |u|: the vector
    of all c x and of the output layer's coordinates is as long as the clipped one at most.
    """
    # Clip the whole vector, then round each hidden part to an integer multiple c of the features.
    units = into_ball(lines / clip * GRID, radius)
    c = units[:hidden]
    units[:hidden] = np.sign(c) * ((np.abs(c) * reach) // GRID)
    return units


def added(units: Ints, hidden: int, x: Floats) -> Ints:
    """Return a flat int array: `units` of `integer_lines`, the first `hidden` times features `x`, summed over rows."""
    inner = (units[:hidden].astype(np.float64) @ x).astype(np.int64)
    return np.concatenate([inner.ravel(), units[hidden:].sum(axis=1)])


def forward(x: Floats, query: Network) -> tuple[Floats, Floats]:
    """Return (a query's hidden units' values, a line each; logits, a line per level, 0 for the first of two) of `x`.

    A row has at most `width` features that are not 0, each at most UNIT = 2^12, and weights are at most 2^40 / width:
    sums stay within 2^52. So they do in the second layer, of `units` + 1 numbers that are at most TANH = 2^16.
    """
    z = inputs_of(x, query)
    # tanh from a public table of integers, as an odd function.
    h = np.sign(z).astype(np.int64) * _tanh()[np.minimum(np.rint(np.abs(z) * STEPS), LAST).astype(np.intp)]
    inputs = np.concatenate([h, np.full((1, len(x)), TANH)]).astype(np.float64)
    logits = (whole_output(query).T @ inputs) * (1 / (TANH * THETA))
    if len(logits) == 1:
        logits = np.concatenate([np.zeros_like(logits), logits])
    return h / TANH, logits


def inputs_of(x: Floats, query: Network) -> Floats:
    """Return inputs of the query's hidden units, features `x` times hidden weights: a line per unit, column per row."""
    most = min(THETA_MOST, 2**40 // query.design.most_features)
    hidden = np.rint(np.clip(query.hidden * THETA, -most, most))
    return np.ascontiguousarray((x @ hidden.T).T) * (1 / (design.UNIT * THETA))


def whole_output(query: Network) -> Floats:
    """Return an array of a query's, a network's, output weights, cut to a largest size, rounded, in 1 / THETA."""
    most = min(THETA_MOST, 2**36 // len(query.output))
    found: Floats = np.rint(np.clip(query.output * THETA, -most, most))
    return found


def residuals_of(query: Network, rows: CodedRows, which: Which, logits: Floats) -> Floats:
    """Return an array [level, row], probability less 1 at own level, by `logits` [level, row] of the rows `which`."""
    levels = rows.codes[query.target][which].astype(np.intp)
    weights = exp_of(logits.max(axis=0) - logits)
    residuals: Floats = weights / weights.sum(axis=0)
    residuals[levels, np.arange(len(levels))] -= 1
    return residuals


@cache
def _tanh() -> Ints:
    """Return an int64 array: tanh(i / STEPS) x TANH, rounded, for i from 0 to LAST."""
    return np.array([round(math.tanh(i / STEPS) * TANH) for i in range(LAST + 1)], np.int64)


@cache
def _log(levels: int) -> Ints:
    """Return the table of log(1 + i / STEPS) in units of 1 / GRID, up to 1 + i / STEPS = `levels`."""
    return np.array([round(math.log1p(i / STEPS) * GRID) for i in range((levels - 1) * STEPS + 1)], np.int64)
