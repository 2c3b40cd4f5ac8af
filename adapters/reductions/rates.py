"""Losses of groups: rates that are linear in a classifier's confusion counts.

With the counts N of a classifier, by group, label and prediction, and the numbers n of records by group and label, a
rate is 1/2 + sum over its cells of (N_counted - N_other) / (2 n_cells): the same as N_counted / n_cells, as each
record of a cell is either, but moved by half as much by one record.

    error            of a group or of everybody: predicted wrongly, among all             moved by w / (2 n_k)
    selection        predicted as the second level, among all                                      w / (2 n_k)
    false_positive   predicted as the second level, among those of the first              w / (2 n_k,first)
    false_negative   predicted as the first level, among those of the second              w / (2 n_k,second)

The numbers n are public or noisy answers, so that only N depends on records when a score or a sum is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Loss = Literal["error", "selection", "false_positive", "false_negative"]
LOSSES: tuple[Loss, ...] = ("error", "selection", "false_positive", "false_negative")
COUNTED: dict[Loss, tuple[tuple[int, int], ...]] = {
    "error": ((0, 1), (1, 0)),
    "selection": ((0, 1), (1, 1)),
    "false_positive": ((0, 1),),
    "false_negative": ((1, 0),),
}
"""The label and the prediction that each counts."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """The numbers of records by group and label."""

    labels: tuple[str, ...]
    """The groups; one empty label where everybody is one group."""
    numbers: Floats
    """One row a group, one column a level of the target."""
    sigma: float = 0.0
    """The noise in each number; 0 where they are public."""
    least: float = 1.0
    """The fewest records in a denominator of which a rate is estimated."""

    @cached_property
    def total(self) -> float:
        """Everybody, at least 1."""
        return max(float(self.numbers.sum()), 1.0)

    def cells(self, loss: Loss, group: int | None) -> NDArray[np.bool_]:
        """Which numbers make the denominator."""
        found = np.zeros(self.numbers.shape, bool)
        for label, _ in COUNTED[loss]:
            found[slice(None) if group is None else group, label] = True
        return found

    def estimable(self, loss: Loss, group: int | None = None) -> bool:
        """Whether there are enough records, and more than the noise in their number would show of none."""
        cells = self.cells(loss, group)
        return bool(self.numbers[cells].sum() >= max(self.least, 3 * self.sigma * np.sqrt(cells.sum())))

    def row(self, loss: Loss, group: int | None = None) -> Floats:
        """The rate less 1/2, as a linear function of the counts by group, label and prediction."""
        found = np.zeros((*self.numbers.shape, 2))
        size = max(float(self.numbers[self.cells(loss, group)].sum()), 1.0)
        for label, said in COUNTED[loss]:
            found[slice(None) if group is None else group, label, said] = 0.5 / size
            found[slice(None) if group is None else group, label, 1 - said] = -0.5 / size
        return found.ravel()

    def rate(self, loss: Loss, group: int | None, counts: Floats) -> float:
        """The rate at these counts."""
        return 0.5 + float(self.row(loss, group) @ counts)

    def noise(self, loss: Loss, group: int | None, rate: float, sigma: float) -> float:
        """The deviation of a rate from counts with this noise, that of its denominator included, to first order."""
        cells = self.cells(loss, group)
        size = max(float(self.numbers[cells].sum()), 1.0)
        denominator = (rate - 0.5) * self.sigma * float(np.sqrt(cells.sum())) / size
        return float(np.hypot(np.linalg.norm(self.row(loss, group)) * sigma, denominator))
