"""Drawing rows of which some columns are known: each row has its own known codes, and the others are drawn given these.

Sum-product with evidence on a junction tree, for all rows of a batch. Rows that have equal known codes in all cliques
below a clique share its message to the clique above, which is computed once. Cells that a structural rule forbids, and
those outside a row's `Allowed` codes, are factors like the model's own, so that nothing is drawn and thrown away.

A row whose known codes have probability 0 is drawn again as if the first column of `back_off` were not known, then the
first two, and so on; at last uniformly. Rules hold throughout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.engine.beliefs import Beliefs, Factor
from stratsynth.adapters.engine.forest import NEVER, Floats
from stratsynth.adapters.engine.structure import Clique, Forbidden, forbidden, model_cells
from stratsynth.errors import MechanismError, UsageError

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.adapters.engine.model import Graphical
    from stratsynth.models import Codes

MOST_CELLS = 2**23
"""Number of cells up to which rules may enlarge the model; rows are drawn anew until the other rules hold."""
ROUNDS = 50
"""Times that a row is drawn anew because of a rule outside the model, before it backs off."""
ROWS = 2**14
"""Rows of a batch; more of equal known codes make no larger one."""
CHECKED = 4096
"""Cells at which a model's terms are compared with its potentials."""
UNIFORM = "all"
"""Name, among the columns that were backed off, of the model itself: the row is uniform over allowed cells."""


@dataclass(frozen=True, eq=False)
class Allowed:
    """Allowed codes of some drawn columns together, or weights of codes: each row has one of several kinds."""

    kinds: NDArray[np.intp]
    """Kind of each row, a number below the number of kinds."""
    cells: NDArray[np.bool_] | Floats
    """Array (kinds, levels of the first column, of the second, ...): True for allowed codes; or factors that the
    model's probabilities are multiplied with, 0 for codes that are not allowed."""

    @classmethod
    def by_row(cls, cells: NDArray[np.bool_]) -> Allowed:
        """Return the `Allowed` of `cells`, a mask (rows, levels ...) of the allowed cells of each row.

        Rows of equal masks become one kind.
        """
        lines, kinds = np.unique(np.packbits(cells.reshape(len(cells), -1), axis=1), axis=0, return_inverse=True)
        first = np.zeros(len(lines), dtype=np.intp)
        first[kinds.ravel()] = np.arange(len(cells))
        return cls(kinds.ravel().astype(np.intp), cells[first])


@dataclass(frozen=True, eq=False)
class Completed:
    """Rows with all columns of the schema."""

    codes: Codes
    """Codes by column, the known ones among them."""
    backed_off: Mapping[str, int]
    """Number of rows by the last column that had to be treated as unknown; `UNIFORM` beyond the last one."""
    impossible: NDArray[np.intp]
    """Rows that rules and allowed codes leave no cell."""


