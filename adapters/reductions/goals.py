"""Objective and constraints as functions of a classifier's confusion counts and sums of losses.

    h(N) = f(N) + G sum over constraints of max(0, g(N))

Lemma 4.1 of paper 002: a minimiser of h up to a has f within a of the best decision that satisfies one constraint, and
a violation of at most (a + L_f c sqrt(K)) / G, K being the number of losses in f, each from 0 to c, and L_f its
Lipschitz constant. (In the paper c is 1, as it is here but for log losses.) G = (a + L_f c sqrt(K)) / a therefore
bounds the violation by a (Corollary 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.adapters.reductions.functions import Function, GeometricMean, HarmonicMean, Largest, Spread
from stratsynth.adapters.reductions.rates import BY_LABEL, OF_PROBABILITIES, Loss, Sizes
from stratsynth.questions import Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.reductions.smoothing import Smoothing

    Floats = NDArray[np.float64]

PARITIES: dict[str, tuple[Loss, ...]] = {
    "equalized_odds": ("false_positive", "false_negative"),
    "demographic_parity": ("selection",),
    "true_positive_parity": ("false_negative",),
    "false_positive_parity": ("false_positive",),
    "error_parity": ("error",),
}
"""Constraints on the largest difference of rates between groups, with the losses that they compare."""
TWO_LEVELED = tuple(name for name in PARITIES if name != "error_parity")
"""Parities that compare rates of predictions of the second of two levels."""
MEANS: dict[str, type[Function]] = {"g_mean": GeometricMean, "h_mean": HarmonicMean}
"""Means over labels of the rates of being right."""
FS = ("micro_f", "worst_f")
"""Constraints on F measures, from below."""
RATES: dict[str, Loss] = {"false_positive_rate": "false_positive", "false_negative_rate": "false_negative"}
BOUNDED: dict[str, Loss] = {
    "bounded_loss": "error",
    "bounded_squared_loss": "squared_loss",
    "bounded_log_loss": "log_loss",
}
"""Constraints on the loss of each group, or of groups and labels that are named."""
AVERAGED: dict[str, tuple[Loss, str]] = {
    f"{over}{loss}": (loss, over) for loss in BY_LABEL for over in ("", "balanced_", "worst_")
}
"""Objectives: a loss of everybody, on the mean of groups, or of the worst group."""
CONSTRAINTS = (*PARITIES, *BOUNDED, "gini", *MEANS, *FS, *RATES)
MULTICLASS = (
    *("error", "balanced_error", "worst_error", *MEANS),
    *("bounded_loss", "error_parity", "gini", *FS),
)
"""Objectives and constraints of targets of more than two levels."""
ObjectiveName = Literal[
    "error",
    "balanced_error",
    "worst_error",
    "squared_loss",
    "balanced_squared_loss",
    "worst_squared_loss",
    "log_loss",
    "balanced_log_loss",
    "worst_log_loss",
    "g_mean",
    "h_mean",
    "false_positive_rate",
    "false_negative_rate",
]
Versus = Literal["pairs", "overall"]


@dataclass(frozen=True, eq=False)
class Ratios:
    """Ratios T N / (B N + n) of counts N, one a row of T and B."""

    tops: Floats
    """T: one row for each ratio, one column for each coordinate of the counts."""
    bottoms: Floats
    """B: of T's shape."""
    sizes: Floats
    """n: one public or noisy number for each ratio, at least 1."""

    def least(self, counts: Floats) -> tuple[float, Floats]:
        """Return (the smallest ratio at a vector of `counts`, its gradient there, an array of the vector's size)."""
        below = np.maximum(self.bottoms @ counts + self.sizes, 1.0)
        found = self.tops @ counts / below
        i = int(found.argmin())
        return float(found[i]), (self.tops[i] - found[i] * self.bottoms[i]) / below[i]


