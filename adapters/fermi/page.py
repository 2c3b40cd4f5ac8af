"""Texts of a page on what a fit wants of its groups, and what it measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.strata import crossing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.adapters.fermi.mechanism import DPFermi
    from stratsynth.adapters.fermi.task import FermiProblem
    from stratsynth.adapters.fermi.training import FermiResult

    Floats = NDArray[np.float64]


LEAST_REACH = 2_000.0
"""Records times mu below which a gap is often .02 and more away from the wanted one: measured on Adult."""


def caution(task: FermiProblem) -> str:
    """Return a text if records and budget of a `FermiProblem` are too few for a wanted gap; empty otherwise."""
    if task.settings.gap is None or task.reach is None or task.reach >= LEAST_REACH:
        return ""
    return (
        f"records times mu are {task.reach:,.0f}, and below {LEAST_REACH:,.0f} the gap is often .02 and more away "
        "from the wanted one: declare more records, or spend more"
    )


def penalty_in_words(settings: DPFermi, task: FermiProblem) -> str:
    """Return a text on the penalty of `DPFermi` settings for a `FermiProblem`: weight, groups, classes; `none` at 0."""
    if not settings.weight:
        return "none"
    counted = {"alike": "each class alike", "shares": "classes by their shares"}[settings.odds_weights]
    within = f", given {task.target}, {counted}" if settings.criterion == "odds" else ""
    return f"{settings.weight:g} x ERMI of predictions and {' x '.join(settings.groups)}{within}"


def gap_in_words(task: FermiProblem, learned: FermiResult) -> dict[str, str]:
    """Return a dict, caption -> text: a `FermiProblem`'s wanted gap, its `FermiResult`'s gap, and the way there."""
    settings, gap = task.settings, learned.gap or {}
    second = task.schema.levels(task.target)[1]
    given = f", given {task.target}" if settings.criterion == "odds" else ""
    if gap["measured"] is None:
        measured = "not to be told: the groups' noisy counts are not clear of their noise"
    else:
        measured = (
            f"{gap['measured']:.3f}, noise (standard deviation) {gap['noise']:.3f}; from {gap['low']:.3f} to "
            f"{gap['high']:.3f} at level {gap['level']:g}: {gap['status']}"
        )
    return {
        "Wanted gap": f"at most {settings.wanted:g} between the rates at which {' x '.join(settings.groups)} are "
        f"predicted as {second}{given}",
        "Gap of the private rows": measured,
        **(_reached(task, gap["multipliers"], learned.thresholds)),
    }


def _reached(task: FermiProblem, multipliers: Sequence[float], thresholds: Floats | None) -> dict[str, str]:
    """Return a dict of one caption and text: `multipliers` of a `FermiProblem`'s gap, or its groups' `thresholds`.

    `thresholds` is an array of logits, one a group; None shows the list of multipliers.
    """
    if thresholds is None:
        return {"Multipliers": " ".join(f"{one:.3g}" for one in multipliers) or "0"}
    groups = crossing(task.schema, task.settings.groups)
    each = "; ".join(f"{group.label} {one:.3f}" for group, one in zip(groups, thresholds, strict=True))
    return {"Thresholds": f"{each}. Decisions use the group: people alike in all else may be decided otherwise"}
