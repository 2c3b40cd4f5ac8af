"""Noisy statistics of earlier steps, and the slopes, clips and direction that the next step gets from them.

`surrogate`. Equation 6 of paper 001 adds, for group means g_a, T_a of gradients and of h = 1 - sum f^2,

    gamma1 sum_a |<g_a - g_D, d>| + gamma2 sum_a |T_a - T|           d = g_D - gb_D, the part that clipping takes away

With the signs s_a of the differences between the bars, and d, taken from earlier steps, both are linear in means over
rows:

    gamma2 sum_a s_a (T_a - T) = mean over rows of gamma2 w_a h      w_a = s_a n / n_a - sum_b s_b

so row i of group a minimises  l_i + gamma2 w_a h_i + gamma1 u_a <g_i, d>,  u_a made of the other signs. Signs are
replaced by the difference over its noise where that is below 1: a difference within its noise has little weight.

`group_clip` (DPSGD-F): group k is clipped at C (1 + r_k / r), r_k being its fraction of gradients longer than C and r
everybody's; noise is for the largest clip of all declared groups, present or not.

`global_adapt`: rows are clipped at Z and their sum is scaled by C / Z; Z <- Z exp(-clip_rate + b), b being the fraction
of gradients longer than Z. Sums are divided by expected sizes throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from stratsynth.adapters.fair_sgd.task import FairSgdProblem
    from stratsynth.questions import NoisySum

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lean:
    """Inputs of the next step's question: public numbers and functions of noisy answers."""

    clip: float
    threshold: float
    noise_slopes: Floats | None = None
    clip_slopes: Floats | None = None
    direction: Floats | None = None
    cuts: Floats | None = None


@dataclass
class NoisyAverage:
    """A discounted average over steps of one noisy statistic, with the variance of its noise."""

    value: Floats
    variance: float
    weight: float = 0.0

    def add(self, values: Floats, sigma: float, memory: float) -> None:
        """Add a step's array `values`, of noise scale `sigma`, at weight 1 - memory.

        The average before has `memory`.
        """
        self.value = memory * self.value + (1 - memory) * values
        self.variance = memory**2 * self.variance + (1 - memory) ** 2 * sigma**2
        self.weight = memory * self.weight + (1 - memory)

    @property
    def mean(self) -> Floats:
        """Average so far, an array of the statistic's shape."""
        return self.value / self.weight

    @property
    def noise(self) -> float:
        """Noise scale (standard deviation) that each entry of the average has, one float for all."""
        return math.sqrt(self.variance) / self.weight


