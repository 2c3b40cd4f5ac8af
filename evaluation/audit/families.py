"""Audits of the questions themselves, run by `stratsynth audit`, short and long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.accounting.budget import Neighbours
from stratsynth.evaluation.audit.attribute import attribute_steps
from stratsynth.evaluation.audit.choices import choices, enumerated
from stratsynth.evaluation.audit.report import Report
from stratsynth.evaluation.audit.sampled import sampled_steps
from stratsynth.evaluation.audit.tables import move, tables
from stratsynth.evaluation.audit.totals import gaussian_total, laplace_total

if TYPE_CHECKING:
    from stratsynth.evaluation.audit.harness import Experiment


@dataclass(frozen=True)
class Family:
    """Experiment with its numbers of runs on each table."""

    make: Callable[[], Experiment]
    short: int
    long: int


FAMILIES = (
    Family(tables, 200_000, 5_000_000),
    Family(move, 200_000, 5_000_000),
    Family(choices, 14_000, 100_000),
    Family(gaussian_total, 60_000, 1_000_000),
    Family(lambda: gaussian_total(Neighbours.REPLACE), 60_000, 1_000_000),
    Family(laplace_total, 50_000, 1_000_000),
    Family(sampled_steps, 12_000, 100_000),
    Family(attribute_steps, 40_000, 200_000),
)
"""Families with numbers of runs at which half the noise is always caught, three quarters with power 0.999 or more."""


def audit_primitives(*, long: bool = False) -> Report:
    """Report on audits of the questions themselves, on the real driver, with controls; `long` takes more runs.

    Counts, choices, totals, sampled totals, a move between strata, and an attribute that changes.
    """
    audits = [family.make().run(family.long if long else family.short) for family in FAMILIES]
    return Report((*audits[:2], enumerated(2000 if long else 200), *audits[2:]))
