"""Accounts of copies: data whose rows another file in the folder has, and that file's ledger.

Beside each ledger, the list of a file's accounts notes marks of the data's rows under the ledger's key, one or two for
each version, by the version's fingerprint. A new ledger for rows that have such an account needs a stated reason. The
rows are read for that where other data in the folder have an account with marks, and for marks of their own once a
version, after a fit's first charge. Not in the trusted base: two accounts of the same people break an assumption, and a
mistake here lets that mistake pass.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stratsynth.accounting.paths import key_of
from stratsynth.accounting.registry import Registry
from stratsynth.errors import LedgerError, UsageError


@dataclass(frozen=True)
class Copies:
    """The accounts of other data in a file's folder that have its rows."""

    registry: Registry
    """List of the file's own accounts."""
    read: Callable[[], Callable[[bytes], list[str]]] = field(repr=False)
    """Function that reads the data and returns that from a ledger's key to marks of their rows, which copies share."""

    def refuse(self, ledger: Path | None, reason: str | None) -> None:
        """Raise UsageError on a new `ledger`, or None, without `reason` if a copy of these data has an account."""
        for name, place in self.others() if reason is None else ():
            what = "a fit without a ledger" if ledger is None else f"another ledger, {ledger.name},"
            raise UsageError(
                f"{self.registry.data.name} has the rows of {name}, which has an account already, {place}: {what} "
                f"would give the same people a second budget. Fit {name} with that ledger; or give the account a name, "
                'account = "persons 2024", and fit both with it; or say why, by --new-account REASON or new_account=.'
            )

    def others(self) -> Iterator[tuple[str, str]]:
        """Yield (file's name, ledger's name), texts, of each account of other data in the folder with these rows."""
        mine = self.registry.path
        noted = list[tuple[str, str, bytes, set[str]]]()
        for path in sorted(mine.parent.glob("*.accounts")):
            with contextlib.suppress(LedgerError):  # of no data of ours, or of a ledger that is gone
                for line in Registry(path.with_suffix("")).known() if path != mine else ():
                    found = {mark for version in _noted(line).values() for mark in version}
                    if found:
                        key = key_of(path.parent / line["ledger"], new=False)
                        noted.append((path.stem, line["ledger"], key, found))
        marks = self.read() if noted else None
        for name, place, key, found in noted:
            if marks is not None and not found.isdisjoint(marks(key)):
                yield name, place

    def mark(self, ledger: Path, data: str) -> None:
        """Note marks of the rows beside a listed ledger, once for each version of them, by its fingerprint `data`.

        Where they cannot be noted, copies are not noticed.
        """
        place = self.registry.place(ledger)
        mine = [line for line in self.registry.known() if line["ledger"] == place]
        if not mine or data in _noted(mine[0]) or not os.access(self.registry.path.parent, os.W_OK):
            return
        found = self.read()(key_of(ledger, new=False))
        if not found:
            return
        with self.registry.locked(), contextlib.suppress(LedgerError, OSError):  # a list too large, or a full disk
            known = self.registry.known()
            for line in known:
                if line["ledger"] == place:
                    line["contents"] = {**_noted(line), data: found}
            self.registry.write(known)


def _noted(line: dict[str, Any]) -> dict[str, list[str]]:
    """Return a mapping, version -> list of marks, from a line of the list; empty where what stands there are none."""
    found = line.get("contents")
    sound = isinstance(found, dict) and all(
        isinstance(marks, list) and all(isinstance(mark, str) for mark in marks) for marks in found.values()
    )
    return found if sound and found is not None else {}
