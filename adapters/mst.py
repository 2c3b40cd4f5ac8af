"""MST: the pairs that matter most, as a tree (McKenna, Miklau and Sheldon 2021).

A third of the budget measures every column. A third chooses, step by step, the pair whose table is farthest
from what independent columns would give, among the pairs that join parts not yet joined: a maximum spanning
tree by the exponential mechanism. A third measures the chosen pairs. The tree is then fitted to all tables.

Every stratum asks the same number of questions of the same shape, whatever its rows: levels are never merged.
Instead, the cells of a pair that lie in a level too rare to be told from noise are not fitted to their noise:
there the pair keeps the two columns' own distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from stratsynth.adapters.engine import Graphical, Problem, junction_tree
from stratsynth.adapters.engine.solve import MOST_CELLS, Measured, engine

from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanism import Public
from stratsynth.questions import (
    Choose,
    Clique,
    Counts,
    Distance,
    NoisyTable,
    Program,
    Question,
    Work,
    choose,
    counts,
    work,
)
from stratsynth.questions.counts import check_cells

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.schema import Schema

MOST_WITH_RULES = 2**16
"""How many cells structural rules may make of a model; a tree that is larger by itself may stay as it is."""


@dataclass(frozen=True)
class MST:
    """A maximum spanning tree of pairs, measured and fitted."""

    name: ClassVar[str] = "mst"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Choose, Work})
    engine: Literal["numpy", "mbi"] = "numpy"
    """What fits the model: our own, or Private-PGM (`mbi`), for comparison."""
    prior: float = 1.0
    """How much evenness counts in the fit: next to nothing where there are people, everything where there is noise."""
    iterations: int = 1000
    """The most steps of the fit; it stops when progress ends."""
    rare: float = 3.0
    """A level is rare where its noisy count is below so many standard deviations of that count; 0 for none."""

    def __post_init__(self) -> None:
        """Settings that make sense."""
        if self.engine not in ("numpy", "mbi"):
            raise UsageError(f'mst: engine must be "numpy" or "mbi", not {self.engine!r}.')
        if isinstance(self.iterations, bool) or not isinstance(self.iterations, int) or self.iterations < 1:
            raise UsageError("mst: iterations must be a whole number of at least 1.")
        for key, value in (("rare", self.rare), ("prior", self.prior)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise UsageError(f"mst: {key} must be a number of at least 0.")

    def price(self, public: Public, budget: Budget) -> Allotment:
        """The whole budget; refuses a schema whose largest tree would not fit into memory."""
        schema = public.schema
        if self.engine == "mbi" and (self.rare or self.prior or schema.rules):
            raise Unsupported(
                'mst: engine "mbi" fits every cell, and knows neither a prior nor structural zeros: set rare = 0 and '
                'prior = 0, and take the rules out of the schema; or use engine = "numpy".'
            )
        pairs = sorted((schema.cells(pair) for pair in combinations(schema.names, 2)), reverse=True)
        largest = sum(pairs[: max(0, len(schema.names) - 1)])
        if largest > MOST_CELLS:
            raise Unsupported(
                f"mst: the pairs of a tree may hold {largest:,} cells, more than {MOST_CELLS:,}; use fewer bins."
            )
        check_cells("mst", list(combinations(schema.names, 2)), schema)  # what the choices ask about
        return budget.zcdp()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Graphical]:  # noqa: ARG002
        """Measure, choose, measure, fit."""
        schema = public.schema
        if len(schema.names) < 2:
            ones = (yield from counts(schema.oneways, rho=allot.rho)) if schema.names else ()
            twos: tuple[NoisyTable, ...] = ()
        else:
            ones = yield from counts(schema.oneways, rho=allot.rho / 3)
            tree = yield from _tree(schema, ones, _total(ones, public.size), allot.rho / 3)
            twos = yield from counts(tree, rho=allot.rho / 3)
        tables = (*(Measured.of(t) for t in ones), *_without_rare(twos, ones, self.rare))
        sizes = tuple((name, schema.size(name)) for name in schema.names)
        rules, held = affordable(forbidden(schema), sizes, [table.clique for table in twos])
        tables = tuple(table for table in tables if len(table.clique) == 1 or table.clique in held)
        problem = Problem(sizes, tables, _total(ones, public.size), rules, prior=self.prior, iterations=self.iterations)
        solution = yield from work(engine(self.engine), problem)
        return Graphical.of(schema, solution)


def _tree(schema: Schema, ones: Sequence[NoisyTable], total: float, rho: float) -> Program[tuple[Clique, ...]]:
    """Kruskal's algorithm, each edge drawn by the exponential mechanism."""
    share = {table.clique[0]: _distribution(table) for table in ones}
    candidates = [
        Distance((a, b), total * np.multiply.outer(share[a], share[b])) for a, b in combinations(schema.names, 2)
    ]
    part = {name: i for i, name in enumerate(schema.names)}
    chosen = []
    steps = len(schema.names) - 1
    for _ in range(steps):
        joining = [score for score in candidates if part[score.clique[0]] != part[score.clique[1]]]
        edge = joining[(yield from choose(joining, rho=rho / steps))].clique
        chosen.append(edge)
        old, new = part[edge[0]], part[edge[1]]
        part = {name: new if number == old else number for name, number in part.items()}
    return tuple(chosen)


