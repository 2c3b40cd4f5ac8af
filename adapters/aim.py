"""AIM: round by round, measure what the model gets most wrong (McKenna, Mullins, Sheldon and Miklau 2022).

A share of the budget measures every column and a first model is fitted. Then, round by round, the exponential mechanism
chooses the marginal of the workload, or a part of one, on which the model is farthest from the rows by more than the
noise that measuring it would bring; it is measured, and the model fitted again. A round that taught less than its noise
is followed by rounds of half the noise, at four times the price, until the budget is used up to the last bit.

Differences from the paper: a candidate's weight is that of the most important marginal that it is part of, not a count
of the marginals it overlaps; there are fewer rounds, by a rule on public sizes; a marginal whose noise would be as
large as the stratum is no candidate, so that small strata measure what they can afford to learn and nothing else; and
the fit has a prior for evenness. `scripts/bench synth` prints the effect of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from stratsynth import papers
from stratsynth.adapters.engine import Graphical, MeasuredTable
from stratsynth.adapters.engine.solve import MOST_CELLS
from stratsynth.adapters.shared.few import only_columns
from stratsynth.adapters.shared.graphical import GraphicalLearner
from stratsynth.adapters.shared.known import within_size
from stratsynth.adapters.shared.learner import Learner, Poolable
from stratsynth.adapters.shared.rounds import MEASURE, adapt, down, usual_questions, usual_rounds, worth_measuring
from stratsynth.adapters.shared.workload import Workload, check_candidates
from stratsynth.adapters.tilted import arbitrated
from stratsynth.errors import Unsupported
from stratsynth.mechanisms import Public, once
from stratsynth.models import Returns
from stratsynth.questions import Choose, Clique, Counts, Program, Question, Work, counts
from stratsynth.questions.counts import table_sigma
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget

FIRST = 0.15
"""Share of the budget that measures every column."""


@dataclass(frozen=True)
class AIM(Poolable[Graphical]):
    """An adaptive and iterative mechanism: each round measures a marginal that the model so far gets wrong."""

    name: ClassVar[str] = "aim"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Choose, Work})
    returns: ClassVar[Returns] = Returns.ROWS
    adaptive: ClassVar[bool] = True
    unprotected: ClassVar[tuple[str, ...]] = ()
    merges: ClassVar[bool] = True
    grows: ClassVar[bool] = True
    takes_prior: ClassVar[bool] = True
    takes_known: ClassVar[bool] = True
    paper: ClassVar = papers.AIM
    workload: str | Sequence[Sequence[str]] = "all 3-way"
    """Marginals to preserve: `all k-way`, or lists of columns."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Importance of marginals: a factor for all that contain a column, or several columns joined by commas; else 1."""
    rounds: int | None = at(None, least=1, most=MOST_CELLS)
    """Number of rounds that the budget would pay at the first round's noise; by the public size and the budget by
    default."""
    model_cells: int = at(2**18, least=1, most=MOST_CELLS)
    """Largest number of cells in the model. Larger models take in marginals of more columns, and are slower."""
    clique_cells: int | None = at(None, least=1, most=MOST_CELLS)
    """Largest number of cells of a measured marginal; `model_cells` by default."""
    engine: Literal["numpy", "mbi"] = at("numpy")
    """Solver of all fits: stratsynth's (`numpy`), or Private-PGM (`mbi`), whose results are equal within the noise and
    which compiles each round's model first."""
    prior: float = at(1.0, least=0, most=1e6)
    """Weight of the fit's prior, the uniform distribution, in records: little against many records, much against
    noise."""
    iterations: int = at(1000, least=1, most=MOST_CELLS)
    """Largest number of steps of the last fit, which stops earlier when it has converged."""

    def __post_init__(self) -> None:
        """Raise UsageError on settings out of their ranges, and on a workload that no schema could have."""
        super().__post_init__()
        Workload(self.workload, self.weights)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the whole budget as a zCDP allotment, rho per row, by public facts.

        Unsupported for a workload, public table or columns too large; UsageError for unknown columns.
        """
        schema = public.schema
        self._workload.check((*schema.names, *sorted(public.constant)))
        check_candidates("aim", self.candidate_weights(public), schema, "fewer bins, clique_cells, or")
        ones = sum(schema.size(name) for name in schema.names)
        for known in (known for known in public.known if known.certain):
            # half of the model is left for measured marginals
            if ones + known.shares.size > self.model_cells // 2:
                raise Unsupported(
                    f"aim: the shares of {', '.join(known.clique)} have {known.shares.size:,} cells; the model is to "
                    f"hold twice as many, and model_cells is {self.model_cells:,}."
                )
        if ones > self.model_cells:
            raise Unsupported(f"aim: the columns alone hold {ones:,} cells; model_cells is {self.model_cells:,}.")
        return budget.zcdp()

    def learned(self, public: Public, allot: Allotment, rng: Generator) -> Program[Learner[Any]]:
        """Program that spends the allotment: measures columns, then chooses, measures and fits in rounds.

        It returns the last learner: a `GraphicalLearner`, or an `Arbiter` between it and a prior. Columns, size and
        prior are public facts; `rng` is not used.
        """
        schema = public.schema
        sizes = tuple((name, schema.size(name)) for name in schema.names)
        own = GraphicalLearner(
            schema=schema,
            size=public.size,
            most_cells=self.model_cells,
            prior=self.prior,
            iterations=self.iterations,
            engine=self.engine,
            published=within_size(public.known, sizes, self.model_cells // 2),
        )
        learner = arbitrated(own, public)
        # Algorithm 3: measure every column, and fit the first model
        first = self._first(public, allot.rho)
        if public.asked:
            learner.tables.extend(map(MeasuredTable.of, (yield from counts(public.asked, rho=first))))
        own.denoise = only_columns(public, allot.rho)
        if first < allot.rho:
            people = learner.total if public.size is None else float(public.size)
            yield from learner.fit()
            # Algorithm 2: the rounds; how their price grows is Algorithm 4
            left = yield from adapt(
                learner,
                self.candidate_weights(public),
                people=people,
                rho=Fraction(allot.rho) - Fraction(first),
                rounds=self._rounds(public, people, allot.rho),
                neighbours=public.neighbours,
            )
            if left:  # no candidate is left but the stratum's columns
                learner.tables.extend(map(MeasuredTable.of, (yield from counts(public.asked, rho=down(left)))))
        yield from learner.fit(last=True)
        return learner

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[None]:
        """Program that asks an ordinary fit's questions on public facts, for the allotment; no result.

        Choices are by `rng`.
        """
        first = self._first(public, allot.rho)
        if public.asked:
            yield from counts(public.asked, rho=first)
        rounds, left = self._rounds(public, public.size or 0, allot.rho), Fraction(allot.rho) - Fraction(first)
        yield from usual_questions(public.schema, self._starters(public, allot.rho), rho=left, rounds=rounds, rng=rng)

    def candidates(self, public: Public, rho: float) -> Mapping[Clique, float]:
        """Return {clique: weight} of all sets of public columns inside one of the workload's marginals.

        A clique is a tuple of columns' names. The weights do not depend on `rho`.
        """
        return self._workload.parts(public.schema.names)

    @cached_property
    def _workload(self) -> Workload:
        """Workload of the settings: marginals and their weights."""
        return Workload(self.workload, self.weights)

    @once
    def candidate_weights(self, public: Public) -> Mapping[Clique, float]:
        """Return {clique: weight} of the candidates: parts of the workload that are small enough and not public.

        A clique is a tuple of columns' names; `public` are the public facts.
        """
        most = min(self.model_cells, self.clique_cells or self.model_cells)
        small = self._workload.small(public.schema, most)
        return {c: weight for c, weight in small.items() if not public.already_known(c)} if public.known else small

    @once
    def _starters(self, public: Public, rho: float) -> Mapping[Clique, float]:
        """Return {clique: weight} of the first round's candidates at `rho`, by public facts.

        If the mapping is empty, there is no round.
        """
        schema, every = public.schema, self.candidate_weights(public)
        if public.size is None or not schema.names:
            return every
        if only_columns(public, rho):
            return {}
        price = rho * (1 - FIRST) / self._rounds(public, public.size, rho)
        sigma = table_sigma(MEASURE * price, schema, public.neighbours)
        # columns are measured before the first round, so they start none
        pairs = {clique: weight for clique, weight in every.items() if len(clique) > 1}
        return worth_measuring(pairs, {c: schema.cells(c) for c in pairs}, sigma, public.size)

    def _first(self, public: Public, rho: float) -> float:
        """Return the part of `rho` for one-column tables, by public facts: `FIRST`, or all if no more is affordable."""
        return rho * FIRST if self._starters(public, rho) else rho

    def _rounds(self, public: Public, people: float, rho: float) -> int:
        """Return the number of rounds: as set, or by `public` columns, `people` (size) and `rho`."""
        return self.rounds or usual_rounds(len(public.schema.names), people, rho)
