"""Priors: what is public already, which a fit starts from instead of from nothing."""

from stratsynth.priors.prior import Prior
from stratsynth.priors.tables import PublishedTable

__all__ = ["Prior", "PublishedTable"]
