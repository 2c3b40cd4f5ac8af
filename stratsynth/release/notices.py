"""Notices for readers before they use a release, a sentence or two each: in the certificate and printed first.

Every notice follows from public facts and paid answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stratsynth.release.declared import DECLARED_SIZE, SHARE, Comparison, MeasuredCount

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate
    from stratsynth.mechanisms import Prepared

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
FAR = ("far fewer", "far more")


def notices(prepared: Prepared, found: Sequence[Comparison], *, close: bool) -> list[dict[str, str]]:
    """Return {"kind", "text"} of each notice; `close` is True if declared shares fit the noisy totals too well."""
    everybody = [c for c in found if c.what == DECLARED_SIZE]
    weight = prepared.public.schema.row_weight
    cut = "" if weight.column is None else f"; or weights are cut at {weight.most:,}, which counts them too"
    said = [{"kind": "declared_size", "text": text} for c in everybody for text in _size(c, cut)]
    if any(c.verdict == "nothing" for c in everybody):
        said[0]["kind"] = "empty"
    elif far := [c for c in found if c.what == SHARE and c.verdict in FAR]:
        said.append({"kind": "declared_shares", "text": _shares(far, sum(c.what == SHARE for c in found))})
    if close:
        source = "" if prepared.strata is None else prepared.strata.weights.citation
        said.append({"kind": "shares_too_close", "text": _close(source)})
    if prepared.strata is None and prepared.drawn is not None:
        said.append({"kind": "shares_not_compared", "text": f"the shares of {prepared.drawn.title} {UNCOMPARED}."})
    if prepared.lacking:
        said.append({"kind": "prior_groups", "text": f"the prior has no rows of {named(prepared.lacking)}: {START}."})
    return [{"kind": "public_columns", "text": text} for text in open_columns(prepared.budget.public)] + said


def named(groups: Sequence[str]) -> str:
    """Return the first NAMED groups joined by commas, then "and N more groups" if there are more."""
    more = f" and {len(groups) - NAMED} more groups" if len(groups) > NAMED else ""
    return f"{', '.join(groups[:NAMED])}{more}"


def open_columns(names: Sequence[str]) -> Iterator[str]:
    """Yield the text of the notice that the named public columns are not protected; nothing if there are none."""
    if names:
        yield (
            f"NOT PROTECTED: the columns {', '.join(names)}, and the number of records. The release may show them as "
            "they are. The guarantee is about the values of the other columns, for whoever knows these."
        )


def measured_line(certificate: Certificate) -> str:
    """Return declared and measured numbers of records as one line of text; empty if nothing was compared."""
    found = certificate.declared_and_measured  # none in 0.1.0
    everybody = [c for c in found if c.what == DECLARED_SIZE]
    if not everybody:
        return ""
    first, groups = everybody[0], [c for c in found if c.what == SHARE]
    declared = "no size was declared" if first.declared is None else f"declared {first.declared:,.0f}"
    other = [c for c in groups if c.verdict not in ("agrees", "cannot tell")]
    unclear = sum(c.verdict == "cannot tell" for c in groups)
    parts = [f"{len(groups) - len(other) - unclear} of {len(groups)} groups agree with their shares"] * bool(groups)
    parts += [f"{len(other)} differ"] * bool(other) + [f"noise hides {unclear}"] * bool(unclear)
    return f"{declared}; measured {MeasuredCount(first.measured, first.noise_sd)}" + (
        f"; {', '.join(parts)}" if parts else ""
    )


def _size(c: Comparison, cut: str = "") -> Iterator[str]:
    """Yield the text on a declared size that the measured one contradicts; none if they agree.

    `cut` is one more reason why weighted rows count less than declared.
    """
    declared = "" if c.declared is None else f"declared {c.declared:,.0f}; "
    if c.verdict == "nothing":
        yield (
            f"NOTHING IN IT: {declared}measured {c.estimate}, which noise alone would give. Perhaps the schema rejects "
            f"the rows: {CHECK}; or epsilon is too small for so few people."
        )
    elif c.verdict in ("fewer", "far fewer"):
        yield (
            f"{declared}measured {c.estimate}: {c.verdict} people were read than declared. Perhaps the schema rejects "
            f"them: {CHECK}{cut}; or the declared size is wrong."
        )
    elif c.verdict in ("more", "far more"):
        yield (
            f"{declared}measured {c.estimate}: {c.verdict} people were read than declared. Perhaps the declared size "
            "is wrong, or a person has several rows: then declare `unit` in the schema."
        )


def _shares(far: Sequence[Comparison], groups: int) -> str:
    named = "; ".join(f"{c.stratum} (declared {c.declared:,.0f}, measured {c.estimate})" for c in far[:NAMED])
    more = f"; and {len(far) - NAMED} more" if len(far) > NAMED else ""
    return (
        f"{len(far)} of {groups} groups are far from their declared shares: {named}{more}. Perhaps the shares are "
        f"those of other people, or the schema rejects a group's rows: {CHECK}."
    )


def _close(source: str) -> str:
    return (
        f"the declared shares ({source}) fit the measured groups too well to be those of other people: figures that "
        "were counted in these very rows are not public, and this release then discloses them without noise. Use "
        "Weights.private, or declare them as Weights.invariant."
    )
