"""Private fair classification on public data: trade-off curves, baselines, and paper 004's experiments redone."""

from stratsynth.evaluation.fermi.curve import pareto, picture, summary, tradeoff
from stratsynth.evaluation.fermi.violations import violations

__all__ = ["pareto", "picture", "summary", "tradeoff", "violations"]
