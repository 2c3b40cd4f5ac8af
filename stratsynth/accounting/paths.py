"""The files beside a ledger: the key of the data's fingerprint, and a folder and a lock for each fit's journal."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from stratsynth.accounting.chain import ROLLED_BACK
from stratsynth.errors import LedgerError
from stratsynth.files.replacing import new_file, sync_folder
from stratsynth.noise import SystemEntropy

KEY_BYTES = 32
RESERVED, DONE = b"reserved\n", b"done\n"
"""Words in a fit's lock file, written once the ledger has the line: an older copy of the ledger then lacks it."""


def key_of(path: Path, *, new: bool) -> bytes:
    """Return the 32-byte key of the ledger `path`, drawn if `new`; LedgerError if it is missing or damaged."""
    file = path.with_name(f"{path.name}.key")
    if new and not (file.exists() and file.stat().st_size == KEY_BYTES):
        try:
            with new_file(file, 0o600) as handle:
                handle.write(SystemEntropy().read(KEY_BYTES))
        except OSError as error:
            raise LedgerError(f"ledger: {file} cannot be written ({error.strerror}).") from None
    try:
        key = file.read_bytes()
    except OSError:
        raise LedgerError(f"ledger: {file}, which identifies the data, is missing; restore it from a copy.") from None
    if len(key) != KEY_BYTES:
        raise LedgerError(f"ledger: {file} is damaged; restore it from a copy.")
    return key


def journal_of(path: Path) -> Path:
    """Return the path of the folder, beside the ledger `path`, that holds the journals of all its fits."""
    return path.with_name(f"{path.name}.journal")


def answer_name(moment: int, asked: str) -> str:
    """Return a file name for a batch's answers: number `moment`, and the first half of the journal key `asked`."""
    return f"{moment:06d}-{asked[:32]}.npz"


def mark(lock: int, word: bytes) -> None:
    """Append a word to a lock file. A word lost to a crash only makes a rolled-back ledger harder to notice."""
    with contextlib.suppress(OSError):
        os.pwrite(lock, word, os.fstat(lock).st_size)


def check_journal(path: Path, runs: Mapping[str, bool], answers: AbstractSet[tuple[str, str]]) -> None:
    """Raise LedgerError on a ledger that lacks charges which the journal beside it has: an older copy.

    Args:
        path: The ledger.
        runs: Mapping from the name of each fit of the ledger to True if it is over.
        answers: Set of pairs, (name of the fit, file name in its journal), one for each batch that was charged.
    """
    for folder in _folders(path):
        names, over = {file.name for file in folder.glob("*.npz")}, runs.get(folder.name)
        try:
            marks = (folder / "lock").read_bytes()
        except OSError:
            marks = b""
        unknown = over is None and bool(names or marks)
        undone = over is False and DONE in marks
        uncharged = over is False and any((folder.name, name) not in answers for name in names)
        if unknown or undone or uncharged:
            raise LedgerError(ROLLED_BACK.format(path=path))


def tidy(path: Path, over: Iterable[str]) -> None:
    """Delete answers of the runs `over` from the journal of the ledger `path`, left where a process was killed."""
    wanted = set(over)
    for folder in _folders(path):
        if folder.name in wanted:
            for left in (*folder.glob("*.npz"), *folder.glob(".*.part")):
                left.unlink(missing_ok=True)


def _folders(path: Path) -> list[Path]:
    """Return a list of the journal folders of ledger `path`'s fits, sorted; [] without journal; else LedgerError."""
    try:
        return sorted(folder for folder in journal_of(path).iterdir() if folder.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LedgerError(f"ledger: {journal_of(path)} cannot be read ({error.strerror}).") from None


def locked_journal(path: Path, run: str) -> tuple[Path, int]:
    """Return (the journal folder of fit `run` on ledger `path`, with mode 0700; int descriptor of its lock).

    LedgerError if it cannot be made, or a process has it: two would draw two noises for one charge.
    """
    folder = journal_of(path) / run
    try:
        for each in (folder.parent, folder):  # `parents=True` would not give the mode to the upper one
            each.mkdir(mode=0o700, exist_ok=True)
            sync_folder(each.parent)
    except OSError as error:
        raise LedgerError(f"ledger: {folder} cannot be made ({error.strerror}).") from None
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
    return folder, handle
