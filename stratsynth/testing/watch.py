"""Observe a fit from outside: its output and side effects, of which a mechanism may have none."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from types import FrameType

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
EVENTS = frozenset(
    {
        "os.chmod",
        "os.chown",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.kill",
        "os.link",
        "os.mkdir",
        "os.posix_spawn",
        "os.putenv",
        "os.rename",
        "os.setxattr",
        "os.spawn",
        "os.startfile",
        "os.symlink",
        "os.system",
        "os.truncate",
        "os.unsetenv",
        "os.utime",
        "pty.spawn",
        "signal.pthread_kill",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.sendmsg",
        "socket.sendto",
        "sqlite3.connect",
        "subprocess.Popen",
        "syslog.syslog",
    }
)
"""Python's audit events for side effects that others can see; `open` for writing counts too.

Removal of files is not among them: the garbage collector's removal of others' temporary files looks the same.
"""


@dataclass
class Watched:
    """Side effects of a fit."""

    heard: str = ""
    """Text written to the logs, at any level and by any logger, as warnings, and to the terminal."""
    did: set[str] = field(default_factory=set)
    """Names of Python's audit events: files written, programs started, connections opened, variables set."""
    changed: set[str] = field(default_factory=set)
    """Changed parts of the process: `global random state`, `working folder`."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C of the user, as opposed to a `KeyboardInterrupt` that a mechanism raises."""


@contextlib.contextmanager
def watching(seen: Watched) -> Iterator[None]:
    """Fill a `Watched` with output, audit events and changes of the process that happen within the block."""
    before = _process()
    stream = _Hearing()
    with (
        warnings.catch_warnings(record=True) as warned,
        _logs(stream),
        _terminal(stream),
        _events(seen.did),
        _ctrl_c(),
    ):
        warnings.simplefilter("always")
        yield
    seen.heard = stream.getvalue() + "".join(f"{w.category.__name__}: {w.message}\n" for w in warned)
    seen.changed = {name for name, value in _process().items() if value != before[name]}


def _process() -> dict[str, Any]:
    """Return a dict, {name: state} of the process that a fit must leave as it is: random states, working folder."""
    _, *words = np.random.get_state()  # noqa: NPY002 - looked at, not used
    states = hash(random.getstate()), [np.asarray(part).tobytes() for part in words]
    return {"global random state": states, "working folder": os.getcwd()}  # noqa: PTH109


class _Hearing(io.StringIO):
    """Text stream that records writing and ignores `close`, for those who keep a reference to it."""

    def close(self) -> None:
        """Do nothing: the stream stays open."""


@contextlib.contextmanager
def _logs(stream: _Hearing) -> Iterator[None]:
    """Write every log message within the block to a `_Hearing`: of every logger and level, propagated or not."""
    enabled, handle = logging.Logger.isEnabledFor, logging.Logger.handle

    def heard(self: logging.Logger, record: logging.LogRecord) -> None:
        if not _importing():
            stream.write(f"{record.levelname} {self.name}: {record.getMessage()}\n")

    logging.Logger.isEnabledFor = lambda *_: True  # type: ignore[method-assign]
    logging.Logger.handle = heard  # type: ignore[method-assign]
    try:
        yield
    finally:
        logging.Logger.isEnabledFor, logging.Logger.handle = enabled, handle  # type: ignore[method-assign]


@contextlib.contextmanager
def _terminal(stream: _Hearing) -> Iterator[None]:
    """Write to a `_Hearing` what the block prints to standard output and error, or to their file descriptors."""
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(tempfile.TemporaryFile())
        for number in (1, 2):
            with contextlib.suppress(OSError):  # a closed descriptor has no output
                copy = os.dup(number)
                stack.callback(os.close, copy)
                os.dup2(kept.fileno(), number)
                stack.callback(os.dup2, copy, number)
        own = sys.__stdout__, sys.__stderr__  # these have buffers of their own
        stack.enter_context(contextlib.redirect_stdout(stream))
        stack.enter_context(contextlib.redirect_stderr(stream))
        try:
            yield
        finally:
            for one in own:
                with contextlib.suppress(Exception):
                    one.flush()  # type: ignore[union-attr]
            kept.seek(0)
            stream.write(kept.read().decode(errors="replace"))


_LISTENING: list[set[str]] = []
"""Stack of sets that receive audit events; needed because an audit hook cannot be removed."""
_HOOKED: list[bool] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _LISTENING and (event in EVENTS or (event == "open" and _writes(arguments))) and not _importing():
        _LISTENING[-1].add("a file was opened for writing" if event == "open" else event)


def _writes(arguments: tuple[Any, ...]) -> bool:
    path, _, flags = arguments
    return path != os.devnull and bool((flags or 0) & WRITING)


def _importing() -> bool:
    """True while a library is being imported, which may write caches and ask the system about itself."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the only way to see who called
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _events(did: set[str]) -> Iterator[None]:
    """Add the names of audit events within the block to `did`, a set."""
    if not _HOOKED:
        sys.addaudithook(_hook)
        _HOOKED.append(True)
    _LISTENING.append(did)
    try:
        yield
    finally:
        _LISTENING.remove(did)


@contextlib.contextmanager
def _ctrl_c() -> Iterator[None]:
    """Make the user's Ctrl-C raise `Interrupted` within the block, in the main thread, which alone gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
