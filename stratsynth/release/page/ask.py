"""Chapter that answers questions in the page itself: columns, group, level and statistic from lists.

All answers are worked out when the page is written and lie in it, so it needs no network and no program but the
browser. The most useful ones are there: every column, the measured pairs of columns, for everybody and, where there are
no more than a few hundred, every group.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from stratsynth.answers.ask import answers, tabulated
from stratsynth.answers.assumed import assumed
from stratsynth.answers.query import Query
from stratsynth.answers.squares import Squares
from stratsynth.answers.tables import conditions
from stratsynth.progress import phase
from stratsynth.report.page import Figure, Section
from stratsynth.schema import Numeric
from stratsynth.schema.temporal import Temporal

if TYPE_CHECKING:
    from stratsynth.answers.intervals import Answer
    from stratsynth.certificate import Certificate
    from stratsynth.schema import Schema

MOST = 6_000
"""Largest number of results in a page, about 60 bytes each."""
MOST_SUMMED = 1 << 21
"""Largest product of results and strata: each result is a sum over all strata, which takes long for thousands."""
LEVEL = 0.95
"""Coverage of each interval."""
WHOLE = 10_000
"""Least number that is rounded to a whole one, which has five digits or more."""
LARGEST = 400
"""Largest number of cells of a table of two columns that is offered."""
PARTS = {"1st decile": 0.1, "lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75, "9th decile": 0.9}
"""Quantiles of numbers, by name."""
QUANTILE_NOTE = "Intervals of quantiles reach to the ends of their bins, and hold at least as often."
MEAN_NOTES = {
    "bounded": "Those of the mean hold wherever numbers are in their bins, and at least as often.",
    "none": "The mean has none: bins leave it too much room, or noise hides it.",
}
BOUNDED_NOTE = (
    "Bounds: some groups have no such table, and from none to all of their measured records may be in each row; the "
    "intervals hold at least as often."
)
ASSUMED_NOTE = (
    "Assumed: some groups have no such table, and are taken to have at most twice their declared records; the "
    "intervals allow for all of these in each row."
)
Asked = tuple[str, str, list[list[float | None]], str]
"""Statistic, name of the group, figures of each level, and note."""


def ask(certificate: Certificate, squares: Squares) -> Section | None:
    """Return the Section in which a reader asks `squares`, by a certificate's groups; None if nothing answers."""
    found = _answered_sets(squares, squares.tables.schema, certificate.strata.by)
    if not found:
        return None
    text = [
        (
            "Choose what to ask. Every answer has two intervals, and each holds in 95 of 100 cases; bounds, named "
            "below a table, at least as often. One is for the private records themselves, which is what privacy cost, "
            "and a wider one for a population of which they would be a simple random sample. How a survey drew them "
            "is in neither. Estimates may lie below 0: noise is not cut off. Intervals of numbers allow for their "
            "bins; where bins would leave too much room, there is none."
        ),
        *_of_linked(certificate),
        *conditions(certificate),
    ]
    # out of these data the page's script makes lists to choose from
    box = Markup(
        '<div class="ask" data-asked="{}">'
        '<p class="unscripted">This needs a browser that runs the scripts of a page.</p></div>'
    ).format(json.dumps(found, separators=(",", ":"), ensure_ascii=False))
    note = "Answered within this page; nothing leaves it. More questions: stratsynth query, or Release.query in Python."
    return Section("ask", "Ask", text=text, figures=[Figure("", note, picture=box)])


def _of_linked(certificate: Certificate) -> list[str]:
    """Return a list of a sentence on a record of two linked tables, by a `Certificate`; [] for one table."""
    unit = certificate.unit
    if isinstance(unit, str) or not unit.tables:
        return []
    parent, child = unit.tables
    return [
        f"A record is a {parent} here, and R_ before a column's name means its first {child}. More: stratsynth query."
    ]


def _answered_sets(squares: Squares, schema: Schema, by: Sequence[str]) -> list[dict[str, Any]]:
    """Return a list of dicts {"columns": a text, "levels", "answers"}, one for each column and measured pair.

    Numeric columns of the schema have one more, whose levels are mean and quantiles. Answers are a list of `Asked`, by
    `squares`, of everybody and of groups of the columns `by`; a dict without any, or too large for the page, is left
    out.
    """
    held = {t.columns for t in squares.tables.everybody}
    for leaf in squares.tables.leaves:
        held |= {t.columns for t in leaf.tables}
    pairs = sorted(
        {tuple(c for c in schema.names if c in pair) for columns in held for pair in itertools.combinations(columns, 2)}
    )
    wanted = [(name,) for name in schema.names] + [pair for pair in pairs if schema.cells(pair) <= LARGEST]
    found, room = [], MOST
    with phase("writing the page", lambda: len(wanted)) as done:
        for columns in wanted:
            groups = [name for name in by if name not in columns]
            levels = [", ".join(cell) for cell in itertools.product(*(_named(schema, name) for name in columns))]
            kinds = [{"columns": " x ".join(columns), "levels": levels, "answers": _asked(squares, columns, groups)}]
            if len(columns) > 1:  # no other answer needs it
                squares.forget(columns)
            elif isinstance(column := schema.column(columns[0]), Numeric) and not isinstance(column, Temporal):
                kinds.append(_of_numbers(squares, columns[0], column, groups))
            for one in kinds:
                size = sum(len(figures) for _, _, figures, _ in one["answers"])
                if one["answers"] and size <= room:
                    room -= size
                    found.append(one)
            done()
    return found


