"""Map a prior's rows to the columns and levels of a schema, by declared rules.

All rows here are public, so that refusals may name values and count rows. Everything in the schema gets some weight,
even if the prior lacks it: a missing column has even levels, in copies of every row; a level that no row has gets a few
relabelled rows that together count as half a person. Measured answers can then move it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.checks import one_of
from stratsynth.data.sources import Source
from stratsynth.digest import digest
from stratsynth.errors import UsageError, nearest
from stratsynth.mechanisms.prior_rows import PriorRows
from stratsynth.models.intervals import effective
from stratsynth.models.rules import broken
from stratsynth.schema import Categorical, Nested, Numeric
from stratsynth.schema.drawn import PRIOR
from stratsynth.schema.encoding import encode_categorical, encode_numeric, row_weights, smallest
from stratsynth.schema.inside import density_of
from stratsynth.schema.values import check_type

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

MOST_ROWS = 15_000
"""Approximate number of rows that a fit uses, copies included; a longer prior is thinned to evenly spaced rows."""
MOST_COPIES = 8
"""Largest number of copies of a row for a missing column, which has at most one copy per level."""
LENT_LEVEL = 0.5
"""Total weight, in people, of the rows relabelled to a level that the prior lacks."""
LENT_PLACE = 0.05
"""Weight, in people, of each place of a bin in which the prior has a number: places without one can be drawn too."""
ROWS_OF_LEVEL = 20
"""Number of rows relabelled to such a level."""
LEAST_KEPT = 0.5
"""Smallest fraction of a prior's weight that must obey the structural rules; rows that break them are left out."""
NAMED = 5
"""Number of unknown values that a refusal names."""

Codes = dict[str, "NDArray[np.integer[Any]]"]


@dataclass(frozen=True)
class Rules:
    """Translation of a prior's columns and values to those of a schema."""

    rename: Mapping[str, str]
    """Column of the schema -> name of the prior's column."""
    recode: Mapping[str, Mapping[str, str]]
    """Column of the schema -> {value of the prior -> level of the schema}."""
    without: tuple[str, ...]
    """Columns of the schema that the prior lacks."""
    unknown: str = "refuse"
    """Treatment of rows with values unknown to the schema: "refuse" or "drop"."""

    def __post_init__(self) -> None:
        """Raise UsageError for a value of `unknown` other than "refuse" and "drop"."""
        one_of("prior: unknown", self.unknown, ("refuse", "drop"))

    def check_names(self, schema: Schema) -> None:
        """Raise UsageError for rules on columns or levels that the schema lacks, or recoding of numeric columns."""
        for what, names in (("rename", self.rename), ("recode", self.recode), ("without", self.without)):
            for name in names:
                if name not in schema.columns:
                    raise UsageError(
                        f"prior: {what} names {name}, which is no column of the schema{nearest(name, schema.columns)}."
                    )
        for name, values in self.recode.items():
            column = schema.column(name)
            if not isinstance(column, Categorical):
                raise UsageError(f"prior: recode names {name}, which has numbers and no levels.")
            levels = column.single.all_levels if isinstance(column, Nested) else column.all_levels
            for level in values.values():
                if level not in levels:
                    hint = nearest(level, levels)
                    raise UsageError(f"prior: recode of {name} names the level {level!r}, which it has not{hint}.")

    def check(self, schema: Schema, found: Sequence[str]) -> None:
        """Raise UsageError for rules on names that the schema lacks, or a prior, of columns `found`, without its own.

        Each of the schema's must be among `found` once, under its name or by `rename`, unless it is in `without`; one
        must.
        """
        self.check_names(schema)
        for name in schema.names:
            theirs = self.rename.get(name, name)
            if name in self.without:
                continue
            if found.count(theirs) != 1:
                often = "more than one" if theirs in found else "no"
                raise UsageError(
                    f"prior: it has {often} column {theirs}{nearest(theirs, found)}. Say by rename what {name} is "
                    "called there, or list it under without."
                )
        if set(self.without) == set(schema.names):
            raise UsageError("prior: it has no column of the schema.")


