"""The command line. Commands are thin: they read arguments, call the library and print.

Nothing heavy is imported here, so that `stratsynth --help` answers at once; every command imports what it
needs when it runs. Errors are one or two lines and an exit code: 0 done, 2 bad usage, recipe or existing
output, 3 budget refused, 130 interrupted, 143 stopped by SIGTERM, 1 anything else. Where the output cannot be written,
as on a full device, the code is 1 and the message says what is complete; where it was closed on purpose, nobody misses
it.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Iterator

from stratsynth.cli.terminal import printable, reopen, silence
from stratsynth.errors import StratsynthError

INTERRUPTED = 130
STOPPED = 128 + signal.SIGTERM


def main() -> None:
    """Run the command line of this process's arguments and exit with its code: the entry point `stratsynth`."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command of these arguments, print its error if it has one, and return the exit code."""
    debug = "--debug" in arguments
    stopped = list[int]()
    reopen()
    try:
        with _stoppable(stopped):
            code = _run([a for a in arguments if a != "--debug"])
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        silence()
        return 1
    except StratsynthError as error:
        if debug:
            traceback.print_exc()
        _say(str(error))
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the last resort
        if debug:
            traceback.print_exc()
        if not _interrupted(error):
            # an unforeseen error may carry a private value in its message: name its kind only
            if not debug:
                _say(f"{type(error).__name__}. With --debug the details are shown; they may hold private values.")
            return 1
        code = INTERRUPTED
    if code == INTERRUPTED:
        _say("interrupted. What was charged stays charged.")
    return STOPPED if stopped and code == INTERRUPTED else code


def _interrupted(error: BaseException) -> bool:
    """True if a KeyboardInterrupt came before `error`: closing a half written archive, say, may fail after it."""
    before = error.__context__
    return before is not None and (isinstance(before, KeyboardInterrupt) or _interrupted(before))


@contextlib.contextmanager
def _stoppable(stopped: list[int]) -> Iterator[None]:
    """Treat SIGTERM as an interrupt within the block, unless it has a handler; append its number to `stopped`."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def stop(number: int, frame: object) -> None:  # noqa: ARG001 - what the system gives
        stopped.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(arguments: list[str]) -> int:
    """Return the exit code of one command of these arguments; 2, with the mistake printed, for wrong arguments."""
    from typer.exceptions import TyperException

    from stratsynth.cli.app import app

    try:
        code = app(arguments, prog_name="stratsynth", standalone_mode=False)
    except TyperException as mistake:
        _say(f"{_text(mistake).rstrip('.')}. See --help.")
        return 2
    return code if isinstance(code, int) else 0


def _text(mistake: Exception) -> str:
    """Return the message of `mistake`, an error in the arguments, which typer has in different places."""
    formatted = getattr(mistake, "format_message", None)
    return str(formatted()) if formatted is not None else str(mistake)


def _say(message: str) -> None:
    sys.stderr.write(f"stratsynth: {printable(message)}\n")
