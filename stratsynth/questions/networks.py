"""What gradient descent asks of rows for a network of one hidden layer: its clipped gradient, and its losses.

    h = tanh(hidden x)      logits = output' (h, 1)

x being a row's features, and `hidden` one row a unit. A target of two levels has one logit, that of the second level;
any other target has one for each level, under a softmax. The loss is the log loss, so with r_k = p_k - [y = k]

    d loss / d output[j, k] = r_k h_j      d loss / d hidden[j, i] = (sum_k r_k output[j, k]) (1 - h_j^2) x_i

and a row's gradient is all of these numbers as one vector, which is clipped as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.checks import one_of
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import known
from stratsynth.questions.base import fixed, is_plain
from stratsynth.questions.gradients import check_parts
from stratsynth.questions.queries import Block, Design, Query, check_clip, check_target

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

MOST_HIDDEN = 1 << 10
"""The most hidden units."""
MOST_OUTPUT = 1 << 11
"""The most output weights: a row's part of each is held at once, for thousands of rows."""


@known
@dataclass(frozen=True, eq=False)
class NetworkGradients(Query):
    """The gradient of a network's log loss at given weights: one vector a row, hidden weights first, clipped whole.

    After the clip it is multiplied by the part that `parts` has for the row's cell, as in `Gradients`.
    """

    design: Design
    target: str
    """A categorical column."""
    hidden: NDArray[np.float64]
    """One row a hidden unit, one column a feature."""
    output: NDArray[np.float64]
    """One row a hidden unit and a last one for the constant, one column a logit."""
    clip: float
    """The most L2 norm of a row's whole gradient, before `parts`."""
    by: tuple[str, ...] = ()
    """The columns whose levels, fully crossed, are the cells of `parts`; none where all rows count alike."""
    parts: NDArray[np.float64] | None = None
    """A public number from 0 to 1 for each cell of `by`, in the shape of their crossing."""

    def __post_init__(self) -> None:
        """Keep copies of the arrays that nobody can change."""
        for name in ("hidden", "output", "parts"):
            object.__setattr__(self, name, fixed(getattr(self, name)))

    def check(self, schema: Schema) -> None:
        """Weights of the right shapes, and parts that never make a row count for more."""
        check_network("network gradients", self, schema)
        check_parts("network gradients", self.by, self.parts, schema)

    def replayed(self) -> Any:
        """All but the values of weights and parts, which come from earlier answers."""
        shapes = self.hidden.shape, self.output.shape
        return "network gradients", self.design, self.target, shapes, f"{self.clip:.9g}", self.by

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """One block of all weights: the layers have one clip together."""
        return (Block(int(self.hidden.size + self.output.size), self.clip),)


@known
@dataclass(frozen=True, eq=False)
class NetworkLosses(Query):
    """The sum of a network's losses, a row's being cut at the clip; exchanging a row moves it no more than adding one.

    `log`: the log loss. `squared`: half the squared distance between the levels' probabilities and the row's level, at
    most 1; with two levels that is the squared residual of a probability, as in `Losses`.
    """

    design: Design
    target: str
    """A categorical column."""
    hidden: NDArray[np.float64]
    """As in `NetworkGradients`."""
    output: NDArray[np.float64]
    """As in `NetworkGradients`."""
    clip: float
    """The most that a row's loss can be."""
    measure: Literal["squared", "log"] = "log"

    def __post_init__(self) -> None:
        """Keep copies of the weights that nobody can change."""
        for name in ("hidden", "output"):
            object.__setattr__(self, name, fixed(getattr(self, name)))

    def check(self, schema: Schema) -> None:
        """Weights of the right shapes."""
        check_network("network losses", self, schema)
        one_of("network losses: measure", self.measure, ("squared", "log"), error=MechanismError)

    def replayed(self) -> Any:
        """All but the weights' values, which come from earlier answers."""
        shapes = self.hidden.shape, self.output.shape
        return "network losses", self.design, self.target, shapes, f"{self.clip:.9g}", self.measure

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """One number."""
        return (Block(1, self.clip, exchange=1.0),)


def outputs(levels: int) -> int:
    """The number of logits for a target of that many levels."""
    return 1 if levels == 2 else levels


def layers(weights: NDArray[np.float64], hidden: int, features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Hidden weights, one row a unit, and output weights, one column a logit, of one vector of both in this order."""
    cut = hidden * features
    return weights[:cut].reshape(hidden, features), weights[cut:].reshape(hidden + 1, -1)


def check_network(what: str, query: NetworkGradients | NetworkLosses, schema: Schema) -> None:
    """A sound design, a target of at least two levels, a clip, and finite weights of the right shapes."""
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
