"""DP-oracle-learner of Jagielski and others (paper 002, appendix C) beside `reductions`, on one set of thresholds.

Exponentiated gradient plays multipliers lambda of the violations r of equalized odds against a learner who picks the
candidate of least error + lambda . r by the exponential mechanism; its answer is the uniform mixture of T picks.

    theta <- theta + eta (r + noise),   lambda = B exp(theta) / (1 + sum exp(theta))

Each round costs epsilon' = epsilon / 4 sqrt(T log 1/delta) twice: a pick, and Laplace noise on its violations. Theirs
protects the sensitive attribute alone, by advanced composition; here a record is added or removed as everywhere, both
ways get public sizes of the groups, and a second row prices the same rounds in zCDP. NOT PRIVATE: noise has a seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import stratsynth as ss
from stratsynth.accounting.zcdp import rho_of
from stratsynth.mechanisms import make

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DELTA = 1e-6
SLACK = 0.05
"""gamma: the largest difference of rates between the groups."""
CANDIDATES = 100
BOUND = 2.0
"""B, the largest sum of multipliers: the number of groups, as the paper sets it."""
RATE = 2.0 / BOUND
"""eta: fairlearn's first rate, which converges sooner than the one of the proof."""
SCHEMA = ss.Schema(
    {
        "G": ss.Categorical(levels=("a", "b")),
        "X": ss.Numeric(lower=-1, upper=1, bins=2),
        "D": ss.Categorical(levels=("no", "yes")),
    }
)


@dataclass(frozen=True, eq=False)
class Game:
    """Exact counts of all candidates: what errors and violations are made of."""

    counts: Floats
    """Records by candidate, group, label and prediction."""

    @classmethod
    def of(cls, frame: pd.DataFrame, thetas: Floats) -> Game:
        """Return the counts of candidates, a row of `thetas` each, on rows with G, X and D."""
        said = np.column_stack([np.ones(len(frame)), frame["X"]]) @ thetas.T > 0
        cells = 2 * (frame["G"] == "b").to_numpy(np.intp) + (frame["D"] == "yes").to_numpy(np.intp)
        hits = np.array([said[cells == cell].sum(axis=0) for cell in range(4)], np.float64)
        sizes = np.bincount(cells, minlength=4).astype(np.float64)
        counts = np.stack([sizes[:, None] - hits, hits], axis=-1)  # cells x candidates x predictions
        return cls(np.moveaxis(counts, 0, 1).reshape(len(thetas), 2, 2, 2))

    @property
    def sizes(self) -> Floats:
        """Records by group and label."""
        found: Floats = self.counts[0].sum(axis=2)
        return found

    @property
    def errors(self) -> Floats:
        """Share of wrong predictions, by candidate."""
        found: Floats = (self.counts[:, :, 0, 1] + self.counts[:, :, 1, 0]).sum(axis=1) / self.sizes.sum()
        return found

    @property
    def gaps(self) -> Floats:
        """Differences of the groups' rates of false, and of true positives, by candidate."""
        rates = self.counts[..., 1] / self.sizes
        found: Floats = rates[:, 1] - rates[:, 0]
        return found

    def outcome(self, weights: Floats) -> tuple[float, float]:
        """Return error and violation of a mixture of candidates."""
        return float(weights @ self.errors), float(np.abs(weights @ self.gaps).max())


def learned(game: Game, steps: int, each: float, rng: np.random.Generator) -> Floats:
    """Return the weight of each candidate after `steps` rounds, a pick and noisy violations for `each` epsilon."""
    sizes = game.sizes
    # one record: the error by 1 / n, and a rate of its cell by 1 / n_cell; the centred cost moves by half of it
    moved = (1 / sizes.sum() + BOUND / sizes.min()) / 2
    signs = np.concatenate([game.gaps, -game.gaps], axis=1) - SLACK
    theta, weights = np.zeros(signs.shape[1]), np.zeros(len(signs))
    for _ in range(steps):
        top = max(float(theta.max()), 0.0)
        multipliers = BOUND * np.exp(theta - top) / (np.exp(-top) + np.exp(theta - top).sum())
        # Gumbel noise: the exponential mechanism
        noise = rng.gumbel(size=len(signs)) if math.isfinite(each) else 0.0
        rate = each / (2 * moved) if math.isfinite(each) else 1.0
        pick = int((-rate * (game.errors + signs @ multipliers) + noise).argmax())
        weights[pick] += 1 / steps
        # a record is in one cell: one rate moves, by 1 / n_cell at most
        scale = 1 / (sizes.min() * each) if math.isfinite(each) else 0.0
        shaken = game.gaps[pick] + rng.laplace(scale=scale, size=2)
        theta = theta + RATE * (np.concatenate([shaken, -shaken]) - SLACK)
    return weights


