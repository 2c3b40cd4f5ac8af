"""`verify`: every check of a release folder, in the order in which a reader wants them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from stratsynth.checks import is_list, path, quoted_value
from stratsynth.errors import ReleaseError, UsageError
from stratsynth.release.certificate import read_record
from stratsynth.release.consistency import read_stated
from stratsynth.verifying.account import check_account
from stratsynth.verifying.agreement import check_agreement
from stratsynth.verifying.benchmark import check_benchmark
from stratsynth.verifying.by_tables import check_by_tables
from stratsynth.verifying.folder import check_folder
from stratsynth.verifying.guarantee import check_guarantee
from stratsynth.verifying.laws import check_laws
from stratsynth.verifying.measured import check_measured
from stratsynth.verifying.noise import check_noise
from stratsynth.verifying.prior import check_prior
from stratsynth.verifying.sums import check_sums
from stratsynth.verifying.verdict import NEVER, WHOSE, WHOSE_LINKED, Notes, Verdict
from stratsynth.verifying.words import check_words


def verify(
    release: str | os.PathLike[str],
    ledger: str | os.PathLike[str] | None = None,
    prior: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
) -> Verdict:
    """Return the `Verdict` on a release: guarantee recomputed from its charges, files compared with its list.

    Nothing is written, and no private row is read.

    Args:
        release: A release folder, of this version or one before.
        ledger: The ledger that the fit was charged to, if at hand.
        prior: Files that the fit's prior was read from, or the folder of the release that was the prior, if at hand.

    Returns:
        The verdict: `.ok`; `.findings`, one sentence for each error; `.checked`, the checks that passed; `.unchecked`,
        what has to be believed. Releases of versions that listed no hashes are `.ok` if the rest holds; `.unchecked`
        says so.

    Raises:
        UsageError: No such folder, no such ledger, or no such file of the prior.
    """
    folder, notes = path("the release", release), Notes()
    account = None if ledger is None else path("the ledger", ledger)
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises where a name is too long
        raise UsageError(f"there is no release folder {folder}.")
    if account is not None and not os.path.isfile(account):  # noqa: PTH113 - the same
        raise UsageError(f"there is no ledger {account}.")
    some = [prior] if isinstance(prior, str | os.PathLike) else () if prior is None else prior
    if not is_list(some):
        raise UsageError(f"the prior is a path, or a list of paths, not {quoted_value(prior)}.")
    priors = [path("the prior", each) for each in some]
    for each in priors:
        if not os.path.exists(each):  # noqa: PTH110 - the same
            raise UsageError(f"there is no file or folder {each}.")
    whose = WHOSE
    try:
        record = read_record(folder)
        certificate = record.statement
        if not isinstance(certificate.unit, str) and certificate.unit.tables:
            whose = WHOSE_LINKED.format(certificate.unit.tables[0])
        stated = read_stated(certificate, record["charges"])
    except (ReleaseError, ValueError) as error:
        notes.findings.append(f"certificate.json cannot be relied on: {error}")
    else:
        _guarded(notes, lambda: check_guarantee(certificate, stated, notes))
        _guarded(notes, lambda: check_words(certificate, stated, notes))
        _guarded(notes, lambda: check_noise(certificate, stated, folder, notes))
        _guarded(notes, lambda: check_sums(certificate, stated, folder, notes))
        _guarded(notes, lambda: check_by_tables(certificate, stated, notes))
        _guarded(notes, lambda: check_measured(certificate, stated, folder, notes))
        _guarded(notes, lambda: check_laws(certificate, folder, notes))
        _guarded(notes, lambda: check_folder(folder, certificate, stated, notes))
        _guarded(notes, lambda: check_agreement(certificate, folder, notes))
        _guarded(notes, lambda: check_benchmark(certificate, folder, notes))
        _guarded(notes, lambda: check_prior(priors, record, notes))
        _guarded(notes, lambda: check_account(account, record, stated, notes))
    return Verdict(tuple(notes.findings), tuple(notes.checked), (*notes.unchecked, whose, *NEVER))


def _guarded(notes: Notes, check: Callable[[], object]) -> None:
    """Call the function `check`, without arguments.

    If it raises as on a damaged certificate, add a finding to `notes`.
    """
    try:
        check()
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        notes.findings.append(f"certificate.json is damaged ({type(error).__name__}).")
