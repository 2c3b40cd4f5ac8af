"""Pictures one row high: points, intervals and bars on a scale as wide as the cell they stand in.

Positions are percentages, so that a picture fits any screen while its letters keep their size. Colours and sizes
are the style sheet's. Every picture says in words what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from stratsynth.report.numbers import known, short

MOST = 7
"""Number of shapes for series, without the baseline's stroke."""
SHAPES = {
    0: Markup('<circle r="5.5"/>'),
    1: Markup('<rect x="-5" y="-5" width="10" height="10"/>'),
    2: Markup('<path d="M0-6.5 6 4.5H-6Z"/>'),
    3: Markup('<path d="M0-6.5 6.5 0 0 6.5-6.5 0Z"/>'),
    4: Markup('<path d="M-6-4.5H6L0 6.5Z"/>'),
    5: Markup('<circle r="3.5"/>'),
    6: Markup('<path d="M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z"/>'),
    -1: Markup('<path d="M0-9V9" fill="none"/>'),
}
HEIGHT = 26
TINY = 1e-300
"""Smallest span of a scale: dividing by a smaller one overflows, or it rounds to 0."""
EDGE = 2.0
"""Percent of the width that are left free at both ends, for half a point."""


@dataclass(frozen=True)
class Axis:
    """Map from numbers to percent of the width."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def over(cls, values: Sequence[float | None], *, zero: bool = True, log: bool = False) -> Axis:
        """Return an `Axis` over all finite numbers of `values`, and 0 if `zero`; with `log`, all positive ones.

        None is skipped. Without such numbers, it is from 0 to 1, of `log` from 0.1 to 1.
        """
        numbers = [v for v in values if v is not None and math.isfinite(v) and (v > TINY or not log)]
        if not numbers:
            return cls(0.1, 1.0, log) if log else cls(0.0, 1.0)
        low, high = min(numbers), max(numbers)
        if log:
            return cls(low / 1.15, high * 1.15, log)
        low = min(low, 0.0) if zero else low
        high = max(high, 0.0) if zero else high
        return cls(low, high if high - low > TINY else low + 1.0)

    def at(self, value: float) -> float:
        """Return the place of the number `value` in percent of the width, from the left.

        Numbers outside the axis are put at its edge.
        """
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, self.low))
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return EDGE + share * (100 - 2 * EDGE)

    def ticks(self, most: int = 5) -> list[float]:
        """Return a list of about `most` round numbers between the axis's ends, in ascending order."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            found = [m * 10.0**e for e in range(first, last + 1) for m in (1, 2, 5)]
            inside = [t for t in found if self.low <= t <= self.high]
            tens = [t for t in inside if abs(math.log10(t) - round(math.log10(t))) < 1e-9]
            kept = tens if len(tens) > 2 else inside
            return kept[:: max(1, math.ceil(len(kept) / most))]
        span = self.high - self.low
        step = 10.0 ** math.floor(math.log10(span))
        step = next(step * m for m in (0.2, 0.5, 1, 2, 5) if span / (step * m) <= most)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Mark:
    """Point, with its interval if it has one."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    series: int = 0
    """Number of colour and shape; negative for the baseline's stroke."""

    @property
    def bounded(self) -> bool:
        """True if both ends of the interval are finite numbers."""
        return known(self.low) is not None and known(self.high) is not None

    def __str__(self) -> str:
        """Return the mark's name, value and interval as words; the interval only if both ends are known."""
        if known(self.value) is None:
            return f"{self.name} not estimable"
        ends = f" ({short(self.low)} to {short(self.high)})" if self.bounded else ""
        return f"{self.name} {short(self.value)}{ends}"


