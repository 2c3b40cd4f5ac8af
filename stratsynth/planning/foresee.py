"""The plan of a fit: the mechanism is run on simulated answers, and what it asked is summed up by stratum.

Everything comes from the schema, the public shares and the declared size. Expected errors are those of the
noise alone: the mean size of the noise in a cell, sigma sqrt(2 / pi), relative to the cell's mean count, which
is the public size over the number of cells; over several tables of a kind, the median. Where a stratum is asked for
no table of k columns but for larger ones, its k-way counts are sums over their cells, each from the best table for it.
A stratum that starts from a model of everybody has that model's error where it measures nothing of a kind.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from stratsynth.accounting.budget import Budget
from stratsynth.accounting.charges import Spending
from stratsynth.accounting.prices import by_kind, prices
from stratsynth.mechanisms import Mechanism, Prepared, prepare
from stratsynth.mechanisms.prior_rows import PriorSource
from stratsynth.planning.effort import check_effort, seconds
from stratsynth.planning.rehearsal import rehearse, size_of
from stratsynth.planning.rows import RowsPlan, rows_plan
from stratsynth.schema.weight_names import weight_warnings
from stratsynth.strata import StratumPath, label
from stratsynth.stratified.weighted import Weighted

if TYPE_CHECKING:
    from stratsynth.accounting.account import Account
    from stratsynth.accounting.charges import Charge
    from stratsynth.questions.handler import Seen
    from stratsynth.schema import Schema
    from stratsynth.weights import Weights

NOISE_SIZE = math.sqrt(2 / math.pi)
"""The mean absolute value of Gaussian noise, in units of sigma."""


@dataclass(frozen=True)
class StratumPlan:
    """What one stratum will be asked, and how noisy the answers will be."""

    stratum: str
    """Its levels joined by `|`; empty for everybody."""
    size: int
    """Its public size in records: declared size times public share."""
    size_low: int | None
    size_high: int | None
    """The bounds of its size, from those of its share; None where the source of the weights has none."""
    one_way: bool
    """Whether it is given one-way tables only, as a small group may be."""
    epsilon: float | None
    """What its own questions cost at the budget's delta, those asked of everybody included."""
    questions: int
    rounds: int
    """The number of choices of what to measure; about that number, where the answers decide."""
    tables: int
    """Noisy tables it will release."""
    sigma: float | None
    """The median noise of a cell."""
    oneway_error: float | None
    """Expected relative error of a one-way count; None if nothing is asked that tells it."""
    twoway_error: float | None
    """Expected relative error of a two-way count; None if nothing is asked that tells it."""
    megabytes: float
    """Memory for exact and noisy answers."""
    verdict: str
    small: str
    """Why the policy for small groups finds it small; empty where it does not."""


