"""A network with one hidden layer, which predicts a level of its target and the probability of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.adapters.predictors.designed import Scored, design_facts, design_of
from stratsynth.errors import ReleaseError
from stratsynth.models import Codes, State
from stratsynth.questions import Coded
from stratsynth.questions.sums.networks import MOST_HIDDEN, outputs
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.report.page import Section
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Network(Scored):
    """Softmax of output' (tanh(hidden x), 1), x being a row's features scaled to [-1, 1].

    For two levels there is one logit, that of the second.
    """

    kind: ClassVar[str] = "network"
    schema: Schema
    design: Coded
    target: str
    hidden: Floats
    """Weights of the hidden layer: one row a hidden unit, one column a feature."""
    output: Floats
    """Weights of the output: one row a hidden unit and a last one for the constant, one column a logit."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Public figures of the fit, for readers."""

    def logits(self, rows: Codes) -> Floats:
        """Return an array, rows x levels of the target: the logits of `rows`, {column: array of level numbers}.

        0 for the first of two levels.
        """
        h = np.tanh(self.featured(rows) @ self.hidden.T)
        found: Floats = h @ self.output[:-1] + self.output[-1]
        return found if found.shape[1] > 1 else np.column_stack([np.zeros(len(found)), found])

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """Return the page's one section on the network's fit; `named` maps a group's label to its name."""
        from stratsynth.adapters.predictors.page import network_section

        return [network_section(self, named)]

    def state(self) -> State:
        """Return the model for a file, a `State`: facts (design, target, fit), arrays (hidden, output)."""
        facts = {**design_facts(self.design), "target": self.target, "fit": dict(self.facts)}
        return State(facts, {"hidden": self.hidden, "output": self.output})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Network:
        """Return the `Network`, in a schema, of a stored `State`: weights by name, and facts.

        ReleaseError for such as do not fit the schema or each other.
        """
        facts, arrays = state.facts, state.arrays
        design, target = design_of(facts, schema), facts["target"]
        if target not in schema.columns or isinstance(schema.column(target), Numeric) or schema.size(target) < 2:
            raise ReleaseError("model: the network's target is damaged.")
        if target in design.columns or not isinstance(facts["fit"], dict):
            raise ReleaseError("model: the network is damaged.")
        hidden, output = np.asarray(arrays["hidden"]), np.asarray(arrays["output"])
        units, levels = len(hidden) if hidden.ndim else 0, schema.size(target)
        shapes = (units, len(design.names(schema))), (units + 1, outputs(levels))
        fits = all(
            a.shape == shape and a.dtype == np.float64 and np.isfinite(a).all()
            for a, shape in zip((hidden, output), shapes, strict=True)
        )
        if not fits or not 1 <= units <= MOST_HIDDEN:
            raise ReleaseError("model: the network's weights are damaged.")
        return cls(schema, design, target, hidden, output, facts["fit"])
