"""INTERNAL. Error of each release in each group: the data of a disparity card."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stratsynth.evaluation.tables import EVERYBODY, OK
from stratsynth.evaluation.tables.frames import FEW, HALF
from stratsynth.report.numbers import Numbers, listed, several, short
from stratsynth.report.page import Column, Figure, Points, Table, Value
from stratsynth.report.strip import Axis, Mark, legend

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

SERIES = {"vanilla": 0, "stratified": 1, "pooled": 2}
"""Colours and shapes of the usual names, the same in every report."""


@dataclass(frozen=True)
class ScoreWithInterval:
    """Number with its interval; NaN where unknown."""

    value: float
    """Estimate."""
    low: float = math.nan
    """Lower end of its interval."""
    high: float = math.nan
    """Upper end of its interval."""

    @property
    def known(self) -> bool:
        """True if the value is finite."""
        return math.isfinite(self.value)


NOTHING = ScoreWithInterval(math.nan)


@dataclass(frozen=True)
class GroupErrors:
    """Group with its number of real rows, and the error of each release in it."""

    name: str
    """Columns and levels of the group, in words."""
    n: float
    """Number of the group's real rows."""
    errors: Mapping[str, ScoreWithInterval]
    """Error of each release, by its name."""
    chance: float = math.nan
    """Sampling error: the error of a perfect model; NaN without a baseline."""
    status: str = OK
    """Status of the errors: "ok", "far_off", "small" or "not_estimable"."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """Level of each grouping column; empty for everybody."""

    def error(self, name: str) -> ScoreWithInterval:
        """Return the group's error in the release called `name`, a ScoreWithInterval; of NaN if there is none."""
        return self.errors.get(name, NOTHING)

    @property
    def worst(self) -> float:
        """Largest error of a release; NaN where none is known."""
        return max((e.value for e in self.errors.values() if e.known), default=math.nan)


def group_name(levels: Mapping[str, Any], schema: Schema | None = None) -> str:
    """Return a group's name from `levels`, {column: level}, as `SEX 2 (female), RAC1P 7` by a schema's labels.

    `everybody` for {}; schema None for no labels.
    """
    parts = []
    for column, level in levels.items():
        known = schema.columns.get(column) if schema is not None else None
        meaning = known.labels.get(str(level), "") if known is not None else ""
        parts.append(f"{column} {level}{f' ({meaning})' if meaning else ''}")
    return ", ".join(parts) or "everybody"


def group_errors(
    frame: pd.DataFrame, by: Sequence[str], releases: Mapping[str, str], chance: str | None, schema: Schema | None
) -> tuple[list[GroupErrors], GroupErrors]:
    """Return (list of GroupErrors, one a group; everybody's), from a frame with a row for each `table` and scope.

    Args:
        frame: As `Evaluation.workload`.
        by: The groups' columns.
        releases: Mapping from each table that is to be shown to its name in the report.
        chance: The table that is the sampling-error baseline; None for none.
        schema: Schema, for the meaning of levels.
    """
    found: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for record in frame.to_dict("records"):
        row = {str(name): value for name, value in record.items()}
        key = () if row["scope"] == EVERYBODY else tuple(str(row[name]) for name in by)
        found.setdefault(key, {})[row["table"]] = row
    made = []
    for key, tables in found.items():
        main = next(tables[table] for table in releases if table in tables)
        levels = dict(zip(by, key, strict=True)) if key else {}
        errors = {name: _score(tables[table]) for table, name in releases.items() if table in tables}
        base = float(tables[chance]["value"]) if chance in tables else math.nan
        own = [str(tables[table]["status"]) for table in [*releases][::-1] if table in tables]  # the release's first
        status = next((one for one in own if one != OK), OK)
        made.append(GroupErrors(group_name(levels, schema), main["n"], errors, base, status, levels))
    everybody = next((s for s in made if not s.levels), GroupErrors("everybody", math.nan, {}))
    return [s for s in made if s.levels], everybody


def _score(row: Mapping[str, Any]) -> ScoreWithInterval:
    """Return a frame's `row`, a mapping with "value", "low" and "high", as a ScoreWithInterval."""
    return ScoreWithInterval(float(row["value"]), float(row["low"]), float(row["high"]))


def series_of(names: Sequence[str]) -> dict[str, int]:
    """Return {name: number of its colour and shape, from 0} of the releases' `names`.

    Usual names have their own number.
    """
    free: Iterator[int] = iter([s for s in range(50) if s not in {SERIES[n] for n in names if n in SERIES}])
    return {name: SERIES[name] if name in SERIES else next(free) for name in names}


def worst_first(groups: Sequence[GroupErrors]) -> list[GroupErrors]:
    """Return a list of the GroupErrors in `groups`, from the largest error in any release to the smallest.

    Those without an error come last.
    """
    return sorted(groups, key=lambda s: -s.worst if math.isfinite(s.worst) else math.inf)


