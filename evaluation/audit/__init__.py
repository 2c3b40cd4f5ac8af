"""Audits: experiments that try to detect noise that is too small.

    from evaluation.audit import audit_mechanism, audit_primitives

    print(audit_primitives().to_text())
    print(audit_mechanism(MyMechanism()).to_text())

Two tables that differ by one record are put before the real driver many times, with real noise. How well the answers
tell the tables apart gives a lower bound on the privacy loss, to be compared with what was charged. A lower bound above
the claim proves a fault. One below it proves nothing: no fault was found by this experiment, with these tables, in
these runs. The power of the experiment is shown by running it on drivers that are broken on purpose: those must be
caught.
"""

from stratsynth.evaluation.audit.families import audit_primitives
from stratsynth.evaluation.audit.mechanism import audit_mechanism
from stratsynth.evaluation.audit.report import Audit, Control, Report

__all__ = ["Audit", "Control", "Report", "audit_mechanism", "audit_primitives"]
