"""Declared tables and nothing else: for those who publish a list of tables."""

from stratsynth.adapters.fixed.mechanism import Fixed

__all__ = ["Fixed"]