def card(
    groups: Sequence[GroupErrors],
    everybody: GroupErrors,
    *,
    title: str,
    note: str,
    interval: str,
    more: Mapping[str, Callable[[GroupErrors], Value]] = MappingProxyType({}),
    rest: str = "more groups in the page",
) -> Figure:
    """Return the disparity card, a Figure with title and note: a row a group, from worst to best, everybody last.

    `groups` is a list of GroupErrors, `everybody` one more. `interval` says in words what the intervals are. `more`
    maps headings to functions from a GroupErrors to one cell more, for which a picture leaves no room; `rest` says
    where a terminal's reader finds the groups that it does not show.
    """
    ordered = worst_first(groups)
    names = list(dict.fromkeys(name for s in [*ordered, everybody] for name in s.errors))
    series = series_of(names)
    based = any(math.isfinite(s.chance) for s in [*ordered, everybody])
    ends = [v for s in [*ordered, everybody] for e in s.errors.values() for v in (e.value, e.high)]
    scale = Axis.over([*ends, *(s.chance for s in [*ordered, everybody])])

    def line(s: GroupErrors) -> list[Value]:
        marks = [Mark(n, e.value, e.low, e.high, series[n]) for n in names if (e := s.error(n))]
        marks += [Mark("chance alone", s.chance, series=-1)] if based else []
        return [
            s.name,
            Points(s.name, marks, s.worst, joined=True),
            s.n,
            *(s.error(name).value for name in names),
            *([s.chance] if based else []),
            *(figure(s) for figure in more.values()),
            s.status.replace("_", " "),
        ]

    columns = [
        Column("Group", "text"),
        Column("error", "picture", scale),
        Column("people", "count"),
        *(Column(name) for name in names),
        *([Column("chance alone")] if based else []),
        *(Column(name, aside=True) for name in more),
        Column("status", "text"),
    ]
    head = [*dict.fromkeys(c for s in groups for c in s.levels), "scope", "n"]
    head += [f"{name} {end}" for name in names for end in ("error", "low", "high")] + ["chance alone", *more, "status"]
    rows = [
        [
            *(s.levels.get(c) for c in head[: head.index("scope")]),
            "group" if s.levels else "everybody",
            s.n,
            *(v for name in names for v in (s.error(name).value, s.error(name).low, s.error(name).high)),
            s.chance,
            *(figure(s) for figure in more.values()),
            s.status,
        ]
        for s in [*ordered, everybody]
    ]
    meaning = [(name, series[name]) for name in names] + ([("chance alone", -1)] if based else [])
    return Figure(
        title,
        note,
        Table(
            f"Worst first. “Small”: a table has fewer than {FEW} rows of the group, and its error is mostly chance. "
            "“Not estimable”: nobody of the group is in one of the tables. “Far off”: half or more of what the tables "
            f"say of the group is wrong, a mean total variation of {HALF:g} or more. “Ok” is whatever is none of "
            "these: the error itself says how good it is.",
            columns,
            [line(s) for s in ordered],
            [line(everybody)] if everybody.errors else [],
            rest=rest,
        ),
        legend=legend(meaning, note=interval),
        numbers=Numbers(title, head, rows),
    )


FEWEST = 3
"""Largest number of groups in the paragraph about the smallest, or a third of all if that is fewer."""