def strip(scale: Axis, marks: Sequence[Mark], *, joined: bool = True, what: str = "") -> Markup:
    """Return an SVG of `marks`, a list of `Mark` with their intervals, on one line of the axis `scale`.

    If `joined`, a line joins the first two of a series. `what` names it for screen readers.
    """
    there = [mark for mark in marks if known(mark.value) is not None]
    said = "; ".join(map(str, marks)) or "nothing"
    parts = [Markup('<line class="rule" x1="0" x2="100%" y1="13" y2="13"/>')]
    pair = [mark for mark in there if mark.series >= 0][:2]
    if joined and len(pair) == 2:
        parts.append(
            Markup('<line class="join" x1="{:.2f}%" x2="{:.2f}%" y1="13" y2="13"/>').format(
                *(scale.at(mark.value or 0.0) for mark in pair)
            )
        )
    for mark in there:
        if mark.bounded:
            ends = (scale.at(mark.low or 0.0), scale.at(mark.high or 0.0))
            parts.append(
                Markup('<line class="span s{}" x1="{:.2f}%" x2="{:.2f}%" y1="13" y2="13"/>').format(mark.series, *ends)
            )
    parts += [
        Markup('<svg x="{:.2f}%" y="13" overflow="visible"><g class="mark s{}">{}</g></svg>').format(
            scale.at(mark.value or 0.0), mark.series, SHAPES.get(mark.series, SHAPES[mark.series % MOST])
        )
        for mark in sorted(there, key=lambda m: m.series, reverse=True)
    ]
    return picture(f"{what}: {said}" if what else said, parts, HEIGHT)


def bar(scale: Axis, value: float, low: float, high: float, what: str) -> Markup:
    """Return an SVG of a bar from 0 to `value`, on the axis `scale`, and a line from `low` to `high`.

    Below 0 no bar is drawn; `what` names it for screen readers.
    """
    zero = scale.at(max(0.0, scale.low))
    end = scale.at(max(value, 0.0))
    parts = [
        Markup('<rect class="bar" x="{:.2f}%" y="4" width="{:.2f}%" height="10"/>').format(zero, max(end - zero, 0.0)),
        Markup('<line class="noise" x1="{:.2f}%" x2="{:.2f}%" y1="9" y2="9"/>').format(scale.at(low), scale.at(high)),
    ]
    return picture(what, parts, 18)


def axis(scale: Axis, unit: str = "") -> Markup:
    """Return an SVG of the axis `scale`, to stand above pictures: ticks and numbers, each followed by `unit`."""
    parts = []
    for tick in scale.ticks():
        at = scale.at(tick)
        side = "start" if at < 8 else "end" if at > 92 else "middle"
        parts.append(
            Markup('<line class="tick" x1="{0:.2f}%" x2="{0:.2f}%" y1="15" y2="20"/>').format(at)
            + Markup('<text x="{:.2f}%" y="11" text-anchor="{}">{}{}</text>').format(at, side, tick_text(tick), unit)
        )
    return Markup('<svg class="axis" width="100%" height="20" aria-hidden="true">{}</svg>').format(
        Markup("").join(parts)
    )


def picture(said: str, parts: Sequence[Markup], height: int) -> Markup:
    """Return an SVG, `height` pixels high, of `parts`, SVG elements; the text `said` describes it to screen readers."""
    return Markup('<svg width="100%" height="{}" role="img" aria-label="{}"><title>{}</title>{}</svg>').format(
        height, said, said, Markup("").join(parts)
    )


def legend(names: Sequence[tuple[str, int]], *, note: str = "") -> Markup:
    """Return an HTML list of `names`, (name, series number) pairs, each with its series' mark; `note` last, if any."""
    parts = [
        Markup('<li><svg width="18" height="20" aria-hidden="true">{}</svg>{}</li>').format(
            Markup('<svg x="9" y="10" overflow="visible"><g class="mark s{}">{}</g></svg>').format(
                series, SHAPES.get(series, SHAPES[series % MOST])
            ),
            name,
        )
        for name, series in names
    ]
    more = Markup("<li>{}</li>").format(note) if note else ""
    return Markup('<ul class="legend">{}{}</ul>').format(Markup("").join(parts), more)


def tick_text(value: float) -> str:
    """Return the number `value` of an axis as text, thousands as "k" from 10,000."""
    if abs(value) >= 10_000:
        return f"{value / 1000:,.10g}k"
    return f"{value:,.10g}".replace("-", "−")
