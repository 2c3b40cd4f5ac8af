"""Stand-in for the fit of a model in a rehearsal, which counts fits and ignores models."""

from __future__ import annotations

from stratsynth.questions import Solver

LEFT_OUT = Solver[None, None](list)
"""Solver of nothing: problem and solution are None."""
