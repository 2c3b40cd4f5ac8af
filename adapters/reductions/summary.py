"""Public summary of a fitted classifier: losses of groups and values of constraints, from noisy answers alone.

These are the counts and sums that steered the fit, so they are a little too favourable; their noise is stated beside
them. A group of too few records has the status `not_estimable`, and no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.reductions.classifier import RandomisedClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.reductions.goals import Goal, Part
    from stratsynth.adapters.reductions.loop import LoopResult
    from stratsynth.adapters.reductions.rates import Sizes
    from stratsynth.adapters.reductions.task import ReductionsProblem

    Floats = NDArray[np.float64]


def stated(task: ReductionsProblem, sizes: Sizes, goal: Goal, found: LoopResult) -> RandomisedClassifier:
    """Return the `RandomisedClassifier` of a `ReductionsProblem`'s `LoopResult`: classifiers, weights, facts.

    Facts, for pages and plans, are rates by `sizes`, the values of the goal, plan and settings.
    """
    best = int(np.argmin([goal.value(table) for table in found.counts]))
    s, alone = task.settings, found.counts[best]
    told = (alone, found.sigma) if s.deterministic else (found.mean, found.noise)
    facts: dict[str, Any] = {
        "rates": rates(sizes, *told),
        "goals": goals(goal, *told),
        "deterministic": goals(goal, alone, found.sigma),
        "plan": _plan(task, sizes, found),
        "measures": list(sizes.measures),
        "described": {
            "Classifier": f"{len(found.thetas)} linear classifiers of {task.target} "
            + (f"({len(task.levels)} levels) " if len(task.levels) > 2 else "")
            + f"on {len(task.features)} features, "
            + ("the best of them alone" if s.deterministic else "one drawn for each row"),
            "Groups": " x ".join(task.by) or "none: everybody together",
            "Fit": s.in_words,
            "Penalty": f"{goal.multiplier:.4g} for each unit of a broken constraint",
            "Sizes": "public" if task.sizes is not None else "counted with noise",
        },
    }
    return RandomisedClassifier(
        task.schema, task.design, task.target, found.thetas, found.weights, best, s.deterministic, facts
    )


def rates(sizes: Sizes, counts: Floats, noise: float) -> list[dict[str, Any]]:
    """Return a list of dicts, one a group and loss, everybody first, whose group is "".

    Keys: group, loss, records (by `sizes`), value (by `counts`, a vector of deviation `noise`), noise, status. Value
    and noise are None for too few records.
    """
    groups: list[tuple[str, int | None]] = [("", None)]
    groups += [(label, g) for g, label in enumerate(sizes.labels) if label]
    rows = []
    for label, g in groups:
        for loss in sizes.losses:
            known = sizes.estimable(loss, g)
            value = sizes.rate(loss, g, counts)
            rows.append(
                {
                    "group": label,
                    "loss": loss,
                    "records": max(float(sizes.numbers[sizes.cells(loss, g)].sum()), 0.0),
                    "value": value if known else None,
                    "noise": sizes.noise(loss, g, value, noise) if known else None,
                    "status": "ok" if known else "not_estimable",
                }
            )
    return rows


def goals(goal: Goal, counts: Floats, noise: float) -> list[dict[str, Any]]:
    """Return a list of dicts, for a goal's objective, each constraint, and each constraint left out.

    Keys: kind, name, group, bound (None for the objective), value, noise, status; of one left out the numbers are None.
    Values are by `counts`, a vector, of deviation `noise`.
    """
    rows = [_row(goal.objective, goal, counts, noise, "objective")]
    rows += [_row(part, goal, counts, noise, "constraint") for part in goal.constraints]
    nothing = {"kind": "constraint", "bound": None, "value": None, "noise": None, "status": "not_estimable"}
    return rows + [{**nothing, "name": name, "group": label} for name, label in goal.lacking]


def _row(part: Part, goal: Goal, counts: Floats, noise: float, kind: str) -> dict[str, Any]:
    """Return a dict of `part`, the objective or a constraint of `goal`, at `counts`, a vector of deviation `noise`.

    Keys are kind (`kind`, "objective" or "constraint"), name, group (empty), bound (None for the objective), value,
    noise (the value's deviation) and status ("ok"; of a constraint "holds" or "broken").
    """
    holds = "holds" if part.value(counts) <= 0 else "broken"
    return {
        "kind": kind,
        "name": part.name,
        "group": "",
        "bound": part.bound if kind == "constraint" else None,
        "value": part.measure(counts),
        "noise": part.noise(counts, noise, goal.smoothing),
        "status": "ok" if kind == "objective" else holds,
    }


def _plan(task: ReductionsProblem, sizes: Sizes, found: LoopResult) -> str:
    """Return a text: a `ReductionsProblem`'s settings; noise of its `LoopResult` in rates of the least of `sizes`."""
    smallest = max(float(np.min(sizes.numbers[sizes.numbers >= sizes.least], initial=np.inf)), 1.0)
    if not np.isfinite(smallest):
        return task.settings.in_words
    noises = [("rates", found.noise / np.sqrt(2) / smallest)]
    noises += [(f"{measure} loss", sizes.most(measure) * found.noise / smallest) for measure in sizes.measures]
    told = ", ".join(f"{name} {noise:.2g}" for name, noise in noises)
    return f"{task.settings.in_words}; noise in the smallest cell: {told}"
