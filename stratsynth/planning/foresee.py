"""The plan of a fit: the mechanism is run on simulated answers, and what it asked is summed up by stratum.

Everything comes from the schema, the public shares and the declared size; `planning.stratum` says what is expected of
each stratum.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Budget
from stratsynth.accounting.kinds import by_kind
from stratsynth.accounting.prices import prices
from stratsynth.mechanisms import Mechanism, Prepared, prepare
from stratsynth.mechanisms.prior_rows import PriorSource
from stratsynth.planning.rehearsal import check_charges, check_effort, rehearse
from stratsynth.planning.rows import RowsPlan, rows_plan
from stratsynth.planning.stratum import Foreseen, StratumPlan
from stratsynth.schema.weight_names import weight_warnings
from stratsynth.stratified.weighted import Weighted

if TYPE_CHECKING:
    from stratsynth.schema import Schema
    from stratsynth.strata import StratumPath
    from stratsynth.weights import Weights


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
        from stratsynth.planning.page import plan_page
        from stratsynth.report.text import render

        return render(plan_page(self))

    def _repr_html_(self) -> str:
        """For a notebook."""
        from stratsynth.planning.page import plan_page
        from stratsynth.report.notebook import render

        return render(plan_page(self))

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
    account, answers, strata = found.account, found.answers, Foreseen(prepared, found)
    allot, spending, held = account.allot, account.spending, rows_plan(prepared, found, engine)
    check_charges(spending.charges)
    paths: list[StratumPath] = [()] if layout is None else [(stratum,) for stratum in layout.strata]
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
        tuple(strata.stratum(path) for path in paths),
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
        strata.pooled(paths[0]),
        prepared.worst is not None,
        seconds=check_effort(found.seconds),
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
    if found.rows is None:
        return dict(found.stated)
    people = found.rows.people
    worth = people if size is None else 1 / (1 / size + 1 / people)
    return {**(prepared.prior_stated or {}), "worth_at_most": round(worth)}


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
