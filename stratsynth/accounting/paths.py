"""The files beside a ledger: the key of the data's fingerprint, and a folder and a lock for each fit's journal."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from stratsynth.errors import LedgerError
from stratsynth.files.whole import new_file, sync_folder
from stratsynth.noise import SystemEntropy

KEY_BYTES = 32


def key_of(path: Path, *, new: bool) -> bytes:
    """The key of the data's fingerprint; made with the ledger, and a ledger without its key is of no use."""
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
    """The folder of all journals."""
    return path.with_name(f"{path.name}.journal")


def journal_folder(path: Path, run: str) -> Path:
    """The folder of one fit's journal, made if it is not there."""
    folder = journal_of(path) / run
    try:
        for each in (folder.parent, folder):  # `parents=True` would not give the mode to the upper one
            each.mkdir(mode=0o700, exist_ok=True)
            sync_folder(each.parent)
    except OSError as error:
        raise LedgerError(f"ledger: {folder} cannot be made ({error.strerror}).") from None
    return folder


def locked(folder: Path, path: Path) -> int:
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
