"""INTERNAL. Disparity card of an evaluation: the error of each group beside the baselines' errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.evaluation.tables import EVERYBODY

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.evaluations.evaluate import Evaluation


def disparity_card(evaluation: Evaluation) -> pd.DataFrame:
    """Return an evaluation's frame of the groups' errors (mean L1 of k-way marginals) beside baselines', worst first.

    `means` is the mean relative error of its means; `excess` is the error divided by that of the subsample, the error
    of chance alone in a group of this size.
    """
    keys = ["scope", *evaluation.by]
    wide = evaluation.workload
    card = wide[wide["table"] == "release"].drop(columns=["table", "cliques"]).rename(columns={"value": "error"})
    for name in (*evaluation.facts["beside"], "subsample", "independent"):
        other = wide[wide["table"] == name][[*keys, "value"]].rename(columns={"value": name})
        card = card.merge(other, on=keys, how="left")
    card["excess"] = card["error"] / card["subsample"].where(card["subsample"] > 0)
    if evaluation.parity_means is not None:
        means = evaluation.parity_means
        means = means[(means["table"] == "release") & (means["variable"] == "(all)")]
        card = card.merge(means[[*keys, "value"]].rename(columns={"value": "means"}), on=keys, how="left")
    order = card.assign(last=card["scope"] == EVERYBODY).sort_values(
        ["last", "error"], ascending=[True, False], na_position="last", kind="stable"
    )
    return card.loc[order.index].reset_index(drop=True)
