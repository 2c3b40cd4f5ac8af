"""The account of a data file, on disk: `people.ledger`, shared by every process that fits on the file.

    people.ledger            the chain of reservations and charges, append-only
    people.ledger.key        32 random bytes that key the data's fingerprint; never published
    people.ledger.journal/   the answers given so far, a folder a fit

Every line is on the disk before a row is read for it. A fit that was interrupted is resumed by the same
request: its reservation and its charges stand, the answers in its journal are given again, and a question
that was charged but whose answer never reached the journal is answered now, since nobody has seen the first
draw. A question that differs from the one asked then is charged anew.
"""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stratsynth.accounting.account import FitAccount
from stratsynth.accounting.budget import Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.chain import Chain
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.accounting.ledger import Request, fresh_seed
from stratsynth.accounting.standing import Outlook, Standing, afford, afford_all, readable, total
from stratsynth.errors import BudgetRefused, LedgerError, ReleaseError, UsageError
from stratsynth.files import npz
from stratsynth.files.npz import State
from stratsynth.files.whole import sync_folder
from stratsynth.noise import SystemEntropy

FORMAT = "stratsynth-ledger/1"
_KEY_BYTES = 32


class FileLedger:
    """A ledger file, opened for one data file."""

    def __init__(self, path: Path, fingerprint: Callable[[bytes], str], cap_epsilon: float | None = None) -> None:
        """`fingerprint` identifies the data under a key; `cap_epsilon` is set by whoever makes the file."""
        self.path = path
        self._fingerprint = fingerprint
        self._cap = cap_epsilon
        self._chain = Chain(path)

    def open(self, request: Request) -> FileAccount:
        """Resume the interrupted fit of this request, or reserve a new one."""
        with self._chain.locked() as writer:
            new = not self._chain.lines
            if new and _journal(self.path).exists():
                raise LedgerError(f"ledger: {self.path} was emptied or removed; restore it from a copy.")
            data = self._fingerprint(_key(self.path, new=new))
            if new:
                budget = request.budget
                facts = {"cap_epsilon": self._cap, "delta": budget.delta, "neighbours": str(budget.neighbours)}
                facts |= {} if budget.unit == "record" else {"unit": budget.unit}
                writer.append({"kind": "ledger", "format": FORMAT, **facts, "data": data})
            head = _head(self.path, self._chain.lines)
            self._check(head, data, request.budget)
            lines = self._chain.lines
            made = [line for line in lines if line["kind"] == "reserve"]
            same = [line for line in made if line["identity"] == request.identity]
            mine = next((line for line in same if not _over(line, lines)), None)
            run = mine["run"] if mine else f"{request.identity[:16]}-{len(same)}"
            if mine is None:
                request.ready()
                afford(head["cap_epsilon"], [_allotment(line) for line in made], request.allot, head["delta"])
            folder = _folder(self.path, run)
            lock = _lock(folder, self.path)
            try:
                if mine is None:
                    mine = _line(request, run)
                    writer.append(mine)
                    made.append(mine)
                reserved = [_allotment(line) for line in made]
                delta = readable(reserved, head["delta"])
                spent = total(reserved, delta)
                standing = Standing(self.path.name, head["cap_epsilon"], spent, len(made), spent_delta=delta)
                account = FitAccount(request.budget, request.allot, standing, mine["seed"])
                return FileAccount(self._chain, account, mine, folder, lock)
            except BaseException:
                os.close(lock)
                raise

    def foresee(self, requests: Sequence[Request]) -> Outlook:
        """What these will cost together, beside what was reserved; refuses them where they pass the cap.

        Nothing is reserved: what other processes reserve meanwhile is checked again by `open`.
        """
        lines = self._chain.read() if self.path.exists() else []
        cap, delta = self._cap, requests[0].budget.delta
        if lines:
            head = _head(self.path, lines)
            self._check(head, head["data"], requests[0].budget)
            cap, delta = head["cap_epsilon"], head["delta"]
        made = [line for line in lines if line["kind"] == "reserve"]
        resumed = {line["identity"] for line in made if not _over(line, lines)}
        new = [request.allot for request in requests if request.identity not in resumed]
        return afford_all(cap, [_allotment(line) for line in made], new, delta)

    def _check(self, head: Mapping[str, Any], data: str, budget: Budget) -> None:
        if head["data"] != data:
            raise LedgerError(f"ledger: {self.path} belongs to other data; each data file has a ledger of its own.")
        if head["neighbours"] != budget.neighbours:
            raise UsageError(
                f"ledger: {self.path} adds up guarantees for {head['neighbours']}; one for {budget.neighbours} "
                "cannot be added to them."
            )
        if head.get("unit", "record") != budget.unit:
            raise UsageError(
                f"ledger: {self.path} adds up guarantees for one {head.get('unit', 'record')}; one for a "
                f"{budget.unit} cannot be added to them."
            )
        if self._cap is not None and self._cap != head["cap_epsilon"]:
            raise UsageError(
                f"ledger: {self.path} was made with ledger_epsilon {head['cap_epsilon']}, not {self._cap:g}; "
                "a cap is set once."
            )


