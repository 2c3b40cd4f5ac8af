"""INTERNAL. Pictures and tables of several reports: heat maps, lists of the worst, points on two axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from stratsynth.report.numbers import Numbers, short
from stratsynth.report.page import Column, Figure, Points, Row, Table
from stratsynth.report.strip import Axis, Mark, legend, tick_text

if TYPE_CHECKING:
    import pandas as pd


def heat(
    title: str,
    note: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Mapping[tuple[str, str], float],
    *,
    corner: str,
    item: str,
    codes: tuple[str, Sequence[tuple[str, str]]] | None = None,
) -> Figure:
    """Return a Figure, title and note above: a heat map of `values`, numbers by (row, column), darker where larger.

    A dash where unknown. `rows` and `columns` are their names, `corner` heads the rows, `item` names the columns in the
    files, and `codes`, a pair of a title and pairs (name, meaning), explains the columns' names.
    """
    known = [value for value in values.values() if math.isfinite(value)]
    most = max(known, default=0.0)
    table = Table(
        "A dash: not estimable. Press a heading to sort; on a narrow screen numbers are shown by colour alone, and "
        "stand in the files.",
        [Column(corner, "text"), *(Column(name, "shade", Axis(0, most)) for name in columns)],
        [[row, *(values.get((row, column)) for column in columns)] for row in rows],
    )
    shades = Markup("").join(Markup('<i class="h{}"></i>').format(shade) for shade in range(9))
    scale = Markup('<p class="shades">0 <span aria-hidden="true">{}</span> {}</p>').format(shades, short(most))
    numbers = [[row, column, value] for (row, column), value in values.items()]
    said = Numbers(title, [corner, item, "error"], numbers)
    return Figure(title, note, table, legend=scale, numbers=said, codes=codes)


def ranked(title: str, note: str, rows: Sequence[Sequence[str | float]], columns: Sequence[str], value: str) -> Figure:
    """Return a Figure, title and note above: a list of `rows`, each words, then a number, the ends of its interval.

    A row is a sequence (words ..., number, low, high). A picture shows them. `columns` head the words, `value` the
    number.
    """
    scale = Axis.over([float(row[-1]) for row in rows] + [float(row[-3]) for row in rows])
    shown: list[Row] = []
    for *words, number, low, high in rows:
        points = Points(
            ", ".join(map(str, words)), [Mark(value, float(number), float(low), float(high), 1)], float(number)
        )
        shown.append([*words, points, number, low, high])
    ends = [Column(end, aside=True) for end in ("low", "high")]
    heads = [*(Column(name, "text") for name in columns), Column("", "picture", scale), Column(value), *ends]
    lines = legend([], note="Lines are 95 % intervals of chance in the rows.")
    table = Table("", heads, shown)
    return Figure(title, note, table, legend=lines, numbers=table.numbers(title))


def listing(
    title: str,
    note: str,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Row],
    caption: str,
    *,
    rest: str = "rows more in the files",
) -> Figure:
    """Return a Figure (title, note, caption) with a plain table of `rows`, lists of values.

    `columns` are (heading, kind) pairs; `rest` are the words for rows that a terminal does not show.
    """
    table = Table(caption, [Column(name, kind) for name, kind in columns], rows, rest=rest)
    return Figure(title, note, table, numbers=table.numbers(title))


def from_frame(
    title: str,
    note: str,
    frame: pd.DataFrame,
    columns: Sequence[tuple[str, str, str]],
    caption: str,
    *,
    most: int | None = None,
) -> Figure:
    """Return a Figure (title, note, caption), a table of a frame's first `most` rows, None for all.

    `columns` are triples (column of the frame, heading, kind).
    """
    rows = [
        [row[name] for name, _, _ in columns]
        for row in frame.head(len(frame) if most is None else most).to_dict("records")
    ]
    return listing(title, note, [(heading, kind) for _, heading, kind in columns], rows, caption)


WIDTH, TALL, LEFT, BOTTOM = 320, 210, 44, 30
"""Width and height of a panel's drawing, and the room at left and bottom for its axes, in pixels."""


class Panel:
    """Drawing with two axes."""

    def __init__(self, x: Axis, y: Axis, *, x_name: str, y_name: str, ticks: Sequence[float] | None = None) -> None:
        """Draw both axes, `x` and `y`, with their names; `ticks` are the numbers below `x`, by default round ones."""
        self._x, self._y = x, y
        self._parts: list[Markup] = []
        right, floor = WIDTH - 6, TALL - BOTTOM
        for tick in y.ticks():
            at = self.y(tick)
            self._parts.append(
                Markup('<line class="gridline" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(LEFT, right, at, at)
                + Markup('<text x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
                    LEFT - 5, at + 4, tick_text(tick)
                )
            )
        for tick in ticks if ticks is not None else x.ticks():
            at = self.x(tick)
            self._parts.append(
                Markup('<line class="tick" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>').format(at, floor, floor + 4)
                + Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                    at, floor + 15, tick_text(tick)
                )
            )
        self._parts.append(
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(right, TALL - 2, x_name)
            + Markup('<text x="{}" y="11">{}</text>').format(LEFT, y_name)
        )

    def x(self, value: float) -> float:
        """Return the place of the number `value` on the horizontal axis, in pixels from the left."""
        return LEFT + self._x.at(value) / 100 * (WIDTH - 6 - LEFT)

    def y(self, value: float) -> float:
        """Return the place of the number `value` on the vertical axis, in pixels from the top.

        Larger ones are higher.
        """
        return TALL - BOTTOM - self._y.at(value) / 100 * (TALL - BOTTOM - 18)

    def line(self, series: int, points: Sequence[tuple[float, float, float, float]]) -> None:
        """Draw a line through `points`, each (x, y, low, high), in the colour of number `series`.

        A band from low to high. Points whose y is not finite are left out.
        """
        there = [p for p in points if math.isfinite(p[1])]
        band = [p for p in there if math.isfinite(p[2]) and math.isfinite(p[3])]
        if len(band) > 1:
            corners = [(p[0], p[3]) for p in band] + [(p[0], p[2]) for p in reversed(band)]
            self._parts.append(Markup('<polygon class="band s{}" points="{}"/>').format(series, self._path(corners)))
        where = self._path([(p[0], p[1]) for p in there])
        self._parts.append(Markup('<polyline class="line s{}" points="{}"/>').format(series, where))

    def points(self, series: int, points: Sequence[tuple[float, float]], radius: float = 4) -> None:
        """Draw a dot of this radius, in pixels, at each finite (x, y) of `points`, in the colour of number `series`."""
        self._parts += [
            Markup('<circle class="dot s{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(
                series, self.x(x), self.y(y), radius
            )
            for x, y in points
            if math.isfinite(x) and math.isfinite(y)
        ]

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        """Return SVG text: the pixel coordinates "x,y" of `points`, (x, y) each, joined by blanks."""
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)

    def drawing(self, title: str, said: str) -> Markup:
        """Return HTML of the drawing, with `title` above, and the text `said` as its description for screen readers."""
        return Markup(
            '<div><h4>{}</h4><svg viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>{}</svg></div>'
        ).format(title, WIDTH, TALL, said, said, Markup("").join(self._parts))


def panels(drawings: Sequence[Markup]) -> Markup:
    """Return HTML of `drawings`, a list of SVG pictures, side by side where there is room."""
    return Markup('<div class="panels">{}</div>').format(Markup("").join(drawings))
