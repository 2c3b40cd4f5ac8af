"""Chapter that answers questions in the page itself: columns, group, level and statistic from lists.

All answers are worked out when the page is written and lie in it, so it needs no network and no program but the
browser. The most useful ones are there: every column, the measured pairs of columns, for everybody and, where there are
no more than a few hundred, every group.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from stratsynth.answers.ask import tabulated
from stratsynth.answers.squares import Squares
from stratsynth.answers.tables import conditions, of_tables, read_tables
from stratsynth.errors import StratsynthError, UsageError
from stratsynth.progress import phase
from stratsynth.report.page import Figure, Section

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.certificate import Certificate
    from stratsynth.models import Model
    from stratsynth.schema import Schema

MOST = 6_000
"""Largest number of results in a page, about 60 bytes each."""
MOST_SUMMED = 1 << 21
"""Largest product of results and strata: each result is a sum over all strata, which takes long for thousands."""
LEVEL = 0.95
"""Coverage of each interval."""
LARGEST = 400
"""Largest number of cells of a table of two columns that is offered."""


def page_squares(certificate: Certificate, measurements: pa.Table, schema: Schema) -> Squares | None:
    """Return the least squares that all numbers of a page come from; None where no table answers anything.

    Args:
        certificate: The certificate of the release.
        measurements: What measurements.parquet holds.
        schema: All columns.
    """
    if not of_tables(measurements).num_rows:
        return None
    try:
        return Squares(read_tables(schema, certificate, measurements, _no_model))
    except StratsynthError:  # strata that cannot be added up
        return None


def ask(certificate: Certificate, squares: Squares) -> Section | None:
    """Return the Section in which a reader asks `squares`, by a certificate's groups; None if nothing answers."""
    found = _answered_sets(squares, squares.tables.schema, certificate.strata.by)
    if not found:
        return None
    text = [
        (
            "Choose what to ask. Every answer has two intervals that hold in 95 of 100 cases: one for the private "
            "records themselves, which is what privacy cost, and a wider one for a population of which they would be a "
            "simple random sample. How a survey drew them is in neither. Estimates may lie below 0: noise is not cut "
            "off."
        ),
        *conditions(certificate),
    ]
    # out of these data the page's script makes lists to choose from
    box = Markup(
        '<div class="ask" data-asked="{}">'
        '<p class="unscripted">This needs a browser that runs the scripts of a page.</p></div>'
    ).format(json.dumps(found, separators=(",", ":"), ensure_ascii=False))
    note = "Answered within this page; nothing leaves it. More questions: stratsynth query, or Release.query in Python."
    return Section("ask", "Ask", text=text, figures=[Figure("", note, picture=box)])


def _no_model() -> Model:
    raise UsageError("a page asks tables alone.")


def _answered_sets(squares: Squares, schema: Schema, by: Sequence[str]) -> list[dict[str, Any]]:
    """Return dicts (`columns`, `levels`, `answers`) for each column and pair that `squares` answer, grouped by `by`."""
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
            one = list(_asked(squares, schema, columns, [name for name in by if name not in columns]))
            if len(columns) > 1:  # no other answer needs it
                squares.forget(columns)
            size = sum(len(figures) for _, _, figures in one)
            if one and size <= room:
                room -= size
                levels = [", ".join(cell) for cell in itertools.product(*(_named(schema, name) for name in columns))]
                found.append({"columns": " x ".join(columns), "levels": levels, "answers": one})
            done()
    return found


def _named(schema: Schema, name: str) -> list[str]:
    """Return the levels of the column `name` as texts, with the meaning in brackets where the schema has one."""
    labels = schema.column(name).labels
    return [f"{level} ({labels[level]})" if level in labels else level for level in schema.levels(name)]


def _asked(
    squares: Squares, schema: Schema, columns: tuple[str, ...], by: Sequence[str]
) -> Iterator[tuple[str, str, list[list[float]]]]:
    """Yield (statistic, group's name, [estimate, two intervals' ends] of each level) for `columns`, from `squares`.

    Groups are everybody and, by `by`, each crossed level; one with an unknown figure is left out.
    """
    for groups in ((), tuple(by)) if by else ((),):
        named = [
            ", ".join(f"{name} {level}" for name, level in zip(groups, cell, strict=True)) or "everybody"
            for cell in itertools.product(*(schema.levels(name) for name in groups))
        ]
        number = len(named) * schema.cells(columns)
        if number > MOST or number * len(squares.tables.leaves) > MOST_SUMMED:
            continue
        for statistic, answer in zip(("count", "rate"), tabulated(squares, columns, groups, LEVEL), strict=True):
            figures = np.stack(
                [answer.estimate, answer.noise_low, answer.noise_high, answer.low, answer.high], axis=1
            ).reshape(len(named), -1, 5)
            for name, part in zip(named, figures, strict=True):
                if np.isfinite(part).all():
                    yield statistic, name, [[float(f"{value:.5g}") for value in row] for row in part]