class FileAccount:
    """The account of a fit whose charges and answers are on disk."""

    def __init__(
        self, chain: Chain, account: FitAccount, reservation: Mapping[str, Any], folder: Path, lock: int
    ) -> None:
        """Take over what was charged before, if this is a resumed fit."""
        self._chain = chain
        self._account = account
        self._reservation = reservation
        self._folder = folder
        self._lock: int | None = lock
        self._paid: set[tuple[int, str]] = set()
        self._last = -1
        """The last moment that was charged."""
        for line in chain.lines:
            if line["kind"] == "charge" and line["run"] == reservation["run"]:
                charges = [Charge.from_dict(c, account.allot.currency) for c in line["charges"]]
                account.record(charges, line["distance"])
                self._note(line["moment"], line["asked"])

    @property
    def budget(self) -> Budget:
        """The fit's budget."""
        return self._account.budget

    @property
    def allot(self) -> Allotment:
        """The cap."""
        return self._account.allot

    @property
    def spending(self) -> Spending:
        """Everything charged, before an interruption too."""
        return self._account.spending

    @property
    def standing(self) -> Standing:
        """The ledger's state after this fit's reservation."""
        return self._account.standing

    @property
    def seed(self) -> int:
        """The seed that was chosen when the fit was reserved."""
        return self._account.seed

    def charge(self, moment: int, asked: str, charges: Sequence[Charge], distance: float) -> None:
        """On the disk before this returns; a question that was charged before an interruption is not charged again."""
        if (moment, asked) in self._paid:
            return
        try:
            self._account.refuse(charges, distance)
        except BudgetRefused as refused:
            if any(paid == moment for paid, _ in self._paid):
                raise BudgetRefused(
                    f"{refused} This fit asks something else than before it was interrupted; another seed makes it a "
                    "new fit."
                ) from None
            raise
        with self._chain.locked() as writer:
            writer.append(
                {
                    "kind": "charge", "run": self._reservation["run"], "moment": moment, "asked": asked,
                    "distance": distance, "charges": [charge.to_dict() for charge in charges],
                }
            )  # fmt: skip
        self._account.record(charges, distance)
        self._note(moment, asked)

    def recall(self, moment: int, asked: str) -> State | None:
        """The journalled answers to exactly these questions, which must have been charged."""
        path = self._answers(moment, asked)
        if (moment, asked) not in self._paid:
            return None
        if not path.exists():
            if self._last > moment:  # the answer led to what was asked next
                raise LedgerError(
                    f"ledger: the journal of this fit lacks {path.name}, an answer that was given. Nothing was read."
                )
            return None
        try:
            return npz.read(path)
        except ReleaseError as error:
            raise LedgerError(f"ledger: the journal of this fit is damaged: {error} Nothing was read.") from None

    def store(self, moment: int, asked: str, answers: State) -> None:
        """On the disk before anybody sees them."""
        try:
            npz.write(self._answers(moment, asked), answers, mode=0o600)
            sync_folder(self._folder)
        except OSError as error:
            raise LedgerError(
                f"ledger: the journal cannot be written ({error.strerror}). The charge stands; "
                "run the same again when there is room, and it goes on from here."
            ) from None

    def finish(self) -> None:
        """Mark the fit as done; its journal is no longer needed, since the release holds the answers."""
        with self._chain.locked() as writer:
            writer.append(
                {"kind": "done", "run": self._reservation["run"], "identity": self._reservation["identity"],
                 "at": _now()}
            )  # fmt: skip
        for path in self._folder.glob("*.npz"):
            path.unlink(missing_ok=True)
        self.close()

    def _note(self, moment: int, asked: str) -> None:
        self._paid.add((moment, asked))
        self._last = max(self._last, moment)

    def close(self) -> None:
        """Let another process resume."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _answers(self, moment: int, asked: str) -> Path:
        return self._folder / f"{moment:06d}-{asked[:32]}.npz"


def read_ledger(path: Path) -> dict[str, Any]:
    """What a ledger says, verified: cap, total, what is left, and its fits. For `stratsynth ledger show`."""
    if not path.is_file():
        raise UsageError(f"there is no ledger {path}.")
    lines = Chain(path).read()
    if not lines:
        return {"ledger": path.name, "cap_epsilon": None, "delta": None, "spent_epsilon": 0.0, "fits": []}
    head = _head(path, lines)
    made = [line for line in lines if line["kind"] == "reserve"]
    done = {line["run"] for line in lines if line["kind"] == "done"}
    asked = Counter(line["run"] for line in lines if line["kind"] == "charge")
    reserved = [_allotment(line) for line in made]
    delta = readable(reserved, head["delta"])
    spent = total(reserved, delta)
    cap = head["cap_epsilon"]
    fits = [
        {
            "run": line["run"], "at": line["at"], "mechanism": line["mechanism"], **line["budget"],
            **line["allot"], "state": "done" if line["run"] in done else "open",
            "questions": asked[line["run"]],
        }
        for line in made
    ]  # fmt: skip
    left = {} if cap is None else {"left_epsilon": max(0.0, cap - spent)}
    return {
        "ledger": path.name, "cap_epsilon": cap, "delta": delta, "spent_epsilon": spent, **left, "fits": fits
    }  # fmt: skip


def _head(path: Path, lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first line, when all lines are a ledger's."""
    if lines[0].get("format") != FORMAT:
        raise LedgerError(f"ledger: {path} is not a ledger of format {FORMAT}.")
    number = 0
    try:
        currencies: dict[str, Currency] = {}
        for number, line in enumerate(lines, start=1):
            _check_line(line, currencies, first=number == 1)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, UsageError):
        raise LedgerError(
            f"ledger: {path} is damaged: line {number} is no ledger's. Nothing is spent on a damaged ledger; "
            "restore it from a copy."
        ) from None
    return lines[0]


