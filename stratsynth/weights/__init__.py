"""Weights: the strata's shares of the population, from a named source.

Weights decide how many rows each stratum contributes to a release. Taken from the private rows they would
be an unpaid answer, so every source is named, and what it does not protect is listed in the certificate:

    public      shares or counts that anyone can look up
    holdout     a sample of other people; unprotected if it was cut from the confidential file
    private     noisy counts of these very rows, paid from the budget
    raked       several margins fitted together; as public as the least public of them
    invariant   exact confidential counts, unprotected
"""

from stratsynth.weights.source import Resolved
from stratsynth.weights.sources import Weights
from stratsynth.weights.table import TOLERANCE

__all__ = ["TOLERANCE", "Resolved", "Weights"]
