"""INTERNAL. Errors of private models split by cause, in each group; for predictors, excessive risk (paper 001).

Everything here reads rows without a charge. None of it reaches a release.
"""
