"""Opening of two linked tables: arguments are checked, and the headers of both tables. No row is read."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from stratsynth.checks import check_account, check_integer, quoted_value
from stratsynth.data.linked_tables import private_tables
from stratsynth.data.sources import open_source
from stratsynth.errors import SchemaError, Unsupported, UsageError
from stratsynth.inputs import check_ledger
from stratsynth.schema.encoding import locate
from stratsynth.schema.linked import LinkedSchema
from stratsynth.schema.values import check_type

if TYPE_CHECKING:
    from stratsynth.data.table import PrivateTable


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
    """Return the `PrivateTable` of two linked tables, such as households and persons. Only their headers are read.

    Args:
        parent: The parent table: the path of a file, a pandas or polars frame, or an Arrow table.
        child: The child table, with the parent's key in each row.
        schema: A `LinkedSchema`, or the path of its file, of format stratsynth-schema/2.
        declared_size: The publicly known approximate number of parents that have a child row.
        ledger: The file of the account of both tables, as for `open_table`.
        ledger_epsilon: The largest total epsilon of all fits on these tables; set when the ledger is made.
        account: The name under which several versions of these tables share the ledger.
        new_account: The reason to begin a ledger, or fit without one, beside the account that a file has already.
        public: True for research on public data: nothing is charged, and releases state that they are not private.

    Raises:
        SchemaError: An invalid schema, or data that lack one of its columns.
        UsageError: Data that cannot be read, and arguments that contradict each other.
    """
    from stratsynth.data.overlap import check_public_inputs

    check_integer("declared_size", declared_size, 1, 2**53, optional=True)
    check_account(ledger_epsilon, account, new_account)
    check_ledger(ledger, ledger_epsilon, account, public=public)
    if not isinstance(schema, LinkedSchema | str | PathLike):
        raise UsageError(f"linked tables need a LinkedSchema, or the path of its file, not {quoted_value(schema)}.")
    known = schema if isinstance(schema, LinkedSchema) else LinkedSchema.load(schema)
    parents, children = both = open_source(parent), open_source(child)
    wanted = (*known.parent.names, known.key), (*known.child.names, *known.beside)
    for table, source, names in zip(known.names, both, wanted, strict=True):
        if source.engine is not None:
            raise Unsupported("linked tables are files, or frames in memory: write them to Parquet files.")
        types = source.types()
        try:
            for name, place in zip(names, locate(names, source.columns()), strict=True):
                if types is not None:
                    check_type(name, types.field(place).type)
        except SchemaError as error:
            swapped = all(set(each) <= set(other.columns()) for each, other in zip(wanted, both[::-1], strict=True))
            hint = f". The two tables are in the wrong order: the {known.names[0]} table comes first" if swapped else ""
            raise SchemaError(f"{table}: {error}{hint}") from None
    if public:
        check_public_inputs(declared=both)
    account_of = (ledger, ledger_epsilon, account, new_account)
    return private_tables(parents, children, known, declared_size, *account_of, public=public)
