"""Drawing synthetic rows from a release: what was asked for, checked, drawn by the model, shuffled and decoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.checks import check_seed, said, whole
from stratsynth.errors import Unsupported, UsageError
from stratsynth.models import Codes, TableModel, Where
from stratsynth.models.rules import Moved, draw_allowed
from stratsynth.release import allocation
from stratsynth.release.allocation import RowsByGroup
from stratsynth.release.few import warn_of_few

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.random import Generator

    from stratsynth.certificate import Certificate
    from stratsynth.schema import Schema

CHUNK = 2**18
"""How many rows are turned from level numbers into values at a time, so that what lies between is small."""
PIECE = 2**20
"""How many rows are drawn at a time; a larger sample is made of pieces, each from a stream of random numbers of its
own."""
MOST_BYTES = 64 << 30
"""The most memory that drawing rows at once may take."""
CELL_BYTES = 36
"""What drawing is taken to need for each row and column: codes, their permutation, and the table that is written."""


@dataclass(frozen=True)
class Wanted:
    """Which rows somebody asks for, as `Release.sample` has it; what makes no sense is refused."""

    n: int | None
    """How many rows."""
    where: Mapping[str, str | Sequence[str]]
    """For some columns, the level or levels that every row has."""
    n_by_group: RowsByGroup | None
    """Each group's number of rows."""
    by: Sequence[str] | None
    """The columns of the levels in a mapping `n_by_group`."""
    balance: Sequence[str] | None
    """Columns of which every group that can occur gets the same number of rows."""

    def __post_init__(self) -> None:
        """Refuse what no release could draw."""
        if self.n is None and self.n_by_group is None:
            raise UsageError("how many rows? Give n, or n_by_group.")
        object.__setattr__(self, "n", int(self.n) if isinstance(self.n, np.integer) else self.n)
        whole("the number of rows", self.n, optional=True)
        if self.n_by_group is not None and self.balance is not None:
            raise UsageError("give n_by_group or balance, not both.")
        if self.by is not None and not isinstance(self.n_by_group, Mapping):
            raise UsageError("by= names the columns of n_by_group's keys; it goes with a mapping only.")


@dataclass(frozen=True)
class Drawing:
    """A sample in pieces of at most PIECE rows, each of which can be drawn by itself: the same seed, the same piece.

    Every piece has its part of each condition's rows, so that pieces are alike; rows are in random order within one.
    """

    model: TableModel
    """What draws them."""
    parts: Sequence[tuple[Where, int]]
    """Conditions, and how many rows each gets."""
    seed: int
    """Of everything that is drawn."""
    rng: Generator
    """What draws the only piece, where there is one."""

    @classmethod
    def of(cls, model: TableModel, certificate: Certificate, wanted: Wanted, seed: int | None) -> Drawing:
        """What is wanted, checked; nothing is drawn yet. Without a seed, one is made up."""
        check_seed(seed)
        known = int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) if seed is None else seed
        rng = np.random.default_rng(known)
        parts = _parts(model, certificate, wanted, rng)
        warn_of_few(certificate, model.schema, parts)
        return cls(model, parts, known, rng)

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(number for _, number in self.parts)

    @property
    def pieces(self) -> int:
        """How many pieces there are, at least one."""
        return max(1, -(-self.rows // PIECE))

    def piece(self, number: int, moved: Moved) -> pa.Table:
        """The rows of one piece, in random order."""
        import pyarrow as pa

        from stratsynth.schema.codec import decode
        from stratsynth.schema.encoding import smallest

        schema, of = self.model.schema, self.pieces
        rng = self.rng if of == 1 else np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        mine = [(where, (number + 1) * rows // of - number * rows // of) for where, rows in self.parts]
        found = [_draw(self.model, rows, rng, where, moved) for where, rows in mine if rows or of == 1] or [
            _draw(self.model, 0, rng, {}, moved)
        ]
        order = rng.permutation(sum(rows for _, rows in mine))
        small = {c: smallest(schema.size(c)) for c in schema.names}
        codes = {c: np.concatenate([rows.pop(c).astype(small[c]) for rows in found])[order] for c in schema.names}
        chunks = range(0, max(len(order), 1), CHUNK)
        return pa.concat_tables(decode(schema, {c: a[i : i + CHUNK] for c, a in codes.items()}, rng) for i in chunks)


def _parts(model: TableModel, certificate: Certificate, wanted: Wanted, rng: Generator) -> Sequence[tuple[Where, int]]:
    """Conditions, and how many rows each gets."""
    schema, n = model.schema, wanted.n or 0
    allowed = _levels(schema, wanted.where)
    condition = {c: frozenset(schema.index(c, level) for level in levels) for c, levels in allowed.items()}
    if wanted.n_by_group is not None:
        names = wanted.by if wanted.by is not None else certificate.strata.by
        return allocation.wanted(model, wanted.n_by_group, names, condition, wanted.n)
    if wanted.balance is not None:
        return allocation.balanced(model, n, wanted.balance, condition, rng)
    if condition and not model.mass(condition) > 0:
        levels = ", ".join(f"{column}={' or '.join(levels)}" for column, levels in allowed.items())
        raise UsageError(f"the model gives no weight to rows with {levels}; there is nothing to draw.")
    return [(condition, n)]


def _levels(schema: Schema, where: Mapping[str, str | Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """A condition's levels by column, each known to the schema."""
    if not isinstance(where, Mapping):
        raise UsageError(f"where is a table from columns to levels, such as {{'SEX': '2'}}, not {said(where)}.")
    found = {}
    for column, levels in where.items():
        several = (levels,) if isinstance(levels, str) else levels
        if not isinstance(several, Sequence) or not all(isinstance(level, str) for level in several):
            raise UsageError(f"where: the levels of {column} are texts, as in the schema: {{{column!r}: '2'}}.")
        for one in several:
            schema.index(column, one)
        found[column] = tuple(several)
    return found


def _draw(model: TableModel, n: int, rng: Generator, condition: Where, moved: Moved) -> Codes:
    """Rows that meet a condition, with no rule broken."""
    return draw_allowed(
        model.schema, n, rng, lambda k, counts: model.counted(k, rng, condition, counts), condition, moved
    )


def check_rows(rows: int, schema: Schema) -> None:
    """Refuse more rows than a computer holds at once, from the width of the schema.

    Raises:
        Unsupported: Rows that would take more than `MOST_BYTES`.
    """
    size = rows * len(schema.names) * CELL_BYTES
    if size > MOST_BYTES:
        most = MOST_BYTES // (len(schema.names) * CELL_BYTES)
        raise Unsupported(
            f"{rows:,} rows of {len(schema.names)} columns would take about {size >> 30:,} GB of memory, more than "
            f"{MOST_BYTES >> 30} GB: release at most {most:,} rows, and draw more of them in parts, with "
            "`stratsynth sample`."
        )
