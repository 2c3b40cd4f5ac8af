"""INTERNAL. Lens as a page for readers, with one picture of all groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stratsynth.evaluation.lens import predictors, tables
from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.report.groups import group_name
from stratsynth.evaluation.tables import GROUP, OK
from stratsynth.report.numbers import Numbers, known, several
from stratsynth.report.page import Column, Figure, Page, Points, Row, Section, Table
from stratsynth.report.strip import Axis, Mark, legend

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.lens.scores import LensScores
    from stratsynth.schema import Schema

CAUSES = {"total variation": tables.CAUSES, "excessive risk": predictors.CAUSES}
FEW_PARTS = 3
"""Number of parts above which a picture is followed by a table of its numbers."""
TINY = 5e-5
"""Smallest absolute value that four decimals show."""
NOTHING = 1e-12
"""Absolute value below which a part is rounding error."""
MEASURES = {
    "total variation": "Mean total variation between the group's tables in the release and in the real data: half the "
    "sum of the cells' absolute differences, as a part of the group. It is 0 where tables agree, 1 where they have "
    "nothing in common, and more where the release has too many rows of the group.",
    "excessive risk": "A private model's mean loss above that of the same model without clipping and noise.",
}


def lens_page(scores: LensScores) -> Page:
    """Return LensScores as a Page of one section, with a picture of each group's loss by cause."""
    facts = scores.facts
    note = "Parts add up to the whole; a negative part offsets others. Lines are 95 % intervals over fits."
    figures = _pictures(scores.lens, facts["parts"], scores.by, scores.schema, note)
    return Page(
        title="What each group loses, and to what",
        subtitle=f"{facts['mechanism']}, epsilon {facts['epsilon']:g}: {facts['real_rows']:,} rows, "
        f"{several(facts['groups'], 'declared group')}, {facts['repeats']} fits",
        lead=[MEASURES[facts["measure"]], *remedies(facts["measure"], scores.lens)],
        sections=[Section("lens", "Who loses what", figures=figures)],
        internal=BANNER,
        made_with="Made by stratsynth lens. Every figure lies beside this file as CSV and Parquet.",
    )


def lens_section(frame: pd.DataFrame, by: Sequence[str], schema: Schema) -> Section:
    """Return the Section on the parts of a release's error, from `frame` by `lens_of_release`: a row a group.

    Groups, by the columns `by`, are named by the schema's labels.
    """
    measure = "total variation"
    note = (
        "Parts add up to the error of this release. The command stratsynth lens repeats the fit, and has intervals "
        "over noise."
    )
    return Section(
        "lens",
        "What caused the error",
        text=[MEASURES[measure], *remedies(measure, frame)],
        figures=_pictures(frame, tables.PARTS, by, schema, note),
    )


def _pictures(frame: pd.DataFrame, parts: Sequence[str], by: Sequence[str], schema: Schema, note: str) -> list[Figure]:
    """Return a list of Figures of a lens's `frame` by group: one picture of its columns `parts` a width of marginals.

    With many parts each has a table of numbers too. `by` are the groups' columns, named by the schema's labels; `note`
    is the text above.
    """
    pieces = [("In each group", frame)]
    if "columns" in frame:
        widths = sorted({*map(int, frame["columns"])})
        pieces = [(f"In each group, tables of {several(w, 'column')}", frame[frame["columns"] == w]) for w in widths]
    return [
        made
        for title, one in pieces
        for made in (
            picture(one, parts, by, schema, title=title, note=note),
            *in_numbers(one, parts, by, schema, title=title),
        )
    ]


def remedies(measure: str, frame: pd.DataFrame) -> list[str]:
    """List of sentences, one a part of the loss in a lens's `frame`, on its cause and remedy; then the absent parts.

    `measure` is "total variation" or "excessive risk".
    """
    causes = CAUSES[measure]
    there = shown(list(causes), frame)
    lines = [f"{part.capitalize()}: {causes[part][0]}. What moves it: {causes[part][1]}." for part in there]
    absent = [part for part in causes if part not in there]
    return [*lines, f"No part of the loss is due to {' or '.join(absent)}."] if absent else lines


