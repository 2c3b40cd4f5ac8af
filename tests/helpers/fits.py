"""Fits that are watched step by step, and their requests to a ledger."""

from stratsynth.fitting import Fit, FitOptions, Observer


class OnStep(Observer):
    """Calls a function at every step, which may stop the fit by raising."""

    def __init__(self, call):
        self._call = call

    def step(self):
        self._call()


def requested(mechanism, table, budget, **options):
    """The request of a fit, after everything that public facts refuse."""
    return Fit.prepare(mechanism, table, budget, FitOptions(**options)).request
