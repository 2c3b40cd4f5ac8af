"""MST: the pairs that matter most, as a tree (McKenna, Miklau and Sheldon 2021).

A part of the budget measures every column. A small part chooses, step by step, the pair whose table is farthest from
what independent columns would give, among the pairs that join parts not yet joined: a maximum spanning tree by the
exponential mechanism. The rest measures the chosen pairs. The tree is then fitted to all tables, with a pull towards
independent columns.

Questions follow from public facts and from the choices: levels are never merged. Instead, the cells of a pair that
lie in a level too rare to be told from noise are not fitted to their noise: there the pair keeps the two columns' own
distributions.

Differences from the paper, which has a third of the budget for each of the three steps: choosing has a tenth;
columns whose noise is large are fitted by their posterior means; where pairs would be noise, all of the budget
measures columns (`stratsynth.adapters.shared.few`). `scripts/bench small` prints the effect of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from stratsynth import papers
from stratsynth.adapters.engine import Graphical, Problem
from stratsynth.adapters.engine.product import product
from stratsynth.adapters.engine.solve import MOST_CELLS, MeasuredTable, engine
from stratsynth.adapters.engine.structure import forbidden, held_together
from stratsynth.adapters.shared.denoised import denoised
from stratsynth.adapters.shared.few import only_columns
from stratsynth.adapters.shared.graphical import GraphicalLearner
from stratsynth.adapters.shared.known import columns_by, records, undisputed, within_size
from stratsynth.adapters.shared.learner import Learner, Poolable
from stratsynth.adapters.shared.left_out import LEFT_OUT
from stratsynth.adapters.shared.rounds import down
from stratsynth.adapters.shared.workload import Workload
from stratsynth.adapters.tilted import Arbiter, arbitrated
from stratsynth.errors import Unsupported
from stratsynth.mechanisms import Public
from stratsynth.models import Returns
from stratsynth.questions import (
    Choose,
    Clique,
    Counts,
    Independence,
    Pairs,
    Program,
    Question,
    Work,
    choose,
    counts,
    work,
)
from stratsynth.questions.counts import MAX_CELLS, NoisyTable
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment, Budget


REMEDY = "leave columns out, use fewer bins, or take the mechanism independent, which counts no pairs."
"""Words on tables that are too wide."""
COLUMNS, CHOICES = 0.45, 0.1
"""Shares of the budget that measure columns and choose pairs; the pairs get the rest, which is `PAIRS`."""
ALONE = 1.0
"""Largest weight of the prior, in records, where columns alone are counted: it is uniform then, as columns may have to
move far from their counts where rules join them."""
MOST_KNOWN = 2**18
"""Largest number of cells that public tables may give the model; of many tables, the first ones are taken."""


@dataclass(frozen=True)
class MST(Poolable[Graphical]):
    """A maximum spanning tree of pairs, measured and fitted."""

    name: ClassVar[str] = "mst"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Choose, Work})
    returns: ClassVar[Returns] = Returns.ROWS
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    merges: ClassVar[bool] = True
    takes_prior: ClassVar[bool] = True
    takes_known: ClassVar[bool] = True
    paper: ClassVar = papers.MST
    engine: Literal["numpy", "mbi"] = at("numpy")
    """Solver of the fit: stratsynth's (`numpy`), or Private-PGM (`mbi`), whose results are equal within the noise and
    which compiles each model first."""
    prior: float = at(20.0, least=0, most=1e6)
    """Weight of the fit's prior, independent columns, in records: little against many records, much against noise."""
    iterations: int = at(1000, least=1)
    """Largest number of steps of the fit, which stops earlier when it has converged."""
    rare: float = at(3.0, least=0)
    """Threshold for rare levels, in standard deviations of the noise in a level's noisy count; with 0 no level is
    rare."""

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the `Allotment` of the whole budget as rho per row, zCDP.

        Unsupported if trees of public pairs are too large.
        """
        schema = public.schema
        pairs = sorted((schema.cells(pair) for pair in combinations(schema.names, 2)), reverse=True)
        largest = sum(pairs[: max(0, len(schema.names) - 1)])
        if largest > MOST_CELLS:
            raise Unsupported(
                f"mst: the pairs of a tree may hold {largest:,} cells, more than {MOST_CELLS:,}; {REMEDY}"
            )
        if sum(pairs) > MAX_CELLS:  # the choices count every pair
            raise Unsupported(
                f"mst counts all {len(pairs):,} pairs of {len(schema.names):,} columns, which have {sum(pairs):,} "
                f"cells, more than {MAX_CELLS:,}; {REMEDY}"
            )
        return budget.zcdp()

    def learned(self, public: Public, allot: Allotment, rng: Generator) -> Program[Learner[Any]]:
        """Program on public facts, for the allotment, not `rng`: asks for columns and pairs; returns a fitted Learner.

        That is a `GraphicalLearner`, or an `Arbiter` between it and a prior.
        """
        schema = public.schema
        paid, twos = yield from self._measured(public, allot, rehearsed=False)
        total = records(paid, public.size)
        ones = columns_by(public, paid, total)
        # in place of the paper's compression, which merges rare levels: pairs are fitted without cells of levels whose
        # count is below `rare` times its noise; a negative count would be below 0 times its noise
        common = {table.clique[0]: table.values >= self.rare * table.sigma for table in ones} if self.rare else {}
        among = (np.logical_and.outer(*map(common.__getitem__, t.clique)) if common else None for t in twos)
        tables = (*map(MeasuredTable.of, paid), *map(MeasuredTable.of, twos, among))
        sizes = tuple((name, schema.size(name)) for name in schema.names)
        known = within_size(public.known, sizes, MOST_KNOWN)
        known = within_size(known, sizes, MOST_CELLS, [table.clique for table in twos])
        measured = [*(one.clique for one in known), *(table.clique for table in twos)]
        rules, kept = held_together(forbidden(schema), sizes, measured)
        tables = tuple(table for table in tables if len(table.clique) == 1 or table.clique in kept)
        own = GraphicalLearner(
            schema=schema,
            settled=total,
            tables=list(tables),
            most_cells=MOST_CELLS,
            prior=self.prior if twos else min(self.prior, ALONE),
            iterations=self.iterations,
            engine=self.engine,
            base=product(sizes, {table.clique[0]: denoised(table, total) for table in ones}, total) if twos else None,
            published=tuple(one for one in known if one.clique in kept),
            denoise=True,
        )
        fitted = tuple(own.taken_in(last=True))
        problem = Problem(sizes, fitted, total, rules, own.base, prior=own.prior, iterations=self.iterations)
        own.solution = yield from work(engine(self.engine), problem)
        learner = arbitrated(own, public)
        if isinstance(learner, Arbiter):
            yield from learner.after(len(paid))
        return learner

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[None]:
        """Program on public facts: charges of an ordinary fit with the allotment, choices among two pairs; no result.

        `rng` is not used. Choices among all pairs would take time in proportion to the cube of the number of columns.
        `price` has refused trees that are too large, and structural rules make no model larger than they may.
        """
        yield from self._measured(public, allot, rehearsed=True)
        yield from work(LEFT_OUT, None)

    def _measured(
        self, public: Public, allot: Allotment, *, rehearsed: bool
    ) -> Program[tuple[tuple[NoisyTable, ...], tuple[NoisyTable, ...]]]:
        """Program on public facts: the paper's three steps by the allotment; returns (columns' tables, pairs' tables).

        Both are tuples of `NoisyTable`s. Where columns alone are counted, they get all of rho, and there are no pairs.
        With `rehearsed`, a flag, most candidates are left out.
        """
        if len(public.schema.names) < 2 or only_columns(public, allot.rho):
            return (yield from counts(public.asked, rho=allot.rho)) if public.asked else (), ()
        first, choices = COLUMNS * allot.rho, CHOICES * allot.rho
        ones = yield from counts(public.asked, rho=first)
        tree = yield from _tree(public, ones, choices, rehearsed=rehearsed)
        # the rest, in exact arithmetic: not a bit more than is left
        chosen = len(tree) * Fraction(choices / len(tree)) if tree else Fraction(0)
        rest = down(Fraction(allot.rho) - Fraction(first) - chosen)
        return ones, (yield from counts(tree, rho=rest))

    def candidates(self, public: Public, rho: float) -> Mapping[Clique, float]:
        """Return {clique: weight} of all pairs of public columns, and of single columns; `rho` is not used.

        A clique is a tuple of one or two columns' names.
        """
        return self._pairs.parts(public.schema.names)

    @cached_property
    def _pairs(self) -> Workload:
        """Workload of all pairs of columns."""
        return Workload("all 2-way")


def _tree(public: Public, paid: Sequence[NoisyTable], rho: float, *, rehearsed: bool) -> Program[tuple[Clique, ...]]:
    """Program for `rho` that returns a tuple of pairs, a spanning tree of the columns, by their noisy tables `paid`.

    With `rehearsed`, a flag, most candidates are left out. The columns of a certain public table are joined already.
    """
    schema, total = public.schema, records(paid, public.size)
    share = {table.clique[0]: _distribution(table) for table in columns_by(public, paid, total)}
    # a public table needs no question, unless paid answers contradict it
    sound = undisputed(public.known, [MeasuredTable.of(table) for table in paid], total)
    pairs = _all_pairs(schema.names)
    published = {pair: next((known for known in sound if known.tells(pair)), None) for pair in pairs if sound}
    told = tuple((pair, np.asarray(total * one.table(pair), np.float64)) for pair, one in published.items() if one)
    columns = tuple(share)
    # score of a pair: L1 distance of its table from the product of its columns, or from a public table
    expected = Independence(pairs, tuple(share.values()), columns, float(total), told)
    part = {name: i for i, name in enumerate(schema.names)}
    for known in (known for known in public.known if known.certain):
        joined = {part[name] for name in known.clique}
        part = {name: min(joined) if number in joined else number for name, number in part.items()}
    chosen: list[Clique] = []
    candidates: Sequence[int] = range(len(pairs))
    steps = len(set(part.values())) - 1
    for _ in range(steps):
        # the exponential mechanism over the pairs that join two components; each of the d - 1 draws costs the same
        candidates = [i for i in candidates if part[pairs[i][0]] != part[pairs[i][1]]]
        joining = tuple(candidates[:2] if rehearsed and chosen else candidates)
        edge = pairs[joining[(yield from choose(Pairs(expected, joining), rho=rho / steps))]]
        chosen.append(edge)
        if rehearsed and len(chosen) == 1:
            candidates = [i for i in candidates if pairs[i][0] == schema.names[0]]
        # Kruskal's step: the edge joins two components
        old, new = part[edge[0]], part[edge[1]]
        part = {name: new if number == old else number for name, number in part.items()}
    return tuple(chosen)


@lru_cache(maxsize=256)
def _all_pairs(names: tuple[str, ...]) -> tuple[Clique, ...]:
    """Return a tuple of all pairs of the columns `names`, each once, in their order.

    The result is cached, as strata with equal columns share it.
    """
    return tuple(combinations(names, 2))


def _distribution(table: NoisyTable) -> NDArray[np.float64]:
    """Return an array, a noisy table's counts as probabilities: negative ones count 0.

    It is uniform where none is positive.
    """
    weight = np.maximum(table.values, 0).astype(np.float64)
    return weight / weight.sum() if weight.sum() > 0 else np.full(weight.size, 1 / weight.size)
