"""No connection is opened: not in this process (conftest.py watches the whole suite), and not in the processes that a
user starts, with all their workers.
"""

import os
import shutil
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from helpers import network, small
from helpers.command import python, started


@pytest.fixture
def cut_off(tmp_path):
    """The environment of a program that has no network, and the file that says what it tried."""
    site = tmp_path / "site"
    site.mkdir()
    shutil.copy(network.__file__, site / "sitecustomize.py")
    report = tmp_path / "attempts"
    above = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(site), *([above] if above else [])])
    return {"env": {**os.environ, "PYTHONPATH": path, "STRATSYNTH_TEST_NETWORK": str(report)}}, report


ATTEMPTS = {
    "a connection": lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
    "a name": lambda: socket.getaddrinfo("example.org", 80),
    "a page": lambda: urllib.request.urlopen("http://127.0.0.1:9/"),
    "a datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)),
}


@pytest.mark.network
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_an_attempt_is_refused_and_remembered(attempt):
    before = len(network.seen)
    with pytest.raises(OSError, match="nothing here may use the network"):
        attempt()
    assert len(network.seen) > before


def test_an_attempt_of_a_program_is_remembered_though_it_is_swallowed(cut_off, tmp_path):
    settings, report = cut_off
    code = (
        "import contextlib, socket\nwith contextlib.suppress(OSError):\n    socket.create_connection(('127.0.0.1', 9))"
    )
    assert python(code, cwd=tmp_path, **settings).returncode == 0
    assert report.read_text(encoding="utf-8") == "socket.getaddrinfo\n"


def test_the_whole_job_needs_no_network(cut_off, tmp_path):
    settings, report = cut_off
    small.write_recipe(tmp_path / "job")
    commands = (
        ("plan", "recipe.toml"),
        ("fit", "recipe.toml", "--workers", 2),
        ("certificate", "release"),
        ("sample", "release", "-n", 20, "-o", "more.csv"),
        (
            "evaluate",
            "--real",
            "people.csv",
            "--synthetic",
            "release",
            "--schema",
            "schema.toml",
            "--by",
            "SEX",
            "-o",
            "evaluation",
        ),
    )
    for command in commands:
        done = started(*command, cwd=tmp_path / "job", **settings)
        assert done.returncode == 0, (command, done.stderr)
    assert not report.exists(), report.read_text(encoding="utf-8")


def test_the_job_was_really_watched(cut_off, tmp_path):
    """The watch is in place in programs started with this environment, at the place where the tests look for it."""
    settings, _ = cut_off
    done = python("import sys; print(sys.modules['sitecustomize'].__file__)", cwd=tmp_path, **settings)
    assert Path(done.stdout.strip()).parent == tmp_path / "site"
    assert sys.executable
