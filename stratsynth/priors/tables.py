"""Published tables as a prior: figures of some columns' cells, from a file or a frame.

A line names a level of each of the table's columns and gives its `share` or its `count`; `error` beside it is the
figure's standard error. Everything here is public, so that refusals may name values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.digest import digest
from stratsynth.errors import UsageError, nearest
from stratsynth.files.outside import level, records
from stratsynth.inputs import check_citation
from stratsynth.mechanisms.known import Known
from stratsynth.models.rules import broken
from stratsynth.priors.certificate_section import file_hash
from stratsynth.priors.releases import release_of
from stratsynth.release.hashes import CERTIFICATE
from stratsynth.schema.typed import figure
from stratsynth.weights.table import ERROR, is_replicate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.priors.mapping import Rules
    from stratsynth.schema import Schema
    from stratsynth.weights.table import Tabular

FIGURES = ("share", "count", "error")
LARGEST = 1e15
"""Largest figure of a cell, in people."""
TOLERANCE = 1e-2
"""Largest distance of the sum of shares from 1, as printed tables round; shares are then scaled to 1."""
MOST_CELLS = 2**20
"""Largest number of cells of a table."""
NAMED = 3
"""Largest number of cells that a refusal names."""


@dataclass(frozen=True)
class PublishedTable:
    """Published table with its citation."""

    data: Tabular = field(repr=False)
    """CSV file or data frame."""
    citation: str
    """Place of publication, which the certificate lists as taken for public."""

    def __post_init__(self) -> None:
        """Raise UsageError for a citation that is missing or a template's, a file of a release or with an account."""
        from stratsynth.data.overlap import check_public_inputs

        if not isinstance(self.citation, str) or not self.citation.strip():
            raise UsageError("prior: a published table needs a citation that says where it was published.")
        object.__setattr__(self, "citation", check_citation("prior", self.citation))
        if isinstance(self.data, str | PathLike):
            path = Path(self.data)
            try:
                path.lstat()
            except FileNotFoundError:
                pass
            except (OSError, ValueError) as error:  # a name that is too long, or holds a null character
                why = getattr(error, "strerror", None) or error
                raise UsageError(f"prior: {str(path)[:40]!r} cannot be opened ({why}).") from None
            inside = path.is_dir()
            folder = release_of(path / CERTIFICATE if inside else path)
            if folder is not None:
                raise UsageError(
                    f"prior: {path.name} is of a release; take Prior.release({str(folder)!r}), which brings its tables."
                )
            if inside:
                raise UsageError(f"prior: {path} is a folder; a published table is one CSV file: name that file.")
            check_public_inputs(declared=[path])


def mapped_table(table: PublishedTable, rules: Rules, schema: Schema) -> tuple[Known, dict[str, Any]]:
    """Return (`Known`, a published table as shares in a schema's levels, by renaming, recoding `rules`; a dict on it).

    The dict is its entry in the certificate.

    Raises:
        UsageError: Columns, levels or figures that have no place in the schema, and missing cells.
    """
    lines = [_with_error(line) for line in records("prior", table.data)]
    what, ours = _header(lines[0], rules, schema)
    clique = tuple(name for name in schema.names if name in ours)
    if schema.cells(clique) > MOST_CELLS:
        raise UsageError(f"prior: the table of {', '.join(clique)} would have more than {MOST_CELLS:,} cells.")
    values, variance = np.zeros(schema.shape(clique)), np.zeros(schema.shape(clique))
    there, dropped = np.zeros(schema.shape(clique), dtype=bool), 0
    first: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(lines, start=2):
        named = tuple(level(line[ours[name]]) for name in clique)
        if first.setdefault(named, number) != number:  # other values may be recoded to the same levels, and add up
            raise UsageError(
                f"prior: lines {first[named]} and {number} of a published table of {', '.join(clique)} both give the "
                f"figure of {' '.join(f'{name}={value}' for name, value in zip(clique, named, strict=True))}; keep the "
                "one that is meant."
            )
        cell = _cell(line, number, ours, clique, rules, schema)
        value, error = (_figure(line, name, number) for name in (what, "error"))
        if cell is None:
            dropped += 1
            continue
        values[cell] += value
        variance[cell] += error**2
        there[cell] = True
    total = _complete(values, there, what, clique, schema, dropped)
    error = math.sqrt(float(variance.mean())) / total
    if not error <= 1:
        raise UsageError(
            f"prior: the standard errors of a published table of {', '.join(clique)} come to {error:.3g} times all "
            f"that its figures add up to, and so say nothing of them. Give errors of {what}s beside {what}s, or leave "
            "the table out."
        )
    known = Known(clique, values / total, error=error)
    return known, {
        "columns": list(clique),
        "citation": table.citation,
        **({"people": total} if what == "count" else {}),
        "error": known.error,
        **({"left_out": dropped} if dropped else {}),
        "sha256": digest(clique, known.shares, known.error),
        **file_hash(table.data),
    }


