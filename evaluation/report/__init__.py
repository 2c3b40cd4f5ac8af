"""INTERNAL reports: pages about private rows, which refuse to lie in a release."""
