"""Verdict on a release: what is wrong, what was checked, and what no file can show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NEVER = (
    "that the rows were those of the people it speaks of, and that each person had as many rows as the unit says",
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
        """True if no check failed. Statements that could not be checked do not count."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Verdict as plain values, for programs."""
        parts = {"findings": self.findings, "checked": self.checked, "unchecked": self.unchecked}
        return {"ok": self.ok, **{name: list(sentences) for name, sentences in parts.items()}}

    def to_text(self) -> str:
        """Verdict as text, the outcome first."""
        parts = ["What was looked at holds." if self.ok else "DOES NOT HOLD:", *_listed(self.findings)]
        for head, sentences in (("Checked:", self.checked), ("Not checked, and to be believed:", self.unchecked)):
            parts += ["", head, *_listed(sentences)] if sentences else []
        return "\n".join(parts)


def _listed(sentences: tuple[str, ...]) -> list[str]:
    return [f"  - {sentence}" for sentence in sentences]
