"""Whether a release is what its certificate says: worked out again from its own files, and its ledger if given."""

from stratsynth.verifying.verdict import Verdict
from stratsynth.verifying.verify import verify

__all__ = ["Verdict", "verify"]
