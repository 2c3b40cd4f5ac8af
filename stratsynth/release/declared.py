"""Declared beside measured: noisy numbers of records against the declared size and shares.

Post-processing of answers that were charged: nothing more is read or spent. A reader and the curator can notice that
a fit did not read the people it was meant for, that its rows follow shares which the measurements contradict, or that
shares given as public fit the private rows too well. The test is that of `stratsynth.release.equivalence`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.answers.sizes import SizeEstimates, SizeOfGroup, size_estimates, sizes_by, squares_of
from stratsynth.release.equivalence import CORRECTION, Difference, EquivalenceTest
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.schema.weight import ONE
from stratsynth.weights.simplex import nearest

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.certificate import AgreementStated, Certificate
    from stratsynth.driver.private import Counted
    from stratsynth.mechanisms import Prepared
    from stratsynth.models import Model
    from stratsynth.schema import Schema
    from stratsynth.strata import StratumPath

TOO_CLOSE = 1e-6
"""Probability of independent shares at most this near the noisy totals below which shares are too close."""
NORMAL_95 = NormalDist().inv_cdf(0.975)
DECLARED_SIZE = "declared_size"
SHARE = "share"
STATED = ("what", "stratum", "declared", "measured", "noise_sd", "z", "verdict")
"""Keys of a comparison that a certificate states even where they are null."""
DECLARED, MEASURED = "declared", "measured"
"""Values of `groups`: rows follow declared shares, or measured sizes."""


@dataclass(frozen=True)
class MeasuredCount:
    """A measured number of records, with the standard deviation of its noise."""

    value: float
    noise_sd: float

    def __str__(self) -> str:
        """Return the number with the half-width of a 95 % interval, as "4,985 give or take 12".

        A number that noise may have made of nothing is "fewer than" the interval's upper end.
        """
        noise = NORMAL_95 * self.noise_sd
        if self.value < noise:
            return f"fewer than {max(self.value + noise, 1.0):,.0f}"
        return f"{self.value:,.0f} give or take {noise:,.0f}"


@dataclass(frozen=True)
class Comparison:
    """One declared figure beside the measured one, in records."""

    what: str
    """DECLARED_SIZE, or SHARE: the group's declared share of everybody's measured number."""
    stratum: str
    """Levels of the group joined by `|`; empty for all records."""
    share: float | None
    """Declared share of the group, from 0 to 1; None for all records."""
    declared: float | None
    """Declared number of records; None if no size was declared."""
    measured: float
    """Least squares over all tables that were paid for; noise may bring it below 0."""
    noise_sd: float
    difference: float | None
    """Measured / declared - 1; None where nothing was declared, or 0."""
    low: float | None
    """Lower end of the difference's interval; all intervals of a release hold at once."""
    high: float | None
    z: float | None
    """Measured less declared, in standard deviations of the noise in both and of the declared share."""
    verdict: str
    """One of: agrees, differs, not to be told, not declared."""
    rows: float | None = None
    """Part of the synthetic rows that is drawn of the group; None for all records."""

    @property
    def estimate(self) -> MeasuredCount:
        """`MeasuredCount`: the measured number of records with the standard deviation of its noise."""
        return MeasuredCount(self.measured, self.noise_sd)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a dict for the certificate; of the last fields those that are not None."""
        return {key: value for key, value in asdict(self).items() if key in STATED or value is not None}

    @classmethod
    def stated_in(cls, certificate: Certificate) -> list[Comparison]:
        """Return the list of comparisons of declared with measured numbers in a certificate."""
        return [
            cls(**{f.name: getattr(each, f.name) for f in fields(cls)}) for each in certificate.declared_and_measured
        ]


@dataclass(frozen=True)
class DeclaredFigures:
    """The declared figures of a fit that measurements are compared with."""

    size: float | None
    """Declared number of records; None if none was declared."""
    shares: Mapping[str, float]
    """Declared share by label of the stratum; empty where they are measured themselves, or there are no strata."""
    margin: float
    laplace: bool
    records: float | None
    """Number of records in which the shares were counted; None if unknown."""

    @classmethod
    def of(cls, prepared: Prepared, margin: float, *, laplace: bool) -> DeclaredFigures:
        """Return the `DeclaredFigures` of a prepared fit; `margin` is relative, `laplace` True for heavy tails.

        Private weights declare no shares.
        """
        layout, size = prepared.strata, prepared.public.size
        compared = layout is not None and not layout.weights.asked
        shares = {s.label: share for s, share in layout.shares.items()} if layout is not None and compared else {}
        known = layout.resolved if layout is not None and compared else None
        records = None if known is None else known.effective_records or known.counted_in
        return cls(None if size is None else float(size), shares, margin, laplace, records)

    @classmethod
    def stated_in(cls, certificate: Certificate, stated: AgreementStated) -> DeclaredFigures:
        """Return the `DeclaredFigures` that a certificate compares; its `AgreementStated`, `stated`, has a margin."""
        found = certificate.declared_and_measured
        size = next((c.declared for c in found if c.what == DECLARED_SIZE), None)
        shares = {c.stratum: c.share for c in found if c.what == SHARE and c.share is not None}
        return cls(size, shares, stated.margin, is_laplace(certificate), stated.records)

    def test(self, sizes: SizeEstimates) -> EquivalenceTest:
        """Return the `EquivalenceTest` for as many of these figures as `sizes`, `SizeEstimates`, has measured."""
        number = (self.size is not None) + sum(label in sizes.groups for label in self.shares)
        return EquivalenceTest(self.margin, number, self.laplace, self.records)

    def compared(self, sizes: SizeEstimates) -> list[Comparison]:
        """Return a list of `Comparison` with `sizes`, a `SizeEstimates`: everybody's size, then each measured share.

        Groups are in the shares' order.
        """
        total, test = sizes.total, self.test(sizes)
        found = [
            _comparison(DECLARED_SIZE, "", None, self.size, total, test.size(self.size, total.value, total.variance))
        ]
        for label, share in self.shares.items():
            group = sizes.groups.get(label)
            if group is not None:
                whole = (total.value, total.variance, group.with_total)
                difference = test.share(share, group.value, group.variance, whole)
                found.append(_comparison(SHARE, label, share, share * max(total.value, 0.0), group, difference))
        return found


def is_laplace(certificate: Certificate) -> bool:
    """True if a charge of the certificate is for Laplace noise, whose tails are heavier than normal ones."""
    return any(charge.scale is not None for charge in certificate.charges)


def comparable(schema: Schema) -> bool:
    """True if tables by this schema count as a declared size does: each record once, or by the column of weights."""
    if isinstance(schema, CountedTables):
        return False  # each counted table has another total
    return schema.row_weight.column is not None or schema.row_weight == ONE


def sizes_of(
    certificate: Certificate,
    measurements: pa.Table | None,
    model: Callable[[], Model],
    labels: Sequence[str] = (),
    counted: Sequence[Counted] = (),
) -> SizeEstimates | None:
    """Return `SizeEstimates` by a release's tables, like `Release.query`; else by counts in paid answers; else None.

    Args:
        certificate: The certificate, which names the strata.
        measurements: Every noisy table, as an Arrow table; None for none.
        model: Function that loads the model.
        labels: The strata, to be found in the answers where the tables give no size.
        counted: Noisy numbers of records in paid answers.
    """
    if measurements is not None and measurements.num_rows:
        squares = squares_of(model().schema, certificate, measurements, model)
        found = None if squares is None else sizes_by(squares)
        if found is not None:
            return found
    return _counted_sizes(labels, counted, overlapping=bool(certificate.strata.families))


def rows_by_size(shares: Mapping[str, float], sizes: SizeEstimates) -> dict[str, float]:
    """Return a dict from group's label to its part of the rows, 0 to 1: by `SizeEstimates`, the nearest from 0 on.

    `shares` maps labels to declared shares. Nearest is by least squares among those with the same sum. A group that
    nothing measured keeps its declared share, and so does every group if no size is above 0.
    """
    known = [label for label in shares if label in sizes.groups]
    values = np.array([sizes.groups[label].value for label in known])
    total = float(values.sum()) if known else 0.0
    if not total > 0:
        return dict(shares)
    rest = 1 - math.fsum(share for label, share in shares.items() if label not in sizes.groups)
    parts = rest * nearest(values, total) / total
    return {**shares, **dict(zip(known, parts.tolist(), strict=True))}


def too_close(prepared: Prepared, found: Sequence[Comparison]) -> bool:
    """True if shares a prepared fit declares fit comparisons `found` better than other people's shares could.

    Were the rows independent of the shares, a group's noisy total would miss its share of everybody by the noise and
    by the sampling of the rows: sum of (n_g - N p_g)^2 / (N p_g + sigma_g^2) follows chi-square with one degree less
    than there are groups. Shares that were counted in these very rows leave the noise alone, a far smaller sum.
    """
    layout = prepared.strata
    if layout is None or layout.weights.asked or layout.weights.of_rows:
        return False
    shares = {stratum.label: share for stratum, share in layout.shares.items() if share > 0}
    groups = [c for c in found if c.what == SHARE and c.stratum in shares]
    people = math.fsum(c.measured for c in groups)
    if len(groups) < 2 or not people > 0:
        return False
    from scipy.special import gammainc

    total = math.fsum(shares[c.stratum] for c in groups)
    expected = [people * shares[c.stratum] / total for c in groups]
    away = math.fsum((c.measured - e) ** 2 / (e + c.noise_sd**2) for c, e in zip(groups, expected, strict=True))
    return bool(gammainc((len(groups) - 1) / 2, away / 2) < TOO_CLOSE)


def agreement(test: EquivalenceTest) -> dict[str, Any]:
    """Return a dict, the certificate's entry `agreement`, on an `EquivalenceTest`: margin, level, records and more."""
    return {
        "margin": test.margin,
        "level": test.level,
        "correction": CORRECTION,
        "statements": test.statements,
        "records": test.records,
    }


