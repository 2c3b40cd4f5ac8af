"""Weights: how large each stratum is, from a source that is named.

Weights decide how many rows each stratum contributes to a release. Taken from the private rows they would
be an unpaid answer, so every source is said, and what it does not protect is listed in the certificate:

    public      shares or counts that anyone can look up
    holdout     a sample of other people; unprotected if it was cut from the confidential file
    private     noisy counts of these very rows, paid from the budget
    raked       several margins fitted together; as good as the worst of them
    invariant   exact confidential counts, unprotected
"""

from stratsynth.weights.source import Resolved
from stratsynth.weights.sources import Weights
from stratsynth.weights.table import TOLERANCE

__all__ = ["TOLERANCE", "Resolved", "Weights"]
