"""Shares from public figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.checks import check_integer
from stratsynth.digest import digest
from stratsynth.errors import WeightsError
from stratsynth.inputs import check_citation
from stratsynth.weights.source import CITATION, PATH, Key, ShareSource, is_text
from stratsynth.weights.table import ShareTable, Tabular

if TYPE_CHECKING:
    from stratsynth.weights.sources import Place, Weights


class PublicShares(ShareSource):
    """Shares from published figures; the certificate has the hash of their table."""

    name: ClassVar[str] = "public"
    words: ClassVar[str] = "from a public source"
    keys: ClassVar[Mapping[str, Key]] = {
        "path": PATH,
        "citation": replace(CITATION, needed=True),
        "records": Key(int, "number of records in which they were counted, for their sampling error"),
    }
    rank: ClassVar[int] = 0
    exact: ClassVar[bool] = True
    known: ClassVar[bool] = True
    raked: ClassVar[bool] = True
    samples: ClassVar[bool] = True

    def of(self, shares: Tabular, *, citation: str, records: int | None = None) -> Weights:
        """Return weights from `shares`, a CSV file or frame, with the citation of its place of publication.

        `records` is the number of records that they were counted in, None if exact or unknown. WeightsError without a
        citation.
        """
        if not is_text(citation):
            raise WeightsError("weights: public shares need a citation that says where they were published.")
        check_integer("weights: records", records, 1, optional=True)
        return self.made(check_citation("weights", citation, error=WeightsError), ShareTable.read(shares, records))

    def read(self, section: Mapping[str, Any], place: Place) -> Weights:
        """Return weights from the table at `path` of `section`, a mapping, with its citation.

        `place` has its folder.
        """
        return self.of(place.folder / section["path"], citation=section["citation"], records=section.get("records"))

    def stated(self, weights: Weights) -> dict[str, Any]:
        """Return a dict for the certificate: the hash of the weights' table, the method for its survey's error if any.

        A public table's hash confirms no guess.
        """
        by = weights.given.design if isinstance(weights.given, ShareTable) else ""
        return {"sha256": digest(weights.given), **({"design": by} if by else {})}
