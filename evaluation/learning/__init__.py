"""INTERNAL. What models learn from a release: predictions for real people, and how to tell its rows from real ones."""
