"""A graphical model that is refitted as noisy tables come in one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from stratsynth.adapters.engine import Graphical, MeasuredTable, Problem, Solution
from stratsynth.adapters.engine.condition import condition
from stratsynth.adapters.engine.restricted_fit import marginals_of
from stratsynth.adapters.engine.single_update import updated
from stratsynth.adapters.engine.solve import engine
from stratsynth.adapters.engine.structure import Forbidden, forbidden, held_together, taken_in
from stratsynth.adapters.shared.denoised import denoised_columns
from stratsynth.adapters.shared.known import within_size
from stratsynth.adapters.shared.learner import Learner
from stratsynth.questions import Clique, Program, work

if TYPE_CHECKING:
    from stratsynth.adapters.engine.forest import Floats
    from stratsynth.mechanisms import Public
    from stratsynth.schema import Schema

ROUND_STEPS = 30
"""Largest number of steps of a fit between rounds, which starts where the last one ended."""
ROOM = 2**14
"""Number of cells that a stratum's tables may add to the model of everybody."""


@dataclass(kw_only=True)
class GraphicalLearner(Learner[Graphical]):
    """Learner of a graphical model, for AIM, MST and their strata."""

    most_cells: int
    """Largest number of cells of the model."""
    prior: float
    """Weight of the pull towards `base`, in records."""
    iterations: int
    """Largest number of steps of the last fit."""
    engine: str = "numpy"
    """Solver of all fits: our own (`numpy`) or Private-PGM (`mbi`)."""
    base: Solution | None = None
    """Model that the fit departs from; None for the uniform distribution."""
    solution: Solution | None = None
    """Solution of the last fit; None before the first."""
    denoise: bool = False
    """True if the last fit takes noisy one-way tables by their posterior means."""

    @cached_property
    def _sizes(self) -> tuple[tuple[str, int], ...]:
        return tuple((name, self.schema.size(name)) for name in self.schema.names)

    @cached_property
    def _rules(self) -> Forbidden:
        """Structural zeros, a mapping from clique to numbers of impossible cells, if the model can contain it."""
        held = self.base.tree.cliques if self.base is not None else ()
        return held_together(forbidden(self.schema), self._sizes, held)[0]

    @property
    def fitted(self) -> Solution:
        """Solution of the last fit; before the first one an AssertionError."""
        if self.solution is None:
            raise AssertionError("nothing was fitted yet")
        return self.solution

    @property
    def model(self) -> Graphical:
        """The `Graphical` of the last fit, with the learner's schema."""
        return Graphical.of(self.schema, self.fitted)

    def taken_in(self, *, last: bool) -> list[MeasuredTable]:
        """Return a list of the `MeasuredTable`s that a fit takes, public ones first; `last` is True for the last fit.

        The last one may take columns without their noise. Public tables are judged by the noisy ones in any case.
        """
        tables = super().taken_in(last=last)
        if not (last and self.denoise):
            return tables
        public = len(tables) - len(self.tables)
        return [*tables[:public], *denoised_columns(self.tables, self.total)]

    def fit(self, *, last: bool = False) -> Program[None]:
        """Program that fits all tables: few steps between two rounds, or, for the `last` fit, all of them."""
        yield from self._fit(self.iterations if last else ROUND_STEPS)

    def _fit(self, steps: int) -> Program[None]:
        """Program that fits this learner's tables in at most so many steps, and keeps the solution."""
        problem = Problem(
            self._sizes,
            tuple(self.taken_in(last=steps > ROUND_STEPS)),
            self.total,
            self._rules,
            base=self.base,
            start=self.solution,
            prior=self.prior,
            iterations=steps,
        )
        self.solution = yield from work(engine(self.engine), problem)

    def marginals(self, cliques: Sequence[Clique]) -> list[Floats]:
        """Return a list, each clique's array of cell probabilities under the last fit, axes in its order."""
        # strata that have not moved the base share its cached marginals
        if self.fitted is self.base:
            return marginals_of(self.base).kept(cliques)
        # one term on a base has marginals in closed form
        few = updated(self.base, self.fitted, cliques) if self.base is not None and not self._rules else None
        return _asked(self.schema, self.fitted).marginals(cliques) if few is None else few

    def fitting(self, cliques: Mapping[Clique, float]) -> dict[Clique, float]:
        """Return the dict of those candidates in `cliques`, {clique: weight}, that keep the model within `most_cells`.

        Or that are in it already.
        """
        there = {known.clique for known in self.published} | {table.clique for table in self.tables}
        there |= set(self._rules)
        if self.base is not None:
            there |= set(self.base.tree.cliques)
        inside = [set(clique) for clique in self.solution.tree.cliques] if self.solution is not None else []
        # AIM filters candidates by the size of the model that they would make
        fits = taken_in(self._sizes, tuple(there), tuple(cliques), self.most_cells)
        return {
            clique: weight
            for (clique, weight), fit in zip(cliques.items(), fits, strict=True)
            if fit or any(whole.issuperset(clique) for whole in inside)
        }

    def stratum(self, public: Public, prior: float) -> Program[GraphicalLearner]:
        """Program on public facts of a stratum that returns its `GraphicalLearner`: this model is its prior.

        `prior`, a float, is the number of records that the prior weighs as much as. Merged columns and structural zeros
        are fitted first.
        """
        base = _started(self.fitted)
        most = max(base.tree.cells, ROOM) + ROOM
        sizes = tuple((name, public.schema.size(name)) for name in public.schema.names)
        published = within_size(self.published_in(public), sizes, most - ROOM // 2, base.tree.cliques)
        learner = GraphicalLearner(
            schema=public.schema,
            size=public.size,
            most_cells=most,
            prior=prior,
            iterations=self.iterations,
            engine=self.engine,
            base=base,
            published=published,
        )
        yield from learner.begin()
        return learner

    def begin(self) -> Program[None]:
        """Program that sets the first solution: the base, or a step's fit if columns differ or zeros are structural."""
        if self.base is not None and self.base.tree.sizes == self._sizes and not self._rules:
            self.solution = self.base
        else:
            yield from self._fit(1)

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> Graphical:
        """Return the `Graphical` of rows with allowed levels alone, in the columns of `schema`, which has no others.

        `levels` maps columns to lists of the level numbers allowed; a column that it lacks keeps all.
        """
        return Graphical.of(schema, condition(self.fitted, levels))


@lru_cache(maxsize=2)
def _started(solution: Solution) -> Solution:
    """Return the solution without terms, one object for all strata: their own tables' terms start at 0."""
    return replace(solution, terms=())


@lru_cache(maxsize=2)
def _asked(schema: Schema, solution: Solution) -> Graphical:
    """Return the `Graphical`, in a schema, of a solution, cached: queried for the last table, then for candidates."""
    return Graphical.of(schema, solution)
