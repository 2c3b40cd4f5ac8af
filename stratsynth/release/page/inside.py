"""Laws of numbers within bins in words, for readers of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.report.numbers import several

if TYPE_CHECKING:
    from stratsynth.certificate import InsideStated

MODEL = "It is a model, made of {}; in groups it is everybody's, and means depend on it."
"""Sentence on every tail."""
COUNTED = "how many there are and not of how large they are"
SUMMED = "how many there are and of what everybody's numbers add up to, each cut off at the declared clip"


def inside_line(each: InsideStated) -> str:
    """Return one text, sentences on an `InsideStated`, the certificate's entry on the law of a column's numbers."""
    return " ".join(_sentences(each))


def _sentences(each: InsideStated) -> list[str]:
    """Return a list of sentences on an `InsideStated`, a certificate's entry: tail, prior, places, rounding."""
    said = []
    if each.slope is not None and each.slopes is not None and each.start is not None:
        low, high = each.slopes
        bounds = f"the schema's {low:g} to {high:g}"
        noisy = "counts of everybody and a noisy sum" if each.summed else "counts of everybody"
        how = (
            f"fitted to noisy {noisy} within {bounds}{_beyond(each.slope, low, high)}"
            if each.fitted
            else f"the middle of {bounds}, as {each.why}"
        )
        said.append(
            f"Of {each.column}, numbers from {each.start:,.6g} on are drawn from a Pareto law of slope "
            f"{each.slope:.2f}, {how}. {MODEL.format(SUMMED if each.summed else COUNTED)}"
        )
        if each.bins > 1:
            said.append(f"Noise hides how they spread over the last {several(each.bins, 'bin')}, drawn as one.")
    else:
        said.append(f"Of {each.column}, numbers are drawn by the declared shape, {each.shape}, within bins.")
    if each.prior:
        tail = "" if each.slope is None else ", those of the tail among them where it has rows there,"
        said.append(f"In {several(each.prior, 'bin')}{tail} they are drawn as the prior's rows have them instead.")
    if each.places:
        said.append(f"In {several(each.places, 'bin')} their mean place in the bin follows noisy sums of everybody.")
    if each.heaps:
        said.append(f"In {several(each.heaps, 'bin')} multiples are drawn as often as noisy numbers have them.")
    if each.rounded:
        said.append("They are multiples of the units that the schema declares (`round`).")
    return said


def _beyond(slope: float, low: float, high: float) -> str:
    """Return words on a fitted `slope` that was cut to the declared bound `low` or `high`; "" for others."""
    return "; the counts would have it smaller" * (slope == low) or "; the counts would have it larger" * (
        slope == high
    )
