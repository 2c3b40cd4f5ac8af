"""What was found of a release: what is wrong, what was checked, and what no file can show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stratsynth.report.page import Page, Section
from stratsynth.report.text import render

NEVER = (
    "that the rows were those of the people it speaks of, and that each person had as many rows as the unit says",
    "that the machine, its randomness and whoever ran it were honest: noise cannot be told from its result",
    "that what was declared public was public: schema, bounds, groups, weights, priors, declared size, settings",
    "that model and tables were made from the noisy answers alone; the program that made them sees nothing else",
    "that nothing else was published of the same people, under other ledgers or by others",
)
"""What no release can show, whoever looks at it."""


@dataclass
class Notes:
    """Sentences as they are found."""

    findings: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """What `verify` found."""

    findings: tuple[str, ...]
    """What is wrong, a sentence each; empty where everything that was looked at holds."""
    checked: tuple[str, ...]
    """What was looked at and holds."""
    unchecked: tuple[str, ...]
    """What could not be looked at, and has to be believed."""

    @property
    def ok(self) -> bool:
        """Whether everything that was looked at holds. What could not be looked at does not count against it."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        parts = {"findings": self.findings, "checked": self.checked, "unchecked": self.unchecked}
        return {"ok": self.ok, **{name: list(sentences) for name, sentences in parts.items()}}

    def to_text(self) -> str:
        """For a reader: the verdict first."""
        parts = {"": self.findings, "Checked:": self.checked, "Not checked, and to be believed:": self.unchecked}
        sections = [Section("", head, text=[f"- {line}" for line in lines]) for head, lines in parts.items() if lines]
        return render(Page("What was looked at holds." if self.ok else "DOES NOT HOLD:", sections=sections))
