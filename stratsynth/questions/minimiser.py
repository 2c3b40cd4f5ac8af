"""`Minimiser`: noisy coefficients that minimise a sum of losses over rows plus a fixed public penalty.

With F(w) = sum over rows of part x loss(x.w, y) + strength |w|^2 / 2, each loss convex in w and no gradient of one
longer than L, one row more or fewer moves the minimiser by at most L / strength, an exchanged row by 2 L / strength.
Answered is a grid point within a public distance of the minimiser, which adds twice that: docs/privacy.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from stratsynth.accounting.budget import IN_RHO, PRICED, Currency, Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.exact import narrowed, widened
from stratsynth.checks import one_of
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.noise import Entropy, gaussian
from stratsynth.questions.admission import known
from stratsynth.questions.base import Question, Seen, Setting, check_positive, read_only, squared
from stratsynth.questions.reading import Exact, Ints, Wanted
from stratsynth.questions.sums import design
from stratsynth.questions.sums.clipping import ROWS, Floats
from stratsynth.questions.sums.design import Design, check_target
from stratsynth.questions.sums.gradients import Link, check_parts
from stratsynth.questions.sums.kernel import cells_of
from stratsynth.questions.sums.published import columns_read
from stratsynth.questions.total import WIDEST, NoisySum, Total
from stratsynth.schema.rows import CodedRows
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.schema import Schema

SLOPE = {"linear": 1.0, "logistic": 1.0, "softmax": math.sqrt(2)}
CURVATURE = {"linear": 1.0, "logistic": 0.25, "softmax": 0.5}
"""Largest first derivative, an L2 norm, and largest second derivative of a row's loss by its logits."""
TOLERANCE, FINE = 2.0**-8, 2.0**20
"""Largest certified distance from the minimiser, and grid points, in the movement by one row more or fewer."""
MOST_FEATURES, MOST_ROWS = 2_048, 10_000_000
"""Features at most; and rows up to which every table is certified, whatever it holds."""
ULP = 2.0**-53
"""Largest relative error of one operation on floats."""


