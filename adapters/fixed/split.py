"""Division of a budget among declared tables: in closed form, from cells and importance.

A table of n cells that gets rho_t has noise of variance s_t^2 = D^2 / (2 rho_t) in each cell. With importance a_t,

    minimise  sum of a_t n_t s_t^p   where   sum of rho_t = rho

has the solution rho_t proportional to (a_t n_t)^(2 / (2 + p)), by Lagrange's rule: p = 2 for squared errors, p = 1 for
absolute ones. The errors are those of the tables as measured; least squares over all of them lowers every error
further.
"""

from __future__ import annotations

from collections.abc import Sequence

POWERS = {"squared": 2.0, "absolute": 1.0}
"""Power of the error that is summed over all cells."""


def split(cells: Sequence[int], importance: Sequence[float], errors: str) -> tuple[float, ...]:
    """Return a tuple of each table's fraction of rho, in the order of `cells`; they add up to 1.

    Args:
        cells: The number of cells of each table.
        importance: The weight of an error in a cell of each table.
        errors: The kind of error that is minimised, a key of `POWERS`.
    """
    worth = [(a * n) ** (2 / (2 + POWERS[errors])) for n, a in zip(cells, importance, strict=True)]
    return tuple(one / sum(worth) for one in worth)
