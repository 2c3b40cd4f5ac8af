"""INTERNAL. Why a private model is worse for one group than for another: the parts of its excessive risk (paper 001).

Everything here reads rows without a charge. None of it reaches a release.
"""
