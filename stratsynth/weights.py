"""Public weights: how large each stratum is, from a source that is not the confidential table.

Weights decide how many rows each stratum contributes to a release. Taken from the private rows they would
be an unpaid answer, so they always come with a source and a citation.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.errors import WeightsError, nearest
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    import pandas as pd

TOLERANCE = 1e-3
"""How far the shares' sum may be from 1, as printed tables round; they are then scaled to 1, and it is said."""


@dataclass(frozen=True)
class Weights:
    """Shares of strata, with where they come from. Make one with `Weights.public(...)`."""

    source: str
    """What kind of source: `public`."""
    citation: str
    """Where a reader finds the figures."""
    rows: tuple[tuple[tuple[tuple[str, str], ...], float], ...] = field(repr=False)
    """The table as given: (column, level) pairs and a share."""

    @classmethod
    def public(cls, shares: pd.DataFrame | str | PathLike[str], *, citation: str) -> Weights:
        """Shares that anyone can look up: a CSV file or a frame with the strata's columns and `share`."""
        if not isinstance(citation, str) or not citation.strip():
            raise WeightsError("weights: public shares need a citation that says where they were published.")
        records = _read(Path(shares)) if isinstance(shares, str | PathLike) else _frame(shares)
        return cls("public", citation.strip(), tuple(_row(record, i + 2) for i, record in enumerate(records)))

    def resolve(self, strata: Sequence[Stratum]) -> Resolved:
        """The share of each stratum; refuses shares that miss one, name an unknown one, or do not add up."""
        wanted = {tuple(sorted(s.items)): s for s in strata}
        columns = sorted(strata[0].columns)
        found: dict[Stratum, float] = {}
        for items, share in self.rows:
            if sorted(column for column, _ in items) != columns:
                have = ",".join(column for column, _ in items)
                raise WeightsError(f"weights: the shares are by {have}, the strata by {','.join(strata[0].columns)}.")
            stratum = wanted.get(tuple(sorted(items)))
            if stratum is None:
                raise WeightsError(f"weights: {_name(items)} is not a stratum of the schema.")
            if stratum in found:
                raise WeightsError(f"weights: {_name(items)} has two shares.")
            found[stratum] = share
        missing = [s for s in strata if s not in found]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise WeightsError(
                f"weights: no share for {_name(missing[0].items)}{more}; give 0 for a group that cannot occur."
            )
        total = math.fsum(found.values())
        if abs(total - 1) > TOLERANCE:
            raise WeightsError(f"weights: the shares add up to {total:.6g}, not 1 (at most {TOLERANCE:g} off).")
        return Resolved({s: found[s] / total for s in strata}, total)


@dataclass(frozen=True)
class Resolved:
    """Shares matched to strata, scaled to add up to one."""

    shares: Mapping[Stratum, float]
    total: float
    """What the given shares added up to before they were scaled."""


def _name(items: Sequence[tuple[str, str]]) -> str:
    return " ".join(f"{column}={level}" for column, level in items).translate({10: " ", 13: " "})


def _read(path: Path) -> list[dict[str, Any]]:
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises where a name is too long
        raise WeightsError(f"weights: there is no file {path}.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            records: list[dict[str, Any]] = list(csv.DictReader(handle))
    except (UnicodeDecodeError, csv.Error) as error:
        raise WeightsError(f"weights: {path} is not a CSV file in UTF-8: {error}.") from None
    if not records:
        raise WeightsError(f"weights: {path} holds no shares.")
    return records


def _frame(frame: pd.DataFrame) -> list[dict[str, Any]]:
    if not hasattr(frame, "to_dict") or not hasattr(frame, "columns"):
        raise WeightsError("weights: give a CSV file or a frame with the strata's columns and a column `share`.")
    return [{str(k): v for k, v in record.items()} for record in frame.to_dict(orient="records")]


def _row(record: Mapping[str, Any], line: int) -> tuple[tuple[tuple[str, str], ...], float]:
    if "share" not in record:
        hint = nearest("share", [str(k) for k in record])
        raise WeightsError(f"weights: there is no column `share`{hint}.")
    if None in record or None in record.values():
        raise WeightsError(f"weights: line {line} has not as many fields as the header.")
    try:
        share = float(record["share"])
    except (TypeError, ValueError):
        share = math.nan
    if not math.isfinite(share) or share < 0:
        raise WeightsError(f"weights: the share in line {line} is not a number from 0 to 1.")
    items = tuple((str(k), _level(v)) for k, v in record.items() if k != "share")
    return items, share


def _level(value: object) -> str:
    """Levels are strings as they appear in files: a frame's 1 and 1.0 are "1"."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
