"""The experiments of paper 001, redone in shape; `scripts/reproduce_lens` runs this.

Simulated people differ in one way at a time, so that what is to blame is known. Beside them stand the public data that
a reader brings, Adult by sex and by race, law school by race, or any file with its schema; the built-in census where
none are brought. Figures
differ from the paper's, and what can be compared is which claims hold. All is seeded but `fair_sgd`, and NOT PRIVATE.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from studies.harness import Found
from studies.lens import beside, cases, experiments, picture, sweeps, theorem
from studies.lens.claims import gaps, last_of, words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd


def run(
    *,
    adult: Path | None,
    law: Path | None,
    data: Path | None,
    schema: Path | None,
    target: str | None,
    by: str | None,
    runs: int,
    repeats: int,
) -> Found:
    """Run all experiments."""
    rng = np.random.default_rng(2021)
    other = [] if data is None else [cases.declared(data, schema, target, by)]
    among = [*cases.simulated(rng), *cases.brought(adult, law, rng, other)]
    found = {
        "output": experiments.output(among, 20 * runs, rng),
        "training": experiments.training(among, runs, rng),
        "steps": experiments.steps(among, rng),
        "mitigation": experiments.mitigation(among, repeats),
        "theorem": experiments.theorem(among, rng),
        "epsilons": sweeps.by_epsilon(among, 20 * runs, rng),
        "clips": sweeps.by_clip(among, runs, rng),
        "ratios": sweeps.by_ratio(among, runs, rng),
        "budgets": sweeps.by_budget(among, repeats),
        "beside": beside.accuracies(among, repeats, rng),
    }
    text = ["The fairness lens on simulated people, two groups each, and on public data. NOT PRIVATE.", *tables(found)]
    for whom, chosen in (("simulated people", True), ("public data", False)):
        names = [case.name for case in among if case.simulated == chosen]
        part = {name: frame[frame["world"].isin(names)] for name, frame in found.items()}
        lines = [
            words(part),
            *(
                f"- {line}"
                for line in (beside.words(part["beside"]), theorem.words(part["theorem"]), *sweeps.words(part))
            ),
        ]
        text.append(f"In words, on {whom} ({'; '.join(names)}):\n" + "\n".join(lines))
    pictures = {
        "traces": partial(picture.traces, found["output"]),
        "training": partial(picture.parts, found["training"]),
        "mitigation": partial(picture.mitigated, gaps(found["mitigation"])),
        "sweeps": partial(
            picture.swept, found["epsilons"], found["clips"], found["ratios"], sweeps.by_way(found["budgets"])
        ),
    }
    return Found("\n\n".join(text), found, pictures)


def tables(found: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return each experiment's figures at its end."""
    columns = ["world", "model", "group", "n", "trace", "gradient_norm", "excess", "low", "high", "clipping", "noise"]
    return [
        "Output perturbation: excessive risk by its closed form and by draws.\n"
        + _table(found["output"], ["world", "model", "group", "trace", "closed", "risk", "low", "high"]),
        "At the end of a private training: excessive risk and its parts.\n"
        + _table(last_of(found["training"]), columns),
        "fair_sgd: mean excessive risk of everybody and the gap between the groups, with half an interval over fits.\n"
        + gaps(found["mitigation"]).round(4).reset_index().to_string(index=False),
        "Released at (epsilon, 1e-6) with defaults: accuracy on rows not fitted, its loss against no privacy, and the\n"
        "accuracy of the group for which it is least.\n"
        + beside.lost(found["beside"]).round(4).reset_index().to_string(index=False),
        "Gap of excessive risk under output perturbation by epsilon (figure 8).\n"
        + _swept(sweeps.gaps_over(found["epsilons"], "epsilon"), "risk"),
        "Gap of excessive risk at the end of a training, of clipping and of noise, by the clip C (C.2).\n"
        + _swept(sweeps.gaps_over(found["clips"], "clip"), "excess", "clipping", "noise"),
        "Gap of excessive risk by the relative size of the smaller group (figure 11).\n"
        + _swept(sweeps.gaps_over(found["ratios"], "ratio"), "excess"),
        "fair_sgd by epsilon: gap between the groups, with half an interval over fits (figure 12).\n"
        + sweeps.by_way(found["budgets"]).round(4).reset_index().to_string(index=False),
    ]


def _swept(found: pd.DataFrame, *figures: str) -> str:
    """A line a case and a column a place of the sweep, figure by figure."""
    wide = found.reset_index().pivot_table(index=["world", "model"], columns=found.index.names[-1], values=[*figures])
    return wide[[*figures]].round(4).to_string()


def _table(frame: pd.DataFrame, columns: list[str]) -> str:
    return frame[columns].round(4).to_string(index=False)