@dataclass(frozen=True, eq=False)
class TranslatedSource(Source):
    """The rows of a prior under the schema's names, with its values."""

    source: Source
    """Source of the rows."""
    rules: Rules

    def columns(self) -> tuple[str, ...]:
        """Return a tuple of the source's columns, in order, by the names that they have in the schema."""
        names = {theirs: name for name, theirs in self.rules.rename.items()}
        return tuple(names.get(name, name) for name in self.source.columns())

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return an Arrow table of `columns`, by the schema's names, of all rows, with the schema's values."""
        return self._translated(columns, self.source.read(self._theirs(columns)))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield Arrow tables of `columns`, by the schema's names, translated from the source's batches."""
        for batch in self.source.batches(self._theirs(columns)):
            yield self._translated(columns, batch)

    def _theirs(self, columns: Sequence[str]) -> list[str]:
        """Return a list of the source's names for `columns`, names of the schema."""
        return [self.rules.rename.get(name, name) for name in columns]

    def _translated(self, columns: Sequence[str], batch: pa.Table) -> pa.Table:
        """Return `batch`, of the source's columns, under the names `columns` with the schema's values."""
        recode = self.rules.recode
        found = [
            _recoded(data, recode[name]) if name in recode else data
            for name, data in zip(columns, batch.columns, strict=True)
        ]
        return batch.from_arrays(found, names=list(columns))


