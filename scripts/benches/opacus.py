"""`predict --only opacus`: noisy gradient descent of a logistic model, ours beside Opacus on the same processor.

Both get the same made-up rows of Adult's size, the same features, steps, expected batch, clip, noise and learning rate,
and start at 0. Ours is a whole private fit from a frame to a certificate; Opacus gets tensors. The search for the noise
multiplier is left out of both: ours remembers it from a first fit that is not timed, and Opacus is given it.

The same training is the one that users of Opacus run: `PrivacyEngine.make_private`, with its own loader of Poisson
samples. A second figure, without a target, is of Opacus' gradients, clip and noise alone, on samples that we cut from
one tensor for it, which spares it the collection of single rows. PyTorch gets one thread, with which it is faster here.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from benches import opacus_rival
from benches.fermi import ROWS, STEPS, sized_like_adult
from benches.figures import Timing, seconds, timed
from stratsynth.errors import UsageError
from stratsynth.evaluation.fermi.columns import multiplier
from stratsynth.mechanisms import make
from stratsynth.schema import Numeric
from studies.figures import Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from studies.data import Problem

    Floats = NDArray[np.float64]

EPSILON, DELTA, BATCH, CLIP = 3.0, 1e-6, 1024, 1.0
TARGET = 5.0
"""Least ratio of Opacus' time to ours."""


def run(*, seeds: int = 5) -> list[Figure]:
    """Both trainings in one run.

    Args:
        seeds: How often ours is timed; Opacus trains once in each way.
    """
    python = os.environ.get("STRATSYNTH_OPACUS")
    if python is None:
        raise UsageError("Opacus has an environment of its own: run this as `scripts/bench predict --only opacus`.")
    people = sized_like_adult()
    x, y = _matrix(people), (people.frame["Y"] == "yes").to_numpy()
    settings = {"target": "Y", "penalty": 0.0, "batch": BATCH, "clip": CLIP, "features": _features(people)}
    made: list[Any] = []

    def fit() -> None:
        table = ss.open_table(people.frame, schema=people.schema, declared_size=ROWS)
        made.append(ss.fit(make("fermi", {**settings, "iterations": STEPS}), table, ss.Budget(EPSILON, DELTA)))

    ours = timed(fit, seeds)
    rate = made[0].model.facts["rate"]
    theirs = _rival(
        python,
        x=x,
        y=y,
        noise=multiplier(EPSILON, DELTA, BATCH / ROWS, STEPS),
        clip=CLIP,
        rate=rate,
        steps=STEPS,
        batch=BATCH,
    )
    right = float((made[0].predict(people.frame) == people.frame["Y"]).mean())
    what = f"{STEPS:,} steps of batch {BATCH:,} on {ROWS:,} rows of {x.shape[1]} features"
    figures = [
        seconds(f"fermi without penalty, a private fit with its certificate, {what}", ours),
        Figure("fermi: accuracy on its own rows, epsilon 3", right, ""),
    ]
    ways = (
        ("loader", "as its users have it, with its own loader of Poisson samples", "the same training"),
        ("tensors", "its gradients, clip and noise alone, on samples cut from one tensor", "as many steps"),
    )
    for way, words, training in ways:
        spent, accuracy = float(theirs[f"{way}_seconds"]), float(theirs[f"{way}_accuracy"])
        times = spent / ours.median
        name, wanted = f"Opacus, {words}", way == "loader"
        figures += [
            seconds(f"{name}: {training}", Timing((spent,))),
            Figure(f"{name}: accuracy on its own rows", accuracy, ""),
            Figure(
                f"{name}: times as long",
                times,
                "",
                1,
                None,
                f"at least {TARGET:g}" if wanted else "",
                times >= TARGET if wanted else None,
            ),
        ]
    return figures


def _features(people: Problem) -> list[str]:
    return [name for name in people.schema.names if name not in (people.target, people.group)]


def _matrix(people: Problem) -> Floats:
    """The features of our own design, without the constant: numbers as they are, and a 0/1 for all levels but one."""
    parts: list[Any] = []
    for name in _features(people):
        column = people.schema.column(name)
        values = people.frame[name].to_numpy()
        parts += [values] if isinstance(column, Numeric) else [values == level for level in column.all_levels[1:]]
    return np.column_stack(parts).astype(np.float64)


def _rival(python: str, **given: Any) -> Any:
    """Return the results of `opacus_rival`, which runs in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **given)
        # -P: beside that file lies this one, whose name is Opacus' own
        command = [python, "-P", opacus_rival.__file__, str(source), str(result)]
        subprocess.run(command, check=True)  # noqa: S603 - our own file
        return dict(np.load(result))
