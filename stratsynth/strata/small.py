"""What becomes of small groups, decided from public sizes and declared budgets alone.

A group is small where its public size times its epsilon is below a threshold: noise does not shrink with the
group, so this product is what its relative error goes by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stratsynth.strata import Stratum
from stratsynth.strata.groups import Step

DECLARED = "declared"


@dataclass(frozen=True)
class MergedGroup:
    """A stratum as it is fitted, and the declared groups it is made of."""

    stratum: Stratum
    members: tuple[Stratum, ...]
    why: str = ""
    """Why its members are one group; empty for a group by itself."""

    def people(self, sizes: Mapping[Stratum, float]) -> float:
        """Its public size, in records."""
        return math.fsum(sizes[member] for member in self.members)

    def epsilon(self, epsilons: Mapping[Stratum, float]) -> float:
        """Its budget: the least of its members', so that nobody is promised more than they get."""
        return min(epsilons[member] for member in self.members)


def alone(strata: Sequence[Stratum]) -> list[MergedGroup]:
    """Every declared group by itself."""
    return [MergedGroup(stratum, (stratum,), DECLARED if stratum.is_merge else "") for stratum in strata]


def lacking(
    group: MergedGroup, sizes: Mapping[Stratum, float], epsilons: Mapping[Stratum, float], threshold: float
) -> str:
    """Why a group is small, in words; empty for one that is large enough."""
    people, epsilon = group.people(sizes), group.epsilon(epsilons)
    if people * epsilon >= threshold:
        return ""
    return f"{group.stratum.label}: public size {people:,.0f} x epsilon {epsilon:g} is below {threshold:g}"


def merge_small(
    strata: Sequence[Stratum],
    steps: Sequence[Step],
    sizes: Mapping[Stratum, float],
    epsilons: Mapping[Stratum, float],
    threshold: float,
) -> list[MergedGroup]:
    """Merge small groups along the hierarchy, one step after another, until they are small no more.

    A merge takes in every group that it has a cell of, large ones too: groups stay boxes, named by levels.
    """
    groups = alone(strata)
    names = {(step.column, step.levels): step.name for step in steps}
    names |= {(c, levels): name for s in strata for (c, levels), name in zip(s.items, s.names, strict=True)}
    for step in steps:
        at, levels = 0, set(step.levels)
        while at < len(groups):
            group = groups[at]
            why = lacking(group, sizes, epsilons, threshold) if set(group.stratum.levels[step.column]) < levels else ""
            if why:  # the merge stands where the first of its groups stood; go on after it
                groups, at = _merge(groups, group, step, why, names)
            at += 1
    return groups


def _merge(
    groups: Sequence[MergedGroup],
    small: MergedGroup,
    step: Step,
    why: str,
    names: Mapping[tuple[str, tuple[str, ...]], str],
) -> tuple[list[MergedGroup], int]:
    """The groups with one step taken around a small one, and the place of the merge."""
    box = {**small.stratum.levels, step.column: step.levels}
    while True:
        inside = [g for g in groups if all(set(g.stratum.levels[c]) & set(levels) for c, levels in box.items())]
        # merges are nested, so the widest one of a column holds the others
        hull = {c: max((g.stratum.levels[c] for g in inside), key=len) for c in box}
        wider = {c: hull[c] if len(hull[c]) > len(levels) else levels for c, levels in box.items()}
        if wider == box:
            break
        box = wider
    merged = Stratum(tuple(box.items()), tuple(names[item] for item in box.items()))
    members = tuple(member for group in inside for member in group.members)
    first = groups.index(inside[0])
    gone = {id(group) for group in inside}
    kept = [group for group in groups if id(group) not in gone]
    return [*kept[:first], MergedGroup(merged, members, why), *kept[first:]], first
