"""Run of one case: its outcome, within a time limit, and the count of all outcomes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth import StratsynthError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

SECONDS = 30
"""Time limit of a case, after which it counts as a hang."""
SHOWN = 60
"""Largest number of faults that are listed."""


VALUE_ERRORS = (f"adapters{os.sep}sklearn", f"stratsynth{os.sep}certificate.py")
"""Places that refuse with ValueError, as their docstrings say: estimators do what scikit-learn expects."""


class HangError(BaseException):
    """A case took longer than its time limit."""


@dataclass
class Outcomes:
    """Counts of outcomes, and the cases that were faults."""

    counts: Counter[str] = field(default_factory=Counter)
    listed: dict[str, str] = field(default_factory=dict)
    """First case of each kind of fault, by the place where the error was raised."""

    @property
    def faults(self) -> int:
        """Number of untyped errors, hangs and charges before a refusal."""
        return sum(self.counts[name] for name in ("untyped", "hang", "charged"))

    def case(self, name: str, work: Callable[[], object], charged: Callable[[], bool] = lambda: False) -> None:
        """Run one case and count its outcome; `charged` is True if an account is charged for what was refused."""
        try:
            with limited(), quiet():
                work()
        except StratsynthError:
            self._count("charged" if charged() else "refused", name, "a refusal after a charge")
        except HangError:
            self._count("hang", name, f"more than {SECONDS} s")
        except Exception as error:  # noqa: BLE001 - the fault that is looked for
            if isinstance(error, ValueError) and any(place in raised_in(error) for place in VALUE_ERRORS):
                self._count("charged" if charged() else "refused", name, "a refusal after a charge")
            else:
                self._count("untyped", name, f"{type(error).__name__}: {error}"[:200], where(error))
        else:
            self.counts["accepted"] += 1

    def _count(self, outcome: str, name: str, why: str, place: str = "") -> None:
        self.counts[outcome] += 1
        if outcome != "refused":
            self.listed.setdefault(place or f"{name}: {why}", f"{name}: {why}")

    def __str__(self) -> str:
        """Return the counts as one line, and a line for each kind of fault."""
        numbers = ", ".join(
            f"{self.counts[name]:,} {name}" for name in ("accepted", "refused", "untyped", "hang", "charged")
        )
        lines = [f"  {place}: {text}" for place, text in list(self.listed.items())[:SHOWN]]
        return "\n".join([f"{self.counts.total():,} cases: {numbers}", *lines])


def raised_in(error: BaseException) -> str:
    """Return the path of the file whose own statement raised an error."""
    return traceback.extract_tb(error.__traceback__)[-1].filename


def where(error: BaseException) -> str:
    """Return file, line and function in the product from which an error came."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        f for f in frames if "fuzzing" not in f.filename and ("stratsynth" in f.filename or "adapters" in f.filename)
    ]
    last = (ours or frames)[-1]
    return f"{Path(*Path(last.filename).parts[-3:])}:{last.lineno} {last.name}"


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise HangError inside the block after SECONDS."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the system's signature
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Show no warnings and no output inside the block."""
    with warnings.catch_warnings(), open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123 - a device
        warnings.simplefilter("ignore")
        kept = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = nowhere
        try:
            yield
        finally:
            sys.stdout, sys.stderr = kept
