"""Kinds of questions that a backend can answer, by its reads."""

from __future__ import annotations

from collections.abc import Iterable

from stratsynth.errors import Unsupported
from stratsynth.questions import Question
from stratsynth.questions.admission import kinds


def served(reads: Iterable[str]) -> frozenset[type[Question]]:
    """Return the question classes that a backend with these reads (`tables`, `sums`, ...) can answer."""
    able = frozenset(reads)
    return frozenset(kind for kind in kinds() if kind.reads <= able)


def check_served(name: str, needs: Iterable[type[Question]], reads: Iterable[str], *, database: bool = False) -> None:
    """Refuse a mechanism whose questions a backend with these reads cannot answer, with any remedy there is.

    Raises:
        Unsupported: With the names of the kinds that such rows cannot answer; rows in memory answer all kinds.
    """
    missing = sorted(kind.__name__ for kind in frozenset(needs) - served(reads))
    if not missing:
        return
    known = {kind.__name__ for kind in kinds()}
    how = 'write the rows to a Parquet file, and take engine = "memory"' if database else 'take engine = "memory"'
    remedy = f"; {how}, which needs memory for all of them" if known.issuperset(missing) else ""
    raise Unsupported(f"{name} needs {', '.join(missing)}, which these rows cannot answer{remedy}.")
