"""Accounts of data without a ledger file: in memory, one for the same data in this process, however often opened.

Data count as the same that are one object (a frame, an Arrow table), one path, or of one content. Contents are
compared by a fingerprint under a key that lasts as long as the process and is told to nobody; it is taken when a fit
reserves, and says nothing but whether two tables are equal. Where data turn out to be the same that were taken for
different ones, their accounts become one, with all that was reserved on either.

What it cannot see: a changed copy, another process, and what was spent before this one began.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable

from stratsynth.accounting.account import FitAccount
from stratsynth.accounting.budget import Allotment
from stratsynth.accounting.ledger import ProcessLedger, Request, fresh_seed
from stratsynth.accounting.standing import Standing
from stratsynth.errors import UsageError
from stratsynth.noise import SystemEntropy

_LOCK = threading.RLock()
_ACCOUNTS: dict[Hashable, ProcessLedger] = {}
"""By path, by the number of an object that still lives, and by fingerprint."""
_KEY: list[bytes] = []
"""The key of the fingerprints, made when the first one is needed."""


class SharedLedger:
    """The account of some data in this process, found by all that identifies them."""

    def __init__(self, known: Hashable, held: object, fingerprint: Callable[[bytes], str], cap: float | None) -> None:
        """Find or make it; nothing is read.

        Args:
            known: What identifies the data without a look at them, as a path does; None for data in memory.
            held: The object that holds them, by which data in memory are known for as long as it lives.
            fingerprint: Their fingerprint under a key; called when a fit reserves.
            cap: The most epsilon that may be spent on them; None leaves it as it is.

        Raises:
            UsageError: Another cap than these data were opened with before.
        """
        self._name = ("path", known) if known is not None else ("object", id(held))
        self._fingerprint = fingerprint
        with _LOCK:
            account = _ACCOUNTS.get(self._name)
            if account is None:
                account = _ACCOUNTS[self._name] = ProcessLedger(cap)
                if known is None:
                    weakref.finalize(held, _ACCOUNTS.pop, self._name, None)
            if cap is not None and account.cap_epsilon != cap:
                raise UsageError(
                    f"these data were opened before in this process, with ledger_epsilon {account.cap_epsilon}, not "
                    f"{cap:g}; a cap is set once."
                )
            self._account = account

    @property
    def cap_epsilon(self) -> float | None:
        """The most that may be spent on these data in this process; None where nobody has said."""
        return self._account.cap_epsilon

    @property
    def reserved(self) -> tuple[Allotment, ...]:
        """What was reserved so far, oldest first."""
        return self._account.reserved

    def open(self, request: Request) -> FitAccount:
        """Reserve on the one account of these data."""
        with _LOCK:
            if not _KEY:
                _KEY.append(SystemEntropy().read(32))
            content = ("content", self._fingerprint(_KEY[0]))
            account = _ACCOUNTS.setdefault(self._name, self._account)  # it may have become one with another since
            self._account = _ACCOUNTS[content] = _one(account, _ACCOUNTS.get(content, account))
            return self._account.open(request)


class UnchargedLedger:
    """For data declared public: fits keep to their allotment, and nothing is added up."""

    def open(self, request: Request) -> FitAccount:
        """Reserve nothing."""
        standing = Standing(None, None, 0.0, 0, "data declared public: nothing is charged")
        return request.account(standing, fresh_seed(request))


def _one(account: ProcessLedger, other: ProcessLedger) -> ProcessLedger:
    """Two accounts that turn out to be of the same data, as one."""
    if other is account:
        return account
    account.absorb(other)
    for name, each in _ACCOUNTS.items():
        if each is other:
            _ACCOUNTS[name] = account
    return account
