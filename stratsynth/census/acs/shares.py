"""Public shares of groups and of codes, from a public-use file of an earlier year, weighted by PWGTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.census.acs.make import schema as census_schema
from stratsynth.checks import number
from stratsynth.checks import path as given_path
from stratsynth.errors import UsageError
from stratsynth.schema import Numeric, Schema

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.weights.table import Tabular

SMOOTH = 0.5
"""Pseudo-count added to every group, in records of average weight: a group that the file lacks is rare, not
impossible."""


@dataclass(frozen=True)
class Shares:
    """Shares with their citation."""

    frame: pd.DataFrame
    """The columns, and `share`; a line for every declared group."""
    citation: str
    """Place of publication of the figures, and their computation."""
    rows: int
    """Number of records that the shares are computed from."""
    empty: int
    """Number of groups without a record in the file."""
    effective: int
    """Number of records of equal weight with the sampling error of these, in whole (Kish): (sum w)^2 / sum w^2."""


def shares(
    source: str | PathLike[str],
    by: Sequence[str],
    *,
    year: int,
    weight: str | None = "PWGTP",
    smooth: float = SMOOTH,
    origin: str | None = None,
    state: str | None = None,
    dictionary: str | PathLike[str] | None = None,
    codes: Mapping[str, Tabular] | None = None,
) -> Shares:
    """Shares of every combination of some columns' levels.

    Args:
        source: A public-use file: .csv, .csv.gz or .parquet. Never the private table, nor one with an account.
        by: The columns, by their names in that year; for ages, the schema's bins are the levels.
        year: Its survey year.
        weight: The column of the records' weights; None counts records.
        smooth: Pseudo-count added to every group, in records of average weight.
        origin: Description of the file, if it is not the Bureau's own: the citation begins with it.
        state: As for `schema`, with the next two.
        dictionary: As for `schema`.
        codes: As for `schema`.

    Raises:
        UsageError: A file that is not public, lacks a column, or has values that the schema of that year does not know.
    """
    import pandas as pd

    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.data.sources import open_source
    from stratsynth.schema.encoding import encode

    number("census: smooth", smooth, least=0)
    path = given_path("census: the public-use file", source)
    own = census_schema(by, year=year, state=state, dictionary=dictionary, codes=codes)
    if weight is not None and weight in own.names:
        raise UsageError(f"census: {weight} is one of the columns; name the column of the weights.")
    check_public_inputs(declared=[path])
    heavy = {} if weight is None else {weight: Numeric(lower=0, upper=99_999, missing=True)}
    whole = Schema({**own.columns, **heavy})
    table = open_source(path).read(whole.names)
    coded = encode(whole, table, [*heavy])
    if coded.size < table.num_rows or not coded.size:
        raise UsageError(
            f"census: {_strange(own, table)}; is the file of {year}?" if table.num_rows else "census: no records."
        )
    weights = np.ones(coded.size) if weight is None else coded.numbers[weight]
    if not np.isfinite(weights).all() or not weights.sum() > 0:
        raise UsageError(f"census: some records have no weight in the column {weight}.")
    shape = own.shape(own.names)
    cells = np.ravel_multi_index(tuple(coded.codes[name].astype(np.intp) for name in own.names), shape)
    counts = np.bincount(cells, minlength=int(np.prod(shape)))
    sums = np.bincount(cells, weights, minlength=int(np.prod(shape))) + smooth * weights.mean()
    levels = zip(*product(*(own.levels(name) for name in own.names)), strict=True)
    columns: dict[str, Any] = {name: list(each) for name, each in zip(own.names, levels, strict=True)}
    frame = pd.DataFrame({**columns, "share": sums / sums.sum()})
    effective = int(weights.sum() ** 2 / (weights**2).sum())
    citation = _citation(year, weight, smooth, origin, state, coded.size)
    return Shares(frame, citation, coded.size, int((counts == 0).sum()), effective)


def _strange(schema: Schema, table: Any) -> str:
    """Sentence on the columns with values that the schema does not know; the file is public."""
    from stratsynth.schema.encoding import encode

    lost = {}
    for name in schema.names:
        one = encode(schema.restrict([name]), table.select([name]))
        if one.size < table.num_rows:
            lost[name] = table.num_rows - one.size
    said = ", ".join(f"{name} in {count:,}" for name, count in lost.items())
    return f"records have values that the schema does not know: {said}"


def _citation(year: int, weight: str | None, smooth: float, origin: str | None, state: str | None, rows: int) -> str:
    place = f", {state.upper()}" if state else ""
    first = (
        origin or f"U.S. Census Bureau, American Community Survey {year}, public-use microdata, person records{place}"
    )
    how = "counts of records" if weight is None else f"totals weighted by {weight}"
    added = f", {smooth:g} records of average weight added to each group" if smooth else ""
    return f"{first}: {how} of {rows:,} records{added}"
