"""The experiments of paper 001, redone in shape; `scripts/reproduce_lens` runs this.

    python -m stratsynth.evaluation.lens [--runs N] [--repeats N] [--out DIR]

People are simulated and differ in one way at a time, so that what is to blame is known; figures differ from the
paper's, and what can be compared is which claims hold. All is seeded but the noise of `fair_sgd`, and NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.errors import StratsynthError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

FITTED, SIMULATED = ["world", "mitigation"], ["world", "model", "gamma2"]
"""What gaps are told apart by."""
APART = 0.1
"""Traces or norms that differ by less, as a part of the larger, are alike and claim nothing."""


def main(arguments: list[str] | None = None) -> int:
    """Run everything, print tables and words, and write them into a folder if one is named."""
    parser = argparse.ArgumentParser(
        prog="scripts/reproduce_lens", description="Paper 001's experiments on excessive risk, redone."
    )
    parser.add_argument("--runs", metavar="N", type=int, default=30, help="how many runs of noise of each (30)")
    parser.add_argument("--repeats", metavar="N", type=int, default=10, help="how many fits of each mitigation (10)")
    parser.add_argument("--out", metavar="DIR", type=Path, help="a new folder for tables (CSV) and a picture (PNG)")
    given = parser.parse_args(arguments)
    try:
        text = reproduce(given.runs, given.repeats, given.out)
    except StratsynthError as error:
        sys.stderr.write(f"reproduce_lens: {error}\n")
        return error.exit_code
    sys.stdout.write(text + "\n")
    return 0


def reproduce(runs: int, repeats: int, out: Path | None) -> str:
    """All experiments; the text to print."""
    from stratsynth.evaluation.lens import experiments

    if runs < 2 or repeats < 2:
        raise UsageError("runs and repeats are whole numbers of at least 2.")
    if out is not None and out.exists():
        raise UsageError(f"{out} exists already; name a new folder with --out.")
    rng = np.random.default_rng(2021)
    found = {
        "output": experiments.output(20 * runs, rng), "training": experiments.training(runs, rng),
        "steps": experiments.steps(rng), "mitigation": experiments.mitigation(repeats, rng),
        "networks": experiments.networks(runs, rng),
    }  # fmt: skip
    if out is not None:
        from stratsynth.evaluation.lens.picture import picture

        out.mkdir(parents=True)
        for name, frame in found.items():
            frame.to_csv(out / f"{name}.csv", index=False)
        picture(found["training"], out / "training.png")
    return "\n\n".join(
        ["The fairness lens on simulated people, two groups each. NOT PRIVATE.", *tables(found), *words(found)]
    )


def tables(found: Mapping[str, pd.DataFrame]) -> list[str]:
    """Each experiment's figures at its end."""
    training = found["training"]
    last = training[(training["step"] == training["step"].max()) & (training["scaled"] == "by bounds")]
    gaps, simulated = (
        _gaps(found[name], by).round(4) for name, by in (("mitigation", FITTED), ("networks", SIMULATED))
    )
    return [
        "Output perturbation: excessive risk by its closed form and by draws.\n"
        + _table(found["output"], ["world", "model", "group", "trace", "closed", "risk", "low", "high"]),
        "At the end of a private training: excessive risk and its parts.\n"
        + _table(last, ["world", "model", "group", "trace", "gradient_norm", "excess", "clipping", "noise"]),
        "fair_sgd: mean excessive risk of everybody and the gap between the groups, over fits.\n"
        + gaps.to_string(index=False),
        "gamma2 in simulated training, of networks too: the same figures over runs.\n"
        + simulated.to_string(index=False),
    ]


def _table(frame: pd.DataFrame, columns: list[str]) -> str:
    return frame[columns].round(4).to_string(index=False)


