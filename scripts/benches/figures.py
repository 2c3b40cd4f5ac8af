"""The frame of every benchmark: how times are taken, alone or in a process of their own."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from studies.figures import Figure

REPETITIONS = 5


@dataclass(frozen=True)
class Timing:
    """Several runs of one thing."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle run: one disturbed run changes nothing."""
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance between the fastest and the slowest run."""
        return (max(self.seconds) - min(self.seconds)) / 2


def timed(action: Callable[[], object], repetitions: int = REPETITIONS, *, warm: bool = True) -> Timing:
    """Run something several times; the first run, which fills caches, does not count when `warm`."""
    if warm:
        action()
    seconds = []
    for _ in range(repetitions):
        gc.collect()
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return Timing(tuple(seconds))


def started(*arguments: str, repetitions: int = REPETITIONS) -> Timing:
    """The wall time of a fresh Python process with these arguments."""

    def run() -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - ourselves

    return timed(run, repetitions)


def seconds(name: str, timing: Timing, *, at_most: float | None = None, against: str = "") -> Figure:
    """A time as a figure, with its target if it has one."""
    target = f"at most {at_most:g} s" if at_most is not None else against
    reached = None if at_most is None else timing.median <= at_most
    return Figure(name, timing.median, "s", len(timing.seconds), timing.spread, target, reached)


def fresh(module: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Run `python -m benches.MODULE JSON` in a process of its own, and parse its last line."""
    command = [sys.executable, "-W", "ignore", "-m", f"benches.{module}", json.dumps(wanted)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
