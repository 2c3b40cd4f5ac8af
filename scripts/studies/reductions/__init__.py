"""Constrained group objectives on simulated and public rows: the case studies of paper 002."""
