"""GEM: a generative network fitted to marginals that are chosen where it is most wrong (Liu, Vietri and Wu 2021).

A tenth of the budget measures every column, and the generator starts from them. Then, in each of a number of rounds,
the exponential mechanism chooses the marginal that has the most wrong cell, it is measured, and the generator trained
on everything measured so far. The generator turns fixed noise into a mixture of products: each of its outputs is a
distribution for each column. Rows are drawn from that mixture.

Differences from the paper and its published code. A table of counts is measured whole, because it costs as much as one
cell of it; the paper's single cells are an option. Every round's price is its share of the declared budget: in the
published figures of stratified GEM the budget was taken for the price of one round, so that their epsilon was 42 to 187
times the nominal one, and all strata had the same noise. The number of rounds comes from public sizes, not from rows.
All measured tables are fitted with squared error in units of their noise, and a fit stops where noise alone would
explain the misfit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from stratsynth import papers
from stratsynth.adapters.engine import MeasuredTable
from stratsynth.adapters.gem.layout import LogitBlocks, Reals
from stratsynth.adapters.gem.learner import MixtureLearner, start
from stratsynth.adapters.gem.model import ProductMixture
from stratsynth.adapters.gem.network import LogitTable, Parametrisation, ResidualNetwork
from stratsynth.adapters.shared.known import columns_by, records
from stratsynth.adapters.shared.learner import Learner, Poolable
from stratsynth.adapters.shared.rounds import down
from stratsynth.adapters.shared.workload import Workload, check_candidates
from stratsynth.adapters.tilted import arbitrated, tilted_to
from stratsynth.errors import Unsupported
from stratsynth.mechanisms import Public, once
from stratsynth.models import Returns
from stratsynth.questions import Choose, Clique, Counts, Distance, NoisyTable, Program, Question, Work, choose, counts
from stratsynth.questions.counts import table_sigma
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.mechanisms.known import Known
    from stratsynth.schema import Schema

FIRST = 0.1
"""Share of the budget that measures every column, where more than columns is measured."""
MEASURE = 0.8
"""Share of a round's budget that measures; the rest chooses."""
MOST_ROUNDS = 5
"""Largest number of rounds per column: further ones would teach too little for the time they take."""
MOST_JOINT = 2**23
"""Largest joint size of a table's smaller columns x components; larger tables are not measured."""
MOST_CELLS = 2**20
"""Largest number of cells of a measured table: larger ones are noise in every cell, and memory in every step."""
MOST_NUMBERS = 2**24
"""Largest number of probabilities in a generator's output."""


