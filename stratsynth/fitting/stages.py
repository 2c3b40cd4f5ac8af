"""The stages of a fit: all that can be refused is refused, then a reservation is made, then questions asked."""

from __future__ import annotations

import contextlib
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from stratsynth.accounting.budget import Budget
from stratsynth.accounting.history import unfinished
from stratsynth.checks import number
from stratsynth.data.table import PrivateTable
from stratsynth.errors import MechanismError, NoticeWarning, Stopped, UsageError
from stratsynth.fitting.observer import SILENT, Observer, observing
from stratsynth.fitting.refusals import (
    check_against_table,
    check_arguments,
    check_before_reserving,
    check_controls,
    check_exact,
    check_groups,
    check_measured,
    prepared_for,
)
from stratsynth.fitting.reservation import Reservation, is_private, request_of, reserved
from stratsynth.mechanisms import Mechanism, Prepared
from stratsynth.release.equivalence import MARGIN
from stratsynth.release.first import FirstAnswer
from stratsynth.stratified.weighted import Weighted

if TYPE_CHECKING:
    from stratsynth.accounting.ledger import Request
    from stratsynth.driver.solving import Workers
    from stratsynth.models import Model
    from stratsynth.noise import Entropy
    from stratsynth.priors import Prior
    from stratsynth.release import Release
    from stratsynth.release.controls import Benchmark, ControlTable
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
    proceed: bool = False
    """True to go on where the first question finds far fewer usable records than declared."""
    groups: str = "declared"
    """Sizes of the groups among the rows: "declared" by the shares, "measured" by the noisy sizes."""
    margin: float = MARGIN
    """Relative difference of a declared from a measured number that counts as none."""
    benchmark: Benchmark | None = None
    """Published totals that rows are raked to; None for rows by the fitted model."""

    def __post_init__(self) -> None:
        """Refuse groups other than declared or measured ones, and a margin outside of 0 to 1."""
        check_groups("groups", self.groups)
        number("margin", self.margin, above=0, below=1, hint=", such as 0.05 for 5 percent")

    @property
    def exact(self) -> bool:
        """True if rows are raked to exact totals of the private rows, which are then listed as unprotected."""
        return self.benchmark is not None and self.benchmark.exact

    @property
    def private(self) -> bool:
        """True if noise comes from the operating system: a private fit never resumes with answers of other noise.

        Refuses (UsageError) a source of noise that is none.
        """
        if self.entropy is not None and not callable(getattr(self.entropy, "uniform64", None)):
            raise UsageError("entropy is for tests: a source such as SeededEntropy(0), or None.")
        return is_private(self.entropy)

    def over(self, **others: Any) -> Self:
        """Return a copy with `others`, keywords named as the fields, in place of its own, where they are not None."""
        return replace(self, **{name: value for name, value in others.items() if value is not None})


DEFAULTS = FitOptions()


