"""AIM: round by round, measure what the model gets most wrong (McKenna, Mullins, Sheldon and Miklau 2022).

A share of the budget measures every column and a first model is fitted. Then, round by round, the exponential
mechanism chooses the marginal of the workload, or a part of one, on which the model is farthest from the rows
by more than the noise that measuring it would bring; it is measured, and the model fitted again. A round that
taught less than its noise is followed by rounds of half the noise, at four times the price, until the budget is
used up to the last bit.

What differs from the paper: a candidate matters as much as the most important marginal that it is part of, not
by how many marginals it overlaps; there are fewer rounds, by a rule on public sizes; a marginal whose noise would
be as large as the stratum is no candidate, so that small strata measure what they can afford to learn and nothing
else; and the fit has a prior for evenness. `scripts/bench synth` prints what comes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from stratsynth.adapters.engine import Graphical
from stratsynth.adapters.engine.solve import MOST_CELLS
from stratsynth.adapters.shared.refits import Refits
from stratsynth.adapters.shared.rounds import MEASURE, USUAL, adapt, affordable, down, pretended, sigma_of, usual_rounds
from stratsynth.adapters.shared.workload import Workload, closure

from stratsynth.checks import number, one_of, whole
from stratsynth.errors import Unsupported
from stratsynth.mechanisms import Public
from stratsynth.questions import Choose, Clique, Counts, Distance, Program, Question, Work, choose, counts, work

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget

FIRST = 0.15
"""The share of the budget that measures every column."""
MOST_CANDIDATES = 2**25
"""The most cells of all candidates together: each is counted once, and compared with the model in every round."""


@dataclass(frozen=True)
class AIM:
    """An adaptive and iterative mechanism: it chooses what to measure by what its model does not know yet."""

    name: ClassVar[str] = "aim"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Choose, Work})
    adaptive: ClassVar[bool] = True
    workload: str | Sequence[Sequence[str]] = "all 3-way"
    """The marginals to get right: `all k-way`, or lists of columns."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """How much marginals matter, by column or by several columns joined by commas; 1 where nothing is said."""
    rounds: int | None = None
    """The most rounds before their noise is halved for the first time; by the public size when not given."""
    model_cells: int = 2**18
    """The most numbers that the model may hold. More let it learn how more columns go together, and take longer."""
    clique_cells: int | None = None
    """The most cells of a marginal that is measured; whatever its noise allows when not given."""
    engine: Literal["numpy", "mbi"] = "numpy"
    """What makes the last fit: our own, or Private-PGM (`mbi`), for comparison. Rounds are fitted by our own."""
    prior: float = 1.0
    """How much evenness counts in the fit: next to nothing where there are people, everything where there is noise."""
    iterations: int = 1000
    """The most steps of the last fit; it stops when progress ends."""

    def __post_init__(self) -> None:
        """Settings that make sense."""
        Workload(self.workload, self.weights)
        one_of("aim: engine", self.engine, ("numpy", "mbi"))
        whole("aim: model_cells", self.model_cells, 1, MOST_CELLS)
        whole("aim: iterations", self.iterations, 1, MOST_CELLS)
        whole("aim: rounds", self.rounds, 1, MOST_CELLS, optional=True)
        whole("aim: clique_cells", self.clique_cells, 1, MOST_CELLS, optional=True)
        number("aim: prior", self.prior, least=0)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """The whole budget; refuses a workload that is unknown or too large, from the schema alone."""
        schema = public.schema
        Workload(self.workload, self.weights).check((*schema.names, *sorted(public.constant)))
        if self.engine == "mbi" and (self.prior or schema.rules):
            raise Unsupported(
                'aim: engine "mbi" knows neither a prior nor structural zeros: set prior = 0 and take the rules out of '
                'the schema; or use engine = "numpy".'
            )
        cells = sum(schema.cells(clique) for clique in self._worth(public))
        if cells > MOST_CANDIDATES:
            raise Unsupported(
                f"aim: the workload's marginals and their parts hold {cells:,} cells, more than {MOST_CANDIDATES:,}; "
                "use fewer bins, clique_cells, or a smaller workload."
            )
        ones = sum(schema.size(name) for name in schema.names)
        if ones > self.model_cells:
            raise Unsupported(f"aim: the columns alone hold {ones:,} cells; model_cells is {self.model_cells:,}.")
        return budget.zcdp()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Graphical]:  # noqa: ARG002
        """Measure all columns; then choose, measure and fit until the budget is spent."""
        schema, rho = public.schema, Fraction(allot.rho)
        refits = Refits(schema, self.model_cells, self.prior, public.size)
        first = allot.rho * FIRST if self._starters(public, allot.rho) else allot.rho
        if schema.names:
            refits.tables.extend((yield from counts(schema.oneways, rho=first)))
        if first < allot.rho:
            people = refits.total if public.size is None else float(public.size)
            yield from refits.fit()
            left = yield from adapt(
                refits, self._worth(public), people=people, rho=rho - Fraction(first),
                rounds=self._rounds(public, allot.rho, people), neighbours=public.neighbours,
            )  # fmt: skip
            if left:  # all that this stratum can still learn is its columns
                refits.tables.extend((yield from counts(schema.oneways, rho=down(left))))
        yield from refits.fit(last=self.iterations, by=self.engine)
        return refits.model

    def typical(self, public: Public, allot: Allotment, rng: Generator) -> Program[None]:
        """The questions of an ordinary fit, without its fits and with made-up choices: what a plan goes by."""
        schema, starters = public.schema, self._starters(public, allot.rho)
        first = allot.rho * FIRST if starters else allot.rho
        if schema.names:
            yield from counts(schema.oneways, rho=first)
        if not starters:
            return
        scores = [Distance(clique, np.zeros(schema.shape(clique)), weight) for clique, weight in starters.items()]
        left = Fraction(allot.rho) - Fraction(first)
        number = max(1, round(USUAL * self._rounds(public, allot.rho, public.size or 0)))
        for after in range(number - 1, -1, -1):
            price = down(left / (after + 1))
            yield from choose(scores, rho=price - MEASURE * price)
            yield from counts([scores[int(rng.integers(len(scores)))].clique], rho=MEASURE * price)
            left -= Fraction(price)
            yield from work(pretended, None)

    def _worth(self, public: Public) -> dict[Clique, float]:
        """How much each candidate matters: whatever is small enough of the workload's parts."""
        schema = public.schema
        every = closure(Workload(self.workload, self.weights).among(schema.names))
        return {
            clique: weight
            for clique, weight in every.items()
            if schema.cells(clique) <= min(self.model_cells, self.clique_cells or self.model_cells)
        }

    def _starters(self, public: Public, rho: float) -> dict[Clique, float]:
        """The candidates of the first round, as far as public facts tell; where there is none, nor is a round."""
        schema, worth = public.schema, self._worth(public)
        if public.size is None or not schema.names:
            return worth
        price = rho * (1 - FIRST) / self._rounds(public, rho, public.size)
        sigma = sigma_of(MEASURE * price, public.neighbours, schema.names[:1])
        pairs = {clique: weight for clique, weight in worth.items() if len(clique) > 1}
        return affordable(pairs, {c: schema.cells(c) for c in pairs}, sigma, public.size)

    def _rounds(self, public: Public, rho: float, people: float) -> int:
        return self.rounds or usual_rounds(len(public.schema.names), people, rho)
