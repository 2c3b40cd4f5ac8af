"""Solvers that a separate process can import."""

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np  # noqa: F401 - brings linear algebra, whose threads are counted
from threadpoolctl import threadpool_info

from stratsynth.errors import Unsupported


@dataclass(frozen=True)
class Task:
    """A problem that says how large it is."""

    number: int
    size: int = 0
    mark: str = ""
    """A file, where something happens once."""
    """A file, where something happens once."""
    """A file, where something happens once."""


def squares(tasks):
    """Each task's square, and the process that worked it out."""
    return [(task.number**2, os.getpid()) for task in tasks]


class Awkward(Exception):
    """Cannot be made again from its message, so that sending it to another process fails there."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def picky(tasks):
    """Fails on the number 3, with an error that quotes it."""
    if any(task.number == 3 for task in tasks):
        raise Awkward("the number was", 3333)
    return [task.number for task in tasks]


def refusing(tasks):
    """Refuses the number 3 in words of our own."""
    if any(task.number == 3 for task in tasks):
        raise Unsupported("use a smaller number.")
    return [task.number for task in tasks]


def greedy(tasks):
    """Can only take one at a time."""
    if len(tasks) > 1:
        raise MemoryError
    return [task.number for task in tasks]


def threads(tasks):
    """Return the number of threads of linear algebra, with the process's number, for each task."""
    most = max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
    return [(most, os.getpid()) for _ in tasks]


def sleepy(tasks):
    """Takes longer than anybody waits; leaves its process's number in the folder NAPPING."""
    (Path(os.environ["NAPPING"]) / f"worker-{os.getpid()}").touch()
    time.sleep(300)
    return [0 for _ in tasks]


def dying(tasks):
    """Is killed, as by a system that is out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    return [0 for _ in tasks]


def dying_once(tasks):
    """The first process that solves the number 2 is killed; it leaves the file that the task names."""
    for task in tasks:
        if task.number == 2 and not Path(task.mark).exists():
            Path(task.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return [task.number for task in tasks]


def chatty(tasks):
    """Prints, below Python too."""
    sys.stdout.write("a worker says something\n")
    sys.stdout.flush()
    os.write(1, b"and something else\n")
    return [task.number for task in tasks]
