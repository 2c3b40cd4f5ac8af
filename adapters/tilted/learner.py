"""Prior rows whose weights are fitted again and again as noisy tables come in.

Rows drawn from the mechanism's own model are added to the prior's. Their initial weight is small, and grows with the
fraction of tables about which the prior was found wrong. Where the prior is wrong, a tilt moves weight to them, so no
prior row has to stand for hundreds of people because the prior has few such people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.shared.known import believed
from stratsynth.adapters.shared.learner import Learner
from stratsynth.adapters.tilted.blocks import columns_counted
from stratsynth.adapters.tilted.borrowed_rows import reweighted
from stratsynth.adapters.tilted.fit import TILTER, Aim, Tilt
from stratsynth.adapters.tilted.model import TiltedRows
from stratsynth.models.rules import broken
from stratsynth.questions import Clique, Program, work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.engine import MeasuredTable
    from stratsynth.mechanisms import Public
    from stratsynth.models import Codes, TableModel
    from stratsynth.schema import Schema

CHANCE = 1e-5
"""Probability that noise alone makes an answer disagree so far that the prior is trusted less in its table."""
LEAST_LENT, MOST_LENT = 0.01, 0.1
"""Total initial weight of the own model's rows if the prior is wrong about no table, and about all: invented rows cost
accuracy where the prior is right."""
FEWER = 0.25
"""Smallest fraction of the maximum number of own-model rows that is ever added."""
EVERYBODY = 4_000
"""Number of rows of everybody that are added to a stratum's own."""
MOST_OF_EVERYBODY = 0.95
"""Largest total initial weight of rows from everybody; below 1 because a stratum's own rows may have levels they
lack."""
WRONG = 0.5
"""Fraction of a same-size sample's worth below which the prior was wrong about a table."""
ROUND_STEPS = 8
"""Most steps of a fit between rounds: rows tilted further to a wrong prior's tables would keep the lead longer than
they should."""
STEPS_A_COLUMN, STEPS_A_TABLE, FEWEST_STEPS, MOST_STEPS = 1, 3, 20, 200
"""Steps of the last fit: one for each table of one column and three for each other table, from 20 to 200."""
NEGLIGIBLE = 1e-3
"""Largest total weight of the lightest rows that predictions leave out to save time; a release has all rows."""