def _named(schema: Schema, name: str) -> list[str]:
    """Return a list of texts, the levels of the column `name`, with the meaning in brackets where there is one.

    That is the label of the schema.
    """
    labels = schema.column(name).labels
    return [f"{level} ({labels[level]})" if level in labels else level for level in schema.levels(name)]


def _asked(squares: Squares, columns: tuple[str, ...], by: Sequence[str]) -> list[Asked]:
    """Return a list of `Asked`, (statistic, group's name, figures, note): counts and rates of the cells of `columns`.

    Figures are a list for each cell, as `_figures` gives. Of everybody and of each group of the columns `by`, answered
    by `squares`; a group with an unknown figure is left out.
    """
    schema, found = squares.tables.schema, []
    for groups, named in _groups(squares, by, schema.cells(columns)):
        for statistic, answer in zip(("count", "rate"), tabulated(squares, columns, groups, LEVEL), strict=True):
            filled, notes = answer, [""] * len(answer.estimate)
            if not groups:  # a group that lacks a table has no bounds of its own
                filled, notes = _with_bounds(squares, Query(columns, statistic=statistic, level=LEVEL), answer)
            for i, name in enumerate(named):
                part = slice(i * schema.cells(columns), (i + 1) * schema.cells(columns))
                rows = _figures(filled.take(part))
                if all(value is not None for row in rows for value in row):
                    note = next((said for said in notes[part] if said), "")
                    found.append((statistic, name, rows, note))
    return found


def _with_bounds(squares: Squares, query: Query, answer: Answer) -> tuple[Answer, list[str]]:
    """Return (`answer` with bounds in cells where strata lack a table, list of a note for each cell, "" elsewhere).

    It is an `Answer` to `query`, a `Query`; the bounds are those of `squares`.
    """
    unknown = ~np.isfinite(answer.estimate) & ~answer.measured
    other = assumed(squares, query) if unknown.any() else None
    if other is None:
        return answer, [""] * len(unknown)
    notes = [ASSUMED_NOTE if not bounded else BOUNDED_NOTE for bounded in other.bounded]
    return answer.where(unknown, other), [note if here else "" for note, here in zip(notes, unknown, strict=True)]


def _of_numbers(squares: Squares, name: str, column: Numeric, by: Sequence[str]) -> dict[str, Any]:
    """Return a dict (`columns`, `levels`, `answers`) on mean and quantiles of the numeric column `name`.

    Of everybody and of each group of the columns `by`, answered by `squares`. Figures that have no interval are None; a
    group without any is left out.
    """
    found, clip = [], column.clip
    cut = clip is not None and clip < column.upper and any(each.column == name for each in squares.tables.sums)
    for groups, named in _groups(squares, by, len(PARTS) * len(column.extents)):
        mean, *parts = answers(
            squares,
            [
                Query([name], {}, groups, "mean", LEVEL),
                *(Query([name], {}, groups, "quantile", LEVEL, part) for part in PARTS.values()),
            ],
        )
        for i, group in enumerate(named):
            one = mean.take(slice(i, i + 1))
            rows = [*_figures(one), *(_figures(part.take(slice(i, i + 1)))[0] for part in parts)]
            if any(value is not None for row in rows for value in row):
                found.append(("number", group, rows, _number_note(one)))
    mean_of = f"mean of min({name}, {clip:,})" if cut else "mean"
    return {"columns": f"{name}, as numbers", "levels": [mean_of, *PARTS], "answers": found}


def _number_note(mean: Answer) -> str:
    """Return the note on mean and quantiles of one group: what their intervals allow for."""
    kind = "none" if not math.isfinite(mean.estimate[0]) else "bounded" if mean.bounded[0] else "measured"
    notes, above = [QUANTILE_NOTE, MEAN_NOTES.get(kind, "")], float(mean.above[0])
    if above > 0:
        notes.append(f"Numbers above the clip raise the mean by 0 to {_rounded(above):,}, in as many cases.")
    return " ".join(filter(None, notes))


def _groups(squares: Squares, by: Sequence[str], size: int) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield ((), ["everybody"]), then (`by` as a tuple, list of the names of its groups), as far as there is room.

    `size` is the number of figures a group; `squares` answer them. Nothing more where there are too many figures.
    """
    schema = squares.tables.schema
    for groups in ((), tuple(by)) if by else ((),):
        named = [
            ", ".join(f"{name} {level}" for name, level in zip(groups, cell, strict=True)) or "everybody"
            for cell in itertools.product(*(schema.levels(name) for name in groups))
        ]
        number = len(named) * size
        if number <= MOST and number * len(squares.tables.leaves) <= MOST_SUMMED:
            yield groups, named


def _figures(answer: Answer) -> list[list[float | None]]:
    """Return a list of lists, one for each cell of `answer`, an `Answer`: estimate, noise_low, noise_high, low, high.

    Numbers are rounded; None if unknown.
    """
    parts = (answer.estimate, answer.noise_low, answer.noise_high, answer.low, answer.high)
    return [[_rounded(value) if math.isfinite(value) else None for value in row] for row in np.stack(parts, axis=1)]


def _rounded(value: float) -> float:
    """Return `value` to five significant digits, and at least to a whole number."""
    return round(value) if abs(value) >= WHOLE else float(f"{value:.5g}")
