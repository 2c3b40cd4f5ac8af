"""Priors: what is public already, which a fit starts from instead of from nothing."""

from stratsynth.priors.prior import Prior

__all__ = ["Prior"]
