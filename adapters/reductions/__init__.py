"""Classifiers with constraints on groups, by reduction to weighted classification (paper 002)."""

from stratsynth.adapters.reductions.classifier import RandomisedClassifier
from stratsynth.adapters.reductions.mechanism import Reductions

__all__ = ["RandomisedClassifier", "Reductions"]
