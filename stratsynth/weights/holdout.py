"""Shares of strata from a sample of other people.

Disjoint is not public: people who were set aside from a confidential file are confidential people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.digest import Digested
from stratsynth.errors import WeightsError
from stratsynth.inputs import check_citation
from stratsynth.schema import Schema
from stratsynth.strata import Stratum
from stratsynth.weights.source import CITATION, PATH, Basis, Key, Resolved, ShareSource, is_text

if TYPE_CHECKING:
    from stratsynth.data.sources import Data, Source
    from stratsynth.weights.sources import Place, Weights

SMOOTHING = 0.5
"""Pseudo-count added to every stratum (Krichevsky and Trofimov), so that a stratum without sampled people has a
share."""


@dataclass(frozen=True, eq=False)
class Sample(Basis, Digested):
    """A sample with the strata's columns, encoded by the schema's levels."""

    source: Source = field(repr=False)
    digest: str = field(repr=False)
    """Hash of the content, a part of a fit's identity. Never published, since it confirms guesses of the sample."""

    @property
    def origins(self) -> tuple[Any, ...]:
        """Tuple of the sample's source alone: it may not be the private table."""
        return (self.source,)

    def digested(self) -> str:
        """Return the hash of the sample's content, as the part that stands for it in a fit's identity."""
        return self.digest

    @classmethod
    def read(cls, data: Any) -> Sample:
        """Return the `Sample` of the rows `data`, a file, frame or Arrow table, with the hash of its content."""
        from stratsynth.data.fingerprint import fingerprint
        from stratsynth.data.sources import open_source

        source = open_source(data)
        return cls(source, fingerprint(source, b"holdout"))

    def columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """Return a tuple of those names in `by` that are columns of this sample, in the order of `by`."""
        return tuple(column for column in by if column in self.source.columns())

    def resolve(self, strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
        """Return the `Resolved` smoothed shares of `strata`, (n_s + 1/2) / (n + S/2), n_s of n rows in each of S.

        Rows outside the schema's levels do not count. With the schema's column of weights, rows count by it, scaled to
        the effective number of people.
        """
        import numpy as np

        from stratsynth.models.intervals import effective, wilson
        from stratsynth.schema.encoding import encode

        if schema is None:
            raise WeightsError("weights: a holdout is matched by the schema's levels; give the schema.")
        columns = sorted(strata[0].columns)
        told = schema.row_weight.column  # rows count by weight if the sample has weights
        weigh = told is not None and self.source.columns().count(told) == 1
        wanted = (*columns, told) if weigh and told is not None else columns
        coded = encode(schema.restrict(columns), self.source.read(wanted), weigh=weigh)
        each = np.ones(coded.size) if coded.weights is None else effective(coded.weights)
        n = float(each.sum())
        if not n > 0:
            raise WeightsError("weights: the holdout has no rows that the schema lets in.")
        cells: dict[tuple[int, ...], float] = {}
        for cell, w in zip(zip(*(coded.codes[c].tolist() for c in columns), strict=True), each.tolist(), strict=True):
            cells[cell] = cells.get(cell, 0.0) + w
        levels = {c: schema.levels(c) for c in columns}
        count = {tuple(levels[c][i] for c, i in zip(columns, cell, strict=True)): n for cell, n in cells.items()}
        people = {s: sum(count.get(cell, 0) for cell in s.cells()) for s in strata}
        whole = n + SMOOTHING * len(strata)
        shares = {s: (n + SMOOTHING) / whole for s, n in people.items()}
        alone = n / schema.most_rows  # one person may have several rows
        low, high = wilson([people[s] for s in strata], n)
        ranges = dict(zip(strata, zip(low.tolist(), high.tolist(), strict=True), strict=True))
        return Resolved(shares, ranges=ranges, sampled=alone, counted_in=alone)


class Holdout(ShareSource):
    """Shares from a sample of other people; confidential unless it was published."""

    name: ClassVar[str] = "holdout"
    words: ClassVar[str] = "from a sample of other people"
    keys: ClassVar[Mapping[str, Key]] = {
        "path": PATH,
        "citation": CITATION,
        "confidential": Key(bool, "whether the people of the holdout are not public: the certificate then says so"),
    }
    rank: ClassVar[int] = 1
    raked: ClassVar[bool] = True
    countable: ClassVar[bool] = True
    samples: ClassVar[bool] = True
    discloses: ClassVar[Mapping[str, tuple[str, str]]] = {
        "holdout_people": (
            "People of the holdout",
            "The people of the sample that the groups' shares come from: it was cut from confidential data.",
        )
    }

    def of(self, sample: Data, *, citation: str = "", confidential: bool | None = None) -> Weights:
        """Return `Weights` from the rows `sample`; `confidential` None is True without a citation, and False with one.

        WeightsError for a public one without a citation.
        """
        if confidential is None:
            confidential = not is_text(citation)
        if not isinstance(confidential, bool) or not (confidential or is_text(citation)):
            raise WeightsError(
                "weights: a public holdout needs a citation that says where it was published; one that was cut from "
                "a confidential file needs confidential = true."
            )
        source = (
            check_citation("weights", citation, error=WeightsError) if is_text(citation) else "a confidential holdout"
        )
        return self.made(source, Sample.read(sample), tuple(self.discloses) if confidential else ())

    def read(self, section: Mapping[str, Any], place: Place) -> Weights:
        """Return the `Weights` of the sample at `path` of a recipe's `section`, a mapping; `place` has its folder.

        The weights are public unless the section says `confidential`.
        """
        confidential = section.get("confidential", False)
        return self.of(place.folder / section["path"], citation=section.get("citation", ""), confidential=confidential)

    def grade(self, weights: Weights) -> tuple[int, str]:
        """Return (rank, name) of `weights`: (2, "confidential holdout") if unprotected, else (1, "holdout").

        0 is public, 3 confidential counts.
        """
        return (2, f"confidential {self.name}") if weights.unprotected else (self.rank, self.name)

    def stated(self, weights: Weights) -> dict[str, Any]:
        """Return a dict for the certificate: {"confidential": True} if the weights list people as unprotected.

        Otherwise the value is False.
        """
        return {"confidential": bool(weights.unprotected)}
