"""A graphical model that is fitted again and again, as noisy tables come in one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from stratsynth.adapters.engine import Graphical, Measured, Problem, Solution
from stratsynth.adapters.engine.solve import engine
from stratsynth.adapters.engine.structure import taken_in
from stratsynth.adapters.shared.given import Forbidden, affordable, forbidden, records

from stratsynth.questions import Clique, NoisyTable, Program, work

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stratsynth.schema import Schema

ROUND_STEPS = 30
"""The most steps of a fit between rounds, which starts where the last one ended."""


@dataclass
class Refits:
    """The tables so far, the model fitted to them, and which tables it could still take in."""

    schema: Schema
    most_cells: int
    """The most numbers that the model may hold."""
    prior: float
    size: int | None = None
    """The public number of records, if there is one."""
    base: Solution | None = None
    """What the model is moved from; the even distribution when not given."""
    tables: list[NoisyTable] = field(default_factory=list)
    solution: Solution | None = None

    def __post_init__(self) -> None:
        """What is public: sizes, and the structural zeros as far as the model can hold them."""
        self._sizes = tuple((name, self.schema.size(name)) for name in self.schema.names)
        held = self.base.tree.cliques if self.base is not None else ()
        self._rules: Forbidden = affordable(forbidden(self.schema), self._sizes, held)[0]

    @property
    def total(self) -> float:
        """The number of records, as far as it is known."""
        return records(self.tables, self.size)

    def begin(self) -> Program[None]:
        """Start from the base, as it is."""
        if self.base is not None and self.base.tree.sizes == self._sizes and not self._rules:
            self.solution = self.base
        else:
            yield from self.fit(last=1)

    def fit(self, *, last: int | None = None, by: str = "numpy") -> Program[None]:
        """Fit the tables, from where the last fit ended; `last` steps at most, by the engine of that name."""
        steps = ROUND_STEPS if last is None else last
        problem = Problem(
            self._sizes, tuple(Measured.of(table) for table in self.tables), self.total, self._rules,
            base=self.base, start=self.solution, prior=self.prior, iterations=steps,
        )  # fmt: skip
        self.solution = yield from work(engine("numpy" if last is None else by), problem)

    @property
    def model(self) -> Graphical:
        """The model that was fitted last."""
        if self.solution is None:
            raise AssertionError("nothing was fitted yet")
        return Graphical.of(self.schema, self.solution)

    def marginals(self, cliques: Sequence[Clique]) -> Sequence[NDArray[np.floating[Any]]]:
        """What the model that was fitted last says of some columns, as probabilities."""
        return self.model.marginals(cliques)

    def fitting(self, cliques: Mapping[Clique, float]) -> dict[Clique, float]:
        """Those that the model could take in without growing too large; which it is, depends on what was chosen."""
        held: Iterable[Clique] = {table.clique for table in self.tables} | set(self._rules)
        if self.base is not None:
            held = {*held, *self.base.tree.cliques}
        inside = [set(clique) for clique in self.solution.tree.cliques] if self.solution is not None else []
        fits = taken_in(self._sizes, tuple(held), tuple(cliques), self.most_cells)
        return {
            clique: weight
            for (clique, weight), fit in zip(cliques.items(), fits, strict=True)
            if fit or any(whole.issuperset(clique) for whole in inside)
        }
