"""Benchmarks: figures measured in one run, each with its unit, repetitions, spread and target.

`scripts/bench NAME [--json]` runs one. Nothing here is a test: a slow machine fails nothing.
"""
