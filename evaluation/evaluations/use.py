"""INTERNAL. Section on downstream use: models trained on a release, tested on a hold-out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stratsynth.evaluation.learning.downstream import REAL, SUBSAMPLE, SYNTHETIC
from stratsynth.evaluation.report.figures import listing
from stratsynth.evaluation.report.rates import differences, errors_by_group
from stratsynth.evaluation.tables import EVERYBODY
from stratsynth.report.page import Figure, Section

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.evaluations.evaluate import Evaluation

SCORES = {
    "accuracy": "accuracy",
    "auc": "area under the ROC curve",
    "f1": "F1 of the positives",
    "mean_absolute_error": "mean absolute error",
    "r2": "share of the variance that is explained (r2)",
}
"""Titles of the scores that are shown, where they were computed."""
TRAINED = {SYNTHETIC: "the release", SUBSAMPLE: "as many real rows", REAL: "all real rows"}


def use(evaluation: Evaluation) -> Section | None:
    """Return an evaluation's Section on models trained on the release and tested on real people; None if none was."""
    frame = evaluation.downstream
    if frame is None:
        return None
    score = "accuracy" if "accuracy" in set(frame["metric"]) else "mean_absolute_error"
    here = frame[frame["metric"] == score]
    figures = [_by_model(frame[frame["metric"] == name], name) for name in SCORES if name in set(frame["metric"])]
    if evaluation.by:
        figures += [_best_by_group(evaluation, here, score), *_between(frame)]
    return Section(
        "use",
        "What it is good for",
        text=[f"Models that predict {evaluation.facts['task']}, trained on the release and on real rows."],
        figures=figures,
    )


def _by_model(here: pd.DataFrame, score: str) -> Figure:
    """Return a Figure, a table of everybody's `score` (a metric) in frame `here` by `downstream`: a row a model.

    It has a column for each training table.
    """
    whole = here[here["scope"] == EVERYBODY]
    there = [name for name in TRAINED if name in set(whole["trained_on"])]
    rows = []
    for model in dict.fromkeys(whole["model"]):
        values = whole[whole["model"] == model].set_index("trained_on")["value"]
        rows.append([str(model), *(values.get(name) for name in there)])
    return listing(
        f"By model: {SCORES[score]}",
        "“Constant” predicts the commonest level, or the mean, for everybody; a useful model has a smaller error.",
        [("model", "text"), *((TRAINED[name], "number") for name in there)],
        rows,
        f"On {int(whole['n'].iloc[0]):,} held-out real rows, by what the model was trained on. Groups by themselves "
        "are in downstream.csv.",
    )


def _best_by_group(evaluation: Evaluation, here: pd.DataFrame, score: str) -> Figure:
    """Return a Figure of the groups' errors under the model that is best on real rows, by `score`, a metric.

    `here` are the rows of an evaluation's `downstream` about it.
    """
    real = here[(here["trained_on"] == REAL) & (here["scope"] == EVERYBODY) & (here["model"] != "constant")]
    best = real.sort_values("value", ascending=score != "accuracy", kind="stable")["model"].iloc[0]
    rows = here[(here["model"] == best) & here["trained_on"].isin([SYNTHETIC, REAL])]
    shown = {REAL: "trained on real rows", SYNTHETIC: "trained on the release"}
    return errors_by_group(
        rows.rename(columns={"trained_on": "table"}),
        evaluation.by,
        shown,
        evaluation.schema,
        title=f"In each group: {best}",
        of="people held out",
    )


def _between(frame: pd.DataFrame) -> list[Figure]:
    """Return a list of Figures, tables of differences between groups, from a frame of `downstream`; [] without any."""
    rows = frame[(frame["scope"] == "between") & (frame["model"] != "constant")]
    there = {name: words for name, words in TRAINED.items() if name in set(rows["trained_on"])}
    made = differences(rows.rename(columns={"trained_on": "table"}), there, ["model"])
    return [replace(figure, detail=True) for figure in made]
