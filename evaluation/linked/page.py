"""INTERNAL. Page of the scores of two linked tables: each error between its floor and its ceiling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.tables.frames import NOT_ESTIMABLE, OK, SMALL
from stratsynth.report.numbers import Numbers, several
from stratsynth.report.page import Column, Figure, Page, Points, Row, Section, Table
from stratsynth.report.strip import Axis, Mark, legend

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.linked.evaluation import LinkedEvaluation

FLOOR, CEILING = "bootstrap", "at random"
"""Names of an error's floor, a bootstrap of parents, and of its ceiling, child rows assigned at random."""
MOST = 40
"""Largest number of tables of one kind that the page lists; the files have all."""


def linked_page(found: LinkedEvaluation, name: str) -> Page:
    """Return the Page of a LinkedEvaluation; `name` is the release's."""
    parent, child = found.linked.names
    facts, few = found.facts, found.errors["status"].value_counts()
    words = kinds_in_words(parent, child)
    sections = [
        Section(
            "kinds",
            "By kind of table",
            figures=[_errors("Mean errors", found.means.assign(table=found.means["kind"].map(words)), "kind of table")],
            notes=[
                (
                    f"{several(int(few.get(SMALL, 0)), 'table')} with few entries and "
                    f"{int(few.get(NOT_ESTIMABLE, 0)):,} without any are in no mean."
                ),
                f"Dealing {child} rows out changes neither H nor P2, which have no ceiling.",
            ],
        ),
        *_tables(found, words),
        _queries(found),
        *([] if found.shares is None else [_shares(found.shares)]),
        Section(
            "rules",
            "Rules",
            facts=[(of, f"{number:,} released rows break a rule") for of, number in found.broken.items()],
        ),
    ]
    return Page(
        title=f"How far {parent}s and their {child} rows are off",
        subtitle=f"{name}: {facts[f'synthetic {parent}']:,} {parent}s, {facts[f'synthetic {child}']:,} {child} rows, "
        f"beside {facts[f'real {parent}']:,} with {facts[f'real {child}']:,}",
        lead=[
            (
                "An error is the total variation of a table: half the sum of absolute differences of its shares, 0 "
                "where both agree and 1 where nothing does."
            ),
            (
                f"“{FLOOR}” is the error of a sample of the same {parent}s drawn with replacement, “{CEILING}” that of "
                f"the same {child} rows dealt out to {parent}s at random."
            ),
        ],
        sections=sections,
        internal=BANNER,
        made_with="Made by stratsynth evaluate. Every figure lies beside this file as CSV and Parquet.",
    )


def kinds_in_words(parent: str, child: str) -> dict[str, str]:
    """Return {kind: words} on the kinds of tables; `parent` and `child` name the two tables."""
    return {
        "H": f"H: pairs of a {parent}'s columns",
        "HP": f"HP: a {parent}'s column by a {child}'s",
        "P2": f"P2: pairs of a {child}'s columns",
        "P3": f"P3: triples of a {child}'s columns",
        "W": f"W: two {child}s of one {parent}",
        "S": f"S: two {child}s of one {parent}, by its size",
        "G": f"G: two {child}s of one {parent}, and its size, by group",
    }


def _tables(found: LinkedEvaluation, words: dict[str, str]) -> Iterator[Section]:
    """Yield a Section for each kind of table within households of a LinkedEvaluation, the worst tables first.

    `words` maps kinds to their description.
    """
    for kind, title in (("W", "Within"), ("S", "By size"), ("G", "By group")):
        own = found.errors[(found.errors["kind"] == kind) & (found.errors["status"] == OK)]
        if len(own):
            own = own.assign(beyond=own["value"] - own["floor"]).sort_values("beyond", ascending=False)
            more = len(own) - MOST
            yield Section(
                kind.lower(),
                title,
                figures=[_errors(words[kind], own.head(MOST), "table")],
                notes=[f"{several(more, 'table')} nearer to the bootstrap are in errors.csv."] if more > 0 else [],
            )


def _errors(title: str, frame: pd.DataFrame, first: str) -> Figure:
    """Return a Figure called `title`, a row a table of a frame: its error, floor and ceiling; `first` is its head."""
    ends = [float(v) for name in ("value", "floor", "ceiling") for v in frame[name] if math.isfinite(v)]
    scale = Axis.over(ends)
    shown: list[Row] = []
    for row in frame.to_dict("records"):
        marks = [
            Mark("this release", row["value"], series=1),
            Mark(FLOOR, row["floor"], series=-1),
            Mark(CEILING, row["ceiling"], series=2),
        ]
        own = [float(row[name]) for name in ("value", "floor", "ceiling")]
        shown.append([row["table"], Points(row["table"], marks, own[0]), *own])
    heads = [
        Column(first, "text"),
        Column("error", "picture", scale),
        Column("this release"),
        Column(FLOOR),
        Column(CEILING),
    ]
    return Figure(
        title,
        table=Table("", heads, shown, most=MOST),
        legend=legend([("this release", 1), (FLOOR, -1), (CEILING, 2)]),
        numbers=Numbers(title, [first, "this release", FLOOR, CEILING], [[r[0], *r[2:]] for r in shown]),
    )


def _queries(found: LinkedEvaluation) -> Section:
    """Return the Section on the queries like PrivPetal's of a LinkedEvaluation: mean errors by number of persons."""
    parent, child = found.linked.names
    frame = found.queries.groupby("persons")[["value", "floor", "ceiling"]].mean().reset_index()
    several_ = {1: f"one {child}", 2: f"two {child}s"}
    frame = frame.assign(table=[several_[int(number)] for number in frame["persons"]])
    text = [
        (
            f"{len(found.queries):,} queries like those of PrivPetal's published code: {parent}s of some sizes and "
            f"kinds that have one {child}, or two different ones, of other kinds. An error is relative to the true "
            f"count, or to 1 % of the {parent}s if that is more. Tables and ranges are not those of the paper: no "
            "figure here compares with a published one."
        )
    ]
    return Section("queries", "Queries", text=text, figures=[_errors("Mean relative errors", frame, "queries with")])


def _shares(shares: pd.DataFrame) -> Section:
    """Return the Section on shares of households of some structure."""
    rows: list[Row] = [
        [
            row["structure"],
            row["of"],
            float(row["real"]),
            float(row["synthetic"]),
            float(row["chance"]),
        ]
        for row in shares.to_dict("records")
    ]
    heads = [
        Column("structure", "text"),
        Column("share of", "text"),
        Column("real", "share"),
        Column("this release", "share"),
        Column("chance", "share"),
    ]
    note = "Chance is the standard deviation of the real share over bootstrap samples of households."
    names = ["structure", "of", "real", "synthetic", "chance"]
    figure = Figure("", table=Table(note, heads, rows), numbers=Numbers("shares", names, rows))
    return Section("shares", "Structures", figures=[figure])
