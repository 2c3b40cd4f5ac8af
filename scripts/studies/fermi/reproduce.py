"""The experiments of paper 004, redone at the true budget; `scripts/reproduce_fermi` runs this.

Logistic models on the data that a reader brings, at epsilon .5, 1, 3 and 9, for parity and odds; without any file, one
problem that is made up, of so few rows that epsilon matters. Beside them stand the paper's baselines, `fair_sgd` and
`reductions` (`studies.fermi.rivals`), and noisy gradient descent whose predictions are corrected by noisy counts. The
rows are public, and nothing is charged: NOT PRIVATE. The paper's own figures are of code whose noise is smaller than
its epsilon buys, and whose penalty is not the one of its text; so they are no target.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.sampled import epsilon_sampled
from stratsynth.errors import UsageError
from stratsynth.evaluation.fermi.curve import BASELINE, METHOD, CurveRows, picture, summary, tradeoff
from stratsynth.evaluation.fermi.violations import gaps
from studies import brought
from studies import data as datasets
from studies.fermi.optimum import minimisers
from studies.fermi.rivals import rivals
from studies.harness import Found

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from studies.data import Problem

EPSILONS = (0.5, 1.0, 3.0, 9.0)
PENALTIES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
CRITERIA = ("parity", "odds")
WEIGHTS = ("alike", "shares")
"""Weights of the true classes in the penalty of odds: ours, and the paper's."""
DELTA = 1e-6
PAPER_ROWS, PAPER_STEPS = 30_000, 6_000
"""Numbers of rows and steps in the paper's experiments on Adult, about."""
ALIKE = 0.002
"""Errors that differ by no more than this are alike."""
SPLIT = 2004
"""The seed of the split of a problem's rows."""


SINGLE = 3
"""Most fits of a setting by mechanisms that do not fit many side by side."""


def run(
    *,
    adult: Path | None,
    law: Path | None,
    acs: Path | None,
    data: Path | None,
    target: str | None,
    by: str | None,
    above: float | None,
    leave: Sequence[str],
    only: str | None,
    seeds: int | None,
    iterations: int,
) -> Found:
    """The experiments on the files that are named, or the networks on images."""
    if only is not None:
        from studies.fermi import images

        text, frame = images.reproduce(seeds=3 if seeds is None else seeds, iterations=iterations)
        return Found(text, {"images": frame})
    found = files(adult, law, acs)
    if (data is None) != (target is None) or (data is None) != (by is None):
        raise UsageError("--data goes with --target and --by: the column to predict, and the sensitive attribute.")
    if data is not None and target is not None and by is not None:
        found.append(brought.named(data, target, by, above=above, leave=leave))
    among = found or [brought.scarce()]
    return reproduce(among, seeds=10 if seeds is None else seeds, iterations=iterations)


def files(adult: Path | None, law: Path | None, acs: Path | None) -> list[Problem]:
    """Return the problems whose files are named."""
    return [
        *([datasets.adult(adult)] if adult else []),
        *([datasets.law(law)] if law else []),
        *([brought.income(acs), *datasets.employment(acs)] if acs else []),
    ]


def reproduce(among: Sequence[Problem], *, seeds: int = 10, iterations: int = 1000) -> Found:
    """Run all experiments on these problems."""
    import pandas as pd

    frames, text = [], [f"Private fair classification: {seeds} fits of each setting, at true budgets, delta {DELTA:g}."]
    for problem in among:
        text.append(described(problem))
        for criterion in CRITERIA:
            frame = curve(problem, criterion, EPSILONS, seeds=seeds, iterations=iterations, beside=True)
            frames.append(frame)
            text += [_table(problem, frame), words(frame), by_epsilon(frame)]
            text += [_best(problem, criterion, weights) for weights in WEIGHTS[: 2 if criterion == "odds" else 1]]
    everything = pd.concat(frames)
    pictures = {
        f"{label}_{kind}".replace(" ", "_"): partial(
            picture, summary(frame), title=f"{label}: error against violation of {kind}"
        )
        for (label, kind), frame in everything.groupby(["problem", "criterion"], sort=False)
    }
    return Found("\n\n".join([*text, claims()]), {"fermi": everything}, pictures)


