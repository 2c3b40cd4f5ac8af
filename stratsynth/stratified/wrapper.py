"""Base classes of mechanisms that fit another one, in strata or to all records, and combine by weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from stratsynth.checks import is_texts, quoted_value
from stratsynth.errors import UsageError
from stratsynth.layout.budgets import StratumBudgets
from stratsynth.layout.layout import Layout, lay_out
from stratsynth.mechanisms import Mechanism, Public
from stratsynth.models import Returns
from stratsynth.strata.groups import Groups
from stratsynth.weights import Weights

if TYPE_CHECKING:
    from stratsynth.accounting.budget import Budget

R = TypeVar("R")


class Around(Mechanism[R]):
    """A mechanism around another: its returns, arguments and disclosures follow from the inner one and the weights."""

    weights: Weights

    @property
    @abstractmethod
    def inner(self) -> Mechanism[Any]:
        """Mechanism inside this one: it is fitted, or strata start from it."""

    @property
    def returns(self) -> Returns:
        """Kind of model (rows, estimates, predictions) of the inner mechanism, which this one returns too."""
        return self.inner.returns

    @property
    def unprotected(self) -> tuple[str, ...]:
        """Tuple of names of disclosures without noise, of the weights, then of the inner mechanism, each once."""
        return tuple(dict.fromkeys((*self.weights.unprotected, *self.inner.unprotected)))

    @property
    def takes_row_count(self) -> bool:
        """True if the inner mechanism takes the exact number of rows for public."""
        return self.inner.takes_row_count

    @property
    def takes_prior(self) -> bool:
        """True if the inner mechanism starts from a prior."""
        return self.inner.takes_prior

    @property
    def takes_known(self) -> bool:
        """True if the inner mechanism takes known tables for exact and asks nothing of them."""
        return self.inner.takes_known

    @property
    def takes_linked(self) -> bool:
        """True if the inner mechanism fits two linked tables."""
        return self.inner.takes_linked

    @property
    def public_rows_only(self) -> bool:
        """True if the inner mechanism claims no privacy and is for rows declared public only."""
        return self.inner.public_rows_only


class Groupwise(Around[R]):
    """Base class of mechanisms that make strata: their declaration, and their layout."""

    by: Sequence[str]
    groups: Groups
    budgets: StratumBudgets | None

    @property
    @abstractmethod
    def only_strata(self) -> bool:
        """True if questions go to single strata alone: none to all records, none within a stratum's strata."""

    def check_groups(self) -> None:
        """Raise UsageError for `by` that is no list of texts, or parts of another class; keep `by` as a tuple."""
        if isinstance(self.by, str):
            raise UsageError(f'{self.name}: `by` is a list of columns; write ["{self.by}"].')
        if not is_texts(self.by):
            raise UsageError(f'{self.name}: `by` is a list of columns, such as ["SEX"], not {quoted_value(self.by)}.')
        if not isinstance(self.weights, Weights):
            raise UsageError(f"{self.name}: weights come from Weights.public(shares, citation=...).")
        if not isinstance(self.groups, Groups):
            raise UsageError(f"{self.name}: groups are declared by Groups(merge=..., small=...).")
        if self.budgets is not None and not isinstance(self.budgets, StratumBudgets):
            raise UsageError(f"{self.name}: budgets come from StratumBudgets.read(table) or .factors(...).")
        object.__setattr__(self, "by", tuple(self.by))

    @property
    def title(self) -> str:
        """Text for pages: `mst by SEX x RAC1P`, or with its own name first, `pooled mst by SEX x RAC1P`."""
        own = "" if self.name == "stratified" else f"{self.name} "
        return f"{own}{self.inner.title} by {' x '.join(self.by)}"

    def strata(self, public: Public, budget: Budget) -> Layout:
        """Return the layout of all strata under the budget, one object for equal declarations and public facts."""
        layout, key = self._layout(public, budget), (*self._key(budget), "only_strata")
        return public.keep(key, lambda: replace(layout, only_strata=True)) if self.only_strata else layout

    def sized(self, public: Public, size: float, budget: Budget) -> Public:
        """Return the public facts with the noisy `size` if none was declared, and strata unchanged under `budget`."""
        if public.size is not None:
            return public
        sized, layout = replace(public, size=round(size)), self._layout(public, budget)
        sized.keep(self._key(budget), lambda: (layout, self))
        return sized

    def _layout(self, public: Public, budget: Budget) -> Layout:
        declared = self.by, self.groups, self.weights, self.budgets
        return public.keep(
            self._key(budget), lambda: (lay_out(public.schema, *declared, public.size, budget.epsilon), self)
        )[0]

    def _key(self, budget: Budget) -> tuple[Any, ...]:
        return "strata", id(self.by), id(self.groups), id(self.weights), id(self.budgets), budget.epsilon
