"""INTERNAL: check of a file against a schema and a year, with the number of records that break each structural rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.census.acs.catalogue import check_year
from stratsynth.census.acs.header import HeaderVerdict, judge
from stratsynth.census.acs.rules import broken, described

if TYPE_CHECKING:
    from stratsynth.data.sources import Data
    from stratsynth.schema import Schema

STAMP = "INTERNAL: computed from the data without a charge; not for publication."


@dataclass(frozen=True)
class Checked:
    """INTERNAL. Result of checking a file against a schema of a year."""

    verdict: HeaderVerdict
    """Findings from the names of its columns."""
    rows: int
    """Records of the file; 0 if columns are missing, as the file was not read then."""
    left_out: int
    """Records with a value that the schema does not know."""
    rules: tuple[tuple[str, int], ...]
    """Each rule with the number of the other records that break it."""

    @property
    def fits(self) -> bool:
        """True if no column is missing or of another year, and no rule is broken."""
        return not self.verdict and not any(count for _, count in self.rules)

    def text(self) -> str:
        """Return the result as lines of text, stamped INTERNAL: columns of concern, records, broken rules."""
        lines = [STAMP, *self.verdict.missing, *self.verdict.other]
        if self.verdict.unknown:
            lines.append(f"Columns that are known of no year, and of no schema: {', '.join(self.verdict.unknown)}.")
        if self.rows:
            bad = [f"  {count:,} records: {rule}" for rule, count in self.rules if count]
            lines.append(f"{self.rows:,} records, {self.left_out:,} with values that the schema does not know.")
            lines += [f"{len(self.rules)} structural rules, {len(bad)} of them broken{':' if bad else '.'}", *bad]
        return "\n".join(lines)


def check(data: Data, schema: Schema, year: int) -> Checked:
    """INTERNAL. Return how a file's columns fit a survey year, and how many of its records break each rule.

    Args:
        data: File to check.
        schema: Schema of the file.
        year: Assumed survey year.
    """
    from stratsynth.data.sources import open_source
    from stratsynth.schema.encoding import encode

    source = open_source(data)
    verdict = judge(source.columns(), schema.names, check_year(year))
    if verdict.missing:
        return Checked(verdict, 0, 0, ())
    table = source.read(schema.names)
    coded = encode(schema, table)
    counts = zip(map(described, schema.rules), broken(schema, coded), strict=True)
    return Checked(verdict, table.num_rows, table.num_rows - coded.size, tuple(counts))
