"""INTERNAL. Scores of predictions as a page for readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stratsynth.evaluation.evaluations.guarantee import cited, guarantee
from stratsynth.evaluation.evaluations.predictions import CONSTANT, PREDICTIONS
from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.report.figures import listing
from stratsynth.evaluation.report.groups import group_name
from stratsynth.evaluation.report.rates import differences, errors_by_group
from stratsynth.evaluation.tables import EVERYBODY, GROUP
from stratsynth.report.numbers import several
from stratsynth.report.page import Figure, Page, Section

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.evaluations.predictions import PredictionScores


def predictions_page(scores: PredictionScores, *, name: str, certificate: Mapping[str, Any] | None) -> Page:
    """Return the scores of predictions as a Page of Sections.

    Args:
        scores: PredictionScores; predictions `beside` are columns.
        name: What the predictions are called.
        certificate: That of the release that made them, a mapping; None for none.
    """
    facts, rates = scores.facts, scores.rates
    tables = _named(scores, name)
    main = rates[(rates["metric"] == facts["score"]) & rates["scope"].isin([GROUP, EVERYBODY])]
    figures = [
        errors_by_group(main, scores.by, tables, scores.schema, title="In each group", of="the rows predicted"),
        _everybody(scores, tables),
        *([_groups(scores)] if scores.by else []),
    ]
    between = rates[(rates["scope"] == "between") & (rates["table"] != CONSTANT)]
    figures += differences(between, {t: n for t, n in tables.items() if t != CONSTANT})
    sections = [
        Section("rates", "Whom the predictions serve", figures=figures),
        guarantee(certificate),
        cited(certificate, facts),
    ]
    return Page(
        title="How good the predictions are, and for whom",
        subtitle=f"{name[:1].upper()}{name[1:]}: {facts['scored_rows']:,} rows, "
        f"{several(facts['groups'], 'declared group')}",
        lead=[
            f"Predicted: {facts['task']}.",
            "“Constant” predicts the commonest level, or the mean; a useful model has a smaller error in each group.",
        ],
        sections=sections,
        internal=BANNER,
        made_with="Made by stratsynth evaluate. Every figure lies beside this file as CSV and Parquet, and all of "
        "them in evaluation.json.",
    )


def _named(scores: PredictionScores, name: str) -> dict[str, str]:
    """Return a mapping from each table of `PredictionScores` to its name for readers; the predictions are `name`."""
    return {other: other for other in scores.facts["beside"]} | {PREDICTIONS: name, CONSTANT: "constant"}


def _everybody(scores: PredictionScores, tables: Mapping[str, str]) -> Figure:
    """Return a Figure, a table of everybody's rates in `PredictionScores`: a row a rate, a column a set of predictions.

    `tables` maps each table of the scores to its heading.
    """
    whole = scores.rates[scores.rates["scope"] == EVERYBODY]
    rows = []
    for metric in dict.fromkeys(whole["metric"]):
        values = whole[whole["metric"] == metric].set_index("table")["value"]
        rows.append([_words(metric), *(values.get(table) for table in tables)])
    return listing(
        "Every rate, of everybody",
        "A rate over nobody is not defined, and left empty.",
        [("rate", "text"), *((name, "number") for name in tables.values())],
        rows,
        "",
    )


def _groups(scores: PredictionScores) -> Figure:
    """Return a Figure, a table of rates in `PredictionScores`: a row for each group, a column a rate."""
    wide, metrics = _by_group(scores)
    rows = [
        [group_name({c: row[c] for c in scores.by}, scores.schema), row["n"], *(row[m] for m in metrics), row["status"]]
        for row in wide[wide["scope"] == GROUP].to_dict("records")
    ]
    head = [("Group", "text"), ("people", "number"), *((_words(m), "number") for m in metrics), ("status", "text")]
    return listing("Every rate, group by group", "Intervals are in rates.csv.", head, rows, "")


def _words(metric: object) -> str:
    return str(metric).replace("_", " ")


def _by_group(scores: PredictionScores) -> tuple[pd.DataFrame, list[str]]:
    """Return (frame of rates in `PredictionScores`: a row a group, worst first, then everybody; list of rates' names).

    Each rate is a column.
    """
    score = scores.facts["score"]
    own = scores.rates[(scores.rates["table"] == PREDICTIONS) & (scores.rates["scope"] != "between")]
    metrics = list(dict.fromkeys(own["metric"].astype(str)))
    wide = own[own["metric"] == score][["scope", *scores.by, "n", "status"]].reset_index(drop=True)
    for metric in metrics:
        wide[metric] = own[own["metric"] == metric]["value"].to_numpy()
    return wide.sort_values(["scope", score], ascending=[False, score == "accuracy"], kind="stable"), metrics
