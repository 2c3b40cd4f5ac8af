"""`Counts`: noisy contingency tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import IN_RHO, PRICED, Currency, Neighbours
from stratsynth.accounting.charges import Charge, interned
from stratsynth.accounting.exact import narrowed, widened
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.noise import Entropy, gaussian
from stratsynth.questions.admission import known
from stratsynth.questions.base import (
    Answer,
    Kept,
    Program,
    Question,
    Seen,
    Setting,
    check_clique,
    check_positive,
    check_weights,
    is_plain_tuple,
    read_only,
    shared,
    squared,
)
from stratsynth.questions.reading import Clique, Exact, Wanted
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.schema import Schema

MAX_CELLS = 2**27
"""Largest number of cells of one question: 1 GiB of answers. The check depends on the schema only."""

LEAST_RHO = 1e-25
"""Smallest rho of one table: less would need noise beyond the samplers' range."""

TABLE_SENSITIVITY: Mapping[Neighbours, float] = {Neighbours.ADD_REMOVE: 1.0, Neighbours.REPLACE: math.sqrt(2)}
"""L2 sensitivity of a contingency table to one neighbouring step, for rows of weight 1.

One record more or fewer changes one cell by 1; a record exchanged for another changes two cells.
"""


def table_sensitivity(schema: Schema, neighbours: Neighbours) -> float:
    """Return the L2 sensitivity, in records, of a schema's table to a step of `neighbours`, at its largest weight."""
    return TABLE_SENSITIVITY[neighbours] * schema.row_weight.most


def table_sigma(rho: float, schema: Schema, neighbours: Neighbours) -> float:
    """Return the sigma, in records, that `rho` buys one table: D / sqrt(2 rho), up; D by schema and neighbours.

    Discrete Gaussian noise makes an answer of sensitivity D cost rho = D^2 / (2 sigma^2) (Canonne, Kamath and
    Steinke 2020, Theorem 4), as the continuous law does.
    """
    return table_sensitivity(schema, neighbours) / math.sqrt(2 * rho) * (1 + 1e-15)


@dataclass(frozen=True, slots=True)
class NoisyTable:
    """One released contingency table: exact integer counts plus integer noise."""

    clique: Clique
    values: NDArray[np.int64]
    """Noisy counts, row-major, one axis for each column of the clique; read-only."""
    sigma: float
    """Scale of the discrete Gaussian noise in every cell, in records."""


