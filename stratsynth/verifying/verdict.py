"""Verdict on a release: what is wrong, what was checked, and what no file can show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stratsynth.report.page import Page, Section
from stratsynth.report.text import render

WHOSE = "that the rows were those of the people it speaks of, and that each person had as many rows as the unit says"
WHOSE_LINKED = "that the rows were those of the {0}s it speaks of, and that the keys tell one {0} from another"
"""WHOSE of linked tables, with the name of the parent."""
NEVER = (
    "that the machine, its randomness and whoever ran it were honest: noise cannot be told from its result",
    "that what was declared public was public: schema, bounds, groups, weights, priors, declared size, settings",
    "that model and tables were made from the noisy answers alone; the program that made them sees nothing else",
    "that nothing else was published of the same people, under other ledgers or by others",
)
"""Assumptions that no release can prove, whoever checks it."""


@dataclass
class Notes:
    """Sentences collected during the checks."""

    findings: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """Result of `verify`."""

    findings: tuple[str, ...]
    """Errors, one sentence each; empty if every check passed."""
    checked: tuple[str, ...]
    """Checks that passed."""
    unchecked: tuple[str, ...]
    """Statements that could not be checked, and must be believed."""

    @property
    def ok(self) -> bool:
        """True if no check failed; statements that could not be checked do not count."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Return {"ok": a bool, "findings", "checked" (checks that passed), "unchecked": lists of sentences}."""
        parts = {"findings": self.findings, "checked": self.checked, "unchecked": self.unchecked}
        return {"ok": self.ok, **{name: list(sentences) for name, sentences in parts.items()}}

    def to_text(self) -> str:
        """Return this verdict as text for a terminal, the outcome first."""
        parts = {"": self.findings, "Checked:": self.checked, "Not checked, and to be believed:": self.unchecked}
        sections = [Section("", head, text=[f"- {line}" for line in lines]) for head, lines in parts.items() if lines]
        return render(Page("What was looked at holds." if self.ok else "DOES NOT HOLD:", sections=sections))
