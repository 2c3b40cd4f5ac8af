"""Page on the sensitivity of results to the weights: a row for each result, the most delicate first."""

from __future__ import annotations

from collections.abc import Sequence

from stratsynth.release.equivalence import DIFFERS
from stratsynth.release.notices import named as listed_groups
from stratsynth.release.notices import signed
from stratsynth.release.sensitivity import DRAWN, Result, WeightSensitivity
from stratsynth.report.page import Column, Figure, Page, Section, Table, Value


def sensitivity_page(found: WeightSensitivity, *, every: bool = False) -> Page:
    """Return a Page of a weight sensitivity `found`, a row for each result, the most delicate first.

    A column's levels are shown by the most delicate one, with `every` all.
    """
    points = f"{100 * found.threshold:g}"
    shown = sorted(found.results if every else _most_delicate(found.results), key=lambda result: result.first)
    band = ["band"] if found.intervals else []
    known = ["by measured sizes"] if any(r.measured is not None for r in shown) else []
    heads = [
        "result",
        "value",
        *known,
        *band,
        "group",
        "its share",
        "off by",
        "moved if below",
        "or above",
        "all off by",
    ]
    columns = [Column(name, "text" if name in ("result", "group") else "number") for name in heads]
    table = Table("", columns, [_row(result, known=bool(known), band=bool(band)) for result in shown], most=len(shown))
    lead = [
        *([_sentence(shown[0], points)] if shown else []),
        *([_measured(found, points)] if known else []),
        f"A mean has moved when it is more than {points} % of itself away, a share when more than {points} points.",
        "Only overall results depend on the weights; results within a group do not.",
        *([f"Bands: {found.intervals}."] if found.intervals else []),
    ]
    meaning = (
        "group, off by: the group that moves the result first, and how far off its share must be, as a part of itself, "
        "if the others keep their proportions. all off by: the same if every share is off, in the worst way."
    )
    notes = [meaning]
    if found.drawn:
        notes.append(
            f"The models of {len(found.drawn)} groups do not contain the structural rules: their figures are computed "
            f"from {DRAWN:,} rows drawn of each."
        )
    results = Section("results", "", figures=[Figure("", table=table)], notes=notes)
    return Page("What the weights decide", lead=lead, sections=[results])


def _most_delicate(results: Sequence[Result]) -> list[Result]:
    """Return a list of one `Result` of `results` for each column: that which the smallest error of a share moves."""
    best: dict[str, Result] = {}
    for result in results:
        if result.column not in best or result.first < best[result.column].first:
            best[result.column] = result
    return list(best.values())


def _name(result: Result) -> str:
    return f"mean {result.column}" if result.level is None else f"{result.column}={result.level}"


def _sentence(result: Result, points: str) -> str:
    """Return a sentence: how far off a share has to be to move a result by `points`, the threshold as text."""
    tip = result.tips[0]
    what = f"mean of {result.column}" if result.level is None else f"share of {_name(result)}"
    moves = f"moves by more than {points} {'%' if result.level is None else 'points'}"
    if tip.off is None:
        return f"No single group's share, however wrong, {moves.replace('moves', 'moves any overall result', 1)}."
    off = (_percent(tip.off) or "").replace("> 10x", "ten times itself")
    measured = (
        "" if tip.difference is None else f"; its measured size is {signed(tip.difference)} % off ({tip.verdict})"
    )
    return f"The overall {what} {moves} once the share of {tip.stratum} is off by more than {off}{measured}."


def _measured(found: WeightSensitivity, points: str) -> str:
    """Return sentences on a weight sensitivity `found`: groups whose measured size differs, results that this moves.

    A result is moved by more than `points` per cent, a text.
    """
    if found.follow == "measured":
        return "The rows follow the measured sizes of the groups already."
    there = [r for r in found.results if r.measured is not None]
    away = [r for r in there if abs((r.measured or 0.0) - r.value) > r.moved]
    apart = [tip.stratum for tip in found.results[0].tips if tip.verdict == DIFFERS]
    said = (
        f"The certificate measured other sizes of {listed_groups(apart)} than their shares give, beyond its margin."
        if apart
        else "The certificate measured no group whose share differs beyond its margin."
    )
    return (
        f"{said} By the measured sizes {len(away)} of {len(there)} results are more than {points} % (a share: points) "
        "away from those of the shares."
    )


def _row(result: Result, *, known: bool, band: bool) -> list[Value]:
    """Return a list of the values of a table's row on `result`, a `Result`; with measured sizes if `known`.

    With its interval if `band`.
    """
    tip, mean = result.tips[0], result.level is None

    def spelt(value: float | None) -> str:
        return "–" if value is None else f"{value:.4g}" if mean else f"{100 * value:.3g}"

    return [
        _name(result),
        f"{spelt(result.value)}{'' if mean else ' %'}",
        *([f"{spelt(result.measured)}{'' if mean or result.measured is None else ' %'}"] if known else []),
        *([f"{spelt(result.low)} to {spelt(result.high)}"] if band else []),
        tip.stratum,
        f"{tip.share:.4f}",
        _percent(tip.off),
        *(None if end is None else f"{end:.4f}" for end in (tip.below, tip.above)),
        _percent(result.together),
    ]


def _percent(part: float | None) -> str | None:
    """Return `part`, 1 being all, as text "12 %"; "> 10x" from 10 on, None for None."""
    if part is None:
        return None
    return f"{100 * part:.3g} %" if part < 9.995 else "> 10x"