@known
@dataclass(frozen=True)
class Counts(Question):
    """Noisy contingency tables of some cliques, for `rho` altogether."""

    reads: ClassVar[frozenset[str]] = frozenset({"tables"})
    dearest: ClassVar[Mapping[Currency, int]] = {**Question.dearest, Currency.ZCDP: 2, Currency.EXACT: 2}
    """Price factors: an exchanged row moves a table by sqrt(2), which squared is 2."""
    cliques: tuple[Clique, ...]
    rho: float
    """rho of the whole question, divided among the cliques by `weights`."""
    weights: tuple[float, ...] | None = None
    """Positive weight of each clique's part of rho; equal if None."""
    currency: Currency = field(default=Currency.ZCDP, metadata={"digest": False})

    @cached_property
    def shares(self) -> list[float]:
        """Part of `rho` that each clique's table costs, in order, by `weights` or equal; the sum is at most `rho`."""
        return shared(self.rho, self.weights or (1.0,) * len(self.cliques))

    def sigmas(self, schema: Schema, neighbours: Neighbours) -> list[float]:
        """Return a list, one a clique: the noise's standard deviation, by schema and neighbours, in records."""
        sigmas = [table_sigma(rho, schema, neighbours) for rho in self.shares]
        return [widened(sigma) for sigma in sigmas] if self.currency == Currency.EXACT else sigmas

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: no cliques, ones not in `schema`, wrong weights, low rho; Unsupported: large."""
        if not is_plain_tuple(self.cliques, tuple) or not self.cliques:
            raise MechanismError("counts: no clique was asked for, or cliques that are no tuple of tuples.")
        check_positive("counts: rho", self.rho)
        if self.currency not in IN_RHO:
            raise MechanismError("counts: Gaussian noise is priced in rho alone.")
        check_weights("counts", self.weights, len(self.cliques))
        if min(self.shares) < LEAST_RHO:
            raise MechanismError("counts: rho, or a part of it, is too small to be paid in noise.")
        for clique in self.cliques:
            check_clique("counts", clique, schema)
        check_cells("counts", self.cliques, schema)

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """Return a tuple: by `schema`, `neighbours` a `Charge` at `path` per sigma; k tables: sqrt(k) x sensitivity."""
        groups: dict[float, list[float]] = {}
        for rho, sigma in zip(self.shares, self.sigmas(schema, neighbours), strict=True):
            groups.setdefault(sigma, []).append(rho)
        return tuple(
            Charge(
                path=path,
                kind="counts",
                amount=math.fsum(rhos),
                sensitivity=interned(tuple((n, table_sensitivity(schema, n) * math.sqrt(len(rhos))) for n in PRICED)),
                details=interned((("sigma", sigma), ("cliques", len(rhos)))),
                currency=self.currency,
            )
            for sigma, rhos in groups.items()
        )

    def wanted(self) -> Wanted:
        """Return a `Wanted`, which names the tables of all cliques to be read."""
        return Wanted(cliques=self.cliques)

    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> tuple[NoisyTable, ...]:
        """Return a tuple, a `NoisyTable` a clique: `exact` counts at a Setting + noise by `entropy`; no `memory`."""
        # sigma = D / sqrt(2 rho): Canonne, Kamath and Steinke (2020), Theorem 4.
        sigmas = self.sigmas(at.schema, at.neighbours)
        tables = [
            NoisyTable(clique, table + gaussian.sample(sigma, table.shape, entropy), sigma)
            for clique, table, sigma in zip(self.cliques, exact.tables, sigmas, strict=True)
        ]
        read_only(table.values for table in tables)
        return tuple(tables)

    def tv_error(self, at: Setting) -> float:
        """Return a float, at a Setting: total variation between sampled and stated Gaussian noise, over all cells."""
        sigmas = self.sigmas(at.schema, at.neighbours)
        cells = [at.schema.cells(clique) for clique in self.cliques]
        return math.fsum(n * gaussian.tv_error(sigma) for n, sigma in zip(cells, sigmas, strict=True))

    def simulate(
        self, at: Setting, path: StratumPath, rows: float, rng: Generator
    ) -> tuple[tuple[NoisyTable, ...], Seen]:
        """Return (noisy tables at a Setting by `rng`, `rows` records spread evenly; their `Seen` at `path`)."""
        sigmas = self.sigmas(at.schema, at.neighbours)
        cells = [at.schema.cells(clique) for clique in self.cliques]
        tables = []
        for clique, size, sigma in zip(self.cliques, cells, sigmas, strict=True):
            noisy = rows / size + rng.normal(0, sigma, at.schema.shape(clique))
            tables.append(NoisyTable(clique, np.rint(noisy).astype(np.int64), sigma))
        read_only(table.values for table in tables)
        named = tuple(zip(self.cliques, cells, sigmas, strict=True))
        return tuple(tables), Seen(path, "counts", named, sum(cells))

    @classmethod
    def keep(cls, answer: Answer) -> Kept:
        """Return the `Kept` parts of `answer`, noisy tables, for the journal: clique and sigma as facts, int arrays."""
        return Kept([{"clique": list(t.clique), "sigma": t.sigma} for t in answer], [t.values for t in answer])

    @classmethod
    def recall(cls, kept: Kept) -> tuple[NoisyTable, ...]:
        """Return a tuple of noisy tables, with read-only arrays, from the `Kept` parts that `keep` made."""
        read_only(kept.arrays)
        return tuple(
            NoisyTable(tuple(fact["clique"]), values, fact["sigma"])
            for fact, values in zip(kept.facts, kept.arrays, strict=True)
        )

    def released(self, schema: Schema, answer: Answer) -> Sequence[NoisyTable]:
        """Return the answer itself, a tuple of noisy tables: the release publishes each of them, in any schema."""
        return cast("Sequence[NoisyTable]", answer)

    def records(self, schema: Schema, answer: Answer) -> Sequence[tuple[float, float]]:
        """Return a list, per table of `answer`, for any `schema`: (sum of its cells, sigma sqrt(cells))."""
        return [(float(t.values.sum(dtype=np.float64)), t.sigma * math.sqrt(t.values.size)) for t in answer]

    @classmethod
    def shape(cls, answer: Answer) -> Any:
        """Return a list, per table of the answer: (clique, array shape, dtype as text, sigma); no count."""
        return [(t.clique, t.values.shape, str(t.values.dtype), t.sigma) for t in answer]

    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Return rho, a Fraction, of `answer` telling two `Exact` apart at a Setting: sum of L2^2 / (2 sigma^2)."""
        # A squared distance d^2 costs rho = d^2 / (2 sigma^2), and tables add up.
        distances = [squared(x, y) for x, y in zip(here.tables, there.tables, strict=True)]
        narrow = narrowed if self.currency == Currency.EXACT else float
        noise = [Fraction(narrow(table.sigma)) for table in answer]
        return sum((Fraction(d) / (2 * s**2) for d, s in zip(distances, noise, strict=True)), Fraction(0))

    def standard_noise(self, at: Setting, exact: Exact, answer: Answer) -> list[NDArray[np.float64]]:
        """Return a list of flat float arrays, a table each: (`answer` - `exact` count) / sigma, `at` any Setting."""
        return [(t.values - truth).ravel() / t.sigma for t, truth in zip(answer, exact.tables, strict=True)]


def check_cells(what: str, cliques: Sequence[Clique], schema: Schema) -> None:
    """Raise Unsupported, opening with `what`, if tables of `cliques` in `schema` have over MAX_CELLS cells in all."""
    check_number(what, sum(schema.cells(clique) for clique in cliques))


def check_number(what: str, cells: int) -> None:
    """Raise Unsupported, beginning with `what`, if the number of cells is above MAX_CELLS."""
    if cells > MAX_CELLS:
        raise Unsupported(f"{what}: {cells:,} cells are more than {MAX_CELLS:,}; leave columns out, or use fewer bins.")


def counts(
    cliques: Sequence[Clique], *, rho: float, weights: Sequence[float] | None = None
) -> Program[tuple[NoisyTable, ...]]:
    """Ask for a tuple, a `NoisyTable` a clique, `rho` split by `weights` or evenly: `x = yield from counts(...)`."""
    answer = yield Counts(tuple(cliques), float(rho), tuple(map(float, weights)) if weights is not None else None)
    return cast("tuple[NoisyTable, ...]", answer)
