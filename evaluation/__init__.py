"""Scores of synthetic tables, comparisons and reports. Nothing here fits or spends."""
