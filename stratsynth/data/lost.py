"""INTERNAL: records and people that a fit would lose, and whether that is worth stopping for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stratsynth.schema import spellings, values
from stratsynth.schema.columns import Categorical, Column
from stratsynth.schema.encoding import encode
from stratsynth.schema.text import MISSING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema.schema import Schema

WORTH = 0.01
"""Part of the records above which a check ends with exit code 1: of lost ones, or of unknown values in one column."""
SHOWN = 8
"""Largest number of unknown values of a column that are named."""
NAMED = 12
"""Largest number of levels of a column that a rule names one by one."""
LONGEST = 40
"""Largest number of characters of an unknown value that are shown."""


def unknown_values(column: Column, data: pa.ChunkedArray) -> dict[str, int]:
    """INTERNAL. Return a mapping from value to rows: the most frequent values of `data` that a column does not know.

    `data` is an Arrow column, `column` the schema's. Longer values are cut; they count together with others of the same
    beginning.
    """
    counts = spellings.counted(data)
    texts = pa.chunked_array([pa.array(list(counts), pa.string())])
    unfit = outside(column, texts)
    found: dict[str, int] = {}
    for bad, (text, count) in zip(unfit.tolist(), counts.items(), strict=True):
        if bad:
            short = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
            found[short] = found.get(short, 0) + count
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:SHOWN])


def outside(column: Column, data: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return a mask of the values of `data`, an Arrow column, not null, that the schema's column does not know.

    No level or number, or a number that the column counts as none.
    """
    unfit: NDArray[np.bool_]
    if isinstance(column, Categorical):
        unfit = values.codes(column, data) < 0
    else:
        raw, own = values.floats(column, data)
        unfit = np.isnan(raw) & (own < 0)
        if column.outside == MISSING:
            unfit |= (raw < column.lower) | (raw > column.upper)
    unfit &= ~np.asarray(data.is_null())
    return unfit


def absent_words(names: Sequence[str], header: Sequence[str]) -> list[str]:
    """INTERNAL. Return a list of sentences on the columns `names` that a file's `header` lacks, or has twice.

    They name near names: by spaces, case, separators.
    """
    if len(header) == 1 and (mark := separator(header[0])):
        return [f"The fields of the file are separated by {mark}, not by commas: write it with commas, or as Parquet."]
    found = []
    for name in names:
        if header.count(name) > 1:
            found.append(f"{name} is there {header.count(name)} times.")
            continue
        same = [each for each in header if each.strip().casefold() == name.strip().casefold()]
        if same:
            found.append(f"{name}: did you mean {same[0]!r}, which is there? Names are compared with case and spaces.")
        elif near := _near(name, header):
            found.append(f"{name}: did you mean {near!r}?")
    return found


SEPARATORS: Mapping[str, str] = {";": "semicolons (;)", "\t": "tabs", "|": "bars (|)"}
"""Separators of files that are not CSV, with their names."""


def separator(name: str) -> str:
    """Return the name of the separator, such as "semicolons", in the text of a file's only column.

    "" if there is none.
    """
    return next((words for mark, words in SEPARATORS.items() if mark in name), "")


def _near(name: str, header: Sequence[str]) -> str:
    """Return the name in the list `header` that is `name` or nearest to it, by case and spaces; "" if none is."""
    import difflib

    known = {each.strip().casefold(): each for each in header}
    close = difflib.get_close_matches(name.strip().casefold(), list(known), n=1)
    return known[close[0]] if close else ""


def broken_rules(schema: Schema, table: pa.Table) -> tuple[tuple[str, int], ...]:
    """INTERNAL. Return a tuple of pairs, one a structural rule of a schema: its text, rows of `table` that break it.

    Rows with a value that the schema does not know are left out.
    """
    if not schema.rules:
        return ()
    rows, found = encode(schema, table), []
    for rule in schema.rules:
        bad = np.zeros(rows.size, bool)
        for box in rule.cells(schema):
            inside = np.ones(rows.size, bool)
            for name, codes in box.items():
                inside &= np.isin(rows.codes[name], list(codes))
            bad |= inside
        found.append((f"{_clause(rule.when)}: never {_clause(rule.never)}", int(bad.sum())))
    return tuple(found)


def _clause(conditions: Mapping[str, Any]) -> str:
    """Return text of a rule's `conditions`, column -> levels: "name levels", joined by commas."""
    return ", ".join(f"{name} {_short(levels)}" for name, levels in conditions.items())


def _short(levels: Any) -> str:
    """Return text of `levels`: all of a few, else the first, the last and their number."""
    if isinstance(levels, str):
        return levels
    return " ".join(levels) if len(levels) <= NAMED else f"{levels[0]} to {levels[-1]} ({len(levels)} levels)"


BROKEN = (
    "A fit counts such records like all others, unless a rule forbids their whole group, and no drawn row breaks one. "
    "Whether to keep a rule must not follow from these numbers: nobody paid for them. Leave the rule out of the schema "
    "if a public source, such as the questionnaire, the dictionary or a public-use file, has such people; correct the "
    "records if they are errors."
)
"""Remedy for broken rules that does not depend on private records."""


def broken_lines(rules: Sequence[tuple[str, int]], rows: int) -> list[str]:
    """INTERNAL. Return a list of lines on `rules`, (rule, breaches) pairs, and the remedy, if any is broken.

    `rows` is the number of records; exit code 1 is announced where it comes.
    """
    bad = [f"  {count:,} records ({part(count, rows)}): {rule}" for rule, count in rules if count]
    lines = [f"{len(rules)} structural rules, {len(bad)} of them broken{':' if bad else '.'}", *bad]
    if not bad:
        return lines
    code = f"; one is broken by more than {100 * WORTH:g} % of the records: exit code 1." * grave_rules(rules, rows)
    return [*lines, f"{BROKEN.removesuffix('.')}{code or '.'}"]


def grave_rules(rules: Sequence[tuple[str, int]], rows: int) -> bool:
    """INTERNAL. True if one of `rules`, (rule, breaches) pairs, is broken by over the share WORTH of `rows` records."""
    return max((count for _, count in rules), default=0) > WORTH * rows


@dataclass(frozen=True)
class Loss:
    """INTERNAL. Records that a fit would lose."""

    lost: int
    """Records, and lines that are none, that no count would hold."""
    total: int
    """Records and such lines in all."""
    worst: str = ""
    """Column with the largest part of values that the schema does not know; empty if it knows all."""
    unknown: int = 0
    """Number of these values."""

    @property
    def grave(self) -> bool:
        """True if more than WORTH of the records are lost, or have a value in one column that nobody knows."""
        return max(self.lost, self.unknown) > WORTH * self.total or not self.total

    @property
    def words(self) -> str:
        """Return a sentence with the share that is lost, the threshold, and the exit code that follows."""
        if not self.total:
            return "There are no records: exit code 1."
        limit = f"{100 * WORTH:g} %"
        said = f"A fit would lose {self.lost:,} of {self.total:,} records ({part(self.lost, self.total)})"
        if self.grave and self.lost <= WORTH * self.total:
            said += f", and {self.unknown:,} have a value of {self.worst} that the schema does not know"
        verdict = f"more than {limit}: exit code 1" if self.grave else f"not more than {limit}: exit code 0"
        return f"{said}; {verdict}."


def part(some: float, whole: float) -> str:
    """Return text: `some` as a part of `whole` in per cent, with two figures, "12 %"."""
    return "0 %" if not some else f"{100 * some / whole:.2g} %" if some < whole / 2 else f"{100 * some / whole:.0f} %"
