"""Tables of everybody over some of the columns that define strata: their slices count several strata together.

With strata by SEX and RAC1P, a table of everybody over SEX and MAR has a slice for each level of SEX, which holds a
noisy copy of the sum of an interaction over the strata of that sex. All copies of one interaction, of single strata, of
such sums and of everybody, are linear in the strata's own, with independent noise that is of one variance in all
entries: one small system in the strata solves them all by least squares.

Where a stratum is merged of several levels of such a column, the slices of all of these are added up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.answers.tables import Columns, Leaf, Noisy

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

NOTHING = 1e-9
"""Largest part of weights that is rounding error."""


@dataclass(frozen=True, eq=False)
class Slice:
    """Noisy counts of several strata together, over the columns that define none."""

    leaves: tuple[int, ...]
    """Numbers of the strata."""
    table: Noisy
    of: Columns
    """Columns of the table that it is a slice of."""


@dataclass(frozen=True, eq=False)
class Across:
    """Least-squares state of one interaction that was measured of strata and of sums over strata.

    Its methods are those of `Interaction`.
    """

    values: Floats
    """Array (strata, entries): estimates; only sums that are known mean anything."""
    noise: Floats
    """Covariance (strata, strata) of their noise along a unit vector."""
    unknown: Floats
    """Array (strata, strata): projection of weights onto those about which nothing is known."""

    @classmethod
    def of(cls, values: Floats, variances: Floats, sums: Sequence[tuple[Floats, Floats, float]]) -> Across:
        """Return the `Across`, least squares, of copies of single strata and of sums over strata of an interaction.

        Args:
            values: Array (strata, entries) of the strata's own copies; 0 where there is none.
            variances: Their noise variances; infinite where there is none.
            sums: Triples of a copy of a sum, its mask of the strata (1 or 0), and its noise variance.
        """
        own, strata = np.isfinite(variances), len(variances)
        masks, worth = np.array([mask for _, mask, _ in sums]), np.array([1 / variance for _, _, variance in sums])
        # strata without a copy of their own are known by what the sums tell of them, and in no other direction
        _, sizes, along = np.linalg.svd(masks[:, ~own], full_matrices=False)
        along = along[sizes > NOTHING * max(1.0, sizes.max(initial=0.0))]
        base = np.zeros((strata, int(own.sum()) + len(along)))
        base[own, : own.sum()] = np.eye(int(own.sum()))
        base[~own, own.sum() :] = along.T
        precise = np.where(own, 1 / variances, 0.0)
        normal = np.diag(precise) + (masks.T * worth) @ masks
        inside = base.T @ normal @ base
        scale = 1 / np.sqrt(np.diag(inside))
        solved = base * scale @ np.linalg.inv(inside * scale[:, None] * scale) @ (base * scale).T
        wanted = precise[:, None] * values + (masks.T * worth) @ np.stack([copy for copy, _, _ in sums])
        unknown = np.zeros((strata, strata))
        unknown[np.ix_(~own, ~own)] = np.eye(int((~own).sum())) - along.T @ along
        return cls(solved @ wanted, solved, unknown)

    def estimable(self, weights: Floats) -> Bools:
        """Return a mask of functions: True where the sum over strata is known; `weights` are (functions, strata)."""
        size = np.abs(weights).max(axis=1, initial=0.0)
        return np.asarray(np.abs(weights @ self.unknown).max(axis=1, initial=0.0) <= NOTHING * size)

    def sums(self, weights: Floats) -> Floats:
        """Return an array (functions, entries): estimates summed over strata by `weights` (functions, strata)."""
        return weights @ self.values

    def covariance(self, one: Floats, other: Floats) -> Floats:
        """Return an array, one a function: noise covariance of two sums of this state, by weights `one`, `other`.

        Both are arrays (functions, strata).
        """
        return np.asarray(np.einsum("fs,fs->f", one @ self.noise, other))


def slices(table: Noisy, leaves: Sequence[Leaf], by: frozenset[str]) -> list[Slice]:
    """Return a list of `Slice`, one for each set of strata that a noisy `table` of everybody counts together.

    `leaves` are the strata, each a `Leaf`; `by` are the columns that define them, some of which the table has. A slice
    keeps its other columns.
    """
    outer = [name for name in table.columns if name in by]
    inner = tuple(name for name in table.columns if name not in by)
    whole = table.values.transpose([table.columns.index(name) for name in (*outer, *inner)])
    together = {name: _together([leaf.codes[name] for leaf in leaves]) for name in outer}
    found: dict[tuple[int, ...], list[int]] = {}
    for number, leaf in enumerate(leaves):
        found.setdefault(tuple(together[name][leaf.codes[name][0]] for name in outer), []).append(number)
    made = []
    for group, numbers in found.items():
        cells = whole
        for axis, (name, first) in enumerate(zip(outer, group, strict=True)):
            cells = cells.take([code for code, one in together[name].items() if one == first], axis=axis)
        several = math.prod(cells.shape[: len(outer)])
        counts = cells.sum(axis=tuple(range(len(outer))))
        made.append(
            Slice(
                tuple(numbers),
                replace(table, columns=inner, values=counts, variance=table.variance * several),
                table.columns,
            )
        )
    return made


def _together(several: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return {level number: smallest of those merged with it}; `several` has the level numbers of each stratum."""
    found: dict[int, int] = {}
    for codes in several:
        joined = {found.get(code, code) for code in codes}
        first = min(joined)
        found |= dict.fromkeys(codes, first)
        found = {code: first if of in joined else of for code, of in found.items()}
    return found
