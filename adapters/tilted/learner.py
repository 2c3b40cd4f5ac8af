"""Prior rows that are tilted again and again, as noisy tables come in one by one.

Beside the prior's rows stand rows that the mechanism's own model has drawn. They weigh little before any table is
known: the more, the more tables the prior was found to be wrong about. Where it is wrong, a tilt moves weight to them,
and no row of the prior has to stand for hundreds of people because the prior hardly has such people.
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
from stratsynth.adapters.tilted.fit import TILTER, Aim, Tilt
from stratsynth.adapters.tilted.likened import likened
from stratsynth.adapters.tilted.model import TiltedRows
from stratsynth.models.rules import broken
from stratsynth.questions import Clique, Program, work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.engine import Measured
    from stratsynth.mechanisms import Public
    from stratsynth.models import Codes, TableModel
    from stratsynth.schema import Schema

CHANCE = 1e-5
"""How probable it is that noise alone makes an answer disagree so far that the prior is trusted less in its table."""
LEAST_LENT, MOST_LENT = 0.01, 0.1
"""What the rows of the mechanism's own model weigh together before any table is known: where the prior is wrong about
no table, and where it is wrong about all: rows that were made up cost where the prior is right."""
FEWER = 0.25
"""The least part of the rows that are lent at most: where they weigh little, so many are still lighter than others."""
EVERYBODY = 4_000
"""How many rows of everybody stand beside a stratum's own."""
MOST_OF_EVERYBODY = 0.95
"""What these weigh at most before any table is known: a stratum's own rows may have levels that theirs have not."""
WRONG = 0.5
"""Below this part of what a sample of the same people would be worth, the prior was found to be wrong about a table."""
ROUND_STEPS = 8
"""The most steps of a fit between rounds: rows that are tilted on and on to a wrong prior's tables hold the lead longer
than they should."""
STEPS_A_COLUMN, STEPS_A_TABLE, FEWEST_STEPS, MOST_STEPS = 1, 3, 20, 200
"""The most steps of the last fit: so many for each table, of one column or of several, between these."""
NEGLIGIBLE = 1e-3
"""The lightest rows, which weigh so much together, are left out of what the rows foretell, which takes time for each
row and table. What is released has all rows."""