@dataclass(frozen=True, eq=False)
class Part:
    """Function constant + sign x F(A N + b) of counts N: an objective, or a constraint, satisfied at or below 0."""

    name: str
    function: Function
    slopes: Floats
    """A: one row for each number that F takes, one column for each coordinate of the counts."""
    offsets: Floats
    sign: Literal[1, -1] = 1
    constant: float = 0.0
    bound: float = 0.0
    """Bound on the measure that the name states, upper or lower."""
    way: Literal[1, -1] = 1
    """Sign of the bound: 1 for an upper one, -1 for a lower one."""
    most: float = 1.0
    """Largest value of the losses that F takes."""
    ratios: Ratios | None = None
    """Ratios the smallest of which is the measure; None where it follows from the value."""

    def value(self, counts: Floats) -> float:
        """Return the part's value, a float, for `counts`: one vector of counts and sums, or of their means.

        Not smoothed.
        """
        return self.constant + self.sign * self.function.value(self.slopes @ counts + self.offsets)

    def smooth(self, counts: Floats, smoothing: Smoothing) -> float:
        """Return a float, the stand-in of the part's value for the vector `counts`, made smooth by `smoothing`."""
        return self.constant + self.sign * self.function.smooth(self.slopes @ counts + self.offsets, smoothing)

    def gradient(self, counts: Floats, smoothing: Smoothing) -> Floats:
        """Return an array, the gradient at the vector `counts` of the part made smooth by `smoothing`, a Smoothing.

        It is of the size of `counts`.
        """
        inner = self.function.gradient(self.slopes @ counts + self.offsets, smoothing)
        found: Floats = self.sign * (inner @ self.slopes)
        return found

    def term(self, weight: float, *, hinge: bool) -> Term:
        """Return the part as a `Term` of a choice's score, times `weight`; with `hinge` only what is above 0 counts."""
        f = self.function
        return Term(f.kind, self.slopes, self.offsets, weight, hinge, self.sign, self.constant, f.parameter)

    def measure(self, counts: Floats) -> float:
        """Return a float, the measure that the part is named for and `bound` bounds, at a vector of `counts`, sums."""
        if isinstance(self.function, Spread):  # the Gini index itself
            z = self.slopes @ counts + self.offsets
            return Spread().value(z) / (len(z) * max(float(z.sum()), 1e-9))
        if self.ratios is not None:
            return self.ratios.least(counts)[0]
        return self.bound + self.way * self.value(counts)

    def noise(self, counts: Floats, sigma: float, smoothing: Smoothing) -> float:
        """Return the standard deviation of `measure`, smooth by `smoothing`, at a vector `counts` of noisy entries.

        Each of them has noise of deviation `sigma`.
        """
        z = self.slopes @ counts + self.offsets
        if self.ratios is not None:
            return float(np.linalg.norm(self.ratios.least(counts)[1])) * sigma
        scale = len(z) * max(float(z.sum()), 1e-9) if isinstance(self.function, Spread) else 1.0
        return float(np.linalg.norm(self.gradient(counts, smoothing))) * sigma / scale


@dataclass(frozen=True, eq=False)
class Goal:
    """Penalised objective h of a classifier's counts: the objective plus G for each unit of a broken constraint."""

    objective: Part
    constraints: tuple[Part, ...]
    multiplier: float
    """Penalty G for each unit of a broken constraint."""
    smoothing: Smoothing
    lacking: tuple[tuple[str, str], ...] = ()
    """Goals not estimable for too few records: constraints with the groups that they leave out, or the objective."""

    def value(self, counts: Floats) -> float:
        """Return the penalised objective, a float, for `counts`, a vector of counts and sums; not smoothed."""
        broken = math.fsum(max(0.0, part.value(counts)) for part in self.constraints)
        return self.objective.value(counts) + self.multiplier * broken

    def smooth(self, counts: Floats) -> float:
        """Return the smooth stand-in of the penalised objective, a float, for a vector `counts`; Frank-Wolfe's goal."""
        broken = math.fsum(self.smoothing.hinge(p.smooth(counts, self.smoothing))[0] for p in self.constraints)
        return self.objective.smooth(counts, self.smoothing) + self.multiplier * broken

    def gradient(self, counts: Floats) -> Floats:
        """Return the gradient of the smooth penalised objective, an array of the size of the vector `counts`."""
        found = self.objective.gradient(counts, self.smoothing)
        for part in self.constraints:
            _, slope = self.smoothing.hinge(part.smooth(counts, self.smoothing))
            if slope:
                found = found + self.multiplier * slope * part.gradient(counts, self.smoothing)
        return found

    def terms(self) -> tuple[Term, ...]:
        """Return a tuple of `Term`s of a score, the penalised objective, not smoothed: it, then each constraint."""
        penalties = (part.term(self.multiplier, hinge=True) for part in self.constraints)
        return (self.objective.term(1.0, hinge=False), *penalties)


def penalty(objective: Part, tolerance: float) -> float:
    """Return a penalty's slope, a float, at which the constraints of a `Part`, the objective, miss by `tolerance`."""
    size = len(objective.slopes)
    return (tolerance + objective.function.lipschitz(size) * objective.most * math.sqrt(size)) / tolerance


