"""Two linked private tables as users hold them. Opening them reads their headers and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Any

from stratsynth.accounting.process import UnchargedLedger
from stratsynth.accounting.registry import Registry
from stratsynth.checks import check_account, check_integer, quoted_value
from stratsynth.data.fingerprint import fingerprint, keyed
from stratsynth.data.linked_rows import LinkedRows, read_linked
from stratsynth.data.sources import Source, open_source
from stratsynth.data.table import PrivateTable, check_ledger, ledger_of
from stratsynth.errors import Unsupported, UsageError
from stratsynth.schema import Schema
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.schema.encoding import locate
from stratsynth.schema.linked import LinkedSchema
from stratsynth.schema.values import check_type


@dataclass(frozen=True)
class LinkedBackend:
    """Two tables that are read whole, and held in memory as those that are counted."""

    parents: Source
    children: Source
    schema: CountedTables = field(repr=False)
    reads = frozenset({"tables"})

    def fingerprint(self, key: bytes) -> str:
        """Return the hash of both tables' content, a text, under the secret bytes `key`."""
        return keyed(key, (fingerprint(each, key).encode() for each in (self.parents, self.children)))

    def counted_by(self, schema: Schema) -> LinkedBackend:
        """Return itself for its own schema; refuse any other."""
        if schema != self.schema:
            raise Unsupported("linked tables are counted by their own schema, and by no other.")
        return self

    def rows(self, *, numbers: bool = True) -> LinkedRows:
        """Read both tables, and return the counted ones; there are no `numbers`."""
        return read_linked(self.schema, self.parents, self.children)


@dataclass(frozen=True)
class BothRegistries(Registry):
    """The lists of accounts of two linked files: a ledger is in both, and refused by either."""

    other: Registry = field(kw_only=True)

    def refuse_other(self, *asked: Any) -> None:
        """Refuse another ledger of either file, as `Registry` does."""
        self.other.refuse_other(*asked)
        super().refuse_other(*asked)

    def note(self, *asked: Any, **new: Any) -> str:
        """List a ledger beside both files; return the certificate's note where it could not be."""
        return self.other.note(*asked, **new) or super().note(*asked, **new)


def open_tables(
    parent: Any,
    child: Any,
    *,
    schema: LinkedSchema | str | PathLike[str],
    declared_size: int | None = None,
    ledger: str | PathLike[str] | None = None,
    ledger_epsilon: float | None = None,
    account: str | None = None,
    new_account: str | None = None,
    public: bool = False,
) -> PrivateTable:
    """Return two linked tables to fit on, such as households and persons. Nothing but their headers is read.

    Args:
        parent: The parent table: the path of a file, a pandas or polars frame, or an Arrow table.
        child: The child table, with the parent's key in each row.
        schema: A `LinkedSchema`, or the path of its file, of format stratsynth-schema/2.
        declared_size: The publicly known approximate number of parents that have a child row.
        ledger: The file of the account of both tables, as for `open_table`.
        ledger_epsilon: As there.
        account: As there.
        new_account: As there.
        public: As there.

    Raises:
        SchemaError: An invalid schema, or data that lack one of its columns.
        UsageError: Data that cannot be read, and arguments that contradict each other.
    """
    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.data.same_rows import marks_of

    check_integer("declared_size", declared_size, 1, 2**53, optional=True)
    check_account(ledger_epsilon, account, new_account)
    check_ledger(ledger, ledger_epsilon, account, public=public)
    if not isinstance(schema, LinkedSchema | str | PathLike):
        raise UsageError(f"linked tables need a LinkedSchema, or the path of its file, not {quoted_value(schema)}.")
    known = schema if isinstance(schema, LinkedSchema) else LinkedSchema.load(schema)
    parents, children = both = open_source(parent), open_source(child)
    for source, names in zip(
        both, ((*known.parent.names, known.key), (*known.child.names, *known.beside)), strict=True
    ):
        if source.engine is not None:
            raise Unsupported("linked tables are files, or frames in memory: write them to Parquet files.")
        types = source.types()
        for name, place in zip(names, locate(names, source.columns()), strict=True):
            if types is not None:
                check_type(name, types.field(place).type)
    rows = LinkedBackend(parents, children, known.counted)
    if public:
        check_public_inputs(declared=both)
        return PrivateTable(rows, known.counted, declared_size, UnchargedLedger(), public)
    lists = [Registry(source.path) for source in both if source.path is not None]
    registry = BothRegistries(lists[1].data, other=lists[0]) if len(lists) > 1 else next(iter(lists), None)
    contents = partial(marks_of, children, known.child)
    kept = ledger_of(children, rows, registry, contents, ledger, ledger_epsilon, account, new_account)
    return PrivateTable(rows, known.counted, declared_size, kept, public)
