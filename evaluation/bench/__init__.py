"""Benchmarks: figures measured in one run, each with its unit, repetitions, spread and what it is compared with.

`scripts/bench NAME [--json]` runs one. Nothing here is a test: a slow machine fails nothing.
"""
