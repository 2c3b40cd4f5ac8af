"""Ledgers of data without a ledger file: in memory, one for equal data in this process, however often opened.

Data count as equal if they are one object (a frame, an Arrow table), one path, or of one content: the same bytes or
columns, or the same rows in another order or kind of table, or with other columns beside those of a schema. Contents
are compared by fingerprints under a key that lasts as long as the process and is never published, taken when a fit
reserves; they show only whether two tables are equal. Where data turn out to be equal that had two ledgers, these
become one, with all that was reserved on either.

Not noticed: a copy with a row changed, left out or added, another process, and fits before this process began.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stratsynth.accounting.account import FitAccount
from stratsynth.accounting.budget import Allotment
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.ledger import APART, Request, fresh_seed
from stratsynth.accounting.standing import Standing, judged_at, readable
from stratsynth.accounting.totals import afford, total
from stratsynth.checks import number
from stratsynth.errors import UsageError
from stratsynth.noise import SystemEntropy

_LOCK = threading.RLock()
"""Held from the check whether a reservation fits until it is made, and while ledgers are found and joined."""
_ACCOUNTS: dict[Hashable, ProcessLedger] = {}
"""Ledgers by path, by the id of an object that still lives, and by fingerprint."""
_KEY: list[bytes] = []
"""Key of the fingerprints, as a list that is empty until the first one is needed."""


@dataclass
class ProcessLedger:
    """A ledger in memory: it ends with the process, so it cannot count what was spent before."""

    cap_epsilon: float | None = None
    note: str = "no ledger file: this account lasted for one process, and knew these data by path, object and content"
    _made: list[list[Allotment]] = field(default_factory=list, init=False)
    """Allotment of each fit, alone in a list: that of its first question until the rest is reserved."""
    _stopped: dict[str, MemoryAccount] = field(default_factory=dict, init=False)
    """Accounts of fits that stopped after their first question, by identity."""
    _joined: ProcessLedger | None = field(default=None, init=False)
    """Ledger that this one became a part of, where fits that are under way reserve their rest."""

    def __post_init__(self) -> None:
        """Raise UsageError on a cap that is neither None nor a positive number."""
        number("ledger_epsilon", self.cap_epsilon, above=0, optional=True)

    @property
    def reserved(self) -> tuple[Allotment, ...]:
        """Tuple of the allotments reserved so far, oldest first."""
        return tuple(allot for (allot,) in self._made)

    @property
    def joined(self) -> ProcessLedger:
        """`ProcessLedger` that has this one's reservations: itself, or the one that it became a part of."""
        return self if self._joined is None else self._joined.joined

    def open(self, request: Request) -> FitAccount:
        """Reserve the request's allotment and return the `FitAccount`; else BudgetRefused or UsageError."""
        with _LOCK:
            return self._stopped.pop(request.identity, None) or self._reserve(request)

    def absorb(self, other: ProcessLedger) -> None:
        """Add the reservations of the ledger `other`, of the same data, to this one; the lower cap becomes its own."""
        with _LOCK:
            self._made.extend(other._made)
            self._stopped |= other._stopped
            other._joined = self
            caps = [cap for cap in (self.cap_epsilon, other.cap_epsilon) if cap is not None]
            self.cap_epsilon = min(caps, default=None)

    def _reserve(self, request: Request) -> FitAccount:
        made = self.reserved
        if any(allot.promise.neighbours != request.budget.neighbours for allot in made):
            raise UsageError(f"guarantees for different neighbours cannot be added up on the same data.{APART}")
        if any(allot.promise.public != request.budget.public for allot in made):
            raise UsageError(
                f"guarantees that leave different columns unprotected cannot be added up on the same data.{APART}"
            )
        if any(allot.promise.unit != request.budget.unit for allot in made):
            raise UsageError(f"guarantees for different units cannot be added up on the same data.{APART}")
        afford(self.cap_epsilon, made, request.allot, judged_at(made, request.budget.delta))
        request.before_reserving()
        mine = [request.opening or request.allot]
        self._made.append(mine)

        def standing() -> Standing:
            ledger = self.joined
            delta = readable(ledger.reserved, request.budget.delta)
            spent = total(ledger.reserved, delta)
            return Standing(None, ledger.cap_epsilon, spent, len(ledger.reserved), ledger.note, delta)

        def rest() -> Standing:
            with _LOCK:
                made = self.joined._made  # noqa: SLF001 - of this class
                place = next(i for i, each in enumerate(made) if each is mine)
                before, later = ([allot for (allot,) in some] for some in (made[:place], made[place + 1 :]))
                delta = judged_at([*before, *later], request.budget.delta)
                afford(self.joined.cap_epsilon, before, request.allot, delta, later)
                mine[0] = request.allot
                return standing()

        return MemoryAccount(request, standing(), rest, self)


