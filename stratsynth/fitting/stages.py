"""The stages of a fit: all that can be refused is refused, then a reservation is made, then questions asked."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from stratsynth.accounting.budget import Budget
from stratsynth.data.table import PrivateTable
from stratsynth.errors import MechanismError, UsageError
from stratsynth.fitting.observer import SILENT, Observer, observing
from stratsynth.fitting.refusals import check_against_table, check_arguments, check_before_reserving, prepared_for
from stratsynth.fitting.reservation import Reservation, is_private, request_of, reserved
from stratsynth.mechanisms import Mechanism, Prepared
from stratsynth.stratified.weighted import Weighted

if TYPE_CHECKING:
    from stratsynth.accounting.ledger import Request
    from stratsynth.driver.solving import Workers
    from stratsynth.models import Model
    from stratsynth.noise import Entropy
    from stratsynth.priors import Prior
    from stratsynth.release import Release
    from stratsynth.weights import Weights


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of a fit, apart from mechanism, table and budget."""

    seed: int | None = None
    """Seed of post-processing; None for a random one."""
    workers: Workers = 1
    """Number of processes, or a solver, that fit the strata's models."""
    prior: Prior | None = None
    """Public rows that the fit starts from; a prepared fit has its own."""
    entropy: Entropy | None = None
    """Source of noise for tests; None for the operating system's."""
    progress: bool | None = None
    """True for a progress bar; None for one on a terminal and in a notebook."""

    @property
    def private(self) -> bool:
        """True if noise comes from the operating system: a private fit never resumes with answers of other noise.

        Refuses (UsageError) a source of noise that is none.
        """
        if self.entropy is not None and not callable(getattr(self.entropy, "uniform64", None)):
            raise UsageError("entropy is for tests: a source such as SeededEntropy(0), or None.")
        return is_private(self.entropy)

    def over(self, **others: Any) -> Self:
        """Return a copy with the options `others`, where they are not None."""
        return replace(self, **{name: value for name, value in others.items() if value is not None})


DEFAULTS = FitOptions()


@dataclass(frozen=True, eq=False)
class Fit:
    """One fit, stage by stage, in this order.

        fit = Fit.prepare(mechanism, table, budget, options)  # reads nothing
        fit.rehearse(observer)
        with fit.reserve(observer, folder) as reserved:
            model = fit.run(reserved)
            release = fit.certify(model, reserved)
            release.save(folder)

    The fit counts as interrupted, and can be resumed by the same stages, until the `with` block ends well. So the
    release is saved inside it: if the disk is full, the same fit resumes without a second charge.
    """

    prepared: Prepared
    """All of the fit that public facts decide."""
    table: PrivateTable
    """Table, whose rows are read by the schema that the fit counts, as with code lists in groups."""
    options: FitOptions
    request: Request
    """Request to the ledger."""

    @classmethod
    def prepare(
        cls,
        mechanism: Mechanism[Any] | Prepared | str,
        table: PrivateTable,
        budget: Budget,
        options: FitOptions = DEFAULTS,
    ) -> Fit:
        """Return the fit, or refuse it by public facts. No row is read, and nothing reserved.

        Args:
            mechanism: As for `fit`; or the result of `prepare` for this table and budget, so that it is not computed
                again.
            table: As for `fit`.
            budget: As for `fit`.
            options: All other options.
        """
        from stratsynth.driver.solving import check_workers

        check_workers(options.workers)
        check_arguments(table, budget, options.seed)
        prepared = prepared_for(mechanism, table, budget, options.prior)
        check_against_table(prepared, table)
        query = getattr(table.source, "query", None)
        request = request_of(prepared, options.seed, private=options.private, query=query)
        return cls(prepared, table.counted_by(prepared.public.schema), options, request)

    def rehearse(self, observer: Observer = SILENT) -> None:
        """Run the fit on simulated answers; Unsupported if it takes too long, or its certificate is too large."""
        from stratsynth.planning.rehearsal import check_charges, check_effort, rehearse
        from stratsynth.questions import Raw

        if Raw in self.prepared.mechanism.needs:  # whose program is somebody else's, and has no rehearsal
            return
        rehearsal = rehearse(self.prepared)
        check_charges(rehearsal.account.spending.charges)
        check_effort(rehearsal.seconds)
        observer.rehearsed(rehearsal)

    def reserve(
        self, observer: Observer = SILENT, folder: Path | None = None
    ) -> contextlib.AbstractContextManager[Reservation]:
        """Yield the reservation of the allotment, new or of an equal fit; it is done when the block ends well.

        Args:
            observer: Receiver of every step.
            folder: The folder of the release; refused before a new reservation if a release cannot be made there.
        """
        before = partial(check_before_reserving, self.prepared, self.table, folder)
        request = replace(self.request, before_reserving=before)
        return reserved(self.prepared, self.table, request, self.options.entropy, self.options.workers, observer.step)

    def run(self, reserved: Reservation) -> Model:
        """Return the model that the mechanism's program makes of private answers; MechanismError if it is none."""
        from stratsynth.models import Model

        prepared, how = self.prepared, self.prepared.mechanism
        ask = partial(reserved.run, prepared)
        model = _openly(ask) if self.table.public else ask()
        if not isinstance(model, Model) or model.returns != how.returns:
            raise MechanismError(f"{how.name} returned {type(model).__name__}, which is no model of {how.returns}.")
        return model

    def certify(self, model: Model, reserved: Reservation) -> Release:
        """Return the release of a model, with measurements and a certificate that states the charges."""
        from stratsynth.release import Release
        from stratsynth.release.certificate import certificate
        from stratsynth.release.measurements import measurements_table

        answers = reserved.answers
        stated = certificate(
            self.prepared,
            self.table,
            reserved.account,
            private=self.options.private,
            unverified=answers.unverified,
            counted=answers.counted,
        )
        return Release(model, stated, measurements_table(answers.measurements), self.table.declared_size)


