"""Exact confidential counts of the groups, disclosed on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.errors import WeightsError
from stratsynth.inputs import check_citation
from stratsynth.weights.source import CITATION, PATH, Key, ShareSource, is_text
from stratsynth.weights.table import ShareTable, Tabular

if TYPE_CHECKING:
    from stratsynth.weights.sources import Place, Weights

COUNTS = "exact counts of the confidential data"
"""Citation of counts that are given without one."""


class Invariant(ShareSource):
    """Shares from exact confidential counts, which the certificate lists as unprotected."""

    name: ClassVar[str] = "invariant"
    words: ClassVar[str] = "the exact confidential numbers, which are not protected"
    keys: ClassVar[Mapping[str, Key]] = {"path": PATH, "citation": CITATION}
    rank: ClassVar[int] = 3
    exact: ClassVar[bool] = True
    known: ClassVar[bool] = True
    of_rows: ClassVar[bool] = True
    raked: ClassVar[bool] = True
    samples: ClassVar[bool] = True
    discloses: ClassVar[Mapping[str, tuple[str, str]]] = {
        "group_counts": (
            "Sizes of the groups",
            "How large the groups are: their exact confidential sizes are in the release without noise.",
        )
    }

    def of(self, counts: Tabular, *, citation: str = COUNTS) -> Weights:
        """Return weights from `counts`, a CSV file or frame of exact confidential counts, with a citation.

        They are listed as unprotected; the citation says where they come from.
        """
        source = check_citation("weights", citation, error=WeightsError) if is_text(citation) else COUNTS
        return self.made(source, ShareTable.read(counts), tuple(self.discloses))

    def read(self, section: Mapping[str, Any], place: Place) -> Weights:
        """Return weights from the table at `path` of `section`, a mapping; `place` has the folder of its recipe."""
        return self.of(place.folder / section["path"], citation=section.get("citation") or COUNTS)
