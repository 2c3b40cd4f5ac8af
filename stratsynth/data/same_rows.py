"""Equal tables, whatever file they are in: digests of rows that do not depend on their order.

Each row gives 128 bits of BLAKE2, and these are added up modulo 2^128. Two such sums are taken of a table: of its rows'
codes under a schema, as a fit reads them, and of the values of all its columns, in which plain spellings of one number
are one. Neither is kept: what a list of accounts holds of them is an HMAC under a ledger's key.

Tables of a few kinds of rows may be equal though they are of different people, so `chance` bounds how probable that is,
and above LEAST nothing rests on it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.data.fingerprint import keyed
from stratsynth.data.folders import unreadable
from stratsynth.data.spark_source import SparkSource
from stratsynth.errors import LedgerError
from stratsynth.schema.encoding import encode
from stratsynth.schema.values import spelling

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.data.sources import Source
    from stratsynth.schema import Schema

LEAST = 1e-9
"""Largest probability with which other people's table may be equal by chance, for equal tables to be told."""
KINDS = 31
"""Number of different rows from which on that is less than LEAST: see `chance`."""
LARGEST = 200_000_000
"""Largest declared number of values, records times columns, for which an account keeps marks: half a minute."""
CELLS = 1 << 22
"""Values that are digested at once."""


@dataclass(frozen=True)
class Content:
    """The rows of a table in any order; equal for equal rows, and but for a coincidence of 2^-128 for no others."""

    what: tuple[str, ...]
    """Columns, and the schema's hash where rows are codes."""
    rows: int = field(repr=False)
    total: int = field(repr=False)
    """Sum of the rows' digests modulo 2^128."""
    chance: float = field(repr=False, compare=False)
    """Bound on the probability that independently drawn rows are equal to these, whatever their law."""

    @property
    def telling(self) -> bool:
        """True if equality with another table is no coincidence."""
        return self.chance <= LEAST


def has_rows(source: Source, schema: Schema, other: Content) -> bool:
    """True if a source's rows have the content `other` in a schema; False for Spark, and for unreadable rows."""
    if isinstance(source, SparkSource):
        return False
    try:
        return coded(schema, source.looked_at(schema.names), other.rows) == other
    except LedgerError:
        raise
    except Exception:  # noqa: BLE001 - even the class of what went wrong may depend on a single row
        return False


def coded(schema: Schema, batches: Iterable[pa.Table], most: float = math.inf) -> Content | None:
    """Return the `Content` of the rows of Arrow tables (`batches`), encoded by a schema; None for over `most` rows."""
    rows = _Sum("codes", schema.sha256, *schema.names)
    for part in _parts(batches, len(schema.names)):
        rows.add(row_digests(schema, part))
        if rows.size > most:
            return None
    return rows.content()


def marks_of(source: Source, schema: Schema | None, declared_size: int | None = None) -> Callable[[bytes], list[str]]:
    """Read `source`; return a function, ledger's key -> list of marks by `schema`; [] for a large `declared_size`."""
    size = 0 if schema is None or declared_size is None else declared_size * len(schema.names)
    found = contents(source, schema) if size <= LARGEST else ()
    return lambda key: [keyed(key, iter([repr((each.what, each.rows, each.total)).encode()])) for each in found]


def contents(source: Source, schema: Schema | None = None) -> tuple[Content, ...]:
    """Return a tuple of `Content` that tells a source from others: by its values, and by a schema's codes, if not None.

    A source that cannot be read has none, whatever the reason: a fit of it fails where it is read for the fit. Nor have
    rows in Spark, which its fingerprint knows in any order.
    """
    if isinstance(source, SparkSource):
        return ()
    try:
        names, kinds = source.columns(), source.types()
        columns = [name for name in sorted(set(names)) if names.count(name) == 1]
        columns = [name for name in columns if kinds is None or not unreadable(kinds.field(name).type)]
        sums = [_Sum("values", *columns), *([] if schema is None else [_Sum("codes", schema.sha256, *schema.names)])]
        for part in _parts(source.looked_at(columns), len(columns)):
            sums[0].add(_digests([spelling(part.column(name)) for name in columns]))
            if schema is not None:
                sums[1].add(row_digests(schema, part))
    except LedgerError:
        raise
    except Exception:  # noqa: BLE001 - as above
        return ()
    return tuple(content for each in sums if (content := each.content()).telling)


def _parts(batches: Iterable[pa.Table], columns: int) -> Iterator[pa.Table]:
    step = max(1, CELLS // max(1, columns))
    return (batch.slice(start, step) for batch in batches for start in range(0, batch.num_rows, step))


def row_digests(schema: Schema, batch: pa.Table) -> list[bytes]:
    """Return a list of digests, bytes, of the codes of the rows of `batch`, an Arrow table, that the schema lets in."""
    codes = encode(schema, batch).codes
    return _digests([codes[name].astype("<u4") for name in schema.names])


def _digests(columns: list[NDArray[Any]]) -> list[bytes]:
    """Return a list of digests, bytes, one a row, of a list `columns` of arrays of numbers by row, of one type."""
    lines = np.stack(columns, axis=1)
    rows = lines.view(f"V{lines.itemsize * lines.shape[1]}").ravel().tolist()
    return [blake2b(row, digest_size=16).digest() for row in rows]


class _Sum:
    """Sum of rows' digests, a batch at a time."""

    def __init__(self, *what: str) -> None:
        self._what, self.size, self._total, self._kinds = what, 0, 0, Counter[bytes]()

    def add(self, found: list[bytes]) -> None:
        if len(self._kinds) < KINDS:
            self._kinds.update(found)
        lanes = np.frombuffer(b"".join(found), "<u4").reshape(-1, 4).sum(axis=0, dtype=np.uint64)
        self._total += sum(int(lane) << 32 * place for place, lane in enumerate(lanes))
        self.size += len(found)

    def content(self) -> Content:
        return Content(self._what, self.size, self._total % 2**128, chance(list(self._kinds.values())))


def chance(times: list[int]) -> float:
    """Return the largest probability, over all laws, that independent rows come as often as `times`, one a kind.

    It is that of the law with the frequencies found: n! prod p_k^n_k / n_k!, p_k = n_k / n. Drawing one kind after the
    other, each factor is a binomial probability at its mean, at most 1/2, so 31 kinds have at most 2^-30 < LEAST.
    """
    if len(times) >= KINDS:
        return 2.0 ** (1 - KINDS)
    n = sum(times)
    logs = (k * math.log(k / n) - math.lgamma(k + 1) for k in times)
    return math.exp(min(0.0, math.lgamma(n + 1) + math.fsum(logs)))
