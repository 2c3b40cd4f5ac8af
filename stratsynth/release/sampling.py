"""Drawing of synthetic rows from a release: requests checked, rows drawn by the model, shuffled and decoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.checks import check_integer, check_seed, quoted_value
from stratsynth.errors import Unsupported, UsageError
from stratsynth.models import Codes, TableModel, Where
from stratsynth.models.rules import Moved, draw_allowed
from stratsynth.release import allocation
from stratsynth.release.allocation import RowsByGroup
from stratsynth.release.few import warn_of_few
from stratsynth.schema.columns import Numeric
from stratsynth.schema.where import example, levels_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.random import Generator

    from stratsynth.certificate import Certificate
    from stratsynth.schema import Schema
    from stratsynth.schema.inside import Inside
    from stratsynth.schema.where import Conditions

CHUNK = 2**18
"""Number of rows that are decoded at a time, so that intermediate results are small."""
PIECE = 2**20
"""Number of rows that are drawn at a time; a larger sample is made of pieces, each from a random stream of its own."""
MOST_BYTES = 64 << 30
"""Largest memory, in bytes, that drawing rows at once may take."""
CELL_BYTES = 36
"""Estimate of bytes for each row and column: codes, their permutation, and the table that is written."""


@dataclass(frozen=True)
class SampleRequest:
    """A request for rows, as of `Release.sample`."""

    n: int | None
    """Number of rows; None with `n_by_group`."""
    where: Conditions
    """Level or levels that every row has, by column, as users write them."""
    n_by_group: RowsByGroup | None
    """Number of rows of each group."""
    by: Sequence[str] | None
    """Columns of the levels in a mapping `n_by_group`."""
    balance: Sequence[str] | None
    """Columns of which every group that can occur gets equally many rows."""

    def __post_init__(self) -> None:
        """Raise UsageError for a request without a number of rows, or with one that is negative or not whole.

        Refused are also `n_by_group` together with `balance`, and `by` without a mapping `n_by_group`.
        """
        if self.n is None and self.n_by_group is None:
            raise UsageError("how many rows? Give n, or n_by_group.")
        object.__setattr__(self, "n", int(self.n) if isinstance(self.n, np.integer) else self.n)
        check_integer("the number of rows", self.n, optional=True)
        if self.n_by_group is not None and self.balance is not None:
            raise UsageError("give n_by_group or balance, not both.")
        if self.by is not None and not isinstance(self.n_by_group, Mapping):
            raise UsageError("by= names the columns of n_by_group's keys; it goes with a mapping only.")


@dataclass(frozen=True)
class Drawing:
    """A sample in pieces of at most PIECE rows, each of which can be drawn by itself: equal seeds give equal pieces.

    Every piece has its part of each condition's rows, so that pieces are alike; rows are in random order within one.
    """

    model: TableModel
    """Model that draws the rows."""
    parts: Sequence[tuple[Where, int]]
    """Conditions, each with its number of rows."""
    seed: int
    """Seed of everything that is drawn."""
    rng: Generator
    """Generator of the only piece, if there is one."""
    inside: Mapping[str, Inside] = field(default_factory=dict)
    """Laws of numbers within bins, by column; of others the schema's own."""

    @classmethod
    def of(
        cls,
        model: TableModel,
        certificate: Certificate,
        wanted: SampleRequest,
        seed: int | None,
        inside: Mapping[str, Inside],
    ) -> Drawing:
        """Return a `Drawing` of a `SampleRequest` from a model: numbers of rows by group, and seed; no row is drawn.

        `inside` maps columns to their `Inside`, laws within bins. A random seed if `seed` is None. FewPeopleWarning for
        small groups of the certificate.
        """
        check_seed(seed)
        known = int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) if seed is None else seed
        rng = np.random.default_rng(known)
        parts = _parts(model, certificate, wanted, rng)
        warn_of_few(certificate, model.schema, parts)
        return cls(model, parts, known, rng, inside)

    @property
    def rows(self) -> int:
        """Number of rows in all parts of the sample."""
        return sum(number for _, number in self.parts)

    @property
    def pieces(self) -> int:
        """Number of pieces of at most PIECE rows, at least one."""
        return max(1, -(-self.rows // PIECE))

    def piece(self, number: int, moved: Moved) -> pa.Table:
        """Return piece `number`, from 0, of this sample as an Arrow table in random order.

        Counts of what rules change go to `moved`.
        """
        import pyarrow as pa

        from stratsynth.schema.codec import decode
        from stratsynth.schema.encoding import smallest

        schema, of = self.model.schema, self.pieces
        rng = self.rng if of == 1 else np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        mine = [(where, (number + 1) * rows // of - number * rows // of) for where, rows in self.parts]
        found = [self._draw(rows, rng, where, moved) for where, rows in mine if rows or of == 1] or [
            self._draw(0, rng, {}, moved)
        ]
        order = rng.permutation(sum(rows for _, rows in mine))
        small = {c: smallest(schema.size(c)) for c in schema.names}
        codes = {c: np.concatenate([rows.pop(c).astype(small[c]) for rows in found])[order] for c in schema.names}
        chunks = range(0, max(len(order), 1), CHUNK)
        return pa.concat_tables(
            decode(schema, {c: a[i : i + CHUNK] for c, a in codes.items()}, rng, self.inside) for i in chunks
        )

    def _draw(self, n: int, rng: Generator, where: Where, moved: Moved) -> Codes:
        """Return n rows, {column: array of level numbers}, drawn by `rng` to meet the condition `where` and rules.

        `where` maps columns to sets of level numbers; `moved`, a `Moved`, counts what rules change, in place. Bins of a
        tail are drawn again by the tail's law, among those that the condition allows.
        """
        model = self.model
        rows = draw_allowed(model.schema, n, rng, lambda k, counts: model.counted(k, rng, where, counts), where, moved)
        for name, law in self.inside.items():
            if law.tail is not None and isinstance(column := model.schema.column(name), Numeric):
                rows[name] = law.tail.redrawn(column, rows[name], rng, where.get(name))
        return rows


def _parts(
    model: TableModel, certificate: Certificate, wanted: SampleRequest, rng: Generator
) -> Sequence[tuple[Where, int]]:
    """Return a list of (condition, rows) for a `SampleRequest`; a condition maps columns to sets of level numbers.

    The conditions are on rows of the model. The strata of the certificate are the groups of `n_by_group` without `by`;
    `rng` places remainders. UsageError if none can be drawn.
    """
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


def _levels(schema: Schema, where: Conditions) -> dict[str, tuple[str, ...]]:
    """Return a mapping from column to a tuple of levels, for a user's conditions `where` on columns of a schema.

    UsageError if it has another form or levels the schema lacks.
    """
    if not isinstance(where, Mapping):
        raise UsageError(
            f"where is a table from columns to levels, such as {example(schema)}, not {quoted_value(where)}."
        )
    try:
        return {column: levels_of(schema, column, condition) for column, condition in where.items()}
    except UsageError as error:
        raise type(error)(f"where: {error}") from None


def check_rows(rows: int, schema: Schema) -> None:
    """Refuse (Unsupported) to draw more rows of a schema than memory holds at once, by its number of columns.

    Raises:
        Unsupported: The rows would take more than `MOST_BYTES`.
    """
    size = rows * len(schema.names) * CELL_BYTES
    if size > MOST_BYTES:
        most = MOST_BYTES // (len(schema.names) * CELL_BYTES)
        raise Unsupported(
            f"{rows:,} rows of {len(schema.names)} columns would take about {size >> 30:,} GB of memory, more than "
            f"{MOST_BYTES >> 30} GB: release at most {most:,} rows, and draw more of them in parts, with "
            "`stratsynth sample`."
        )
