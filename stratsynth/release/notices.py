"""Notices for readers before they use a release, a sentence or two each: in the certificate and printed first.

Every notice follows from public facts and paid answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stratsynth.release.coverage import Coverage, source_of_unmeasured, unmeasured_line
from stratsynth.release.declared import DECLARED_SIZE, SHARE, Comparison, MeasuredCount
from stratsynth.release.equivalence import AGREES, DIFFERS, UNDECIDED, EquivalenceTest
from stratsynth.report.numbers import several, short

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate, InsideStated
    from stratsynth.mechanisms import Prepared
    from stratsynth.release.first import FirstAnswer


CHECK = "run `stratsynth schema check`, which counts the values that the schema rejects"
NAMED = 5
"""Largest number of groups that a notice names."""
START = "these groups start as they would without it, or from the model of everybody where there is one"
"""Start of groups that a prior lacks."""
UNCOMPARED = (
    "were compared with nothing: no group was counted, so that shares which are wrong, or which were counted in these "
    "very rows, would not be noticed"
)
"""Notice about shares that rows are drawn by without strata."""
REMEDY = (
    "Before it is published, rows by the measured sizes cost nothing more: `stratsynth weights measured` makes such a "
    'release of this one, and [release] groups = "measured" has a fit make them.'
)
"""Remedy for rows that follow shares which the measurements contradict."""


def notices(
    prepared: Prepared,
    found: Sequence[Comparison],
    margin: float,
    known: Coverage | None,
    *,
    close: bool,
    first: FirstAnswer | None = None,
) -> list[dict[str, str]]:
    """Return a list of dicts {"kind", "text"}, the notices of a fit's certificate.

    Args:
        prepared: The fit.
        found: Each a `Comparison` of declared numbers of records with measured ones.
        margin: Relative difference that counts as none.
        known: The `Coverage` of columns by noisy tables; None without tables.
        close: True if declared shares fit the noisy totals too well.
        first: The `FirstAnswer`; None without a first question.
    """
    most = prepared.public.schema.row_weight.most if prepared.public.schema.row_weight.column is not None else None
    said = compared(found, margin, most)
    if known is not None and known.unmeasured:
        said.append({"kind": "unmeasured", "text": unmeasured_line(known.unmeasured, source_of_unmeasured(prepared))})
    if first is not None and (first.too_few or first.causes):
        kind = "nearly_empty" if first.nearly_empty else "few_usable" if first.too_few else "values_outside"
        said.append({"kind": kind, "text": f"first question: {first.measured}"})
    if close:
        source = "" if prepared.strata is None else prepared.strata.weights.citation
        said.append({"kind": "shares_too_close", "text": _close(source)})
    if prepared.strata is None and prepared.drawn is not None:
        said.append({"kind": "shares_not_compared", "text": f"the shares of {prepared.drawn.title} {UNCOMPARED}."})
    if prepared.lacking:
        said.append({"kind": "prior_groups", "text": f"the prior has no rows of {named(prepared.lacking)}: {START}."})
    return [{"kind": "public_columns", "text": text} for text in open_columns(prepared.budget.public)] + said


def gap_notices(gaps: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a list of dicts {"kind": "gap", "text": ...}, for each of `gaps` missed, or perhaps over twice wanted.

    Each of `gaps` is a mapping with `wanted`, `status`, `low`, `high`, `level` and perhaps `stratum`.
    """
    said = []
    for gap in gaps:
        within = f" in {gap['stratum']}" if gap.get("stratum") else ""
        where = f"among the private rows it is from {gap['low']:.3f} to {gap['high']:.3f}, at level {gap['level']:g}"
        if gap["status"] == "missed":
            said.append(f"the wanted gap of {gap['wanted']:g}{within} is missed: {where}.")
        elif gap["status"] != "met" and gap["high"] > 2 * gap["wanted"]:
            said.append(
                f"the gap{within} may be over twice the wanted {gap['wanted']:g}: {where}. More records, a larger "
                "epsilon or fewer groups make its noise smaller."
            )
    return [{"kind": "gap", "text": text} for text in said]


