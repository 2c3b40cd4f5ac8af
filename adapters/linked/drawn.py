"""Drawn parents with their child rows, as codes and numbers, and counts of what drawing gave up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.models.rules import Moved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.models import Codes

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]


@dataclass(eq=False)
class DrawCounts:
    """Counts of what drawing had to give up, for certificates and reports."""

    parents: int = 0
    rows: int = 0
    """Child rows."""
    backed_off: dict[str, int] = field(default_factory=dict)
    """Child rows drawn without some of what is known, by the last column that was given up."""
    relaxed: int = 0
    """Child rows that the sum's remainder left no value, drawn without regard to it."""
    other_bands: int = 0
    """Parents with a sum in another band than the parent's model drew."""
    rules: Moved = field(default_factory=Moved)
    """Rows of the parent's model that broke a rule and were drawn again."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of plain numbers: parents, rows, relaxed, other_bands; and two dicts.

        These are `backed_off`, numbers of rows by column, and `rules`.
        """
        return {
            "parents": self.parents,
            "rows": self.rows,
            "backed_off": dict(self.backed_off),
            "relaxed": self.relaxed,
            "other_bands": self.other_bands,
            "rules": self.rules.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class DrawnTables:
    """Parents and their child rows, as codes and numbers; rows of one parent lie together, in order."""

    parent: Codes
    """Codes of the columns of the parent's model, without its prefix; derived ones are those that it drew."""
    counts: Mapping[str, Ints]
    """Exact number of child rows that meet each count's condition."""
    total: Floats | None
    """Exact sum of each parent's child rows; None where nothing is summed."""
    owner: Ints
    """Number of each child row's parent, rising."""
    child: Codes
    """Codes of the child's columns."""
    numbers: Mapping[str, Floats]
    """Numbers of the summed and the stepped column; NaN for a level without one."""

    @property
    def place(self) -> Ints:
        """Array with the place of each child row among its parent's, from 0 on."""
        start = np.searchsorted(self.owner, np.arange(len(next(iter(self.counts.values())))))
        found: Ints = np.arange(len(self.owner)) - start[self.owner]
        return found

    def take(self, kept: NDArray[np.bool_]) -> DrawnTables:
        """Return the `DrawnTables` of the parents where the mask `kept` is true, with their rows."""
        rows, number = kept[self.owner], np.cumsum(kept) - 1
        return DrawnTables(
            {name: codes[kept] for name, codes in self.parent.items()},
            {name: counts[kept] for name, counts in self.counts.items()},
            None if self.total is None else self.total[kept],
            number[self.owner[rows]],
            {name: codes[rows] for name, codes in self.child.items()},
            {name: numbers[rows] for name, numbers in self.numbers.items()},
        )

    @classmethod
    def joined(cls, parts: list[DrawnTables]) -> DrawnTables:
        """Return one `DrawnTables` of the parents of all `parts`, in order, with their rows."""
        first = parts[0]
        before = np.cumsum([0, *(len(next(iter(part.counts.values()))) for part in parts)])
        totals = [part.total for part in parts if part.total is not None]
        return cls(
            {name: np.concatenate([part.parent[name] for part in parts]) for name in first.parent},
            {name: np.concatenate([part.counts[name] for part in parts]) for name in first.counts},
            np.concatenate(totals) if totals else None,
            np.concatenate([part.owner + start for part, start in zip(parts, before[:-1], strict=True)]),
            {name: np.concatenate([part.child[name] for part in parts]) for name in first.child},
            {name: np.concatenate([part.numbers[name] for part in parts]) for name in first.numbers},
        )
