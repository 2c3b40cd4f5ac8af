"""What stands for the fit of a model in a rehearsal, which counts fits and has no use for models."""

from __future__ import annotations

from stratsynth.questions import Solver

LEFT_OUT = Solver[None, None](list)
"""Solves nothing: the problem is None, and so is its solution."""