def _check_line(line: Mapping[str, Any], currencies: dict[str, Currency], *, first: bool) -> None:
    """Read everything that a line should hold; whatever exception that raises says that it is no ledger's."""
    kind = line["kind"]
    if first != (kind == "ledger"):
        raise ValueError(kind)
    if kind == "ledger":
        Budget(1.0, line["delta"], line["neighbours"], line.get("unit", "record"))
        if line["cap_epsilon"] is not None and not 0 < float(line["cap_epsilon"]) < math.inf:
            raise ValueError(kind)
        _texts(line, "data")
    elif kind == "reserve":
        _texts(line, "run", "identity", "at", "mechanism")
        allot = _allotment(line)
        if not 0 < float(allot.amount) < math.inf or not isinstance(line["seed"], int) or line["run"] in currencies:
            raise ValueError(kind)
        currencies[line["run"]] = allot.currency
    elif kind == "charge":
        _texts(line, "asked")
        spending = Spending(Neighbours.ADD_REMOVE)
        spending.add(Charge.from_dict(c, currencies[line["run"]]) for c in line["charges"])
        if not (0 <= line["distance"] <= 1 and isinstance(line["moment"], int) and float(spending.spent()) >= 0):
            raise ValueError(kind)
    elif kind == "done":
        _texts(line, "identity")
        currencies[line["run"]]
    else:
        raise ValueError(kind)


def _over(reservation: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a fit cannot be resumed: it is done, or has handed rows to code whose answers nobody could keep."""
    claimed = reservation["allot"]["currency"] == Currency.CLAIMED
    return any(
        line["kind"] == "done" or (claimed and line["kind"] == "charge")
        for line in lines
        if line.get("run") == reservation["run"]
    )


def _texts(line: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        if not isinstance(line[key], str):
            raise TypeError(key)


def _line(request: Request, run: str) -> dict[str, Any]:
    budget, allot = request.budget, request.allot
    return {
        "kind": "reserve", "run": run, "identity": request.identity, "at": _now(), "mechanism": request.mechanism,
        "seed": fresh_seed(request),
        "budget": {
            "epsilon": budget.epsilon, "delta": budget.delta, "neighbours": str(budget.neighbours),
            **({} if budget.unit == "record" else {"unit": budget.unit, "rows": budget.rows}),
        },
        "allot": allot.to_dict(),
    }  # fmt: skip


def _allotment(line: Mapping[str, Any]) -> Allotment:
    return Allotment.from_dict(line["allot"], Budget(**line["budget"]))


def _now() -> str:
    return dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")


def _key(path: Path, *, new: bool) -> bytes:
    """The key of the data's fingerprint; made with the ledger, and a ledger without its key is of no use."""
    file = path.with_name(f"{path.name}.key")
    if new and not (file.exists() and file.stat().st_size == _KEY_BYTES):  # a kill or a full disk may leave a part
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                written = os.write(handle, SystemEntropy().read(_KEY_BYTES))
                os.fsync(handle)
                if written < _KEY_BYTES:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(handle)
        except OSError as error:
            raise LedgerError(f"ledger: {file} cannot be written ({error.strerror}).") from None
    try:
        key = file.read_bytes()
    except OSError:
        raise LedgerError(f"ledger: {file}, which identifies the data, is missing; restore it from a copy.") from None
    if len(key) != _KEY_BYTES:
        raise LedgerError(f"ledger: {file} is damaged; restore it from a copy.")
    return key


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}.journal")


def _folder(path: Path, run: str) -> Path:
    folder = _journal(path) / run
    try:
        for each in (folder.parent, folder):  # `parents=True` would not give the mode to the upper one
            each.mkdir(mode=0o700, exist_ok=True)
            sync_folder(each.parent)
    except OSError as error:
        raise LedgerError(f"ledger: {folder} cannot be made ({error.strerror}).") from None
    return folder


def _lock(folder: Path, path: Path) -> int:
    """One process at a time may run a fit: two would draw different noise for the same answers."""
    try:
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(handle)
            raise
    except BlockingIOError:
        raise LedgerError(f"ledger: another process is running this very fit on {path}; wait for it.") from None
    except OSError as error:
        raise LedgerError(f"ledger: {folder} cannot be locked ({error.strerror}).") from None
    return handle
