"""Two linked private tables: their rows, fingerprint and account. Nothing is read before a charge."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from os import PathLike

from stratsynth.accounting.process import UnchargedLedger
from stratsynth.accounting.registry import BothRegistries, Registry
from stratsynth.data.fingerprint import fingerprint, keyed
from stratsynth.data.linked_rows import LinkedRows, read_linked
from stratsynth.data.same_rows import marks_of
from stratsynth.data.sources import Source
from stratsynth.data.table import PrivateTable, ledger_of
from stratsynth.errors import Unsupported
from stratsynth.schema import Schema
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.schema.linked import LinkedSchema


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
        """Return itself for its own `schema`; Unsupported for any other."""
        if schema != self.schema:
            raise Unsupported("linked tables are counted by their own schema, and by no other.")
        return self

    def rows(self, *, numbers: bool = True) -> LinkedRows:
        """Read both tables, and return the counted ones as `LinkedRows`; there are no `numbers`."""
        return read_linked(self.schema, self.parents, self.children)


def private_tables(
    parents: Source, children: Source, linked: LinkedSchema, size: int | None, ledger: str | PathLike[str] | None,
    cap: float | None, account: str | None, reason: str | None, *, public: bool,
) -> PrivateTable:  # fmt: skip
    """PrivateTable of `Source`s by a linked schema; size, ledger, cap, account, reason, public as in `open_tables`."""
    rows = LinkedBackend(parents, children, linked.counted)
    if public:
        return PrivateTable(rows, linked.counted, size, UnchargedLedger(), public)
    lists = [Registry(source.path) for source in (parents, children) if source.path is not None]
    registry = BothRegistries(lists[1].data, other=lists[0]) if len(lists) > 1 else next(iter(lists), None)
    contents = partial(marks_of, children, linked.child)
    kept = ledger_of(children, rows, registry, contents, ledger, cap, account, reason)
    return PrivateTable(rows, linked.counted, size, kept)
