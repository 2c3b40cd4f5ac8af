"""Shares from noisy counts of the confidential rows themselves, paid from the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.checks import number
from stratsynth.errors import WeightsError
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, impossible
from stratsynth.weights.simplex import nearest
from stratsynth.weights.source import Basis, Key, Resolved, ShareSource, even, is_weights

if TYPE_CHECKING:
    from stratsynth.questions import NoisyTable
    from stratsynth.weights.sources import Place, Weights


@dataclass(frozen=True)
class PlannedShares(Basis):
    """Counts to be asked in the fit, with public shares for planning."""

    digested_as: ClassVar[str] = "Asked"
    """Name of the class in the identities of fits that versions up to 0.3.0 began."""
    share: float
    """Part of the budget that the counts may cost."""
    prior: Weights | None
    """Public shares for plans; even shares if None."""

    @property
    def origins(self) -> tuple[Any, ...]:
        """Tuple of files, frames and tables that the prior was read from; empty without a prior."""
        return () if self.prior is None else self.prior.given.origins

    @property
    def parts(self) -> tuple[Weights, ...]:
        """Tuple of the prior's `Weights`; empty without a prior."""
        return () if self.prior is None else (self.prior,)

    @property
    def asked(self) -> float:
        """Part of the budget, between 0 and 1, that the counts cost."""
        return self.share

    @property
    def informative(self) -> bool:
        """True if there is a prior, whose shares are known before anything is asked."""
        return self.prior is not None

    def columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """Return `by` itself as a tuple: the counts can be asked of any columns."""
        return tuple(by)

    def resolve(self, strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
        """Return the `Resolved` shares of `strata` to plan with: of the public prior, by the schema, else equal."""
        if self.prior is not None:
            return self.prior.resolve(strata, schema)
        return even(strata, schema)


def counted(table: NoisyTable, strata: Sequence[Stratum], schema: Schema) -> tuple[Resolved, float]:
    """Return (`Resolved` shares of `strata`, noisy total), by the noisy `table` of their columns; total at least 0.0.

    Strata that the schema's rules forbid have share and noise 0, and are not in the total. `noise` is the standard
    deviation of a stratum's count before the projection to nonnegative counts, divided by the total; without a positive
    total, shares are even, as uncertain as a sample of one.
    """
    import numpy as np

    values = table.values.astype(np.float64)
    codes = [[[schema.index(c, level) for level in s.levels[c]] for c in table.clique] for s in strata]
    forbidden = impossible(schema, strata)
    possible = [s for s in strata if s not in forbidden]
    # Sum the noisy cells of each possible stratum; sigma sqrt(cells) is the scale of its noise.
    noisy = np.array([values[np.ix_(*code)].sum() for code, s in zip(codes, strata, strict=True) if s not in forbidden])
    total = float(noisy.sum())
    if not total > 0:
        return replace(even(strata, schema), sampled=1.0, of_rows=True), 0.0
    found = nearest(noisy, total) / total
    shares = dict(zip(possible, (found / found.sum()).tolist(), strict=True))
    noise = {s: table.sigma * math.sqrt(s.size) / total for s in possible}
    nothing = dict.fromkeys(strata, 0.0)
    return Resolved(nothing | shares, noise=nothing | noise, of_rows=True), total


class Private(ShareSource):
    """Shares from noisy counts of the confidential rows, asked of all records before the split."""

    name: ClassVar[str] = "private"
    words: ClassVar[str] = "estimated from the data with noise, and paid for"
    keys: ClassVar[Mapping[str, Key]] = {
        "share": Key(float, "the part of the budget that the counts of groups may cost, such as 0.1", needed=True),
        "prior": Key(
            Mapping, "a table of public weights, with path and citation, by which plans and rules for small groups go"
        ),
    }
    countable: ClassVar[bool] = True
    published: ClassVar[bool] = False

    def of(self, *, share: float, prior: Weights | None = None) -> Weights:
        """Return weights that cost `share` of the budget; `prior` are public weights to plan with, None for even ones.

        WeightsError unless the share is in (0, 1), and for a prior that is private itself.
        """
        hint = " (a part of the budget)"
        number("weights: `share` of private weights", share, above=0, below=1, hint=hint, error=WeightsError)
        if prior is not None and (not is_weights(prior) or prior.asked):
            raise WeightsError("weights: the prior of private weights is public weights, as of another year.")
        unprotected = () if prior is None else prior.unprotected
        cited = f"noisy counts of these data, for {share:g} of the budget"
        return self.made(cited, PlannedShares(float(share), prior), unprotected)

    def read(self, section: Mapping[str, Any], place: Place) -> Weights:
        """Return `Weights` from `share` and perhaps `prior`, a mapping, of a recipe's `section`, a mapping.

        `place` reads the latter.
        """
        prior = section.get("prior")
        return self.of(share=section["share"], prior=None if prior is None else place.nested(prior, "prior"))

    def stated(self, weights: Weights) -> dict[str, Any]:
        """Return a dict for the certificate on these weights: "share" of the budget, "prior", a dict on it or None."""
        (prior,) = weights.given.parts or (None,)
        return {"share": weights.asked, "prior": None if prior is None else prior.describe()}
