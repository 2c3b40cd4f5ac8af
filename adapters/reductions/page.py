"""Chapter of a report on objective and constraints, with their values by noisy counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stratsynth.adapters.reductions.rates import MISSED, OF_PROBABILITIES
from stratsynth.report.numbers import spelt
from stratsynth.report.page import Cell, Column, Figure, Section, Table

if TYPE_CHECKING:
    from stratsynth.adapters.reductions.classifier import RandomisedClassifier

STATUS = {"ok": "ok", "holds": "holds", "broken": "broken", "not_estimable": "not estimable"}
NAMES = {
    "error": "predicted wrongly",
    "selection": "predicted as the second level",
    "false_positive": "false positives",
    "false_negative": "false negatives",
    "squared_loss": "squared loss",
    "squared_loss_first": "squared loss, first level",
    "squared_loss_second": "squared loss, second level",
    "log_loss": "log loss",
    "log_loss_first": "log loss, first level",
    "log_loss_second": "log loss, second level",
}
NOTE = (
    "All figures are from noisy counts, or sums of losses, of the private table that the classifier was fitted to, so "
    "they are a little too favourable; the noise is a standard deviation. The figures are means over random draws "
    "of a classifier, while each prediction is made by a single one. A group of too few records is not estimable, and "
    "no constraint was applied to it."
)
ALONE = (
    "The single classifier with the smallest noisy goal, for predictions that are not random. It may break "
    "constraints that the mixture keeps."
)


def reductions_section(model: RandomisedClassifier, named: Callable[[str], str]) -> Section:
    """Return the page's Section "What was to hold" of a model: goals, rates of groups, the fit.

    `named` maps a group's label to its name for readers.
    """
    heads = [
        Column("Goal", "text"),
        Column("group", "text"),
        Column("bound"),
        Column("value"),
        Column("noise"),
        Column("status", "text"),
    ]

    def goals(key: str, caption: str) -> Table:
        return Table(
            caption,
            heads,
            [
                [
                    row["name"].replace("_", " "),
                    named(row["group"]) if row["group"] else "",
                    row["bound"],
                    row["value"],
                    row["noise"],
                    STATUS[row["status"]],
                ]
                for row in _rows(model, key)
            ],
        )

    rates = []
    for row in _rows(model, "rates"):
        kind = "number" if row["loss"] in OF_PROBABILITIES else "share"
        rates.append(
            [
                named(row["group"]),
                NAMES.get(row["loss"], f"predicted wrongly, {row['loss'].removeprefix(MISSED)}"),
                row["records"],
                *(Cell(spelt(row[key], kind), row[key]) for key in ("value", "noise")),
                STATUS[row["status"]],
            ]
        )
    columns = [
        Column("Group", "text"),
        Column("rate", "text"),
        Column("records, about", "count"),
        Column("value"),
        Column("noise"),
        Column("status", "text"),
    ]
    figures = [
        Figure("What was to hold", table=goals("goals", "The objective and each constraint, of what predicts.")),
        Figure("Rates of groups", table=Table("Rates of what predicts.", columns, rates)),
        Figure("Without chance", ALONE, table=goals("deterministic", "The same of the best classifier alone.")),
    ]
    facts = [(key, str(value)) for key, value in model.facts.get("described", {}).items()]
    return Section("goals", "What was to hold", text=[NOTE], facts=facts, figures=figures)


def _rows(model: RandomisedClassifier, key: str) -> list[dict[str, Any]]:
    """Return a list of the dicts in the model's facts under `key`; empty without any."""
    return list(model.facts.get(key, []))
