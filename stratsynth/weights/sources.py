"""`Weights`: shares of strata with where they come from, and how a recipe's section [weights] says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.errors import RecipeError, WeightsError, nearest
from stratsynth.inputs import check_keys
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, impossible
from stratsynth.weights.holdout import Holdout
from stratsynth.weights.invariant import COUNTS, Invariant
from stratsynth.weights.private import Private
from stratsynth.weights.public import Public
from stratsynth.weights.raking import Raked
from stratsynth.weights.source import Basis, Resolved, ShareSource

if TYPE_CHECKING:
    from stratsynth.data.sources import Data
    from stratsynth.weights.table import Tabular

SHARE_SOURCES: tuple[ShareSource, ...] = (Public(), Raked(), Holdout(), Private(), Invariant())
"""Every source of weights there is."""
_BY_NAME = {source.name: source for source in SHARE_SOURCES}
SOURCES = tuple(_BY_NAME)
"""Their names."""


def source_of(name: object) -> ShareSource | None:
    """The source of that name; None where there is none. A recipe may hold anything there, lists too."""
    return next((source for source in SHARE_SOURCES if source.name == name), None)


@dataclass(frozen=True)
class Weights:
    """Shares of strata, with where they come from. Made by the name of the source: `Weights.public(...)`."""

    source: str
    """One of `SOURCES`."""
    citation: str
    """Where a reader finds the figures, or how they were made."""
    given: Basis = field(repr=False)
    """What the shares are worked out from."""
    unprotected: tuple[str, ...] = ()
    """What they disclose of confidential people: listed in the certificate."""

    @staticmethod
    def public(shares: Tabular, *, citation: str) -> Weights:
        """Figures that anyone can look up.

        Args:
            shares: A CSV file or a frame with the strata's columns and `share` or `count`. Columns `low` and `high`,
                beside these or alone, are bounds of the figures.
            citation: Where they were published.

        Raises:
            WeightsError: A table that is no such table, or no citation.
        """
        return Public().of(shares, citation=citation)

    @staticmethod
    def holdout(sample: Data, *, citation: str = "", confidential: bool | None = None) -> Weights:
        """A sample of other people, smoothed so that no declared group has the share 0. Disjoint is not public.

        Args:
            sample: A file, a frame or an Arrow table with the strata's columns.
            citation: Where the sample was published; without it, the sample is confidential.
            confidential: Whether its people are unprotected, as the certificate then says; so is every sample that was
                cut from a confidential file.

        Raises:
            WeightsError: A public sample without a citation.
        """
        return Holdout().of(sample, citation=citation, confidential=confidential)

    @staticmethod
    def private(*, share: float, prior: Weights | None = None) -> Weights:
        """Noisy counts of the confidential rows, paid by everybody before the split.

        Args:
            share: The part of the budget that they cost, above 0 and below 1.
            prior: Public weights that plans and rules for small groups go by; without them, all groups are alike.

        Raises:
            WeightsError: A share outside 0 and 1, or a prior that is private itself.
        """
        return Private().of(share=share, prior=prior)

    @staticmethod
    def raked(*margins: Weights, start: Weights | None = None) -> Weights:
        """Several margins fitted together by raking; as protected as the least public of them.

        Args:
            margins: Public, holdout or invariant weights of some of the strata's columns each.
            start: Weights of the full crossing, whose associations between columns are kept; without them there are
                none.

        Raises:
            WeightsError: Margins that are themselves raked or private.
        """
        return Raked().of(*margins, start=start)

    @staticmethod
    def invariant(counts: Tabular, *, citation: str = COUNTS) -> Weights:
        """Exact confidential counts, disclosed on purpose: the certificate lists them as unprotected.

        Args:
            counts: A CSV file or a frame with the strata's columns and `count` or `share`.
            citation: What the certificate says of them.
        """
        return Invariant().of(counts, citation=citation)

    @property
    def kind(self) -> ShareSource:
        """The source itself."""
        return _BY_NAME[self.source]

    @property
    def asked(self) -> float:
        """The part of the budget that private weights cost; 0 for all others."""
        return self.given.asked

    @property
    def exact(self) -> bool:
        """Whether the shares are taken for exact: no sample and no noise is among what they are made of."""
        return not self.asked and all(w.kind.exact for w in (self, *self.given.parts))

    @property
    def worst(self) -> str:
        """The least public source among those they are made of, or planned by."""
        return max((w.kind.grade(w) for w in self._figures()), key=itemgetter(0))[1]

    @property
    def of_rows(self) -> bool:
        """True where exact counts of the very rows that are fitted are among what the shares are made of."""
        return not self.asked and any(w.kind.of_rows for w in self._figures())

    def resolve(self, strata: Sequence[Stratum], schema: Schema | None = None) -> Resolved:
        """The share of each stratum of a full crossing; for private weights, what to plan with.

        Strata that the schema's rules forbid have the share 0, whatever the source says.
        """
        found = self.given.resolve(strata, schema)
        if schema is not None:
            found = found.without(impossible(schema, strata))
        return replace(found, of_rows=True) if self.of_rows else found

    def describe(self) -> dict[str, Any]:
        """For the certificate. A hash is given of public tables only: that of a confidential one confirms guesses."""
        return {"source": self.source, "citation": self.citation, **self.kind.stated(self)}

    def _figures(self) -> tuple[Weights, ...]:
        """The weights at the bottom of what they are made of; themselves where they are made of no others."""
        return tuple(one for part in self.given.parts for one in part._figures()) or (self,)  # noqa: SLF001


@dataclass(frozen=True)
class Place:
    """A section of a recipe: its folder, and its name."""

    folder: Path
    """The recipe's folder, which paths are relative to."""
    where: str
    """The section, as messages name it."""

    def nested(self, section: object, key: str, unraked: str | None = None) -> Weights:
        """The weights under a key of this section; `unraked` refuses those that cannot be raked."""
        inside = Place(self.folder, f"{self.where} {key}")
        if not isinstance(section, Mapping):
            raise RecipeError(f"{inside.where} is made of tables, each with path and citation.")
        source = source_of(section.get("source"))
        if unraked is not None and source is not None and not source.raked:
            raise WeightsError(unraked)
        return inside.read(section, Public.name)

    def read(self, section: Mapping[str, Any], default: str | None = None) -> Weights:
        """The weights that this section describes."""
        name = section.get("source", default)
        source = source_of(name)
        if source is None:
            hint = nearest(str(name), SOURCES)
            raise RecipeError(
                f"{self.where} source: {name!r} is not supported; it is one of {', '.join(SOURCES)}{hint}."
            )
        keys = {key: value for key, value in section.items() if key != "source"}
        kinds = {key: known.kind for key, known in source.keys.items()}
        check_keys(keys, kinds, self.where, f" with source {source.name!r}")
        for key, known in source.keys.items():
            if known.needed and key not in section:
                raise RecipeError(f"{self.where} {key} is missing with source {source.name!r}: {known.help}.")
        return source.read(section, self)


def read_weights(section: Mapping[str, Any], folder: Path) -> Weights:
    """The weights that the section [weights] describes; paths are relative to the recipe's folder."""
    return Place(folder, "[weights]").read(section)
