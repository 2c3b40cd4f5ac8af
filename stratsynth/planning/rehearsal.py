"""A fit on made-up answers: what it will ask, whether that can be paid, and about how long it will take.

Every question is checked and charged, to an account of its own, as in a fit. So whatever a schema, a budget and
settings cannot pay is refused here, before anything is reserved: a plan and a fit both begin with it. Of strata of
which the same is known, one runs its program, and its charges and work count for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.ledger import ProcessLedger, Request
from stratsynth.accounting.units import whole

if TYPE_CHECKING:
    from stratsynth.accounting.account import Account
    from stratsynth.driver.simulated import SimulatedAnswers
    from stratsynth.mechanisms import Prepared
    from stratsynth.models import Model
    from stratsynth.questions import Solver
    from stratsynth.strata import StratumPath

UNKNOWN = 10_000
"""How many records are made up where no size is declared."""


@dataclass(frozen=True)
class Rehearsal:
    """What came of it."""

    prepared: Prepared
    account: Account
    """What was charged, to nobody."""
    answers: SimulatedAnswers
    """What was asked."""
    model: Model | None
    """What the rehearsal returned; None where a mechanism leaves its models out."""
    fits: int
    """The number of models that were fitted, not well."""

    @property
    def moments(self) -> int:
        """How many times a fit will ask, strata together, and fit a model: what a progress bar counts to."""
        return self.answers.moments + self.fits

    @cached_property
    def seconds(self) -> float:
        """About how long the fit takes on one core."""
        from stratsynth.planning.effort import seconds

        return seconds(self)


def rehearse(prepared: Prepared) -> Rehearsal:
    """Run a mechanism's rehearsal. Reads no data and reserves nothing.

    Raises:
        StratsynthError: Whatever the fit would be refused for after its reservation.
    """
    import numpy as np

    from stratsynth.driver.lockstep import run
    from stratsynth.driver.simulated import SimulatedAnswers
    from stratsynth.driver.solving import together

    how, public, solved = prepared.mechanism, prepared.public, list[int]()
    request = Request("", how.title, prepared.budget, whole(prepared.allot), 0, caps=prepared.caps)
    account = ProcessLedger().open(request)
    answers = SimulatedAnswers(account, lambda path: round(size_of(path, prepared)), prepared.admit)

    def solve(solver: Solver[Any, Any], problems: Sequence[Any], paths: Sequence[StratumPath]) -> Sequence[Any]:
        solved.append(sum(len(answers.stands_for(path)) for path in paths))
        return together(solver, [solver.hasty(problem) for problem in problems], paths)

    steps = how.rehearsal(public, replace(prepared.allot), np.random.default_rng(0))
    model = run(steps, public.schema, answers, solve)
    return Rehearsal(prepared, account, answers, model, sum(solved))


def size_of(path: StratumPath, prepared: Prepared) -> float:
    """The public size of a path: declared size times shares."""
    shares = prepared.strata.shares if prepared.strata is not None else {}
    size = UNKNOWN if prepared.public.size is None else prepared.public.size
    return math.prod((shares.get(stratum, 1.0) for stratum in path), start=float(size))
