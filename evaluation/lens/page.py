"""INTERNAL. The lens as a page for readers, one picture of all groups, and a page of text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stratsynth.evaluation.lens import predictors, tables
from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.report.groups import group_name
from stratsynth.evaluation.report.text import aligned
from stratsynth.evaluation.tables import GROUP, STAMP

from stratsynth.report.cells import drawn, figure
from stratsynth.report.cells import words as text_cell
from stratsynth.report.numbers import Numbers, several, short
from stratsynth.report.page import Column, Figure, Page, Section, Table, render
from stratsynth.report.strip import Mark, Scale, axis, legend, strip

if TYPE_CHECKING:
    import pandas as pd
    from stratsynth.evaluation.lens.scores import LensScores

    from stratsynth.schema import Schema

CAUSES = {"total variation": tables.CAUSES, "excessive risk": predictors.CAUSES}
NOTHING = 1e-12
"""Parts below this are rounding of floats."""
MEASURES = {
    "total variation": "How far the release's tables are from the real ones within a group: 0 where they agree, 1 "
    "where nothing does; the mean over tables.",
    "excessive risk": "A private model's mean loss above that of the same model without clipping and noise.",
}


def lens_page(scores: LensScores) -> str:
    """The HTML."""
    facts = scores.facts
    note = "Parts add up to the whole; a negative one makes up for others. Lines are 95 % intervals over fits."
    figures = _pictures(scores.lens, facts["parts"], scores.by, scores.schema, note)
    return render(
        Page(
            title="What each group loses, and to what",
            subtitle=f"{facts['mechanism']}, epsilon {facts['epsilon']:g}: {facts['real_rows']:,} rows, "
            f"{several(facts['groups'], 'declared group')}, {facts['repeats']} fits",
            lead=[MEASURES[facts["measure"]], *remedies(facts["measure"], scores.lens)],
            sections=[Section("lens", "Who loses what", figures=figures)],
            internal=BANNER,
            made_with="Made by stratsynth lens. Every figure lies beside this file as CSV and Parquet.",
        )
    )


def lens_section(frame: pd.DataFrame, by: Sequence[str], schema: Schema) -> Section:
    """The parts of one release's error, for the page of its evaluation."""
    measure = "total variation"
    note = "Parts add up to the error of this release. `stratsynth lens` repeats the fit, and has intervals over noise."
    return Section(
        "lens", "What caused the error", text=[MEASURES[measure], *remedies(measure, frame)],
        figures=_pictures(frame, tables.PARTS, by, schema, note),
    )  # fmt: skip


def _pictures(frame: pd.DataFrame, parts: Sequence[str], by: Sequence[str], schema: Schema, note: str) -> list[Figure]:
    """One picture, or one for each width of marginals."""
    if "columns" not in frame:
        return [picture(frame, parts, by, schema, title="In each group", note=note)]
    return [
        picture(one, parts, by, schema, title=f"In each group, tables of {several(width, 'column')}", note=note)
        for width, one in ((width, frame[frame["columns"] == width]) for width in sorted({*map(int, frame["columns"])}))
    ]


def remedies(measure: str, frame: pd.DataFrame) -> list[str]:
    """What each part is, and what moves it; parts that are nothing in any group are named, and no more."""
    causes = CAUSES[measure]
    there = shown(list(causes), frame)
    lines = [f"{part.capitalize()}: {causes[part][0]}. What moves it: {causes[part][1]}." for part in there]
    absent = [part for part in causes if part not in there]
    return [*lines, f"Nothing was lost or won by {' or '.join(absent)}."] if absent else lines


def shown(parts: Sequence[str], frame: pd.DataFrame) -> list[str]:
    """The parts that are something in some group, or not known."""
    return [part for part in parts if not frame[part].abs().max() < NOTHING] or list(parts)


def picture(
    frame: pd.DataFrame, parts: Sequence[str], by: Sequence[str], schema: Schema, *, title: str, note: str
) -> Figure:  # fmt: skip
    """One line a group: the parts of what it loses, each with its interval, and the whole."""
    rows: list[dict[Any, Any]] = frame.to_dict("records")
    every, parts = parts, shown(parts, frame)
    ends = [row[key] for row in rows for part in parts for key in (part, f"{part}_low", f"{part}_high")]
    scale = Scale.over([*ends, *frame["value"]])
    heads = [
        Column("Group", "text"), Column("people"), Column("parts and intervals", "picture", axis(scale)),
        Column("all together"), *(Column(part) for part in parts), Column("status", "text"),
    ]  # fmt: skip
    lines = []
    for row in rows:
        name = _name(row, by, schema)
        marks = [
            Mark(part, row[part], _known(row[f"{part}_low"]), _known(row[f"{part}_high"]), every.index(part))
            for part in parts
            if math.isfinite(row[part])
        ]
        cell = drawn(strip(scale, marks, joined=False, what=name), row["value"]) if marks else text_cell("–")
        numbers = [figure(row[part] if math.isfinite(row[part]) else None) for part in parts]
        whole = figure(row["value"] if math.isfinite(row["value"]) else None)
        lines.append([text_cell(name), figure(row["n"]), cell, whole, *numbers, text_cell(str(row["status"]))])
    names = [*by, "n", "value", "low", "high", *(f"{p}{end}" for p in every for end in ("", "_low", "_high"))]
    plain = frame[names].astype(object).where(frame[names].notna(), None)
    return Figure(
        title, note, Table("What each group loses, by cause.", heads, lines),
        legend=legend([(part, every.index(part)) for part in parts]),
        numbers=Numbers(title, names, plain.to_numpy().tolist(), STAMP),
    )  # fmt: skip


def _known(value: float) -> float | None:
    """An end of an interval, where there is one."""
    return value if math.isfinite(value) else None


def _name(row: Mapping[Any, Any], by: Sequence[str], schema: Schema) -> str:
    return group_name({c: row[c] for c in by}, schema) if by and row["scope"] == GROUP else "everybody"


def text(scores: LensScores) -> str:
    """A page for the terminal."""
    facts, frame, by = scores.facts, scores.lens, scores.by
    parts = shown(facts["parts"], frame)
    wide = "columns" in frame
    rows = [[*by, *(["columns"] if wide else []), "people", facts["measure"], *parts, "status"]]
    for row in frame.to_dict("records"):
        who = [str(row[c]) for c in by] if row["scope"] == GROUP else (["all", *[""] * len(by)])[: len(by)]
        rows.append([
            *who, *([str(row["columns"])] if wide else []), f"{row['n']:,}", short(row["value"]),
            *(short(row[part]) for part in parts), str(row["status"]),
        ])  # fmt: skip
    told = remedies(facts["measure"], frame)
    lines = [f"{STAMP}.", MEASURES[facts["measure"]], "", *aligned(rows, len(by)), "", *told]
    return "\n".join(lines)