@known
@dataclass(frozen=True, eq=False)
class Minimiser(Question):
    """Coefficients of least penalised loss plus discrete Gaussian noise, in a tuple of one `NoisySum`.

    Losses are log losses of a categorical target; for `linear` half the squared residual of a numeric one between -1
    and 1, continued with slope 1 from residuals of 1 on. A row whose numeric target is missing adds nothing.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"columns"})
    design: Design
    target: str
    link: Link
    clip: float
    """Largest L2 norm of a row's features: longer rows are scaled down to it."""
    strength: float
    """Factor of |w|^2 / 2: public, and no function of the number of rows."""
    rho: float
    by: tuple[str, ...] = ()
    parts: Floats | None = None
    """Public factor from 0 to 1 of a row's loss for each cell of the columns `by`; None if all rows count alike."""
    currency: Currency = field(default=Currency.ZCDP, metadata={"digest": False})
    keep, recall, shape = Total.keep, Total.recall, Total.shape

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: link, design, target, parts unfit for `schema`, numbers; Unsupported: size."""
        one_of("minimiser: link", self.link, tuple(SLOPE), error=MechanismError)
        check_target("minimiser", self.design, self.target, schema, numeric=self.link == "linear")
        check_parts("minimiser", self.by, self.parts, schema)
        for name in ("clip", "strength", "rho"):
            check_positive(f"minimiser: {name}", getattr(self, name))
        if self.currency not in IN_RHO:
            raise MechanismError("minimiser: Gaussian noise is priced in rho alone.")
        if self.link == "logistic" and schema.size(self.target) != 2:
            raise MechanismError(f"minimiser: logistic needs a target of two levels; {self.target} has not.")
        if len(self.design.names(schema)) > MOST_FEATURES:
            raise Unsupported(f"minimiser: more than {MOST_FEATURES:,} features; name fewer columns.")
        if not (1e-9 <= self.clip <= 1e9 and 2**-10 < self.strength / self.clip**2 < 1e30 and self.solvable(schema)):
            raise MechanismError(
                f"minimiser: strength {self.strength:.3g} does not fit clip {self.clip:.3g} and number of features: "
                "floats would not find the minimiser of every table. Take a larger strength; a clip from 1e-9 to 1e9."
            )
        if self.scale(schema, Neighbours.REPLACE) > WIDEST:
            raise MechanismError("minimiser: rho is too small: the noise would be wider than samplers draw.")

    @property
    def step(self) -> float:
        """Most that one row more or fewer moves the minimiser, in the L2 norm: L / strength, rounded up."""
        return SLOPE[self.link] * self.clip / self.strength * (1 + 1e-9)

    @property
    def grid(self) -> float:
        """Value of one unit of the answer's integers."""
        return self.step / FINE

    def size(self, schema: Schema) -> int:
        """Return the int number of coefficients by `schema`: one a feature, for `softmax` times target levels."""
        return len(self.design.names(schema)) * (schema.size(self.target) if self.link == "softmax" else 1)

    def sensitivity(self, schema: Schema, neighbours: Neighbours) -> float:
        """Return the largest L2 distance, a float, of exact answers by `schema` for `neighbours`, rounded up.

        Beside the minimiser move its distance from what is certified, and half a grid point in each coordinate, twice.
        """
        steps = (1 if neighbours == Neighbours.ADD_REMOVE else 2) + 2 * TOLERANCE
        return (steps * self.step + math.sqrt(self.size(schema)) * self.grid) * (1 + 1e-12)

    def scale(self, schema: Schema, neighbours: Neighbours) -> float:
        """Return sigma in grid units by `schema` for `neighbours`, rounded up: sensitivity / sqrt(2 rho)."""
        sigma = self.sensitivity(schema, neighbours) / self.grid / math.sqrt(2 * self.rho) * (1 + 1e-12)
        return widened(sigma) if self.currency == Currency.EXACT else sigma

    def solvable(self, schema: Schema) -> bool:
        """True if rounding leaves the solver half of what is certified, by `schema`, of any table of `MOST_ROWS`."""
        logits = schema.size(self.target) if self.link == "softmax" else 1
        far = min(math.sqrt(2 * MOST_ROWS * math.log(max(logits, 2)) / self.strength), MOST_ROWS * self.step)
        return self.rounding(MOST_ROWS, logits, far + self.step) <= TOLERANCE * SLOPE[self.link] * self.clip / 2

    def rounding(self, rows: float, logits: int, far: float) -> float:
        """Bound the L2 error, a float, of a gradient over `rows`, `logits` of each, at coefficients of length `far`."""
        terms = ROWS + rows / ROWS + 64 + 8 * logits
        off = rows * self.clip * (self.design.most_features * self.clip * far + terms)
        return 2 * ULP * (off + self.strength * terms * far)

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """Return one `Charge` of rho at `path`, in a tuple, its sensitivity and sigma by `schema` and `neighbours`."""
        moved, noise = {n: self.sensitivity(schema, n) for n in PRICED}, self.scale(schema, neighbours) * self.grid
        return (Charge(path, "minimiser", self.rho, moved, {"sigma": noise}, self.currency),)

    def wanted(self) -> Wanted:
        """Return a `Wanted`: the columns of features, target and cells, of all rows."""
        return Wanted(columns=columns_read(cast("Any", self)))

    def exact(self, at: Setting, exact: Exact) -> Ints:
        """Return the answer without noise at a Setting from columns in `exact`: flat integers in units of the grid."""
        rows = CodedRows(at.schema, *(getattr(exact.columns, n) for n in ("codes", "numbers", "size", "weights")))
        return np.rint(minimised(self, rows) / self.grid).astype(np.int64).ravel()

    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> tuple[NoisySum, ...]:
        """Return (`NoisySum`,): coefficients of `exact` at a Setting plus `entropy`'s noise; `memory` is unused."""
        noise = gaussian.sample(self.scale(at.schema, at.neighbours), (self.size(at.schema),), entropy)
        return self._noisy(at, self.exact(at, exact) + noise)

    def _noisy(self, at: Setting, units: Ints) -> tuple[NoisySum, ...]:
        read_only([units])
        return (NoisySum(units, self.grid, self.scale(at.schema, at.neighbours) * self.grid),)

    def tv_error(self, at: Setting) -> float:
        """Return a float at a Setting: total variation of sampled and stated noise, over all coefficients."""
        return self.size(at.schema) * gaussian.tv_error(self.scale(at.schema, at.neighbours))

    def simulate(self, at: Setting, path: StratumPath, rows: float, rng: Generator) -> tuple[Any, Seen]:
        """Return (coefficients 0 with noise of `rng`; a plan's `Seen` at `path`) at a Setting, for any `rows`."""
        noise = rng.normal(0, self.scale(at.schema, at.neighbours), self.size(at.schema))
        return self._noisy(at, np.rint(noise).astype(np.int64)), Seen(path, "minimiser", cells=len(noise))

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but the values of `parts`, which earlier answers may give."""
        return self.design, self.target, self.link, self.clip, self.strength, self.rho, self.by

    def cost(self, at: Setting, here: Exact, there: Exact, answer: Any) -> Fraction:
        """Return rho, a Fraction, of telling exact `here`, `there` apart by `answer` at a Setting: L2^2 / 2 sigma^2."""
        noise = Fraction(answer[0].sigma) / Fraction(answer[0].grid)
        noise = Fraction(narrowed(float(noise))) if self.currency == Currency.EXACT else noise
        return Fraction(squared(self.exact(at, here), self.exact(at, there))) / (2 * noise**2)

    def standard_noise(self, at: Setting, exact: Exact, answer: Any) -> list[Floats]:
        """Return a list of one float array: (`answer` - `exact`, at a Setting) / sigma, per coefficient."""
        return [(answer[0].units - self.exact(at, exact)) * answer[0].grid / answer[0].sigma]


def minimised(asked: Minimiser, rows: CodedRows) -> Floats:
    """Return coefficients, an array [feature, class or 1], within TOLERANCE x step of `asked`'s minimiser over `rows`.

    Accelerated descent, preconditioned by the largest curvature, for growing guesses of its ratio to the least; the
    last is a bound, for which the number of steps is enough whatever the coded rows (docs/privacy.md).
    """
    slope, bend, least = SLOPE[asked.link] * asked.clip, CURVATURE[asked.link], asked.strength
    curved = least * np.eye(len(asked.design.names(rows.schema)))
    for x, part, _ in _pieces(asked, rows):
        curved += bend * (x.T * part) @ x
    inverse, most = np.linalg.inv(curved), 1 + bend * rows.size * asked.clip**2 / least
    enough = math.log(2e4 * most**2 * (1 + rows.size) * least / (TOLERANCE * slope) ** 2 + 8)
    start = np.zeros((len(curved), rows.schema.size(asked.target) if asked.link == "softmax" else 1))
    for guess in [*(4.0**i for i in range(2, math.ceil(math.log(most, 4)))), most]:
        now = ahead = start
        for _ in range(math.ceil(math.sqrt(guess) * enough)):
            gradient, off = _gradient(asked, rows, ahead)
            if float(np.linalg.norm(gradient)) * (1 + 1e-9) + off <= TOLERANCE * slope:
                return ahead
            before, now = now, ahead - inverse @ gradient
            ahead = now + (math.sqrt(guess) - 1) / (math.sqrt(guess) + 1) * (now - before)
    return start


def _pieces(asked: Minimiser, rows: CodedRows) -> Iterator[tuple[Floats, Floats, slice]]:
    """Yield, for few coded rows at a time: (clipped features, a line a row; factors of `Minimiser` losses; slice)."""
    for at in range(0, rows.size, ROWS):
        which = slice(at, min(at + ROWS, rows.size))
        x, _ = design.integer_features(asked.design, rows, which)
        length = np.sqrt(np.maximum((x * x).sum(axis=1), 1))
        x *= (np.minimum(1, asked.clip * design.UNIT / length) / design.UNIT)[:, None]
        part = np.ones(len(x)) if asked.parts is None else asked.parts.ravel()[cells_of(asked.by, rows, which)]
        yield x, part if rows.weights is None else part * (rows.weights[which] / rows.schema.row_weight.most), which


def _gradient(asked: Minimiser, rows: CodedRows, w: Floats) -> tuple[Floats, float]:
    """Return (gradient at `w` of a `Minimiser`'s penalised loss over coded rows; bound of its computed error)."""
    found = asked.strength * w
    for x, part, which in _pieces(asked, rows):
        logits = x @ w
        if asked.link == "linear":
            slopes = np.nan_to_num(np.clip(logits - design.target(asked.target, rows, which)[:, None], -1, 1))
        else:
            each = logits if asked.link == "softmax" else np.hstack([np.zeros_like(logits), logits])
            slopes = np.exp(each - each.max(axis=1, keepdims=True))
            slopes /= slopes.sum(axis=1, keepdims=True)
            slopes[np.arange(len(x)), rows.codes[asked.target][which].astype(np.intp)] -= 1
        found += x.T @ (slopes[:, -w.shape[1] :] * part[:, None])
    return found, asked.rounding(rows.size, w.shape[1], float(np.linalg.norm(w)))
