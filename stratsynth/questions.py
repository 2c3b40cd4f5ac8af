"""The closed set of questions a mechanism may ask, with their sensitivities and prices.

A mechanism yields questions and is sent answers; it never sees a row. What one record can change in an answer,
how much noise that takes for a given rho, and what is charged for it are all written here and nowhere else.

`Counts` asks for noisy contingency tables. One record more or fewer changes one cell of each table by one
(L2 sensitivity 1 a table); a record exchanged for another changes two cells (square root of 2). Integer
noise of the discrete Gaussian law with parameter sigma makes a table of sensitivity D cost
rho = D^2 / (2 sigma^2) (Canonne, Kamath and Steinke 2020, Theorem 4), the same as the continuous law.

`Split` and `Work` cost nothing: a split is parallel composition itself (its strata hold disjoint rows, so
one record is in at most one of them), and work touches no row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from stratsynth.accounting.budget import Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.strata import Path, Stratum

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

R = TypeVar("R")
P = TypeVar("P")
Clique = tuple[str, ...]
"""Columns that are counted together, in the order of the table's axes."""

MAX_CELLS = 2**27
"""The most cells one question may ask for: a gibibyte of answers. Depends on the schema only."""

TABLE_SENSITIVITY: Mapping[Neighbours, float] = {Neighbours.ADD_REMOVE: 1.0, Neighbours.REPLACE: math.sqrt(2)}
"""The L2 distance that one neighbouring step can move one contingency table."""


class Question(Protocol):
    """What all questions can do: check themselves against the schema, and say what they will cost."""

    def check(self, schema: Schema) -> None:
        """Refuse what cannot be answered, from the schema alone and before anything is charged."""

    def charges(self, path: Path, neighbours: Neighbours) -> tuple[Charge, ...]:
        """What the ledger records when this is asked at a path."""


Answer = Any
"""What a program is sent; `counts`, `split` and `work` below give each question's answer its type."""

Program = Generator[Question, Answer, R]
"""A mechanism at work: yields questions, is sent answers, returns a result."""


@dataclass(frozen=True)
class NoisyTable:
    """One released contingency table: exact integer counts plus integer noise."""

    clique: Clique
    values: NDArray[np.int64]
    """Row-major, one axis a column of the clique; read-only."""
    sigma: float
    """The parameter of the discrete Gaussian noise in every cell."""


@dataclass(frozen=True)
class Counts:
    """Noisy contingency tables of some cliques, for `rho` altogether."""

    cliques: tuple[Clique, ...]
    rho: float
    """The price of the whole call; shared among the cliques by `weights`."""
    weights: tuple[float, ...] | None = None
    """One positive number a clique, each clique's part of rho; equal when not given."""

    def shares(self) -> list[float]:
        """The rho of each clique. They add up to at most `rho`."""
        weights = self.weights or (1.0,) * len(self.cliques)
        total = math.fsum(weights) * (1 + 1e-15)
        return [self.rho * (w / total) for w in weights]

    def sigmas(self, neighbours: Neighbours) -> list[float]:
        """The noise each clique's share pays for, rounded up."""
        sensitivity = TABLE_SENSITIVITY[neighbours]
        return [sensitivity / math.sqrt(2 * rho) * (1 + 1e-15) for rho in self.shares()]

    def check(self, schema: Schema) -> None:
        """Known columns, none twice, a positive rho, and tables that fit into memory."""
        if not self.cliques:
            raise MechanismError("counts: no clique was asked for.")
        check_rho("counts", self.rho)
        weights = self.weights
        if weights is not None and (
            len(weights) != len(self.cliques) or not all(math.isfinite(w) and w > 0 for w in weights)
        ):
            raise MechanismError("counts: weights must be one positive number a clique.")
        cells = 0
        for clique in self.cliques:
            check_clique("counts", clique, schema)
            cells += schema.cells(clique)
        if cells > MAX_CELLS:
            raise Unsupported(
                f"counts: {cells:,} cells are more than {MAX_CELLS:,}; use smaller cliques or fewer bins."
            )

    def charges(self, path: Path, neighbours: Neighbours) -> tuple[Charge, ...]:
        """One charge for each noise level: k tables of equal sigma are one vector of sensitivity D sqrt(k)."""
        groups: dict[float, list[float]] = {}
        for rho, sigma in zip(self.shares(), self.sigmas(neighbours), strict=True):
            groups.setdefault(sigma, []).append(rho)
        return tuple(
            Charge(
                path=path,
                kind="counts",
                rho=math.fsum(rhos),
                sensitivity={n: d * math.sqrt(len(rhos)) for n, d in TABLE_SENSITIVITY.items()},
                details={"sigma": sigma, "cliques": len(rhos)},
            )
            for sigma, rhos in groups.items()
        )


