"""What a prior tells a mechanism: public rows as level numbers, each with the number of people that it stands for.

Nothing here comes from private rows. A mechanism gets them in `Public`, and inside a stratum those of that stratum.
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

    from stratsynth.mechanisms.known import Known
    from stratsynth.schema import Schema
    from stratsynth.strata import Stratum

LENT = 300.0
"""How many people a stratum borrows from all others' rows: few beside a group of thousands, most of one of a dozen."""
KIN = 10.0
"""By how much a borrowed row counts more for each column of the strata in which it has the stratum's level."""
MOST_LENT = 3_000
"""From how many rows they are borrowed, evenly spaced among all."""


class PriorSource(ABC):
    """What a fit is given as its prior: it is mapped to the schema when the fit is prepared.

    `Prior` is the only kind: what it reads is compared with the private table, cited, and named in the certificate.
    """

    def __init_subclass__(cls) -> None:
        """No other kind, and none of its own either: their rows would be read without a charge."""
        if (cls.__module__, cls.__bases__) != ("stratsynth.priors.prior", (PriorSource,)):
            raise UsageError(
                "prior: a kind of one's own could read private rows without a charge; make priors by Prior.public, "
                "Prior.release or Prior.tables."
            )

    @abstractmethod
    def found(self, schema: Schema) -> Found:
        """Its rows and tables in the levels of a schema; refuses what has no place there."""


@dataclass(frozen=True, eq=False)
class Found:
    """What a prior comes to in one schema."""

    stated: Mapping[str, Any]
    """What the certificate says of it."""
    digest: str
    """The hash of all that a fit takes from it, and of what is stated: part of a fit's identity."""
    rows: PriorRows | None = None
    """Its rows; None where it has tables alone."""
    tables: tuple[Known, ...] = ()
    """Its published tables."""
    origins: tuple[Any, ...] = field(default=(), repr=False)
    """What all was read from: none of it may be the private table."""


@dataclass(frozen=True, eq=False)
class PriorRows:
    """Public rows in the columns and levels of one schema."""

    schema: Schema
    codes: Mapping[str, NDArray[np.integer[Any]]] = field(repr=False)
    """For each column of the schema, the level number of each row."""
    weights: NDArray[np.float64] = field(repr=False)
    """The number of people that each row stands for."""
    stated: Mapping[str, Any]
    """What the certificate says of the rows."""
    digest: str
    """The hash of the rows and of what is stated of them."""
    parent: NDArray[np.intp] | None = field(default=None, repr=False)
    """Of a stratum's rows, the number of each among everybody's."""
    lent: NDArray[np.bool_] | None = field(default=None, repr=False)
    """The rows that stand for what the prior has not: levels, or in a stratum its people, borrowed from other strata.
    None where none do."""

    @property
    def lacking(self) -> bool:
        """Whether the prior has no row of its own here: a fit of this stratum alone then starts from nothing."""
        return self.lent is not None and bool(self.lent.all())

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.weights)

    @property
    def people(self) -> float:
        """The number of people whom the rows stand for: how much a prior can be worth at most."""
        return float(self.weights.sum())

    def within(self, stratum: Stratum, inside: Schema) -> PriorRows:
        """A stratum's own rows with their full weight, and rows of everybody, relabelled, that weigh `LENT` together.

        So a group that the prior hardly knows still has rows to be moved. Of one that it does not know at all the rows
        are `lacking`: only what starts from a model of everybody starts from them.

        Args:
            stratum: The levels that it has.
            inside: The schema that its rows vary in; a merged column has the merged levels alone.
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
            most = weights[borrowed].max()  # of which all are a part, so that nothing overflows; of nobody, each is one
            near = (weights[borrowed] / most if most > 0 else 1.0) * KIN ** kin[lent]
            weights[borrowed] = near * LENT / near.sum()
        codes: dict[str, NDArray[np.integer[Any]]] = {}
        for column in inside.names:
            if column not in places:
                codes[column] = self.codes[column][chosen]
                continue
            found, number = places[column][chosen], inside.size(column)
            found = np.where(found >= 0, found, np.arange(chosen.size) % number)  # of merged levels, each in turn
            codes[column] = found.astype(np.min_scalar_type(number - 1))
        lent_rows = borrowed if self.lent is None else borrowed | self.lent[chosen]
        rows = replace(self, schema=inside, codes=codes, weights=weights, parent=chosen, lent=lent_rows)
        return rows.keeping(~broken(inside, codes)) if codes and inside.rules else rows

    def keeping(self, kept: NDArray[np.bool_]) -> PriorRows:
        """Only these rows; all of them where none would be left."""
        if kept.all() or not kept.any():
            return self
        codes = {name: code[kept] for name, code in self.codes.items()}
        parent = None if self.parent is None else self.parent[kept]
        lent = None if self.lent is None else self.lent[kept]
        return replace(self, codes=codes, weights=self.weights[kept], parent=parent, lent=lent)
