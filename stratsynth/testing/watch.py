"""Watching a fit from outside: what it says, to whom, and what it changes. A mechanism may do none of this."""

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
EVENTS = frozenset({
    "os.chmod", "os.chown", "os.exec", "os.fork", "os.forkpty", "os.kill", "os.link", "os.mkdir", "os.posix_spawn",
    "os.putenv", "os.rename", "os.setxattr", "os.spawn", "os.startfile", "os.symlink", "os.system", "os.truncate",
    "os.unsetenv", "os.utime",
    "pty.spawn", "signal.pthread_kill", "socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.sendmsg", "socket.sendto", "sqlite3.connect", "subprocess.Popen", "syslog.syslog",
})  # fmt: skip
"""Audit events of Python for what others can see; `open` for writing is one too.

Nothing is removed by a fit either, but what the garbage collector removes of others' temporary files looks the same.
"""


@dataclass
class Watched:
    """What a fit did beside asking questions."""

    heard: str = ""
    """Everything written to the logs, at any level and of any logger, as warnings, and to the terminal."""
    did: set[str] = field(default_factory=set)
    """Files written, programs started, connections opened, variables set: the names of Python's audit events."""
    changed: set[str] = field(default_factory=set)
    """What of the process is not as it was: `global random state`, `working folder`."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, told from a `KeyboardInterrupt` that a mechanism raises."""


@contextlib.contextmanager
def watching(seen: Watched) -> Iterator[None]:
    """Fill `seen` with whatever is done inside the block."""
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
    """What a fit must leave as it is."""
    _, *words = np.random.get_state()  # noqa: NPY002 - looked at, not used
    states = hash(random.getstate()), [np.asarray(part).tobytes() for part in words]
    return {"global random state": states, "working folder": os.getcwd()}  # noqa: PTH109


class _Hearing(io.StringIO):
    """Takes what is written, and never counts as closed to those who hold on to it."""

    def close(self) -> None:
        """Stay open."""


@contextlib.contextmanager
def _logs(stream: _Hearing) -> Iterator[None]:
    """Hear every record of every logger, whatever its level and whether or not it is passed on."""
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
    """Hear the streams, and what goes to their file descriptors without them."""
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(tempfile.TemporaryFile())
        for number in (1, 2):
            with contextlib.suppress(OSError):  # a closed one says nothing
                copy = os.dup(number)
                stack.callback(os.close, copy)
                os.dup2(kept.fileno(), number)
                stack.callback(os.dup2, copy, number)
        own = sys.__stdout__, sys.__stderr__  # buffered by themselves
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
"""Where audit events go at the moment: a hook cannot be taken off again."""
_HOOKED: list[bool] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _LISTENING and (event in EVENTS or (event == "open" and _writes(arguments))) and not _importing():
        _LISTENING[-1].add("a file was opened for writing" if event == "open" else event)


def _writes(arguments: tuple[Any, ...]) -> bool:
    path, _, flags = arguments
    return path != os.devnull and bool((flags or 0) & WRITING)


def _importing() -> bool:
    """Whether a library is being imported, which may write caches and ask the system about itself."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the only way to see who called
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _events(did: set[str]) -> Iterator[None]:
    """Note what reaches beyond the process."""
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
    """Have the user's Ctrl-C raise `Interrupted`. Only the main thread is interrupted by signals."""
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
