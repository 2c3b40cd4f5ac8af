"""Fixed: declared tables, measured once, and nothing else.

For publishers of a list of tables that is known in advance: nothing is spent on choosing, and the list depends on no
answer. The budget is divided in closed form (`split`), the answers are those of least squares over all tables at once
(`Release.query`), consistent and with known covariances. Rows are drawn from a model that is fitted to these tables,
the most important first, as far as a model of reasonable size holds them.

A table of n cells that gets rho_t has noise of variance s_t^2 = D^2 / (2 rho_t) in each cell. With importance a_t,

    minimise  sum of a_t n_t s_t^p   where   sum of rho_t = rho

has the solution rho_t proportional to (a_t n_t)^(2 / (2 + p)), by Lagrange's rule: p = 2 for squared errors, p = 1 for
absolute ones. The errors are those of the tables as measured; least squares over all of them lowers every error
further.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from stratsynth.adapters.engine import Graphical, MeasuredTable, Problem
from stratsynth.adapters.engine.solve import MOST_CELLS, engine
from stratsynth.adapters.engine.structure import forbidden, held_together, taken_in
from stratsynth.adapters.shared.known import believed, records
from stratsynth.checks import is_list, is_texts
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms import Mechanism, Public
from stratsynth.models import Returns
from stratsynth.questions import Clique, Counts, Program, Question, Work, counts, work
from stratsynth.questions.counts import check_cells
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget


POWERS = {"squared": 2.0, "absolute": 1.0}
"""Power of the error that is summed over all cells."""


def split(cells: Sequence[int], importance: Sequence[float], errors: str) -> tuple[float, ...]:
    """Return a tuple of each table's fraction of rho, in the order of `cells`; they add up to 1.

    Args:
        cells: The number of cells of each table.
        importance: The weight of an error in a cell of each table.
        errors: The kind of error that is minimised, a key of `POWERS`.
    """
    worth = [(a * n) ** (2 / (2 + POWERS[errors])) for n, a in zip(cells, importance, strict=True)]
    return tuple(one / sum(worth) for one in worth)


@dataclass(frozen=True)
class Fixed(Mechanism[Graphical]):
    """Measure declared tables."""

    name: ClassVar[str] = "fixed"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Work})
    returns: ClassVar[Returns] = Returns.ROWS
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    takes_known: ClassVar[bool] = True
    samples_hold: ClassVar[bool] = True
    tables: Sequence[Sequence[str]] = ()
    """Columns of each table; every column by itself by default. In a stratum the columns that define it are left out of
    them."""
    importance: Sequence[float] = at((), least=1e-6, most=1e6)
    """Weight of an error in one cell, table by table; all equal by default."""
    errors: Literal["squared", "absolute"] = at("squared")
    """Loss that the division of the budget minimises: "squared" or "absolute" errors, summed over all cells by
    importance."""
    prior: float = at(1.0, least=0, most=1e6)
    """Weight of the row model's prior, the uniform distribution, in records."""
    iterations: int = at(1000, least=1)
    """Largest number of steps of the row model's fit."""
    engine: Literal["numpy", "mbi"] = at("numpy")
    """Solver of the row model's fit: stratsynth's (`numpy`), or Private-PGM (`mbi`), whose results are equal within the
    noise and which compiles each model first."""
    model_cells: int = at(2**20, least=1, most=MOST_CELLS)
    """Largest number of cells in the row model; tables that do not fit are answered, and not drawn from."""

    def __post_init__(self) -> None:
        """Raise UsageError on unsound `tables` (a set twice), `importance` of other length; keep both as tuples."""
        super().__post_init__()
        if not is_list(self.tables) or not all(is_texts(table) and len(table) for table in self.tables):
            raise UsageError('fixed: tables is a list of lists of columns, such as [["SEX", "AGEP"], ["MAR"]].')
        tables = tuple(tuple(table) for table in self.tables)
        for table in tables:
            if len(set(table)) < len(table):
                raise UsageError(f"fixed: the table {', '.join(table)} names a column twice.")
        if len({frozenset(table) for table in tables}) < len(tables):
            raise UsageError("fixed: a table is declared twice; give it more importance instead.")
        if len(self.importance) not in {0, len(tables)}:
            raise UsageError(f"fixed: importance has one number for each table, not {len(self.importance)} numbers.")
        object.__setattr__(self, "tables", tables)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the whole budget as a zCDP allotment, rho per row; the schema is that of the public facts.

        Unsupported for columns that the public schema lacks, and tables or columns that are too large.
        """
        schema = public.schema
        for table in self.tables:
            for name in table:
                if name not in public.constant:
                    schema.column(name)
        if wanted := self._asked(public):
            check_cells("fixed", list(wanted), schema)
        if sum(schema.size(name) for name in schema.names) > self.model_cells:
            raise Unsupported("fixed: the row model cannot hold the columns by themselves; allow more model_cells.")
        return budget.zcdp()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Graphical]:
        """Program on public facts, spending the allotment, not `rng`: measures all tables and returns a `Graphical`."""
        schema, wanted = public.schema, self._asked(public)
        cliques = tuple(wanted)
        weights = split([schema.cells(clique) for clique in cliques], list(wanted.values()), self.errors)
        tables = (yield from counts(cliques, rho=allot.rho, weights=weights)) if cliques else ()
        total = records(tables, public.size)
        sizes = tuple((name, schema.size(name)) for name in schema.names)
        public_tables = tuple(known.clique for known in public.known)
        held = self._within_size(sizes, (*public_tables, *sorted(cliques, key=lambda clique: -wanted[clique])))
        rules, kept = held_together(forbidden(schema), sizes, held)
        fitted = [MeasuredTable.of(table) for table in tables if table.clique in kept]
        known = believed([one for one in public.known if one.clique in kept], fitted, total)
        known = [table for table in known if table.sigma < math.inf]
        problem = Problem(sizes, (*known, *fitted), total, rules, prior=self.prior, iterations=self.iterations)
        solution = yield from work(engine(self.engine), problem)
        return Graphical.of(schema, solution)

    def _asked(self, public: Public) -> Mapping[Clique, float]:
        """Return {clique: importance} of the tables to measure, by public facts; a clique is a tuple of columns' names.

        Tables that become equal are one, with their importances added up. If none is left, it is the smallest column's.
        """
        schema = public.schema
        declared = self.tables or list(schema.oneways)
        found: dict[Clique, float] = {}
        for table, importance in zip(declared, self.importance or (1.0,) * len(declared), strict=True):
            clique = tuple(name for name in schema.names if name in table)
            if clique and not public.already_known(clique):
                found[clique] = found.get(clique, 0.0) + importance
        if not found and schema.names:  # only the number of records is left to learn: the smallest table there is
            return {min(public.asked or schema.oneways, key=schema.cells): 1.0}
        return found

    def _within_size(self, sizes: tuple[tuple[str, int], ...], cliques: Sequence[Clique]) -> tuple[Clique, ...]:
        """Return a tuple of those of `cliques`, taken one by one, that one model of at most `model_cells` cells holds.

        `sizes` are (column, number of levels) pairs.
        """
        held: tuple[Clique, ...] = ()
        for clique in cliques:
            if taken_in(sizes, held, (clique,), self.model_cells)[0]:
                held = (*held, clique)
        return held
