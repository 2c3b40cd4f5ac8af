"""Rows by measured sizes: the groups' parts of the rows follow the noisy sizes in place of the declared shares.

Post-processing of paid answers: nothing more is charged. Sizes are those of `Release.query`, by least squares over all
tables; noisy ones below 0 are replaced by `stratsynth.release.declared.rows_by_size`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stratsynth.answers.tables import label_of
from stratsynth.errors import UsageError
from stratsynth.models.mixture import Mixture
from stratsynth.release.declared import MEASURED, SHARE, Comparison, DeclaredFigures, rows_by_size, sizes_of
from stratsynth.release.laws import laws
from stratsynth.release.notices import compared
from stratsynth.release.shown import CertificateRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stratsynth.certificate import Certificate
    from stratsynth.release.release import Release

KINDS = ("declared_size", "empty", "declared_shares")
"""Kinds of notices that comparisons with measured numbers give."""
FIRST = ("public_columns", "exact_totals")
"""Kinds of notices that come before all others: they say what is not protected."""


def measured_rows(release: Release) -> dict[str, float] | None:
    """Return a dict from label of a group to its part, 0 to 1, of the release's rows by measured size.

    None for a release without such.
    """
    stated, model = release.statement, release.model
    if stated.agreement is None or not isinstance(model, Mixture):
        return None
    declared = DeclaredFigures.stated_in(stated, stated.agreement)
    sizes = sizes_of(stated, release.measurements, lambda: model)
    if sizes is None or not declared.shares:
        return None
    labels = {stratum: label_of(stratum, stated) for stratum in model.parts}
    shares = {label: declared.shares.get(label, model.weights[stratum]) for stratum, label in labels.items()}
    return rows_by_size(shares, sizes)


def by_measured_sizes(release: Release) -> Release:
    """Return a copy of a release with rows by the measured sizes of the groups; its certificate says so.

    Raises:
        UsageError: A release without strata, without measured sizes, or whose shares were measured anyway.
    """
    if release.statement.benchmark is not None:
        raise UsageError(
            "groups: the rows of this release follow published totals. Take the release as it was before `benchmark`, "
            "and rake the one by measured sizes."
        )
    rows, model = measured_rows(release), release.model
    if rows is None or not isinstance(model, Mixture):
        raise UsageError(
            "groups: rows follow measured sizes where a release draws rows in strata, with declared shares, and has "
            "counted the groups; this one does not. Older versions did not state what that takes."
        )
    mixed = replace(model, weights={stratum: rows[label_of(stratum, release.statement)] for stratum in model.parts})
    record, inside = _restated(release.certificate, release.statement, rows), dict(release.inside)
    if any(each.summed for each in release.statement.inside):  # rows add up to the sums by other slopes
        found, stated = laws(model.schema, release.statement, release.measurements, lambda: mixed)
        new = {each.column: each.to_dict() for each in stated if each.summed}
        inside |= {name: replace(inside[name], tail=found[name].tail) for name in new}
        kept = [new.get(each.column, each.to_dict()) for each in release.statement.inside]
        record = CertificateRecord({**record, "inside": kept})
    return replace(release, model=mixed, certificate=record, inside=inside)


def _restated(record: CertificateRecord, stated: Certificate, rows: Mapping[str, float]) -> CertificateRecord:
    """Return `record`, a `CertificateRecord`, with the groups' parts of the rows, `rows`, and notices to match.

    `rows` maps groups' labels to parts, 0 to 1; `stated` is the same certificate as an object.
    """
    found = [replace(c, rows=rows.get(c.stratum)) if c.what == SHARE else c for c in Comparison.stated_in(stated)]
    return CertificateRecord(
        {
            **record,
            "weights": {**record["weights"], "groups": MEASURED},
            "declared_and_measured": [c.to_dict() for c in found],
            "notices": renewed(stated, found),
        }
    )


def renewed(stated: Certificate, found: Sequence[Comparison]) -> list[dict[str, str]]:
    """Return a list of dicts {"kind", "text"}: a certificate's notices, with those on declared numbers made anew.

    `stated` is the certificate; the new ones are made from `found`, a list of `Comparison`.
    """
    others = [{"kind": each.kind, "text": each.text} for each in stated.notices if each.kind not in KINDS]
    if stated.agreement is None:
        return others
    weight = stated.row_weight
    said = compared(found, stated.agreement.margin, None if weight is None else weight.max)
    if stated.benchmark is not None:  # rows follow its totals, and no shares
        said = [each for each in said if each["kind"] != "declared_shares"]
    place = next((i for i, each in enumerate(others) if each["kind"] not in FIRST), len(others))
    return [*others[:place], *said, *others[place:]]
