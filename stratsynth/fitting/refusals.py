"""Refusals before a reservation: by public facts alone first, and at the very last by the content of the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stratsynth.accounting.public_budget import check_private_epsilon
from stratsynth.accounting.units import protecting
from stratsynth.checks import check_seed, one_of, quoted_value
from stratsynth.data.table import PrivateTable
from stratsynth.errors import Unsupported, UsageError, WeightsError
from stratsynth.mechanisms import Mechanism, Prepared, prepare
from stratsynth.mechanisms.prepared import check_budget, check_delta, check_served, origins_of
from stratsynth.mechanisms.with_sums import check_sums_served
from stratsynth.models.base import Returns
from stratsynth.schema import Categorical, Nested
from stratsynth.schema.text import meaning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stratsynth.accounting.budget import Budget
    from stratsynth.data.backends import Backend
    from stratsynth.data.sources import Source
    from stratsynth.priors import Prior
    from stratsynth.release.controls import Benchmark
    from stratsynth.schema import Schema

CONTROLS = (
    "benchmark: a table of totals is the private table itself. Take totals that were published; exact ones of the "
    "private rows are totals of cells, declared by exact = true, and not protected."
)


def check_arguments(table: PrivateTable, budget: Budget, seed: int | None) -> None:
    """Raise UsageError unless the private table is opened, schema reviewed, budget and delta sound, and seed valid."""
    if not isinstance(table, PrivateTable):
        data = "data" if quoted_value(table).endswith(" object") else quoted_value(table)
        raise UsageError(
            f"the table must come from open_table, not {quoted_value(table)}; write open_table({data}, schema=...)."
        )
    check_budget(budget)
    if not table.public:
        check_private_epsilon(budget.epsilon)
    table.schema.ready(public=table.public)
    check_delta(budget, table.declared_size)
    check_seed(seed)


def prepared_for(
    mechanism: Mechanism[Any] | Prepared | str, table: PrivateTable, budget: Budget, prior: Prior | None
) -> Prepared:
    """Return the mechanism `Prepared` for a private table and budget; UsageError for others, and the table as prior."""
    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.priors import Prior

    if not isinstance(mechanism, Prepared):
        for source, _, _ in private_parts(table):
            if source is not None and isinstance(prior, Prior) and not table.public:
                check_public_inputs(source, prior=prior.origins)  # before its rows are read, and their values named
        return prepare(mechanism, table.schema, budget, table.declared_size, prior)
    facts = mechanism.public
    if prior is not None:
        raise UsageError("what is prepared has its prior already; give it to `prepare`.")
    if (mechanism.declared or facts.schema, facts.size, mechanism.budget.plain) != (
        table.schema,
        table.declared_size,
        protecting(budget, table.schema).plain,
    ):
        raise UsageError("this was prepared for another schema, size or budget; prepare it again for this table.")
    return mechanism


def check_against_table(prepared: Prepared, table: PrivateTable) -> None:
    """Refuse, for a prepared fit, questions that a private table's backend cannot answer, and its rows used as public.

    The former, and a plain function on private rows, are Unsupported; inputs that are the table, and columns of
    integers without such levels, a UsageError.
    """
    how = prepared.mechanism
    database = table.source is not None and table.source.engine == "duckdb"
    check_sums_served(how, table.backend.reads)
    check_served(how.name, how.needs, table.backend.reads, database=database)
    if how.public_rows_only and not table.public:
        raise Unsupported(
            f"{how.title}: a plain function claims no privacy, so it may see public rows only. Declare the data "
            "public, if they are; a synthesizer with a privacy account of its own is External(function, by=...)."
        )
    check_types(table)
    if not table.public:
        for source, _, schema in private_parts(table):
            check_inputs(prepared, private=source, schema=schema)


def private_parts(table: PrivateTable) -> Iterator[tuple[Source | None, Backend, Schema | None]]:
    """Yield (`Source`, `Backend`, own `Schema` if not the fit's) of each file of a `PrivateTable`: one, or two."""
    from stratsynth.data.backends import Memory
    from stratsynth.data.linked_tables import LinkedBackend

    held = table.backend
    if not isinstance(held, LinkedBackend):
        yield table.source, held, None
        return
    for source, schema in ((held.parents, held.schema.linked.parent), (held.children, held.schema.linked.child)):
        yield source, Memory(source, schema), schema


def check_groups(what: str, groups: object) -> None:
    """Raise UsageError unless `groups` is one of the texts "declared" and "measured"; `what` begins the message."""
    one_of(what, groups, ("declared", "measured"))


def check_measured(prepared: Prepared) -> None:
    """Raise UsageError for measured sizes if a prepared fit has no strata, no rows, or shares measured anyway."""
    layout, how = prepared.strata, prepared.mechanism
    if layout is not None and how.returns == Returns.TABLES:
        raise UsageError(
            'groups = "measured": the strata of two linked tables are drawn by their public shares; leave it at '
            '"declared".'
        )
    if layout is None or layout.families or how.returns != Returns.ROWS:
        raise UsageError(
            f'groups = "measured": rows follow the measured sizes of strata, and {how.title} has no strata of which '
            'rows are drawn. Add strata, or leave it at "declared".'
        )
    if layout.weights.asked:
        raise UsageError('groups = "measured": private weights are measured already; leave it at "declared".')


def check_controls(prepared: Prepared, table: PrivateTable, benchmark: Benchmark) -> None:
    """Refuse a benchmark with a UsageError: of a prepared fit without rows, of the private table, or contradictory.

    Nothing private is read: places are compared, and then the tables are read.
    """
    how = prepared.mechanism
    if how.returns != Returns.ROWS:
        raise UsageError(f"benchmark: totals are those of rows, and {how.title} makes none.")
    if not table.public:
        refuse_private_controls(benchmark, prepared.public.schema, private=table.source)
    benchmark.read(prepared.public.schema)


def check_exact(begun: frozenset[str], otherwise: str, exact: bool) -> None:
    """Raise UsageError for an interrupted fit whose exact totals were switched on or off meanwhile.

    Its reservation says what it does not protect, and its certificate would say something else.

    Args:
        begun: Set of hashes of fixed sections with which equal fits were begun that are not over, but for this one's.
        otherwise: Hash of this fit's fixed sections if it had exact totals and has none, or the reverse.
        exact: True if the fit has exact totals now.
    """
    if otherwise in begun:
        was, other = ("without", "with") if exact else ("with", "without")
        raise UsageError(
            f"benchmark: this fit was begun {was} exact totals of the private rows, was interrupted, and would go on "
            f"{other} them: its ledger says otherwise. Go on {was} them; for a fit {other} them, charged by itself, "
            "take another seed."
        )


def refuse_private_controls(
    benchmark: Benchmark, schema: Schema, private: Source | None = None, rows: Backend | None = None
) -> None:
    """Raise UsageError for the private table among control tables, or a copy of it.

    Args:
        benchmark: The control tables.
        schema: The schema that a fit reads rows by.
        private: The private table's `Source`, compared by path, inode and object.
        rows: The `Backend` with the private rows, compared by content.
    """
    from stratsynth.data.overlap import check_public_inputs

    try:
        check_public_inputs(private, weights=[each.data for each in benchmark.tables], rows=rows, schema=schema)
    except WeightsError:
        raise UsageError(CONTROLS) from None


def check_types(table: PrivateTable) -> None:
    """Raise UsageError for a private table with a column of integers of which all levels are texts: no row would count.

    Of floats nothing is said by their type: a column without a value is one of floats.
    """
    source = table.source
    types, own = (None, {}) if source is None else (source.types(), source.own_types())
    for name, column in table.schema.columns.items():
        if not isinstance(column, Categorical) or column.outside is not None or column.not_applicable is not None:
            continue
        codes = column.single.levels if isinstance(column, Nested) else column.levels
        kind = types.field(name).type if types is not None and name in types.names else None
        whole = own.get(name) == "int64" or (kind is not None and pa.types.is_integer(kind))
        if whole and all(meaning(code) is None for code in codes):
            raise UsageError(
                f"column {name} holds integers, and none of its levels is a number: {codes[0]!r}, for one. Give the "
                "schema the codes that the data have, or write the data in the schema's levels. Nothing was read."
            )


def check_inputs(
    prepared: Prepared, private: Source | None = None, rows: Backend | None = None, schema: Schema | None = None
) -> None:
    """Refuse, with a WeightsError, the private table among weights or prior of a fit, or a copy of it.

    Args:
        prepared: The fit, with its weights and its prior.
        private: The private table's `Source`, compared by path, inode and object.
        rows: The `Backend` with the private rows, compared by content.
        schema: The `Schema` of these rows, where it is not the fit's.
    """
    from stratsynth.data.overlap import check_public_inputs

    prior = () if prepared.prior is None else prepared.prior.origins
    translated = () if prepared.prior is None else prepared.prior.translated
    weights = tuple(origins_of(prepared.mechanism, prepared.strata))
    schema = schema or prepared.public.schema
    check_public_inputs(private, weights=weights, prior=prior, translated=translated, rows=rows, schema=schema)


def check_before_reserving(
    prepared: Prepared, table: PrivateTable, folder: Path | None, benchmark: Benchmark | None = None
) -> None:
    """Raise UsageError for an existing release `folder`, a full disk, copies of the private table among public inputs.

    The inputs are those of `prepared`, and the `benchmark`. A resumed fit has passed this. Contents are compared, so
    the table and the public inputs are read; none is kept.
    """
    from stratsynth.data.stream import Stream
    from stratsynth.files.scratch import check_room
    from stratsynth.planning.rows import held_bytes
    from stratsynth.release.folder import check_new

    if folder is not None:
        check_new(folder, probe=True)
    if isinstance(table.backend, Stream):
        check_room(held_bytes(prepared))
    if not table.public:
        for _, rows, schema in private_parts(table):
            check_inputs(prepared, rows=rows, schema=schema)
        if benchmark is not None:
            refuse_private_controls(benchmark, prepared.public.schema, rows=table.backend)
