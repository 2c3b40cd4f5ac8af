"""The experiments of paper 000, redone in shape; `scripts/reproduce_regression` runs this.

Slopes, sizes, ratios, clip, box and budgets are the paper's; it gives neither the law of its features, nor steps and
rates of its tables, so figures differ, and what can be compared is who gains and who loses. Left out: Algorithm 4,
which is not private (its noise is scaled by a smoothness that is 0 for a sum of losses), with it Theorem D.6 on its
error; Algorithms 5 and 6 and Theorems D.3 and D.4, which have no noise: their learning rates 1 / sqrt(t) and 1 / beta
are those of any gradient descent; and the lower bounds 5.1 and 5.2, of which scripts/reproduce_reductions has one that
can be checked. Everything is seeded and NOT PRIVATE.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from studies.harness import Found
from studies.regression import digits, theory
from studies.regression.claims import ends, words
from studies.regression.experiments import trials
from studies.regression.picture import digits_picture, picture
from studies.regression.trials import outcomes

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.random import Generator

COLUMNS = ["weighting", "accounting", "mode"]


def run(*, law: Path | None, credit: Path | None, runs: int, seeds: int) -> Found:
    """Run all experiments."""
    import pandas as pd

    rng = np.random.default_rng(2000)
    frame = pd.DataFrame([row for trial in trials(law, credit, rng) for row in outcomes(trial, runs, rng)])
    names = [str(name) for name in frame["experiment"].unique()]
    head = (
        f"Group-aware regression, {runs} runs of noise each; true budgets, for a record added or removed. A row's "
        "gradient is 2 (x.theta - y) x, clipped to the length 2; coefficients lie in [-5, 5]."
    )
    text = [head, *[_table(frame, name) for name in names], "\n".join(words(frame)), lemma(rng)]
    tables = {"regression": frame}
    pictures = {name.replace(" ", "_"): partial(picture, frame[frame["experiment"] == name]) for name in names}
    if seeds:
        tables["digits"] = images = digits.digits(seeds)
        pictures["digits"] = partial(digits_picture, images)
        text += [digits.table(images), *digits.words(images)]
    return Found("\n\n".join(text), tables, pictures)


def _table(frame: pd.DataFrame, name: str) -> str:
    """The errors of the largest and the smallest group, by method."""
    found = ends(frame[frame["experiment"] == name])
    lines = []
    for who in ("largest", "smallest"):
        table = found[who].pivot_table(index=["varied", "rho"], columns=COLUMNS, values="error", sort=False)
        lines.append(f"{name}: mean squared error, {who} group\n{table.to_string(float_format='{:.4g}'.format)}")
    return "\n\n".join(lines)


def lemma(rng: Generator) -> str:
    """Return Lemma 3.1, corrected, on two groups of 10,000 and 500 people whose slopes are -1 and 1."""
    sizes, betas = (10_000, 500), (np.array([-1.0]), np.array([1.0]))
    x = (rng.uniform(-1, 1, (sizes[0], 1)), rng.uniform(-1, 1, (sizes[1], 1)))
    c, people = sizes[0] / sum(sizes), sum(sizes)
    drawn = theory.randomised_loss(x, betas, (1.0, 1.0), c) / people
    fixed = theory.fixed_loss(x, betas, (1.0, 1.0), c * betas[0] + (1 - c) * betas[1]) / people
    return (
        f"Lemma 3.1, corrected, for {sizes[0]:,} and {sizes[1]:,} people: a predictor drawn by the groups' shares has "
        f"a mean squared error of {drawn:.4g}, and the mean of the two coefficients one of {fixed:.4g}: the drawn one "
        "is not the best."
    )