def compared(found: Sequence[Comparison], margin: float, cut: int | None) -> list[dict[str, str]]:
    """Return a list of dicts {"kind", "text"} on declared and measured numbers: the gravest on everybody, on shares.

    Args:
        found: The comparisons of a release.
        margin: The relative difference that counts as none.
        cut: The largest weight of a row, where rows count by a column.
    """
    everybody = [c for c in found if c.what == DECLARED_SIZE]
    weights = "" if cut is None else f"; or weights are cut at {cut:,}, which counts them too"
    said = [{"kind": "declared_size", "text": text} for c in everybody for text in _size(c, weights)]
    if any(is_nothing(c) for c in everybody):
        said[0]["kind"] = "empty"
        return said
    groups = [c for c in found if c.what == SHARE]
    quantile = EquivalenceTest(margin, len(groups)).quantile
    apart = [c for c in groups if c.verdict == DIFFERS and _beyond_sampling(c, quantile, cut or 1)]
    if apart and all(c.rows in (None, c.share) for c in groups):  # else the rows follow the measured sizes
        said.append({"kind": "declared_shares", "text": _shares(apart, groups, margin)})
    return said


def _beyond_sampling(c: Comparison, quantile: float, most: int) -> bool:
    """True if measured and declared number in `c`, a comparison, differ by over `quantile` deviations.

    They are those of noise and of sampling weights up to `most`. Drawn at random from a population with the declared
    shares, its total of weights up to `most` would vary by `most` times the declared number at most.
    """
    away, declared = c.measured - (c.declared or 0.0), c.declared or 0.0
    own = away / c.z if c.z else c.noise_sd
    return abs(away) > quantile * math.hypot(own, math.sqrt(most * declared))


def is_nothing(c: Comparison) -> bool:
    """True if noise alone would give the measured number in everybody's `Comparison`, and not the declared one."""
    least = max(3 * c.noise_sd, 1.0)
    return c.measured < least and (c.declared is None or not c.measured + least > c.declared > least)


def named(groups: Sequence[str]) -> str:
    """Return text: the first NAMED of the groups' names joined by commas, then "and N more groups" if need be."""
    more = f" and {len(groups) - NAMED} more groups" if len(groups) > NAMED else ""
    return f"{', '.join(groups[:NAMED])}{more}"


def open_columns(names: Sequence[str]) -> Iterator[str]:
    """Yield the text of the notice that the public columns `names` are not protected; nothing if there are none."""
    if names:
        yield (
            f"NOT PROTECTED: the columns {', '.join(names)}, and the number of records. The release may show them as "
            "they are. The guarantee is about the values of the other columns, for whoever knows these."
        )


def measured_line(certificate: Certificate) -> str:
    """Return a certificate's declared and measured numbers of records as one line; "" if nothing was compared."""
    found = certificate.declared_and_measured  # none in 0.1.0
    everybody = [c for c in found if c.what == DECLARED_SIZE]
    if not everybody:
        return ""
    first, groups = everybody[0], [c for c in found if c.what == SHARE]
    declared = "no size was declared" if first.declared is None else f"declared {first.declared:,.0f}"
    if certificate.agreement is None:  # in older versions the words rested on a tolerance that nothing stated
        return f"{declared}; measured {MeasuredCount(first.measured, first.noise_sd)}, in 95 of 100 cases"
    margin, level = 100 * certificate.agreement.margin, 100 * certificate.agreement.level
    size = {
        AGREES: f", which agrees within {margin:g} %",
        DIFFERS: f", which differs by more than {margin:g} %",
        UNDECIDED: f"; whether they agree within {margin:g} % is not to be told",
    }.get(first.verdict, "")
    apart = "" if first.difference is None else f": {percents(first.difference, first.low, first.high, first.z)}"
    number = Counter(c.verdict for c in groups)
    parts = (
        f"; of {several(len(groups), 'group')} {number[AGREES]} agree with their declared shares within {margin:g} %, "
        f"{number[DIFFERS]} differ by more, and of {number[UNDECIDED]} it is not to be told"
        if groups
        else ""
    )
    holds = f"; intervals and verdicts all hold at once in {level:g} of 100 cases" if size or parts else ""
    return f"{declared}; measured {records(first.measured)} (noise {short(first.noise_sd)}){apart}{size}{parts}{holds}"


def records(number: float) -> str:
    """Return text: a noisy number of records, rounded, with commas; "0" for one below 0."""
    return f"{max(number, 0.0):,.0f}"


