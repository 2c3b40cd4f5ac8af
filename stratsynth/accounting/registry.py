"""Registry of the accounts of a data file: `people.csv.accounts` beside `people.csv`, a line of JSON per ledger.

A second ledger for the same file would give the same people a second budget, so making one is refused without a
stated reason; certificates list the accounts that the file is known to have. The file holds names that users chose,
and keyed marks of the data's rows (`stratsynth.accounting.copies`). It lies beside the data's real path, links
followed; if that folder cannot be written, certificates state that. Copies of the data elsewhere are not noticed: an
account with a name, shared by versions of the data, is for them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stratsynth.errors import LedgerError, UsageError
from stratsynth.files.reading import read_bytes
from stratsynth.files.replacing import new_file

MOST_BYTES = 1 << 20
"""Largest size of the file, in bytes, when read and when written."""


@dataclass(frozen=True)
class Registry:
    """The list of accounts of one data file."""

    data: Path
    """Path of the data file."""

    @property
    def path(self) -> Path:
        """Path of the list of accounts, beside the data file's real path, links followed."""
        real = self.data.resolve()
        return real.with_name(f"{real.name}.accounts")

    def known(self) -> list[dict[str, Any]]:
        """Return one dict per ledger listed, oldest first; empty without a list; a LedgerError if it is damaged."""
        try:
            content = read_bytes(self.path, MOST_BYTES, error=LedgerError)
            lines = [json.loads(line) for line in content.decode().split("\n") if line]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise LedgerError(f"accounts: {self.path.name} cannot be read ({error.strerror}).") from None
        except (ValueError, RecursionError):
            lines = [None]
        if not all(
            isinstance(line, dict)
            and type(line.get("ledger")) is str
            and type(line.get("account")) in (str, type(None))
            for line in lines
        ):
            raise LedgerError(f"accounts: {self.path.name}, the list of these data's ledgers, is damaged; restore it.")
        return lines

    def names(self) -> tuple[str, ...]:
        """Return a tuple of the accounts' names, or else their ledgers' file names, oldest first; never a path."""
        return tuple(line.get("account") or Path(line["ledger"]).name for line in self.known())

    def refuse_other(self, ledger: Path | None, reason: str | None) -> None:
        """Raise UsageError on a new `ledger`, or None, without `reason` if these data have another ledger."""
        known = self.known()
        if known and reason is None and (ledger is None or self.place(ledger) not in {k["ledger"] for k in known}):
            what = "a fit without it" if ledger is None else f"another one, {ledger.name},"
            raise UsageError(
                f"{self.data.name} has an account already, {known[0]['ledger']}: {what} would give the same people a "
                "second budget. Use that ledger; or say why, by --new-account REASON or new_account=."
            )

    def note(self, ledger: Path, account: str | None, reason: str | None, *, new: bool) -> str:
        """List a ledger of an account, under its lock; UsageError for a `new` one beside another without a reason.

        Returns:
            The certificate's note if it could not be listed; empty otherwise.
        """
        with self.locked():
            known = self.known()
            place = self.place(ledger)
            named = {"account": account} if account is not None else {}
            mine = next((line for line in known if line["ledger"] == place), None)
            if mine is None and new:
                self.refuse_other(ledger, reason)
            if mine is not None and (account is None or mine.get("account") == account):
                return ""
            if mine is not None:
                mine.update(named)
            else:
                known.append({"ledger": place, **named, **({"reason": reason} if reason is not None else {})})
            try:
                self.write(known)
            except OSError:
                return "the data's folder cannot be written: which accounts these data have is not listed there"
            return ""

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the list, for as long as the `with` block lasts."""
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # some folders may not be opened, and some file systems lock none
                handle = os.open(self.path.parent, os.O_RDONLY)  # the file itself is replaced
                held.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def write(self, known: list[dict[str, Any]]) -> None:
        """Replace the list by the lines `known`; LedgerError, and the list as it was, if they would be too many."""
        content = "".join(json.dumps(line) + "\n" for line in known).encode()
        if len(content) > MOST_BYTES:
            raise LedgerError(
                f"accounts: {self.path.name} would be larger than the {MOST_BYTES:,} bytes that are read of it. "
                "Nothing was spent; use one of the accounts that it lists."
            )
        with new_file(self.path) as file:
            file.write(content)

    def place(self, ledger: Path) -> str:
        """Return a ledger's path relative to the data's folder, as a text, so that both can be moved together."""
        return os.path.relpath(ledger.resolve(), self.path.parent)


@dataclass(frozen=True)
class BothRegistries(Registry):
    """The lists of accounts of two linked files: a ledger is in both, and refused by either."""

    other: Registry = field(kw_only=True)

    def refuse_other(self, *asked: Any) -> None:
        """Raise UsageError, as `Registry` does for what is `asked`, on another ledger of either file."""
        self.other.refuse_other(*asked)
        super().refuse_other(*asked)

    def note(self, *asked: Any, **new: Any) -> str:
        """List a ledger beside both files, as `Registry`, by `asked`, `new`; return its note if one fails, else ""."""
        return self.other.note(*asked, **new) or super().note(*asked, **new)
