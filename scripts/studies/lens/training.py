"""INTERNAL. Private gradient descent on many models at once, as columns, and what privacy cost each group on the way.

All models see the same Poisson samples and differ in clip, noise and the draws of that noise. Beside a private model
stand its twins: one without noise, and one without clip or noise. Their differences are the parts of its excess:

    L(private) - L(plain)  =  [L(clipped) - L(plain)]  +  [L(private) - L(clipped)]          clipping, and noise

This holds over a whole training, where Theorem 2 speaks of one step from one place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator
    from numpy.typing import NDArray

    from studies.lens.losses import Loss
    from studies.lens.people import People

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """Settings that all models share."""

    rate: float
    """The learning rate."""
    steps: int
    """Number of steps."""
    batch: float
    """The expected number of rows in a sample."""
    every: int = 0
    """Models are looked at every so many steps; at the start and at the end alone for 0."""

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of steps after which models are measured."""
        inner = range(self.every, self.steps, self.every) if self.every else ()
        return (0, *inner, self.steps)


def descend(
    loss: Loss, people: People, start: Floats, clip: Floats, multiplier: Floats, training: Training, rng: Generator
) -> list[Floats]:
    """The models at each look.

    Args:
        loss: The kind of model.
        people: The rows.
        start: One column a model.
        clip: The clip of each model; infinite for none.
        multiplier: The noise on each sum of clipped gradients, in clips: 0 for none.
        training: Steps and samples.
        rng: Draws samples, the same for all models, and noise.
    """
    theta, found = np.array(start, np.float64), []
    spread = np.where(multiplier > 0, np.where(np.isfinite(clip), clip, 0.0) * multiplier, 0.0)
    noisy = np.flatnonzero(spread)
    looks, part = set(training.looks), training.batch / people.size
    for step in range(training.steps + 1):
        if step in looks:
            found.append(theta.copy())
        if step == training.steps:
            break
        chosen = np.flatnonzero(rng.random(people.size) < part) if part < 1 else slice(None)
        pull = loss.pull(people.x[chosen], people.y[chosen], theta, clip)
        if len(noisy):
            pull[:, noisy] += spread[noisy] * rng.normal(size=(len(theta), len(noisy)))
        theta -= training.rate / training.batch * pull
    return found


def risks(
    loss: Loss,
    people: People,
    start: Floats,
    clip: float,
    multiplier: float,
    training: Training,
    *,
    runs: int,
    seed: int,
    samples: int = 1,
) -> pd.DataFrame:
    """Return each group's excessive risk over a training and its parts, with intervals over draws of noise and samples.

    Args:
        loss: The kind of model.
        people: The rows.
        start: Where every model starts: one axis.
        clip: C.
        multiplier: The noise on a sum, in clips.
        training: Steps and samples.
        runs: The number of private models for each sequence of samples.
        seed: Of samples and noise.
        samples: The number of sequences of samples.

    Returns:
        For each look and group: `n`, `loss` of the plain twin, `excess` with `low` and `high`, a 95 percent interval of
        its expectation, and its parts `clipping` and `noise`; of the private models the mean `trace`,
        `gradient_norm` and `boundary`.
    """
    import pandas as pd

    clips = np.array([math.inf, clip, *[clip] * runs])
    noise = np.array([0.0, 0.0, *[multiplier] * runs])
    trails = [
        descend(loss, people, np.repeat(start[:, None], len(clips), axis=1), clips, noise, training, rng)
        for rng in np.random.default_rng(seed).spawn(samples)
    ]
    frames = []
    for at, step in enumerate(training.looks):
        losses = np.array([people.means(loss.values(people.x, people.y, trail[at])) for trail in trails])
        plain, clipped, private = losses[..., 0], losses[..., 1], losses[..., 2:]
        excess = private - plain[..., None]
        # noise differs within a sequence of samples, so sequences are what is independent
        mean, error = _interval(excess)
        shown = np.concatenate([trail[at][:, 2:] for trail in trails], axis=1)
        frames.append(
            pd.DataFrame(
                {
                    "step": step,
                    "group": people.scopes,
                    "n": [*people.counts.astype(int), people.size],
                    "loss": plain.mean(axis=0),
                    "excess": mean,
                    "low": mean - error,
                    "high": mean + error,
                    "clipping": (clipped - plain).mean(axis=0),
                    "noise": (private - clipped[..., None]).mean(axis=(0, 2)),
                    **_looks(loss, people, shown),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _interval(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean over samples (first axis) and runs (last), and half a 95 percent interval."""
    from scipy.special import stdtrit

    units = values.mean(axis=2) if len(values) > 1 else np.moveaxis(values[0], 1, 0)
    count = len(units)
    error = units.std(axis=0, ddof=1) / math.sqrt(count) * stdtrit(count - 1, 0.975) if count > 1 else np.nan
    return units.mean(axis=0), np.broadcast_to(error, units.shape[1:])


def _looks(loss: Loss, people: People, theta: Floats) -> dict[str, Floats]:
    """Return figures that accompany unequal losses, by group, for at most eight of the models."""
    some = theta[:, : min(8, theta.shape[1])]
    scores = {
        "trace": loss.traces(people.x, people.y, some),
        "gradient_norm": loss.norms(people.x, people.y, some),
        "boundary": loss.boundary(people.x, some),
    }
    return {name: people.means(score).mean(axis=1) for name, score in scores.items()}
