"""A fit in named stages: prepare, rehearse, reserve, run, certify. `fit` runs all of them."""

from stratsynth.fitting.observer import SILENT, Observer, observing
from stratsynth.fitting.reservation import request_of
from stratsynth.fitting.stages import Fit, FitOptions, fit, fitted

__all__ = ["SILENT", "Fit", "FitOptions", "Observer", "fit", "fitted", "observing", "request_of"]
