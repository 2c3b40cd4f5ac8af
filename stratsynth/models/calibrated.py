"""Rows raked to control totals: a model whose rows follow another one's, reweighted by cell, and drawn as whole rows.

A row's ratio is the product of the factors of its control cells, at most a largest one. To draw n rows, a pool of the
other model's rows is raked to the controls anew, and whole rows are chosen of it, so that every cell has its total but
for a few rows, whatever chance did to the pool. Rows are the other model's own, so they keep the schema's rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.models.base import Codes, Returns, State, TableModel, Where
from stratsynth.models.controls import ControlTotals, chosen_rows, kinds_of, raked, ratios_of, summed, whole_numbers
from stratsynth.models.mixture import Mixture
from stratsynth.models.rules import Moved, draw_allowed

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.report.page import Section
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

POOL = 2
"""Rows of the pool for each row that is drawn."""
ENOUGH = 2
"""Rows that may be given out of a cell for each row of it in the pool; of cells that lack more, more are drawn."""
LEAST = 5_000
"""Smallest pool, in rows."""
ROUNDS = 500
"""Largest number of rounds of raking a pool, which begins at the factors of the whole model."""
KNOWN = 2**16
"""Rows of the pool by which masses are computed."""
FEW = 200
"""Rows of that pool below which a condition gets rows of its own."""


@dataclass(frozen=True, eq=False)
class RowPool:
    """Rows of a model, with the share of everybody that each stands for."""

    rows: Codes
    shares: Floats
    """Share of each row, in all 1: rows of rare cells that were drawn beside the others stand for less."""
    places: tuple[Places, ...]
    """Cell of each row, for each control."""


def pool_of(
    model: TableModel, controls: Sequence[ControlTotals], wanted: Sequence[Floats], n: int, rng: Generator, moved: Moved
) -> RowPool:
    """Return a `RowPool`: n rows of a model that keep the rules, and more of cells of controls that have too few.

    Each row stands for 1 / (n + sum over its cells of k / m), k rows having been drawn of a cell of mass m: the balance
    heuristic of Veach and Guibas (1995), by which samples of several laws are one of the first.

    Args:
        model: The model.
        controls: A list of control totals.
        wanted: For each control an array: the number of rows that each cell has to have, if the model has such rows.
        n: Number of rows.
        rng: Source of randomness.
        moved: Counts of rows that rules change.
    """
    drawn = [_rows(model, n, {}, rng, moved)]
    rates = [np.zeros(control.totals.size) for control in controls]
    for control, least, rate in zip(controls, wanted, rates, strict=True):
        there = np.bincount(control.places(drawn[0]), minlength=len(least))
        for cell in np.flatnonzero(there < least).tolist():
            where = control.where(cell)
            mass = model.mass(where)
            if mass > 0:
                more = int(np.ceil(least[cell])) - int(there[cell])
                rate[cell] = more / mass
                drawn.append(_rows(model, more, where, rng, moved))
    rows = {name: np.concatenate([each[name] for each in drawn]) for name in model.schema.names}
    places = tuple(control.places(rows) for control in controls)
    density = np.full(len(places[0]), float(n))
    for rate, place in zip(rates, places, strict=True):
        density += rate[place]
    shares = 1 / density
    return RowPool(rows, shares / shares.sum(), places)


def _rows(model: TableModel, n: int, where: Where, rng: Generator, moved: Moved) -> Codes:
    """Return n rows of `model` by `rng`, {column: array of level numbers}, that meet `where` and keep the rules.

    `where` maps columns to sets of level numbers; `moved`, a `Moved`, counts rows that rules change, in place.
    """
    return draw_allowed(model.schema, n, rng, lambda k, m: model.counted(k, rng, where, m), where, moved)


@dataclass(frozen=True, eq=False)
class Calibrated(TableModel):
    """Distribution of another model's rows, each as likely as its ratio says."""

    kind: ClassVar[str] = "calibrated"
    schema: Schema
    base: TableModel
    """Model whose rows are calibrated."""
    controls: tuple[ControlTotals, ...]
    """Control totals as they were published."""
    factors: tuple[Floats, ...]
    """Factor of each cell, for each control."""
    reached: tuple[Floats, ...]
    """Share of each cell among the rows, for each control; not the published one where that needs a ratio above
    `most`."""
    most: float
    """Largest ratio of a row: controls that ask for more are missed."""

    def ratios(self, rows: Codes) -> Floats:
        """Return an array, by row: how many times as likely `rows`, codes by column, are as under the other model.

        It is at most `most`.
        """
        return ratios_of(self.factors, [control.places(rows) for control in self.controls], self.most)

    def mass(self, where: Where) -> float:
        """Return the probability that a row meets `where`, {column: set of codes}: the other model's, times a ratio.

        It is the mean of such rows that are drawn, always the same ones: right within a few per cent.
        """
        whole = self.base.mass(where)
        if not where or not whole > 0:
            return whole
        rows, ratios = self._known
        inside = np.ones(len(ratios), dtype=bool)
        for column, codes in where.items():
            inside &= np.isin(rows[column], sorted(codes))
        known = ratios[inside]
        if len(known) < FEW:
            known = self.ratios(self.base.sample(FEW, np.random.default_rng(0), where))
        return min(1.0, whole * float(known.mean()))

    @cached_property
    def _known(self) -> tuple[Codes, Floats]:
        """Tuple (codes by column, array of ratios): rows of the other model, always the same; the ratios' mean is 1."""
        rows = _rows(self.base, KNOWN, {}, np.random.default_rng(0), Moved())
        ratios = self.ratios(rows)
        return rows, ratios / ratios.mean()

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Return n rows by `rng`, {column: array of codes}, that meet `where`, at controls' shares but for a few.

        `where` maps columns to sets of codes; None: any row.
        """
        return self.counted(n, rng, where or {}, Moved())

    def counted(self, n: int, rng: Generator, where: Where, moved: Moved) -> Codes:
        """Return n rows by `rng`, {column: array of codes}, that meet `where`, {column: set of codes}.

        MechanismError if no row can. Under a condition, rows of the other model are chosen by their ratios; without,
        their pool is raked first. `moved`, a `Moved`, counts all rows of the pool that rules change.
        """
        size = 0 if n == 0 else max(POOL * n, LEAST)
        if where:
            rows = _rows(self.base, size, where, rng, moved)
            shares, places = np.full(size, 1 / max(size, 1)), tuple(c.places(rows) for c in self.controls)
            pool = RowPool(rows, shares, places)
        else:
            wanted = [np.floor(n * share / ENOUGH + 0.5) for share in self.reached]
            pool = pool_of(self.base, self.controls, wanted, size, rng, moved)
        moved.add(-n, 0, 0)  # of the pool's rows, these are counted once more where they are given out
        if n == 0:
            return pool.rows
        sizes = [len(share) for share in self.reached]
        kinds, inside = kinds_of(pool.places, sizes)
        start = summed(kinds, pool.shares, len(inside[0])) * ratios_of(self.factors, inside, self.most)
        if not start.sum() > 0:
            raise MechanismError("no row can meet this condition: the controls leave it none.")
        start = start / start.sum()
        ratios = np.ones(len(start)) if where else raked(start, inside, self.reached, rounds=ROUNDS).ratios
        expected = start * ratios
        numbers = whole_numbers(expected * (n / expected.sum()), inside, sizes, n, rng)
        chosen = chosen_rows(kinds, numbers, rng)
        return {name: codes[chosen] for name, codes in pool.rows.items()}

    def oneway(self, column: str) -> Floats:
        """Return an array of the probability of each level of a column: of rows drawn once, always the same ones."""
        rows, ratios = self._known
        return np.bincount(rows[column], ratios, self.schema.size(column)) / len(ratios)

    def mixture(self) -> Mixture:
        """Return the mixture of strata that was calibrated, shares as before the controls; UsageError if it is none."""
        return self.base.mixture()

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """Return the page's Sections of the model that was calibrated; `named` maps a group's label to its name."""
        return self.base.sections(named)

    def state(self) -> State:
        """Return a `State`: the calibrated model's own state, with controls, factors and reached shares."""
        inner = self.base.state()
        arrays = {f"base/{name}": array for name, array in inner.arrays.items()}
        arrays |= {f"factors/{i}": factor for i, factor in enumerate(self.factors)}
        arrays |= {f"reached/{i}": share for i, share in enumerate(self.reached)}
        controls = [control.facts() for control in self.controls]
        return State({"controls": controls, "most": self.most, "kind": self.base.kind, "facts": inner.facts}, arrays)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Calibrated:
        """Return the calibrated model over `schema` of a stored state.

        ReleaseError unless its controls, factors and shares fit each other.
        """
        from stratsynth.models.files import restore  # which looks up the other model's kind

        controls = tuple(ControlTotals.from_facts(facts, schema) for facts in state.facts["controls"])
        inner = {n.removeprefix("base/"): array for n, array in state.arrays.items() if n.startswith("base/")}
        base = restore(state.facts["kind"], schema, State(state.facts["facts"], inner))
        if base.returns != Returns.ROWS or isinstance(base, cls) or not controls:
            raise ReleaseError("model: what is calibrated draws no rows, or was calibrated before.")
        factors, reached = (
            tuple(_sound(state.arrays[f"{name}/{i}"], control) for i, control in enumerate(controls))
            for name in ("factors", "reached")
        )
        if any(abs(float(share.sum()) - 1) > 1e-6 for share in reached):
            raise ReleaseError("model: the shares of its controls do not add up to 1.")
        most = float(state.facts["most"])
        if not most > 1:
            raise ReleaseError("model: the largest ratio of its rows is damaged.")
        return cls(schema, base.table_model(), controls, factors, reached, most)


def _sound(array: Any, control: ControlTotals) -> Floats:
    """Return a stored flat array of one number from 0 for each cell of control totals, float64; else a ReleaseError."""
    found = np.asarray(array)
    if found.dtype != np.float64 or found.shape != (control.totals.size,):
        raise ReleaseError("model: the factors of its controls are damaged.")
    if not np.isfinite(found).all() or not (found >= 0).all():
        raise ReleaseError("model: the factors of its controls are damaged.")
    return found
