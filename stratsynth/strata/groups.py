"""Strata beyond a plain crossing: merges, age bands, a hierarchy, and policies for small groups.

All of it is public: declared levels, public sizes and declared budgets decide which groups merge, never rows. A
group is small if its public size times its epsilon is below a threshold: noise does not shrink with the group, so
its relative error falls as this product grows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stratsynth.checks import is_list, is_number, is_texts, number, one_of
from stratsynth.errors import UsageError, nearest
from stratsynth.schema import Numeric, Schema, Temporal
from stratsynth.strata import Stratum

Merges = Mapping[str, Mapping[str, Sequence[str]]]
"""Named merges by column, each with its levels."""
POLICIES = ("keep", "merge", "one-way")
DECLARED = "declared"


@dataclass(frozen=True)
class Step:
    """One merge of a hierarchy: levels of a column that become one group if a group among them is small."""

    column: str
    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Groups:
    """Declarations about strata besides their columns. If empty, every crossing of levels is a stratum."""

    merge: Merges = field(default_factory=dict)
    """Levels always taken together: `{"RAC1P": {"Native": ["3", "4", "5", "7"]}}`."""
    bands: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Numbers at which the bins of a numeric column are cut into bands: `{"AGEP": [18, 65]}`."""
    hierarchy: Merges = field(default_factory=dict)
    """Merges made only where `small` is "merge" and a group is small; narrow ones first, in order of preference.

    A merge may name earlier ones of its column instead of listing their levels again.
    """
    small: Literal["keep", "merge", "one-way"] = "keep"
    """Policy for small groups: "keep" them as they are, "merge" them along the hierarchy, or give them "one-way" tables
    only."""
    threshold: float | None = None
    """Public size times epsilon below which a group is small."""
    by_tables: float = field(default=0.0, metadata={"digest": False})  # a fit that asks them is known by its wrapper
    """Part of the fit's amount for tables of everybody, of each of the strata's columns by each other column, from
    which counts, shares and rates by one of them have an answer in every release; 0 for none."""

    def __post_init__(self) -> None:
        """Refuse malformed merges and bands, a column with both, and `small` without its threshold or hierarchy."""
        for key in ("merge", "hierarchy"):
            _check_merges(key, getattr(self, key))
        if not isinstance(self.bands, Mapping) or not all(
            is_list(cuts) and all(map(is_number, cuts)) for cuts in self.bands.values()
        ):
            raise UsageError("strata: bands are a table from column to a list of numbers, as AGEP = [18, 65].")
        for column in self.bands:
            if column in self.merge:
                raise UsageError(f"strata: {column} has bands and merges; give one of them.")
        one_of("strata: small", self.small, POLICIES)
        if (self.threshold is None) != (self.small == "keep"):
            raise UsageError(
                "strata: `small` and `threshold` go together: a group is small where public size x epsilon is below "
                "`threshold`."
            )
        number("strata: threshold", self.threshold, above=0, optional=True, hint=" (public size x epsilon)")
        number("strata: by_tables", self.by_tables, least=0, most=0.25, hint=", a part of the fit's amount")
        if bool(self.hierarchy) != (self.small == "merge"):
            raise UsageError('strata: small = "merge" needs a hierarchy to merge along, and a hierarchy needs it.')

    def together(self, schema: Schema, by: Sequence[str]) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return {column: {name: levels}} of merges and bands in strata of columns `by` of a schema; or UsageError."""
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for column, merges in self.merge.items():
            _check_column(schema, by, column)
            made: dict[str, tuple[str, ...]] = {}
            for name, levels in merges.items():
                made[name] = _levels(schema, column, name, levels, made)
            found[column] = _nested(column, made, {})
            if len({level for levels in made.values() for level in levels}) < sum(map(len, made.values())):
                raise UsageError(f"strata: a level of {column} is in two merges; a wider merge belongs in hierarchy.")
        for column, cuts in self.bands.items():
            _check_column(schema, by, column)
            found[column] = dict(_bands(schema, column, cuts))
        return found

    def ladder(self, schema: Schema, by: Sequence[str]) -> tuple[Step, ...]:
        """Return a tuple of the hierarchy's merges of the schema's columns `by`, as Steps in the order of trying.

        UsageError for unsound ones.
        """
        fixed, found = self.together(schema, by), list[Step]()
        for column, merges in self.hierarchy.items():
            _check_column(schema, by, column)
            made = dict(fixed.get(column, {}))
            for name, levels in merges.items():
                if name in made:
                    raise UsageError(f"strata: two merges of {column} are called {name!r}.")
                made[name] = _levels(schema, column, name, levels, made)
            _nested(column, {n: x for n, x in made.items() if n in merges}, fixed.get(column, {}))
            found.extend(Step(column, name, made[name]) for name in merges)
        return tuple(found)

    def __bool__(self) -> bool:
        """True if merges, bands, a hierarchy or a policy for small groups are declared."""
        return bool(self.merge or self.bands or self.hierarchy or self.small != "keep")


def _check_merges(key: str, merges: object) -> None:
    form = f'strata: {key} is a table from column to named lists of levels, as RAC1P = {{ Native = ["3", "4"] }}.'
    if not isinstance(merges, Mapping):
        raise UsageError(form)
    for tables in merges.values():
        if not isinstance(tables, Mapping) or not tables:
            raise UsageError(form)
        for name, levels in tables.items():
            if not isinstance(name, str) or not is_texts(levels):
                raise UsageError(form)
            if not name.strip() or "|" in name or not name.isprintable():
                raise UsageError(f"strata: {name!r} cannot be the name of a merge: | joins names in released files.")


def _check_column(schema: Schema, by: Sequence[str], column: str) -> None:
    schema.column(column)
    if column not in by:
        raise UsageError(
            f"strata: {column} is merged, but the strata are not by it; add it to `by`{nearest(column, by)}."
        )


def _levels(
    schema: Schema, column: str, name: str, given: Sequence[str], made: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return a tuple of the levels of merge `name` of `column`, in the schema's order: those of the list `given`.

    It may name merges in `made`, {name: levels}. UsageError for a name that is a level, a level twice, fewer than two.
    """
    if name in schema.levels(column):
        raise UsageError(f"strata: {column} has a level {name!r} already; call the merge something else.")
    found: set[str] = set()
    for level in given:
        inside = made.get(level) or (schema.levels(column)[schema.index(column, level)],)
        if not found.isdisjoint(inside):
            raise UsageError(f"strata: the merge {name!r} of {column} holds {level!r} twice.")
        found.update(inside)
    if len(found) < 2:
        raise UsageError(f"strata: the merge {name!r} of {column} needs at least two levels.")
    return tuple(level for level in schema.levels(column) if level in found)


