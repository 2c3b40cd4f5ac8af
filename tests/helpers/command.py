"""Command line: in a process of its own, and in this one, which saves a second of imports a command."""

import contextlib
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from stratsynth import cli
from stratsynth.accounting import process

STRATSYNTH = Path(sys.executable).with_name("stratsynth")
UNSEEN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
"""Warnings that Python shows to nobody who does not ask for them."""


def stratsynth(*arguments, cwd):
    """Run a command in this process, with what a process of its own would have: accounts, output, warnings, folder."""
    words = [str(argument) for argument in arguments]
    accounts = dict(process._ACCOUNTS)
    process._ACCOUNTS.clear()
    try:
        with contextlib.chdir(cwd), _written() as texts, _warned():
            code = cli.run(words)
    finally:
        process._ACCOUNTS.clear()
        process._ACCOUNTS.update(accounts)
    return subprocess.CompletedProcess(words, code, *texts)


def run(folder, *arguments):
    """Run a command in this folder that ends well; return what it printed."""
    done = stratsynth(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def _written():
    """All that is written to standard output and error meanwhile, by processes that are started too."""
    texts, kept = [], (sys.stdout, sys.stderr)
    with contextlib.ExitStack() as stack:
        files, streams = [], []
        for number, stream in enumerate(kept, 1):
            stream.flush()
            files.append(stack.enter_context(tempfile.TemporaryFile()))
            before = os.dup(number)
            stack.callback(os.close, before)
            stack.callback(os.dup2, before, number)
            os.dup2(files[-1].fileno(), number)
            streams.append(stack.enter_context(open(number, "w", encoding="utf-8", closefd=False)))
        sys.stdout, sys.stderr = streams
        try:
            yield texts
        finally:
            sys.stdout, sys.stderr = kept
            for file, stream in zip(files, streams, strict=True):
                stream.flush()
                file.seek(0)
                texts.append(file.read().decode())


@contextlib.contextmanager
def _warned():
    """Warnings as Python has them at its start: shown on standard error."""

    def show(message, category, filename, lineno, file=None, line=None):
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))

    with warnings.catch_warnings():
        warnings.resetwarnings()
        for category in UNSEEN:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show
        yield


def started(*arguments, cwd, **settings):
    """Run a command in a process of its own, as a user does."""
    return _process([STRATSYNTH, *map(str, arguments)], cwd, settings)


def python(code, *arguments, cwd, **settings):
    return _process([sys.executable, "-c", code, *map(str, arguments)], cwd, settings)


def _process(words, cwd, settings):
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=300, **settings)


def complaint(done, code):
    """Return the one or two lines of an error; fail on another exit code, more lines or a traceback."""
    assert done.returncode == code, done.stderr
    lines = done.stderr.splitlines()
    assert 1 <= len(lines) <= 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr
