"""What mechanisms have in common that fit another one, to strata or to everybody, and combine by weights."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

from stratsynth.mechanisms import Mechanism
from stratsynth.models import Returns
from stratsynth.weights import Weights

R = TypeVar("R")


class Around(Mechanism[R]):
    """A mechanism around another: what it returns, takes and discloses follows from that one and from the weights."""

    weights: Weights

    @property
    @abstractmethod
    def inner(self) -> Mechanism[Any]:
        """What is fitted, or what strata start from."""

    @property
    def returns(self) -> Returns:
        """As what is fitted."""
        return self.inner.returns

    @property
    def unprotected(self) -> tuple[str, ...]:
        """What the weights disclose, and what is fitted does, strata within strata included."""
        return tuple(dict.fromkeys((*self.weights.unprotected, *self.inner.unprotected)))

    @property
    def takes_row_count(self) -> bool:
        """As what is fitted, where that is refused."""
        return self.inner.takes_row_count

    @property
    def takes_prior(self) -> bool:
        """As what is fitted."""
        return self.inner.takes_prior

    @property
    def takes_known(self) -> bool:
        """As what is fitted."""
        return self.inner.takes_known

    @property
    def public_rows_only(self) -> bool:
        """As what is fitted."""
        return self.inner.public_rows_only
