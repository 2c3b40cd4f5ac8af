"""INTERNAL. Models trained on a release: predictions for real people, and how well its rows differ from real ones."""
