"""The ledger of a data file, on disk: `people.ledger`, shared by every process that fits on the file.

    people.ledger            the chain of reservations and charges, append-only
    people.ledger.key        32 random bytes that key the data's fingerprint; never published
    people.ledger.journal/   the answers given so far, one folder per fit

A ledger with a name, `account = "persons 2024"`, is shared by versions of the data: each is noted by its fingerprint.

Every line is on the disk before a row is read for it. A fit that was interrupted is resumed by an equal
request: its reservation and its charges stand, the answers in its journal are given again, and a question
that was charged but whose answer never reached the journal is answered now, since nobody has seen the first
draw. A question whose public shape differs from that of the one asked then is charged anew. Once the ledger says
that an answer was given, it is never drawn again: without its journal the fit is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Budget
from stratsynth.accounting.chain import EMPTIED, Append, Chain
from stratsynth.accounting.file_account import FileAccount
from stratsynth.accounting.half_done import refuse_half_done
from stratsynth.accounting.ledger import APART, Request
from stratsynth.accounting.lines import (
    FORMAT,
    allotment_of,
    head_of,
    now,
    reservation,
    reservations,
    runs_of,
    shared_by,
    stated_budget,
)
from stratsynth.accounting.paths import (
    RESERVED,
    answer_name,
    check_journal,
    journal_of,
    key_of,
    locked_journal,
    mark,
    tidy,
)
from stratsynth.accounting.registry import Registry
from stratsynth.accounting.standing import Standing, readable
from stratsynth.accounting.totals import afford, total
from stratsynth.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from stratsynth.accounting.copies import Copies


class FileLedger:
    """A ledger file, opened for the fits on one data file."""

    def __init__(
        self,
        path: Path,
        fingerprint: Callable[[bytes], str],
        cap_epsilon: float | None = None,
        *,
        account: str | None = None,
        registry: Registry | None = None,
        reason: str | None = None,
        older: Callable[[bytes], str] | None = None,
        copies: Copies | None = None,
    ) -> None:
        """Name the files; nothing is opened.

        Args:
            path: The ledger file.
            fingerprint: Identifies the data: a function of the ledger's key.
            cap_epsilon: Largest total epsilon, at the delta of the ledger; fixed when the file is made.
            account: The name under which several versions of the data share the ledger.
            registry: The accounts of the data file, where there is one.
            reason: The user's reason to begin a ledger beside another of the same data.
            older: Identifies the data as ledgers of earlier versions do, where that differs.
            copies: The accounts of other files that have these rows.
        """
        self.path = path
        self._account = account
        self._registry = registry
        self._reason = reason
        self._fingerprint = fingerprint
        self._older = older
        self._copies = copies
        self.cap_epsilon = cap_epsilon
        self._chain = Chain(path)

    def open(self, request: Request) -> FileAccount:
        """Return the `FileAccount` of the request's interrupted fit or new reservation; BudgetRefused beyond a cap."""
        self.refuse_other()
        with self._chain.locked() as append:
            data, note = self._ready(append, request)
            lines = self._chain.lines
            head, over = lines[0], runs_of(lines)
            made = reservations(lines)
            same = [line for line in made if line["identity"] == request.identity]
            # another version of the data is fitted anew: answers of both would be of neither
            mine = next((r for r in same if not over[r["run"]] and r.get("data", head["data"]) == data), None)
            run = mine["run"] if mine else f"{request.identity[:16]}-{len(same)}"
            if mine is None:
                if not all(over.values()):
                    refuse_half_done(self.path, lines, request)
                afford(head["cap_epsilon"], [allotment_of(line) for line in made], request.allot, head["delta"])
                request.before_reserving()
            known = self._registry.names() if self._registry is not None else ()
            folder, lock = locked_journal(self.path, run)
            try:
                if mine is None:
                    mine = reservation(request, run, data)
                    if data not in shared_by(lines).versions:
                        append({"kind": "version", "data": data, "at": now()})
                    append(mine)
                if not os.fstat(lock).st_size:
                    mark(lock, RESERVED)
                facts = partial(self._standing, head, note, known)
                rest = partial(self._reserve_rest, request, run, facts)
                charged = None if self._copies is None else partial(self._copies.mark, self.path, data)
                return FileAccount(self._chain, request, facts(), mine, folder, lock, rest, charged)
            except BaseException:
                os.close(lock)
                raise

    def _standing(self, head: Mapping[str, Any], note: str, known: tuple[str, ...]) -> Standing:
        """Return the account's `Standing` by the lines so far, with `note`; `head` is the first, `known` accounts."""
        lines = self._chain.lines
        reserved, whose = [allotment_of(line) for line in reservations(lines)], shared_by(lines)
        delta = readable(reserved, head["delta"])
        return Standing(
            self.path.name, head["cap_epsilon"], total(reserved, delta), len(reserved), note, delta, account=whose.name,
            versions=len(whose.versions), accounts=known, new_account=head.get("reason"), corrections=whose.corrections,
        )  # fmt: skip

    def _reserve_rest(self, request: Request, run: str, standing: Callable[[], Standing]) -> Standing:
        """Reserve the allotment of a request's `run` in place of its first question's; return `standing()` then."""
        with self._chain.locked() as append:
            lines = self._chain.lines
            made = reservations(lines)
            place = [line["run"] for line in made].index(run)
            before, later = ([allotment_of(line) for line in some] for some in (made[:place], made[place + 1 :]))
            afford(lines[0]["cap_epsilon"], before, request.allot, lines[0]["delta"], later)
            budget, allot = stated_budget(request.budget), request.allot.to_dict()
            append({"kind": "rest", "run": run, "at": now(), "budget": budget, "allot": allot})
            return standing()

    def _ready(self, append: Append, request: Request) -> tuple[str, str]:
        """Begin a new ledger by `append`, or check this one for the request: LedgerError, UsageError if unfit.

        Returns:
            (fingerprint of the data, the certificate's note about the registry beside them, or an empty text).
        """
        note, new, budget = "", not self._chain.lines, request.budget
        if new and journal_of(self.path).exists():
            raise LedgerError(EMPTIED.format(path=self.path))
        key = key_of(self.path, new=new)
        data = self._fingerprint(key)
        if new:
            facts: dict[str, Any] = {
                "cap_epsilon": self.cap_epsilon,
                "delta": budget.delta,
                "neighbours": str(budget.neighbours),
            }
            facts |= {} if budget.unit == "record" else {"unit": budget.unit}
            facts |= {"public": list(budget.public)} if budget.public else {}
            facts |= {} if self._reason is None else {"reason": self._reason}
            if self._copies is not None:
                afford(self.cap_epsilon, [], request.allot, budget.delta)  # before other accounts' rows are looked at
                self._copies.refuse(self.path, self._reason)
            note = self._listed(new=True)
            append({"kind": "ledger", "format": FORMAT, **facts, "data": data})
        lines = self._chain.lines
        if not new:
            head, versions = head_of(self.path, lines), shared_by(lines).versions
            if data not in versions and self._older is not None and (older := self._older(key)) in versions:
                data = older
            self.check(head, lines, data, budget)
            over, charged = runs_of(lines), [line for line in lines if line["kind"] == "charge"]
            check_journal(self.path, over, {(c["run"], answer_name(c["moment"], c["asked"])) for c in charged})
            tidy(self.path, (run for run, done in over.items() if done))
        if self._account is not None and shared_by(lines).name is None:
            append({"kind": "account", "name": self._account, "at": now()})
        return data, note if new else self._listed(new=False)

    def refuse_other(self) -> None:
        """Raise LedgerError for a path not to be opened; UsageError: a new ledger beside another, no reason."""
        try:
            begun = self.path.exists() and self.path.stat().st_size > 0
        except (OSError, ValueError) as error:  # a name that is too long, or holds a null character
            why = error.strerror if isinstance(error, OSError) else error
            raise LedgerError(f"ledger: {self.path.name[:40]}... cannot be opened ({why}).") from None
        if self._registry is not None and not begun:
            self._registry.refuse_other(self.path, self._reason)

    def _listed(self, *, new: bool) -> str:
        """List the ledger, `new` or not, in the data's registry; return the certificate's note if that fails, or ""."""
        if self._registry is None:
            return ""
        return self._registry.note(self.path, self._account, self._reason, new=new)

    def check(self, head: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], data: str, budget: Budget) -> None:
        """Raise LedgerError on lines (first: `head`) of other `data`; UsageError: unlike `budget`, account, cap."""
        whose = shared_by(lines)
        if None not in (whose.name, self._account) and whose.name != self._account:
            raise UsageError(f"ledger: {self.path} is the account {whose.name!r}, not {self._account!r}.")
        if data not in whose.versions and (whose.name is None or self._account is None):
            remedy = (
                "each data file has a ledger of its own; if the file was corrected, say so: `stratsynth ledger correct "
                "LEDGER DATA --reason TEXT`; versions of one share a ledger that has a name, which the next fit of the "
                'data that it is of gives it, with account = "persons 2024", or `stratsynth ledger name`'
                if whose.name is None
                else f"if these are the same people, say so: account = {whose.name!r}"
            )
            raise LedgerError(f"ledger: {self.path} belongs to other data; {remedy}.")
        if head["neighbours"] != budget.neighbours:
            raise UsageError(
                f"ledger: {self.path} adds up guarantees for {head['neighbours']}; one for {budget.neighbours} "
                f"cannot be added to them.{APART}"
            )
        if tuple(head.get("public", ())) != budget.public:
            raise UsageError(
                f"ledger: {self.path} adds up guarantees that leave {', '.join(head['public'])} unprotected; one that "
                f"leaves {', '.join(budget.public)} so cannot be added to them.{APART}"
            )
        if head.get("unit", "record") != budget.unit:
            raise UsageError(
                f"ledger: {self.path} adds up guarantees for one {head.get('unit', 'record')}; one for a "
                f"{budget.unit} cannot be added to them."
            )
        if self.cap_epsilon is not None and self.cap_epsilon != head["cap_epsilon"]:
            raise UsageError(
                f"ledger: {self.path} was made with ledger_epsilon {head['cap_epsilon']}, not {self.cap_epsilon:g}; "
                "a cap is set once."
            )