def _gaps(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """One row for each of `by`: everybody's risk, the gap between groups, and half its 95 percent interval."""
    gap = frame.assign(gap=(frame["majority"] - frame["minority"]).abs())
    found = gap.groupby(by, sort=False).agg(everybody=("everybody", "mean"), gap=("gap", "mean"), spread=("gap", "sem"))
    return found.assign(spread=1.96 * found["spread"]).reset_index()


def words(found: Mapping[str, pd.DataFrame]) -> list[str]:
    """Which of the paper's claims hold here."""
    output, training, steps = found["output"], found["training"], found["steps"]
    last = training[(training["step"] == training["step"].max()) & (training["scaled"] == "by bounds")]
    places = steps[steps["step"] > 0]
    inside = ((output["low"] <= output["closed"]) & (output["closed"] <= output["high"]))[output["model"] == "linear"]
    psi = (places["clipping_second"].abs() / places["clipping"].abs()).median()
    together = places.groupby(["world", "model"])["correlation"].mean()
    by_bounds, by_groups = (
        _apart(training[(training["step"] == training["step"].max()) & (training["scaled"] == how)], "excess")
        for how in ("by bounds", "by groups")
    )
    claims = (
        ("Larger traces go with larger excessive risk under output perturbation (Theorem 1)", output, "trace", "risk"),
        ("Larger traces go with larger parts of noise in one step (Theorem 4)", places, "trace", "noise"),
        ("Larger traces go with larger parts of noise over a training", last, "trace", "noise"),
        ("Longer gradients go with larger parts of clipping in one step", places, "gradient_norm", "clipping"),
        ("Longer gradients go with larger parts of clipping over a training", last, "gradient_norm", "clipping"),
    )
    lines = [_claim(text, _ordered(frame, by, what)) for text, frame, by, what in claims]
    lines += [
        f"The closed form for squared loss lies in {inside.sum()} of {len(inside)} intervals of 95 % by draws.",
        f"The Hessian's share of the part of clipping in a step is {psi:.0%} at the median; the paper says negligible.",
    ]
    lines.append(
        f"A row's trace and its nearness to the boundary have a correlation of {together.min():.2f} to "
        f"{together.max():.2f}: Theorem 5 bounds a factor of the trace, not the trace."
    )
    lines.append(
        "Bringing each group to its own mean and variance, which is not private, changes the gap of excessive risk "
        f"from {by_bounds:.4f} to {by_groups:.4f} on average (figure 9)."
    )
    gaps = _gaps(found["mitigation"], FITTED).set_index(FITTED)
    for name in ("surrogate", "group_clip", "global_adapt"):
        better = [w for w in dict.fromkeys(gaps.index.get_level_values(0)) if _better(gaps, str(w), name)]
        total = len(gaps) // len(dict.fromkeys(gaps.index.get_level_values(1)))
        lines.append(
            f"{name} narrows the gap between the groups by more than chance in {len(better)} of {total} worlds"
            + (f": {', '.join(map(str, better))}." if better else ".")
        )
    lines += _simulated(_gaps(found["networks"], SIMULATED))
    return ["In words:\n" + "\n".join(f"- {line}" for line in lines)]


def _simulated(gaps: pd.DataFrame) -> list[str]:
    """In how many worlds a simulated gamma2 narrows or widens the gap, by more than the intervals."""
    ends = gaps.assign(low=gaps["gap"] - gaps["spread"], high=gaps["gap"] + gaps["spread"])
    lines = []
    for model, one in ends.groupby("model", sort=False):
        none = one[one["gamma2"] == 0].set_index("world")
        for gamma, simulated in one[one["gamma2"] > 0].groupby("gamma2"):
            some = simulated.set_index("world")
            narrower, wider = (some["high"] < none["low"]).sum(), (some["low"] > none["high"]).sum()
            lines.append(
                f"Simulated with gamma2 {gamma}, {model}: the gap is narrower by more than chance in {narrower} of "
                f"{len(none)} worlds, and wider in {wider}."
            )
    return lines


def _better(gaps: pd.DataFrame, world: str, name: str) -> bool:
    """Whether the gap is narrower than without mitigation, and intervals do not overlap."""
    gap, spread = ({key: float(value) for key, value in gaps[what][world].items()} for what in ("gap", "spread"))
    return gap[name] + spread[name] < gap["none"] - spread["none"]


def _ordered(frame: pd.DataFrame, by: str, what: str) -> tuple[int, int]:
    """In how many comparisons the group that is larger in one is larger in the other; and how many there are."""
    keys = [key for key in ("world", "model", "step") if key in frame]
    right = of = 0
    for _, both in frame[frame["group"] != "everybody"].groupby(keys, sort=False):
        low, high = both.sort_values(by).to_dict("records")
        if high[by] - low[by] > APART * max(abs(high[by]), abs(low[by])):
            of, right = of + 1, right + (high[what] > low[what])
    return right, of


def _claim(text: str, counted: tuple[int, int]) -> str:
    right, of = counted
    verdict = "holds" if right == of else "holds mostly" if right > of / 2 else "fails"
    return f"{text}: {verdict}, {right} of {of}." if of else f"{text}: there is nothing to compare."


def _apart(frame: pd.DataFrame, what: str) -> float:
    """The mean over worlds and models of the distance between the two groups."""
    wide = frame.pivot_table(index=["world", "model"], columns="group", values=what)
    return float((wide["majority"] - wide["minority"]).abs().mean())
