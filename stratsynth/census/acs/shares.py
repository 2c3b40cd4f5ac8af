"""Public shares of groups and of codes, from a public-use file of an earlier year, weighted by PWGTP.

Where the file has the 80 replicate weights PWGTP1 to PWGTP80, each share has its standard error by successive
differences, as the Bureau computes it: the root of 4/80 times the sum of squared differences of the replicates'
shares from the share. The replicates' shares are written beside it, for the design error of means that are weighted by
the shares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.census.acs.evidence import Evidence, evidence
from stratsynth.census.acs.make import schema as census_schema
from stratsynth.checks import number
from stratsynth.checks import path as given_path
from stratsynth.errors import UsageError
from stratsynth.inputs import check_citation
from stratsynth.schema import Numeric, Schema
from stratsynth.weights.design import MOST_REPLICATED, standard_errors
from stratsynth.weights.replicates import replicate_weights
from stratsynth.weights.table import REPLICATE

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.data.sources import Source
    from stratsynth.schema.rows import CodedRows
    from stratsynth.weights.table import Tabular

SMOOTH = 0.5
"""Pseudo-count added to every group, in records of average weight: a group that the file lacks is rare, not
impossible."""


@dataclass(frozen=True)
class Shares:
    """Shares with their citation."""

    frame: pd.DataFrame
    """The columns, and `share`; a line for every declared group. With replicate weights also `standard_error`, which of
    a group without a record is the share of one record of average weight; and, of 2,000 groups at most, `share_1` to
    `share_80`, the shares by each replicate weight."""
    citation: str
    """Place of publication of the figures, and their computation."""
    rows: int
    """Number of records that the shares are computed from."""
    empty: int
    """Number of groups without a record in the file."""
    year: int
    """Survey year of the file."""
    effective: int
    """Number of records of equal weight with the sampling error of these, in whole (Kish): (sum w)^2 / sum w^2."""

    @property
    def design(self) -> str:
        """Words on the columns that state the error of the survey's design."""
        if "standard_error" not in self.frame:
            return "not known, as the file has no replicate weights"
        if REPLICATE["share"][0] not in self.frame:
            return f"standard errors alone, as there are more than {MOST_REPLICATED:,} groups"
        return "standard errors, and the shares by 80 replicate weights"


def shares(
    source: str | PathLike[str],
    by: Sequence[str],
    *,
    year: int | None = None,
    weight: str | None = "PWGTP",
    smooth: float = SMOOTH,
    origin: str | None = None,
    state: str | None = None,
    dictionary: str | PathLike[str] | None = None,
    codes: Mapping[str, Tabular] | None = None,
    codes_citation: str = "",
) -> Shares:
    """Return the `Shares` of every combination of the levels of some columns in a public-use file.

    Args:
        source: A public-use file: .csv, .csv.gz or .parquet. Never the private table, nor one with an account.
        by: The columns, by their names in that year; for ages, the schema's bins are the levels.
        year: Its survey year; needed where neither serial numbers nor the name of the file have it.
        weight: The column of the records' weights; None counts records.
        smooth: Pseudo-count added to every group, in records of average weight.
        origin: Description of the file, if it is not the Bureau's own: the citation begins with it.
        state: Two letters of its state; that of the file where it has one.
        dictionary: As for `schema`.
        codes: As for `schema`.
        codes_citation: As for `schema`.

    Raises:
        UsageError: A file that is not public, contradicts year, state or origin, lacks a column, or has values that the
            schema of that year does not know.
    """
    import pandas as pd

    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.data.sources import open_source
    from stratsynth.schema.encoding import encode

    number("census: smooth", smooth, least=0)
    if isinstance(by, str) or not by:
        raise UsageError("census: `by` is a list of columns, at least one.")
    path = given_path("census: the public-use file", source)
    check_public_inputs(declared=[path])
    file = open_source(path)
    known = evidence(file, path)
    year, state = known.year(year), known.state(state)
    origin = known.origin(None if origin is None else check_citation("census: --origin", origin), year)
    own = census_schema(by, year=year, state=state, dictionary=dictionary, codes=codes, codes_citation=codes_citation)
    if weight is not None and weight in own.names:
        raise UsageError(f"census: {weight} is one of the columns; name the column of the weights.")
    heavy = {} if weight is None else {weight: Numeric(lower=0, upper=99_999, missing=True)}
    whole = Schema({**own.columns, **heavy})
    table = file.read(whole.names)
    coded = encode(whole, table, [*heavy])
    if coded.size < table.num_rows or not coded.size:
        raise UsageError(
            f"census: {_strange(own, table)}; is the file of {year}?" if table.num_rows else "census: no records."
        )
    weights = np.ones(coded.size) if weight is None else coded.numbers[weight]
    if not np.isfinite(weights).all() or not weights.sum() > 0:
        raise UsageError(f"census: some records have no weight in the column {weight}.")
    shape, cells = own.shape(own.names), _cells(own, coded)
    counts, found = np.bincount(cells, minlength=math.prod(shape)), _shares(cells, math.prod(shape), weights, smooth)
    levels = zip(*product(*(own.levels(name) for name in own.names)), strict=True)
    columns: dict[str, Any] = {name: list(each) for name, each in zip(own.names, levels, strict=True)}
    frame = pd.DataFrame({**columns, "share": found})
    replicated = None if weight is None else _replicates(file, weight, cells, len(found), smooth)
    if replicated is not None:
        errors = standard_errors(replicated, found)
        frame["standard_error"] = np.where(counts > 0, errors, weights.mean() / weights.sum())
        if len(found) <= MOST_REPLICATED:
            frame = frame.join(pd.DataFrame(replicated, columns=list(REPLICATE["share"])))
    cited = _citation(known, year, weight, smooth, origin, state, coded.size)
    effective = int(weights.sum() ** 2 / (weights**2).sum())
    return Shares(frame, cited, coded.size, int((counts == 0).sum()), year, effective)


