"""INTERNAL. The section on downstream use: models trained on a release, tested on people that nothing was fitted to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.evaluation.learning.downstream import REAL, SUBSAMPLE, SYNTHETIC
from stratsynth.evaluation.report.figures import listing
from stratsynth.evaluation.report.groups import GroupErrors, card, group_errors
from stratsynth.evaluation.tables import EVERYBODY

from stratsynth.report.page import Figure, Section

if TYPE_CHECKING:
    import pandas as pd
    from stratsynth.evaluation.evaluations.evaluate import Evaluation

TRAINED = {SYNTHETIC: "the release", SUBSAMPLE: "as many real rows", REAL: "all real rows"}


def use(evaluation: Evaluation) -> Section | None:
    """The section; None where nothing was trained."""
    frame = evaluation.downstream
    if frame is None:
        return None
    score = "accuracy" if "accuracy" in set(frame["metric"]) else "mean_absolute_error"
    here = frame[frame["metric"] == score]
    whole = here[here["scope"] == EVERYBODY]
    there = [name for name in TRAINED if name in set(whole["trained_on"])]
    rows = []
    for model in dict.fromkeys(whole["model"]):
        values = whole[whole["model"] == model].set_index("trained_on")["value"]
        rows.append([str(model), *(values.get(name) for name in there)])
    figures = [
        listing(
            "By model", "“Constant” predicts the same for everybody, and is what any model should beat.",
            [("model", "text"), *((TRAINED[name], "number") for name in there)], rows,
            f"{score.replace('_', ' ').capitalize()} on {int(whole['n'].iloc[0]):,} held-out real rows, by what the "
            "model was trained on. Groups by themselves are in downstream.csv.",
        )
    ]  # fmt: skip
    if evaluation.by:
        figures += [_by_group(evaluation, here, score), *_between(frame)]
    return Section(
        "use", "What it is good for",
        text=[f"Models that predict {evaluation.facts['task']}, trained on the release and on real rows."],
        figures=figures,
    )  # fmt: skip


def _by_group(evaluation: Evaluation, here: pd.DataFrame, score: str) -> Figure:
    """The model that is best on real rows, group by group; accuracies as shares that are wrong."""
    real = here[(here["trained_on"] == REAL) & (here["scope"] == EVERYBODY) & (here["model"] != "constant")]
    best = real.sort_values("value", ascending=score != "accuracy", kind="stable")["model"].iloc[0]
    rows = here[(here["model"] == best) & here["trained_on"].isin([SYNTHETIC, REAL])].rename(
        columns={"trained_on": "table"}
    )
    error = score.replace("_", " ")
    if score == "accuracy":
        rows = rows.assign(value=1 - rows["value"], low=1 - rows["high"], high=1 - rows["low"])
        error = "share of wrong predictions"
    shown = {REAL: "trained on real rows", SYNTHETIC: "trained on the release"}
    groups, everybody = group_errors(rows, evaluation.by, shown, None, evaluation.schema)
    return card(
        groups, GroupErrors(everybody.name, everybody.n, everybody.errors, status=everybody.status),
        title=f"In each group: {best}", note=f"The {error} in each group, of people held out.",
        interval="Lines: 95 % intervals of chance in the held-out rows.",
    )  # fmt: skip


def _between(frame: pd.DataFrame) -> list[Figure]:
    """How far the groups are apart, by fairlearn's definitions."""
    rows = frame[(frame["scope"] == "between") & (frame["model"] != "constant")]
    there = [name for name in TRAINED if name in set(rows["trained_on"])]
    table = []
    for (model, metric), part in rows.groupby(["model", "metric"], sort=False):
        values = part.set_index("trained_on")["value"]
        table.append([str(model), str(metric).replace("_", " "), *(values.get(name) for name in there)])
    if not table:
        return []
    return [
        listing(
            "How unequal its predictions are",
            "Differences between the groups that serve best and worst, by fairlearn's definitions; groups too small "
            "for a rate are left out, for all trainings alike.",
            [("model", "text"), ("between groups", "text"), *((TRAINED[name], "number") for name in there)],
            table,
            "For differences, 0 is equal; for ratios, 1.",
        )
    ]
