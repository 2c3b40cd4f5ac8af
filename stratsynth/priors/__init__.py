"""Priors: public rows, tables and earlier releases that a fit starts from."""

from stratsynth.priors.prior import Prior
from stratsynth.priors.tables import PublishedTable

__all__ = ["Prior", "PublishedTable"]
