"""Measured tables of a release, by the records they count: each stratum's, and those of all records.

Strata are the innermost ones. Columns that define them are constant in a stratum, or vary among its merged levels. If
no stratum was measured, all records are the only stratum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stratsynth.answers.across import Slice, slices
from stratsynth.answers.clipped import ClippedSum, clipped_sums
from stratsynth.errors import ReleaseError, Unsupported
from stratsynth.models.mixture import Mixture
from stratsynth.schema.inside import Inside, declared
from stratsynth.strata import Stratum, crossing

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.certificate import Certificate
    from stratsynth.models import Model
    from stratsynth.schema import Numeric, Schema
    from stratsynth.strata import StratumPath

    Floats = NDArray[np.float64]

Columns = tuple[str, ...]

MOST_STRATA = 500
"""Largest number of strata with which tables over some of the columns that define them are combined."""
CHOSEN = (
    "Which tables were measured was chosen from earlier noisy answers. An interval is given only where a table that "
    "covers the question was chosen, in each group or, for bounds, in some, and takes the noise of each table as it is "
    "by itself; over many fits such intervals were found to hold as often as they say (scripts/bench answers)."
)
"""Caveat on intervals of a release whose mechanism chose its tables."""
UNSHARED = (
    "From tables, groups are added up as they were measured: public shares have no part in that, and so no answer from "
    "tables has an interval for the design error of the shares ({}). How a survey drew the private rows is in no "
    "interval either: their own replicate weights are private, and were not asked."
)
"""Caveat on intervals of a release whose public shares state the error of their survey."""


@dataclass(frozen=True, eq=False, slots=True)
class Noisy:
    """Noisy contingency table: counts of records, one axis per column, with independent noise of one variance."""

    columns: Columns
    values: Floats
    variance: float


@dataclass(eq=False)
class Leaf:
    """One stratum: the levels its records can have in the columns that define strata, and its tables."""

    label: str
    """Label of the stratum in the measurements."""
    codes: Mapping[str, list[int]]
    """Defining column -> level numbers in the schema; empty for the stratum of all records."""
    tables: list[Noisy] = field(default_factory=list)
    people: float = math.inf
    """Public size in records; infinite if unknown."""

    def merged(self, names: Sequence[str]) -> Columns:
        """Return a tuple of those `names` of columns that define this stratum and have several levels in it."""
        return tuple(name for name in names if len(self.codes.get(name, ())) > 1)


@dataclass(frozen=True, eq=False)
class Tables:
    """All measured tables of a release, ready for least squares."""

    schema: Schema
    by: frozenset[str]
    """Columns that define the strata; empty if all records are the only stratum."""
    leaves: tuple[Leaf, ...]
    """Disjoint strata that together hold all records."""
    everybody: tuple[Noisy, ...]
    """Tables of all records, over columns that define no strata."""
    sums: tuple[ClippedSum, ...] = ()
    """Sums of numeric columns up to their clip, measured beside the tables."""
    laws: Mapping[str, Inside] = field(default_factory=dict)
    """Laws of numbers within bins, by column, where they are more than the schema's."""
    across: tuple[Slice, ...] = ()
    """Counts of several strata together, from tables of all records over some of the columns that define strata."""

    def law(self, column: str) -> Inside:
        """Return the `Inside` by which numbers of the numeric `column` lie within bins; by default the schema's."""
        return self.laws[column] if column in self.laws else declared(cast("Numeric", self.schema.column(column)))

    def sizes(self, leaf: Leaf) -> dict[str, int]:
        """Return a dict from each of the schema's columns to the number of levels it has in the stratum `leaf`."""
        inside = {name: len(codes) for name, codes in leaf.codes.items()}
        return {name: inside.get(name, self.schema.size(name)) for name in self.schema.names}


