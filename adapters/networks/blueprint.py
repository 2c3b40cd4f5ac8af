"""Public description of a network, and its construction with PyTorch, which is imported here and nowhere earlier."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from stratsynth.errors import ReleaseError, Unsupported

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Named = Literal["mlp", "conv"]
NAMED: tuple[str, ...] = get_args(Named)
Network = Named | Callable[[int, int], Any]
"""The name of a network, or a function of the numbers of features and classes that returns a `torch.nn.Module`."""
REMEDY = (
    'networks need PyTorch, which is not installed: run `pip install ".[torch]"` in the folder of the sources, or '
    "`pip install torch` in this environment."
)


def torch_of(who: str) -> Any:
    """Return the module `torch`; Unsupported, opening with `who`, with the way to install it, if it is absent."""
    try:
        import torch
    except ImportError as error:
        raise Unsupported(f"{who}: {REMEDY}") from error
    return torch


@dataclass(frozen=True)
class Blueprint:
    """A network of `features` numbers between -1 and 1 that gives one logit a class."""

    network: Network | None
    """Name or building function; None for a caller's own function in a stored release: see `Module.using`."""
    hidden: tuple[int, ...]
    """Units of each hidden layer of `mlp`, channels of each convolution of `conv`."""
    image: tuple[int, ...]
    """Height and width of `conv`, or channels, height and width; features are its pixels in that order."""
    features: int
    classes: int

    @property
    def named(self) -> str:
        """Description in words for readers: kind, sizes of its layers, or the building function's name."""
        if self.network == "conv":
            return f"conv of {' x '.join(map(str, self.image))} pixels, {' and '.join(map(str, self.hidden))} channels"
        if self.network == "mlp":
            return f"mlp of {' and '.join(map(str, self.hidden))} hidden units"
        return "network of the caller's own function" if self.network is None else self._function

    @property
    def _function(self) -> str:
        return f"network by {getattr(self.network, '__module__', '?')}.{getattr(self.network, '__qualname__', '?')}"

    def build(self, who: str, seed: int) -> Any:
        """Return the network, a torch Module in double precision, with first weights by the seed; errors name `who`.

        Raises:
            Unsupported: PyTorch is not installed, or the network couples rows or draws at random.
        """
        torch = torch_of(who)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = self._modules(torch) if isinstance(self.network, str) else self._own(who, torch)
        refuse_coupled(who, torch, module)
        return module.double().train()

    def _modules(self, torch: Any) -> Any:
        """Return the torch Module of a network with a name, built by the module `torch`: tanh after each hidden layer.

        A "conv" network has convolutions of 3 x 3 pixels with stride 2.
        """
        nn = torch.nn
        if self.network == "mlp":
            sizes, layers = (self.features, *self.hidden), list[Any]()
            for before, after in pairwise(sizes):
                layers += [nn.Linear(before, after), nn.Tanh()]
            return nn.Sequential(*layers, nn.Linear(sizes[-1], self.classes))
        channels, *size = self.image if len(self.image) == 3 else (1, *self.image)
        layers = [nn.Unflatten(1, (channels, *size))]
        for before, after in pairwise((channels, *self.hidden)):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.Tanh()]
            size = [(side + 1) // 2 for side in size]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(self.hidden[-1] * math.prod(size), self.classes))

    def _own(self, who: str, torch: Any) -> Any:
        """Return the torch Module that the caller's function builds.

        Unsupported, opening with `who`, without such a function, or if its result is no Module.
        """
        if not callable(self.network):
            raise Unsupported(
                f"{who}: the network was built by the caller's own function, which a release does not hold. Give it: "
                "`model.using(function)`."
            )
        module = self.network(self.features, self.classes)
        if not isinstance(module, torch.nn.Module):
            raise Unsupported(f"{who}: the network's function returned {type(module).__name__}, no torch.nn.Module.")
        return module

    def facts(self) -> dict[str, Any]:
        """Return a dict of JSON values for a stored release: network (its name; None for a function), hidden, image."""
        name = self.network if isinstance(self.network, str) else None
        return {"network": name, "hidden": list(self.hidden), "image": list(self.image)}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], features: int, classes: int) -> Blueprint:
        """Return the `Blueprint` of `facts`, the stored mapping (network, hidden, image) that the method `facts` gave.

        It has so many `features` and `classes`. Refuse (ReleaseError) unknown names, and sizes that do not fit.
        """
        name, hidden, image = facts["network"], facts["hidden"], facts["image"]
        whole = all(type(n) is int and 0 < n <= 2**16 for n in (*hidden, *image))
        if name not in (None, *NAMED) or not whole or (name == "conv" and not _fits(image, features)):
            raise ReleaseError("model: the network is damaged.")
        return cls(name, tuple(hidden), tuple(image), features, classes)


def _fits(image: Iterable[int], features: int) -> bool:
    """True if `image`, two or three sizes, has as many pixels as there are `features`."""
    return len(tuple(image)) in (2, 3) and math.prod(image) == features


def refuse_coupled(who: str, torch: Any, module: Any) -> None:
    """Refuse, by `who`, a torch `module` without weights, or with layers that couple rows or draw at random.

    Raises:
        Unsupported: Names the layer, the reason and a layer to take instead.
    """
    batch, norms = torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.batchnorm._NormBase  # noqa: SLF001 - the
    dropout = torch.nn.modules.dropout._DropoutNd  # noqa: SLF001 - classes that all of a kind inherit
    for name, layer in module.named_modules():
        kind = f"{type(layer).__name__} ({name})" if name else type(layer).__name__
        if isinstance(layer, batch) or (isinstance(layer, norms) and layer.track_running_stats):
            raise Unsupported(
                f"{who}: {kind} takes means and variances over the rows of a batch, so that one record changes the "
                "gradient of every other one, and clipping bounds nothing. Take GroupNorm or LayerNorm."
            )
        if isinstance(layer, dropout):
            raise Unsupported(
                f"{who}: {kind} draws at random, so that nobody could tell whether a row's gradient is its own. Leave "
                "it out: the noise of privacy does its work."
            )
    if not any(True for _ in module.parameters()):
        raise Unsupported(f"{who}: the network has no weights.")


def weights_of(module: Any) -> Floats:
    """Return all weights of a torch Module as one flat array, in the order of its named parameters."""
    return np.concatenate([p.detach().numpy().ravel() for _, p in module.named_parameters()])


def parameters_of(torch: Any, module: Any, weights: Floats) -> dict[str, Any]:
    """Return a mapping from name to tensor of a torch Module's parameters, cut from the flat array of `weights`."""
    found, at = {}, 0
    vector = torch.from_numpy(np.array(weights))
    for name, p in module.named_parameters():
        found[name] = vector[at : at + p.numel()].reshape(p.shape)
        at += p.numel()
    return found
