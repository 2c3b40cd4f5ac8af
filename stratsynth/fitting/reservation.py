"""Reservation of a fit, where rows, entropy and account meet: all are in the driver's hands alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.account import Request
from stratsynth.accounting.units import per_unit
from stratsynth.digest import digest

if TYPE_CHECKING:
    from stratsynth.accounting.account import FitAccount
    from stratsynth.data.table import PrivateTable
    from stratsynth.driver.private import PrivateAnswers
    from stratsynth.driver.solving import Solving, Workers
    from stratsynth.mechanisms import Prepared
    from stratsynth.mechanisms.terms import Terms
    from stratsynth.noise import Entropy
    from stratsynth.questions import NoisyTable
    from stratsynth.schema import Schema


@dataclass(frozen=True, eq=False)
class Reservation:
    """The part of a budget that a fit has reserved, with all that the fit may use while it lasts."""

    account: FitAccount
    answers: PrivateAnswers
    """Only access to the rows."""
    solve: Solving
    """Solver of models, in this process or where the workers are."""
    schema: Schema
    """Schema by which rows are read."""

    def ask_first(self, terms: Terms) -> NoisyTable:
        """Return the `NoisyTable`: numbers of usable records and of each column's outside values, priced by `terms`."""
        from stratsynth.driver.lockstep import run
        from stratsynth.questions import usable

        currency = terms.allot.currency
        return run(usable(terms.budget.opening(currency), currency), self.schema, self.answers, self.solve)

    def run(self, terms: Terms) -> Any:
        """Return the result of the program of `terms` on private answers; then close them: nothing is read any more.

        What its questions may cost is reserved before the first of them, where it is not yet.
        """
        import numpy as np

        from stratsynth.driver.lockstep import run

        self.account.reserve_rest()
        rng = np.random.default_rng(self.account.seed)
        steps = terms.mechanism.steps(terms.public, replace(terms.allot), rng)  # an allotment of the program's own
        result = run(steps, self.schema, self.answers, self.solve)
        self.answers.close()
        return result


@contextlib.contextmanager
def reserved(
    terms: Terms,
    table: PrivateTable,
    request: Request,
    entropy: Entropy | None,
    workers: Workers,
    step: Callable[[], object],
) -> Iterator[Reservation]:
    """Yield the `Reservation` of the allotment, new or of an equal fit; it is done when the block ends well.

    Args:
        terms: The questions and strata that the fit may ask.
        table: The private table, whose rows are read by the schema that the fit counts.
        request: The request to the table's ledger.
        entropy: The source of noise, for tests; None for the operating system's.
        workers: Processes, or a solver, that fit models.
        step: Called when a batch was answered, or a model fitted.
    """
    from stratsynth.driver.private import PrivateAnswers
    from stratsynth.driver.solving import solving
    from stratsynth.noise import SystemEntropy
    from stratsynth.questions import Work

    needs = terms.mechanism.needs
    load = partial(table.backend.rows, numbers=any(kind.reads & {"sums", "columns"} for kind in needs))
    entropy = SystemEntropy() if entropy is None else entropy
    handed_out = callable(workers) or Work in needs
    with (
        solving(workers if handed_out else 1, step) as solve,  # a cluster out of reach is refused here
        contextlib.closing(table.ledger.open(request)) as account,
        contextlib.closing(PrivateAnswers(load, account, entropy, terms.admit, step)) as answers,
    ):
        yield Reservation(account, answers, solve, table.schema)
        account.finish()


def is_private(entropy: Entropy | None) -> bool:
    """True if `entropy`, or None, is the operating system's: such a fit never resumes with answers of other noise."""
    from stratsynth.noise import SystemEntropy

    return entropy is None or type(entropy) is SystemEntropy


def request_of(prepared: Prepared, seed: int | None, *, private: bool = True, query: str | None = None) -> Request:
    """Return the `Request` of the fit `prepared` to the ledger, by public facts, `seed`, `private` noise and `query`.

    Equal fits have equal ones. All queries of a database's table share one account, so another query is another fit.
    """
    from stratsynth.priors.certificate_section import section_digest

    how, facts, budget, allot = prepared.mechanism, prepared.public, prepared.budget, prepared.allot
    given = () if prepared.prior is None else (prepared.prior.digest,)
    given = given if query is None else (*given, "query", query)
    opening = allot.opening
    given = given if opening is None else (*given, "first", opening.currency, opening.amount)
    identity = digest(facts.schema.sha256, facts.size, how.name, how, budget, allot, seed, private, *given)
    prior = None if prepared.prior_stated is None else section_digest(prepared.prior_stated)
    first = None if opening is None else per_unit(opening)
    whole = per_unit(allot.reserved)
    return Request(identity, how.title, budget.plain, whole, seed, caps=prepared.caps, prior=prior, opening=first)
