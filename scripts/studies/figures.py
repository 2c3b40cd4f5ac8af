"""Measured numbers, each with its unit, repetitions, spread and target, and how they are shown."""

from __future__ import annotations

import json
import resource
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One measured number."""

    name: str
    """The measured quantity, in words."""
    value: float
    """Mean or median of the measurements."""
    unit: str
    """Unit of the value; empty for none."""
    repetitions: int = 1
    """Number of measurements."""
    spread: float | None = None
    """Half the distance between the smallest and the largest measurement, in the same unit."""
    against: str = ""
    """The figure of comparison, or the target."""
    reached: bool | None = None
    """True if the target was reached; None without a target."""


def peak_megabytes() -> float:
    """Return the peak memory of this process so far, in MB.

    Linux's own count, where there is one: `getrusage` starts a child's count at its parent's size.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peak_of_all() -> float:
    """Return the largest peak memory, in MB, of this process and of each that it ran to its end."""
    return max(peak_megabytes(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)


def limited(name: str, value: float, most: float | None, unit: str, repetitions: int = 1) -> Figure:
    """A number that is to be at most `most`, if that is given."""
    if most is None:
        return Figure(name, float(value), unit, repetitions)
    return Figure(name, float(value), unit, repetitions, None, f"at most {most:,g}", bool(value <= most))


def show(figures: Sequence[Figure], *, as_json: bool) -> str:
    """A table for a reader, or JSON for a program; the peak memory of the run's largest process comes last."""
    peak = Figure("peak memory of the benchmark", peak_of_all(), "MB")
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