def _nested(
    column: str, made: dict[str, tuple[str, ...]], fixed: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return `made`, {name: levels} of merges of `column`. UsageError if two overlap and neither contains the other.

    It is raised too if one is a proper part of a merge in `fixed`, {name: levels}.
    """
    sets = {name: set(levels) for name, levels in (*fixed.items(), *made.items())}
    for name in made:
        mine = sets[name]
        for other, theirs in sets.items():
            if mine & theirs and not (mine <= theirs or theirs <= mine):
                raise UsageError(
                    f"strata: the merges {other!r} and {name!r} of {column} overlap; nest one in the other."
                )
        if any(mine < sets[other] for other in fixed):
            raise UsageError(f"strata: {name!r} of {column} is part of a merge that holds everywhere.")
    return made


def _bands(schema: Schema, column: str, cuts: Sequence[float]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a pair (name, tuple of levels) for each band of two or more bins of the schema's `column` between `cuts`.

    `cuts` are numbers. UsageError if the column is not numeric, or if they do not increase or are no ends of bins.
    """
    numeric = schema.column(column)
    if not isinstance(numeric, Numeric) or isinstance(numeric, Temporal):
        raise UsageError(f"strata: {column} is not numeric, so it has no bands; merge its levels instead.")
    inner = [cut for cut in cuts if numeric.lower < cut <= numeric.upper]
    wrong = [cut for cut in inner if cut not in numeric.breaks]
    if wrong:
        raise UsageError(f"strata: {column} is not cut at {wrong[0]:g}: bands end where the schema's bins end.")
    if list(inner) != sorted(set(inner)):
        raise UsageError(f"strata: the bands of {column} must increase.")
    ends = [0, *(numeric.breaks.index(cut) for cut in inner), len(numeric.extents)]
    for first, last in itertools.pairwise(ends):
        if last - first > 1:
            low, top = numeric.extents[first][0], numeric.extents[last - 1][1]
            closed = last == len(numeric.extents)
            ends_in = f"{top:g}]" if closed else f"{numeric.breaks[last]:g})"
            name = f"{low:g}-{top:g}" if numeric.integer and low >= 0 else f"[{low:g},{ends_in}"
            yield name, numeric.all_levels[first:last]


@dataclass(frozen=True)
class MergedGroup:
    """A stratum that is fitted, and the declared groups it is made of."""

    stratum: Stratum
    members: tuple[Stratum, ...]
    why: str = ""
    """Reason why its members are one group; empty for a group by itself."""

    def people(self, sizes: Mapping[Stratum, float]) -> float:
        """Return the group's public number of records: the sum of `sizes`, a mapping, over its members, strata."""
        return math.fsum(sizes[member] for member in self.members)

    def epsilon(self, epsilons: Mapping[Stratum, float]) -> float:
        """Return the smallest epsilon of the group's strata in `epsilons`, a mapping: none is promised less."""
        return min(epsilons[member] for member in self.members)


def alone(strata: Sequence[Stratum]) -> list[MergedGroup]:
    """Return a list with a `MergedGroup` for each of `strata`, made of it alone, in order."""
    return [MergedGroup(stratum, (stratum,), DECLARED if stratum.is_merge else "") for stratum in strata]


def lacking(
    group: MergedGroup, sizes: Mapping[Stratum, float], epsilons: Mapping[Stratum, float], threshold: float
) -> str:
    """Return the reason in words why size x epsilon of `group`, a `MergedGroup`, is below `threshold`; "" if it is not.

    `sizes` and `epsilons` are mappings from `Stratum` to a number.
    """
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
    """Return a list of `MergedGroup`: `strata` after `steps` merged those of size x epsilon < `threshold`, if they can.

    `sizes` and `epsilons` are mappings from `Stratum` to a number; `steps` are tried in order.
    A merge includes every group that it shares a cell with, large ones too, so that groups stay boxes of levels.
    """
    groups = alone(strata)
    names = {(step.column, step.levels): step.name for step in steps}
    names |= {(c, levels): name for s in strata for (c, levels), name in zip(s.items, s.names, strict=True)}
    for step in steps:
        at, levels = 0, set(step.levels)
        while at < len(groups):
            group = groups[at]
            why = lacking(group, sizes, epsilons, threshold) if set(group.stratum.levels[step.column]) < levels else ""
            if why:  # the merge takes the place of its first group
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
    """Return (list of `groups` after `step` merged `small` with all it cuts, for `why`; index of the `MergedGroup`).

    `names` maps (column, levels) to the name that a merge has.
    """
    box = {**small.stratum.levels, step.column: step.levels}
    while True:
        inside = [g for g in groups if all(set(g.stratum.levels[c]) & set(levels) for c, levels in box.items())]
        # Widen the box to all groups it cuts. Merges are nested, so the widest one of a column contains the others.
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