def _with_error(line: dict[str, Any]) -> dict[str, Any]:
    """Return `line`, a dict, with `standard_error` renamed `error`, and without replicates; itself without one."""
    if ERROR not in line or "error" in line:
        return line
    return {"error" if name == ERROR else name: value for name, value in line.items() if not is_replicate(name)}


def _header(line: Mapping[str, Any], rules: Rules, schema: Schema) -> tuple[str, dict[str, str]]:
    """Return ("share" or "count", mapping from column of the schema to its name in the table), from its first line.

    `rules` rename. UsageError for other columns, for none, or not one of the two figures.
    """
    have = [name for name in ("share", "count") if name in line]
    if len(have) != 1:
        raise UsageError("prior: a published table has a column `share` or a column `count`, and not both.")
    known = {rules.rename.get(name, name): name for name in schema.names if name not in rules.without}
    ours = {}
    for theirs in line:
        if theirs in FIGURES:
            continue
        if theirs not in known:
            raise UsageError(
                f"prior: a published table has a column {theirs}, which is none of the schema{nearest(theirs, known)}. "
                "Say by rename which it is, or sum over it."
            )
        ours[known[theirs]] = theirs
    if not ours:
        raise UsageError("prior: a published table has figures and no column of the schema.")
    return have[0], ours


def _cell(
    line: Mapping[str, Any], number: int, ours: Mapping[str, str], clique: Sequence[str], rules: Rules, schema: Schema
) -> tuple[int, ...] | None:
    """Return a tuple, the cell of a published table's `line`: a level number of the schema for each of `clique`.

    `ours` maps these columns to the table's names, `number` is the line's, `rules` recode. An unknown level gives None
    if the rules drop such lines, else UsageError.
    """
    found = []
    for name in clique:
        said = level(line[ours[name]])
        said = rules.recode.get(name, {}).get(said, said)
        levels = schema.levels(name)
        if said not in levels:
            if rules.unknown == "drop":
                return None
            raise UsageError(
                f"prior: line {number} of a published table has the value {said!r} of {name}, which the schema does "
                f'not know{nearest(said, levels)}. Say by recode which level it is, or set unknown = "drop".'
            )
        found.append(levels.index(said))
    return tuple(found)


def _figure(line: Mapping[str, Any], name: str, number: int) -> float:
    """Return the figure `name` in a table's `line`, 0 for no error; UsageError, with its `number`, for bad ones."""
    value = 0.0 if name == "error" and name not in line else figure(line[name])
    if not 0 <= value <= LARGEST:
        raise UsageError(f"prior: the {name} in line {number} of a published table is no number from 0 to {LARGEST:g}.")
    return value


def _complete(
    values: NDArray[Any], there: NDArray[np.bool_], what: str, clique: Sequence[str], schema: Schema, dropped: int
) -> float:
    """Return the sum of `values`, an array over the cells of the columns `clique`; `what` is "share" or "count".

    UsageError for cells without a line (`there` is a mask) that no rule of the schema forbids, a sum of 0, and shares
    that do not add up to 1, unless lines were `dropped`.
    """
    missing = np.argwhere(~there)
    codes: dict[str, NDArray[np.integer[Any]]] = {name: missing[:, axis] for axis, name in enumerate(clique)}
    inside = schema.restrict(clique)
    if len(missing) and inside.rules:
        missing = missing[~broken(inside, codes)]
    if len(missing):
        first = " ".join(f"{name}={schema.levels(name)[i]}" for name, i in zip(clique, missing[0], strict=True))
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise UsageError(
            f"prior: a published table of {', '.join(clique)} has no line for {first}{more}; give 0 for what cannot be."
        )
    total = float(values.sum())
    if not total > 0:
        raise UsageError(f"prior: the figures of a published table of {', '.join(clique)} are all 0.")
    if what == "share" and not dropped and abs(total - 1) > TOLERANCE:
        raise UsageError(
            f"prior: the shares of a published table of {', '.join(clique)} add up to {total:.4g}, not 1. Give them as "
            "counts where they are of something else."
        )
    return total