@dataclass(kw_only=True)
class TiltedLearner(Learner[TiltedRows]):
    """The prior's rows, their weights as of the last fit, and what each table taught about the prior."""

    codes: Mapping[str, NDArray[np.integer[Any]]]
    """The prior's rows as level numbers."""
    base: NDArray[np.float64]
    """What each row weighs before any table is known, adding up to one."""
    people: float
    """How many people the prior's rows stand for."""
    others: NDArray[np.bool_] | None = None
    """Of a stratum's prior rows, which are of other strata; None where none are, or where they are like its own now."""
    share: float = LEAST_LENT
    """What the rows of another model weigh together at least before any table is known, where some are lent."""
    worth: float = math.inf
    """For how many people's word the prior counts at most, as far as everybody's tables have told; see `stratum`."""
    weights: NDArray[np.float64] = field(init=False)
    """What each row weighed in the end of the last fit, those of another model after the prior's."""
    trusted: list[float] = field(default_factory=list, init=False)
    """For how many people's word the prior counts in each table."""
    _wrong: list[bool] = field(default_factory=list, init=False)
    """Whether the prior was found to be wrong about it, by what was known then."""
    _aims: list[Aim] = field(default_factory=list, init=False)
    _numbers: NDArray[np.float64] = field(init=False)
    _rows: Mapping[str, NDArray[np.integer[Any]]] = field(init=False)
    """Those of the next fit."""
    _start: NDArray[np.float64] = field(init=False)
    _telling: TiltedRows | None = field(default=None, init=False)
    """The rows of the last fit that matter for what is foretold, once they have been asked for."""
    _sample: Codes | None = field(default=None, init=False)
    """The rows of the last fit that stand beside each stratum's own, when they have been drawn."""
    _fitted: Mapping[str, NDArray[np.integer[Any]]] = field(init=False)
    """Those of the last fit."""

    def __post_init__(self) -> None:
        """Start from the prior."""
        self._numbers = np.zeros(0)
        self._rows, self._start = self.codes, self.base
        self.begin()

    def begin(self) -> None:
        """Take the rows for what they weigh before any table is known."""
        self._take(self._start)

    def _take(self, weights: NDArray[np.float64]) -> None:
        """Give the rows new weights, and forget what followed from the old ones."""
        self.weights, self._fitted = weights, self._rows
        self._telling = self._sample = None

    def lend(self, rows: Mapping[str, NDArray[np.integer[Any]]]) -> None:
        """Put rows of another model beside the prior's from the next fit on, in place of those lent before."""
        n = len(next(iter(rows.values()), ()))
        if not n:
            return
        self._take_in()
        share = self._lent
        self._rows = {k: np.concatenate([code, rows[k].astype(code.dtype)]) for k, code in self.codes.items()}
        self._start = np.concatenate([self.base * (1 - share), np.full(n, share / n)])

    def worthwhile(self, most: int) -> int:
        """How many rows of another model are worth the time that they take: all for `MOST_LENT`, or in proportion."""
        self._take_in()
        return math.ceil(most * min(1.0, max(FEWER, self._lent / MOST_LENT)))

    @property
    def _lent(self) -> float:
        """What the rows of another model weigh together before any table is known."""
        return max(self.share, MOST_LENT * self.wrong)

    @property
    def wrong(self) -> float:
        """The part of the tables about which the prior was found to be wrong."""
        return float(np.mean(self._wrong)) if self._wrong else 0.0

    @property
    def _most(self) -> float:
        """What a prior is worth in a table about which nothing has changed: two samples of one population."""
        return 1 / (1 / self.total + 1 / max(self.people, 1.0) + 1 / self.worth)

    @property
    def borrowed(self) -> float:
        """The part of the weight that rows of another model have now."""
        return max(0.0, 1 - float(self.weights[: self.base.size].sum()))

    @classmethod
    def of(cls, public: Public, **given: Any) -> TiltedLearner:
        """One that starts from the prior of some public facts."""
        rows = public.prior
        assert rows is not None  # noqa: S101 - whoever calls this has looked
        codes = {name: rows.codes[name] for name in public.schema.names}
        return cls(
            schema=public.schema, codes=codes, base=rows.weights / rows.people, people=rows.people,
            others=None if rows.parent is None else rows.lent,
            published=tuple(known for known in public.known if not known.of_rows), **given,
        )  # fmt: skip

    @property
    def model(self) -> TiltedRows:
        """The rows with the weights that were fitted last."""
        return replace(self._weighed, total=self.total, off=self._off(), made=self.borrowed)

    @property
    def _weighed(self) -> TiltedRows:
        """The same without what is said of the prior."""
        return TiltedRows(self.schema, self._fitted, self.weights)

    def _off(self) -> dict[str, float]:
        """How far the prior was off in each column, by what is known now."""
        names, sizes = self.schema.names, {name: self.schema.size(name) for name in self.schema.names}
        before = np.zeros(self.weights.size)  # rows of another model come after the prior's
        before[: self.base.size] = self.base
        shares = zip(*columns_counted(self._fitted, sizes, names, before, self.weights), strict=True)
        apart = [0.5 * float(np.abs(one - other).sum()) for one, other in shares]
        return dict(zip(names, apart, strict=True))

    def fit(self, *, last: bool = False) -> Program[None]:
        """Take in the tables that are new, then tilt."""
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
        """What the tables that are new teach about the prior."""
        new = self.tables[len(self._aims) :]
        total, most = self.total, self._most
        for table, foretold in zip(new, self.marginals([table.clique for table in new]), strict=True):
            self.trusted.append(trust(table, foretold, total, most))
            self._wrong.append(self.trusted[-1] < WRONG * most)
            spread = table.sigma * math.sqrt(self.trusted[-1])
            counted = None if table.counted is None else table.counted.ravel()
            values = table.values.ravel().astype(np.float64)
            self._aims.append(Aim(table.clique, values, spread, counted))

    def liken(self) -> Program[None]:
        """Make a stratum's rows of other strata like its own: once, and before rows of another model are lent."""
        others, self.others = self.others, None
        if others is None:
            return
        problem = likened(self.schema, self.codes, self.base, others, self.people)
        if problem is not None:
            found = yield from work(TILTER, problem)
            self.base = self.base.copy()
            self.base[others] = found.weights * self.base[others].sum()
        self._start = self.base
        self.begin()

    def _public(self) -> list[Aim]:
        """What is public: it is not the prior that it is weighed against."""
        tables = believed(self.published, self.tables, self.total)
        return [Aim(t.clique, t.values.ravel().astype(np.float64), t.sigma) for t in tables]

    def marginals(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """The probabilities of some columns' cells with the weights that were fitted last."""
        if self._telling is None:
            self._telling = self._weighed.heaviest(NEGLIGIBLE)
        return self._telling.marginals(cliques)

    def stratum(self, public: Public, prior: float) -> Program[TiltedLearner]:
        """A stratum's own prior rows, tilted as everybody's were, beside everybody's; `prior` is not needed.

        The more tables of everybody's the prior was wrong about, the more everybody's rows weigh. Where it was wrong
        about most, it counts for no more people in a stratum's tables than it did in the table in the middle.
        """
        rows = public.prior
        assert rows is not None and rows.parent is not None  # noqa: S101, PT018 - Public.within made them
        mine = self.weights[: self.base.size]
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
        some = {name: code[::step] for name, code in self._sample.items()}
        learner.lend(shaped(some, len(range(0, EVERYBODY, step)), public.schema))
        learner.begin()
        return learner

    def _worth(self) -> float:
        """Where the prior was wrong about most tables, the middle of what it was worth in them; otherwise no limit."""
        return float(np.median(self.trusted)) if self.wrong > 0.5 else math.inf

    def given(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> TiltedRows:
        """The rows that have these levels."""
        return self.model.given(schema, levels)


def trust(table: Measured, foretold: NDArray[np.float64], total: float, most: float) -> float:
    """For how many people's word the prior counts in a table, by the table's paid answer; at most `most`.

    Two samples of N and n people differ in a cell of share p by a variance of p (1 - p) (1/N + 1/n): the prior is
    worth 1 / (1/N + 1/n) people where nothing has changed, and fewer where the answer is farther away than that.
    What noise is expected to make of the distance is taken off. Where noise alone is as far away with a probability
    of more than `CHANCE`, nothing is taken off the prior's worth: a table of two cells is often off by three
    standard deviations in one of hundreds of strata.
    """
    from scipy.special import chdtri

    counted = np.ones(foretold.shape, dtype=bool) if table.counted is None else table.counted
    off = (table.values - total * foretold)[counted]
    spread = total**2 * float((foretold * (1 - foretold))[counted].sum())
    far = float(off @ off)
    if not off.size or far <= table.sigma**2 * float(chdtri(off.size, CHANCE)):
        return most
    return min(most, max(1.0, spread / (far - table.sigma**2 * off.size)))


def drawn(model: TableModel, n: int, schema: Schema) -> Codes:
    """About n rows of a model in the columns of a schema, the same ones each time."""
    return shaped(sampled(model, n), n, schema)


def sampled(model: TableModel, n: int) -> Codes:
    """Rows of a model, the same ones each time."""
    return model.sample(n, np.random.default_rng(0))


def shaped(rows: Codes, n: int, schema: Schema) -> Codes:
    """These n rows in the columns of a schema, without those that its rules forbid.

    Columns that they do not have, such as levels that a stratum merges, have each of their levels in turn.
    """
    rows = {k: rows[k] if k in rows else np.arange(n) % schema.size(k) for k in schema.names}
    bad = broken(schema, rows) if schema.rules else np.zeros(n, dtype=bool)
    return {name: code[~bad] for name, code in rows.items()}
