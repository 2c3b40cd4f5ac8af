"""Per-example gradients of a network's penalised log loss, by `torch.func`: the gradient of one row, mapped over rows.

The differentiated function has one row at a time as input, so rows could only meet in a network's state or side
effects; `stratsynth.questions.PerRow` looks for that on made-up rows. Doubles are used: their last digits are far below
the unit that gradients are rounded to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.networks.blueprint import Blueprint, parameters_of, torch_of, weights_of
from stratsynth.questions import PerRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def per_row(who: str, blueprint: Blueprint, clip: float) -> PerRow:
    """Return a PerRow, a question's function: gradients and probabilities, row by row, from weights and rows.

    Args:
        who: The mechanism, for messages.
        blueprint: The network.
        clip: The largest L2 norm of a row's gradient.

    Raises:
        Unsupported: PyTorch is not installed, or the network couples rows.
        MechanismError: It fails on made-up rows, or a row's gradient depends on other rows.
    """
    module = blueprint.build(who, 0)
    size = len(weights_of(module))
    return PerRow(Differentiated(who, module, blueprint.classes), blueprint.features, blueprint.classes, size, clip)


class Differentiated:
    """Gradients and probabilities of rows, as a function of one vector of weights."""

    def __init__(self, who: str, module: Any, classes: int) -> None:
        """Set the layers, those of `module`, and `classes`; its own weights are not used; errors name `who`."""
        self._torch = torch_of(who)
        self._module, self._classes = module, classes
        func = self._torch.func
        # `vmap` raises by default if a custom layer draws at random
        self._mapped = func.vmap(func.grad(self._loss, has_aux=True), in_dims=(None, 0, 0, 0))

    def _loss(self, parameters: dict[str, Any], x: Any, label: Any, slopes: Any) -> tuple[Any, Any]:
        """Return (log loss + <slopes, F> of one row `x`, its class probabilities F), as tensors: a number and a vector.

        `parameters` maps the weights' names to tensors; `label` is the row's class as a one-hot vector, `slopes` has an
        entry a class.
        """
        (logits,) = self._torch.func.functional_call(self._module, parameters, (x[None],))
        logs = self._torch.log_softmax(logits, -1)
        chances = logs.exp()
        return (slopes * chances).sum() - (label * logs).sum(), chances

    def __call__(self, weights: Floats, x: Floats, levels: Ints, slopes: Floats) -> tuple[Floats, Floats]:
        """Return two arrays: gradients, rows x weights, and class probabilities, rows x classes.

        They are at the flat array of `weights`. `x` are rows x features, `levels` the rows' classes; `slopes`, rows x
        classes, are of a penalty linear in the probabilities.
        """
        torch = self._torch
        # one gradient a row, as each is clipped by itself before the sum
        labels = np.eye(self._classes)[levels]
        tensors = [torch.from_numpy(np.ascontiguousarray(a)) for a in (x, labels, slopes)]
        gradients, chances = self._mapped(parameters_of(torch, self._module, weights), *tensors)
        names = [name for name, _ in self._module.named_parameters()]
        flat = torch.cat([gradients[name].reshape(len(x), -1) for name in names], dim=1)
        return flat.detach().numpy(), chances.detach().numpy()