def described(problem: Problem) -> str:
    """A sentence on the rows of a problem, its target and the groups that are compared."""
    shares = problem.frame[problem.group].value_counts(normalize=True)
    groups = ", ".join(f"{level} ({100 * share:.0f} %)" for level, share in shares.items())
    rows = f"{problem.name}: {len(problem.frame):,} rows"
    return f"{rows}; {problem.target} is predicted; groups of {problem.group}: {groups}."


def papers_noise(epsilon: float) -> tuple[float, float]:
    """Return the epsilons of the noise in the paper's theorem: of one of a step's two gradients, and of both.

    The multiplier is z = q sqrt(2 T log(1 / delta)) / epsilon, for the paper's 30,000 rows, batches of 1,024, 6,000
    steps and delta of one over the square of the rows. Two gradients of one sample are one query of z / sqrt(2).
    """
    rate, delta = 1024 / PAPER_ROWS, PAPER_ROWS**-2.0
    z = rate * math.sqrt(2 * PAPER_STEPS * math.log(1 / delta)) / epsilon
    one, both = (epsilon_sampled(noise, rate, PAPER_STEPS, delta) for noise in (z, z / math.sqrt(2)))
    return one, both


def claims(epsilons: Sequence[float] = EPSILONS) -> str:
    """The paper's noise in words, for a record added or removed on Poisson samples."""
    said = []
    for epsilon in epsilons:
        one, both = papers_noise(epsilon)
        said.append(f"- epsilon {epsilon:g} is claimed: one gradient costs {one:.3g}, both together {both:.3g}.")
    return "\n".join(["What the noise of the paper's theorem costs, if every row's gradient is clipped:", *said])


def curve(
    problem: Problem,
    criterion: str,
    epsilons: Sequence[float],
    *,
    seeds: int,
    iterations: int = 1000,
    beside: bool = False,
) -> pd.DataFrame:
    """The trade-off of one problem, on one split of its rows; `beside` other private classifiers too."""
    import pandas as pd

    train, test = problem.split(np.random.default_rng(SPLIT))
    frame = tradeoff(
        train,
        test,
        problem.schema,
        public=True,
        target=problem.target,
        groups=[problem.group],
        penalties=PENALTIES,
        epsilons=epsilons,
        delta=DELTA,
        seeds=seeds,
        criterion=criterion,
        settings={"iterations": iterations},
    )
    if beside:
        few = min(seeds, SINGLE)
        others = rivals(problem, train, test, criterion, epsilons, delta=DELTA, seeds=few, iterations=iterations)
        frame = pd.concat([frame, others])
    return frame.assign(problem=problem.name)


def best(problem: Problem, criterion: str, weights: str = WEIGHTS[0]) -> pd.DataFrame:
    """Errors and violations of the exact minimisers, on the same split: a line for each penalty.

    `rate of CLASS` is the largest difference between groups of the rate of the last class among that true class.
    """
    import pandas as pd

    train, test = problem.split(np.random.default_rng(SPLIT))
    settings = {
        "target": problem.target,
        "groups": [problem.group],
        "criterion": criterion,
        "odds_weights": weights,
    }
    seen, lines = CurveRows.of(test, problem.schema, problem.target, [problem.group]), []
    for penalty, model in zip(PENALTIES, minimisers(train, problem.schema, PENALTIES, settings=settings), strict=True):
        said = seen.predictions(model)
        within = zip(problem.schema.levels(problem.target), gaps(seen.truth, said, seen.group), strict=True)
        measured = seen.measured(said)
        lines.append(
            {
                "penalty": penalty,
                "error": measured["error"],
                "violation": measured[criterion],
                **({f"rate of {level}": gap for level, gap in within} if criterion == "odds" else {}),
            }
        )
    return pd.DataFrame(lines)


