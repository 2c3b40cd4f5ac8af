"""Mechanisms, one a file. Each yields questions and returns a model; none of them sees a row."""

from stratsynth.adapters.external import External
from stratsynth.adapters.independent import Independent

__all__ = ["External", "Independent"]
