"""Paper 000's claims on the smallest group, and what they cost the largest one, in words that follow from a run.

Two methods are compared at each setting by their mean squared errors on new people. Where rho is below `LITTLE`, the
noise of 100 steps is about as large as what is to be learnt in the small tables and the smallest groups here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from studies.regression.experiments import CONSTRAINED, GROUPS, PLENTY, SMALL_TABLES, SPLIT

if TYPE_CHECKING:
    import pandas as pd

ALIKE = 0.02
"""Errors whose ratio is this near to 1 are alike: runs differ by as much."""
LITTLE = 0.05
"""The rho up to which a budget is small: epsilon .32 of a pure guarantee."""
KEYS = ["experiment", "varied", "rho"]
CLAIMS = (
    ("Weights that count groups alike, beside weights by size (one noise)", "even", "pooled"),
    ("Tailored budgets beside equal ones, as the paper counts, groups alike", "tailored", "alike"),
    ("Tailored budgets beside equal ones in parallel, groups alike", "side", "together"),
    ("One noise for the weighted sum beside tailored budgets as the paper counts", "even", "tailored"),
    ("Tailored budgets beside plain descent, weights by size", "tailored pooled", "pooled"),
)
METHODS = {
    "pooled": ("DPNoSE", "combined", "pooled"),
    "even": ("DPNoSE", "combined", "balanced"),
    "together": ("DPNoSE", "parallel", "balanced"),
    "alike": ("DPNoSE", "paper", "balanced"),
    "tailored pooled": ("DPSE", "paper", "pooled"),
    "tailored": ("DPSE", "paper", "balanced"),
    "side": ("DPSE", "parallel", "balanced"),
    "alike pooled": ("DPNoSE", "paper", "pooled"),
}


def ends(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of the smallest and of the largest group of each setting: groups are numbered by size."""
    last = frame.groupby(KEYS)["group"].transform("max")
    return {"smallest": frame[frame["group"] == last], "largest": frame[frame["group"] == 1]}


def ratios(frame: pd.DataFrame, one: str, other: str) -> pd.Series[Any]:
    """Return the error of a method over another's by setting, for rows of one group each."""

    def error(name: str) -> pd.Series[Any]:
        mode, accounting, weighting = METHODS[name]
        chosen = (frame["mode"] == mode) & (frame["accounting"] == accounting) & (frame["weighting"] == weighting)
        return frame[chosen].set_index(KEYS)["error"]

    return (error(one) / error(other)).dropna()


def counted(found: pd.Series[Any]) -> str:
    """Return in words how often the ratios are below and above 1, and their median."""
    if found.empty:
        return "not tried"
    better, worse = int((found < 1 - ALIKE).sum()), int((found > 1 + ALIKE).sum())
    return f"less error in {better} of {len(found)} settings, more in {worse}, median ratio {float(found.median()):.3g}"


def words(frame: pd.DataFrame) -> list[str]:
    """Return sentences on the claims that hold and those that do not, from this run's figures."""
    plain = frame[~frame["experiment"].isin([CONSTRAINED, SPLIT])]
    lines = ["What this run says, by the size of the budget and of the group:"]
    lines += [line for claim, one, other in CLAIMS for line in _by_budget(plain, claim, one, other)]
    return [*lines, *_constrained(frame), *_splits(frame)]


def _by_budget(frame: pd.DataFrame, claim: str, one: str, other: str) -> Iterator[str]:
    yield f"- {claim}:"
    small = frame["experiment"] == SMALL_TABLES
    for name, part in (
        (f"rho up to {LITTLE:g}, small tables", frame[small & (frame["rho"] <= LITTLE)]),
        (f"rho above {LITTLE:g}, small tables", frame[small & (frame["rho"] > LITTLE)]),
        ("ten thousand people", frame[frame["experiment"].isin([PLENTY, GROUPS])]),
        ("real people", frame[~frame["experiment"].isin([PLENTY, GROUPS, SMALL_TABLES])]),
    ):
        if len(part):
            said = "; ".join(f"{who} group {counted(ratios(rows, one, other))}" for who, rows in ends(part).items())
            yield f"  - {name}: {said}."


def _constrained(frame: pd.DataFrame) -> Iterator[str]:
    """DPSE "still maintains the 10-50 % reduction" with constraints."""
    part = frame[frame["experiment"] == CONSTRAINED]
    bounded = part["varied"].str.contains(", bound ")
    for one, other, what in (("tailored", "alike", "groups alike"), ("tailored pooled", "alike pooled", "by size")):
        for name, rows in (("Without a bound", part[~bounded]), ("Under bounded group loss", part[bounded])):
            if len(rows):
                said = "; ".join(f"{who} group {counted(ratios(r, one, other))}" for who, r in ends(rows).items())
                yield f"- {name}, weights {what}, tailored beside equal budgets as the paper counts: {said}."
    for varied, rows in part[bounded].groupby("varied", sort=False):
        most = ends(rows)["smallest"]
        kept = most[(most["weighting"] == "pooled") & (most["accounting"] == "combined")].set_index("rho")["error"]
        yield f"- {varied}, weights by size, no tailoring: the smallest group's error is {_by_rho(kept)}."


def _splits(frame: pd.DataFrame) -> Iterator[str]:
    """The part of rho for stage 1."""
    part = frame[(frame["experiment"] == SPLIT) & (frame["mode"] == "DPSE") & (frame["weighting"] == "balanced")]
    for accounting, rows in ends(part)["smallest"].groupby("accounting", sort=False) if len(part) else ():
        for rho, by in rows.groupby("rho"):
            errors = by.set_index("varied")["error"]
            low = errors.idxmin()
            said = ", ".join(f"{error:.3g} with {varied}" for varied, error in errors.items())
            yield f"- DPSE, {accounting}, rho {rho:g}: the smallest group's error is {said}; least with {low}."


def _by_rho(errors: pd.Series[Any]) -> str:
    return ", ".join(f"{error:.3g} at rho {rho:g}" for rho, error in errors.sort_index().items())