@dataclass(frozen=True)
class Plan:
    """The whole of a fit, foreseen."""

    mechanism: str
    epsilon: float
    delta: float
    neighbours: str
    currency: str
    spent: float
    """What will be charged, in the currency: along a path, the dearest stratum of each split."""
    reserved: float
    prices: dict[str, float | None]
    """Epsilon if a record is added or removed, moves between strata, or is exchanged, within its stratum or at all."""
    strata: tuple[StratumPlan, ...]
    weights: dict[str, Any]
    """Where the shares come from, as the certificate will say."""
    weights_sigma: float | None
    """For private weights: the noise in the count of one cell of the crossing, in people."""
    merged: tuple[dict[str, Any], ...]
    """The strata that are merges, what of, and why."""
    policy: dict[str, Any]
    """The policy for small groups and its threshold."""
    budgets: dict[str, float] | None
    """Each stratum's own epsilon, where strata have budgets of their own; None where all get the whole."""
    unprotected: tuple[str, ...]
    """The names of what will be disclosed without noise."""
    unit: str = "record"
    """What is protected: a record, or the column that tells those apart who may have several."""
    kinds: dict[str, dict[str, float]] = field(default_factory=dict)
    """For each kind of question: the number of charges, and their largest price factor under replace-one."""
    everybody_first: bool = False
    """Whether everybody together gets a model, from which strata start with the rest of the budget."""
    adaptive: bool = False
    """Whether answers decide what is asked; other steps are then priced for the dearest course."""
    account: dict[str, Any] | None = None
    """What the ledger will say of it, and the largest epsilon that fits; None where no ledger is named."""
    seconds: float = 0.0
    """About how long the fit will take on one core, right within a factor of a few."""
    rows: RowsPlan | None = None
    """How the rows will be held, and what going through them takes."""
    rows_megabytes: float = 0.0
    """About how much memory the rows will take."""
    public_columns: tuple[str, ...] = ()
    """For neighbours `attribute`: the columns that are not protected."""
    code_lists: tuple[dict[str, Any], ...] = ()
    """At which level code lists will be counted, and why."""
    row_weight: dict[str, Any] | None = None
    """Which column says what a row counts, the largest weight, and what that costs; None where every row counts 1."""
    prior: dict[str, Any] | None = None
    """What the fit starts from, and for how many people's word it counts at most; None without a prior."""
    warnings: tuple[str, ...] = ()
    """What to look at before anything is spent."""

    def __repr__(self) -> str:
        """The mechanism, the budget and the number of strata."""
        strata = f"{len(self.strata)} strata" if len(self.strata) > 1 else "everybody together"
        return f"Plan({self.mechanism}; epsilon {self.epsilon:g}, delta {self.delta:g}; {strata})"

    def __str__(self) -> str:
        """As `stratsynth plan` prints it."""
        from stratsynth.planning.text import describe

        return describe(self)

    def _repr_html_(self) -> str:
        """For a notebook."""
        from stratsynth.planning.text import in_html

        return in_html(self)

    def to_dict(self) -> dict[str, Any]:
        """For programs; an error that is infinite is None there, since JSON has no word for it."""
        plain = asdict(self)
        for stratum in plain["strata"]:
            stratum.update({k: None for k, v in stratum.items() if v == math.inf})
        return plain


def plan(
    mechanism: Mechanism[Any] | str,
    schema: Schema,
    budget: Budget,
    *,
    declared_size: int,
    engine: str = "auto",
    prior: PriorSource | None = None,
    weights: Weights | None = None,
) -> Plan:
    """Run a mechanism on simulated answers. Reads no data and spends nothing.

    Args:
        mechanism: What would be fitted, or the name of an installed mechanism.
        schema: The public schema.
        budget: What the fit would spend.
        declared_size: About how many records there are; where they have weights, the weights' total.
        engine: What would hold the rows, as for `open_table`; `auto` decides as it does for a file.
        prior: What the fit would start from: a `Prior`. Its rows, which are public, are read.
        weights: Public shares of groups that are no strata, as for `fit`.

    Returns:
        Noise, expected error and a verdict for each stratum, and what would be charged.

    Raises:
        UsageError: Whatever a fit would refuse of schema, budget and settings.
    """
    how = mechanism if weights is None else Weighted(mechanism, weights)
    prepared = prepare(how, schema, budget, declared_size, prior)
    budget = prepared.budget
    mechanism, layout, found = prepared.mechanism, prepared.strata, rehearse(prepared)
    account, answers, model = found.account, found.answers, found.model
    allot, spending, held = account.allot, account.spending, rows_plan(prepared, found, engine)
    paths: list[StratumPath] = [()] if layout is None else [(stratum,) for stratum in layout.strata]
    seen, charges = _Along(answers.seen), _Along(spending.charges)
    noise = [t for s in answers.seen if not s.path for t in s.cliques] if layout and layout.weights.asked else []
    return Plan(
        mechanism.title,
        budget.epsilon,
        allot.delta,
        str(budget.neighbours),
        str(allot.currency),
        float(spending.spent()),
        allot.amount,
        prices(spending, budget, allot, prepared.worst),
        tuple(
            _stratum(path, prepared, seen, charges, account, "" if model is None else model.foretell(path))
            for path in paths
        ),
        _weights(prepared),
        noise[0][2] if noise else None,
        tuple(layout.merged()) if layout else (),
        {"small": layout.declared.small, "threshold": layout.declared.threshold}
        if layout
        else {"small": "keep", "threshold": None},
        {s.label: epsilon for s, epsilon in layout.epsilons.items()} if layout and layout.own_budgets else None,
        tuple(prepared.unprotected),
        account.budget.unit,
        by_kind(spending.charges),
        bool(paths[0]) and _pooled(seen, paths[0]),
        prepared.worst is not None,
        seconds=check_effort(seconds(prepared, found)),
        rows=held,
        rows_megabytes=held.megabytes,
        public_columns=budget.public,
        code_lists=tuple(each.to_dict() for each in prepared.code_lists),
        row_weight=_row_weight(schema),
        prior=_prior(prepared),
        warnings=tuple(weight_warnings(schema)),
    )


