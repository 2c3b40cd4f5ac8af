"""INTERNAL. Distances between a real and a synthetic table: one module for each kind of score."""
