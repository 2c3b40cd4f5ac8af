"""Marginals of a calibrated junction tree: of columns that share a clique at once, of others by elimination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from stratsynth.adapters.engine.forest import Floats
from stratsynth.adapters.engine.structure import Clique, JunctionTree


def marginal(tree: JunctionTree, calibrated: Sequence[Floats], columns: Clique) -> Floats:
    """The probability table of some columns, its axes in their order; `calibrated` holds each clique's own."""
    if any(set(columns) <= set(clique) for clique in tree.cliques):
        home = tree.home(columns)
        return _onto(tree.cliques[home], calibrated[home], columns)
    near = _neighbours(tree)
    kept = _subtree(tree, near, set(columns))
    root = min(kept)
    names, table = _gather(tree, calibrated, near, kept, root, None, set(columns))
    return _onto(names, table, columns)


def _onto(names: Clique, table: Floats, columns: Clique) -> Floats:
    """Sum a table's other axes out and put the rest in order."""
    summed = table.sum(axis=tuple(i for i, name in enumerate(names) if name not in columns))
    left = [name for name in names if name in columns]
    ordered: Floats = np.transpose(summed, [left.index(column) for column in columns])
    return ordered


def _neighbours(tree: JunctionTree) -> Mapping[int, dict[int, Clique]]:
    """Each clique's neighbours in the tree, with what they share."""
    near: dict[int, dict[int, Clique]] = {i: {} for i in range(len(tree.cliques))}
    for i, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
        if parent >= 0:
            near[i][parent] = near[parent][i] = separator
    return near


def _subtree(tree: JunctionTree, near: Mapping[int, dict[int, Clique]], wanted: set[str]) -> set[int]:
    """The cliques that matter: a leaf whose wanted columns its neighbour has too is dropped, again and again."""
    kept = set(near)
    leaves = [i for i in near if len(near[i]) <= 1]
    while leaves:
        leaf = leaves.pop()
        left = [j for j in near[leaf] if j in kept]
        if leaf not in kept or len(left) != 1:
            continue
        if wanted & set(tree.cliques[leaf]) <= set(near[leaf][left[0]]):
            kept.remove(leaf)
            leaves.append(left[0])
    return kept


def _gather(
    tree: JunctionTree,
    calibrated: Sequence[Floats],
    near: Mapping[int, dict[int, Clique]],
    kept: set[int],
    node: int,
    above: int | None,
    wanted: set[str],
) -> tuple[Clique, Floats]:
    """A clique's table times the conditionals of what lies behind it, summed to what is wanted or shared above."""
    names, table = tree.cliques[node], calibrated[node]
    for other, separator in near[node].items():
        if other in kept and other != above:
            below, part = _gather(tree, calibrated, near, kept, other, node, wanted)
            shared = _onto(tree.cliques[other], calibrated[other], separator)
            names, table = _times(names, table, below, _divide(below, part, separator, shared))
    stay = wanted | set(near[node][above] if above is not None else ())
    left = tuple(name for name in names if name in stay)
    return left, _onto(names, table, left)


def _divide(names: Clique, table: Floats, separator: Clique, shared: Floats) -> Floats:
    """A joint table to a conditional one, given the separator; 0 where the separator's cell cannot occur."""
    spread = _spread(separator, shared, names)
    return np.divide(table, spread, out=np.zeros_like(table), where=spread > 0)


def _times(left: Clique, a: Floats, right: Clique, b: Floats) -> tuple[Clique, Floats]:
    """The product of two tables, over the columns of both."""
    names = (*left, *(name for name in right if name not in left))
    return names, _spread(left, a, names) * _spread(right, b, names)


def _spread(names: Clique, table: Floats, onto: Clique) -> Floats:
    """A table with axes of length one where it lacks a column, for broadcasting."""
    order = [names.index(name) for name in onto if name in names]
    shape = iter(np.transpose(table, order).shape)
    return np.transpose(table, order).reshape([next(shape) if name in names else 1 for name in onto])
