"""Fitting: everything that can be refused is refused first, then a reservation is made, then questions are asked."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Budget
from stratsynth.accounting.ledger import Request
from stratsynth.accounting.units import protecting, whole
from stratsynth.checks import check_seed, said
from stratsynth.data.table import PrivateTable
from stratsynth.digest import digest
from stratsynth.errors import MechanismError, Unsupported, UsageError
from stratsynth.mechanisms import Mechanism, Prepared, prepare
from stratsynth.mechanisms.prepared import check_budget, check_delta, origins_of
from stratsynth.progress import bar, wanted
from stratsynth.stratified.weighted import Weighted

if TYPE_CHECKING:
    from stratsynth.driver.solving import Workers
    from stratsynth.noise import Entropy
    from stratsynth.planning.rehearsal import Rehearsal
    from stratsynth.priors import Prior
    from stratsynth.release import Release
    from stratsynth.weights import Weights


def fit(
    mechanism: Mechanism[Any] | str,
    table: PrivateTable,
    budget: Budget,
    *,
    seed: int | None = None,
    entropy: Entropy | None = None,
    workers: Workers = 1,
    progress: bool | None = None,
    prior: Prior | None = None,
    weights: Weights | None = None,
) -> Release:
    """Spend a budget on a table and return a release.

    With a ledger file, a fit that was interrupted is resumed by calling this again with the same arguments.

    Args:
        mechanism: What is fitted, such as `MST()` or `Stratified(MST(), by=[...], weights=...)`; or the name of an
            installed mechanism, such as "mst", which `stratsynth mechanisms` lists.
        table: The private table, from `open_table`.
        budget: What the fit may spend.
        seed: Reaches post-processing only. Noise comes from the operating system.
        entropy: Another source of noise, for tests; the certificate of what it made says NOT PRIVATE.
        workers: How many processes fit the strata's models, from noisy answers; the rows stay here. Or "processes", as
            many as there are cores; "dask" or "ray", a cluster on this machine for this fit, and with an address
            behind a colon, as in "dask:tcp://10.0.0.1:8786", one that runs already. The result is the same bit for bit
            where processors are of one kind. It pays for large models, such as those of many structural rules, and for
            `engine = "mbi"`; small models are fitted sooner than processes start. Or a solver of your own, a callable
            of the form of `stratsynth.driver.solving.Solving`.
        progress: Whether to show a bar with the time that is left; by default on a terminal and in a notebook.
        prior: What is public already, such as last year's file: see `Prior`. The fit starts from it, and leaves it
            where paid answers disagree.
        weights: Public shares of groups, such as `Weights.public("shares.csv", citation=...)`, for a mechanism without
            strata: it spends nothing on what these say, and rows are drawn by them. As `Weighted(mechanism, weights)`.

    Returns:
        The release: a model, its certificate and its measurements.

    Raises:
        UsageError: What is refused before anything is charged; its subclasses say what kind of request it was.
        BudgetRefused: What the ledger has not enough left for. Nothing was read.
        StratsynthError: What failed after a charge, which stands.
    """
    if weights is not None:
        mechanism = Weighted(mechanism, weights)
    if not wanted(progress):
        with fitted(
            mechanism, table, budget, seed=seed, entropy=entropy, workers=workers, prior=prior
        ) as release:  # fmt: skip
            return release
    with (
        bar("fitting") as tick,
        fitted(
            mechanism, table, budget, seed=seed, entropy=entropy, workers=workers, tick=lambda: tick(None, None),
            foretold=lambda rehearsal: tick(0, rehearsal.moments), prior=prior,
        ) as release,
    ):  # fmt: skip
        return release


@contextlib.contextmanager
def fitted(
    mechanism: Mechanism[Any] | Prepared | str,
    table: PrivateTable,
    budget: Budget,
    *,
    seed: int | None = None,
    entropy: Entropy | None = None,
    tick: Callable[[], object] = lambda: None,
    ready: Callable[[], object] = lambda: None,
    foretold: Callable[[Rehearsal], object] = lambda _: None,
    workers: Workers = 1,
    prior: Prior | None = None,
) -> Iterator[Release]:
    """Like `fit`, but the fit counts as interrupted, and can be resumed, until the `with` block ends well.

    Put the saving of the release inside: if the disk is full, the same fit goes on without a second charge.

    Args:
        mechanism: As for `fit`; or what `prepare` made of it for this table and budget, so that it is not made again.
        table: As for `fit`.
        budget: As for `fit`.
        seed: As for `fit`.
        entropy: As for `fit`.
        tick: Called whenever the questions of one moment have been answered, and for every model that was fitted.
        ready: Called before a new reservation; raises where the release could not be saved.
        foretold: Called with the rehearsal of the fit before anything is reserved.
        workers: As for `fit`.
        prior: As for `fit`; what is prepared has its own.
    """
    import numpy as np

    from stratsynth.driver.lockstep import run
    from stratsynth.driver.private import PrivateAnswers
    from stratsynth.driver.solving import check_workers, solving
    from stratsynth.models import Model
    from stratsynth.noise import SystemEntropy
    from stratsynth.questions import PublicRows, Raw, Total, Work
    from stratsynth.release import Release
    from stratsynth.release.certificate import certificate
    from stratsynth.release.measurements import measurements_table

    check_workers(workers)
    source = entropy or SystemEntropy()
    private = type(source) is SystemEntropy  # answers with seeded noise must never be resumed by a private fit
    prepared, request = _judged(mechanism, table, budget, seed, private=private, ready=ready, prior=prior)
    if Raw not in prepared.mechanism.needs:  # whose program is somebody else's, and has no rehearsal
        _rehearsed(prepared, foretold)
    table = table.counted_by(prepared.public.schema)
    handed_out = callable(workers) or Work in prepared.mechanism.needs
    with solving(
        workers if handed_out else 1, tick
    ) as solve:  # refuses a cluster out of reach: nothing is reserved yet
        account = table.ledger.open(request)
        numbers = not prepared.mechanism.needs.isdisjoint({Total, PublicRows})
        load = partial(table.backend.rows, numbers=numbers)
        answers = PrivateAnswers(load, account, source, prepared.admit, tick)
        try:
            steps = prepared.mechanism.steps(prepared.public, prepared.allot, np.random.default_rng(account.seed))

            model = run(steps, table.schema, answers, solve) if not table.public else _openly(
                lambda: run(steps, table.schema, answers, solve)
            )  # fmt: skip
            answers.close()  # nothing is read any more
            if not isinstance(model, Model) or model.returns != prepared.mechanism.returns:
                raise MechanismError(
                    f"{prepared.mechanism.name} returned {type(model).__name__}, which is no model of "
                    f"{prepared.mechanism.returns}."
                )
            yield Release(
                model,
                certificate(
                    prepared, table, account, private=private, unverified=answers.unverified, counted=answers.counted
                ),
                measurements_table(answers.measurements),
                table.declared_size,
            )
            account.finish()
        finally:
            answers.close()
            account.close()


def _rehearsed(prepared: Prepared, foretold: Callable[[Rehearsal], object]) -> None:
    """Refuse what would take too long, or could not be read again. The rehearsal, which may be large, ends here."""
    from stratsynth.planning.effort import check_charges, check_effort, seconds
    from stratsynth.planning.rehearsal import rehearse

    rehearsal = rehearse(prepared)
    check_charges(rehearsal.account.spending.charges)
    check_effort(seconds(prepared, rehearsal))
    foretold(rehearsal)


def _openly(work: Callable[[], Any]) -> Any:
    """Work on public rows: what went wrong in third-party code, which is hidden otherwise, is shown."""
    try:
        return work()
    except MechanismError as error:
        cause = error.__context__
        if cause is None or not error.__suppress_context__:
            raise
        where = traceback.extract_tb(cause.__traceback__)[-1]
        raise MechanismError(
            f"{type(cause).__name__}: {cause} ({where.filename}, line {where.lineno}, in {where.name}). This is shown "
            "because the rows are declared public."
        ) from cause


def requested(
    mechanism: Mechanism[Any] | str, table: PrivateTable, budget: Budget, *, seed: int | None = None,
    prior: Prior | None = None,
) -> Request:  # fmt: skip
    """What a fit will ask of the ledger. Refuses all that the fit would refuse, and reads and reserves nothing."""
    return _judged(mechanism, table, budget, seed, prior=prior)[1]


def _judged(
    mechanism: Mechanism[Any] | Prepared | str,
    table: PrivateTable,
    budget: Budget,
    seed: int | None,
    *,
    private: bool = True,
    ready: Callable[[], object] = lambda: None,
    prior: Prior | None = None,
) -> tuple[Prepared, Request]:
    """What public facts decide of the fit, and what it asks of the ledger, after everything that can be refused is."""
    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.data.stream import Stream
    from stratsynth.driver.served import check_served
    from stratsynth.files.scratch import check_room
    from stratsynth.planning.rows import held_bytes
    from stratsynth.priors import Prior

    _check_table(table)
    check_budget(budget)
    table.schema.ready(public=table.public)
    check_delta(budget, table.declared_size)
    check_seed(seed)
    if isinstance(mechanism, Prepared):
        prepared, facts = mechanism, mechanism.public
        if prior is not None:
            raise UsageError("what is prepared has its prior already; give it to `prepare`.")
        if (prepared.declared or facts.schema, facts.size, prepared.budget) != (
            table.schema, table.declared_size, protecting(budget, table.schema)
        ):  # fmt: skip
            raise UsageError("this was prepared for another schema, size or budget; prepare it again for this table.")
    else:
        if isinstance(prior, Prior) and not table.public:
            check_public_inputs(table.source, prior=prior.origins)  # before its rows are read, and their values named
        prepared = prepare(mechanism, table.schema, budget, table.declared_size, prior)
    how = prepared.mechanism
    database = table.source is not None and table.source.engine == "duckdb"
    check_served(how.name, how.needs, table.backend.reads, database=database)
    if how.public_rows_only and not table.public:
        raise Unsupported(
            f"{how.title}: a plain function claims no privacy, so it may see public rows only. Declare the data "
            "public, if they are; a synthesizer with a privacy account of its own is External(function, by=...)."
        )
    origins = () if table.public else tuple(origins_of(how, prepared.strata))
    priors = () if table.public or prepared.prior is None else prepared.prior.origins
    check_public_inputs(table.source, weights=origins, prior=priors)

    def final() -> None:
        """The last refusals, which a resumed fit has passed before."""
        ready()
        if isinstance(table.backend, Stream):
            check_room(held_bytes(prepared))
        check_public_inputs(rows=table.backend, weights=origins, prior=priors)

    query = getattr(table.source, "query", None)
    return prepared, request_of(prepared, seed, private=private, ready=final, query=query)


def _check_table(table: object) -> None:
    """Refuse what is no opened table: rows alone say neither what they may hold nor what account they hang on."""
    if not isinstance(table, PrivateTable):
        data = "data" if said(table).endswith(" object") else said(table)
        raise UsageError(
            f"the table must come from open_table, not {said(table)}; write open_table({data}, schema=...)."
        )


def request_of(
    prepared: Prepared, seed: int | None, *, private: bool = True, ready: Callable[[], object] = lambda: None,
    query: str | None = None,
) -> Request:  # fmt: skip
    """What a fit asks of the ledger: public facts decide it, without the data.

    A database's rows have one account whatever `query` selects of them, so another query is another fit.
    """
    from stratsynth.priors.stated import section_digest

    how, facts, budget, allot = prepared.mechanism, prepared.public, prepared.budget, prepared.allot
    given = () if prepared.prior is None else (prepared.prior.digest,)
    given = given if query is None else (*given, "query", query)
    identity = digest(facts.schema.sha256, facts.size, how.name, how, budget, allot, seed, private, *given)
    prior = None if prepared.prior_stated is None else section_digest(prepared.prior_stated)
    return Request(identity, how.title, budget, whole(allot), seed, ready, prepared.caps, prior)