def _cells(schema: Schema, coded: CodedRows) -> NDArray[np.intp]:
    """Return an int array: each record's number among the groups, cells of the schema, row-major, by `CodedRows`."""
    codes = tuple(coded.codes[name].astype(np.intp) for name in schema.names)
    return np.ravel_multi_index(codes, schema.shape(schema.names)).astype(np.intp)


def _shares(cells: NDArray[np.intp], groups: int, weights: NDArray[np.float64], smooth: float) -> NDArray[np.float64]:
    """Return a float array, the shares of `groups`, a number of groups, by records' weights.

    `cells`, an array, has the group's number of each record; `smooth` records of average weight are added to each
    group.
    """
    sums = np.bincount(cells, weights, minlength=groups) + smooth * weights.mean()
    found: NDArray[np.float64] = sums / sums.sum()
    return found


def _replicates(
    file: Source, weight: str, cells: NDArray[np.intp], groups: int, smooth: float
) -> NDArray[np.float64] | None:
    """Return shares by a `Source`'s replicate weights, an array (groups, replicates); None if it lacks some of them.

    `cells`, an array, has the group's number of each record, `groups` is the number of groups; `weight` names the
    column of weights, and `smooth` is the number of records that are added to each group.
    """
    sums = replicate_weights(file, weight)
    if sums is None:
        return None
    return np.stack([_shares(cells, groups, weights, smooth) for weights in sums], axis=1)


def _strange(schema: Schema, table: Any) -> str:
    """Return a sentence: in which columns of a public Arrow table how many rows have values unknown to the schema."""
    from stratsynth.schema.encoding import encode

    lost = {}
    for name in schema.names:
        one = encode(schema.restrict([name]), table.select([name]))
        if one.size < table.num_rows:
            lost[name] = table.num_rows - one.size
    said = ", ".join(f"{name} in {count:,}" for name, count in lost.items())
    return f"records have values that the schema does not know: {said}"


def _citation(
    known: Evidence, year: int, weight: str | None, smooth: float, origin: str | None, state: str | None, rows: int
) -> str:
    """Return the citation of shares of `rows` rows of a file, by its `Evidence`: origin or year and state, weight.

    Records that `smooth` adds to a group are stated too.
    """
    place = f", {state}" if state else ""
    years = known.span if len(known.years) > 1 else year
    first = (
        origin or f"U.S. Census Bureau, American Community Survey {years}, public-use microdata, person records{place}"
    )
    how = "counts of records" if weight is None else f"totals weighted by {weight}"
    added = f", {smooth:g} records of average weight added to each group" if smooth else ""
    return f"{first}: {how} of {rows:,} records{added}"
