"""Classifiers with constraints on groups, by reduction to weighted classification."""

from stratsynth.adapters.reductions.classifier import RandomisedClassifier
from stratsynth.adapters.reductions.mechanism import Reductions

__all__ = ["RandomisedClassifier", "Reductions"]
