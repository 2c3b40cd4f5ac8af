"""Design error of public shares: how far a mean weighted by them moves with the survey that they were counted in.

A file with replicate weights gives each share once more by each of them. For a mean theta = sum w_g m_g of groups'
means m_g, theta_r the same by the shares of replicate r, the variance by successive differences is

    4/80 sum over r of (theta_r - theta)^2

as the Census Bureau computes it for the 80 replicate weights of the American Community Survey (Fay and Train 1995). It
holds the correlations of the shares. Where standard errors s_g alone are published, the deviation of theta is at most
the least sum of s_g |m_g - c| over all c, whatever the correlations: the errors of shares that add up to 1 add up to 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

REPLICATES = 80
"""Number of replicate weights of the American Community Survey."""
FACTOR = 4 / REPLICATES
"""Factor of the sum of squared differences, by successive differences."""
MOST_REPLICATED = 2_000
"""Largest number of groups whose shares are written by each replicate weight too: 80 numbers a group."""
BY_REPLICATES = f"{REPLICATES} replicate weights"
BY_ERRORS = "standard errors, at most"


def standard_errors(replicates: Floats, figures: ArrayLike) -> Floats:
    """Return an array, the standard error of each of the array `figures`, by `replicates`.

    It is an array (figures, replicates) with each figure by each replicate weight.
    """
    import numpy as np

    apart = replicates - np.asarray(figures)[:, None]
    found: Floats = np.sqrt(FACTOR * (apart**2).sum(axis=1))
    return found


@dataclass(frozen=True, eq=False)
class DesignError:
    """Design error of the shares of some groups, in their order."""

    by: str
    """Method and source, as pages state it, such as "80 replicate weights of U.S. Census Bureau, ..."."""
    errors: Floats
    """Standard error of each share; used where there are no replicates."""
    replicates: Floats | None = None
    """Array (groups, replicates) of the differences of each replicate's shares from the shares; None without them."""

    def sd(self, values: Floats) -> float:
        """Return the design standard deviation of the sum of shares times `values`, an array by group, in its unit."""
        import numpy as np

        if self.replicates is not None:
            return float(np.sqrt(FACTOR * ((values @ self.replicates) ** 2).sum()))
        order = np.argsort(values)
        half = np.searchsorted(np.cumsum(self.errors[order]), self.errors.sum() / 2)
        middle = values[order][min(int(half), len(values) - 1)]  # the median by the errors gives the least sum
        return float(self.errors @ np.abs(values - middle))
