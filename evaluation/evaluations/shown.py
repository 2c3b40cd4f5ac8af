"""INTERNAL. What Python and notebooks show of an evaluation: scores, and no row of either table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.display import panel
from stratsynth.evaluation.tables import EVERYBODY, GROUP, STAMP

if TYPE_CHECKING:
    from stratsynth.evaluation.evaluations.evaluate import Evaluation


def evaluation_text(evaluation: Evaluation) -> str:
    """A line: sizes, and the error of everybody."""
    facts, frame = evaluation.facts, evaluation.workload
    whole = frame[(frame["table"] == "release") & (frame["scope"] == EVERYBODY)]["value"].iloc[0]
    groups = f"{facts['groups']} groups by {' x '.join(evaluation.by)}" if evaluation.by else "no groups"
    return (
        f"Evaluation(INTERNAL; {facts['real_rows']:,} real and {facts['synthetic_rows']:,} synthetic rows; {groups}; "
        f"error {whole:.3f} of 2)"
    )


def evaluation_html(evaluation: Evaluation) -> str:
    """The disparity card."""
    from stratsynth.evaluation.evaluations.card import disparity_card

    facts, card = evaluation.facts, disparity_card(evaluation)
    names = ["n", "n_synthetic", "error", *facts["beside"], "subsample", "independent", "excess"]
    heads = [
        *evaluation.by,
        "real",
        "synthetic",
        "error",
        *facts["beside"],
        "chance",
        "independent",
        "excess",
        "status",
    ]
    rows = [
        [*([str(row[name]) if row["scope"] == GROUP else "all" for name in evaluation.by]),
         *(row[name] for name in names), str(row["status"])]
        for row in card.to_dict("records")
    ]  # fmt: skip
    said = [
        ("Rows", f"{facts['real_rows']:,} real, {facts['synthetic_rows']:,} synthetic"),
        ("Error", f"mean L1 distance (0 to 2) of {facts['cliques']:,} {facts['k']}-way marginals"),
    ]
    frames = ", ".join(name for name, _ in evaluation.frames())
    return panel("Evaluation", said, (heads, rows), note=f"Frames: {frames}.", warning=STAMP)
