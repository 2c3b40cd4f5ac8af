"""Audits that chance does not fail."""


def judged_twice(run):
    """An audit or a report, as `run()` makes it; the second one where the first has an alarm.

    An alarm is false once in 10^4 runs at the most, two in a row once in 10^8; a loss beyond the claim shows in both.
    """
    found = run()
    return run() if any(audit.alarm for audit in getattr(found, "audits", (found,))) else found
