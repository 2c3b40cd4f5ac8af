"""Findings of an audit, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stratsynth.report.page import Column, Figure, Page, Section, Table, Value
from stratsynth.report.text import render

WITHIN, VIOLATION = "within", "VIOLATION"
NEEDED = 0.999
"""Power from which a control must be caught."""
DISCLAIMER = (
    "A lower bound above its claim proves a fault. A lower bound below its claim is no proof that there is no fault: "
    "these experiments, on these tables, in these runs, found none. `lower` is right with 95 % confidence, a VIOLATION "
    "with 99.99 %. Controls are the same experiments on drivers broken on purpose; `power` is how often a driver with "
    "half the noise is caught."
)


@dataclass(frozen=True)
class Control:
    """Result of the experiment on a driver that is broken on purpose."""

    name: str
    """Description of the fault."""
    claim: float
    """Claim in the unit of the audit; the wrong claim, if the fault is in it."""
    lower: float
    """Lower bound at 95 % confidence, in the unit of the audit."""
    runs: int
    power: float
    """Probability that `runs` runs catch the fault, computed from it."""
    must: bool
    """True if it must be caught."""
    alarm: bool
    """True if it was caught at 99.99 % confidence."""
    seconds: float

    @property
    def state(self) -> str:
        """Outcome: `caught`; `MISSED` if it should have been; `no power` if so few runs cannot be expected to."""
        if self.alarm:
            return "caught"
        return "MISSED" if self.must else "no power"

    def to_dict(self) -> dict[str, Any]:
        """Mapping of plain values, for JSON: "name", "claim", "lower", "runs", "power", "state" and "seconds"."""
        return {
            "name": self.name,
            "claim": self.claim,
            "lower": self.lower,
            "runs": self.runs,
            "power": self.power,
            "state": self.state,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Audit:
    """One experiment: the claimed privacy loss, and a lower bound on the real one."""

    what: str
    """Description of what is audited."""
    unit: str
    """Unit of claim and bound: `mu`, `sqrt(2 rho)`, or epsilon at a delta."""
    claim: float
    """Charged privacy loss, in that unit."""
    lower: float
    """Lower bound on the loss at 95 % confidence; of several claims, the bound nearest its claim."""
    sure: float
    """Lower bound at 99.99 % confidence."""
    runs: int
    """Number of answers drawn from each of the two tables."""
    power: float | None
    """Probability that `runs` runs catch half the noise; None if there is no such control."""
    alarm: bool
    """True if the claim is refuted at 99.99 % confidence."""
    seconds: float
    """Time of the honest runs, in seconds."""
    controls: tuple[Control, ...] = ()
    """Results on broken drivers."""
    note: str = ""
    """Remark for the report."""

    @property
    def share(self) -> float:
        """Lower bound at 95 % on the privacy loss, as a part of the claim: 1 is all of it."""
        return self.lower / self.claim

    @property
    def verdict(self) -> str:
        """Verdict, a text: `VIOLATION` if this audit raises an alarm, else `within`."""
        return VIOLATION if self.alarm else WITHIN

    @property
    def passed(self) -> bool:
        """True without a violation, and without a missed control that should have been caught."""
        return not self.alarm and all(control.state != "MISSED" for control in self.controls)

    def to_dict(self) -> dict[str, Any]:
        """Mapping of plain values, for JSON: "what", "unit", "claim", bounds "lower" and "lower_sure", "share", "runs".

        Further keys are "power", "seconds", "verdict", "note" and "controls", a list of mappings, one a control.
        """
        return {
            "what": self.what,
            "unit": self.unit,
            "claim": self.claim,
            "lower": self.lower,
            "lower_sure": self.sure,
            "share": self.share,
            "runs": self.runs,
            "power": self.power,
            "seconds": self.seconds,
            "verdict": self.verdict,
            "note": self.note,
            "controls": [control.to_dict() for control in self.controls],
        }


@dataclass(frozen=True)
class Report:
    """Several audits, and the findings of a replay."""

    audits: tuple[Audit, ...]
    """Experiments, in order."""
    findings: tuple[str, ...] = field(default=())
    """Faults found by `stratsynth.testing.check_contract`."""
    skipped: tuple[str, ...] = ()
    """Parts not audited, with the reason."""

    @property
    def passed(self) -> bool:
        """True if nothing was found, and every control that should have been caught was."""
        return not self.findings and all(audit.passed for audit in self.audits)

    def to_dict(self) -> dict[str, Any]:
        """Mapping of plain values, for JSON, with keys "passed", "audits", "replay", "skipped" and "reading".

        "passed" is a truth value; "audits" has a mapping an audit, "replay" findings of the replay, "skipped" the parts
        left out, and "reading" the text that says how to read it.
        """
        audits = [audit.to_dict() for audit in self.audits]
        return {
            "passed": self.passed,
            "audits": audits,
            "replay": list(self.findings),
            "skipped": list(self.skipped),
            "reading": DISCLAIMER,
        }

    def to_text(self) -> str:
        """Text for a terminal: a table with a row for each audit and, below it, one for each control; then notes."""
        heads = [
            Column("what", "text"),
            *map(Column, ("claim", "lower", "share", "runs", "power", "seconds")),
            Column("verdict", "text"),
            Column("unit", "text"),
        ]
        rows = [line for audit in self.audits for line in _lines(audit)]
        notes = [
            *(f"{audit.what}: {audit.note}" for audit in self.audits if audit.note),
            *(f"replay: {finding}" for finding in self.findings),
            *(f"not audited: {reason}" for reason in self.skipped),
            DISCLAIMER,
        ]
        table = Table("", heads, rows, most=len(rows))
        return render(Page("Audit", sections=[Section("audits", "", figures=[Figure("", table=table)], notes=notes)]))


def _lines(audit: Audit) -> Iterator[list[Value]]:
    """Yield the cells of an audit's line in the report's table, then of each control's."""
    yield _line(audit.what, audit, audit.verdict, audit.unit)
    for control in audit.controls:
        yield _line(f"- control: {control.name}", control, control.state, "")


def _line(what: str, found: Audit | Control, verdict: str, unit: str) -> list[Value]:
    numbers = f"{found.claim:.4f}", f"{found.lower:.4f}", f"{found.lower / found.claim:.0%}", found.runs
    power = "" if found.power is None else f"{found.power:.3f}"
    return [what, *numbers, power, f"{found.seconds:.1f}", verdict, unit]
