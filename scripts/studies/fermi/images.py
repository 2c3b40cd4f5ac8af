"""Images that are made up, of nine classes and five groups: a convolutional network with and without a penalty.

An image of 12 x 12 pixels shows one of nine glyphs, moved and blurred by noise, before one of five backgrounds. The
glyph is the class, the background the group, and each group has three classes that are more frequent. The paper's own
task, of faces, cannot be passed on; its sizes are these. The rows are public: everything is seeded, and NOT PRIVATE.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.fermi.columns import CurveFit, fitted
from stratsynth.evaluation.fermi.violations import violations
from stratsynth.schema import Categorical, Numeric, Schema
from studies.data import Problem

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]

SIDE, GLYPH = 12, 6
CLASSES, GROUPS = 9, 5
FREQUENT = 5.0
"""Ratio of the frequencies of three of a group's classes to those of its others."""
NOISE = 0.6
"""The standard deviation of a pixel."""
ROWS, TEST = 20_000, 5_000
EPSILONS = (1.0, 3.0, math.inf)
PENALTIES = (0.0, 2.0)
DELTA = 1e-5
SETTINGS: dict[str, Any] = {
    "network": "conv",
    "image": [SIDE, SIDE],
    "hidden": [8, 16],
    "batch": 512,
    "clip": 1.0,
    "rate": 4.0,
}


def images(rows: int, seed: int) -> Problem:
    """Made-up images as rows: 144 columns of pixels, the class Y and the group S."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    group = rng.choice(GROUPS, rows, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    shares = np.ones((GROUPS, CLASSES))
    for g in range(GROUPS):
        shares[g, [(2 * g) % CLASSES, (2 * g + 1) % CLASSES, (2 * g + 2) % CLASSES]] = FREQUENT
    chances = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    label = np.minimum((rng.random(rows)[:, None] > chances[group]).sum(axis=1), CLASSES - 1)
    pixels = _backgrounds()[group] + rng.normal(0, NOISE, (rows, SIDE, SIDE))
    down, right = rng.integers(SIDE - GLYPH + 1, size=(2, rows))
    glyphs = _glyphs()
    places = np.arange(GLYPH)
    pixels[
        np.arange(rows)[:, None, None], (down[:, None] + places)[:, :, None], (right[:, None] + places)[:, None]
    ] += glyphs[label]
    names = [f"P{i}_{j}" for i in range(SIDE) for j in range(SIDE)]
    frame = pd.DataFrame(np.clip(pixels.reshape(rows, -1), -3, 3), columns=names)
    frame["S"], frame["Y"] = np.array(list("abcde"))[group], np.array([f"c{k}" for k in range(CLASSES)])[label]
    columns: dict[str, Any] = {name: Numeric(lower=-3, upper=3, bins=1) for name in names}
    columns["S"] = Categorical(levels=tuple("abcde"))
    columns["Y"] = Categorical(levels=tuple(f"c{k}" for k in range(CLASSES)))
    return Problem("made-up images", frame, Schema(columns), "Y", "S")


def _glyphs() -> Floats:
    """Nine figures of 6 x 6 pixels: bars, crosses, a ring, a block."""
    found = np.zeros((CLASSES, GLYPH, GLYPH))
    middle, diagonal = slice(2, 4), np.arange(GLYPH)
    found[0][middle] = 1
    found[1][:, middle] = 1
    found[2][middle] = found[2][:, middle] = 1
    found[3][diagonal, diagonal] = found[3][diagonal[:-1], diagonal[1:]] = 1
    found[4] = found[3][::-1]
    found[5] = np.maximum(found[3], found[4])
    found[6][[0, -1]] = found[6][:, [0, -1]] = 1
    found[7][1:5, 1:5] = 1
    found[8][[0, -1]] = 1
    return 2 * found


def _backgrounds() -> Floats:
    """Five patterns of the whole image: none, slopes from three sides, stripes."""
    slope = np.linspace(-0.5, 0.5, SIDE)
    rows, columns = np.broadcast_to(slope[:, None], (SIDE, SIDE)), np.broadcast_to(slope, (SIDE, SIDE))
    stripes = np.where(np.arange(SIDE) % 4 < 2, 0.5, -0.5)
    return np.array([np.zeros((SIDE, SIDE)), rows, columns, -rows, np.broadcast_to(stripes, (SIDE, SIDE))])


def reproduce(*, seeds: int = 1, iterations: int = 600, rows: int = ROWS) -> tuple[str, pd.DataFrame]:
    """Fit every penalty at every epsilon; the text to print, and a line for each fit.

    Args:
        seeds: Fits of each setting, each on rows of its own.
        iterations: Steps of a fit.
        rows: How many images a fit sees.
    """
    import pandas as pd

    lines = []
    for seed in range(seeds):
        train, test = images(rows, seed), images(TEST, 10_000 + seed)
        truth, group = (_numbers(test, name) for name in ("Y", "S"))
        settings = {**SETTINGS, "target": "Y", "groups": ["S"], "iterations": iterations}
        for epsilon in EPSILONS:
            for penalty in PENALTIES:
                begun = time.perf_counter()
                (model,) = fitted(
                    train.frame,
                    train.schema,
                    [CurveFit(penalty, epsilon, seed)],
                    delta=DELTA,
                    settings=settings,
                    seed=seed,
                )
                spent = time.perf_counter() - begun
                said = _levels(test, "Y", model.predict(model.shown(test.frame)))
                figures = violations(truth, said, group)
                lines.append({"epsilon": epsilon, "penalty": penalty, "seed": seed, **figures, "seconds": spent})
    frame = pd.DataFrame(lines)
    return words(frame, rows=rows, iterations=iterations), frame


def words(frame: pd.DataFrame, *, rows: int, iterations: int) -> str:
    """The table, and what it says."""
    seeds = frame["seed"].nunique()
    shown = ["error", "parity", "ermi", "seconds"]
    table = frame.groupby(["epsilon", "penalty"])[shown].mean()
    head = (
        f"A convolutional network on {rows:,} made-up images of {CLASSES} classes and {GROUPS} groups, {iterations} "
        f"steps of about {SETTINGS['batch']}, delta {DELTA:g}; means of {seeds} {'fit' if seeds == 1 else 'fits'}, on "
        f"{TEST:,} new images.\nparity: the largest difference between groups' rates of a predicted class (eq. 10)."
    )
    said = [head, table.to_string(float_format="{:.3f}".format)]
    for epsilon, whole in table.groupby("epsilon"):
        part = whole.droplevel("epsilon")
        parity, error = part["parity"], part["error"]
        for penalty in part.index[1:]:
            ratio, more = parity[penalty] / parity[0.0], error[penalty] - error[0.0]
            said.append(
                f"- epsilon {epsilon:g}, lambda {penalty:g} instead of 0: violation of parity {100 * (ratio - 1):+.0f} "
                f"%, error {100 * more:+.1f} points."
            )
    return "\n".join(said)


def _numbers(problem: Problem, name: str) -> Ints:
    return _levels(problem, name, problem.frame[name].to_numpy())


def _levels(problem: Problem, name: str, values: NDArray[Any]) -> Ints:
    """Levels as numbers."""
    return np.searchsorted(np.array(problem.schema.levels(name)), values.astype(str))
