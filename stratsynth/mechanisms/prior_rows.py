"""Public rows of a prior for a mechanism: codes, and the number of people that each row stands for.

Nothing here comes from private rows. A mechanism gets them in `Public`; inside a stratum it gets the stratum's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stratsynth.errors import UsageError
from stratsynth.models.rules import broken

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.data.sources import Source
    from stratsynth.mechanisms.known import Known
    from stratsynth.schema import Schema
    from stratsynth.strata import Stratum

LENT = 300.0
"""Total weight, in people, of the rows that a stratum borrows from others: little beside a group of thousands, most of
one of a dozen."""
KIN = 10.0
"""Factor of a borrowed row's weight for each column of the strata in which it has the stratum's level."""
MOST_LENT = 3_000
"""Largest number of borrowed rows, evenly spaced among all."""


class PriorSource(ABC):
    """Base of priors as a fit is given them: mapped to the schema when the fit is prepared.

    `Prior` is the only kind: its data are compared with the private table, cited, and named in the certificate.
    """

    def __init_subclass__(cls) -> None:
        """Refuse any other kind: its rows could be read without a charge and without a check."""
        if (cls.__module__, cls.__bases__) != ("stratsynth.priors.prior", (PriorSource,)):
            raise UsageError(
                "prior: a kind of one's own could read private rows without a charge; make priors by Prior.public, "
                "Prior.release or Prior.tables."
            )

    @abstractmethod
    def in_schema(self, schema: Schema) -> MappedPrior:
        """Return a `MappedPrior`: the prior's rows and tables in a schema's columns and levels.

        UsageError for rows or tables that have no place there.
        """


@dataclass(frozen=True, eq=False)
class MappedPrior:
    """The content of a prior in one schema."""

    stated: Mapping[str, Any]
    """Section of the certificate about it."""
    digest: str
    """Hash of all that a fit takes from it, and of `stated`: part of a fit's identity."""
    rows: PriorRows | None = None
    """Rows; None if it has tables alone."""
    tables: tuple[Known, ...] = ()
    """Published tables."""
    origins: tuple[Any, ...] = field(default=(), repr=False)
    """Files, frames and tables that it was read from: none may be the private table."""
    translated: tuple[Source, ...] = field(default=(), repr=False)
    """Source of its rows with the schema's names and values, where they had others."""


@dataclass(frozen=True, eq=False)
class PriorRows:
    """Public rows in the columns and levels of one schema."""

    schema: Schema
    codes: Mapping[str, NDArray[np.integer[Any]]] = field(repr=False)
    """Code of each row, by column of the schema."""
    weights: NDArray[np.float64] = field(repr=False)
    """Number of people that each row stands for."""
    stated: Mapping[str, Any]
    """Section of the certificate about the rows."""
    digest: str
    """Hash of the rows and of `stated`."""
    densities: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)
    """Weights of the places of each bin among the rows' numbers, of columns that are drawn by them."""
    parent: NDArray[np.intp] | None = field(default=None, repr=False)
    """Index of each row among those of all records; None outside strata."""
    lent: NDArray[np.bool_] | None = field(default=None, repr=False)
    """True for rows that stand for what the prior lacks: levels, or in a stratum its people, borrowed from other
    strata. None if there are none."""

    @property
    def lacking(self) -> bool:
        """True if the prior has no row of its own here, so that a fit of this stratum alone starts from nothing."""
        return self.lent is not None and bool(self.lent.all())

    @property
    def n(self) -> int:
        """Number of rows of the prior, lent ones included."""
        return len(self.weights)

    @property
    def people(self) -> float:
        """Number of people that the rows stand for: the largest sample that the prior can be worth."""
        return float(self.weights.sum())

    def within(self, stratum: Stratum, inside: Schema) -> PriorRows:
        """Return `PriorRows`: a stratum's own with their weights, and others' relabelled, of weight `LENT` together.

        A group that the prior hardly has then still has rows to be reweighted. If it has none at all, the rows
        are `lacking`: only a fit that starts from a model of all records starts from them.

        Args:
            stratum: The `Stratum`.
            inside: The schema of the stratum; a merged column has the merged levels alone.
        """
        import numpy as np

        kin, places = np.zeros(self.n, dtype=np.int64), {}
        for column, levels in stratum.items:
            place = np.full(self.schema.size(column), -1)
            place[[self.schema.index(column, level) for level in levels]] = np.arange(len(levels))
            places[column] = place[self.codes[column]]
            kin += places[column] >= 0
        mine = kin == len(places)
        lent = np.flatnonzero(~mine)
        lent = lent[:: max(1, -(-lent.size // MOST_LENT))]
        chosen = np.concatenate([np.flatnonzero(mine), lent])
        weights = self.weights[chosen]
        borrowed = np.arange(chosen.size) >= chosen.size - lent.size
        if borrowed.any():
            most = weights[borrowed].max()  # relative to the largest, against overflow; 1 each if all are 0
            near = (weights[borrowed] / most if most > 0 else 1.0) * KIN ** kin[lent]
            weights[borrowed] = near * LENT / near.sum()
        codes: dict[str, NDArray[np.integer[Any]]] = {}
        for column in inside.names:
            if column not in places:
                codes[column] = self.codes[column][chosen]
                continue
            found, number = places[column][chosen], inside.size(column)
            found = np.where(found >= 0, found, np.arange(chosen.size) % number)  # merged levels take turns
            codes[column] = found.astype(np.min_scalar_type(number - 1))
        lent_rows = borrowed if self.lent is None else borrowed | self.lent[chosen]
        rows = replace(self, schema=inside, codes=codes, weights=weights, parent=chosen, lent=lent_rows)
        return rows.keeping(~broken(inside, codes)) if codes and inside.rules else rows

    def keeping(self, kept: NDArray[np.bool_]) -> PriorRows:
        """Return the prior with only the rows at which the mask `kept` is True; unchanged if these are all or none."""
        if kept.all() or not kept.any():
            return self
        codes = {name: code[kept] for name, code in self.codes.items()}
        parent = None if self.parent is None else self.parent[kept]
        lent = None if self.lent is None else self.lent[kept]
        return replace(self, codes=codes, weights=self.weights[kept], parent=parent, lent=lent)
