"""Noisy sums as a release publishes them: numbers on their grid, their noise, and a description of the sum.

The description is a JSON object with the sum's name and public settings. Coefficients and other arrays at which a sum
was taken follow from earlier answers; only their shapes are stated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.questions.reading import Clique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions.sums.base import Sum
    from stratsynth.schema import Schema

MOST_SUMS = 2**22
"""Largest number of coordinates of sums that one release publishes, about 50 MB; further sums are not published."""


@dataclass(frozen=True, eq=False)
class PublishedSum:
    """One block of a noisy sum, as published."""

    clique: Clique
    """Columns that were read."""
    values: NDArray[np.int64]
    """Noisy sum in units of the grid; read-only."""
    sigma: float
    """Standard deviation of the noise in each coordinate, in units of the grid."""
    grid: float
    """Value of one unit of the grid."""
    of: str
    """Description of the sum, as JSON."""


def summed(query: Sum, schema: Schema, block: int, noise: str) -> str:
    """Return JSON text on the `Sum`'s block number `block` in a schema: name, settings, features, the law `noise`."""
    said: dict[str, Any] = {"sum": _name(type(query).__name__), "noise": noise}
    if len(query.blocks(schema)) > 1:
        said["block"] = block
    said |= _plain(query)
    if (design := getattr(query, "design", None)) is not None:
        said["features"] = list(design.names(schema))
    return json.dumps(said, ensure_ascii=False)


def columns_read(query: Sum) -> Clique:
    """Return the names of the columns that a sum, `query`, reads: its own, its design's, its target, its groups'."""
    design = getattr(query, "design", None)
    named = [*getattr(query, "columns", ()), *(design.columns if design is not None else ())]
    named += [getattr(query, "target", ""), *getattr(query, "by", ()), *getattr(query, "groups", ())]
    return tuple(dict.fromkeys(name for name in named if name))


def _name(kind: str) -> str:
    """Return a class name `kind` as words in lower case: FairGradients as `fair gradients`."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind).strip()


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: dataclasses as dicts, arrays as {"shape": [...]}, others as text."""
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape)}
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if not callable(getattr(value, f.name))}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
