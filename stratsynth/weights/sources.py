"""`Weights`: shares of strata with their source, and the reading of a recipe's section [weights]."""

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
from stratsynth.weights.raking import Raked
from stratsynth.weights.source import Basis, Resolved, ShareSource
from stratsynth.weights.table import PublicShares

if TYPE_CHECKING:
    from stratsynth.data.sources import Data
    from stratsynth.weights.table import Tabular

SHARE_SOURCES: tuple[ShareSource, ...] = (PublicShares(), Raked(), Holdout(), Private(), Invariant())
"""All sources of weights."""
_BY_NAME = {source.name: source for source in SHARE_SOURCES}
SOURCES = tuple(_BY_NAME)
"""Names of all sources."""


def source_of(name: object) -> ShareSource | None:
    """Return the `ShareSource` that recipes call `name`; None if there is none, as for a value that is no text."""
    return next((source for source in SHARE_SOURCES if source.name == name), None)


@dataclass(frozen=True)
class Weights:
    """Shares of strata, with their source; made by the name of the source, as in `Weights.public(...)`."""

    source: str
    """One of `SOURCES`."""
    citation: str
    """Place where the figures were published, or how they were made."""
    given: Basis = field(repr=False)
    """Figures that the shares are computed from."""
    unprotected: tuple[str, ...] = ()
    """Names of what the weights disclose of confidential people, as the certificate lists them."""

    @staticmethod
    def public(shares: Tabular, *, citation: str, records: int | None = None) -> Weights:
        """Return `Weights` from published figures.

        Args:
            shares: A CSV file or a frame with the strata's columns and `share` or `count`. Columns `low` and `high`,
                beside these or alone, are bounds of the figures; `standard_error` is their own error, and share_1 to
                share_80 (or count_1 to count_80) are the figures by each replicate weight, of which means that are
                weighted by the shares have a design-based interval: see `Estimate.estimates`.
            citation: Where they were published.
            records: The number of records in which they were counted, where they come from a sample: their sampling
                error then enters the comparison with what was measured. Unknown, they are taken for exact there.

        Raises:
            WeightsError: Another kind of table, or no citation.
        """
        return PublicShares().of(shares, citation=citation, records=records)

    @staticmethod
    def holdout(sample: Data, *, citation: str = "", confidential: bool | None = None) -> Weights:
        """Return `Weights` from a sample of other people, smoothed so that no share is 0. Disjoint is not public.

        Args:
            sample: A file, a frame or an Arrow table with the strata's columns.
            citation: Where the sample was published; without it, the sample is confidential.
            confidential: True if its people are unprotected, as the certificate then states; so is every sample that
                cut from a confidential file.

        Raises:
            WeightsError: A public sample without a citation.
        """
        return Holdout().of(sample, citation=citation, confidential=confidential)

    @staticmethod
    def private(*, share: float, prior: Weights | None = None) -> Weights:
        """Return `Weights` from noisy counts of the confidential rows, asked of all records before the split.

        Args:
            share: The part of the budget that they cost, above 0 and below 1.
            prior: Public weights for plans and rules for small groups; without them, all groups are equal there.

        Raises:
            WeightsError: A share outside 0 and 1, or a prior that is private itself.
        """
        return Private().of(share=share, prior=prior)

    @staticmethod
    def raked(*margins: Weights, start: Weights | None = None) -> Weights:
        """Return `Weights` that fit several margins, by raking; as public as the least public of them.

        Args:
            margins: Public, holdout or invariant weights, each of some of the strata's columns.
            start: Weights of the full crossing, whose associations between columns are kept; without them there are
                none.

        Raises:
            WeightsError: Margins that are themselves raked or private.
        """
        return Raked().of(*margins, start=start)

    @staticmethod
    def invariant(counts: Tabular, *, citation: str = COUNTS) -> Weights:
        """Return `Weights` from exact confidential counts, disclosed on purpose: certificates list them as unprotected.

        Args:
            counts: A CSV file or a frame with the strata's columns and `count` or `share`.
            citation: The certificate's text about their origin.
        """
        return Invariant().of(counts, citation=citation)

    @property
    def kind(self) -> ShareSource:
        """`ShareSource` of these weights, with what other code needs of it, such as `PublicShares()`."""
        return _BY_NAME[self.source]

    @property
    def asked(self) -> float:
        """Part of the budget, between 0 and 1, that private weights cost; 0 for all others."""
        return self.given.asked

    @property
    def exact(self) -> bool:
        """True if the shares are taken for exact: no sample and no noise is among their parts."""
        return not self.asked and all(w.kind.exact for w in (self, *self.given.parts))

    @property
    def worst(self) -> str:
        """Name of the least public source among the parts of the weights, themselves if they have none."""
        return max((w.kind.grade(w) for w in self._figures()), key=itemgetter(0))[1]

    @property
    def of_rows(self) -> bool:
        """True if exact counts of the very rows that are fitted are among their parts."""
        return not self.asked and any(w.kind.of_rows for w in self._figures())

    def resolve(self, strata: Sequence[Stratum], schema: Schema | None = None) -> Resolved:
        """Return the `Resolved` shares of `strata`, a full crossing; for private weights, the shares to plan with.

        Strata that the schema's rules forbid, if it is given, have the share 0.
        """
        found = replace(self.given.resolve(strata, schema), cited=self.citation)
        if schema is not None:
            found = found.without(impossible(schema, strata))
        return replace(found, of_rows=True) if self.of_rows else found

    def describe(self) -> dict[str, Any]:
        """Return a dict for the certificate on these weights: `source`, `citation` and the source's own entries."""
        return {"source": self.source, "citation": self.citation, **self.kind.stated(self)}

    def _figures(self) -> tuple[Weights, ...]:
        """Return a tuple of the weights that these are made of, down to those made of no others; themselves if none."""
        return tuple(one for part in self.given.parts for one in part._figures()) or (self,)  # noqa: SLF001


