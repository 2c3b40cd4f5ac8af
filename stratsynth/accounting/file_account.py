"""The account of one fit on disk: its charges in the ledger's chain, its answers in the journal."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stratsynth.accounting.account import FitAccount
from stratsynth.accounting.chain import Chain
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.lines import now
from stratsynth.errors import BudgetRefused, LedgerError, ReleaseError
from stratsynth.files import npz
from stratsynth.files.npz import State
from stratsynth.files.whole import sync_folder


class FileAccount:
    """The account of a fit whose charges and answers are on disk."""

    def __init__(
        self, chain: Chain, account: FitAccount, reservation: Mapping[str, Any], folder: Path, lock: int
    ) -> None:
        """Take over what was charged before, if this is a resumed fit."""
        self.budget, self.allot, self.spending = account.budget, account.allot, account.spending
        self.standing, self.seed = account.standing, account.seed
        self._chain = chain
        self._account = account
        self._reservation = reservation
        self._folder = folder
        self._lock: int | None = lock
        self._paid: set[tuple[int, str]] = set()
        self._last = -1
        """The last moment that was charged."""
        for left in folder.glob(".*.part"):  # a killed write's answer, which nobody has seen and another replaces
            left.unlink(missing_ok=True)
        for line in chain.lines:
            if line["kind"] == "charge" and line["run"] == reservation["run"]:
                charges = [Charge.from_dict(c, account.allot.currency) for c in line["charges"]]
                account.record(charges, line["distance"])
                self._note(line["moment"], line["asked"])

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
                 "at": now()}
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
