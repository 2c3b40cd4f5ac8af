"""The frame of every benchmark: figures, how times are taken, how figures are shown."""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

REPETITIONS = 5


@dataclass(frozen=True)
class Figure:
    """One measured number."""

    name: str
    """The measured quantity, in words."""
    value: float
    """The mean or median measurement."""
    unit: str
    """Its unit; empty for none."""
    repetitions: int = 1
    """The number of measurements."""
    spread: float | None = None
    """Half the distance between the smallest and the largest measurement, in the same unit."""
    against: str = ""
    """The figure of comparison, or the target."""
    reached: bool | None = None
    """Whether the target was reached; None where there is none."""


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


def peak_megabytes() -> float:
    """The most memory that this process has held so far.

    Linux's own count, where there is one: `getrusage` starts a child's count at its parent's size.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds(name: str, timing: Timing, *, at_most: float | None = None, against: str = "") -> Figure:
    """A time as a figure, with its target if it has one."""
    target = f"at most {at_most:g} s" if at_most is not None else against
    reached = None if at_most is None else timing.median <= at_most
    return Figure(name, timing.median, "s", len(timing.seconds), timing.spread, target, reached)


def limited(name: str, value: float, most: float | None, unit: str, repetitions: int = 1) -> Figure:
    """A number that is to be at most `most`, if that is given."""
    if most is None:
        return Figure(name, float(value), unit, repetitions)
    return Figure(name, float(value), unit, repetitions, None, f"at most {most:,g}", bool(value <= most))


def fresh(module: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Run `python -m stratsynth.evaluation.bench.MODULE JSON` in a process of its own, and parse its last line."""
    command = [sys.executable, "-W", "ignore", "-m", f"stratsynth.evaluation.bench.{module}", json.dumps(wanted)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(figures: Sequence[Figure], *, as_json: bool) -> str:
    """A table for a reader, or JSON for a program; the peak memory of the run comes last."""
    peak = Figure("peak memory of the benchmark", peak_megabytes(), "MB")
    everything = [*figures, peak]
    if as_json:
        return json.dumps([asdict(figure) for figure in everything], indent=1)
    width = max(len(figure.name) for figure in everything)
    return "\n".join(_line(figure, width) for figure in everything)


def _line(figure: Figure, width: int) -> str:
    spread = f" +- {figure.spread:.2g}" if figure.spread is not None else ""
    verdict = {True: "  reached", False: "  MISSED", None: ""}[figure.reached]
    number = f"{figure.value:,.4g}" if figure.value < 1e5 else f"{figure.value:,.0f}"
    against = f"  ({figure.against})" if figure.against else ""
    return f"{figure.name:{width}}  {number + spread:>20} {figure.unit:12}{against}{verdict}"
