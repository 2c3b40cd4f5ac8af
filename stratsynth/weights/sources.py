"""`Weights`: shares of strata with where they come from, which is never left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stratsynth.checks import check_citation, number
from stratsynth.digest import digest
from stratsynth.errors import WeightsError
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, impossible
from stratsynth.weights.holdout import Sample
from stratsynth.weights.private import Asked
from stratsynth.weights.raking import Margins
from stratsynth.weights.resolved import Given, Resolved
from stratsynth.weights.table import ShareTable, Tabular

if TYPE_CHECKING:
    from stratsynth.data.sources import Data

SOURCES = ("public", "raked", "holdout", "private", "invariant")
_cited = partial(check_citation, "weights", error=WeightsError)


@dataclass(frozen=True)
class Weights:
    """Shares of strata, with where they come from. Made by the name of the source: `Weights.public(...)`."""

    source: str
    """One of `SOURCES`."""
    citation: str
    """Where a reader finds the figures, or how they were made."""
    given: Given = field(repr=False)
    """What the shares are worked out from."""
    unprotected: tuple[str, ...] = ()
    """What they disclose of confidential people: listed in the certificate."""

    @classmethod
    def public(cls, shares: Tabular, *, citation: str) -> Weights:
        """Figures that anyone can look up.

        Args:
            shares: A CSV file or a frame with the strata's columns and `share` or `count`. Columns `low` and `high`,
                beside these or alone, are bounds of the figures.
            citation: Where they were published.

        Raises:
            WeightsError: A table that is no such table, or no citation.
        """
        if not _text(citation):
            raise WeightsError("weights: public shares need a citation that says where they were published.")
        return cls("public", _cited(citation), ShareTable.read(shares))

    @classmethod
    def holdout(cls, sample: Data, *, citation: str = "", confidential: bool | None = None) -> Weights:
        """A sample of other people, smoothed so that no declared group has the share 0. Disjoint is not public.

        Args:
            sample: A file, a frame or an Arrow table with the strata's columns.
            citation: Where the sample was published; without it, the sample is confidential.
            confidential: Whether its people are unprotected, as the certificate then says; so is every sample that was
                cut from a confidential file.

        Raises:
            WeightsError: A public sample without a citation.
        """
        if confidential is None:
            confidential = not _text(citation)
        if not isinstance(confidential, bool) or not (confidential or _text(citation)):
            raise WeightsError(
                "weights: a public holdout needs a citation that says where it was published; one that was cut from "
                "a confidential file needs confidential = true."
            )
        said = _cited(citation) if _text(citation) else "a confidential holdout"
        return cls("holdout", said, Sample.read(sample), ("holdout_people",) if confidential else ())

    @classmethod
    def private(cls, *, share: float, prior: Weights | None = None) -> Weights:
        """Noisy counts of the confidential rows, paid by everybody before the split.

        Args:
            share: The part of the budget that they cost, above 0 and below 1.
            prior: Public weights that plans and rules for small groups go by; without them, all groups are alike.

        Raises:
            WeightsError: A share outside 0 and 1, or a prior that is private itself.
        """
        hint = " (a part of the budget)"
        number("weights: `share` of private weights", share, above=0, below=1, hint=hint, error=WeightsError)
        if prior is not None and (not isinstance(prior, Weights) or prior.asked):
            raise WeightsError("weights: the prior of private weights is public weights, as of another year.")
        unprotected = () if prior is None else prior.unprotected
        said = f"noisy counts of these data, for {share:g} of the budget"
        return cls("private", said, Asked(float(share), prior), unprotected)

    @classmethod
    def raked(cls, *margins: Weights, start: Weights | None = None) -> Weights:
        """Several margins fitted together by raking; as protected as the least public of them.

        Args:
            margins: Public, holdout or invariant weights of some of the strata's columns each.
            start: Weights of the full crossing, whose associations between columns are kept; without them there are
                none.

        Raises:
            WeightsError: Margins that are themselves raked or private.
        """
        used = (*margins, *(() if start is None else (start,)))
        if not margins or not all(isinstance(w, Weights) and w.source not in {"raked", "private"} for w in used):
            raise WeightsError("weights: raked weights are made of public, holdout or invariant weights.")
        said = "; ".join(dict.fromkeys(w.citation for w in used))
        unprotected = tuple(dict.fromkeys(item for w in used for item in w.unprotected))
        return cls("raked", said, Margins(margins, start), unprotected)

    @classmethod
    def invariant(cls, counts: Tabular, *, citation: str = "exact counts of the confidential data") -> Weights:
        """Exact confidential counts, disclosed on purpose: the certificate lists them as unprotected.

        Args:
            counts: A CSV file or a frame with the strata's columns and `count` or `share`.
            citation: What the certificate says of them.
        """
        said = _cited(citation) if _text(citation) else "exact counts of the confidential data"
        return cls("invariant", said, ShareTable.read(counts), ("group_counts",))

    @property
    def asked(self) -> float:
        """The part of the budget that private weights cost; 0 for all others."""
        return self.given.share if isinstance(self.given, Asked) else 0.0

    @property
    def informative(self) -> bool:
        """Whether sizes are known before anything is asked."""
        return not isinstance(self.given, Asked) or self.given.prior is not None

    @property
    def exact(self) -> bool:
        """Whether the shares are taken for exact: no sample and no noise is among what they are made of."""
        return not self.asked and all(w.source != "holdout" for w in (self, *self._parts()))

    @property
    def worst(self) -> str:
        """The least public source among those they are made of, or planned by."""
        rank = ("public", "holdout", "confidential holdout", "invariant")
        return max((_plainly(w) for w in self._parts()), key=rank.index, default=_plainly(self))

    def resolve(self, strata: Sequence[Stratum], schema: Schema | None = None) -> Resolved:
        """The share of each stratum of a full crossing; for private weights, what to plan with.

        Strata that the schema's rules forbid have the share 0, whatever the source says.
        """
        found = self.given.resolve(strata, schema)
        if schema is not None:
            found = found.without(impossible(schema, strata))
        return replace(found, of_rows=True) if self.worst == "invariant" and not self.asked else found

    def describe(self) -> dict[str, Any]:
        """For the certificate. A hash is given of public tables only: that of a confidential one confirms guesses."""
        record: dict[str, Any] = {"source": self.source, "citation": self.citation}
        if self.source == "public":
            record["sha256"] = digest(self.given)
        elif self.source == "holdout":
            record["confidential"] = bool(self.unprotected)
        elif isinstance(self.given, Asked):
            record["share"] = self.given.share
            record["prior"] = None if self.given.prior is None else self.given.prior.describe()
        elif isinstance(self.given, Margins):
            record["worst"] = self.worst
            record["margins"] = [margin.describe() for margin in self.given.margins]
            record["start"] = None if self.given.start is None else self.given.start.describe()
        return record

    def _parts(self) -> tuple[Weights, ...]:
        if isinstance(self.given, Asked) and self.given.prior is not None:
            return (self.given.prior,)
        if not isinstance(self.given, Margins):
            return ()
        return (*self.given.margins, *(() if self.given.start is None else (self.given.start,)))


def _plainly(weights: Weights) -> str:
    return "confidential holdout" if weights.source == "holdout" and weights.unprotected else weights.source


def _text(citation: object) -> bool:
    return isinstance(citation, str) and bool(citation.strip())
