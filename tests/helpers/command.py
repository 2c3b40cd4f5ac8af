"""The command line as a user starts it."""

import subprocess
import sys
from pathlib import Path

STRATSYNTH = Path(sys.executable).with_name("stratsynth")


def stratsynth(*arguments, cwd, **settings):
    return subprocess.run(
        [STRATSYNTH, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **settings,
    )


def python(code, *arguments, cwd, **settings):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **settings,
    )


def complaint(done, code):
    """What went wrong, in one or two lines and no traceback; fails unless it went wrong in just that way."""
    assert done.returncode == code, done.stderr
    lines = done.stderr.splitlines()
    assert 1 <= len(lines) <= 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr
