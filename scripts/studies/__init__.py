"""Experiments of five papers, done again on public rows: `scripts/reproduce_NAME` runs them. Not installed."""
