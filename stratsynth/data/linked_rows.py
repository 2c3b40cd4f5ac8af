"""Rows of two linked tables, as the driver counts them: tables in each of which a key weighs what one row may.

Every counted row is a function of its key's own rows, in both files. What cannot be read as meant is settled by these
in silence: rows that the schema does not admit, child rows without a counted parent, keys of several parent rows or of
no child row are left out; child rows are ordered by the declared columns, equal ones by all their codes and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa

from stratsynth.data.linked_slots import Array, FileRows, Slot, counted_slots, kind_slot, of_kind
from stratsynth.driver.rows import StoredRows
from stratsynth.errors import LedgerError, StratsynthError
from stratsynth.schema import Categorical, Numeric
from stratsynth.schema.counted_tables import PARENT, SLOTS, CountedTables, named, slot_of
from stratsynth.schema.encoding import encode_categorical, encode_numeric, smallest
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.values import as_texts, check_type, floats, hashable, identities
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    from stratsynth.data.sources import Source
    from stratsynth.questions.reading import Clique, Ints
    from stratsynth.schema import Schema
    from stratsynth.schema.linked import LinkedSchema
    from stratsynth.strata import StratumPath

ORDER = Numeric(-(2.0**53), 2.0**53, bins=1)
"""Column by which the numbers are read that order child rows and are not counted."""


class LinkedRows:
    """The rows of the counted tables, of which a table of counts may have the columns of one."""

    def __init__(self, counted: CountedTables, slots: Mapping[str, Slot]) -> None:
        """Take the rows of each counted table in `slots`; the weights that count are what `shared` leaves of them."""
        self._slots, self._units = {}, {}
        for slot, rows in slots.items():
            schema, weights = counted.of(slot), shared(rows.owner, rows.weight, counted.row_weight.most)
            codes = {named(slot, name): column for name, column in rows.codes.items()}
            codes = {name: column.astype(smallest(schema.size(name))) for name, column in codes.items()}
            self._units[slot] = frozenset(slots[PARENT if slot in SLOTS else slot].codes)  # one value a key
            self._slots[slot] = StoredRows([CodedRows(schema, codes, {}, len(weights), weights)])

    def counts(self, asked: Sequence[tuple[StratumPath, Sequence[Clique]]]) -> list[list[Ints]]:
        """Return a list per (path, cliques) `asked`: each clique's exact table, by weight; or StratsynthError."""
        return [[self._table(path, clique) for clique in cliques] for path, cliques in asked]

    def _table(self, path: StratumPath, clique: Clique) -> Ints:
        slot, by = slot_of(clique[0]), {column for stratum in path for column in stratum.columns}
        if any(slot_of(name) != slot for name in clique) or slot not in self._units or not by <= self._units[slot]:
            raise StratsynthError("linked tables: a question counts columns of one counted table, by those of a key.")
        own = tuple(Stratum(tuple((named(slot, c), levels) for c, levels in s.items), s.names) for s in path)
        return self._slots[slot].counts([(own, [clique])])[0][0]

    def sums(self, *_: Any) -> NoReturn:
        """Raise StratsynthError always: a vector of a row would have to be weighed as its key's share."""
        raise StratsynthError("linked tables: rows are counted, and nothing else is read of them.")

    columns = frame = sums


def shared(owner: Array, weights: Array, most: int) -> Array:
    """Return `weights`, an int array by row, 0 for rows of a key (array `owner`) that weigh over `most` together."""
    weights = np.clip(weights, 0, most).astype(np.int64)
    return np.where(np.bincount(owner, weights)[owner] <= most, weights, 0) if len(owner) else weights


def read_linked(counted: CountedTables, parents: Source, children: Source) -> LinkedRows:
    """Return `LinkedRows` of two `Source`s by `CountedTables`; LedgerError, or StratsynthError of fixed words."""
    linked = counted.linked
    try:
        above = parents.read((*linked.parent.names, linked.key))
        below = children.read((*linked.child.names, *linked.beside))
        return LinkedRows(counted, slots_of(linked, above, below, counted.row_weight.most))
    except LedgerError:
        raise
    except Exception:  # noqa: BLE001 - even the class of what went wrong may depend on a single row
        raise StratsynthError(
            "the linked tables could not be read; the charge stands. Are the files whole? With a ledger, the same fit "
            "of the same files is not charged again."
        ) from None


def slots_of(linked: LinkedSchema, above: pa.Table, below: pa.Table, weight: int) -> dict[str, Slot]:
    """Return {slot: `Slot`} of parents' rows `above`, children's `below`, by a linked schema; a key weighs `weight`."""
    owners, owned = keys_of(above.column(linked.key), below.column(linked.key))
    parent, (child, admitted) = coded(linked.parent, above)[0], coded(linked.child, below)
    size = 2 + max(owners.max(initial=-1), owned.max(initial=-1))  # the last place is that of -1, which is no key
    alone = (owners >= 0) & (np.bincount(owners[owners >= 0], minlength=size)[owners] == 1)
    beside = {name: floats(ORDER, below.column(name))[0] for name in linked.order if name not in child.codes}
    order = [beside[n] if n in beside else child.numbers.get(n, child.codes[n]) for n in linked.order]
    places = np.lexsort([owned, *order, *child.codes.values(), *child.numbers.values()][::-1])
    places = places[(admitted & (owned >= 0))[places]]
    child, owned = child.take(places), owned[places]
    found: dict[str, Slot] = {}
    for name in ("occupied", *linked.kinds):
        kept, at = alone & of_kind(linked, parent, name), np.full(size, -1)
        at[owners[kept]] = np.flatnonzero(kept)
        rows = np.flatnonzero(at[owned] >= 0)
        own, mine = child.take(rows), owned[rows]
        if name in linked.kinds:
            found[name] = kind_slot(linked, name, parent.take(at[at >= 0]), np.flatnonzero(at >= 0), own, mine, weight)
        else:
            found |= counted_slots(linked, parent.take(at[np.unique(mine)]), own, mine, weight)
    return found


def keys_of(above: pa.ChunkedArray, below: pa.ChunkedArray) -> tuple[Array, Array]:
    """Return (an int a parent row, one a child row): numbers of keys in columns `above`, `below`; -1 for none."""
    parts = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in (*above.chunks, *below.chunks)]
    if len({part.type for part in parts}) > 1:
        parts = [as_texts(hashable(part)) for part in parts]
    found = identities(pa.chunked_array(parts or [pa.nulls(0)]))
    return found[: len(above)], found[len(above) :]


def coded(schema: Schema, data: pa.Table) -> tuple[FileRows, Array]:
    """Return (`FileRows`: each row of an Arrow table, `data`, by its own values; mask of those the schema admits)."""
    codes, numbers, admitted = dict[str, Array](), dict[str, Array](), np.ones(data.num_rows, bool)
    for name, column in schema.columns.items():
        values = data.column(name)
        check_type(name, values.type)
        if isinstance(column, Categorical):
            codes[name], _ = encode_categorical(column, values)
        else:
            codes[name], numbers[name], _ = encode_numeric(column, values)
        admitted &= codes[name] >= 0
    return FileRows(codes, numbers), admitted
