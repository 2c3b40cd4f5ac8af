"""`Counts`: noisy contingency tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import PRICED, Currency, Neighbours
from stratsynth.accounting.charges import Charge, alike
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
"""The most cells one question may ask for: a gibibyte of answers. Depends on the schema only."""

LEAST_RHO = 1e-25
"""Less would ask for noise beyond what samplers can draw."""

TABLE_SENSITIVITY: Mapping[Neighbours, float] = {Neighbours.ADD_REMOVE: 1.0, Neighbours.REPLACE: math.sqrt(2)}
"""The L2 distance that one neighbouring step can move a contingency table, for rows of weight one.

One record more or fewer changes one cell by one; a record exchanged for another changes two cells.
"""


def table_sensitivity(schema: Schema, neighbours: Neighbours) -> float:
    """The L2 distance for rows of the largest weight that the schema allows."""
    return TABLE_SENSITIVITY[neighbours] * schema.row_weight.most


def table_sigma(rho: float, schema: Schema, neighbours: Neighbours) -> float:
    """The noise that a table's rho pays for, rounded up.

    Discrete Gaussian noise makes an answer of sensitivity D cost rho = D^2 / (2 sigma^2) (Canonne, Kamath and
    Steinke 2020, Theorem 4), as the continuous law does.
    """
    return table_sensitivity(schema, neighbours) / math.sqrt(2 * rho) * (1 + 1e-15)


@dataclass(frozen=True, slots=True)
class NoisyTable:
    """One released contingency table: exact integer counts plus integer noise."""

    clique: Clique
    values: NDArray[np.int64]
    """Row-major, one axis a column of the clique; read-only."""
    sigma: float
    """The parameter of the discrete Gaussian noise in every cell."""


@known
@dataclass(frozen=True)
class Counts(Question):
    """Noisy contingency tables of some cliques, for `rho` altogether."""

    reads: ClassVar[frozenset[str]] = frozenset({"tables"})
    dearest: ClassVar[Mapping[Currency, int]] = {**Question.dearest, Currency.ZCDP: 2}
    """An exchanged row moves a table by sqrt(2), which squared is 2."""
    cliques: tuple[Clique, ...]
    rho: float
    """The price of the whole call; shared among the cliques by `weights`."""
    weights: tuple[float, ...] | None = None
    """One positive number a clique, each clique's part of rho; equal when not given."""

    @cached_property
    def shares(self) -> list[float]:
        """The rho of each clique. They add up to at most `rho`."""
        return shared(self.rho, self.weights or (1.0,) * len(self.cliques))

    def sigmas(self, schema: Schema, neighbours: Neighbours) -> list[float]:
        """The noise of each clique's cells."""
        return [table_sigma(rho, schema, neighbours) for rho in self.shares]

    def check(self, schema: Schema) -> None:
        """Known columns, none twice, a positive rho, and tables that fit into memory."""
        if not is_plain_tuple(self.cliques, tuple) or not self.cliques:
            raise MechanismError("counts: no clique was asked for, or cliques that are no tuple of tuples.")
        check_positive("counts: rho", self.rho)
        check_weights("counts", self.weights, len(self.cliques))
        if min(self.shares) < LEAST_RHO:
            raise MechanismError("counts: rho, or a part of it, is too small to be paid in noise.")
        for clique in self.cliques:
            check_clique("counts", clique, schema)
        check_cells("counts", self.cliques, schema)

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """One charge for each noise level: k tables of equal sigma are one vector of sensitivity D sqrt(k)."""
        groups: dict[float, list[float]] = {}
        for rho, sigma in zip(self.shares, self.sigmas(schema, neighbours), strict=True):
            groups.setdefault(sigma, []).append(rho)
        return tuple(
            Charge(
                path=path,
                kind="counts",
                amount=math.fsum(rhos),
                sensitivity=alike(tuple((n, table_sensitivity(schema, n) * math.sqrt(len(rhos))) for n in PRICED)),
                details=alike((("sigma", sigma), ("cliques", len(rhos)))),
            )
            for sigma, rhos in groups.items()
        )

    def wanted(self) -> Wanted:
        """The tables."""
        return Wanted(cliques=self.cliques)

    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> tuple[NoisyTable, ...]:
        """Integers plus integers: the noise that each table's share of rho pays for."""
        sigmas = self.sigmas(at.schema, at.neighbours)
        tables = [
            NoisyTable(clique, table + gaussian.sample(sigma, table.shape, entropy), sigma)
            for clique, table, sigma in zip(self.cliques, exact.tables, sigmas, strict=True)
        ]
        read_only(table.values for table in tables)
        return tuple(tables)

    def tv_error(self, at: Setting) -> float:
        """Every cell's."""
        sigmas = self.sigmas(at.schema, at.neighbours)
        cells = [at.schema.cells(clique) for clique in self.cliques]
        return math.fsum(n * gaussian.tv_error(sigma) for n, sigma in zip(cells, sigmas, strict=True))

    def simulate(
        self, at: Setting, path: StratumPath, rows: float, rng: Generator
    ) -> tuple[tuple[NoisyTable, ...], Seen]:
        """Every cell is equally full."""
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
        """Cliques and noise as facts, one array a table."""
        return Kept([{"clique": list(t.clique), "sigma": t.sigma} for t in answer], [t.values for t in answer])

    @classmethod
    def recall(cls, kept: Kept) -> tuple[NoisyTable, ...]:
        """The tables."""
        read_only(kept.arrays)
        return tuple(
            NoisyTable(tuple(fact["clique"]), values, fact["sigma"])
            for fact, values in zip(kept.facts, kept.arrays, strict=True)
        )

    def released(self, schema: Schema, answer: Answer) -> Sequence[NoisyTable]:
        """All of them."""
        return cast("Sequence[NoisyTable]", answer)

    def records(self, schema: Schema, answer: Answer) -> Sequence[tuple[float, float]]:
        """The sum of each table's cells."""
        return [(float(t.values.sum(dtype=np.float64)), t.sigma * math.sqrt(t.values.size)) for t in answer]

    @classmethod
    def shape(cls, answer: Answer) -> Any:
        """Cliques, shapes, types and noise."""
        return [(t.clique, t.values.shape, str(t.values.dtype), t.sigma) for t in answer]

    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Each table's squared distance over twice its noise squared."""
        distances = [squared(x, y) for x, y in zip(here.tables, there.tables, strict=True)]
        noise = [Fraction(table.sigma) for table in answer]
        return sum((Fraction(d) / (2 * s**2) for d, s in zip(distances, noise, strict=True)), Fraction(0))

    def standard_noise(self, at: Setting, exact: Exact, answer: Answer) -> list[NDArray[np.float64]]:
        """Of every cell, in sigmas."""
        return [(t.values - truth).ravel() / t.sigma for t, truth in zip(answer, exact.tables, strict=True)]


def check_cells(what: str, cliques: Sequence[Clique], schema: Schema) -> None:
    """Refuse tables that would not fit into memory."""
    check_number(what, sum(schema.cells(clique) for clique in cliques))


def check_number(what: str, cells: int) -> None:
    """Refuse more cells than fit into memory."""
    if cells > MAX_CELLS:
        raise Unsupported(f"{what}: {cells:,} cells are more than {MAX_CELLS:,}; use smaller cliques or fewer bins.")


def counts(
    cliques: Sequence[Clique], *, rho: float, weights: Sequence[float] | None = None
) -> Program[tuple[NoisyTable, ...]]:
    """Ask for the noisy tables of some cliques: `tables = yield from counts(...)`, in the order asked."""
    answer = yield Counts(tuple(cliques), float(rho), tuple(map(float, weights)) if weights is not None else None)
    return cast("tuple[NoisyTable, ...]", answer)
