"""Structural rules at sampling: no row that breaks one is ever given out.

Rows that break a rule are drawn again, which is conditioning: they follow the model, given that no rule is
broken. Within a stratum that leaves the strata's shares as they are. A model that knows nothing of the rules
may break one in nearly every row; what is left after many rounds is mended, a value at a time, and then follows
the model only roughly. Models that hold the rules themselves need neither.
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
"""How often the rows that break a rule are drawn again before they are mended."""
LEAST = 1000
"""How many rows a round draws at least: a few stubborn rows must not cost a round each."""
SWEEPS = 1000
"""How often mending goes over all rules; a set of rules that can be kept takes a few dozen."""

Boxes = list[dict[str, "NDArray[np.bool_]"]]
"""Forbidden boxes: for each column of one, which levels lie in it."""


@dataclass
class Moved:
    """How much of some samples the rules have moved: what a model that holds them itself need not have moved."""

    rows: dict[str, int] = field(default_factory=dict)
    """Rows given out, by stratum (levels joined by `|`); everybody's under the empty text."""
    redrawn: dict[str, int] = field(default_factory=dict)
    """Rows that broke a rule as they were first drawn: their share estimates the model's mass on forbidden rows."""
    mended: dict[str, int] = field(default_factory=dict)
    """Those of them that were not drawn better in many rounds, and had values changed."""

    stratum: str = ""
    """Whose rows `add` counts."""

    def inside(self, stratum: str) -> Moved:
        """The same counts, to which rows are added as a stratum's within this one."""
        return Moved(self.rows, self.redrawn, self.mended, "|".join(filter(None, (self.stratum, stratum))))

    def add(self, rows: int, redrawn: int, mended: int) -> None:
        """Count what one draw came to."""
        for counts, number in ((self.rows, rows), (self.redrawn, redrawn), (self.mended, mended)):
            counts[self.stratum] = counts.get(self.stratum, 0) + number

    def to_dict(self) -> dict[str, Any]:
        """The sums, and each stratum of which there is something to tell."""
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
    """Draw n rows that break no rule.

    Args:
        schema: Whose rules are kept.
        n: How many rows.
        rng: The source of what is drawn.
        draw: Gives any number of rows, and counts what it moves itself.
        fixed: Columns that mending leaves alone.
        moved: Where it is counted what the rules moved.

    Raises:
        MechanismError: Rules that no row can keep.
    """
    moved = Moved() if moved is None else moved
    rows, boxes = draw(n, moved), _boxes(schema)
    wrong = np.flatnonzero(_broken(boxes, rows)) if boxes and n else np.zeros(0, dtype=np.intp)
    # what is drawn instead of a row is not counted again
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
    """Put rows that break no rule in the place of those that do; returns how many were mended in the end."""
    for _ in range(ROUNDS):
        if not wrong.size:
            return 0
        fresh = draw(max(LEAST, wrong.size))
        # a model may order its rows: which of the good ones are taken must not follow that order
        good = rng.permutation(np.flatnonzero(~_broken(boxes, fresh)))[: wrong.size]
        for column, codes in rows.items():
            codes[wrong[: good.size]] = fresh[column][good]
        wrong = wrong[good.size :]
    mended = _mend(boxes, {column: codes[wrong] for column, codes in rows.items()}, rng, fixed)
    for column, codes in rows.items():
        codes[wrong] = mended[column]
    return int(wrong.size)


def broken(schema: Schema, rows: Codes) -> NDArray[np.bool_]:
    """Which rows break a rule of the schema."""
    return _broken(_boxes(schema), rows)


def _boxes(schema: Schema) -> Boxes:
    """The rules' boxes; a level set as a table of true and false is quickly looked up."""
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
    inside = np.ones(len(next(iter(rows.values()))), dtype=bool)
    for column, table in box.items():
        inside &= table[rows[column]]
    return inside


def _broken(boxes: Boxes, rows: Codes) -> NDArray[np.bool_]:
    found = np.zeros(len(next(iter(rows.values()), ())), dtype=bool)
    for box in boxes:
        found |= _inside(box, rows)
    return found


def _mend(boxes: Boxes, rows: Codes, rng: Generator, fixed: Collection[str]) -> Codes:
    """Take every row out of every box: again and again, one of a box's columns gets a level outside the box."""
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
    """At most how much of the model's rows break a structural rule: the sum over the rules' boxes."""
    boxes = [box for rule in model.schema.rules for box in rule.cells(model.schema)]
    return min(1.0, float(sum(model.mass(box) for box in boxes if all(box.values()))))
