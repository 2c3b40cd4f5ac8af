"""Private fair classification on public data: trade-off curves, with post-processing as a baseline."""

from stratsynth.evaluation.fermi.curve import pareto, picture, summary, tradeoff
from stratsynth.evaluation.fermi.violations import violations

__all__ = ["pareto", "picture", "summary", "tradeoff", "violations"]