class MemoryAccount(FitAccount):
    """An account in memory that keeps the answer to its first question, so that an equal fit can go on after a stop."""

    def __init__(
        self,
        request: Request,
        standing: Standing,
        rest: Callable[[], Standing] | None = None,
        ledger: ProcessLedger | None = None,
    ) -> None:
        """Open the account of a request; function `rest` reserves its rest; `ledger` has it again if closed before."""
        seed = fresh_seed(request)
        super().__init__(request.budget, request.allot, standing, seed, request.caps, request.opening, rest)
        self._identity, self._ledger = request.identity, ledger
        self._answer: tuple[int, str, Any] | None = None

    def charge(self, moment: int, asked: str, charges: Sequence[Charge], distance: float) -> None:
        """Charge a batch (`moment`, key `asked`, `distance`) as any account in memory; not a resumed first question."""
        if self.recall(moment, asked) is None:
            super().charge(moment, asked, charges, distance)

    def recall(self, moment: int, asked: str) -> Any | None:
        """Return the answer to the first question, if (`moment`, key `asked`) is it and it was answered; else None."""
        return self._answer[2] if self._answer is not None and self._answer[:2] == (moment, asked) else None

    def store(self, moment: int, asked: str, answers: Any) -> None:
        """Keep the answers of batch (`moment`, key `asked`) if it is the first question, and no other."""
        if self.opening is not None:
            self._answer = (moment, asked, answers)

    def close(self) -> None:
        """Let an equal fit go on from here, where the first question alone was answered."""
        if self.opening is not None and self._answer is not None and self._ledger is not None:
            with _LOCK:
                self._ledger.joined._stopped[self._identity] = self  # noqa: SLF001 - of this file


class SharedLedger:
    """The ledger of some data in this process, found by path, object or content."""

    def __init__(
        self,
        known: Hashable,
        held: object,
        fingerprint: Callable[[bytes], str],
        cap: float | None,
        *,
        contents: Callable[[], Callable[[bytes], list[str]]] = lambda: lambda _: [],
        refuse: Callable[[], object] = lambda: None,
    ) -> None:
        """Find the ledger, or make it; nothing is read.

        Args:
            known: The data's name without a look at them, such as a path; None for data in memory.
            held: The object that holds the data; data in memory are known by it for as long as it lives.
            fingerprint: Function from a key to the data's fingerprint; called when a fit reserves.
            cap: The largest epsilon that may be spent on the data; None leaves the cap as it is.
            contents: Reads the data; returns a function from key to list of marks. Called once for each fingerprint.
            refuse: Called when a fit reserves; refuses a fit of data whose copy has a ledger.

        Raises:
            UsageError: Another cap than these data were opened with before.
        """
        self._name = ("path", known) if known is not None else ("object", id(held))
        self._fingerprint, self._contents, self._refuse = fingerprint, contents, refuse
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
        """Largest epsilon that may be spent on these data in this process; None if nobody set a cap."""
        return self._account.cap_epsilon

    @property
    def reserved(self) -> tuple[Allotment, ...]:
        """Tuple of the allotments reserved on these data so far, oldest first."""
        return self._account.reserved

    def open(self, request: Request) -> FitAccount:
        """Reserve the request on the one ledger of these data and of equal ones, and return the `FitAccount`."""
        with _LOCK:
            if not _KEY:
                _KEY.append(SystemEntropy().read(32))
            names = [("content", self._fingerprint(_KEY[0]))]
            self._refuse()
            if names[0] not in _ACCOUNTS:
                names += [("rows", mark) for mark in self._contents()(_KEY[0])]
            account = _ACCOUNTS.setdefault(self._name, self._account)  # joined with another since, perhaps
            for name in names:
                account = _one(account, _ACCOUNTS.get(name, account))
            _ACCOUNTS.update(dict.fromkeys(names, account))
            self._account = account
            return self._account.open(request)


class UnchargedLedger:
    """A ledger for data declared public: each fit keeps to its allotment, and nothing is added up."""

    def open(self, request: Request) -> FitAccount:
        """Return a `FitAccount`, in memory, for the request's fit; nothing is reserved or added up."""
        standing = Standing(None, None, 0.0, 0, "data declared public: nothing is charged")
        return MemoryAccount(request, standing)


def _one(account: ProcessLedger, other: ProcessLedger) -> ProcessLedger:
    """Join two ledgers, each a `ProcessLedger`, that turn out to be of equal data, under every name; return the one."""
    if other is account:
        return account
    account.absorb(other)
    for name, each in _ACCOUNTS.items():
        if each is other:
            _ACCOUNTS[name] = account
    return account
