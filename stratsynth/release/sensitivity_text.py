"""Text about the sensitivity to weights, for a reader."""

from __future__ import annotations

from collections.abc import Sequence

from stratsynth.release.sensitivity import DRAWN, Result, WeightSensitivity


def describe(found: WeightSensitivity, *, every: bool = False) -> str:
    """Return a line for each result, the most delicate first; of a column's levels only the most delicate one.

    `every` shows all levels.
    """
    points = f"{100 * found.threshold:g}"
    shown = sorted(found.results if every else _most_delicate(found.results), key=lambda result: result.first)
    names = [_name(result) for result in shown]
    groups = [result.tips[0].stratum for result in shown]
    width, wide = max(map(len, [*names, "result"])), max(map(len, [*groups, "group"]))
    band = f"{'band':>22} " if found.intervals else ""
    lines = [
        *([f"{_sentence(shown[0], points)}\n"] if shown else []),
        f"A mean has moved when it is more than {points} % of itself away, a share when more than {points} points.",
        "Only overall results depend on the weights; results within a group do not.",
        *([f"Bands: {found.intervals}."] if found.intervals else []),
        "",
        f"{'result':{width}} {'value':>10} {band}{'group':>{wide}}  its share   off by       moved outside  all off by",
        *(_line(result, name, width, wide) for result, name in zip(shown, names, strict=True)),
        "",
        "group, off by: the group that moves the result first, and how far off its share must be, as a part of itself,",
        "if the others keep their proportions. all off by: the same if every share is off, in the worst way.",
    ]
    if found.drawn:
        lines.append(
            f"{len(found.drawn)} groups' models know nothing of the structural rules: their figures are those of "
            f"{DRAWN:,} rows each."
        )
    return "\n".join(lines)


def _most_delicate(results: Sequence[Result]) -> list[Result]:
    best: dict[str, Result] = {}
    for result in results:
        if result.column not in best or result.first < best[result.column].first:
            best[result.column] = result
    return list(best.values())


def _name(result: Result) -> str:
    return f"mean {result.column}" if result.level is None else f"{result.column}={result.level}"


def _sentence(result: Result, points: str) -> str:
    """Return the main finding as a sentence."""
    tip = result.tips[0]
    what = f"mean of {result.column}" if result.level is None else f"share of {_name(result)}"
    moves = f"moves by more than {points} {'%' if result.level is None else 'points'}"
    if tip.off is None:
        return f"No single group's share, however wrong, {moves.replace('moves', 'moves any overall result', 1)}."
    off = _percent(tip.off).replace("> 10x", "ten times itself")
    return f"The overall {what} {moves} once the share of {tip.stratum} is off by more than {off}."


def _line(result: Result, name: str, width: int, wide: int) -> str:
    tip, mean = result.tips[0], result.level is None
    band = ""
    if result.low is not None and result.high is not None:
        ends = f"{_figure(result.low, mean)} to {_figure(result.high, mean)}"
        band = f"{ends:>22} "
    ends = f"{_end(tip.below)} .. {_end(tip.above)}"
    value = f"{_figure(result.value, mean)}{'' if mean else ' %'}"
    return (
        f"{name:{width}} {value:>10} {band}{tip.stratum:>{wide}}  {tip.share:>9.4f}  {_percent(tip.off):>7}  "
        f"{ends:>18}  {_percent(result.together):>10}"
    )


def _figure(value: float, mean: bool) -> str:
    return f"{value:.4g}" if mean else f"{100 * value:.3g}"


def _end(share: float | None) -> str:
    return "-" if share is None else f"{share:.4f}"


def _percent(part: float | None) -> str:
    if part is None:
        return "-"
    return f"{100 * part:.3g} %" if part < 9.995 else "> 10x"