def _best(problem: Problem, criterion: str, weights: str = WEIGHTS[0]) -> str:
    """The minimisers' table, and what it says."""
    frame = best(problem, criterion, weights)
    shown = frame.to_string(index=False, float_format="{:.3f}".format)
    how = {"alike": "", "shares": ", true classes weighed by their shares as in the paper"}[weights]
    lines = [
        f"The exact minimisers of loss and penalty{how}, on the same rows: no clip, no samples, no noise",
        shown,
    ]
    grown = frame["penalty"][1:][np.diff(frame["violation"]) > ALIKE]
    if len(grown):
        lines.append(
            f"- from one lambda to the next their violation grows at {', '.join(f'{p:g}' for p in grown)}: the penalty "
            "alone does not promise less of it, and no budget would help."
        )
    return "\n".join(lines)


def _table(problem: Problem, frame: pd.DataFrame) -> str:
    """Means over seeds, a line for each penalty or tolerance."""
    name = str(frame["criterion"].iloc[0])
    wide = summary(frame).pivot_table(
        index=["method", "penalty"], columns="epsilon", values=["error", "violation"], sort=False
    )
    head = f"{problem.name}: error, and violation of {name} (equation {'10' if name == 'parity' else '11'})"
    head += ", by lambda of fermi, tolerance of post-processing, and the others' settings"
    return f"{head}\n{wide.to_string(float_format='{:.3f}'.format)}"


def against_baseline(frame: pd.DataFrame, beside: str = BASELINE) -> pd.DataFrame:
    """Return error, violation, and error `beside` at that violation, for epsilons and penalties above 0.

    The baseline's errors are joined by lines between its tolerances; where a violation is smaller than any that it
    reaches, its error there is that of the smallest.
    """
    table = summary(frame)
    lines = []
    for epsilon, part in table.groupby("epsilon"):
        other = part[part["method"] == beside].sort_values("violation")
        for _, row in part[(part["method"] == METHOD) & (part["penalty"] > 0)].iterrows():
            at = float(np.interp(row["violation"], other["violation"], other["error"]))
            reached = bool(row["violation"] >= other["violation"].min() - 1e-9)
            lines.append({**row, "epsilon": epsilon, "baseline": at, "reached": reached})
    import pandas as pd

    return pd.DataFrame(lines)


def words(frame: pd.DataFrame) -> str:
    """Return sentences on the claims that hold and those that do not, from this run's figures."""
    said = []
    for beside in frame["method"].unique():
        if beside != METHOD:
            said += [_beside(beside, part) for _, part in against_baseline(frame, beside).groupby("epsilon")]
    return "\n".join(["What this run says, post-processing being told the sensitive attribute of everybody:", *said])


def _beside(beside: str, part: pd.DataFrame) -> str:
    """A sentence on `fermi`'s errors at the epsilon of `part` and those of another method at its violations."""
    reached = part[part["reached"]]
    more = reached["error"] - reached["baseline"]
    worse, beyond = reached[more > ALIKE], len(part) - len(reached)
    epsilon = float(part["epsilon"].iloc[0])
    line = (
        f"- epsilon {epsilon:g}: at the same violation, fermi's error is below that of {beside} by more than "
        f"{ALIKE:g} at {int((more < -ALIKE).sum())} of {len(reached)} penalties, above it at {len(worse)}"
    )
    line += f" (lambda {', '.join(f'{p:g}' for p in worse['penalty'])})" if len(worse) else ""
    line += f"; {beyond} more have a smaller violation than any setting of {beside}" if beyond else ""
    return line + "."


def by_epsilon(frame: pd.DataFrame) -> str:
    """Return sentences on `fermi`'s error from the smallest epsilon to the largest, a line a penalty."""
    table = summary(frame)
    own = table[table["method"] == METHOD]
    wide = own.pivot_table(index="penalty", columns="epsilon", values=["error", "violation"])
    low, high = own["epsilon"].min(), own["epsilon"].max()
    return "\n".join(
        f"- lambda {penalty:g}: from epsilon {low:g} to {high:g} the error goes from {row['error', low]:.3f} to "
        f"{row['error', high]:.3f}, the violation from {row['violation', low]:.3f} to {row['violation', high]:.3f}."
        for penalty, row in wide.iterrows()
    )
