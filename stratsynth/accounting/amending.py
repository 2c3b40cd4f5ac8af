"""The name of an account, and corrections of its data, added to a ledger without a fit. Nothing is spent or given back.

All versions of an account's data share what was spent: a version that is wrongly added gives nobody a second budget.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from stratsynth.accounting.chain import Append, Chain
from stratsynth.accounting.lines import Shared, head_of, now, shared_by
from stratsynth.accounting.paths import key_of
from stratsynth.checks import check_line
from stratsynth.errors import UsageError


def name_account(path: Path, name: str) -> bool:
    """Name the account of the ledger `path`, for later versions of the data to share it; False if it has that name.

    Raises:
        UsageError: No such ledger, an empty one, or a name that is no line of text.
        LedgerError: A damaged ledger.
    """
    check_line("the account's name", name)
    with _amended(path) as (append, whose):
        if whose.name != name:
            append({"kind": "account", "name": name, "at": now()})
        return whose.name != name


def correct_data(path: Path, fingerprint: Callable[[bytes], str], reason: str) -> bool:
    """Add a corrected version of the data to a ledger's account; False if the account has this version already.

    Args:
        path: The ledger.
        fingerprint: The keyed hash of the corrected data: a function of the ledger's key.
        reason: Why the data were changed; certificates of later fits quote it.

    Raises:
        UsageError: No such ledger, an empty one, or a reason that is no line of text.
        LedgerError: A damaged ledger.
    """
    check_line("the reason", reason)
    with _amended(path) as (append, whose):
        data = fingerprint(key_of(path, new=False))
        if data not in whose.versions:
            append({"kind": "version", "data": data, "at": now(), "reason": reason})
        return data not in whose.versions


@contextmanager
def _amended(path: Path) -> Iterator[tuple[Append, Shared]]:
    """Hold the lock of the ledger `path`; UsageError if there is none, or it is empty.

    Yield (function that appends a line, the account so far, a `Shared`).
    """
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises where a name is too long
        raise UsageError(f"there is no ledger {path}.")
    chain = Chain(path)
    with chain.locked() as append:
        if not chain.lines:
            raise UsageError(f"ledger: {path} is empty; the first fit begins it.")
        head_of(path, chain.lines)
        yield append, shared_by(chain.lines)