def shown(parts: Sequence[str], frame: pd.DataFrame) -> list[str]:
    """List of those of `parts`, columns of a lens's `frame`, that are not 0 in every group; all parts if none is."""
    return [part for part in parts if not frame[part].abs().max() < NOTHING] or list(parts)


def picture(
    frame: pd.DataFrame, parts: Sequence[str], by: Sequence[str], schema: Schema, *, title: str, note: str
) -> Figure:
    """Return a Figure of a lens's `frame`, with title and note, a line a group: loss by part, intervals, total.

    `parts` are names of the frame's columns. Groups, by the columns `by`, are named by the schema's labels. The scale
    is that of groups which are not small.
    """
    rows: list[dict[Any, Any]] = frame.to_dict("records")
    every, parts = parts, shown(parts, frame)
    sound = [row for row in rows if row["status"] == OK] or rows
    ends = [row[key] for row in sound for part in parts for key in (part, f"{part}_low", f"{part}_high")]
    scale = Axis.over([*ends, *(row["value"] for row in sound)])
    many = len(parts) > FEW_PARTS
    heads = [
        Column("Group", "text"),
        Column("people", "count"),
        Column("parts and intervals", "picture", scale),
        Column("all together"),
        *(Column(part, aside=many) for part in parts),
        Column("status", "text"),
    ]
    lines = []
    for row in rows:
        name = _name(row, by, schema)
        marks = [
            Mark(part, row[part], known(row[f"{part}_low"]), known(row[f"{part}_high"]), every.index(part))
            for part in parts
            if math.isfinite(row[part])
        ]
        cell = Points(name, marks, row["value"]) if marks else "–"
        lines.append([name, row["n"], cell, *(_plain(row[part]) for part in ("value", *parts)), str(row["status"])])
    names = [*by, "n", "value", "low", "high", *(f"{p}{end}" for p in every for end in ("", "_low", "_high"))]
    plain = frame[names].astype(object).where(frame[names].notna(), None)
    beyond = (
        "" if len(sound) == len(rows) else " Groups of few people may reach beyond the scale: they end at its edge."
    )
    return Figure(
        title,
        note + beyond,
        Table("What each group loses, by cause.", heads, lines),
        legend=legend([(part, every.index(part)) for part in parts]),
        numbers=Numbers(title, names, plain.to_numpy().tolist()),
    )


def in_numbers(
    frame: pd.DataFrame, parts: Sequence[str], by: Sequence[str], schema: Schema, *, title: str
) -> list[Figure]:
    """List of one Figure, a table of the columns `parts` of a lens's `frame`, if over `FEW_PARTS`; else [].

    Groups, by the columns `by`, are named by the schema's labels; `title` is the figure's.
    """
    parts = shown(parts, frame)
    if len(parts) <= FEW_PARTS:
        return []
    lines: list[Row] = [
        [_name(row, by, schema), *(_plain(row[part]) for part in ("value", *parts))] for row in frame.to_dict("records")
    ]
    heads = [Column("Group", "text"), Column("all together"), *(Column(part) for part in parts)]
    table = Table("The parts of what each group loses.", heads, lines)
    return [Figure(f"{title}: the same in numbers", table=table, detail=True)]


def _plain(value: float) -> float:
    """Return the value itself, or 0 if four decimals would show zeros alone."""
    return 0.0 if abs(value) < TINY else value


def _name(row: Mapping[Any, Any], by: Sequence[str], schema: Schema) -> str:
    """Name of `row`, a frame's row as a mapping, for readers: that of its group, or "everybody".

    The group is by the columns `by`, in a schema's labels.
    """
    return group_name({c: row[c] for c in by}, schema) if by and row["scope"] == GROUP else "everybody"
