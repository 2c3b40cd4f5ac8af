"""Answers to questions about a release, from its noisy tables: estimates with intervals. No row, real or synthetic."""

from stratsynth.answers.asked import STATISTICS, Query
from stratsynth.answers.combining import Combined, combine
from stratsynth.answers.told import Answers

__all__ = ["STATISTICS", "Answers", "Combined", "Query", "combine"]