class Completion:
    """A fitted model, prepared for drawing all other columns of rows whose columns `known` are known."""

    def __init__(
        self, model: Graphical, known: Sequence[str], limited: Sequence[Clique] = (), back_off: Sequence[str] = ()
    ) -> None:
        """Check the columns; the tree is prepared when rows are first drawn.

        Args:
            model: Fitted model, with a schema whose rules are kept.
            known: Columns whose codes come with the rows.
            limited: Sets of columns, none of them known, whose codes an `Allowed` each will restrict.
            back_off: Columns of `known` to be treated as unknown, one after another, where a row has probability 0.
        """
        self.model, self.known = model, tuple(known)
        self.limited, self.back_off = tuple(map(tuple, limited)), tuple(back_off)
        unknown = set(model.schema.names) - set(known)
        for columns, names, among in (
            (self.known, set(model.schema.names), "columns"),
            (self.back_off, set(known), "known columns"),
            ([c for clique in self.limited for c in clique], unknown, "unknown columns"),
        ):
            if strange := [column for column in columns if column not in names]:
                raise UsageError(f"{strange[0]} is not among the model's {among}.")
        if not self.known:
            raise UsageError("no column is known: `sample` draws such rows.")
        self._stages: dict[int, _Stage] = {}

    def draw(self, given: Mapping[str, NDArray[np.integer[Any]]], rng: Generator, *allowed: Allowed) -> Completed:
        """Return `Completed` rows whose known columns have the codes `given`, the other columns drawn by `rng`.

        `given` maps each known column to an array of codes, an entry a row; `allowed` has one `Allowed` for each
        limited set of columns, in order. MechanismError if rules and allowed codes leave a row no cell.
        """
        found = self.attempt(given, rng, *allowed)
        if found.impossible.size:
            raise MechanismError("rules and allowed codes leave some rows no value at all.")
        return found

    def attempt(self, given: Mapping[str, NDArray[np.integer[Any]]], rng: Generator, *allowed: Allowed) -> Completed:
        """Return `Completed` rows, drawn by `rng` as in `draw`; codes of rows without a possible cell mean nothing.

        `given` maps each known column to an array of codes, an entry a row; `allowed` has one `Allowed` for each
        limited set of columns, in order. UsageError for other columns or another number of them.
        """
        if set(given) != set(self.known) or len(allowed) != len(self.limited):
            raise UsageError(f"codes are needed of {', '.join(self.known)}, and {len(self.limited)} allowed sets.")
        schema = self.model.schema
        evidence = {column: np.asarray(given[column]).astype(np.intp) for column in self.known}
        kinds = [np.asarray(one.kinds).astype(np.intp) for one in allowed]
        n = len(evidence[self.known[0]])
        codes: Codes = {name: np.zeros(n, dtype=np.min_scalar_type(schema.size(name) - 1)) for name in schema.names}
        for column, values in evidence.items():
            codes[column][:] = values
        with np.errstate(divide="ignore"):
            logs = [np.log(one.cells.astype(np.float64)) for one in allowed]
        # rows of equal known codes lie side by side, so that they fall into one batch
        order = np.lexsort([*kinds, *evidence.values()])
        backed_off: dict[str, int] = {}
        impossible: list[NDArray[np.intp]] = [np.zeros(0, dtype=np.intp)]
        for start in range(0, n, ROWS):
            rows = order[start : start + ROWS]
            for number, column in enumerate(("", *self.back_off, UNIFORM)):
                left = self._stage(number).fill(codes, rows, evidence, kinds, logs, rng)
                if column and len(left) < len(rows):
                    backed_off[column] = backed_off.get(column, 0) + len(rows) - len(left)
                rows = left
                if not rows.size:
                    break
            impossible.append(rows)
        return Completed(codes, backed_off, np.sort(np.concatenate(impossible)))

    def _stage(self, number: int) -> _Stage:
        """Return the `_Stage` with the first `number` columns of `back_off` unknown; beyond the last, rules alone."""
        if number not in self._stages:
            model, levels = self.model, {name: self.model.schema.size(name) for name in self.model.schema.names}
            hidden = {column: f"{column} (not used)" for column in self.back_off[:number]}
            factors: list[Factor] = []
            if number <= len(self.back_off):
                levels |= {name: levels[column] for column, name in hidden.items()}
                for clique, table in factors_of(model):
                    factors.append((tuple(hidden.get(column, column) for column in clique), table))
            self._stages[number] = _Stage.of(levels, factors, self, forbidden(model.schema))
        return self._stages[number]


