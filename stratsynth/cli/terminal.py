"""Printing, without control codes: the texts of releases, recipes and ledgers may come from anybody."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from typing import Any

from stratsynth.errors import StratsynthError

_SHOWN = {"\n", "\t"}
_CODES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Controls, formats such as reversed writing, halves of characters, and line ends that are none of ours."""


class OutputLostError(StratsynthError):
    """The output cannot be printed; the work itself is done."""


def printable(text: str) -> str:
    r"""Return a text with all controls of a terminal written as `\u001b`; JSON stays valid."""
    return "".join(_escaped(c) if unicodedata.category(c) in _CODES and c not in _SHOWN else c for c in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def echo(text: str, *, done: str = "") -> None:
    """Print a text of a line or several to standard output, controls escaped.

    Args:
        text: What is printed.
        done: What the command has finished by now, said where its output cannot be written.

    Raises:
        OutputLostError: A full device, or a reader that went away when `done` has to be said.
    """
    try:
        sys.stdout.write(f"{printable(text)}\n")
        sys.stdout.flush()
    except OSError as error:
        if isinstance(error, BrokenPipeError) and not done:
            raise  # as `| head` does
        silence()
        raise OutputLostError(f"the output cannot be written ({error.strerror}). {done}".rstrip()) from None


def print_json(document: Any, *, done: str = "") -> None:
    """Print a JSON document, indented, to standard output; `done` is what is finished if that fails."""
    echo(json.dumps(document, indent=1, ensure_ascii=False), done=done)


def silence() -> None:
    """Redirect standard output to the null device, so that the interpreter's last flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def reopen() -> None:
    """Redirect standard output and error to the null device where they are closed."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
