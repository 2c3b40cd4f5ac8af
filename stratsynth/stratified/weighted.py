"""Public shares in a fit of all records together: they cost nothing, and rows are drawn by them.

There are no strata: one model is fitted to all records. Public shares are a table that is
known before anything is asked (`Public.known`), so the mechanism measures neither their columns nor the
associations among them. The fitted model is then conditioned on each group, and the groups are mixed by their shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from stratsynth.checks import is_texts
from stratsynth.errors import Unsupported, UsageError, WeightsError
from stratsynth.layout.layout import Layout, lay_out
from stratsynth.mechanisms import Mechanism, Public, as_mechanism, once
from stratsynth.mechanisms.known import Known
from stratsynth.models import Model, Returns, combine
from stratsynth.questions import Program, Question, Split
from stratsynth.strata import within
from stratsynth.strata.groups import Groups
from stratsynth.stratified.wrapper import Around
from stratsynth.weights import Weights
from stratsynth.weights.sources import SHARE_SOURCES

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.schema import Schema

TAKEN = tuple(source.name for source in SHARE_SOURCES if source.known)
"""Sources whose shares are known before anything is asked; exact, unless they are raked from a sample."""
TWICE = "rows are drawn by one table of shares; give one that has all groups, such as Weights.raked of several."
"""Remedy in refusals of shares beside other shares."""


@dataclass(frozen=True)
class Weighted(Around[Any]):
    """A mechanism fitted to all records, with the groups' public shares as known table; rows are drawn by them."""

    name: ClassVar[str] = "weighted"
    mechanism: Mechanism[Any] | str
    """Mechanism that is fitted to all records, or its name."""
    weights: Weights
    """Shares of the groups: public, raked or invariant."""
    by: Sequence[str] = ()
    """Columns whose levels, fully crossed, are the groups; those of the weights if empty."""

    def __post_init__(self) -> None:
        """Refuse shares not known beforehand, and mechanisms with strata or own shares; a name becomes a mechanism."""
        object.__setattr__(self, "mechanism", as_mechanism(self.mechanism, "weighted: "))
        if not is_texts(self.by):
            raise UsageError('weighted: `by` is a list of columns, such as ["SEX", "RAC1P"].')
        object.__setattr__(self, "by", tuple(self.by))
        if not isinstance(self.weights, Weights):
            raise UsageError("weights come from Weights.public(shares, citation=...).")
        if not self.weights.exact:
            found = (
                self.weights.source if self.weights.source not in TAKEN else f"{self.weights.source} ones of a sample"
            )
            raise WeightsError(
                f"weights: without strata, shares are figures that are public already ({', '.join(TAKEN)}), not "
                f"{found}: leave the weights out, and the fit measures the groups with all other columns; or stratify "
                "by the groups."
            )
        if Split in self.inner.needs:
            raise UsageError(f"weights: {self.inner.title} has strata, whose weights are its own; give no others.")
        if isinstance(self.inner, Weighted):
            raise UsageError(f"weights: {self.inner.title}: {TWICE}")
        if not takes_shares(self.inner):
            raise Unsupported(
                f"weights: {self.inner.title} measures what it measures, whatever shares are known; take aim, mst, "
                "gem, fixed or independent, stratify by the groups, or leave the weights out."
            )

    @property
    def inner(self) -> Mechanism[Any]:
        """Mechanism that is fitted to all records: the setting `mechanism`."""
        return cast("Mechanism[Any]", self.mechanism)  # __post_init__ made it one

    @property
    def needs(self) -> frozenset[type[Question]]:
        """Set of the question classes that the inner mechanism may ask."""
        return self.inner.needs

    @property
    def adaptive(self) -> bool:
        """True if the inner mechanism's kinds or prices of questions depend on answers."""
        return self.inner.adaptive

    @property
    def title(self) -> str:
        """Title on pages: `mst, shares by SEX x RAC1P`; without columns of its own, `mst, shares by weights`."""
        return f"{self.inner.title}, shares by {' x '.join(self.by) or 'weights'}"

    @property
    def fitted(self) -> Mechanism[Any]:
        """Mechanism that the certificate describes as fitted: the inner one, of all records."""
        return self.inner

    def relative(self, epsilon: float) -> Weighted:
        """Return a copy in which the inner mechanism's epsilons are fractions of `epsilon`."""
        return replace(self, mechanism=self.inner.relative(epsilon))

    def drawn(self, public: Public, budget: Budget) -> Layout:
        """Return the layout of the groups by whose shares rows are drawn, from public facts, once; budget is unused."""
        return self._layout(public)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the inner mechanism's allotment for the budget on public facts; refuse shares of all columns.

        Unsupported too inside strata, whose shares are not everybody's; UsageError beside other shares that rows are
        drawn by.
        """
        if public.constant:
            raise Unsupported(
                f"weights: the shares of {self.title} are everybody's, and would be taken for those of every stratum; "
                "leave them out inside strata, or stratify by their columns too."
            )
        if any(known.certain for known in public.known):
            raise UsageError(f"weights: {self.title}: {TWICE}")
        by = self._layout(public).by
        if set(by) == set(public.schema.names):
            raise Unsupported("weights: they say all that the schema has; there is nothing left to be fitted.")
        knowing = self._knowing(public)
        if self.inner.drawn(knowing, budget) is not None:
            raise UsageError(f"weights: {self.inner.title} draws its rows by shares of its own. {TWICE}")
        return self.inner.price(knowing, budget)

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Model]:
        """Return a program that fits the inner mechanism to everybody, for the allotment, by `rng`: a model by shares.

        The groups' shares, public facts, are a table that the mechanism knows.
        """
        model = yield from self.inner.steps(self._knowing(public), allot, rng)
        return drawn_by(public.schema, self._layout(public), model.table_model().conditioned)

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Return a program of the inner mechanism's rehearsal for the allotment by `rng`, public shares being known."""
        yield from self.inner.rehearsal(self._knowing(public), allot, rng)

    @once
    def _layout(self, public: Public) -> Layout:
        schema = public.schema
        by = tuple(self.by) or self.weights.given.columns(schema.names)
        if not by:
            raise WeightsError("weights: their table has no column of the schema.")
        return lay_out(schema, by, Groups(), self.weights, None, public.size, 1.0)

    @once
    def _knowing(self, public: Public) -> Public:
        return replace(public, known=(*public.known, *known_shares(public.schema, self._layout(public))))