@dataclass(frozen=True, eq=False)
class Fit:
    """One fit, stage by stage, in this order.

        fit = Fit.prepare(mechanism, table, budget, options)  # reads nothing
        fit.rehearse(observer)
        with fit.reserve(observer, folder) as reserved:  # of the first question alone, where there is one
            model = fit.run(reserved)  # asks it, may stop, and reserves the rest
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
        """Return the `Fit`, or refuse it (UsageError) by public facts. No row is read, and nothing reserved.

        Args:
            mechanism: As for `fit`; or the result of `prepare` for this table and budget, so that it is not computed
                again.
            table: The `PrivateTable`, as for `fit`.
            budget: As for `fit`.
            options: `FitOptions`: all other options.
        """
        from stratsynth.driver.solving import check_workers
        from stratsynth.release.certificate import fixed_sections, sections_digest

        check_workers(options.workers)
        check_arguments(table, budget, options.seed)
        prepared = prepared_for(mechanism, table, budget, options.prior)
        check_against_table(prepared, table)
        if options.groups == "measured":
            check_measured(prepared)
        if options.benchmark is not None:
            check_controls(prepared, table, options.benchmark)
        query = getattr(table.source, "query", None)
        asked = partial(request_of, seed=options.seed, private=options.private, query=query)
        path = getattr(table.ledger, "path", None)  # a ledger in memory keeps no interrupted fit
        interrupted = {} if path is None else unfinished(path)
        if prepared.first.asked and interrupted:
            before = prepared.without_first()  # as earlier versions began fits
            prepared = before if asked(before).identity in interrupted else prepared
        request = asked(prepared)
        counted = table.counted_by(prepared.public.schema)
        sections = sections_digest(fixed_sections(prepared, counted, options.exact))
        begun = interrupted.get(request.identity, frozenset())
        if begun and sections not in begun:
            check_exact(begun, sections_digest(fixed_sections(prepared, counted, not options.exact)), options.exact)
        return cls(prepared, counted, options, replace(request, sections=sections))

    def rehearse(self, observer: Observer = SILENT) -> None:
        """Run the fit on simulated answers, shown to `observer`.

        Raise Unsupported if the fit would take too long, or its certificate would be too large.
        """
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
        """Yield the `Reservation` of the allotment, new or of an equal fit; it is done when the block ends well.

        Args:
            observer: Receiver of every step.
            folder: The folder of the release; refused before a new reservation if a release cannot be made there.
        """
        before = partial(check_before_reserving, self.prepared, self.table, folder, self.options.benchmark)
        request = replace(self.request, before_reserving=before)
        return reserved(self.prepared, self.table, request, self.options.entropy, self.options.workers, observer.step)

    def ask_first(self, reserved: Reservation) -> None:
        """Ask the first question, if the fit has one; its answer decides if the fit stops, and nothing else.

        A fit whose `Reservation` is of the rest already, as when it was interrupted later, has decided.

        Raises:
            Stopped: Far fewer usable records than declared, unless the options say to proceed. Its charge stands.
        """
        prepared, undecided = self.prepared, reserved.account.opening is not None
        if not prepared.first.asked:
            return
        found = FirstAnswer.of(prepared, reserved.ask_first(prepared))
        if undecided and found.too_few and not self.options.proceed:
            raise Stopped(found.stopped(saved=not self.table.public))

    def run(self, reserved: Reservation) -> Model:
        """Return the `Model` that the mechanism's program makes of a `Reservation`'s answers; MechanismError if none.

        The first question comes before, where there is one: see `ask_first`.
        """
        from stratsynth.models import Model

        self.ask_first(reserved)
        prepared, how = self.prepared, self.prepared.mechanism
        ask = partial(reserved.run, prepared)
        model = _openly(ask) if self.table.public else ask()
        if not isinstance(model, Model) or model.returns != how.returns:
            raise MechanismError(f"{how.name} returned {type(model).__name__}, which is no model of {how.returns}.")
        return model

    def certify(self, model: Model, reserved: Reservation) -> Release:
        """Return the release of a model, with the measurements of a `Reservation` and a certificate of its charges."""
        from stratsynth.questions.sums.published import PublishedSum
        from stratsynth.release import Release
        from stratsynth.release.certificate import Measured, certificate
        from stratsynth.release.laws import laws_of
        from stratsynth.release.measurements import measurements_table
        from stratsynth.release.shown import CertificateRecord

        answers, options = reserved.answers, self.options
        tables = measurements_table(answers.measurements)
        stated = certificate(
            self.prepared,
            self.table,
            reserved.account,
            private=options.private,
            unverified=answers.unverified,
            measured=Measured(model, tables, answers.counted, options.margin),
            tables=[(m.path, m.table.clique) for m in answers.measurements if not isinstance(m.table, PublishedSum)],
            usable=answers.usable,
            exact=options.exact,
        )
        inside, laws_stated = laws_of(self.prepared, model, stated.statement, tables)
        if laws_stated:
            stated = CertificateRecord({**stated, "inside": [each.to_dict() for each in laws_stated]})
        release = Release(model, stated, tables, self.table.declared_size, inside)
        release = release if options.groups == "declared" else release.by_measured_sizes()
        return release if options.benchmark is None else _raked(release, options.benchmark)


def _raked(release: Release, benchmark: Benchmark) -> Release:
    """Return a paid release raked to published totals; as it is, with a notice, where its model is too far from them.

    What was paid for is not lost with its benchmark: it may be raked to other totals later.
    """
    from stratsynth.release.benchmark import benchmarked, not_benchmarked

    try:
        return benchmarked(release, benchmark, declared=True)
    except UsageError as error:
        return not_benchmarked(release, str(error))


def _openly(work: Callable[[], Any]) -> Any:
    """Return the result of the function `work`, called without arguments, on public rows.

    A MechanismError that it raises shows third-party errors in full.
    """
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
    """Yield the release of a fit of `mechanism` to a private table by `budget` and `FitOptions`, before it is saved.

    Saving belongs into the `with` block, where `folder` is the place that was checked. `observer` sees progress.
    """
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
    groups: str = "declared",
    margin: float = MARGIN,
    proceed: bool = False,
    benchmark: Benchmark | Sequence[ControlTable] | None = None,
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
        proceed: True to go on where the first question finds far fewer usable records than declared; its answer holds.
        weights: Public shares of groups, such as `Weights.public("shares.csv", citation=...)`, for a mechanism without
            strata: it spends nothing on what these say, and rows are drawn by them. As `Weighted(mechanism, weights)`.
        groups: "declared" for as many rows of each stratum as its share says, "measured" for rows by the strata's noisy
            sizes, which costs nothing more.
        margin: The relative difference of a declared size or share from the measured one that counts as none.
        benchmark: Tables of published totals, `[ControlTable("totals.csv", citation="...")]`, that rows are raked to,
            or a `Benchmark`; as `Release.benchmarked` does for a release that is there.

    Returns:
        The release: a model, its certificate and its measurements.

    Warns:
        NoticeWarning: Something that a reader has to know before using the release; its certificate says it too.

    Raises:
        UsageError: A fit that is refused before anything is charged; its subclasses are kinds of refusals.
        BudgetRefused: More epsilon than the ledger has left. Nothing was read.
        Stopped: The first question, for a small part of the budget, found far fewer usable records than declared.
        StratsynthError: A failure after a charge, which stands.
    """
    if weights is not None:
        mechanism = Weighted(mechanism, weights)
    if benchmark is not None:
        from stratsynth.release.controls import Benchmark

        benchmark = Benchmark.of(benchmark)
    options = FitOptions(
        seed=seed, workers=workers, prior=prior, entropy=entropy, progress=progress, groups=groups, margin=margin,
        proceed=proceed, benchmark=benchmark,
    )  # fmt: skip
    with observing(progress) as observer, fitted(mechanism, table, budget, options, observer) as release:
        warn_of_notices(release, stacklevel=3)
        return release


def warn_of_notices(release: Release, stacklevel: int = 2) -> None:
    """Issue a NoticeWarning for each notice of a release's certificate, at the caller's `stacklevel`."""
    for notice in release.statement.notices:
        warnings.warn(notice.text, NoticeWarning, stacklevel=stacklevel)
