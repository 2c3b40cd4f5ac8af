"""Networks of any shape, by PyTorch (`pip install .[torch]`): construction, gradients, storage, prediction."""

from stratsynth.adapters.networks.blueprint import Blueprint
from stratsynth.adapters.networks.model import Module
from stratsynth.adapters.networks.per_row import per_row

__all__ = ["Blueprint", "Module", "per_row"]
