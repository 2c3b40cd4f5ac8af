"""Generators of probabilities: a small residual network on fixed noise, or a table of logits.

Both have a flat parameter vector, a forward pass to probabilities, and a backward pass from the gradient by probability
to the gradient by parameter, written by hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from stratsynth.adapters.gem.layout import LogitBlocks, Reals

if TYPE_CHECKING:
    from numpy.random import Generator

STILL = 1e-5
"""Added to a variance before dividing by its root."""


class Parametrisation(Protocol):
    """Map from parameters to probabilities, and from gradients by probability to gradients by parameter."""

    @property
    def layout(self) -> LogitBlocks:
        """The `LogitBlocks` of the probabilities' rows: columns and their numbers of levels."""

    def first(self, rng: Generator, logits: Reals) -> Reals:
        """Return a flat array, start parameters by `rng`, with which each component's logits are near `logits`.

        That is an array of one a level.
        """

    def forward(self, point: Reals) -> tuple[Reals, Any]:
        """Return (array of probabilities, levels x components; the values that `backward` needs).

        `point` is the flat array of parameters.
        """

    def backward(self, point: Reals, tape: Any, slope: Reals) -> Reals:
        """Return a flat array, the gradient by parameter at `point`, from `slope` and the values `tape` of `forward`.

        `slope` is the array of derivatives by probability, levels x components.
        """


@dataclass(frozen=True, eq=False)
class LogitTable:
    """A logit for each level in each component."""

    layout: LogitBlocks
    components: int
    spread: float = 0.2
    """Standard deviation of the start logits: equal components would stay equal."""

    def first(self, rng: Generator, logits: Reals) -> Reals:
        """Return a flat array of start logits: `logits`, one a level, plus each component's own normal noise.

        Noise is by `rng`; `logits` is an array.
        """
        noise = rng.standard_normal((self.layout.rows, self.components))
        return (logits[:, None] + self.spread * noise).ravel()

    def forward(self, point: Reals) -> tuple[Reals, Reals]:
        """Return the array of probabilities at `point`, levels x components, twice: `backward` needs it too.

        `point` is the flat array of parameters.
        """
        odds = self.layout.softmax(point.reshape(self.layout.rows, self.components))
        return odds, odds

    def backward(self, point: Reals, tape: Reals, slope: Reals) -> Reals:
        """Return a flat array, the gradient by logit, from probabilities `tape` and derivatives by them, `slope`.

        Both are arrays levels x components; `point` is not used.
        """
        return self.layout.softmax_back(tape, slope).ravel()


@dataclass(frozen=True, eq=False)
class ResidualNetwork:
    """Residual blocks (Linear, batch normalisation, ReLU, input appended); then Linear and softmax."""

    layout: LogitBlocks
    noise: Reals
    """Latent noise, latent values x components: drawn once, then fixed."""
    hidden: tuple[int, ...]
    """Width of each block."""
    spread: float = 1.0
    """Standard deviation of the components' logits at the start."""

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Tuple of the shapes of each block's weights, scale and shift; then of the last layer's weights and shift."""
        width, found = self.noise.shape[0], []
        for hidden in self.hidden:
            found += [(hidden, width), (hidden, 1), (hidden, 1)]
            width += hidden
        return (*found, (self.layout.rows, width), (self.layout.rows, 1))

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(int(end) for end in np.cumsum([math.prod(shape) for shape in self.shapes]))

    def parts(self, point: Reals) -> list[Reals]:
        """Return a list of views of the flat parameters `point`, the layers' arrays, in the order of `shapes`."""
        starts = (0, *self._ends[:-1])
        return [
            point[start:end].reshape(shape) for start, end, shape in zip(starts, self._ends, self.shapes, strict=True)
        ]

    def first(self, rng: Generator, logits: Reals) -> Reals:
        """Return a flat array of start parameters by `rng`: He-normal weights of ReLU blocks, a last layer.

        The shift of that layer is `logits`, an array of one a level.
        """
        point = np.empty(self._ends[-1])
        *blocks, last, shift = self.parts(point)
        for weights, scale, offset in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True):
            weights[:] = rng.standard_normal(weights.shape) * math.sqrt(2 / weights.shape[1])
            scale[:], offset[:] = 1, 0
        last[:] = rng.standard_normal(last.shape) * (self.spread / math.sqrt(last.shape[1]))
        shift[:] = logits[:, None]
        return point

    def forward(self, point: Reals) -> tuple[Reals, Any]:
        """Return (array of probabilities, levels x components; the activations that `backward` needs).

        `point` is the flat array of parameters.
        """
        *blocks, last, shift = self.parts(point)
        flow, tape = self.noise.astype(point.dtype, copy=False), []
        for weights, scale, offset in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True):
            plain = weights @ flow
            # batch normalisation over the components, which are the batch
            plain -= plain.mean(axis=1, keepdims=True)
            rate = 1 / np.sqrt(np.square(plain).mean(axis=1, keepdims=True) + point.dtype.type(STILL))
            plain *= rate
            active = np.maximum(plain * scale + offset, 0)
            tape.append((flow, plain, rate, active))
            flow = np.concatenate((active, flow))
        odds = self.layout.softmax(last @ flow + shift)
        return odds, (tape, flow, odds)

    def backward(self, point: Reals, tape: Any, slope: Reals) -> Reals:
        """Return a flat array, the gradient by parameter at `point`, from `slope` and the activations `tape`.

        `slope` is the array of derivatives by probability, levels x components; `tape` is that of `forward`.
        """
        found = np.empty_like(point)
        *blocks, last, _ = self.parts(point)
        *slopes, last_slope, shift_slope = self.parts(found)
        steps, flow, odds = tape
        back = self.layout.softmax_back(odds, slope)
        np.matmul(back, flow.T, out=last_slope)
        np.sum(back, axis=1, keepdims=True, out=shift_slope)
        back = last.T @ back
        for i in range(len(steps) - 1, -1, -1):
            (below, plain, rate, active), (weights, scale, _) = steps[i], blocks[3 * i : 3 * i + 3]
            width = active.shape[0]
            # ReLU passes gradients where it was active; the appended input gets the rest
            through, rest = back[:width] * (active > 0), back[width:]
            np.sum(through * plain, axis=1, keepdims=True, out=slopes[3 * i + 1])
            np.sum(through, axis=1, keepdims=True, out=slopes[3 * i + 2])
            through *= scale
            # normalisation removes the parts of the gradient that move mean or variance
            through -= through.mean(axis=1, keepdims=True) + plain * (through * plain).mean(axis=1, keepdims=True)
            through *= rate
            np.matmul(through, below.T, out=slopes[3 * i])
            if i:
                back = rest + weights.T @ through
        return found
