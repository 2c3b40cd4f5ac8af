"""The plan of a fit: the mechanism is run on simulated answers, and what it asked is summed up by stratum.

Everything comes from the schema, the public shares and the declared size. Expected errors are those of the
noise alone: the mean size of the noise in a cell, sigma sqrt(2 / pi), relative to the cell's mean count, which
is the public size over the number of cells; over several tables of a kind, the median.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Budget
from stratsynth.accounting.charges import Spending
from stratsynth.accounting.ledger import ProcessLedger, Request
from stratsynth.accounting.prices import check_allotment, prices
from stratsynth.mechanism import Mechanism, Public, title
from stratsynth.strata import Path, Stratum, crossing, label
from stratsynth.stratified import Stratified

if TYPE_CHECKING:
    from stratsynth.accounting.account import Account
    from stratsynth.driver.simulated import Seen, SimulatedAnswers
    from stratsynth.schema import Schema

NOISE_SIZE = math.sqrt(2 / math.pi)
"""The mean absolute value of Gaussian noise, in units of sigma."""


@dataclass(frozen=True)
class StratumPlan:
    """What one stratum will be asked, and how noisy the answers will be."""

    stratum: str
    """Its levels joined by `|`; empty for everybody."""
    size: int
    """Its public size: declared size times public share."""
    epsilon: float | None
    """What its own questions cost at the budget's delta, those asked of everybody included."""
    questions: int
    tables: int
    """Noisy tables it will release."""
    sigma: float | None
    """The median noise of a cell."""
    oneway_error: float | None
    """Expected relative error of a one-way count; None if no such table is asked for."""
    twoway_error: float | None
    """Expected relative error of a two-way count; None if no such table is asked for."""
    megabytes: float
    """Memory for exact and noisy answers."""
    verdict: str


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
    """Epsilon if a record is added or removed, moves between strata, or is exchanged."""
    strata: tuple[StratumPlan, ...]

    def to_dict(self) -> dict[str, Any]:
        """For programs; an error that is infinite is None there, since JSON has no word for it."""
        plain = asdict(self)
        for stratum in plain["strata"]:
            stratum.update({k: None for k, v in stratum.items() if v == math.inf})
        return plain


def plan(mechanism: Mechanism[Any], schema: Schema, budget: Budget, *, declared_size: int) -> Plan:
    """Run a mechanism on simulated answers. Reads no data and spends nothing."""
    strata, shares = _strata(mechanism, schema)
    account, answers, model = _simulate(mechanism, schema, budget, declared_size, shares)
    allot, spending = account.allot, account.spending
    return Plan(
        title(mechanism),
        budget.epsilon,
        allot.delta,
        str(budget.neighbours),
        str(allot.currency),
        float(spending.spent()),
        allot.amount,
        prices(spending, budget, allot),
        tuple(
            _stratum(path, _size(path, declared_size, shares), answers.seen, account, _noise(model, path))
            for path in strata
        ),
    )


def moments(mechanism: Mechanism[Any], schema: Schema, budget: Budget, *, declared_size: int) -> int:
    """How many times a fit will ask, strata together: what a progress bar counts to."""
    _, shares = _strata(mechanism, schema)
    return _simulate(mechanism, schema, budget, declared_size, shares)[1].moments


def _simulate(
    mechanism: Mechanism[Any], schema: Schema, budget: Budget, declared_size: int, shares: Mapping[Stratum, float]
) -> tuple[Account, SimulatedAnswers, Any]:
    import numpy as np

    from stratsynth.driver.lockstep import run
    from stratsynth.driver.simulated import SimulatedAnswers

    public = Public(schema, declared_size, budget.neighbours)
    allot = mechanism.price(public, budget)
    check_allotment(allot, budget)
    account = ProcessLedger().open(Request("", title(mechanism), budget, allot, 0))
    answers = SimulatedAnswers(account, lambda path: _size(path, declared_size, shares), np.random.default_rng(0))
    model = run(mechanism.steps(public, allot, np.random.default_rng(0)), schema, answers)
    return account, answers, model


def _noise(model: Any, path: Path) -> str:
    """In words, the noise to expect in the means of a path; nothing where there are none."""
    from stratsynth.models import Estimate

    if not isinstance(model, Estimate):
        return ""
    part = dict(model.walk())[path]
    found = zip(part.columns, part.noise, part.status(), strict=True)
    return "noise in means: " + ", ".join(
        f"{name} {'not estimable' if status == 'not_estimable' else f'{noise:.2g}'}" for name, noise, status in found
    )


def _size(path: Path, declared_size: int, shares: Mapping[Stratum, float]) -> float:
    """The public size of a path: declared size times shares."""
    return declared_size * math.prod(shares.get(stratum, 1.0) for stratum in path)


def _strata(mechanism: Mechanism[Any], schema: Schema) -> tuple[list[Path], dict[Stratum, float]]:
    """The paths to report on, and the shares that are known."""
    if not isinstance(mechanism, Stratified):
        return [()], {}
    strata = crossing(schema, mechanism.by)
    return [(stratum,) for stratum in strata], dict(mechanism.weights.resolve(strata).shares)


def _stratum(path: Path, size: float, seen: Sequence[Seen], account: Account, means: str) -> StratumPlan:
    """What is asked of a path, of everybody above it and of everybody below it."""

    def concerns(asked: Path) -> bool:
        return asked[: len(path)] == path or path[: len(asked)] == asked

    mine = [s for s in seen if concerns(s.path)]
    own = Spending(account.budget.neighbours, [c for c in account.spending.charges if concerns(c.path)])
    spent = replace(account.allot, amount=float(own.spent()))
    tables = [table for s in mine for table in s.cliques]
    one, two = (_error([t for t in tables if len(t[0]) == k], size) for k in (1, 2))
    cells = sum(s.cells for s in mine)
    return StratumPlan(
        label(path),
        round(size),
        prices(own, account.budget, spent)[str(account.budget.neighbours)],
        len(mine),
        len(tables),
        median(sigma for _, _, sigma in tables) if tables else None,
        one,
        two,
        2 * 8 * cells / 2**20,
        means or verdict(one),
    )


def _error(tables: Sequence[tuple[tuple[str, ...], int, float]], size: float) -> float | None:
    """The median, over tables, of the noise in a cell relative to its mean count."""
    if not tables:
        return None
    return median(NOISE_SIZE * sigma * cells / size for _, cells, sigma in tables) if size > 0 else math.inf


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