def _openly(work: Callable[[], Any]) -> Any:
    """Return the result of `work` on public rows; an error of third-party code is shown in full."""
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


@contextlib.contextmanager
def fitted(
    mechanism: Mechanism[Any] | Prepared | str,
    table: PrivateTable,
    budget: Budget,
    options: FitOptions = DEFAULTS,
    observer: Observer = SILENT,
    *,
    folder: Path | None = None,
) -> Iterator[Release]:
    """Yield the release after all stages of a `Fit` but saving, which belongs into the `with` block."""
    fit = Fit.prepare(mechanism, table, budget, options)
    fit.rehearse(observer)
    with fit.reserve(observer, folder) as reserved:
        yield fit.certify(fit.run(reserved), reserved)


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
    """Spend a budget on a table and return a release, which is not saved.

    With a ledger file, a fit that was interrupted is resumed by calling this again with the same arguments.

    Args:
        mechanism: The mechanism, such as `MST()` or `Stratified(MST(), by=[...], weights=...)`; or the name of an
            installed mechanism, such as "mst", which `stratsynth mechanisms` lists.
        table: The private table, from `open_table`.
        budget: The budget of the fit.
        seed: The seed of post-processing. Noise comes from the operating system.
        entropy: A source of noise for tests; the certificate of its release says NOT PRIVATE.
        workers: Number of processes that fit the strata's models, from noisy answers; the rows stay here. Or
            "processes", one per core; "dask" or "ray", a cluster on this machine for this fit, and with an address
            behind a colon, as in "dask:tcp://10.0.0.1:8786", one that runs already. The result is the same bit for bit
            where processors are of one kind. It pays for large models, such as those of many structural rules, and for
            `engine = "mbi"`; small models are fitted sooner than processes start. Or a solver of your own, a callable
            of the form of `stratsynth.driver.solving.Solving`.
        progress: True to show a bar with the time that is left; by default on a terminal and in a notebook.
        prior: Public data, such as last year's file: see `Prior`. The fit starts from them, and departs from them
            where paid answers disagree.
        weights: Public shares of groups, such as `Weights.public("shares.csv", citation=...)`, for a mechanism without
            strata: it spends nothing on what these say, and rows are drawn by them. As `Weighted(mechanism, weights)`.

    Returns:
        The release: a model, its certificate and its measurements.

    Raises:
        UsageError: A fit that is refused before anything is charged; its subclasses are kinds of refusals.
        BudgetRefused: More epsilon than the ledger has left. Nothing was read.
        StratsynthError: A failure after a charge, which stands.
    """
    if weights is not None:
        mechanism = Weighted(mechanism, weights)
    options = FitOptions(seed=seed, workers=workers, prior=prior, entropy=entropy, progress=progress)
    with observing(progress) as observer, fitted(mechanism, table, budget, options, observer) as release:
        return release