def mapped(source: Source, rules: Rules, schema: Schema, stated: Mapping[str, Any]) -> PriorRows:
    """Return `PriorRows`: rows of `source` as level numbers of a schema, by renaming and recoding `rules`; weights.

    `stated` is the certificate's section on them. Weights count as Kish's effective number of rows. Rows added for
    missing levels, `lent`, have `LENT_LEVEL` people per level on top.

    Raises:
        UsageError: Rows, columns or values that have no place in the schema.
    """
    columns = source.columns()
    rules.check(schema, columns)
    theirs = {name: rules.rename.get(name, name) for name in schema.names if name not in rules.without}
    told = schema.row_weight.column
    weigh = told is not None and columns.count(told) == 1
    data = source.read(list(dict.fromkeys([*theirs.values(), *([told] if weigh and told is not None else [])])))
    codes: Codes = {}
    known = np.ones(data.num_rows, dtype=bool)
    for name, other in theirs.items():
        found = _coded(schema, name, data.column(other), rules)
        known &= found >= 0
        codes[name] = found
    if not known.any():
        raise UsageError("prior: it has no row that the schema lets in.")
    own = row_weights(schema.row_weight, data) if weigh else None
    weights = np.ones(data.num_rows) if own is None else effective(own)
    rows, weights = {name: code[known] for name, code in codes.items()}, np.asarray(weights, np.float64)[known]
    densities = _densities(schema, theirs, data, rows, weights, known)
    copies = max((min(schema.size(name), MOST_COPIES) for name in rules.without), default=1)
    rows, weights = _thinned(rows, weights, MOST_ROWS // copies)
    thinned = int(known.sum()) - len(weights)
    rows, weights, lent = _completed(schema, rows, weights, rules.without, copies)
    rows = {name: rows[name].astype(smallest(schema.size(name))) for name in schema.names}
    kept = ~broken(schema, rows) & (weights > 0)
    if (part := float(weights[kept].sum() / weights.sum())) < LEAST_KEPT:
        raise UsageError(
            f"prior: {1 - part:.0%} of its rows break a structural rule of the schema, which says what cannot be. "
            "Correct the rules, or how the prior's values are recoded; or this is no prior for these data."
        )
    rows, weights, lent = {name: code[kept] for name, code in rows.items()}, weights[kept], lent[kept]
    record = {
        **stated,
        "rows": int(data.num_rows),
        "left_out": int((~known).sum()),
        **({"thinned": thinned} if thinned else {}),
        **({"against_rules": int((~kept).sum())} if not kept.all() else {}),
        "people": round(float(weights.sum()), 1),
        **({"without": list(rules.without)} if rules.without else {}),
        "sha256": digest([rows[name] for name in schema.names], weights),
    }
    identity = digest(record, densities) if densities else digest(record)
    return PriorRows(schema, rows, weights, record, identity, densities, lent=lent)


def _densities(
    schema: Schema,
    theirs: Mapping[str, str],
    data: pa.Table,
    rows: Codes,
    weights: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> dict[str, NDArray[np.float64]]:
    """Return a dict from column to weights (bins, places) of all rows' numbers, for columns drawn by a prior's.

    Args:
        schema: The columns.
        theirs: The prior's name for each column that it has.
        data: The rows, by the prior's names.
        rows: Their level numbers, of the rows that are `known`.
        weights: Their weights, of these rows.
        known: Mask of the rows that the schema lets in.
    """
    found = {}
    for name, other in theirs.items():
        column = schema.column(name)
        if isinstance(column, Numeric) and column.within == PRIOR:
            _, values, _ = encode_numeric(column, data.column(other))
            real = rows[name] < len(column.extents)
            found[name] = density_of(column, values[known][real], rows[name][real], weights[real], LENT_PLACE)
    return found


def _coded(schema: Schema, name: str, data: pa.ChunkedArray, rules: Rules) -> NDArray[np.int32]:
    """Return an array of the level number in column `name` of the schema of each value of the Arrow column `data`.

    `rules` recode values first; unknown ones are -1 if they "drop" them, else a UsageError.
    """
    column = schema.column(name)
    values = rules.recode.get(name)
    if values:
        data = _recoded(data, values)
    check_type(name, data.type)
    codes, *_ = encode_categorical(column, data) if isinstance(column, Categorical) else encode_numeric(column, data)
    strange = np.flatnonzero(codes < 0)
    if strange.size and rules.unknown == "refuse":
        import pyarrow as pa

        seen = Counter("null" if v is None else str(v) for v in data.take(pa.array(strange)).to_pylist())
        named = ", ".join(f"{value!r} in {number:,}" for value, number in seen.most_common(NAMED))
        more = f" and {len(seen) - NAMED} more values" if len(seen) > NAMED else ""
        raise UsageError(
            f"prior: {strange.size:,} of its {len(codes):,} rows have a value of {name} that the schema does not know: "
            f'{named}{more}. Say by recode which levels these are, list {name} under without, or set unknown = "drop".'
        )
    return codes


def _recoded(data: pa.ChunkedArray, values: Mapping[str, str]) -> pa.ChunkedArray:
    """Return the Arrow column `data` as texts, each replaced by its entry in `values`, if any; null stays."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = data.cast(pa.string())
    different = pc.unique(texts)
    names = pa.array([None if v is None else values.get(v, v) for v in different.to_pylist()], pa.string())
    return pa.chunked_array([names.take(pc.index_in(texts.combine_chunks(), different))])


def _thinned(rows: Codes, weights: NDArray[np.float64], most: int) -> tuple[Codes, NDArray[np.float64]]:
    """Return (at most `most` of the rows, codes by column, evenly spaced; weights scaled to the old total)."""
    chosen = np.flatnonzero(weights > 0)
    if chosen.size <= most:
        return rows, weights
    people = weights.sum()
    chosen = chosen[np.linspace(0, chosen.size - 1, most).astype(np.intp)]
    weights = weights[chosen]
    return {name: code[chosen] for name, code in rows.items()}, weights * people / weights.sum()


def _steps() -> Iterator[float]:
    """Yield the fractional parts of the primes' square roots, which are linearly independent over the rationals."""
    number = 2
    while True:
        if all(number % smaller for smaller in range(2, math.isqrt(number) + 1)):
            yield math.sqrt(number) % 1.0
        number += 1


def _completed(
    schema: Schema, rows: Codes, weights: NDArray[np.float64], without: Sequence[str], copies: int
) -> tuple[Codes, NDArray[np.float64], NDArray[np.bool_]]:
    """Return (rows, weights, mask): `copies` of each row, completed by the columns `without`, and rows added.

    Rows are codes by column of the schema; weights are split among copies. The mask tells the rows that were added for
    missing levels.
    """
    # one copy per level of a missing column, with the weight split evenly
    missing = [name for name in schema.names if name in without]
    place = np.repeat(np.arange(weights.size), copies)
    rows, weights = {name: code[place] for name, code in rows.items()}, weights[place] / copies
    for name, step in zip(missing, _steps(), strict=False):
        # Weyl: multiples of irrational numbers are equidistributed, jointly if independent over the rationals
        rows[name] = (np.arange(place.size) * step % 1.0 * schema.size(name)).astype(np.int32)
    known = weights.size
    for name in schema.names:
        # rows of any other level stand in: the other columns of a missing level are unknown
        there = np.bincount(rows[name], weights=weights, minlength=schema.size(name)) > 0
        for level in np.flatnonzero(~there):
            lent = np.unique(np.linspace(0, weights.size - 1, ROWS_OF_LEVEL).astype(np.intp))
            rows = {c: np.concatenate([code, code[lent]]) for c, code in rows.items()}
            rows[name][-lent.size :] = level
            weights = np.concatenate([weights, np.full(lent.size, LENT_LEVEL / lent.size)])
    return rows, weights, np.arange(weights.size) >= known