def takes_shares(mechanism: Mechanism[Any]) -> bool:
    """True if a mechanism can be fitted to all records and drawn by public shares; not if it has shares of its own."""
    own = Split in mechanism.needs or isinstance(mechanism, Weighted)
    return mechanism.returns == Returns.ROWS and mechanism.takes_known and not own


def known_shares(schema: Schema, layout: Layout) -> tuple[Known, ...]:
    """Return a tuple of one `Known` table of the layout's shares, by `schema`; () if levels are merged or uncertain.

    Shares of a sample are uncertain, and so are shares raked from one.
    """
    import numpy as np

    if not layout.weights.exact or any(stratum.is_merge for stratum in layout.strata):
        return ()
    clique = tuple(name for name in schema.names if name in layout.by)
    shares = np.zeros(schema.shape(clique))
    for stratum, share in layout.shares.items():
        numbers = stratum.codes(schema)
        shares[tuple(numbers[name][0] for name in clique)] = share
    return (Known(clique, shares, certain=True),)


def drawn_by(schema: Schema, layout: Layout, given: Callable[[Schema, Mapping[str, Sequence[int]]], Model]) -> Model:
    """Return a model that draws the layout's groups by shares; the function `given` makes each group's own.

    Its arguments are the schema inside the group and {column: list of its level numbers}.
    """
    parts = {stratum: given(within(schema, (stratum,)), stratum.codes(schema)) for stratum in layout.strata}
    return combine(schema, parts, layout.resolved)