def _weights(prepared: Prepared) -> dict[str, Any]:
    """Where shares come from, of strata or, with `by`, of groups that are none."""
    layout = prepared.drawn
    if layout is None:
        return {"source": "none", "citation": None}
    return {**layout.weights.describe(), **({} if prepared.strata is not None else {"by": list(layout.by)})}


def _prior(prepared: Prepared) -> dict[str, Any] | None:
    """What the certificate will say of the prior, and the most that it can be worth: what is assumed of it."""
    found, size = prepared.prior, prepared.public.size
    if found is None:
        return None
    lacking = {"without_groups": list(prepared.lacking)} if prepared.lacking else {}
    if found.rows is None:
        return dict(found.stated)
    people = found.rows.people
    worth = people if size is None else 1 / (1 / size + 1 / people)
    return {**found.stated, **lacking, "worth_at_most": round(worth)}


def _row_weight(schema: Schema) -> dict[str, Any] | None:
    """What weighting costs: the noise of a weighted total beside that of counting rows, for the same budget.

    A total is the mean weight times as large as a count, and its noise the largest weight times as wide. So relative to
    what is measured, noise is the largest over the mean weight times that of the unweighted sample.
    """
    weight = schema.row_weight
    if weight.column is None:
        return None
    relative = None if weight.mean is None else weight.most / weight.mean
    return {"column": weight.column, "max": weight.most, "noise_factor": weight.most, "relative_noise_factor": relative}


class _Placed(Protocol):
    """What is asked somewhere."""

    @property
    def path(self) -> StratumPath:
        """Where."""


T = TypeVar("T", bound=_Placed)


class _Along(Generic[T]):
    """What has a path, found by a path of at most one stratum without a look at all other strata's."""

    def __init__(self, items: Iterable[T]) -> None:
        """Sort the items by the first stratum of their paths."""
        self._by: dict[StratumPath, list[tuple[int, T]]] = {}
        for number, item in enumerate(items):
            self._by.setdefault(item.path[:1], []).append((number, item))

    def of(self, path: StratumPath) -> list[T]:
        """The items of everybody and of the path and below it, in order; all of them for the empty path."""
        among = [self._by.get((), []), self._by.get(path, [])] if path else self._by.values()
        return [item for _, item in sorted(itertools.chain(*among), key=operator.itemgetter(0))]

    @property
    def everybody(self) -> list[T]:
        """Those of the empty path."""
        return [item for _, item in self._by.get((), [])]


