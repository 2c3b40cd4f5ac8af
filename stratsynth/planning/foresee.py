"""Plan of a fit: the mechanism is run on simulated answers, and its questions are summed up by stratum.

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
from stratsynth.planning.linked import linked_plans, linked_words
from stratsynth.planning.rehearsal import check_charges, check_effort, rehearse
from stratsynth.planning.rows import RowsPlan, rows_plan
from stratsynth.planning.stratum import Foreseen, StratumPlan
from stratsynth.release.coverage import covered, source_of_unmeasured, unmeasured_line
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.schema.linked import LinkedSchema
from stratsynth.schema.weight_names import weight_warnings
from stratsynth.schema.wide_bins import wide_bins
from stratsynth.stratified.weighted import Weighted

if TYPE_CHECKING:
    from stratsynth.certificate import MeasuredStated
    from stratsynth.schema import Schema
    from stratsynth.strata import StratumPath
    from stratsynth.weights import Weights


@dataclass(frozen=True)
class Plan:
    """Plan of one fit: charges, prices, and the noise expected in each stratum."""

    mechanism: str
    epsilon: float
    delta: float
    neighbours: str
    currency: str
    spent: float
    """Amount that will be charged, in the currency: along a path, the dearest stratum of each split."""
    reserved: float
    prices: dict[str, float | None]
    """Epsilon if a record is added or removed, moves between strata, or is exchanged, within its stratum or at all."""
    strata: tuple[StratumPlan, ...]
    weights: dict[str, Any]
    """Source of the shares, in the certificate's form."""
    weights_sigma: float | None
    """Noise scale of one count of the crossing, in records, with private weights; None with public ones."""
    merged: tuple[dict[str, Any], ...]
    """Strata that are merges: name, levels and reason of each."""
    policy: dict[str, Any]
    """Policy for small groups, and its threshold."""
    budgets: dict[str, float] | None
    """Epsilon of each stratum, by label; None where all get the whole."""
    unprotected: tuple[str, ...]
    """Names of all facts that are disclosed without noise."""
    unit: str = "record"
    """Unit of privacy: `record`, or the column whose equal values make records one unit."""
    kinds: dict[str, dict[str, float]] = field(default_factory=dict)
    """Number of charges and their largest price factor under replace-one, by kind of question."""
    everybody_first: bool = False
    """True if a model of everybody is fitted first, from which strata start with the rest of the budget."""
    adaptive: bool = False
    """True if answers decide which questions are asked; other steps are then priced for the dearest course."""
    account: dict[str, Any] | None = None
    """Account after this fit, and the largest epsilon that fits; None where no ledger is named."""
    seconds: float = 0.0
    """Estimated duration of the fit on one core, in seconds, right within a factor of a few."""
    rows: RowsPlan | None = None
    """Engine that holds the rows, with disk space and passes."""
    rows_megabytes: float = 0.0
    """Estimated memory for the rows, in MB."""
    public_columns: tuple[str, ...] = ()
    """Columns that are not protected, for neighbours `attribute`."""
    code_lists: tuple[dict[str, Any], ...] = ()
    """Level at which each code list will be counted, and the reason."""
    bands: tuple[dict[str, Any], ...] = ()
    """Bands in which each column of smooth numbers will be counted, and the reason."""
    row_weight: dict[str, Any] | None = None
    """Column of the row weights, the largest weight, and the noise factors; None where every row counts 1."""
    prior: dict[str, Any] | None = None
    """Prior of the fit, and the largest number of records that its rows can be worth; None without a prior."""
    measured: MeasuredStated | None = None
    """Columns and pairs of columns that noisy tables will cover, in the certificate's form; None without tables."""
    first: dict[str, Any] = field(default_factory=dict)
    """First question of the fit, its price and noise; or the reason why it has none."""
    first_words: str = ""
    """Sentence on the first question."""
    sums: dict[str, Any] = field(default_factory=dict)
    """Clipped sums, their prices and noise, or the reason why there are none; empty where no column declares a clip."""
    sums_words: str = ""
    """Sentence on the clipped sums; empty where no column declares a clip."""
    bin_sums: dict[str, Any] = field(default_factory=dict)
    """Questions about numbers within bins, or the reason why there are none; empty where no column declares any."""
    bin_sums_words: str = ""
    """Sentence on them; empty where no column declares any."""
    linked_words: str = ""
    """Sentences on a fit of two linked tables; empty for one table."""
    by_tables: dict[str, Any] = field(default_factory=dict)
    """Tables of everybody by the strata's columns, with price and noise; empty without any."""
    by_tables_words: str = ""
    """Sentence on them; empty without any."""
    warnings: tuple[str, ...] = ()
    """Warnings to read before anything is spent."""

    def __repr__(self) -> str:
        """Return one line: Plan(mechanism; epsilon, delta; number of strata)."""
        strata = f"{len(self.strata)} strata" if len(self.strata) > 1 else "everybody together"
        return f"Plan({self.mechanism}; epsilon {self.epsilon:g}, delta {self.delta:g}; {strata})"

    def __str__(self) -> str:
        """Return the plan as text for a terminal, as `stratsynth plan` prints it."""
        from stratsynth.planning.page import plan_page
        from stratsynth.report.text import render

        return render(plan_page(self))

    def _repr_html_(self) -> str:
        """Return the plan as an HTML fragment for a notebook, with the tables of budget, needs and strata."""
        from stratsynth.planning.page import plan_page
        from stratsynth.report.notebook import render

        return render(plan_page(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan's fields as a dict of JSON values; a stratum's infinite number becomes None."""
        plain = asdict(self)
        plain["measured"] = None if self.measured is None else self.measured.to_dict()
        for stratum in plain["strata"]:
            stratum.update({k: None for k, v in stratum.items() if v == math.inf})
        return plain


def plan(
    mechanism: Mechanism[Any] | str,
    schema: Schema | LinkedSchema,
    budget: Budget,
    *,
    declared_size: int,
    engine: str = "auto",
    prior: PriorSource | None = None,
    weights: Weights | None = None,
) -> Plan:
    """Return the `Plan` of a fit by running a mechanism on simulated answers. Reads no private data and spends nothing.

    Args:
        mechanism: What would be fitted, or the name of an installed mechanism.
        schema: The public schema; of two linked tables a `LinkedSchema`.
        budget: What the fit would spend.
        declared_size: About how many records there are; where they have weights, the weights' total.
        engine: What would hold the rows, as for `open_table`; `auto` decides as it does for a file.
        prior: The `PriorSource` that the fit would start from, such as a `Prior`. Its rows, which are public, are read.
        weights: Public shares of groups that are no strata, as for `fit`.

    Returns:
        Noise, expected error and a verdict for each stratum, and what would be charged.

    Raises:
        UsageError: Whatever a fit would refuse of schema, budget and settings.
    """
    how = mechanism if weights is None else Weighted(mechanism, weights)
    schema = schema.counted if isinstance(schema, LinkedSchema) else schema
    prepared = prepare(how, schema, budget, declared_size, prior)
    budget = prepared.budget
    mechanism, layout, found = prepared.mechanism, prepared.strata, rehearse(prepared)
    account, answers, strata = found.account, found.answers, Foreseen(prepared, found)
    allot, spending, held = account.allot, account.spending, rows_plan(prepared, found, engine)
    check_charges(spending.charges)
    paths: list[StratumPath] = [()] if layout is None else [(stratum,) for stratum in layout.strata]
    known = covered(
        prepared, ((s.path, t[0]) for s in answers.seen for t in s.cliques), {answers.first(path) for path in paths}
    )
    linked = linked_words(prepared)
    unmeasured = "" if known is None else unmeasured_line(known.unmeasured, source_of_unmeasured(prepared))
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
        linked_plans(prepared, found) or tuple(strata.stratum(path) for path in paths),
        _weights(prepared),
        noise[0][2] if noise else None,
        tuple(layout.merged()) if layout else (),
        {"small": layout.declared.small, "threshold": layout.declared.threshold}
        if layout
        else {"small": "keep", "threshold": None},
        {s.label: epsilon for s, epsilon in layout.epsilons.items()} if layout and layout.own_budgets else None,
        tuple(prepared.unprotected),
        schema.linked.names[0] if isinstance(schema, CountedTables) else account.budget.unit,
        by_kind(spending.charges),
        strata.pooled(paths[0]),
        prepared.worst is not None,
        seconds=check_effort(found.seconds),
        rows=held,
        rows_megabytes=held.megabytes,
        public_columns=budget.public,
        code_lists=tuple(each.to_dict() for each in prepared.code_lists),
        bands=tuple(each.to_dict() for each in prepared.bands),
        row_weight=None if linked else _row_weight(schema),
        linked_words=linked,
        prior=_prior(prepared),
        measured=None if known is None else known.stated(),
        first=prepared.first.to_dict(),
        first_words=str(prepared.first),
        sums={} if prepared.beside.sums is None else prepared.beside.sums.to_dict(),
        sums_words="" if prepared.beside.sums is None else str(prepared.beside.sums),
        bin_sums={} if prepared.beside.bin_sums is None else prepared.beside.bin_sums.to_dict(),
        bin_sums_words="" if prepared.beside.bin_sums is None else str(prepared.beside.bin_sums),
        by_tables={} if prepared.beside.by_tables is None else prepared.beside.by_tables.to_dict(),
        by_tables_words="" if prepared.beside.by_tables is None else str(prepared.beside.by_tables),
        warnings=(
            *weight_warnings(schema),
            *_without_mean(schema),
            *([unmeasured] if unmeasured else []),
            *wide_bins(schema),
        ),
    )


def _weights(prepared: Prepared) -> dict[str, Any]:
    """Return a dict for a prepared fit's plan on groups' shares: `source`, `citation`, and more that the weights state.

    If the groups are no strata, `by` has their columns; without groups, source is "none" and citation None.
    """
    layout = prepared.drawn
    if layout is None:
        return {"source": "none", "citation": None}
    return {**layout.weights.describe(), **({} if prepared.strata is not None else {"by": list(layout.by)})}


def _prior(prepared: Prepared) -> dict[str, Any] | None:
    """Return a dict for a prepared fit's plan on its prior, with the most records its rows can be worth; or None.

    None stands for no prior. One without rows gives its entries in the certificate alone.
    """
    found, size = prepared.prior, prepared.public.size
    if found is None:
        return None
    if found.rows is None:
        return dict(found.stated)
    people = found.rows.people
    worth = people if size is None else 1 / (1 / size + 1 / people)
    return {**(prepared.prior_stated or {}), "worth_at_most": round(worth)}


def _without_mean(schema: Schema) -> list[str]:
    """Return a list of one sentence if the schema's row weights have no declared mean; [] if they do, or for none."""
    weight = schema.row_weight
    if weight.column is None or weight.mean is not None:
        return []
    guess = f"the schema's weight has no mean: rows are foreseen as if it were {weight.most / 2:g}"
    return [f"{guess}. Write mean = ... beside max: people over records, both published."]


def _row_weight(schema: Schema) -> dict[str, Any] | None:
    """Return a dict for a plan on the schema's row weights: `column`, `max`, `noise_factor`, `relative_noise_factor`.

    The last is the largest weight over the mean one, None if no mean is declared: by so much noise grows relative to
    what is measured. None instead of the dict without weights.
    """
    weight = schema.row_weight
    if weight.column is None:
        return None
    relative = None if weight.mean is None else weight.most / weight.mean
    return {"column": weight.column, "max": weight.most, "noise_factor": weight.most, "relative_noise_factor": relative}