def percents(difference: float | None, low: float | None, high: float | None, z: float | None) -> str:
    """Return text: a relative difference in per cent, its interval (`low`, `high`, of 1), `z` standard deviations.

    Interval and z are left out if None; a dash for no difference.
    """
    if difference is None:
        return "–"
    inside = "" if low is None or high is None else f", from {signed(low)} to {signed(high)}"
    deviations = "" if z is None else f"; {short(abs(z))} standard deviations"
    return f"{signed(difference)} %{inside}{deviations}"


def signed(part: float) -> str:
    """Return text: `part` of 1 in per cent with sign and three significant digits, without the sign of per cent."""
    return f"{'−' if part < 0 else '+'}{short(100 * abs(part))}"


def _size(c: Comparison, cut: str = "") -> Iterator[str]:
    """Yield a sentence on a declared size that the measured one in the comparison `c` contradicts; else nothing.

    `cut` is one more reason, in words, why weighted rows count less than declared.
    """
    declared = "" if c.declared is None else f"declared {c.declared:,.0f}; "
    if is_nothing(c):
        yield (
            f"NOTHING IN IT: {declared}measured {c.estimate}, which noise alone would give. Perhaps the schema rejects "
            f"the rows: {CHECK}; or epsilon is too small for so few people."
        )
    elif c.verdict == DIFFERS and c.difference is not None and c.high is not None and c.low is not None:
        fewer = c.difference < 0
        far = "far " if c.high < -1 / 2 or c.low > 1 else ""
        why = (
            f"Perhaps the schema rejects them: {CHECK}{cut}; or the declared size is wrong."
            if fewer
            else "Perhaps the declared size is wrong, or a person has several rows: then declare `unit` in the schema."
        )
        yield (
            f"{declared}measured {records(c.measured)} ({percents(c.difference, c.low, c.high, c.z)}): {far}"
            f"{'fewer' if fewer else 'more'} people were read than declared. {why}"
        )


def _shares(apart: Sequence[Comparison], groups: Sequence[Comparison], margin: float) -> str:
    """Return a sentence: declared shares of some groups are contradicted by over `margin`.

    `apart` is the list of their `Comparison`s, `groups` that of all groups'.
    """
    first = sorted(apart, key=lambda c: -abs(c.measured - (c.declared or 0.0)))[:NAMED]
    named = "; ".join(
        f"{c.stratum} (declared {records(c.declared or 0.0)}, measured {records(c.measured)}"
        f"{f': {percents(c.difference, c.low, c.high, None)}' if c.difference is not None else ''})"
        for c in first
    )
    more = f"; and {len(apart) - NAMED} more" if len(apart) > NAMED else ""
    rows = any(c.rows is not None for c in groups)
    return (
        f"{'the rows follow' if rows else 'groups are weighed by'} shares that the measurements contradict: "
        f"{len(apart)} of {len(groups)} groups differ from their declared shares by more than {100 * margin:g} %, and "
        "by more than noise and the sampling of the records explain: "
        f"{named}{more}. Perhaps the shares are those of other people, or the schema rejects a group's rows: {CHECK}."
        f"{f' {REMEDY}' if rows else ''}"
    )


def _close(source: str) -> str:
    """Return a sentence: declared shares, cited as `source`, fit the measured groups too well to be public."""
    return (
        f"the declared shares ({source}) fit the measured groups too well to be those of other people: figures that "
        "were counted in these very rows are not public, and this release then discloses them without noise. Use "
        "Weights.private, or declare them as Weights.invariant."
    )


MODEL = "It is a model, made of {}; in groups it is everybody's, and means depend on it."
"""Sentence on every tail."""
COUNTED = "how many there are and not of how large they are"
SUMMED = "how many there are and of what everybody's numbers add up to, each cut off at the declared clip"


def inside_line(each: InsideStated) -> str:
    """Return one text, sentences on the law of one column's numbers in bins: tail, prior, places, rounding.

    `each` is an `InsideStated`, a certificate's entry.
    """
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
    return " ".join(said)


def _beyond(slope: float, low: float, high: float) -> str:
    """Return words on a fitted `slope` that was cut to the declared bound `low` or `high`; "" for others."""
    return "; the counts would have it smaller" * (slope == low) or "; the counts would have it larger" * (
        slope == high
    )
