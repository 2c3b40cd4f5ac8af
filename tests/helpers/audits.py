"""Audits that chance does not fail."""


def judged_twice(run):
    """An audit or a report, as `run()` makes it; the second one where the first has an alarm or misses a control.

    An alarm is false once in 10^4 runs at the most, two in a row once in 10^8; a loss beyond the claim shows in both. A
    fault that must be caught is missed once in a thousand times at the most, and twice in a row once in a million.
    """
    found = run()
    return run() if any(map(doubtful, getattr(found, "audits", (found,)))) else found


def doubtful(audit):
    return audit.alarm or any(control.state == "MISSED" for control in audit.controls)
