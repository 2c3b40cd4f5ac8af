"""The model of a network: stored as numbers; predictions need PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.adapters.networks.blueprint import Blueprint, parameters_of, torch_of, weights_of
from stratsynth.adapters.predictors.designed import Scored, design_facts, design_of
from stratsynth.errors import ReleaseError, UsageError
from stratsynth.models import Codes, State
from stratsynth.questions import Coded
from stratsynth.report.page import Section
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

TEXT = (
    "Single weights of a network have no meaning of their own, and no intervals. The command stratsynth predict makes "
    "the network's predictions for rows; it needs PyTorch."
)


@dataclass(frozen=True, eq=False)
class Module(Scored):
    """Softmax of a network's logits, one for each level of the target."""

    kind: ClassVar[str] = "module"
    schema: Schema
    design: Coded
    target: str
    blueprint: Blueprint
    weights: Floats
    """All weights as one vector."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Public figures of the fit, for readers."""

    def using(self, function: Callable[[int, int], Any]) -> Module:
        """Return a copy of the `Module` whose network the caller's own function builds, as a release does not hold it.

        Args:
            function: The function that the network was fitted with.

        Raises:
            UsageError: The network has a name; or the function's has another number of weights.
        """
        if isinstance(self.blueprint.network, str):
            raise UsageError(f"predict: the network is {self.blueprint.network!r}, which needs no function.")
        found = replace(self, blueprint=replace(self.blueprint, network=function))
        found._module()  # noqa: SLF001 - our own: refuses what does not fit
        return found

    def _module(self) -> Any:
        """Torch Module of the blueprint, to predict by; UsageError if it has another number of weights."""
        module = self.blueprint.build("predict", 0)
        size = len(weights_of(module))
        if size != len(self.weights):
            raise UsageError(f"predict: the model has {len(self.weights):,} weights, and this network {size:,}.")
        return module

    def logits(self, rows: Codes) -> Floats:
        """Return an array, rows x levels of the target: the logits of `rows`, {column: array of level numbers}.

        Raises:
            Unsupported: PyTorch is not installed; or the network is the caller's own, and was not given: see `using`.
        """
        torch, module = torch_of("predict"), self._module()
        x = torch.from_numpy(np.ascontiguousarray(self.featured(rows)[:, 1:]))
        with torch.no_grad():
            parts = [
                torch.func.functional_call(module, parameters_of(torch, module, self.weights), (part,))
                for part in x.split(1024)
            ]
            found: Floats = torch.cat(parts).numpy()
        return found

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """Return the page's one section, the fit's settings in words; `named` is not used."""
        facts = [(key, str(value)) for key, value in self.facts.get("described", {}).items()]
        return [Section("network", "The network", text=[TEXT], facts=facts)]

    def state(self) -> State:
        """Return the model for a file, a `State`: facts (design, network, target, fit) and the array `weights`.

        No function is stored.
        """
        facts = {**design_facts(self.design), **self.blueprint.facts(), "target": self.target, "fit": dict(self.facts)}
        return State(facts, {"weights": self.weights})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Module:
        """Return the `Module`, in a schema, of a stored `State`, without PyTorch; ReleaseError for unsound parts.

        Unsound are weights that are not one finite vector, and a damaged target, design or network.
        """
        facts, weights = state.facts, np.asarray(state.arrays["weights"])
        design, target = design_of(facts, schema), facts["target"]
        if target not in schema.columns or isinstance(schema.column(target), Numeric) or schema.size(target) < 2:
            raise ReleaseError("model: the network's target is damaged.")
        if target in design.columns or not isinstance(facts["fit"], dict):
            raise ReleaseError("model: the network is damaged.")
        if weights.ndim != 1 or not len(weights) or weights.dtype != np.float64 or not np.isfinite(weights).all():
            raise ReleaseError("model: the network's weights are damaged.")
        blueprint = Blueprint.from_facts(facts, len(design.names(schema)) - 1, schema.size(target))
        return cls(schema, design, target, blueprint, weights, facts["fit"])