def objective_of(name: str, sizes: Sizes, floor: float) -> Part:
    """Return the Part of the objective `name`: over the groups of enough records in `sizes`, or of everybody.

    `floor` is the number added to rates in geometric means.
    """
    if name in RATES and sizes.estimable(RATES[name]):
        return Part(name, Largest(), sizes.row(RATES[name])[None], np.array([0.5]))
    if name in MEANS and all(sizes.estimable(loss) for loss in sizes.by_label("error")):
        return _mean(name, sizes, floor, 0.0)
    loss, over = AVERAGED.get(name, ("error", ""))
    groups = [g for g in range(len(sizes.labels)) if sizes.estimable(loss, g)]
    middle, most = sizes.middle(loss), sizes.largest(loss)
    if over and groups:
        rows = np.array([sizes.row(loss, g) for g in groups])
        rows = rows.mean(axis=0)[None] if over == "balanced_" else rows
        return Part(name, Largest(), rows, np.full(len(rows), middle), most=most)
    return Part(loss, Largest(), sizes.row(loss)[None], np.array([middle]), most=most)


def measured_by(name: str) -> str:
    """Return the measure of losses that the objective or constraint `name` needs: `squared`, `log`, "" if counts do."""
    loss = BOUNDED.get(name) or AVERAGED.get(name, ("error", ""))[0]
    return OF_PROBABILITIES[loss][0] if loss in OF_PROBABILITIES else ""


def _mean(name: str, sizes: Sizes, floor: float, least: float) -> Part:
    """Return a Part: 1 (or `least` > 0) less the mean `name`, geometric or harmonic, of all rates of being right.

    Rates are those of the labels (Examples 8.2 and 8.3, where the paper's second one sums over labels in place of
    predictions), by `sizes`; `floor` is added to them in the geometric mean.
    """
    rows = np.array([-sizes.row(loss) for loss in sizes.by_label("error")])
    function = GeometricMean(floor) if name == "g_mean" else HarmonicMean()
    # with the floor, a mean of rates 1 is 1 + floor: the shift corrects for it
    shift = floor if name == "g_mean" else 0.0
    return Part(name, function, rows, np.full(len(rows), 0.5), -1, (least or 1.0) + shift, least or 1.0, -1)


def _f(name: str, least: float, sizes: Sizes) -> Part:
    """Return a Part, at most 0 iff the F measure `name` is at least `least`, of everybody's counts by `sizes`.

    F of some labels is 2 (records of theirs predicted rightly) / (records of theirs + predictions of them): of each
    label, whose smallest is `worst_f`; and of all but the first together, `micro_f`. Neither is convex; that a ratio is
    at least a number is linear in the counts. The mean over labels, macro F, is no ratio, and at least `worst_f`.
    """
    levels, numbers = len(sizes.levels), np.maximum(sizes.numbers, 0.0)
    chosen = np.eye(levels, dtype=bool) if name == "worst_f" else np.arange(levels)[None] > 0
    tops, bottoms = np.zeros((2, len(chosen), *numbers.shape, levels))
    for i, labels in enumerate(chosen):
        tops[i][:, labels, labels] = 2.0
        bottoms[i][:, :, labels] = 1.0
    own = np.array([max(float(numbers[:, labels].sum()), 1.0) for labels in chosen])
    # in units of twice the labels' records, so that slopes are of the size of rates'
    each = (least * bottoms - tops) / (2 * own[:, None, None, None])
    # a constant over the predictions of a label shifts all by its records: centring halves the steps
    middle = (each.max(axis=3) + each.min(axis=3)) / 2
    moved = least / 2 + (middle * numbers).sum(axis=(1, 2))
    sums = np.zeros((len(chosen), len(sizes.measures) * numbers.size))
    slopes, above, below = (
        np.hstack([x.reshape(len(chosen), -1), sums]) for x in (each - middle[..., None], tops, bottoms)
    )
    return Part(name, Largest(), slopes, moved, bound=least, way=-1, ratios=Ratios(above, below, own))


