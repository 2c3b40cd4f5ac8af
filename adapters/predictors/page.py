"""Chapter of a report on a regression, its coefficients as a plot, or on a network; and the figures of the fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stratsynth.models.means_section import STATUS
from stratsynth.report.numbers import Numbers, known, short
from stratsynth.report.page import Cell, Column, Figure, Points, Section, Table
from stratsynth.report.strip import Axis, Mark, legend

if TYPE_CHECKING:
    from stratsynth.adapters.predictors.network import Network
    from stratsynth.adapters.predictors.regression import Regression

SOUND = (
    "Each coefficient of the model has beside it an estimate by {method} on all records, from noisy moments. The "
    "interval is for that estimate and holds in 95 of 100 cases: it includes the error of noise and of sampling, if "
    "{assumption}. Coefficients of a model with another objective, or of clipped gradients, may lie outside."
)
METHODS = {
    "linear": ("least squares", "the residuals vary alike everywhere"),
    "logistic": ("largest likelihood, in Newton steps,", "log-odds are linear in the features"),
}
"""Method and assumption of coefficients with intervals, by link."""
UNSOUND = (
    "These coefficients have no intervals. group_regression states them for linear and logistic models, where a part "
    "of the budget buys noisy moments (stage_one)."
)
NETWORK = (
    "Single weights of a network have no meaning of their own, and no intervals. The command stratsynth predict makes "
    "the network's predictions for rows."
)
UNITS = (
    "Numbers count from the middle of their bounds and in their own unit, levels against the reference level; "
    "coefficients.parquet has all figures."
)


def coefficients_section(model: Regression, named: Callable[[str], str]) -> Section:
    """Return the page's Section on a regression, `model`: coefficients, 95 % intervals, groups, the fit.

    `named` maps a group's label to its name for readers.
    """
    table = model.coefficients()
    rows: list[dict[Any, Any]] = table.to_dict("records")
    shown = ("value", "estimate", "std_error", "noise", "sampling", "lower", "upper")
    figures = [
        Figure(
            "Coefficients",
            table=_plot(rows, f"Coefficients of {model.target}."),
            legend=legend([("model, which predicts", 0), ("by noisy moments, with its interval", 1)]),
            numbers=Numbers(
                f"coefficients of {model.target}",
                ["feature", "level", *shown, "status"],
                [[row["feature"], row["level"], *(known(row[key]) for key in shown), row["status"]] for row in rows],
            ),
        )
    ]
    figures += _groups(model.facts, named)
    facts = _described(model.facts)
    method, assumption = METHODS.get(model.link, ("", ""))
    note = UNSOUND if model.estimated is None else SOUND.format(method=method, assumption=assumption)
    return Section("coefficients", "The coefficients", text=[note, UNITS], facts=facts, figures=figures)


def network_section(model: Network, named: Callable[[str], str]) -> Section:
    """Return the page's Section on a network, `model`: settings in words, and groups; no weights.

    `named` maps a group's label to its name for readers.
    """
    return Section(
        "network", "The network", text=[NETWORK], facts=_described(model.facts), figures=_groups(model.facts, named)
    )


def _described(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a list of (caption, text) pairs, the entry `described` of a fit's facts; [] without any."""
    return [(key, str(value)) for key, value in facts.get("described", {}).items()]


def _groups(facts: Mapping[str, Any], named: Callable[[str], str]) -> list[Figure]:
    """Return a list of one Figure, a table of groups in a fit's facts: sizes, weights, rho; [] below two groups.

    `named` maps a group's label to its name for readers.
    """
    groups = facts.get("groups", [])
    if len(groups) < 2:
        return []
    heads = [Column("Group", "text"), Column("records, about"), Column("weight"), Column("share of rho")]
    lines = [[named(g["group"]), g["size"], g["weight"], g["share"]] for g in groups]
    return [Figure("Groups", table=Table("Weight of each group in the objective, and its part of rho.", heads, lines))]


def _plot(rows: list[dict[Any, Any]], caption: str) -> Table:
    """Return a Table with this caption, a row for each of `rows`, a coefficient: value, estimate, interval, bar.

    `rows` are dicts of the frame `Regression.coefficients`. Estimate and 95 % interval are by noisy moments, and left
    out where the row's `lower` is not finite.
    """
    ends = [row[key] for row in rows for key in ("value", "lower", "upper")]
    scale = Axis.over(ends)
    heads = [
        Column("Feature", "text"),
        Column("coefficient and interval", "picture", scale),
        Column("model"),
        Column("by noisy moments"),
        Column("interval of 95 %"),
        Column("status", "text"),
    ]
    lines = []
    for row in rows:
        name = f"{row['feature']} ({row['level']})" if row["level"] else row["feature"]
        known = math.isfinite(row["lower"])
        marks = [Mark("model", row["value"], series=0)]
        marks += [Mark("by noisy moments", row["estimate"], row["lower"], row["upper"], 1)] if known else []
        between = f"{short(row['lower'])} to {short(row['upper'])}" if known else "–"
        lines.append(
            [
                "intercept" if name == "1" else name,
                Points(name, marks, row["value"]),
                row["value"],
                row["estimate"] if known else None,
                Cell(between, row["lower"] if known else None),
                STATUS[row["status"]],
            ]
        )
    return Table(caption, heads, lines)