def read_tables(
    schema: Schema,
    certificate: Certificate,
    measurements: pa.Table,
    model: Callable[[], Model],
    laws: Mapping[str, Inside] | None = None,
) -> Tables:
    """Return the `Tables` of a release: its measurements, with the strata that they belong to.

    Args:
        schema: All columns of the release.
        certificate: The certificate, which names the strata.
        measurements: Every noisy answer, an Arrow table.
        model: Function that loads the model; called only if strata are split again, which the model alone records.
        laws: `Inside` laws of numbers within bins, by column, where they are more than the schema's; None for none.

    Raises:
        ReleaseError: Measurements that do not fit the schema.
        Unsupported: Strata that overlap, or are divided by different columns.
    """
    found = list(measured(measurements))
    leaves = [Leaf("", {})]
    if any(label for label, _, _, _ in found):
        public, leaves = _public(certificate), []
        for path in strata_paths(schema, certificate, model):
            called = "|".join(label_of(stratum, certificate) for stratum in path)
            # of a merge that is divided again the last word is the narrowest
            codes = {name: several for stratum in path for name, several in stratum.codes(schema).items()}
            leaves.append(Leaf(called, codes, people=public.get(called, math.inf)))
        if len({frozenset(leaf.codes) for leaf in leaves}) > 1:
            raise Unsupported("query: strata that are divided by different columns are not supported; draw rows.")
    by = frozenset(leaves[0].codes)
    named, everybody, across = {leaf.label: leaf for leaf in leaves}, [], list[Slice]()
    for label, columns, values, sigma in found:
        if label in named:
            leaf = named[label]
            leaf.tables.append(_shaped(schema, leaf, columns, values, sigma**2))
        elif label == "":
            table = _shaped(schema, Leaf("", {}), columns, values, sigma**2)
            if by <= set(columns):  # a table with the strata's own columns: its slices are tables of the strata
                for leaf in leaves:
                    leaf.tables.append(_cut(table, leaf))
            elif by.isdisjoint(columns):
                everybody.append(table)
            elif len(leaves) <= MOST_STRATA:  # estimates stay unbiased without it
                across += slices(table, leaves, by)
    for leaf in leaves:
        leaf.tables = _joined(leaf.tables)
    sums = clipped_sums(schema, measurements)
    return Tables(schema, by, tuple(leaves), tuple(_joined(everybody)), sums, laws or {}, tuple(across))


def conditions(certificate: Certificate, *, tables: bool = True) -> tuple[str, ...]:
    """Return a tuple of sentences on assumptions of a certificate's intervals.

    One if answers chose questions; one if `tables` is True and public shares state their survey's design error.
    """
    chosen = any(charge.kind == "choose" for charge in certificate.charges)
    design = certificate.weights.design if tables else None
    return (*([CHOSEN] if chosen else []), *([UNSHARED.format(design)] if design else []))


def of_tables(measurements: pa.Table) -> pa.Table:
    """Return the rows of an Arrow table of measurements that are cells of tables, without those of noisy sums."""
    if "sum" not in measurements.column_names:
        return measurements
    import pyarrow as pa
    import pyarrow.compute as pc

    column = measurements.column("sum")
    if pa.types.is_dictionary(column.type):  # look each dictionary entry up once, not in every row
        chunks = [pc.take(pc.equal(chunk.dictionary.cast("string"), ""), chunk.indices) for chunk in column.chunks]
        return measurements.filter(pa.chunked_array(chunks, pa.bool_()))
    return measurements.filter(pc.equal(column, ""))


def measured(table: pa.Table) -> Iterator[tuple[str, Columns, Floats, float]]:
    """Yield (stratum's label, columns, cells as a flat array, noise's deviation) of each table of measurements.

    `table` is the Arrow table of them, ReleaseError if damaged; cells are row-major.
    """
    table = of_tables(table)
    cells, values = _numbers(table.column("cell").chunks, "i8"), _numbers(table.column("value").chunks, "i8")
    starts = np.flatnonzero(cells == 0)
    if len(cells) and (not len(starts) or starts[0] != 0):
        raise ReleaseError("the release's measurements are damaged: a table lacks its first cell.")
    labels, cliques = (_texts(table.column(name), starts) for name in ("stratum", "clique"))
    sigmas = _numbers(table.column("sigma").chunks, "f8")[starts]
    parts = np.split(values.astype(np.float64), starts[1:])
    for label, clique, part, sigma in zip(labels, cliques, parts, sigmas, strict=False):
        if not (math.isfinite(sigma) and sigma > 0):
            raise ReleaseError("the release's measurements are damaged: a sigma is no positive number.")
        yield label, tuple(clique.split(",")) if clique else (), part, float(sigma)


def _numbers(chunks: Sequence[Any], kind: str) -> NDArray[Any]:
    """Return the numbers in Arrow `chunks` as one array of type `kind`, without pandas; ReleaseError for nulls."""
    found, size = [np.zeros(0, kind)], np.dtype(kind).itemsize
    for chunk in chunks:
        if chunk.null_count:
            raise ReleaseError("the release's measurements are damaged: a number is missing.")
        if len(chunk):
            found.append(np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * size))
    return np.concatenate(found)


