"""Fitting: everything that can be refused is refused first, then a reservation is made, then questions are asked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Allotment, Budget
from stratsynth.accounting.ledger import Request
from stratsynth.accounting.prices import check_allotment
from stratsynth.accounting.units import protecting, whole
from stratsynth.checks import check_seed
from stratsynth.data.table import Table
from stratsynth.digest import digest
from stratsynth.errors import MechanismError, UsageError
from stratsynth.mechanisms import Mechanism, Public, demand, title

if TYPE_CHECKING:
    from stratsynth.driver.lockstep import Asked
    from stratsynth.noise import Entropy
    from stratsynth.questions import Answer
    from stratsynth.release import Release


def fit(
    mechanism: Mechanism[Any],
    table: Table,
    budget: Budget,
    *,
    seed: int | None = None,
    entropy: Entropy | None = None,
    workers: int = 1,
) -> Release:
    """Spend a budget on a table and return a release.

    `seed` reaches post-processing only. Noise comes from the operating system; another `entropy` is for tests,
    and the certificate of what it made says NOT PRIVATE. With a ledger file, a fit that was interrupted is
    resumed by calling this again with the same arguments.

    `workers` processes fit the strata's models, from noisy answers; the rows stay here. The result is the same bit
    for bit. It pays for large models, such as those of many structural rules, and for `engine = "mbi"`; small
    models are fitted sooner than processes start.
    """
    with fitted(mechanism, table, budget, seed=seed, entropy=entropy, workers=workers) as release:
        return release


@contextlib.contextmanager
def fitted(
    mechanism: Mechanism[Any],
    table: Table,
    budget: Budget,
    *,
    seed: int | None = None,
    entropy: Entropy | None = None,
    tick: Callable[[], None] | None = None,
    ready: Callable[[], object] = lambda: None,
    workers: int = 1,
) -> Iterator[Release]:
    """Like `fit`, but the fit counts as interrupted, and can be resumed, until the `with` block ends well.

    Put the saving of the release inside: if the disk is full, the same fit goes on without a second charge.
    `tick` is called whenever the questions of one moment have been answered, and for every model that was fitted;
    `ready` once more before a new reservation: it raises where the release could not be saved.
    """
    import numpy as np

    from stratsynth.data.load import load_rows
    from stratsynth.driver.lockstep import run
    from stratsynth.driver.private import PrivateAnswers
    from stratsynth.driver.solving import Solvers, check_workers
    from stratsynth.models import Estimate, TableModel
    from stratsynth.noise import SystemEntropy
    from stratsynth.release import Release
    from stratsynth.release.certificate import certificate
    from stratsynth.release.measurements import measurements_table

    check_workers(workers)
    source = entropy or SystemEntropy()
    private = type(source) is SystemEntropy  # answers with seeded noise must never be resumed by a private fit
    public, allot, request = _judged(mechanism, table, budget, seed, private=private, ready=ready)
    account = table.ledger.open(request)
    try:
        answers = PrivateAnswers(lambda: load_rows(table.schema, table.source), account, source)
        steps = mechanism.steps(public, allot, np.random.default_rng(account.seed))

        def answer(asked: Sequence[Asked]) -> list[Answer]:
            replies = answers(asked)
            if tick is not None:
                tick()
            return replies

        with Solvers(workers, tick) as solve:
            model = run(steps, table.schema, answer, solve)
        if not isinstance(model, TableModel | Estimate):
            kind = type(model).__name__
            raise MechanismError(f"{mechanism.name} returned {kind}, which is no table model and no estimate.")
        yield Release(
            model,
            certificate(mechanism, table, account, private=private, unverified=answers.unverified),
            measurements_table(answers.measurements),
            table.declared_size,
        )
        account.finish()
    finally:
        account.close()


def requested(mechanism: Mechanism[Any], table: Table, budget: Budget, *, seed: int | None = None) -> Request:
    """What a fit will ask of the ledger. Refuses all that the fit would refuse, and reads and reserves nothing."""
    return _judged(mechanism, table, budget, seed)[2]


def _judged(
    mechanism: Mechanism[Any],
    table: Table,
    budget: Budget,
    seed: int | None,
    *,
    private: bool = True,
    ready: Callable[[], object] = lambda: None,
) -> tuple[Public, Allotment, Request]:
    """What the mechanism may know and what it may spend on one row, after everything that can be refused is."""
    from stratsynth.driver.private import SERVED

    budget = protecting(budget, table.schema)
    _check(table, budget)
    check_seed(seed)
    demand(mechanism, SERVED)
    public = Public(table.schema, table.declared_size, budget.neighbours)
    allot = mechanism.price(public, budget)
    check_allotment(allot, budget)
    identity = digest(table.schema.sha256, table.declared_size, mechanism.name, mechanism, budget, allot, seed, private)
    return public, allot, Request(identity, title(mechanism), budget, whole(allot), seed, ready)


def _check(table: Table, budget: Budget) -> None:
    """Refuse what must not be fitted: an unreviewed schema, a delta too large."""
    table.schema.ready()
    if table.declared_size is not None and budget.delta >= 1 / table.declared_size:
        raise UsageError(
            f"budget: delta {budget.delta:g} is not below 1/{table.declared_size}, one over the declared size: "
            "it would allow releasing a record outright. 1e-9 is usual."
        )