def _stratum(
    path: StratumPath, prepared: Prepared, seen: _Along[Seen], charges: _Along[Charge], account: Account, said: str
) -> StratumPlan:
    """What is asked of a path, of everybody above it and of everybody below it; `said` is the model's own verdict."""
    layout, declared_size = prepared.strata, prepared.public.size or 0
    mine = seen.of(path)
    below = [s for s in mine if s.path[: len(path)] == path]
    own = Spending(account.budget.neighbours, charges.of(path))
    spent = replace(account.allot, amount=float(own.spent()))
    tables = [table for s in below for table in s.cliques]
    size = size_of(path, prepared)
    pooled = bool(path) and _pooled(seen, path)
    one, two = (_error(tables, size, k, prepared.public.schema) for k in (1, 2))
    if pooled:  # what it does not measure stays as in everybody's model
        whole = [_error(_everybody(seen, path), float(declared_size), k, prepared.public.schema) for k in (1, 2)]
        one, two = (mine if mine is not None else theirs for mine, theirs in zip((one, two), whole, strict=True))
    alone = not pooled and prepared.worst is not None and one is not None and not any(s.kind == "choose" for s in mine)
    free = [name for name in prepared.public.schema.names if not path or name not in path[0].columns]
    own_words = _moved(one, {column for clique, _, _ in tables for column in clique}, len(free)) if pooled else ""
    ends = layout.resolved.ranges[path[0]] if layout and path and layout.resolved.ranges else None
    return StratumPlan(
        label(path),
        round(size),
        None if ends is None else math.floor(declared_size * ends[0]),
        None if ends is None else math.ceil(declared_size * ends[1]),
        bool(layout and path and layout.plainly(path[0])),
        prices(own, account.budget, spent)[str(account.budget.neighbours)],
        len(mine),
        sum(s.kind == "choose" for s in below),
        len(tables),
        median(sigma for _, _, sigma in tables) if tables else None,
        one,
        two,
        _megabytes(mine),
        said or own_words or verdict(one) + ("; columns alone, nothing of how they go together" if alone else ""),
        layout.small.get(path[0], "") if layout and path else "",
    )


def _pooled(seen: _Along[Seen], path: StratumPath) -> bool:
    """Whether everybody together is asked for more than the sizes of the strata: there is a model to start from."""
    return bool(_everybody(seen, path))


def _everybody(seen: _Along[Seen], path: StratumPath) -> list[tuple[tuple[str, ...], int, float]]:
    """The tables of everybody's model."""
    by = set(path[0].columns)
    return [table for s in seen.everybody for table in s.cliques if not set(table[0]) <= by]


def _moved(error: float | None, measured: set[str], columns: int) -> str:
    """The verdict on a stratum that starts from a model of everybody."""
    if not measured:
        return "as everybody: too small to measure how it differs"
    return f"{verdict(error)}; about {len(measured)} of {columns} columns measured here, others as everybody"


def _megabytes(seen: Sequence[Seen]) -> float:
    """Exact and noisy tables; those of candidates are kept from round to round, beside the model's of one round."""
    candidates = {item for s in seen for item in s.candidates}
    cells = 2 * sum(n for s in seen for _, n, _ in s.cliques) + sum(n for _, n in candidates)
    return 8 * (cells + max((s.cells for s in seen if s.candidates), default=0)) / 2**20


def _error(
    tables: Sequence[tuple[tuple[str, ...], int, float]], size: float, k: int, schema: Schema
) -> float | None:  # fmt: skip
    """The median, over tables of k columns, of the noise in a cell relative to its mean count.

    Without such tables, over the sets of k columns within larger ones: a count there is a sum of cells.
    """
    own = [NOISE_SIZE * sigma * cells for clique, cells, sigma in tables if len(clique) == k]
    if not own:
        summed: dict[tuple[str, ...], float] = {}
        for clique, cells, sigma in tables:
            for part in combinations(sorted(clique), k):
                inside = min(cells, math.prod(schema.size(name) for name in part))
                noise = NOISE_SIZE * sigma * math.sqrt(cells * inside)
                summed[part] = min(noise, summed.get(part, math.inf))
        own = list(summed.values())
    if not own:
        return None
    return median(own) / size if size > 0 else math.inf


def verdict(error: float | None) -> str:
    """In words, what one-way counts of a stratum are good for."""
    if error is None:
        return "no one-way tables: see the mechanism"
    for most, words in (
        (0.03, "good"),
        (0.1, "fair: margins hold, details blur"),
        (0.5, "poor: only large levels show"),
    ):
        if error <= most:
            return words
    return "noise: too small on its own; merge it, or spend more"
