"""The account of one fit on disk: charges in the ledger's chain, answers in the journal."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.account import FitAccount
from stratsynth.accounting.chain import Chain
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.lines import BY_SHAPE, now
from stratsynth.accounting.paths import DONE, answer_name, mark
from stratsynth.errors import BudgetRefused, LedgerError, ReleaseError
from stratsynth.files import npz
from stratsynth.files.npz import State
from stratsynth.files.replacing import sync_folder

if TYPE_CHECKING:
    from stratsynth.accounting.account import Request
    from stratsynth.accounting.standing import Standing

ANOTHER = (
    "This fit asks something else than before it was interrupted; another seed makes it a new fit, which is charged."
)


class FileAccount(FitAccount):
    """The account of one fit whose charges are lines of a ledger and whose answers are files of its journal."""

    def __init__(
        self,
        chain: Chain,
        request: Request,
        standing: Standing,
        reservation: Mapping[str, Any],
        folder: Path,
        lock: int,
        rest: Callable[[], Standing],
        charged: Callable[[], object] | None = None,
    ) -> None:
        """Open the account of a reservation, counting the charges and given answers of an interrupted run.

        After the first charge `charged` is called, which may read rows; `rest` reserves the rest; `lock`: descriptor.
        """
        super().__init__(
            request.budget, request.allot, standing, reservation["seed"], request.caps, request.opening, rest
        )
        self.by_shape = reservation.get("known_by") == BY_SHAPE
        self._chain = chain
        self._reservation = reservation
        self._folder = folder
        self._lock: int | None = lock
        self._charged = charged
        self._paid: set[tuple[int, str]] = set()
        self._given: dict[tuple[int, str], str] = {}
        """SHA-256 of the journal's file for each answer, by moment and key, that the mechanism may have been given."""
        self._last = -1
        """Number of the last batch that was charged; -1 before the first."""
        for left in folder.glob(".*.part"):  # a killed write's answer, which nobody has seen and another replaces
            left.unlink(missing_ok=True)
        for line in chain.lines:
            if line.get("run") != reservation["run"]:
                continue
            if line["kind"] == "charge":
                charges = [Charge.from_dict(c, self.allot.currency) for c in line["charges"]]
                self.resume(charges, line["distance"])
                self._note(line["moment"], line["asked"])
            elif line["kind"] == "rest":
                self.opening = None
            elif line["kind"] == "answered":
                self._given[line["moment"], line["asked"]] = line["sha256"]

    def charge(self, moment: int, asked: str, charges: Sequence[Charge], distance: float) -> None:
        """Write a batch's charges (`moment`, key `asked`, `distance`) to the ledger; else BudgetRefused, none."""
        with self.lock:
            if (moment, asked) in self._paid:
                return
            if moment < self._last:  # what was asked later rested on another answer
                raise BudgetRefused(f"ledger: refused before reading. {ANOTHER}")
            try:
                super().charge(moment, asked, charges, distance)
            except BudgetRefused as refused:
                raise BudgetRefused(f"{refused} {ANOTHER}" if moment == self._last else str(refused)) from None
            self._note(moment, asked)
            if self._charged is not None and len(self._paid) == 1:
                self._charged()

    def _record(self, moment: int, asked: str, charges: Sequence[Charge], distance: float) -> None:
        """Append a batch's charges (`moment`, key `asked`, `distance`) as one ledger line, on the disk at return."""
        stated = [charge.to_dict() for charge in charges]
        self._append({"kind": "charge", "moment": moment, "asked": asked, "distance": distance, "charges": stated})

    def recall(self, moment: int, asked: str) -> State | None:
        """Return a batch's (`moment`, key `asked`) journalled answers, a `State`, or None; LedgerError if damaged."""
        if (moment, asked) not in self._paid:
            return None
        path, given = self._folder / answer_name(moment, asked), self._given.get((moment, asked))
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            if given is not None or self._last > moment:  # the program had it; it led to what was asked next
                raise LedgerError(
                    f"ledger: the journal of this fit lacks {path.name}, an answer that was given; another draw would "
                    "be a second answer for one charge. Restore the journal, or give another seed for a new fit, which "
                    "is charged. Nothing was read."
                ) from None
            return None
        except OSError as error:
            raise LedgerError(f"ledger: the journal of this fit cannot be read ({error.strerror}).") from None
        if given is not None and given != hashlib.sha256(content).hexdigest():
            raise LedgerError(
                f"ledger: the journal of this fit is damaged: {path.name} is not the answer that was given. Restore "
                "the journal. Nothing was read."
            )
        try:
            state = npz.read(path)
        except ReleaseError as error:
            raise LedgerError(f"ledger: the journal of this fit is damaged: {error} Nothing was read.") from None
        if given is None:  # killed between the journal and its line
            self._answered(moment, asked, content)
        return state

    def store(self, moment: int, asked: str, answers: State) -> None:
        """Write a batch's answers (`moment`, key `asked`) to journal and ledger, on disk; LedgerError if that fails."""
        path = self._folder / answer_name(moment, asked)
        try:
            npz.write(path, answers, mode=0o600, joined=True)
            sync_folder(self._folder)
            content = path.read_bytes()
        except OSError as error:
            raise LedgerError(
                f"ledger: the journal cannot be written ({error.strerror}). The charge stands; "
                "run the same again when there is room, and it goes on from here."
            ) from None
        self._answered(moment, asked, content)

    def finish(self) -> None:
        """Append the fit's `done` line to the ledger, and delete its journal: the release holds the answers."""
        self._append({"kind": "done", "identity": self._reservation["identity"], "at": now()})
        if self._lock is not None:
            mark(self._lock, DONE)
        for path in self._folder.glob("*.npz"):
            path.unlink(missing_ok=True)
        self.close()

    def _append(self, line: Mapping[str, Any]) -> None:
        """Append a line with this fit's run name to the ledger; it is on the disk when this returns."""
        self._chain.append({"kind": line["kind"], "run": self._reservation["run"], **line})

    def _answered(self, moment: int, asked: str, content: bytes) -> None:
        """Note in the ledger the answer, bytes `content`, of a batch (`moment`, key `asked`): none is redrawn."""
        sha256 = hashlib.sha256(content).hexdigest()
        self._append({"kind": "answered", "moment": moment, "asked": asked, "sha256": sha256})
        self._given[moment, asked] = sha256

    def _note(self, moment: int, asked: str) -> None:
        self._paid.add((moment, asked))
        self._last = max(self._last, moment)

    def close(self) -> None:
        """Release the lock on the journal, so that another process can resume the fit."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
