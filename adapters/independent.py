"""Independent columns: noisy one-way marginals and nothing else. The example of a whole adapter.

Every column is counted once, with an equal share of the budget; counts of columns with much noise are replaced by their
posterior means. Rows are drawn column by column. Each column's distribution is preserved, dependence is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.adapters.engine.drawing import Draws
from stratsynth.adapters.shared.denoised import denoised, projected
from stratsynth.adapters.shared.known import columns_by, records
from stratsynth.adapters.shared.left_out import LEFT_OUT
from stratsynth.adapters.tilted import tilted_to
from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.mechanisms import Mechanism, Public
from stratsynth.models import Codes, Returns, State, TableModel, Where
from stratsynth.questions import Counts, NoisyTable, Program, Question, Work, counts, work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.models import Mixture
    from stratsynth.models.base import MeasuredCounts
    from stratsynth.schema import Schema


@dataclass(frozen=True)
class Independent(Mechanism[TableModel]):
    """A mechanism that spends the whole budget on the one-way marginals."""

    name: ClassVar[str] = "independent"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Work})
    returns: ClassVar[Returns] = Returns.ROWS
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    takes_prior: ClassVar[bool] = True
    takes_known: ClassVar[bool] = True
    samples_hold: ClassVar[bool] = True

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the whole budget as a zCDP allotment, its amount being rho per row, whatever the public facts."""
        return budget.zcdp()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[TableModel]:
        """Program on public facts, for the allotment: asks all one-way tables; returns a `TableModel`; `rng` is unused.

        The model is a `Product`, or with a prior the `TiltedRows` of its rows, reweighted.
        """
        tables = (yield from counts(public.asked, rho=allot.rho)) if public.asked else ()
        total = records(tables, public.size)
        own = Product.of(public.schema, columns_by(public, tables, total), total)
        tilted = yield from tilted_to(tables, public, own)
        return own if tilted is None else tilted.model

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[TableModel]:
        """Program on public facts that runs the steps for the allotment, `rng`, without a prior; returns `TableModel`.

        If there is a prior, fitting it is counted as work.
        """
        model = yield from self.steps(replace(public, prior=None), allot, rng)
        if public.prior is not None:
            yield from work(LEFT_OUT, None)
        return model


@dataclass(frozen=True)
class Product(TableModel):
    """Distribution of rows by the probabilities of each column's levels; columns are independent."""

    kind: ClassVar[str] = "product"
    schema: Schema
    probabilities: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, schema: Schema, tables: Sequence[NoisyTable], total: float | None = None) -> Product:
        """Return the `Product` in a schema of one-column noisy `tables` of `total` records, denoised if very noisy.

        Without a total it is estimated from the tables.
        """
        total = records(tables, None) if total is None else total
        probabilities = {}
        for table in tables:
            counts = denoised(table, total)
            probabilities[table.clique[0]] = counts / counts.sum()
        return cls(schema, probabilities)

    def mass(self, where: Where) -> float:
        """Return the probability of `where`, {column: set of level numbers allowed}; 1 for none."""
        return float(np.prod([self.probabilities[c][sorted(codes)].sum() for c, codes in where.items()]))

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Return `n` rows, {column: array of level numbers}, drawn by `rng` independently among the levels in `where`.

        `where` maps columns to sets of level numbers; None is no condition. MechanismError for probability 0.
        """
        rows: Codes = {}
        draws = Draws(n, rng)
        for column in self.schema.names:
            weight = self.probabilities[column]
            if where and column in where:
                allowed = np.zeros(weight.size)
                allowed[sorted(where[column])] = 1
                weight = weight * allowed
            if n and not weight.sum() > 0:
                raise MechanismError("no row can meet this condition: its mass under the model is 0.")
            rows[column] = draws.draw(weight[None])
        return rows

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> Product:
        """Return the `Product` of rows with allowed levels alone, in the columns of `schema`, which has no others.

        `levels` maps columns to lists of the level numbers allowed; a column that it lacks keeps all. A column whose
        allowed levels have probability 0 is uniform on them.
        """
        found = {}
        for name in schema.names:
            some = self.probabilities[name][list(levels.get(name, range(schema.size(name))))]
            found[name] = some / some.sum() if some.sum() > 0 else np.full(some.size, 1 / some.size)
        return Product(schema, found)

    def redrawn(self, tables: Sequence[MeasuredCounts], rows: float, times: int, rng: Generator) -> Sequence[Product]:
        """Return a list of `times` `Product`s of `rows` records, from noisy counts in `tables` plus noise by `rng`.

        `tables` are (columns, array of noisy counts, sigma). Neither is denoised: posterior means are nearer to the
        true counts than their noise is wide, but to one side.
        """
        total, found = max(rows, 1.0), []
        for _ in range(times):
            probabilities = dict(self.probabilities)
            for (name,), values, sigma in tables:
                counts = projected(projected(values, total) + rng.normal(0, sigma, values.shape), total)
                probabilities[name] = counts / counts.sum()
            found.append(Product(self.schema, probabilities))
        return found

    @classmethod
    def redrawn_mixed(
        cls, mixture: Mixture, tables: Sequence[MeasuredCounts], rows: float, times: int, rng: Generator
    ) -> Sequence[Mixture]:
        """Return a list of `times` mixtures like `mixture`, each from everybody's noisy counts in `tables` plus noise.

        Noise is by `rng`; `tables` are (columns, array of noisy counts, sigma) of `rows` records. Groups share every
        other column's distribution, redrawn once for all.
        """
        first = next(part for part in mixture.parts.values() if isinstance(part, Product))
        varies = [table for table in tables if table[0][0] in first.schema.names]
        return [
            replace(mixture, parts={group: replace(again, schema=part.schema) for group, part in mixture.parts.items()})
            for again in first.redrawn(varies, rows, times, rng)
        ]

    def state(self) -> State:
        """Return the model for a file, a `State`: an array of probabilities for each column, no facts."""
        return State({}, dict(self.probabilities))

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Product:
        """Return the `Product`, in a schema, of a stored `State`: an array by column.

        ReleaseError for arrays that are no distributions.
        """
        probabilities: dict[str, NDArray[Any]] = {}
        for column in schema.names:
            array = np.asarray(state.arrays[column])
            sound = array.dtype == np.float64 and array.shape == (schema.size(column),)
            if not (sound and (array >= 0).all() and (array <= 1).all() and abs(array.sum() - 1) < 1e-9):
                raise ReleaseError(f"model: the stored distribution of {column} is damaged.")
            probabilities[column] = array
        return cls(schema, probabilities)
