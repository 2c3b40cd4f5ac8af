"""Structural rules at sampling: no row that breaks one is ever given out.

Rows that break a rule are drawn again, which conditions the model on the rules (rejection sampling). Done within a
stratum, it leaves the strata's shares unchanged. A model that ignores the rules may break one in nearly every row; rows
left after many rounds are repaired, one value at a time, and follow the model only roughly. Models that obey the rules
themselves need neither.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import MechanismError

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.models.base import Codes, TableModel
    from stratsynth.schema import Schema

ROUNDS = 50
"""Number of redrawing rounds before the remaining rows are repaired."""
LEAST = 1000
"""Smallest number of rows drawn in a round, so that a few stubborn rows do not cost a round each."""
SWEEPS = 1000
"""Passes over all rules that repairing may take; satisfiable rules take a few dozen."""

Boxes = list[dict[str, "NDArray[np.bool_]"]]
"""Forbidden boxes: for each, column -> mask of the levels inside the box."""


@dataclass
class Moved:
    """Counts of rows that the rules had redrawn or repaired, by stratum."""

    rows: dict[str, int] = field(default_factory=dict)
    """Stratum -> rows given out; its levels joined by `|`, empty for all records."""
    redrawn: dict[str, int] = field(default_factory=dict)
    """Stratum -> rows that broke a rule when first drawn: their share estimates the model's mass on forbidden rows."""
    mended: dict[str, int] = field(default_factory=dict)
    """Stratum -> rows among those that were still forbidden after `ROUNDS` rounds, and had values changed."""

    stratum: str = ""
    """Stratum whose counts `add` changes."""

    def inside(self, stratum: str) -> Moved:
        """Return a view of these counts in which `add` counts for `stratum`, inside this one."""
        return Moved(self.rows, self.redrawn, self.mended, "|".join(filter(None, (self.stratum, stratum))))

    def add(self, rows: int, redrawn: int, mended: int) -> None:
        """Add, to this stratum's counts, the rows of one draw: drawn (`rows`), again (`redrawn`), and `mended`."""
        for counts, number in ((self.rows, rows), (self.redrawn, redrawn), (self.mended, mended)):
            counts[self.stratum] = counts.get(self.stratum, 0) + number

    def to_dict(self) -> dict[str, Any]:
        """Return {"rows", "redrawn", "mended": numbers of rows; "strata": these by stratum, where some are redrawn}."""
        strata = {
            name: {"rows": self.rows[name], "redrawn": number, "mended": self.mended[name]}
            for name, number in self.redrawn.items()
            if name and number
        }
        totals = {"redrawn": sum(self.redrawn.values()), "mended": sum(self.mended.values())}
        return {"rows": self.rows.get("", 0), **totals, "strata": strata}


def draw_allowed(
    schema: Schema,
    n: int,
    rng: Generator,
    draw: Callable[[int, Moved], Codes],
    fixed: Collection[str] = (),
    moved: Moved | None = None,
) -> Codes:
    """Return n rows, arrays of level numbers by column, that break none of the schema's rules.

    Args:
        schema: Schema whose rules are kept.
        n: Number of rows.
        rng: Source of randomness.
        draw: Function of a number of rows and a `Moved`; returns such rows, and adds to the `Moved` what it changes.
        fixed: Columns that repairing must not change.
        moved: Counts to add to; None to count nothing.

    Raises:
        MechanismError: Rules that no row can keep.
    """
    moved = Moved() if moved is None else moved
    rows, boxes = draw(n, moved), _boxes(schema)
    wrong = np.flatnonzero(_broken(boxes, rows)) if boxes and n else np.zeros(0, dtype=np.intp)
    # replacement rows are not counted a second time
    mended = _redraw(boxes, rows, wrong, rng, lambda number: draw(number, Moved()), fixed) if wrong.size else 0
    moved.add(n, int(wrong.size), mended)
    return rows


def _redraw(
    boxes: Boxes,
    rows: Codes,
    wrong: NDArray[np.intp],
    rng: Generator,
    draw: Callable[[int], Codes],
    fixed: Collection[str],
) -> int:
    """Replace in place entries `wrong`, indices, of `rows`, level numbers by column, by rows in none of the `boxes`.

    The function `draw` returns as many rows as it is asked for, `rng` chooses. Columns in `fixed` keep their codes if
    rows are mended. Return how many were.
    """
    for _ in range(ROUNDS):
        if not wrong.size:
            return 0
        fresh = draw(max(LEAST, wrong.size))
        # a model may order its rows: choose among the valid ones at random
        good = rng.permutation(np.flatnonzero(~_broken(boxes, fresh)))[: wrong.size]
        for column, codes in rows.items():
            codes[wrong[: good.size]] = fresh[column][good]
        wrong = wrong[good.size :]
    # rejection failed: these rows follow the model only roughly
    mended = _mend(boxes, {column: codes[wrong] for column, codes in rows.items()}, rng, fixed)
    for column, codes in rows.items():
        codes[wrong] = mended[column]
    return int(wrong.size)


def broken(schema: Schema, rows: Codes) -> NDArray[np.bool_]:
    """Return a mask of the rows, given as level numbers by column, that break a rule of the schema."""
    return _broken(_boxes(schema), rows)


def _boxes(schema: Schema) -> Boxes:
    """Return a list of dicts, column -> Boolean mask over its levels: the boxes that the schema's rules forbid."""
    found: Boxes = []
    for rule in schema.rules:
        for box in rule.cells(schema):
            tables = {}
            for column, levels in box.items():
                tables[column] = np.zeros(schema.size(column), dtype=bool)
                tables[column][sorted(levels)] = True
            found.append(tables)
    return found


def _inside(box: dict[str, NDArray[np.bool_]], rows: Codes) -> NDArray[np.bool_]:
    """Return a mask of the `rows`, level numbers by column, that lie in `box`: {column: mask over its levels}."""
    inside = np.ones(len(next(iter(rows.values()))), dtype=bool)
    for column, table in box.items():
        inside &= table[rows[column]]
    return inside


def _broken(boxes: Boxes, rows: Codes) -> NDArray[np.bool_]:
    """Return a mask of the `rows`, level numbers by column, that lie in any of the boxes.

    `boxes` is a list of mappings from column to a mask of the levels inside the box; other columns are free.
    """
    found = np.zeros(len(next(iter(rows.values()), ())), dtype=bool)
    for box in boxes:
        found |= _inside(box, rows)
    return found


def _mend(boxes: Boxes, rows: Codes, rng: Generator, fixed: Collection[str]) -> Codes:
    """Return `rows`, level numbers by column, changed in place by `rng` until none lies in any of `boxes`.

    A column of a violated box gets another level. Columns in `fixed` stay. MechanismError if the rules contradict.
    """
    for _ in range(SWEEPS):
        if not _broken(boxes, rows).any():
            return rows
        for number in rng.permutation(len(boxes)):
            box = boxes[number]
            inside = np.flatnonzero(_inside(box, rows))
            free = [column for column, table in box.items() if column not in fixed and not table.all()]
            if not inside.size or not free:
                continue
            column = free[int(rng.integers(len(free)))]
            rows[column][inside] = rng.choice(np.flatnonzero(~box[column]), size=inside.size)
    raise MechanismError("the schema's rules contradict each other, or the condition: no row keeps all of them.")


def forbidden(model: TableModel) -> float:
    """Return an upper bound, at most 1, on a model's mass on forbidden rows: the sum over the rules' boxes."""
    boxes = [box for rule in model.schema.rules for box in rule.cells(model.schema)]
    return min(1.0, float(sum(model.mass(box) for box in boxes if all(box.values()))))
