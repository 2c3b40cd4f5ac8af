"""A second fit of one recipe is asked about before it is charged: the ledger knows the fits that are done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.accounting.chain import Chain
from stratsynth.accounting.history import coming
from stratsynth.accounting.ledger_file import FileLedger
from stratsynth.accounting.lines import head_of, runs_of
from stratsynth.accounting.paths import key_of
from stratsynth.errors import UsageError

if TYPE_CHECKING:
    from stratsynth.accounting.account import Request
    from stratsynth.data.table import PrivateTable


def refuse_repeat(table: PrivateTable, request: Request, folder: Path) -> None:
    """Raise UsageError for a request whose equal is done on the same data, and would be charged once more.

    Nothing is reserved. If an equal request is in the ledger, the data are read for their keyed fingerprint, which
    tells versions of them apart.

    Args:
        table: The private table, with its ledger.
        request: The request of the fit.
        folder: The folder in which the recipe's release is, if it is still there.
    """
    ledger = table.ledger
    if not isinstance(ledger, FileLedger):
        return
    ledger.refuse_other()  # a path that cannot be opened
    if not ledger.path.is_file():
        return
    lines = Chain(ledger.path).read()
    if not lines:
        return
    head, over = head_of(ledger.path, lines), runs_of(lines)
    made = [line for line in lines if line["kind"] == "reserve"]
    same = [(number, line) for number, line in enumerate(made, start=1) if line["identity"] == request.identity]
    if same:  # versions of the data may share the ledger
        data = table.backend.fingerprint(key_of(ledger.path, new=False))
        same = [(number, line) for number, line in same if line.get("data", head["data"]) == data]
    if not same or any(not over[line["run"]] for _, line in same):  # a fit that was interrupted goes on
        return
    number, first = same[-1]
    cost = coming(ledger, [request], refuse=False)
    where = f"{folder} holds its release. " if (folder / "certificate.json").is_file() else ""
    raise UsageError(
        f"this recipe is done: fit {number} of {ledger.path.name}, of {first['at']}. {where}Other rows of it cost "
        f"nothing: `stratsynth sample`. Once more is a second charge of epsilon {request.budget.epsilon:g}, from "
        f"{cost.spent_epsilon:.4g} to {cost.after_epsilon:.4g} in all; if that is meant, say --again."
    )
