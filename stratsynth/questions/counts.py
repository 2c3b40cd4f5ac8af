"""`Counts`: noisy contingency tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from stratsynth.accounting.budget import Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.base import Clique, Program, check_clique, check_positive, check_weights, shared
from stratsynth.strata import Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

MAX_CELLS = 2**27
"""The most cells one question may ask for: a gibibyte of answers. Depends on the schema only."""

LEAST_RHO = 1e-25
"""Less would ask for noise beyond what samplers can draw."""

TABLE_SENSITIVITY: Mapping[Neighbours, float] = {Neighbours.ADD_REMOVE: 1.0, Neighbours.REPLACE: math.sqrt(2)}
"""The L2 distance that one neighbouring step can move a contingency table.

One record more or fewer changes one cell by one; a record exchanged for another changes two cells.
"""


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
        return shared(self.rho, self.weights or (1.0,) * len(self.cliques))

    def sigmas(self, neighbours: Neighbours) -> list[float]:
        """The noise each clique's share pays for, rounded up.

        Discrete Gaussian noise makes an answer of sensitivity D cost rho = D^2 / (2 sigma^2) (Canonne, Kamath
        and Steinke 2020, Theorem 4), as the continuous law does.
        """
        sensitivity = TABLE_SENSITIVITY[neighbours]
        return [sensitivity / math.sqrt(2 * rho) * (1 + 1e-15) for rho in self.shares()]

    def check(self, schema: Schema) -> None:
        """Known columns, none twice, a positive rho, and tables that fit into memory."""
        if not self.cliques:
            raise MechanismError("counts: no clique was asked for.")
        check_positive("counts: rho", self.rho)
        check_weights("counts", self.weights, len(self.cliques))
        if min(self.shares()) < LEAST_RHO:
            raise MechanismError("counts: rho, or a part of it, is too small to be paid in noise.")
        for clique in self.cliques:
            check_clique("counts", clique, schema)
        check_cells("counts", self.cliques, schema)

    def charges(self, schema: Schema, path: Path, neighbours: Neighbours) -> tuple[Charge, ...]:  # noqa: ARG002
        """One charge for each noise level: k tables of equal sigma are one vector of sensitivity D sqrt(k)."""
        groups: dict[float, list[float]] = {}
        for rho, sigma in zip(self.shares(), self.sigmas(neighbours), strict=True):
            groups.setdefault(sigma, []).append(rho)
        return tuple(
            Charge(
                path=path,
                kind="counts",
                amount=math.fsum(rhos),
                sensitivity={n: d * math.sqrt(len(rhos)) for n, d in TABLE_SENSITIVITY.items()},
                details={"sigma": sigma, "cliques": len(rhos)},
            )
            for sigma, rhos in groups.items()
        )


def check_cells(what: str, cliques: Sequence[Clique], schema: Schema) -> None:
    """Refuse tables that would not fit into memory."""
    cells = sum(schema.cells(clique) for clique in cliques)
    if cells > MAX_CELLS:
        raise Unsupported(f"{what}: {cells:,} cells are more than {MAX_CELLS:,}; use smaller cliques or fewer bins.")


def counts(
    cliques: Sequence[Clique], *, rho: float, weights: Sequence[float] | None = None
) -> Program[tuple[NoisyTable, ...]]:
    """Ask for the noisy tables of some cliques: `tables = yield from counts(...)`, in the order asked."""
    answer = yield Counts(tuple(cliques), float(rho), tuple(map(float, weights)) if weights is not None else None)
    return cast("tuple[NoisyTable, ...]", answer)