def smallest_groups(
    groups: Sequence[GroupErrors],
    everybody: GroupErrors,
    mine: str,
    other: str,
    name: str | None = None,
    *,
    brief: bool = False,
) -> str:
    """Return a paragraph on the smallest groups' errors, and `everybody`'s, in the release `mine` as against `other`.

    A change counts as one where the two intervals have nothing in common. `name` is what made the difference; who the
    groups are, and why, is left out of a `brief` one, which follows another.
    """
    what = name or f"Compared with {other}, {mine}"
    ordered = sorted((s for s in groups if s.n > 0), key=lambda s: s.n)
    few = ordered[: max(1, min(FEWEST, len(ordered) // 3))]
    if not few:
        return "No declared group has a real person, so that none can be compared."
    who = listed([with_people(s) for s in few])
    lines = [] if brief else [f"The {'smallest groups are' if len(few) > 1 else 'smallest group is'} {who}."]
    lines += _lost(few, mine, other)
    here = [s for s in few if s.error(mine).known and s.error(other).known]
    lines += [_did(here, mine, other, what, every=len(here) == len(few))] if here else []
    lines += [] if brief else _why(here, mine, other)
    lines.append(_rest(ordered[len(few) :], everybody, mine, other))
    empty = len(groups) - len(ordered)
    if empty and not brief:
        lines.append(f"{several(empty, 'declared group')} {'has' if empty == 1 else 'have'} no real person.")
    return " ".join(line for line in lines if line)


def _lost(few: Sequence[GroupErrors], mine: str, other: str) -> Iterator[str]:
    """Yield a sentence for each of the releases `other` and `mine` that has nobody of some groups, `few`.

    `few` are `GroupErrors`. The sentence says what error the release that keeps the groups has there.
    """
    for loser, keeper in ((other, mine), (mine, other)):
        gone = [s for s in few if not s.error(loser).known]
        kept = [s for s in gone if s.error(keeper).known]
        if not gone:
            continue
        them = listed([s.name for s in gone])
        name = loser if loser.endswith("release") else f"the {loser} release"
        lost = f"{name[:1].upper()}{name[1:]} lost {them} altogether: nobody of {_them(gone)} is in it"
        errors = _span([s.error(keeper).value for s in kept]) if kept else ""
        yield (
            f"{lost}; the {keeper} one keeps {listed([s.name for s in kept])}, at an error of {errors}."
            if kept
            else (f"{lost}.")
        )


def _them(groups: Sequence[GroupErrors]) -> str:
    """Return "it" for one group, "them" for several, by a sequence of `GroupErrors`."""
    return "it" if len(groups) == 1 else "them"


def with_people(s: GroupErrors) -> str:
    """Return the name of the group of `GroupErrors`, with its number of people, for a sentence: `SEX 2 (5 people)`."""
    people = several(int(s.n), "person", "people")
    return f"{s.name[:-1]}; {people})" if s.name.endswith(")") else f"{s.name} ({people})"


def verdict(s: GroupErrors, mine: str, other: str) -> str:
    """Return "smaller" or "larger": error of a group in release `mine`, if its interval is apart from `other`'s.

    Otherwise "no different beyond chance". `s` are the `GroupErrors`.
    """
    a, b = s.error(mine), s.error(other)
    ends = [
        e if math.isfinite(e) else v
        for e, v in ((a.low, a.value), (a.high, a.value), (b.low, b.value), (b.high, b.value))
    ]
    return "smaller" if ends[1] < ends[2] else "larger" if ends[0] > ends[3] else "no different beyond chance"


def _did(few: Sequence[GroupErrors], mine: str, other: str, what: str, *, every: bool) -> str:
    verdicts = [verdict(s, mine, other) for s in few]
    chance = [s.chance for s in few if math.isfinite(s.chance)]
    alone = f"; chance alone would leave {_span(chance)}" if chance else ""
    if len(set(verdicts)) > 1:
        parts = [
            f"{v} in {s.name} ({short(s.error(other).value, 2)} to {short(s.error(mine).value, 2)})"
            for s, v in zip(few, verdicts, strict=True)
        ]
        return f"{what} made the error {listed(parts)}{alone}."
    number = len(few)
    those = (
        "the smallest group"
        if every and number == 1
        else few[0].name
        if number == 1
        else (f"{'both' if number == 2 else f'all {number}'}{' of them' if every else ' others of them'}")
    )
    made = (
        f"{what} made no difference beyond chance in {those}"
        if verdicts[0].startswith("no")
        else f"{what} made the error {verdicts[0]} in {those}"
    )
    before, after = (_span([s.error(name).value for s in few]) for name in (other, mine))
    return f"{made}: it is {before} under {other} and {after} under {mine}{alone}."


def _why(few: Sequence[GroupErrors], mine: str, other: str) -> Iterator[str]:
    """Yield sentences on why errors of some groups, `few`, in release `mine` differ from those in `other`.

    `few` are `GroupErrors`, `mine` and `other` names of releases. There are sentences for "stratified" only.
    """
    verdicts = {verdict(s, mine, other) for s in few}
    if mine == "stratified" and "larger" in verdicts:
        yield (
            "A group that is measured by itself has noise of its own, and noise does not shrink with the group: in a "
            "group of few people the noise can be larger than the counts. The plan foresees this from public sizes; "
            "merging small groups, or pooling, are the remedies."
        )
    if mine == "stratified" and "smaller" in verdicts:
        yield "A group that is measured by itself keeps its own distribution, and is not drawn towards everybody's."


def _rest(rest: Sequence[GroupErrors], everybody: GroupErrors, mine: str, other: str) -> str:
    both = f"{short(everybody.error(other).value, 2)} to {short(everybody.error(mine).value, 2)}"
    whole = f"over everybody the error went from {both}." if everybody.error(mine).known else ""
    rest = [s for s in rest if s.error(mine).known and s.error(other).known]
    if not rest:
        return whole[:1].upper() + whole[1:]
    verdicts = [verdict(s, mine, other) for s in rest]
    kinds = [(verdicts.count(v), v) for v in ("smaller", "larger", "no different beyond chance") if v in verdicts]
    parts = [f"{v} in {number}" for number, v in kinds]
    larger = several(len(rest), "larger group")
    return f"{'Of' if len(rest) > 1 else 'In'} the {larger}, the error became {listed(parts)}" + (
        f"; {whole}" if whole else "."
    )


def _span(values: Sequence[float]) -> str:
    """Return text: the range "low to high" of `values`, two figures each; one number if these are equal."""
    low, high = short(min(values), 2), short(max(values), 2)
    return low if low == high else f"{low} to {high}"
