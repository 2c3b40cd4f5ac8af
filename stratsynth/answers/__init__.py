"""Answers to questions about a release, from its noisy tables: estimates with intervals. No row, real or synthetic."""

from stratsynth.answers.combining import Combined, combine
from stratsynth.answers.query import STATISTICS, Query
from stratsynth.answers.release_answers import Answers

__all__ = ["STATISTICS", "Answers", "Combined", "Query", "combine"]