def constraints_of(
    named: Mapping[str, Any], sizes: Sizes, versus: Versus, floor: float
) -> tuple[list[Part], list[tuple[str, str]]]:
    """Return (list of Parts, one a constraint; list of pairs, constraints left out), by `named`, {name: bound}.

    Left out are those of too few records by `sizes`, as (constraint, group's label); the label is "" where a rate of
    everybody lacks them. `versus` says if groups are compared with each other or with everybody; `floor` is as for the
    objective.
    """
    found, lacking = list[Part](), list[tuple[str, str]]()
    for name, bound in named.items():
        if name in PARITIES:
            part, without = _parity(name, float(bound), sizes, versus)
        elif name in BOUNDED:
            part, without = _bounded(name, bound, sizes)
        elif name == "gini":
            part, without = _gini(name, float(bound), sizes)
        else:
            losses: Sequence[Loss] = (RATES[name],) if name in RATES else sizes.by_label("error")
            without = [] if all(sizes.estimable(loss) for loss in losses) else [""]
            if without:
                part = None
            elif name in MEANS:
                part = _mean(name, sizes, floor, float(bound))
            elif name in FS:
                part = _f(name, float(bound), sizes)
            else:
                row = sizes.row(RATES[name])[None]
                part = Part(name, Largest(), row, np.array([0.5 - float(bound)]), bound=float(bound))
        lacking += [(name, label) for label in without]
        if part is not None:
            found.append(part)
    return found, lacking


def _parity(name: str, bound: float, sizes: Sizes, versus: Versus) -> tuple[Part | None, list[str]]:
    """Return (Part: largest difference of groups' rates of the parity `name`, less its bound; list of labels left out).

    None if no two groups have records enough by `sizes`. `versus` says if groups are compared with each other or with
    everybody.
    """
    rows, without = list[Any](), dict[str, None]()
    for loss in PARITIES[name]:
        known = [g for g in range(len(sizes.labels)) if sizes.estimable(loss, g)]
        without.update(dict.fromkeys(label for g, label in enumerate(sizes.labels) if g not in known))
        if versus == "overall" and len(known) > 1:
            rows += [sizes.row(loss, g) - sizes.row(loss) for g in known]
        else:
            rows += [sizes.row(loss, a) - sizes.row(loss, b) for a, b in combinations(known, 2)]
    if not rows:
        return None, list(without)
    # both signs: the maximum of them is the largest absolute difference
    both = np.array([sign * row for row in rows for sign in (1, -1)])
    return Part(name, Largest(), both, np.full(len(both), -bound), bound=bound), list(without)


def _bounded(name: str, bound: Any, sizes: Sizes) -> tuple[Part | None, list[str]]:
    """Return (Part: largest excess of groups' losses of the constraint `name` over `bound`; list of names left out).

    `bound` is one number, or maps names of groups, or of group and label such as `F|yes`, to numbers. The Part is None,
    and names are left out, for too few records by `sizes`.
    """
    several = isinstance(bound, Mapping)
    places = bounded_places(name, sizes.labels, sizes.levels, sizes.by_label(BOUNDED[name]))
    rows, offsets, without = list[Any](), list[float](), list[str]()
    for label, most in (bound if several else dict.fromkeys(sizes.labels, bound)).items():
        loss, g = places[label]
        if not sizes.estimable(loss, g):
            without.append(label)
            continue
        rows.append(sizes.row(loss, g))
        offsets.append(sizes.middle(loss) - float(most))
    if not rows:
        return None, without
    one = 0.0 if several else float(bound)  # with several bounds, the measure is the largest excess
    found = Part(name, Largest(), np.array(rows), np.array(offsets), bound=one, most=sizes.largest(BOUNDED[name]))
    return found, without


def bounded_places(
    name: str, labels: Sequence[str], levels: Sequence[str], parts: Sequence[Loss]
) -> dict[str, tuple[Loss, int]]:
    """Return {name: (loss, group's number)} by names of groups, and of group and level, such as `F|yes`.

    The loss is the one that the constraint `name` bounds; `labels` are the groups', `parts` the losses of each of the
    `levels`.
    """
    loss = BOUNDED[name]
    cells = {
        "|".join(filter(None, (label, level))): (one, g)
        for g, label in enumerate(labels)
        for level, one in zip(levels, parts, strict=True)
    }
    return {**cells, **{label: (loss, g) for g, label in enumerate(labels)}}


def _gini(name: str, bound: float, sizes: Sizes) -> tuple[Part | None, list[str]]:
    """Return (Part `name`: Gini index of groups' accuracies a, less its `bound`, or None; list of labels left out).

    The index is sum_ij |a_i - a_j| / (2 K sum a_i) over K groups. None for fewer than two; left out are groups of too
    few records by `sizes`.
    """
    known = [g for g in range(len(sizes.labels)) if sizes.estimable("error", g)]
    without = [label for g, label in enumerate(sizes.labels) if g not in known]
    if len(known) < 2:
        return None, without
    rows = np.array([-sizes.row("error", g) for g in known])
    return Part(name, Spread(bound * len(known)), rows, np.full(len(known), 0.5), bound=bound), without