def _counted_sizes(labels: Sequence[str], counted: Sequence[Counted], *, overlapping: bool) -> SizeEstimates | None:
    """Return `SizeEstimates` of everybody and the groups `labels` by `counted`, a list of `Counted` in paid answers.

    Each size is a mean weighted by 1 / variance. None if nothing was counted; `overlapping`, a bool, says that groups
    do not add up.
    """
    direct: dict[StratumPath, list[Counted]] = {}
    for one in counted:
        direct.setdefault(one.path, []).append(one)
    means = {path: _mean(several) for path, several in direct.items()}
    alone = {path[0].label: mean for path, mean in means.items() if len(path) == 1}
    named = [] if overlapping else [label for label in labels if label in alone]
    values = np.array([alone[label][0] if label in alone else 0.0 for label in labels])
    variances = np.array([alone[label][1] if label in alone else math.inf for label in labels])
    if not named:  # no group was counted, or groups that overlap do not add up
        labels, values, variances = ["", *labels], np.append(0.0, values), np.append(math.inf, variances)
    return size_estimates(labels, values, variances, means.get(()))


def _mean(ways: Sequence[Counted]) -> tuple[float, float]:
    """Return (mean of independent counts `ways`, each a `Counted`, weighted by 1 / variance, its variance).

    If one of the counts is exact, return it with variance 0.
    """
    exact = [way.records for way in ways if not way.noise_sd > 0]
    if exact:
        return exact[0], 0.0
    weights = [way.noise_sd**-2 for way in ways]
    total = math.fsum(weights)
    return math.fsum(w * way.records for w, way in zip(weights, ways, strict=True)) / total, 1 / total


def _comparison(
    what: str, label: str, share: float | None, declared: float | None, size: SizeOfGroup, found: Difference
) -> Comparison:
    """Return the Comparison `what` of group `label`: a `SizeOfGroup` beside `share` and `declared`, and `found`.

    `found` is their Difference.
    """
    return Comparison(
        what,
        label,
        share,
        declared,
        size.value,
        size.noise_sd,
        found.value,
        found.low,
        found.high,
        found.z,
        found.verdict,
    )