@dataclass(frozen=True, eq=False)
class _Stage:
    """Beliefs of rows, and rules that would make them too large: those hold because rows are drawn anew."""

    beliefs: Beliefs
    outside: list[tuple[Clique, NDArray[np.bool_]]]
    """Rules outside the beliefs: columns, and the table of their forbidden cells."""

    @classmethod
    def of(cls, levels: Mapping[str, int], factors: list[Factor], of: Completion, rules: Forbidden) -> _Stage:
        """Return the `_Stage` of factors and of as many rules as fit, the smallest first; other rules are kept apart.

        A factor is (columns, array of logs); `rules` maps columns to forbidden cells' numbers; `levels` maps columns to
        numbers of levels; `of` is the Completion, which says what is known and limited.
        """
        sizes, known = tuple(levels.items()), set(of.known)
        unknown = tuple((name, size) for name, size in sizes if name not in known)
        cliques = [tuple(c for c in clique if c not in known) for clique in (*(c for c, _ in factors), *of.limited)]
        most = max(MOST_CELLS, model_cells(unknown, cliques))
        inside, outside = list(factors), []
        for clique in sorted(rules, key=lambda c: (math.prod(levels[name] for name in c), c)):
            free = tuple(column for column in clique if column not in known)
            if not free:  # nothing that is drawn can change it
                continue
            never = np.zeros([levels[name] for name in clique], dtype=bool)
            never.ravel()[rules[clique]] = True
            if model_cells(unknown, [*cliques, free]) <= most:
                cliques.append(free)
                inside.append((clique, np.where(never, -np.inf, 0.0)))
            else:
                outside.append((clique, never))
        return cls(Beliefs(sizes, inside, of.known, of.limited), outside)

    def fill(
        self,
        codes: Codes,
        rows: NDArray[np.intp],
        evidence: Mapping[str, NDArray[np.intp]],
        kinds: Sequence[NDArray[np.intp]],
        logs: Sequence[Floats],
        rng: Generator,
    ) -> NDArray[np.intp]:
        """Draw the unknown columns of `codes`, {column: array}, in place, by `rng`, in the rows of the numbers `rows`.

        Returns an array of the numbers of rows that have no mass. `evidence` maps known columns to arrays of all rows'
        codes; `kinds` and `logs` are lists of arrays, the limits, as `Beliefs.draw` takes them.
        """
        failed: list[NDArray[np.intp]] = []
        for _ in range(ROUNDS):
            here = {column: values[rows] for column, values in evidence.items()}
            drawn, impossible = self.beliefs.draw(here, [kind[rows] for kind in kinds], logs, len(rows), rng)
            for column in codes.keys() & drawn.keys():
                codes[column][rows] = drawn[column]
            failed.append(rows[impossible])
            rows = rows[~impossible]
            broken = np.zeros(len(rows), dtype=bool)
            for clique, never in self.outside:
                broken |= never[tuple(codes[column][rows] for column in clique)]
            rows = rows[broken]
            if not rows.size:
                break
        return np.concatenate([*failed, rows])


def factors_of(model: Graphical) -> list[Factor]:
    """Return a list of a model's factors, pairs (columns, array of logs): terms of its measured tables.

    Where its potentials are not made of terms and rules alone, they are the cliques' potentials, which join columns
    that no table has together.
    """
    cliques = list(zip(model.tree.cliques, model.potentials, strict=True))
    terms = [(clique, term.reshape(model.schema.shape(clique))) for clique, term in model.terms]
    rng = np.random.default_rng(0)
    cells = {name: rng.integers(0, model.schema.size(name), CHECKED) for name in model.schema.names}

    def at(factors: list[Factor]) -> Floats:
        found: Floats = sum((table[tuple(cells[c] for c in own)] for own, table in factors), np.zeros(CHECKED))
        return found

    whole, made = at(cliques), at(terms)
    real = whole > NEVER / 2
    same = np.abs(whole - made)[real].max(initial=0.0) <= 1e-6 * (1 + np.abs(whole[real]).max(initial=0.0))
    impossible = all(((table > NEVER / 2) | _forbidden(model, clique)).all() for clique, table in cliques)
    return terms if terms and same and real.any() and impossible else cliques


def _forbidden(model: Graphical, clique: Clique) -> NDArray[np.bool_]:
    """Return a mask of a clique's cells, an axis a column: True where a rule of the model's schema forbids them."""
    found = np.zeros(model.schema.shape(clique), dtype=bool)
    for columns, cells in forbidden(model.schema).items():
        if set(columns) <= set(clique):
            never = np.zeros(model.schema.shape(columns), dtype=bool)
            never.ravel()[cells] = True
            order = np.transpose(never, [columns.index(c) for c in clique if c in columns])
            found |= order.reshape([model.schema.size(c) if c in columns else 1 for c in clique])
    return found
