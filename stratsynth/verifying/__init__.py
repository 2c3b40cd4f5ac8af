"""Check a release against its certificate: recompute the guarantee from its own files, and its ledger if given."""

from stratsynth.verifying.verdict import Verdict
from stratsynth.verifying.verify import verify

__all__ = ["Verdict", "verify"]
