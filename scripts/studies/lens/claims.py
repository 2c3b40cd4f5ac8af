"""INTERNAL. Verdicts on paper 001's claims, in words that follow from the figures."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from stratsynth.evaluation.tables import FEW

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

BY = ["world", "model", "mitigation"]
"""Columns that identify a gap."""
APART = 0.1
"""Smallest relative difference of traces or norms, as a fraction of the larger, that makes a claim."""


def last_of(training: pd.DataFrame, scaled: str = "by bounds") -> pd.DataFrame:
    """The end of each training."""
    found: pd.DataFrame = training[(training["step"] == training["step"].max()) & (training["scaled"] == scaled)]
    return found


def gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """The gap between the groups: the largest excessive risk less the least, of groups that are not tiny.

    Returns:
        One row for each of `BY`: everybody's risk, the gap, and half its 95 percent interval over fits.
    """
    own = frame[(frame["group"] != "everybody") & (frame["n"] >= FEW)].groupby([*BY, "repeat"], sort=False)["excess"]
    every = frame[frame["group"] == "everybody"].set_index([*BY, "repeat"])["excess"]
    each = (own.max() - own.min()).to_frame("gap").assign(everybody=every)
    found: pd.DataFrame = each.groupby(BY, sort=False).agg(
        everybody=("everybody", "mean"), gap=("gap", "mean"), spread=("gap", "sem"), fits=("gap", "size")
    )
    found["spread"] *= stdtrit(found.pop("fits") - 1, 0.975)
    return found


def words(found: Mapping[str, pd.DataFrame]) -> str:
    """Return every claim with its counts, one a line."""
    output, training, steps = found["output"], found["training"], found["steps"]
    last, places = last_of(training), steps[steps["step"] > 0]
    inside = ((output["low"] <= output["closed"]) & (output["closed"] <= output["high"]))[output["model"] == "linear"]
    psi = (places["clipping_second"].abs() / places["clipping"].abs()).median()
    together = places.groupby(["world", "model"])["correlation"].mean()
    by_bounds, by_groups = (_apart(last_of(training, how)) for how in ("by bounds", "by groups"))
    claims = (
        ("Larger traces go with larger excessive risk under output perturbation (Theorem 1)", output, "trace", "risk"),
        ("Larger traces go with larger parts of noise in one step (Theorem 4)", places, "trace", "noise"),
        ("Larger traces go with larger parts of noise over a training", last, "trace", "noise"),
        ("Longer gradients go with larger parts of clipping in one step", places, "gradient_norm", "clipping"),
        ("Longer gradients go with larger parts of clipping over a training", last, "gradient_norm", "clipping"),
    )
    lines = [claim(text, ordered(frame, by, what)) for text, frame, by, what in claims]
    lines += [
        f"The closed form for squared loss lies in {inside.sum()} of {len(inside)} intervals of 95 % by draws.",
        f"The Hessian's share of the part of clipping in a step is {psi:.0%} at the median; the paper says negligible.",
        (
            f"A row's trace and its nearness to the boundary have a correlation of {together.min():.2f} to "
            f"{together.max():.2f}: Theorem 5 bounds a factor of the trace, not the trace."
        ),
        (
            "Bringing each group to its own mean and variance, which is not private, changes the gap of excessive risk "
            f"from {by_bounds:.4f} to {by_groups:.4f} on average (figure 9)."
        ),
        *_mitigated(gaps(found["mitigation"])),
    ]
    return "\n".join(f"- {line}" for line in lines)


def _mitigated(gap: pd.DataFrame) -> list[str]:
    """Return the numbers of cases in which a mitigation narrows or widens the gap, intervals being disjoint."""
    ends = gap.assign(low=gap["gap"] - gap["spread"], high=gap["gap"] + gap["spread"])
    lines = []
    for model in dict.fromkeys(ends.index.get_level_values("model")):
        one = ends.xs(model, level="model")
        none = one.xs("none", level="mitigation")
        for way in dict.fromkeys(one.index.get_level_values("mitigation")):
            if way == "none":
                continue
            here = one.xs(way, level="mitigation").reindex(none.index)
            better = [str(name) for name in none.index[here["high"] < none["low"]]]
            worse = [str(name) for name in none.index[here["low"] > none["high"]]]
            lines.append(
                f"{model}, {way}: the gap between the groups is narrower by more than chance in {len(better)} of "
                f"{len(none)}{_named(better)}, and wider in {len(worse)}{_named(worse)}."
            )
    return lines


def _named(names: list[str]) -> str:
    return f" ({'; '.join(names)})" if names else ""


def ordered(frame: pd.DataFrame, by: str, what: str) -> tuple[int, int]:
    """Return the number of pairs of groups that `by` and `what` order alike, and the number of pairs."""
    keys = [key for key in ("world", "model", "step") if key in frame]
    right = of = 0
    for _, groups in frame[(frame["group"] != "everybody") & (frame["n"] >= FEW)].groupby(keys, sort=False):
        lines: list[dict[Any, Any]] = groups.sort_values(by).to_dict("records")
        for low, high in combinations(lines, 2):
            if high[by] - low[by] > APART * max(abs(high[by]), abs(low[by])):
                of, right = of + 1, right + (high[what] > low[what])
    return right, of


def claim(text: str, counted: tuple[int, int]) -> str:
    """A claim with its verdict."""
    right, of = counted
    verdict = "holds" if right == of else "holds mostly" if right > of / 2 else "fails"
    return f"{text}: {verdict}, {right} of {of}." if of else f"{text}: there is nothing to compare."


def _apart(frame: pd.DataFrame) -> float:
    """The mean over cases and models of the gap between the groups' excessive risk."""
    own = frame[(frame["group"] != "everybody") & (frame["n"] >= FEW)].groupby(["world", "model"])["excess"]
    return float(np.mean(own.max() - own.min()))