@dataclass
class Leaning:
    """Noisy statistics of the groups from all steps so far, from which the next step's inputs are computed."""

    task: FairSgdProblem
    clip: float
    """Clip Z of `global_adapt`; the setting's clip otherwise."""
    kept: dict[str, NoisyAverage] = field(default_factory=dict)
    counted: float = 0.0
    """Noisy numbers of records of all samples so far, added up, where no size is declared."""
    uncertain: float = 0.0
    """Variance of the noise in `counted`."""
    samples: int = 0

    @classmethod
    def start(cls, task: FairSgdProblem) -> Leaning:
        """Return the `Leaning` of a `FairSgdProblem` before any answer: no statistics, and the setting's clip."""
        return cls(task, task.descent.clip)

    @property
    def batch(self) -> float:
        """Expected number of records in a sample: declared, or the mean of noisy ones, no less than its noise."""
        if self.task.batch is not None:
            return self.task.batch
        return max(self.counted, math.sqrt(self.uncertain), 1.0) / self.samples

    def count(self, tally: NoisySum) -> None:
        """Add a sample's noisy number of records, the `NoisySum` `tally`; for fits without a declared size."""
        self.counted += float(tally.values.sum())
        self.uncertain += tally.sigma**2 * len(tally.units)
        self.samples += 1

    def learn(self, answers: Mapping[str, NoisySum]) -> None:
        """Add one step's noisy sums, `answers`, to the running averages; {name of a statistic: NoisySum}.

        `global_adapt` updates the clip too.
        """
        for name, answer in answers.items():
            kept = self.kept.setdefault(name, NoisyAverage(np.zeros(answer.units.shape), 0.0))
            kept.add(answer.values, answer.sigma, self.task.settings.memory)
        if self.task.settings.mitigation == "global_adapt":
            self._adapt(answers["tally"])

    def _adapt(self, tally: NoisySum) -> None:
        """Multiply `clip` by exp(f - `clip_rate`), at most a factor `most_clip` from the task's clip, up or down.

        f is the noisy fraction of longer gradients: the second value of the NoisySum `tally` over `batch`, in [-1, 1].
        """
        # the clip grows while more than `clip_rate` of the gradients are cut, and shrinks otherwise
        s, clip = self.task.settings, self.task.descent.clip
        longer = float(np.clip(tally.values[1] / self.batch, -1, 1))
        self.clip = float(np.clip(self.clip * math.exp(longer - s.clip_rate), clip / s.most_clip, clip * s.most_clip))

    def now(self) -> Lean:
        """Return the `Lean` for the next step's question: clips, cuts and slopes by the statistics so far.

        At first nothing is mitigated.
        """
        s, clip = self.task.settings, self.task.descent.clip
        zero = np.zeros(len(self.task.labels))
        # DPSGD-Global-Adapt: gradients up to Z are scaled by C / Z, and only longer ones are cut
        if s.mitigation == "global_adapt":
            return Lean(self.clip, self.clip)
        if s.mitigation == "group_clip":
            # DPSGD-F; before the first statistics all groups have one clip
            clips = clip * (1 + self._longer()) if self.kept else clip + zero
            return Lean(float(clips.max()), clip, cuts=clips / clips.max())
        if s.mitigation == "none":
            return Lean(clip, clip)
        bent = self._noise_slopes() if s.gamma2 else None
        if not s.gamma1:
            return Lean(clip, clip, noise_slopes=bent)
        slopes, direction = self._clip_slopes()
        return Lean(clip, clip, bent, slopes, direction)

    @property
    def scale(self) -> float:
        """Factor on a step's sum of gradients: C / Z for `global_adapt`, else 1."""
        return self.task.descent.clip / self.clip if self.task.settings.mitigation == "global_adapt" else 1.0

    def sizes(self) -> Floats:
        """Return each group's expected records in a sample, an array; none is smaller than its noise, nor than 1."""
        tally = self.kept["tally"]
        least = max(1.0, math.sqrt(2) * tally.noise)
        found: Floats = np.maximum(tally.mean.reshape(-1, 2).sum(axis=1), least)
        return found

    def _longer(self) -> Floats:
        """Return an array, each group's fraction of clipped gradients over everybody's; at most `most_clip` - 1."""
        tally = self.kept["tally"]
        sizes, long = self.sizes(), np.maximum(tally.mean.reshape(-1, 2)[:, 1], 0)
        # fractions of clipped gradients by group and overall; negative noisy counts are 0
        everybody = max(long.sum(), tally.noise * math.sqrt(len(long))) / sizes.sum()
        found: Floats = np.minimum(
            np.minimum(long / sizes, 1) / max(everybody, 1e-12), self.task.settings.most_clip - 1
        )
        return found

    def _weights(self, differences: Floats, noise: Floats) -> Floats:
        """Return an array, each group's weight in a penalty, rounded to a grid, by the signs of `differences`.

        These are an array of the groups' differences from everybody, of standard deviations `noise`, an array too.
        """
        sizes, most = self.sizes(), self.task.settings.most_weight
        # soft signs: linear within one standard deviation of noise
        signs = np.clip(differences / np.maximum(noise, 1e-300), -1, 1)
        found: Floats = np.clip(signs * sizes.sum() / sizes - signs.sum(), -most, most)
        return np.rint(found * 2**20) / 2**20

    def _noise_slopes(self) -> Floats:
        """Return each group's slope of the penalty on distance from the boundary, an array; 0 without statistics."""
        if not self.kept:
            return np.zeros(len(self.task.labels))
        sizes, sums = self.sizes(), self.kept["boundary"]
        # T_a - T from noisy sums
        apart = sums.mean / sizes - sums.mean.sum() / sizes.sum()
        return self.task.settings.gamma2 * self._weights(apart, sums.noise / sizes)

    def _clip_slopes(self) -> tuple[Floats, Floats]:
        """Return (groups' slopes of the penalty on clipping, mean excess of gradients), arrays; 0 before answers."""
        shape, groups = self.task.form.shape, len(self.task.labels)
        if not self.kept:
            return np.zeros(groups), np.zeros(shape)
        sizes, pulls, excess = self.sizes(), self.kept["pulls"], self.kept["excess"]
        noise = excess.noise / self.batch
        d = excess.mean / self.batch
        # James and Stein: d is shrunk by the part of its squared length that noise explains
        d = d * max(0.0, 1 - d.size * noise**2 / max(float(d @ d), 1e-300))
        sums = pulls.mean.reshape(groups, -1)
        apart = sums / sizes[:, None] - sums.sum(axis=0) / sizes.sum()
        each = pulls.noise / sizes
        # variance of the product of two noisy vectors, term by term
        uncertain = np.sqrt(each**2 * float(d @ d) + noise**2 * (apart**2).sum(axis=1) + d.size * (each * noise) ** 2)
        slopes = self.task.settings.gamma1 * self._weights(apart @ d, uncertain)
        return slopes, np.rint(d * 2**20).reshape(shape) / 2**20
