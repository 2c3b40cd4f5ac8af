"""Noisy gradient descent that watches what clipping and noise cost each group, and leans against it."""

from stratsynth.adapters.fair_sgd.mechanism import FairSGD

__all__ = ["FairSGD"]