@dataclass(frozen=True)
class GEM(Poolable[ProductMixture]):
    """A generator, trained on marginals that are chosen and measured round by round."""

    name: ClassVar[str] = "gem"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Choose, Work})
    returns: ClassVar[Returns] = Returns.ROWS
    adaptive: ClassVar[bool] = True
    unprotected: ClassVar[tuple[str, ...]] = ()
    merges: ClassVar[bool] = False
    takes_prior: ClassVar[bool] = True
    takes_known: ClassVar[bool] = True
    paper: ClassVar = papers.GEM
    workload: str | Sequence[Sequence[str]] = "all 3-way"
    """Marginals to preserve, `all k-way` or lists of columns; these and their subsets are the candidates."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Importance of marginals: a factor for all that contain a column, or several columns joined by commas; else 1."""
    rounds: int | None = at(None, least=1, most=2**16)
    """Number of rounds, each of which measures one marginal; by the public size and the budget by default."""
    least: float = at(170.0, least=0)
    """Size below which columns only are measured, in multiples of sigma, the noise of one table at the full budget."""
    measure: Literal["marginals", "cells"] = at("marginals")
    """Cells of a chosen marginal that are fitted: all (`marginals`), or, as in the paper, the most wrong one
    (`cells`)."""
    generator: Literal["network", "table"] = at("network")
    """Source of the probabilities: a network, or a table of logits, which is quicker and, where noise is large, less
    accurate (`scripts/bench synth --only gem`)."""
    components: int = at(512, least=1, most=2**16)
    """Number of product distributions in the mixture."""
    latent: int = at(32, least=1, most=2**16)
    """Number of noise values from which the network makes a component."""
    hidden: tuple[int, ...] = at((64, 64), least=1, most=2**16, length=(1, math.inf))
    """Widths of the network's residual blocks."""
    iterations: int = at(100, least=1, most=2**16)
    """Largest number of training steps in a round, which end earlier when noise alone would explain the misfit."""
    rate: float | None = at(None, above=0, most=10)
    """Learning rate of a round's first step; by default 0.001 for a network, 0.02 for a table."""

    def __post_init__(self) -> None:
        """Refuse settings out of their ranges, and a workload that no schema could have."""
        super().__post_init__()
        Workload(self.workload, self.weights)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the whole budget as a zCDP allotment; refuse (Unsupported) what public facts say cannot be done.

        These are unknown columns, and workloads, tables and models that are too large.
        """
        schema = public.schema
        self._workload.check((*schema.names, *sorted(public.constant)))
        check_candidates("gem", self.candidate_weights(public), schema, "fewer bins, or")
        for known in public.known:
            if known.certain and not self._fits(known):
                raise Unsupported(
                    f"gem: the public table of {', '.join(known.clique)} is too large for {self.components} components."
                )
        numbers = self.components * sum(schema.size(name) for name in schema.names)
        if numbers > MOST_NUMBERS:
            raise Unsupported(
                f"gem: {self.components} components of these columns hold {numbers:,} numbers, more than "
                f"{MOST_NUMBERS:,}; use fewer bins, or fewer components."
            )
        return budget.zcdp()

    def learned(self, public: Public, allot: Allotment, rng: Generator) -> Program[Learner[Any]]:
        """Program that spends the allotment: measures all columns, then chooses, measures and trains in rounds.

        Returns the learner of the last fit. Public facts say how many rounds; `rng` makes the generator's start.
        """
        schema, rho = public.schema, Fraction(allot.rho)
        first = allot.rho * FIRST if self._rounds(public, allot.rho, public.size) else allot.rho
        ones = (yield from counts(public.asked, rho=first)) if public.asked else ()
        total = records(ones, public.size)
        left = rho - Fraction(first)
        rounds = self._rounds(public, allot.rho, public.size or total) if left else 0
        if left and not rounds:  # no size was declared, and the columns' tables say that it is small
            ones = (*ones, *(yield from counts(public.asked, rho=down(left))))
        # the generator starts at the columns' own distributions
        every = columns_by(public, ones, total)
        published = tuple(known for known in public.known if self._fits(known))
        if not rounds:
            own = self._independent(schema, every, total, rng)
            tilted = yield from tilted_to(ones, public, own.model, total)
            if tilted is not None:
                return tilted
            if all(len(known.clique) == 1 for known in published):
                return own
        own = self._learner(schema, every, total, rng)
        own.published = published
        learner = arbitrated(own, public)
        learner.tables.extend(MeasuredTable.of(table) for table in ones)
        unmeasured = dict(self.candidate_weights(public))
        # GEM's adaptive measurements, a round each: update the generator, select by the largest error, measure
        for choosing, measuring in _prices(left, rounds):
            yield from learner.fit()
            guesses = learner.expected(list(unmeasured))
            scores = [
                Distance(clique, guess, weight, norm="largest")
                for (clique, weight), guess in zip(unmeasured.items(), guesses, strict=True)
            ]
            chosen = yield from choose(scores, rho=choosing)
            (table,) = yield from counts([scores[chosen].clique], rho=measuring)
            learner.tables.append(self._measured(table, guesses[chosen]))
            if self.measure == "marginals":  # a whole table needs no second measurement
                del unmeasured[table.clique]
        yield from learner.fit(last=True)
        return learner

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[None]:
        """Program that asks a fit's questions for the allotment on public facts, by `rng`; nothing is trained."""
        schema, every = public.schema, self.candidate_weights(public)
        rounds = self._rounds(public, allot.rho, public.size)
        first = allot.rho * FIRST if rounds else allot.rho
        if public.asked:
            yield from counts(public.asked, rho=first)
        scores = [Distance(c, np.zeros(schema.shape(c)), weight, norm="largest") for c, weight in every.items()]
        for choosing, measuring in _prices(Fraction(allot.rho) - Fraction(first), rounds):
            yield from choose(scores, rho=choosing)
            chosen = int(rng.integers(len(scores)))
            yield from counts([scores[chosen].clique], rho=measuring)
            if self.measure == "marginals":
                del scores[chosen]

    def candidates(self, public: Public, rho: float) -> Mapping[Clique, float]:
        """Return {clique: weight} of the parts of the workload that a stratum may choose, by public facts and `rho`.

        A clique is a tuple of columns' names. A small stratum has single columns alone.
        """
        every = self.candidate_weights(public, fewest=1)
        small = self._small(public, rho, public.size or 0)
        return {clique: weight for clique, weight in every.items() if len(clique) == 1} if small else every

    def stratum_rounds(self, usual: int) -> int:
        """Return a stratum's number of rounds: the setting `rounds`, or `usual` without it."""
        return self.rounds or usual

    def _learner(self, schema: Schema, ones: Sequence[NoisyTable], total: float, rng: Generator) -> MixtureLearner:
        """Return a `MixtureLearner` with an untrained generator, by `rng`, over a schema, of `total` records.

        It is started at `ones`, the noisy tables of one column each.
        """
        source = self._source(schema, rng)
        return MixtureLearner(
            schema=schema,
            settled=total,
            source=source,
            iterations=self.iterations,
            rate=self._rate,
            point=start(source, rng, ones),
        )

    def _independent(self, schema: Schema, ones: Sequence[NoisyTable], total: float, rng: Generator) -> MixtureLearner:
        """Return a `MixtureLearner` of the schema's model by `ones`, noisy tables of a column, for `total` records.

        Its model is of independent columns until it is fitted; its generator begins by `rng`.
        """
        model = ProductMixture.independent(schema, ones, total)
        # strata start from the shrunk distributions, not from the noisy tables
        exact = [NoisyTable(c, np.rint(np.asarray(model.marginal(c)) * total).astype(int), 1.0) for c in schema.oneways]
        learner = self._learner(schema, exact, total, rng)
        learner.known = model
        return learner

    @cached_property
    def _workload(self) -> Workload:
        return Workload(self.workload, self.weights)

    @once
    def candidate_weights(self, public: Public, fewest: int = 2) -> Mapping[Clique, float]:
        """Return {clique: weight} of parts of the workload: >= `fewest` columns, no public table, not too large.

        A clique is a tuple of columns' names; `public` are the public facts.
        """
        schema = public.schema
        every = self._workload.parts(schema.names)
        place = {name: i for i, name in enumerate(schema.names)}
        ordered = sorted(every, key=lambda clique: (len(clique), [place[name] for name in clique]))
        return {
            clique: every[clique]
            for clique in ordered
            if len(clique) >= fewest
            and schema.cells(clique) <= MOST_CELLS
            and self.components * schema.cells(clique) <= MOST_JOINT * max(schema.shape(clique))
            and not public.already_known(clique)
        }

    def _fits(self, known: Known) -> bool:
        """Return True if the public table `known` is small enough for the components to be trained on."""
        return bool(self.components * known.shares.size <= MOST_JOINT * max(known.shares.shape))

    def _rounds(self, public: Public, rho: float, people: float | None) -> int:
        """Return the number of rounds by `rho` and `people`, the public or noisy size; 0 if that is too small.

        It grows as the root of people / sigma, where sigma is the noise of one table at the full budget: 35 for 12
        columns, 7 thousand people and epsilon 1. An undeclared size counts as large.
        """
        candidates, columns = len(self.candidate_weights(public)), len(public.schema.names)
        if not candidates or self._small(public, rho, people):
            return 0
        reach = _reach(public, rho, people)
        usual = round(math.sqrt(columns * min(reach, 1e9) / 12))
        most = self.rounds or max(1, min(usual, MOST_ROUNDS * columns))
        return min(most, candidates) if self.measure == "marginals" else most

    def _small(self, public: Public, rho: float, people: float | None) -> bool:
        """True if `people` over the noise of a table for `rho`, by public facts, is below `least`; False for None."""
        return _reach(public, rho, people) < self.least

    def _source(self, schema: Schema, rng: Generator) -> Parametrisation:
        layout = LogitBlocks(tuple((name, schema.size(name)) for name in schema.names))
        if self.generator == "table":
            return LogitTable(layout, self.components)
        return ResidualNetwork(layout, rng.standard_normal((self.latent, self.components)), self.hidden)

    @property
    def _rate(self) -> float:
        return self.rate or {"network": 0.001, "table": 0.02}[self.generator]

    def _measured(self, table: NoisyTable, guess: Reals) -> MeasuredTable:
        """Return the NoisyTable `table` as a MeasuredTable: in all cells, if the setting `measure` is "marginals".

        Else it is fitted in one cell, the farthest from `guess`, an array of expected counts of the table's shape.
        """
        if self.measure == "marginals":
            return MeasuredTable.of(table)
        counted = np.zeros(table.values.shape, dtype=bool)
        counted.flat[int(np.abs(table.values - guess).argmax())] = True
        return MeasuredTable.of(table, counted)


def _reach(public: Public, rho: float, people: float | None) -> float:
    """Return `people` over the noise scale of a table that costs all of `rho`, by public facts; infinite if None."""
    return math.inf if people is None else people / table_sigma(rho, public.schema, public.neighbours)


def _prices(left: Fraction, rounds: int) -> Iterator[tuple[float, float]]:
    """Yield each round's pair (rho for choosing, rho for measuring): equal shares of `left`, spent to the last bit."""
    for after in range(rounds - 1, -1, -1):
        price = down(left / (after + 1))
        measuring = MEASURE * price
        choosing = price - measuring
        left -= Fraction(choosing)
        if not after:
            measuring = down(left)
        left -= Fraction(measuring)
        yield choosing, measuring
