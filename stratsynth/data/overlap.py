"""Check of public inputs: they are neither the private table itself nor data that have an account.

Weights, priors and data declared public are read without a charge, so confidential rows among them would be
given out without noise. `check_public_inputs` compares them at three moments:

1. *Data declared public*, before they are read, and a prior's once more when its rows are: a file has an account if
   one is listed beside it, or a ledger of its name lies there. Somebody has spent a budget on it, so it is not public.
2. *Places*, before the rows of a prior are read and their values named: paths, inodes and objects, which reads nothing.
   A recipe compares its paths before either file is opened.
3. *Contents*, as the last refusal before a new fit reserves its budget. A resumed fit has passed it before. Compared
   are the bytes of files and the columns of frames, under a key that is thrown away, and the rows as a fit reads them:
   their codes under the schema, in the columns that both tables have, in any order, whatever the kind of file. The
   refusal says one thing about the rows: that they are the very table that was handed in twice. `has_copy` and
   `has_rows` compare them, and say no more: nothing here holds a private row.

Tables that are equal but for a few rows are not refused: whether they overlap, and by how much, would be a statement
about private rows that nobody paid for. `stratsynth.data.shared_rows` makes it, INTERNAL. Where a table has so few
kinds of rows that other people's could be equal by chance, equal codes are not told (`same_rows.chance`).

Whoever signs schema and recipe answers for what they declare public; these checks find some mistakes of theirs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.copies import Copies
from stratsynth.accounting.registry import Registry
from stratsynth.data.fingerprint import has_copy, size
from stratsynth.data.in_memory import ArrowSource, FrameSource
from stratsynth.data.same_rows import Content, coded, has_rows, marks_of
from stratsynth.data.sources import CsvSource, Source, open_source
from stratsynth.errors import StratsynthError, UsageError, WeightsError

if TYPE_CHECKING:
    from stratsynth.data.backends import Backend
    from stratsynth.schema import Schema

WEIGHTS = (
    "weights: their source is the private table itself: shares from it would be exact counts of confidential rows, "
    "released without noise. Take published figures, Weights.private (noisy counts, paid from the budget), or a sample "
    "of other people."
)
PRIOR = (
    "prior: it is the private table itself: the release would give out its rows as they are. Take rows that were "
    "published, such as last year's file, an earlier release of these data, or no prior."
)


def check_public_inputs(
    private: Source | Path | None = None,
    *,
    declared: Iterable[Any] = (),
    weights: Iterable[Any] = (),
    prior: Iterable[Any] = (),
    translated: Iterable[Source] = (),
    rows: Backend | None = None,
    schema: Schema | None = None,
) -> None:
    """Refuse inputs that are not public: paths, frames, Arrow tables or sources; messages quote no row.

    Args:
        private: Source of the private rows, which `weights` and `prior` are compared with by path, inode and object.
        declared: Data declared public, to be read without a charge.
        weights: Data that weights are read from: declared public, or about other people.
        prior: Data that a prior is read from.
        translated: The rows of a prior with the schema's names and values, where it has others.
        rows: The `Backend` with the private rows, for a comparison by content. This reads both.
        schema: The schema that a fit reads rows by, for such a comparison, and for that of declared data with the rows
            of other data in their folder that have an account.

    Raises:
        UsageError: Declared data that have an account.
        WeightsError: One of the others is the private table, or a copy of it.
    """
    for data in declared:
        path = _path(data)
        if path is not None and path.name:  # the root of all folders has none
            _refuse_account(path, data, schema)
    given = ((tuple(weights), WEIGHTS), (tuple(prior), PRIOR))
    for inputs, refusal in given:
        if private is not None and not all(_places(private).isdisjoint(_places(each)) for each in inputs):
            raise WeightsError(refusal)
    if rows is not None:
        _refuse_copies(rows, given)
        if schema is not None:
            _refuse_same_rows(rows, schema, (*given, (tuple(translated), PRIOR)))


def _refuse_account(data: Path, given: Any, schema: Schema | None) -> None:
    """Refuse, with a UsageError, a file `data` declared public if it, or its rows, have a ledger or registry.

    `given` is how a person named it. Rows are read only where other data in the folder have an account with marks: by
    all values, and by their codes under the schema, if it is given and the data have all of its columns.
    """
    beside = [path for path in (data.with_suffix(".ledger"), data.with_name(f"{data.name}.ledger")) if path.exists()]
    known = [*Registry(data).names(), *(path.name for path in beside)]
    if known:
        raise UsageError(
            f"{data.name} has an account, {known[0]}, so it is not public. To fit it, leave `public` out and name the "
            "ledger; a copy that may be published belongs into a folder of its own."
        )
    copies = Copies(Registry(data), lambda: _marks(given, schema))
    for name, ledger in copies.others():
        raise UsageError(
            f"{data.name} has the rows of {name}, which has an account, {ledger}, so it is not public. A copy that may "
            "be published belongs into a folder of its own."
        )


def _marks(given: Any, schema: Schema | None) -> Callable[[bytes], list[str]]:
    """Return a function: ledger key -> list of marks of public rows `given`, by codes too if with all of `schema`."""
    source = given if isinstance(given, Source) else _table(given)
    names = () if schema is None else source.columns()
    everything = schema is not None and all(names.count(name) == 1 for name in schema.names)
    return marks_of(source, schema if everything else None)


def _refuse_copies(private: Backend, given: Iterable[tuple[Iterable[Any], str]]) -> None:
    """Refuse, with a WeightsError, inputs of exactly the content of `private`, a backend.

    `given` are pairs (inputs, sentence of the refusal). Paths and frames are read again only if their content can be
    equal at all; what cannot be opened as a table of rows is not equal.
    """
    for inputs, refusal in given:
        each = {id(other): other for other in inputs}.values()  # once
        sources = [source for other in each if (source := _opened(other, getattr(private, "source", None))) is not None]
        if sources and has_copy(private, sources):
            raise WeightsError(refusal)


def _refuse_same_rows(private: Backend, schema: Schema, given: Iterable[tuple[Iterable[Any], str]]) -> None:
    """Refuse, with a WeightsError, inputs whose rows, in the levels of a schema, are those of `private`, a backend.

    `given` are pairs (iterable of inputs, each a `Source` or a table of figures; sentence of the refusal).
    """
    mine = getattr(private, "source", None)
    if not isinstance(mine, Source):
        return
    for inputs, refusal in given:
        for other in {id(other): other for other in inputs}.values():  # once
            part, found = _read(other, schema)
            if part is not None and found is not None and found.telling and has_rows(mine, part, found):
                raise WeightsError(refusal)


def _read(other: Any, schema: Schema) -> tuple[Schema | None, Content | None]:
    """Return (part of the schema with the columns it has, `Content` of its rows) of `other`, a public input.

    (None, None) if it has none. A table of figures, such as shares, lists each code once, as a private table may too:
    it needs all columns.
    """
    try:
        source = other if isinstance(other, Source) else _table(other)
        names = source.columns()
        shared = [name for name in schema.names if names.count(name) == 1]
        if not shared or (source is not other and len(shared) < len(schema.names)):
            return None, None
        part = schema.restrict(shared)
        return part, coded(part, source.looked_at(part.names))
    except StratsynthError:  # what is no table of rows has none of them
        return None, None


def _table(data: Any) -> Source:
    """Return the `Source` of `data`, a file or frame; a file with an unknown ending is taken for CSV, as shares are."""
    try:
        return open_source(data)
    except UsageError:
        return CsvSource(Path(data))


def _opened(other: Any, private: Source | None) -> Source | None:
    """Return the `Source` of `other`, a file or frame; None if its content cannot equal that of `private`, a source."""
    if isinstance(other, Source):
        return other
    try:
        if isinstance(other, str | os.PathLike):
            file = CsvSource(Path(other))  # whatever its name: bytes are compared
            return file if private is None or size(private) == size(file) else None
        table = open_source(other)
        table.types()  # can be read
    except UsageError:
        return None
    in_memory = private is None or isinstance(private, ArrowSource | FrameSource)
    return table if in_memory and (private is None or private.columns() == table.columns()) else None


def _path(data: Any) -> Path | None:
    """Return the path of `data`: a source, a text or path-like; None for data in memory."""
    path = data.path if isinstance(data, Source) else data
    return Path(path) if isinstance(path, str | os.PathLike) else None


def _places(data: Any) -> set[tuple[int, ...]]:
    """Return a set of (device, inode) of the file of `data`, links followed; of a folder, of all files below it too.

    A part of the private rows is private as well. Files that cannot be read are left out. Of a frame or a table in
    memory it is {(its identity,)}.
    """
    path, found = _path(data), set[tuple[int, ...]]()
    if path is None:
        held = _in_memory(data)
        return found if held is None else {(id(held),)}
    files = [path]
    with contextlib.suppress(OSError, ValueError):
        files += (p for p in path.rglob("*") if p.is_file()) if path.is_dir() else ()
    for file in files:
        with contextlib.suppress(OSError, ValueError):
            status = file.stat()
            found.add((status.st_dev, status.st_ino))
    return found


def _in_memory(data: Any) -> Any:
    """Return the frame or table that `data` is, or that it, a source, is opened on; None for anything in a file."""
    if isinstance(data, Source):
        return data.in_memory
    return None if isinstance(data, str | os.PathLike) else data