def epsilon_each(epsilon: float, steps: int, *, zcdp: bool) -> float:
    """Return epsilon' of each of the 2 T answers: the paper's, or by zCDP (e^2 / 8 a pick, e^2 / 2 Laplace noise)."""
    if not zcdp:
        return epsilon / (4 * math.sqrt(steps * -math.log(DELTA)))
    return math.sqrt(rho_of(epsilon, DELTA) / (steps * (1 / 8 + 1 / 2)))


def people(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Two groups whose outcomes lie apart on one feature: a threshold treats them unlike."""
    group = np.where(rng.random(rows) < 0.4, "b", "a")
    yes = rng.random(rows) < np.where(group == "a", 0.6, 0.4)
    x = rng.normal(np.where(yes, 0.25, -0.25) + np.where(group == "a", 0.1, -0.1), 0.3)
    return pd.DataFrame({"G": group, "X": np.clip(x, -1, 1), "D": np.where(yes, "yes", "no")})


def candidates() -> Floats:
    """Return the classifiers of `candidates = "thresholds"`, a row each: x > t or x < t, t even."""
    cuts = np.linspace(-1, 1, CANDIDATES // 2)
    above = np.column_stack([-cuts, np.ones_like(cuts)])
    return np.vstack([above, -above])


def compared(
    rows: Sequence[int], steps: Sequence[int], epsilon: float, runs: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Return mean error and violation on the rows fitted to, of both ways and without privacy."""
    thetas, found = candidates(), []
    for number in rows:
        frames = [people(number, rng) for _ in range(runs)]
        games = [Game.of(frame, thetas) for frame in frames]
        ways: dict[str, list[tuple[float, float]]] = {}
        for t in steps:
            for name, each in (
                ("DP-oracle-learner", epsilon_each(epsilon, t, zcdp=False)),
                ("DP-oracle-learner, zCDP", epsilon_each(epsilon, t, zcdp=True)),
                ("without privacy", math.inf),
            ):
                ways[f"{name}, T = {t}"] = [game.outcome(learned(game, t, each, rng)) for game in games]
        ways["reductions, 20 choices"] = [_reductions(f, g, epsilon) for f, g in zip(frames, games, strict=True)]
        for name, outcomes in ways.items():
            error, violation = np.mean(outcomes, axis=0)
            found.append({"rows": number, "epsilon": epsilon, "method": name, "error": error, "violation": violation})
    return pd.DataFrame(found)


def _reductions(frame: pd.DataFrame, game: Game, epsilon: float) -> tuple[float, float]:
    """Return error and violation of `reductions` with the same candidates, bound and public sizes."""
    named = [f"{g}|{d}" for g in "ab" for d in ("no", "yes")]
    settings: dict[str, Any] = {
        "target": "D",
        "features": ["X"],
        "groups": ["G"],
        "constraints": {"equalized_odds": SLACK},
        "oracle": "exponential",
        "candidates": "thresholds",
        "number": CANDIDATES,
        "sizes": dict(zip(named, game.sizes.ravel().tolist(), strict=True)),
        "sizes_citation": "simulated",
    }
    table = ss.open_table(frame, schema=SCHEMA, declared_size=len(frame))
    model: Any = ss.fit(make("reductions", settings), table, ss.Budget(epsilon, DELTA), progress=False).model
    return Game.of(frame, model.thetas).outcome(model.weights)