def _texts(column: pa.ChunkedArray, places: NDArray[np.intp]) -> list[str]:
    """Return a list of the texts of a dictionary-encoded Arrow column at the row numbers `places`."""
    known: list[str] = []
    codes: list[NDArray[np.int64]] = []
    for chunk in column.chunks:
        codes.append(len(known) + _numbers([chunk.indices], "i4"))
        known += chunk.dictionary.to_pylist()
    flat = np.concatenate([np.zeros(0, np.int64), *codes])
    return [known[code] for code in flat[places]]


def strata_paths(schema: Schema, certificate: Certificate, model: Callable[[], Model]) -> Iterator[StratumPath]:
    """Yield the paths of a certificate's innermost strata, tuples of strata: by schema, or, if nested, by the model.

    `model` is a function that loads it. Unsupported if they overlap.
    """
    stated = certificate.strata
    if stated.families:
        raise Unsupported("query: strata that overlap are not supported, as a row is counted in several of them.")
    if any(len(charge.path) > 1 for charge in certificate.charges):
        yield from _paths(model())
        return
    merges = [Stratum.of(merge.levels) for merge in stated.merged]
    gone = {cell for merge in merges for cell in merge.cells()}
    yield from ((stratum,) for stratum in crossing(schema, stated.by) if not gone.intersection(stratum.cells()))
    yield from ((merge,) for merge in merges)


def _paths(model: Model, above: StratumPath = ()) -> Iterator[StratumPath]:
    """Yield the paths of a model's innermost strata, each a tuple of strata after `above`."""
    for stratum, part in model.mixture().parts.items():
        if isinstance(part, Mixture):
            yield from _paths(part, (*above, stratum))
        else:
            yield (*above, stratum)


def _public(certificate: Certificate) -> Mapping[str, float]:
    """Return a dict from label of a stratum to its declared number of records, by `certificate`.

    Strata that were measured to be larger are left out.
    """
    found = certificate.declared_and_measured
    size = next(
        (each.declared if each.declared is not None else each.measured for each in found if not each.stratum), 0
    )
    return {
        each.stratum: each.declared if each.share is None else each.share * size
        for each in found
        if each.what == "share"
        and each.declared is not None
        and not (each.verdict == "differs" and each.measured > each.declared)
        and each.verdict not in {"more", "far more"}  # words of older certificates
    }


def label_of(stratum: Stratum, certificate: Certificate) -> str:
    """Return the label, a text, that `stratum` has in measurements: of a merged one, its name in the certificate."""
    if stratum.is_merge:
        levels = dict(stratum.items)
        for merge in certificate.strata.merged:
            if merge.levels == levels:
                return merge.stratum
    return stratum.label


def _shaped(schema: Schema, leaf: Leaf, columns: Columns, values: Floats, variance: float) -> Noisy:
    """Return a `Noisy` of `values`, a flat array, and `variance`, shaped by the schema's `columns` as in `leaf`.

    ReleaseError for other columns or numbers of cells.
    """
    if len(set(columns)) < len(columns) or not set(columns) <= set(schema.names):
        raise ReleaseError("the release's measurements are damaged: a table's columns are not the schema's.")
    shape = [len(leaf.codes[name]) if name in leaf.codes else schema.size(name) for name in columns]
    if math.prod(shape) != values.size:
        raise ReleaseError(f"the release's measurements are damaged: the table {','.join(columns)} has other cells.")
    return Noisy(columns, values.reshape(shape), variance)


def _cut(table: Noisy, leaf: Leaf) -> Noisy:
    """Return a `Noisy`: the part of `table`, of everybody, that counts the stratum `leaf`, without constant axes."""
    values = table.values
    for axis, name in enumerate(table.columns):
        if name in leaf.codes:
            values = values.take(leaf.codes[name], axis=axis)
    varies = [name for name in table.columns if len(leaf.codes.get(name, (0, 0))) > 1]
    return Noisy(tuple(varies), values.reshape([values.shape[table.columns.index(c)] for c in varies]), table.variance)


def _joined(tables: Sequence[Noisy]) -> list[Noisy]:
    """Return a list of `Noisy`, one for each set of columns: `tables` of the same ones averaged by inverse variance."""
    found: dict[frozenset[str], list[Noisy]] = {}
    for table in tables:
        found.setdefault(frozenset(table.columns), []).append(table)
    joined = []
    for several in found.values():
        if len(several) == 1:
            joined += several
            continue
        columns, worth = several[0].columns, [1 / t.variance for t in several]
        turned = [t.values.transpose([t.columns.index(name) for name in columns]) for t in several]
        values = sum(w * v for w, v in zip(worth, turned, strict=True)) / math.fsum(worth)
        joined.append(Noisy(columns, np.asarray(values), 1 / math.fsum(worth)))
    return joined