@dataclass(frozen=True)
class Place:
    """A section of a recipe: its folder and its name."""

    folder: Path
    """Folder of the recipe, which paths are relative to."""
    where: str
    """Name of the section in messages."""

    def nested(self, section: object, key: str, unraked: str | None = None) -> Weights:
        """Return the `Weights` that `section`, a mapping under `key` of this place's section, describes.

        RecipeError for no mapping; WeightsError of the text `unraked`, if not None, for sources that cannot be raked.
        """
        inside = Place(self.folder, f"{self.where} {key}")
        if not isinstance(section, Mapping):
            raise RecipeError(f"{inside.where} is made of tables, each with path and citation.")
        source = source_of(section.get("source"))
        if unraked is not None and source is not None and not source.raked:
            raise WeightsError(unraked)
        return inside.read(section, PublicShares.name)

    def read(self, section: Mapping[str, Any], default: str | None = None) -> Weights:
        """Return the `Weights` that a recipe's `section`, a mapping, describes; `default` is the usual source.

        RecipeError for unknown sources or keys, and for missing keys.
        """
        name = section.get("source", default)
        source = source_of(name)
        if source is None:
            hint = nearest(str(name), SOURCES)
            wrong = " is missing" if name is None else f": {name!r} is not supported"
            raise RecipeError(f"{self.where} source{wrong}; it is one of {', '.join(SOURCES)}{hint}.")
        keys = {key: value for key, value in section.items() if key != "source"}
        kinds = {key: known.kind for key, known in source.keys.items()}
        check_keys(keys, kinds, self.where, f" with source {source.name!r}")
        for key, known in source.keys.items():
            if known.needed and key not in section:
                raise RecipeError(f"{self.where} {key} is missing with source {source.name!r}: {known.help}.")
        return source.read(section, self)


def read_weights(section: Mapping[str, Any], folder: Path) -> Weights:
    """Return the `Weights` of a recipe's mapping `section`, [weights], paths in `folder`; RecipeError if wrong."""
    return Place(folder, "[weights]").read(section)