def _distribution(table: NoisyTable) -> NDArray[np.float64]:
    """Noisy counts as probabilities; uniform where nothing is above zero."""
    weight = np.maximum(table.values, 0).astype(np.float64)
    return weight / weight.sum() if weight.sum() > 0 else np.full(weight.size, 1 / weight.size)


def _total(tables: Sequence[NoisyTable], size: int | None) -> float:
    """The number of records: the tables' sums, and the public size for what it is worth, a good guess.

    Each is weighted by its precision; a public size is taken to be right within a fifth, as old census figures
    are. At least one record.
    """
    weights = [1 / (table.values.size * table.sigma**2) for table in tables]
    values = [float(table.values.sum()) for table in tables]
    if size:
        weights.append(25 / size**2)
        values.append(float(size))
    return max(1.0, sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)) if weights else 1.0


def _without_rare(twos: Sequence[NoisyTable], ones: Sequence[NoisyTable], times: float) -> tuple[Measured, ...]:
    """The pairs, without the cells of rare levels: a level is rare where its count is below `times` its noise."""
    if not times:  # a count below zero is below nothing
        return tuple(Measured.of(table) for table in twos)
    common = {table.clique[0]: table.values >= times * table.sigma for table in ones}
    return tuple(
        Measured.of(table, np.logical_and.outer(common[table.clique[0]], common[table.clique[1]])) for table in twos
    )


def affordable(
    rules: dict[Clique, NDArray[np.intp]], sizes: tuple[tuple[str, int], ...], pairs: Sequence[Clique]
) -> tuple[dict[Clique, NDArray[np.intp]], set[Clique]]:
    """The structural zeros and the pairs that a model of reasonable size can hold together.

    Rules are certain, so they come first, the smallest ones at the head; then pairs, in the order in which they
    were chosen. In a stratum of few people the last pairs are noise, and the first to go. Sampling sees to the
    rules that are left out.
    """
    most = max(MOST_WITH_RULES, junction_tree(sizes, tuple(sorted(pairs))).cells)
    levels = dict(sizes)
    held: set[Clique] = set()
    for clique in (*sorted(rules, key=lambda c: (math.prod(levels[column] for column in c), c)), *pairs):
        if junction_tree(sizes, tuple(sorted({*held, clique}))).cells <= most:
            held.add(clique)
    return {clique: cells for clique, cells in rules.items() if clique in held}, held & set(pairs)


def forbidden(schema: Schema) -> dict[Clique, NDArray[np.intp]]:
    """The schema's structural zeros, as cells of the cliques that they speak of."""
    found: dict[Clique, NDArray[np.intp]] = {}
    for rule in schema.rules:
        for box in rule.cells(schema):
            # a column all of whose levels are in the box has no say in it
            clique = tuple(name for name in schema.names if name in box and len(box[name]) < schema.size(name))
            if not clique:
                continue
            never = np.zeros(schema.shape(clique), dtype=bool)
            never[np.ix_(*(sorted(box[name]) for name in clique))] = True
            cells = np.flatnonzero(never)
            found[clique] = np.union1d(found[clique], cells) if clique in found else cells
    return found
