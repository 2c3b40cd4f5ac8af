"""The experiments of paper 000, redone in shape; `scripts/reproduce_regression` runs this.

The paper gives neither slopes, nor the law of its features, nor steps and rates of its tables, so figures differ; what
can be compared is who gains and who loses. Everything is seeded and NOT PRIVATE.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from studies import data
from studies.harness import Found
from studies.regression import digits
from studies.regression.picture import digits_picture, picture
from studies.regression.simulate import People, Steps, make_people
from studies.regression.trials import Trial, outcomes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd
    from numpy.random import Generator

RHOS = tuple(epsilon**2 / 2 for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0))
RATIOS = (5, 20, 50, 100)
SLOPES = ((-10.0, 10.0), (10.0, -10.0), (10.0, 1.0), (-10.0, -1.0), (-1.0, 1.0), (1.0, -1.0))
MAJORITY = 10_000
STEPS = Steps(radius=20.0)
BALANCED = "balanced"
ALIKE = 0.02
"""Errors whose ratio is this near to 1 are alike: runs differ by as much."""
FEW = (0.005, 0.5, 8.0)
"""The values of rho where something else is varied."""


def run(*, law: Path | None, runs: int, seeds: int) -> Found:
    """Run all experiments."""
    import pandas as pd

    rng = np.random.default_rng(2000)
    frame = pd.DataFrame([row for trial in trials(law, rng) for row in outcomes(trial, runs, rng)])
    names = [str(name) for name in frame["experiment"].unique()]
    head = f"Group-aware regression, {runs} runs of noise each; true budgets, for a record added or removed."
    text = [head, *[_table(frame, name) for name in names], *words(frame)]
    tables = {"regression": frame}
    pictures = {name.replace(" ", "_"): partial(picture, frame[frame["experiment"] == name]) for name in names}
    if seeds:
        tables["digits"] = images = digits.digits(seeds)
        pictures["digits"] = partial(digits_picture, images)
        text += [digits.table(images), *digits.words(images)]
    return Found("\n\n".join(text), tables, pictures)


def trials(law: Path | None, rng: Generator) -> Iterator[Trial]:
    """Two groups by ratio of sizes, slopes and rho; five groups, 20 times; more groups; the law school."""
    for ratio in RATIOS:
        yield from _two(f"ratio {ratio}", MAJORITY // ratio, (-10.0, 10.0), 1.0, RHOS, rng)
    for slopes in SLOPES:
        yield from _two(f"slopes {slopes[0]:g} {slopes[1]:g}", MAJORITY // 20, slopes, 1.0, FEW, rng)
    for spread in (0.5, 2.0):
        yield from _two(f"noise {spread:g}", MAJORITY // 20, (-1.0, 1.0), spread, FEW, rng)
    for number in (5, 10, 15, 20):
        sizes = tuple(np.geomspace(MAJORITY, MAJORITY / 20, number).astype(int).tolist())
        others = np.array([[1.0], *[[-6.0]] * (number - 1)])
        yield from _trials("groups", f"{number} groups", sizes, others, (1.0,) * number, (2.0, 4.5, 8.0), rng)
    if law is not None:
        train, test = _law(law, rng)
        steps = Steps(clip=1.0, rate=0.5)
        yield from (Trial("law school", f"rho {rho:g}", train, test, rho, steps) for rho in RHOS)


def _two(
    varied: str, minority: int, slopes: tuple[float, float], spread: float, rhos: tuple[float, ...], rng: Generator
) -> Iterator[Trial]:
    both = np.array(slopes)[:, None]
    yield from _trials("two groups", varied, (MAJORITY, minority), both, (spread, spread), rhos, rng)


def _trials(
    name: str,
    varied: str,
    sizes: tuple[int, ...],
    slopes: Any,
    spreads: tuple[float, ...],
    rhos: tuple[float, ...],
    rng: Generator,
) -> Iterator[Trial]:
    train = make_people(sizes, slopes, spreads, rng)
    test = make_people((2_000,) * len(sizes), slopes, spreads, rng)
    yield from (Trial(name, varied, train, test, rho, STEPS) for rho in rhos)


def _law(path: Path, rng: Generator) -> tuple[People, People]:
    """Grades by entrance test, earlier grades, family income and tier; race is the sensitive attribute."""
    law = data.grades(path)
    rows = law.frame
    x = np.column_stack([np.ones(len(rows)), *(law.scaled(name, rows) for name in data.LAW)])
    y = np.clip(rows["zgpa"].to_numpy(np.float64) / 4, -1, 1)
    first, chosen = (rows["race"] == "White").to_numpy(), rng.random(len(rows)) < 0.8
    return _sorted(x, y, first, chosen), _sorted(x, y, first, ~chosen)


def _sorted(x: Any, y: Any, first: Any, chosen: Any) -> People:
    order = [*np.flatnonzero(first & chosen), *np.flatnonzero(~first & chosen)]
    return People(x[order], y[order], (int((first & chosen).sum()), len(order)))


def _table(frame: pd.DataFrame, name: str) -> str:
    """The errors of the largest and the smallest group, by method."""
    part = frame[frame["experiment"] == name]
    ends = part.groupby(["varied", "rho"], sort=False)["group"].transform("max")
    lines = []
    for who, rows in (("largest", part[part["group"] == 1]), ("smallest", part[part["group"] == ends])):
        table = rows.pivot_table(
            index=["varied", "rho"], columns=["weighting", "accounting", "mode"], values="error", sort=False
        )
        lines.append(f"{name}: mean squared error, {who} group\n{table.to_string(float_format='{:.4g}'.format)}")
    return "\n\n".join(lines)


def words(frame: pd.DataFrame) -> list[str]:
    """Return sentences on the claims that hold and those that do not, from this run's figures."""
    smallest = frame[frame["group"] == frame.groupby(["experiment", "varied", "rho"])["group"].transform("max")]
    keys = ["experiment", "varied", "rho"]

    def error(mode: str, accounting: str, weighting: str) -> pd.Series[Any]:
        chosen = (smallest["mode"] == mode) & (smallest["accounting"] == accounting)
        return smallest[chosen & (smallest["weighting"] == weighting)].set_index(keys)["error"]

    def share(one: pd.Series[Any], other: pd.Series[Any]) -> str:
        ratio = one / other
        better, worse = int((ratio < 1 - ALIKE).sum()), int((ratio > 1 + ALIKE).sum())
        return (
            f"by more than {ALIKE:.0%} in {better} of {len(ratio)} settings, and the other way in {worse} (median "
            f"ratio of errors {float(ratio.median()):.3g})"
        )

    pooled, even = error("DPNoSE", "combined", "pooled"), error("DPNoSE", "combined", BALANCED)
    tailored, alike = error("DPSE", "paper", BALANCED), error("DPNoSE", "paper", BALANCED)
    side, together = error("DPSE", "parallel", BALANCED), error("DPNoSE", "parallel", BALANCED)
    return [
        "What this run says of the smallest group:",
        f"- Weighing groups alike helps it, without any tailoring: {share(even, pooled)}.",
        f"- As the paper counts, tailored budgets beat equal ones: {share(tailored, alike)}.",
        f"- Counted in parallel, where each group can have the whole budget, they do: {share(side, together)}.",
        f"- One noise for the weighted sum beats tailored budgets as the paper counts: {share(even, tailored)}.",
        f"- With pooled weights, tailoring beats plain descent: {share(error('DPSE', 'paper', 'pooled'), pooled)}.",
    ]