@dataclass(frozen=True)
class Split:
    """Parallel composition as an operation: one program for each stratum, all run in lock-step.

    A record lies in at most one stratum, so the charges of different strata do not add up: the split costs
    what its dearest stratum costs.
    """

    programs: Mapping[Stratum, Program[Any]]

    def check(self, schema: Schema) -> None:
        """Strata of the same columns, with known levels: distinct ones are then disjoint."""
        strata = list(self.programs)
        if not strata:
            raise MechanismError("split: no stratum was given.")
        for stratum in strata:
            if stratum.columns != strata[0].columns:
                raise MechanismError("split: all strata of a split must be of the same columns.")
            check_clique("split", stratum.columns, schema)
            for column, level in stratum.items:
                schema.index(column, level)

    def charges(self, path: Path, neighbours: Neighbours) -> tuple[Charge, ...]:  # noqa: ARG002 - the protocol
        """Nothing by itself."""
        return ()


@dataclass(frozen=True)
class Work:
    """Post-processing handed to the driver, so that the same solver's problems of all strata are solved together."""

    solver: Callable[[Sequence[Any]], Sequence[Any]]
    """Takes all problems that are asked at the same moment; returns their solutions in order."""
    problem: Any

    def check(self, schema: Schema) -> None:
        """There is nothing to check: no row is involved."""

    def charges(self, path: Path, neighbours: Neighbours) -> tuple[Charge, ...]:  # noqa: ARG002 - the protocol
        """Nothing."""
        return ()


def check_clique(what: str, clique: Clique, schema: Schema) -> None:
    """A clique is a tuple of different columns that vary where it is asked."""
    if not isinstance(clique, tuple) or not clique or len(set(clique)) < len(clique):
        raise MechanismError(f"{what}: {clique!r} is not a tuple of different columns.")
    unknown = [column for column in clique if column not in schema.columns]
    if unknown:
        raise MechanismError(f"{what}: column {unknown[0]!r} is not in the schema, or is constant in this stratum.")


def check_rho(what: str, rho: float) -> None:
    """A price is a positive, finite number."""
    if isinstance(rho, bool) or not isinstance(rho, int | float) or not math.isfinite(rho) or rho <= 0:
        raise MechanismError(f"{what}: rho must be a positive finite number.")


def counts(
    cliques: Sequence[Clique], *, rho: float, weights: Sequence[float] | None = None
) -> Program[tuple[NoisyTable, ...]]:
    """Ask for the noisy tables of some cliques: `tables = yield from counts(...)`, in the order asked."""
    answer = yield Counts(tuple(cliques), float(rho), tuple(map(float, weights)) if weights is not None else None)
    return cast("tuple[NoisyTable, ...]", answer)


def split(programs: Mapping[Stratum, Program[R]]) -> Program[dict[Stratum, R]]:
    """Run one program for each stratum: `results = yield from split({...})`, by stratum."""
    answer = yield Split(programs)
    return cast("dict[Stratum, R]", answer)


def work(solver: Callable[[Sequence[P]], Sequence[R]], problem: P) -> Program[R]:
    """Have a problem solved together with those that other strata hand out now: `x = yield from work(...)`."""
    answer = yield Work(solver, problem)
    return cast("R", answer)