@dataclass(kw_only=True)
class TiltedLearner(Learner[TiltedRows]):
    """The prior's rows, their weights after the last fit, and each table's evidence about the prior."""

    codes: Mapping[str, NDArray[np.integer[Any]]]
    """Level numbers of the prior's rows, by column."""
    base: NDArray[np.float64]
    """Initial weight of each prior row; they add up to 1."""
    people: float
    """Number of people that the prior's rows stand for."""
    others: NDArray[np.bool_] | None = None
    """Mask of a stratum's prior rows that come from other strata; None without such rows, or once they are
    reweighted."""
    share: float = LEAST_LENT
    """Smallest total initial weight of added rows of another model."""
    worth: float = math.inf
    """Largest number of people that the prior counts for, learned from everybody's tables; see `stratum`."""
    weights: NDArray[np.float64] = field(init=False)
    """Weight of each row after the last fit, added rows after the prior's."""
    trusted: list[float] = field(default_factory=list, init=False)
    """Number of people that the prior counts for, by table."""
    _wrong: list[bool] = field(default_factory=list, init=False)
    """Verdict by table, as of its arrival: True if the prior was found wrong about it."""
    _aims: list[Aim] = field(default_factory=list, init=False)
    _numbers: NDArray[np.float64] = field(init=False)
    _rows: Mapping[str, NDArray[np.integer[Any]]] = field(init=False)
    """Rows of the next fit, by column."""
    _start: NDArray[np.float64] = field(init=False)
    _telling: TiltedRows | None = field(default=None, init=False)
    """Rows of the last fit without negligible ones, once predictions were requested."""
    _sample: Codes | None = field(default=None, init=False)
    """Sample of the last fit's rows for the strata, once drawn."""
    _fitted: Mapping[str, NDArray[np.integer[Any]]] = field(init=False)
    """Rows of the last fit, by column."""

    def __post_init__(self) -> None:
        """Set the weights to the prior's, as before the first fit."""
        self._numbers = np.zeros(0)
        self._rows, self._start = self.codes, self.base
        self.begin()

    def begin(self) -> None:
        """Reset the rows' weights to the initial ones, those of the rows of the next fit."""
        self._take(self._start)

    def _take(self, weights: NDArray[np.float64]) -> None:
        """Set the rows' `weights`, an array; drop the predictions and the sample derived from the old ones."""
        self.weights, self._fitted = weights, self._rows
        self._telling = self._sample = None

    def lend(self, rows: Mapping[str, NDArray[np.integer[Any]]]) -> None:
        """Add another model's `rows`, codes by column, from the next fit on, in place of those added before.

        Rows of length 0 change nothing.
        """
        n = len(next(iter(rows.values()), ()))
        if not n:
            return
        self._take_in()
        share = self._lent
        self._rows = {k: np.concatenate([code, rows[k].astype(code.dtype)]) for k, code in self.codes.items()}
        # added rows share their total weight equally
        self._start = np.concatenate([self.base * (1 - share), np.full(n, share / n)])

    def worthwhile(self, most: int) -> int:
        """Return how many rows of the own model to add: `most`, or fewer (at least `FEWER` of it) if the prior fits."""
        self._take_in()
        return math.ceil(most * min(1.0, max(FEWER, self._lent / MOST_LENT)))

    @property
    def _lent(self) -> float:
        """Total weight, 0 to 1, of the rows added from another model, before they are fitted."""
        return max(self.share, MOST_LENT * self.wrong)

    @property
    def wrong(self) -> float:
        """Fraction of the tables about which the prior was found wrong; 0 without tables."""
        return float(np.mean(self._wrong)) if self._wrong else 0.0

    @property
    def _most(self) -> float:
        """Number of people the prior is worth in a table about which it is right: two samples of one population."""
        return 1 / (1 / self.total + 1 / max(self.people, 1.0) + 1 / self.worth)

    @property
    def borrowed(self) -> float:
        """Total weight, 0 to 1, of added rows after the last fit."""
        return max(0.0, 1 - float(self.weights[: self.base.size].sum()))

    @property
    def surviving(self) -> float:
        """Share, 0 to 1, of the prior's rows after the last fit: their weight, times the fraction that still counts.

        That fraction is the effective number of rows by their weights over that by their initial ones.
        """
        mine = self.weights[: self.base.size]
        weight, squares = float(mine.sum()), float(mine @ mine)
        return min(1.0, weight**3 * float(self.base @ self.base) / squares) if squares > 0 else 0.0

    @classmethod
    def of(cls, public: Public, **given: Any) -> TiltedLearner:
        """Return a `TiltedLearner` of the prior that is among the public facts, with no table measured.

        `given` are further fields of it, by name.
        """
        rows = public.prior
        assert rows is not None  # noqa: S101 - whoever calls this has looked
        codes = {name: rows.codes[name] for name in public.schema.names}
        return cls(
            schema=public.schema,
            codes=codes,
            base=rows.weights / rows.people,
            people=rows.people,
            others=None if rows.parent is None else rows.lent,
            published=tuple(known for known in public.known if not known.of_rows),
            **given,
        )

    @property
    def model(self) -> TiltedRows:
        """The `TiltedRows`: prior's and added rows with the weights of the last fit, figures about the prior."""
        return replace(self._weighed, total=self.total, off=self._off(), made=self.borrowed)

    @property
    def _weighed(self) -> TiltedRows:
        """The `TiltedRows` with the weights of the last fit, without figures about the prior."""
        return TiltedRows(self.schema, self._fitted, self.weights)

    def _off(self) -> dict[str, float]:
        """Mapping from column to the total variation distance, 0 to 1, of the last fit's shares from the prior's."""
        names, sizes = self.schema.names, {name: self.schema.size(name) for name in self.schema.names}
        before = np.zeros(self.weights.size)  # added rows come after the prior's
        before[: self.base.size] = self.base
        shares = zip(*columns_counted(self._fitted, sizes, names, before, self.weights), strict=True)
        apart = [0.5 * float(np.abs(one - other).sum()) for one, other in shares]
        return dict(zip(names, apart, strict=True))

    def fit(self, *, last: bool = False) -> Program[None]:
        """Program that takes in new tables, then fits weights: in `ROUND_STEPS` steps, more after the `last` round."""
        yield from self.liken()
        self._take_in()
        each = [STEPS_A_COLUMN if len(table.clique) == 1 else STEPS_A_TABLE for table in self.tables]
        steps = min(MOST_STEPS, max(FEWEST_STEPS, sum(each))) if last else ROUND_STEPS
        sizes = {name: self.schema.size(name) for name in self.schema.names}
        aims = (*self._public(), *self._aims)
        problem = Tilt(self._rows, sizes, self._start, aims, self.total, self._numbers, steps)
        found = yield from work(TILTER, problem)
        self._numbers = found.numbers
        self._take(found.weights)

    def _take_in(self) -> None:
        """Set the prior's trust for each new table, and add the table to the fit's."""
        new = self.tables[len(self._aims) :]
        total, most = self.total, self._most
        for table, foretold in zip(new, self.marginals([table.clique for table in new]), strict=True):
            self.trusted.append(trust(table, foretold, total, most))
            # far less trust than a right prior would get counts as wrong
            self._wrong.append(self.trusted[-1] < WRONG * most)
            # the objective divides by 2 sigma^2 trust: see `fit`
            spread = table.sigma * math.sqrt(self.trusted[-1])
            counted = None if table.counted is None else table.counted.ravel()
            values = table.values.ravel().astype(np.float64)
            self._aims.append(Aim(table.clique, values, spread, counted))

    def liken(self) -> Program[None]:
        """Program that reweights, once, a stratum's rows from other strata towards its own, where there are any."""
        others, self.others = self.others, None
        if others is None:
            return
        problem = reweighted(self.schema, self.codes, self.base, others, self.people)
        if problem is not None:
            found = yield from work(TILTER, problem)
            self.base = self.base.copy()
            self.base[others] = found.weights * self.base[others].sum()
        self._start = self.base
        self.begin()

    def _public(self) -> list[Aim]:
        """Return a list of `Aim`s, the public tables with their own noise: trust in the prior does not enter."""
        tables = believed(self.published, self.tables, self.total)
        return [Aim(t.clique, t.values.ravel().astype(np.float64), t.sigma) for t in tables]

    def marginals(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """Return a list of arrays, one a clique: probabilities of its cells, by the last fit's rows of some weight."""
        if self._telling is None:
            self._telling = self._weighed.heaviest(NEGLIGIBLE)
        return self._telling.marginals(cliques)

    def stratum(self, public: Public, prior: float) -> Program[TiltedLearner]:
        """Program on public facts that returns a stratum's `TiltedLearner`: prior rows and some of everybody's.

        The weight of everybody's rows is the fraction of everybody's tables about which the prior was wrong, or the
        weight of added rows if larger, within limits. If it was wrong about most, its trust in a stratum's tables is at
        most the median of its trusts. `prior` is not used.
        """
        rows = public.prior
        assert rows is not None and rows.parent is not None  # noqa: S101, PT018 - Public.within made them
        mine = self.weights[: self.base.size]
        # everybody's tilt of each prior row is applied to the stratum's copy of it
        ratio = np.divide(mine, self.base, out=np.zeros_like(self.base), where=self.base > 0)
        moved = rows.weights * ratio[rows.parent]
        share = min(MOST_OF_EVERYBODY, max(LEAST_LENT, self.wrong, self.borrowed))
        learner = TiltedLearner.of(public, size=public.size, share=share, worth=self._worth())
        learner.published = tuple(known for known in self.published_in(public) if not known.of_rows)
        if moved.sum() > 0:
            learner.base = moved / moved.sum()
        yield from learner.liken()
        self._sample = self._sample or sampled(self._weighed, EVERYBODY)
        step = EVERYBODY // learner.worthwhile(EVERYBODY)
        # every step-th row: an evenly thinned sample
        some = {name: code[::step] for name, code in self._sample.items()}
        learner.lend(shaped(some, len(range(0, EVERYBODY, step)), public.schema))
        learner.begin()
        return learner

    def _worth(self) -> float:
        """Return a number of people: the median trust if the prior was wrong about most tables, else infinity."""
        return float(np.median(self.trusted)) if self.wrong > 0.5 else math.inf

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> TiltedRows:
        """Return the `TiltedRows` of the last fit with allowed levels alone, in the columns of `schema`.

        `levels` is column -> numbers of the levels allowed; a column it lacks keeps all. The schema has no other
        levels.
        """
        return self.model.conditioned(schema, levels)


def trust(table: MeasuredTable, foretold: NDArray[np.float64], total: float, most: float) -> float:
    """Return the number of people, 1 to `most`, that `foretold`, shares of a `MeasuredTable`, count for.

    The shares are the prior's. `total` is the number of people in the table. Two samples of N and n people differ in a
    cell of share p by a variance of p (1 - p) (1/N + 1/n): a right prior is worth 1 / (1/N + 1/n) people, and one whose
    answer is farther away is worth fewer. The noise's expected part of the squared distance is subtracted first. If
    noise alone is as far away with a probability above `CHANCE`, the result is `most`: a table of two cells is often
    off by three standard deviations in one of hundreds of strata.
    """
    from scipy.special import chdtri

    counted = np.ones(foretold.shape, dtype=bool) if table.counted is None else table.counted
    off = (table.values - total * foretold)[counted]
    spread = total**2 * float((foretold * (1 - foretold))[counted].sum())
    far = float(off @ off)
    if not off.size or far <= table.sigma**2 * float(chdtri(off.size, CHANCE)):
        return most
    # equates N^2 sum p (1 - p) / n with the distance beyond noise, solved for n
    return min(most, max(1.0, spread / (far - table.sigma**2 * off.size)))


def drawn(model: TableModel, n: int, schema: Schema) -> Codes:
    """Return about `n` rows of a model, codes by column of `schema`, drawn with a fixed seed.

    Forbidden ones are left out.
    """
    return shaped(sampled(model, n), n, schema)


def sampled(model: TableModel, n: int) -> Codes:
    """Return `n` rows of a model, codes by column, drawn with a fixed seed."""
    return model.sample(n, np.random.default_rng(0))


def shaped(rows: Codes, n: int, schema: Schema) -> Codes:
    """Return `rows`, `n` rows as codes by column, in all columns of `schema`, less those that its rules forbid.

    Columns that the rows lack, such as levels that a stratum merges, get each of their levels in turn.
    """
    rows = {k: rows[k] if k in rows else np.arange(n) % schema.size(k) for k in schema.names}
    bad = broken(schema, rows) if schema.rules else np.zeros(n, dtype=bool)
    return {name: code[~bad] for name, code in rows.items()}
