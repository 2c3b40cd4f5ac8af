"""Losses of groups: linear functions of a classifier's confusion counts, or of the sums of its probabilities' losses.

With the counts N of a classifier, by group, label and prediction, and the numbers n of records by group and label, a
rate is 1/2 + sum over its cells of (N_counted - N_other) / (2 n_cells): equal to N_counted / n_cells, as each record of
a cell is either, but moved by half as much by one record of weight w. So are the rates of more than two labels: N_other
are then all predictions that are not counted.

    error            of a group or of everybody: predicted wrongly, among all             moved by w / (2 n_k)
    selection        predicted as the second level, among all                                      w / (2 n_k)
    false_positive   predicted as the second level, among those of the first              w / (2 n_k,first)
    false_negative   predicted as the first level, among those of the second              w / (2 n_k,second)
    missed LEVEL     predicted as another level, of three and more, among those of LEVEL  w / (2 n_k,LEVEL)

With S the sums of losses by group and label, each record's between 0 and a public clip c (1 for the squared loss), and
in units of c, a mean loss is c sum over its cells of S / n_cells:

    squared_loss     of a group or of everybody: the mean of (p - y)^2                            w / n_k
    log_loss         the mean of min(c, -log p(y)), p(y) being the label's probability            c w / n_k
    ..._first, ..._second    over the records with the first, or the second, label                c w / n_k,label

All of these are linear, so those of a mixture are the means over its draws. `Sizes.measures` names the sums S that
follow the counts N in the vector that losses are functions of. The numbers n are public or noisy answers, so that only
N and S depend on records when a score or a sum is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.questions.sums.losses import MEASURES, Measure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Loss = str
"""Name of a rate or mean loss: of `LOSSES` or `OF_PROBABILITIES`, or `missed LEVEL` of more than two levels."""
MISSED = "missed "
LOSSES: tuple[Loss, ...] = ("error", "selection", "false_positive", "false_negative")
"""Losses of predictions of two levels."""
OF_PROBABILITIES: dict[Loss, tuple[Measure, tuple[int, ...]]] = {
    "squared_loss": ("squared", (0, 1)),
    "squared_loss_first": ("squared", (0,)),
    "squared_loss_second": ("squared", (1,)),
    "log_loss": ("log", (0, 1)),
    "log_loss_first": ("log", (0,)),
    "log_loss_second": ("log", (1,)),
}
"""Losses of probabilities: their measure, and the labels of their records."""
BY_LABEL: dict[Loss, tuple[Loss, Loss]] = {
    "error": ("false_positive", "false_negative"),
    "squared_loss": ("squared_loss_first", "squared_loss_second"),
    "log_loss": ("log_loss_first", "log_loss_second"),
}
"""Parts of a loss over the records with the first, and with the second, of two labels."""
COUNTED: dict[Loss, tuple[tuple[int, int], ...]] = {
    "error": ((0, 1), (1, 0)),
    "selection": ((0, 1), (1, 1)),
    "false_positive": ((0, 1),),
    "false_negative": ((1, 0),),
}
"""Pairs of label and prediction that each loss counts, of two levels."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """Numbers of records by group and label, and the losses that can be estimated of them."""

    labels: tuple[str, ...]
    """Labels of the groups; one empty label where everybody is one group."""
    numbers: Floats
    """Numbers of records: one row a group, one column a level of the target."""
    sigma: float = 0.0
    """Noise scale of each number; 0 where they are public."""
    least: float = 1.0
    """Fewest records in a denominator for which a rate is estimated."""
    measures: tuple[Measure, ...] = ()
    """Measures whose sums of losses follow the counts."""
    clip: float = 1.0
    """Largest log loss of a record."""
    levels: tuple[str, ...] = ("", "")
    """Levels of the target."""

    def __post_init__(self) -> None:
        """Put the measures in the order of `MEASURES`, without repetitions."""
        object.__setattr__(self, "measures", tuple(m for m in MEASURES if m in self.measures))

    @cached_property
    def total(self) -> float:
        """Number of all records, a float of at least 1."""
        return max(float(self.numbers.sum()), 1.0)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Tuple of names of all losses that counts and sums determine: of predictions, then those of `measures`."""
        if self.several:
            return ("error", *self.by_label("error"))
        return (*LOSSES, *(loss for loss, (measure, _) in OF_PROBABILITIES.items() if measure in self.measures))

    @property
    def several(self) -> bool:
        """True for more than two levels of the target."""
        return bool(self.numbers.shape[1] > 2)

    def by_label(self, loss: Loss) -> tuple[Loss, ...]:
        """Return a tuple of losses' names: the parts of `loss` over each label's records, ordered as `levels`."""
        return tuple(f"{MISSED}{level}" for level in self.levels) if self.several else BY_LABEL[loss]

    def counted(self, loss: Loss) -> Sequence[tuple[int, int]]:
        """Return a list of pairs (label, prediction), numbers of levels, that `loss`, one of predictions, counts."""
        if not self.several:
            return COUNTED[loss]
        each = range(len(self.levels))
        return [(k, q) for k in each for q in each if k != q and loss in ("error", f"{MISSED}{self.levels[k]}")]

    @property
    def right(self) -> Floats:
        """Vector for a classifier that is always right: its counts by group, label and prediction, then losses of 0."""
        found = np.maximum(self.numbers, 0)[:, :, None] * np.eye(self.numbers.shape[1])
        return np.concatenate([found.ravel(), np.zeros(len(self.measures) * self.numbers.size)])

    def costs(self, slopes: Floats) -> Floats:
        """Return an array of costs, groups x labels x predictions, by `slopes`: a goal's derivatives by counts, sums.

        The gradient oracle descends on a record's log loss in place of its error, so a log loss of weight 1 counts as
        an error of cost 1. A squared loss counts equally, with the log loss as a stand-in: both are proper, so for any
        weights by group and label equal probabilities minimise both, if the model can express them. Where it cannot,
        the two differ; the weights of the mixture are found by the measured squared losses either way.
        """
        counted = self.numbers.shape[1] * self.numbers.size
        found = slopes[:counted].reshape(*self.numbers.shape, -1).copy()
        sums = slopes[counted:].reshape(-1, *self.numbers.shape)
        for measure, slope in zip(self.measures, sums, strict=True):
            for label in (0, 1):
                # a loss weighs on the wrong prediction, in units of its clip
                found[:, label, 1 - label] += slope[:, label] / self.most(measure)
        return found

    def most(self, measure: Measure) -> float:
        """Return the largest loss of one record by a measure: `clip` for `log`, else 1."""
        return self.clip if measure == "log" else 1.0

    def largest(self, loss: Loss) -> float:
        """Return the largest value of the rate or mean loss called `loss`: `clip` for log losses, else 1."""
        return self.most(OF_PROBABILITIES[loss][0]) if loss in OF_PROBABILITIES else 1.0

    def middle(self, loss: Loss) -> float:
        """Return the constant to add to `row` . vector for the rate `loss`: 1/2 for losses of predictions, else 0."""
        return 0.0 if loss in OF_PROBABILITIES else 0.5

    def cells(self, loss: Loss, group: int | None) -> NDArray[np.bool_]:
        """Return a mask, groups x labels, of cells whose records are the denominator of the loss called `loss`.

        `group` is a group's number; None is all of them.
        """
        found = np.zeros(self.numbers.shape, bool)
        of = OF_PROBABILITIES[loss][1] if loss in OF_PROBABILITIES else [label for label, _ in self.counted(loss)]
        for label in of:
            found[slice(None) if group is None else group, label] = True
        return found

    def estimable(self, loss: Loss, group: int | None = None) -> bool:
        """True if the denominator of `loss` in a group (number; None: all) is at least `least` and 3 x its noise."""
        cells = self.cells(loss, group)
        return bool(self.numbers[cells].sum() >= max(self.least, 3 * self.sigma * np.sqrt(cells.sum())))

    def row(self, loss: Loss, group: int | None = None) -> Floats:
        """Return an array of coefficients: its product with the vector of counts and sums is `loss` less its middle.

        It is that of the group of number `group`, or of everybody (None); denominators are at least 1.
        """
        found, cells = np.zeros((*self.numbers.shape, self.numbers.shape[1])), self.cells(loss, group)
        sums = np.zeros((len(self.measures), *self.numbers.shape))
        size = max(float(self.numbers[cells].sum()), 1.0)
        if loss in OF_PROBABILITIES:
            sums[self.measures.index(OF_PROBABILITIES[loss][0]), cells] = self.largest(loss) / size
            return np.concatenate([found.ravel(), sums.ravel()])
        found[cells] = -0.5 / size
        for label, said in self.counted(loss):
            found[slice(None) if group is None else group, label, said] = 0.5 / size
        return np.concatenate([found.ravel(), sums.ravel()])

    def rate(self, loss: Loss, group: int | None, counts: Floats) -> float:
        """Return the rate or mean loss called `loss` of a group (number; None: everybody) for `counts`, a vector."""
        return self.middle(loss) + float(self.row(loss, group) @ counts)

    def noise(self, loss: Loss, group: int | None, rate: float, sigma: float) -> float:
        """Return the standard deviation of `rate`, the value of `loss` in a group, by number (None: everybody).

        By noise `sigma` of counts, and by the denominator's.
        """
        cells = self.cells(loss, group)
        size = max(float(self.numbers[cells].sum()), 1.0)
        denominator = (rate - self.middle(loss)) * self.sigma * float(np.sqrt(cells.sum())) / size
        return float(np.hypot(np.linalg.norm(self.row(loss, group)) * sigma, denominator))
