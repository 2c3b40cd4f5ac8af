"""INTERNAL: check of a file against a schema and a year, with the number of records that break each structural rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.census.acs.catalogue import check_year
from stratsynth.census.acs.header import HeaderVerdict, judge
from stratsynth.data.draft import Check
from stratsynth.data.lost import broken_lines, part

if TYPE_CHECKING:
    from stratsynth.data.sources import Data
    from stratsynth.schema import Schema

STAMP = "INTERNAL: computed from the data without a charge; not for publication."


@dataclass(frozen=True)
class Checked:
    """INTERNAL. Result of checking a file against a schema of a year."""

    verdict: HeaderVerdict
    """Findings from the names of its columns."""
    found: Check | None = None
    """Numbers of values that do not fit the schema; None if columns are missing, as the file was not read then."""
    lists: tuple[str, ...] = ()
    """Questions about lists of codes that were given to the schema and look as if they were read off the records."""

    @property
    def rules(self) -> tuple[tuple[str, int], ...]:
        """Tuple of pairs (rule as text, number of records within the schema that break it).

        Empty if columns are absent.
        """
        return () if self.found is None else self.found.rules

    @property
    def rows(self) -> int:
        """Records of the file; 0 if columns are missing."""
        return 0 if self.found is None else self.found.rows

    @property
    def left_out(self) -> int:
        """Records with a value that the schema does not know."""
        return 0 if self.found is None else self.found.left_out

    @property
    def fits(self) -> bool:
        """True if no column is missing or of another year, and hardly any record would be lost or breaks a rule."""
        return not self.verdict and self.found is not None and self.found.ok

    def text(self) -> str:
        """Return the result as one text of several lines, stamped INTERNAL: columns, records, broken rules."""
        lines = [STAMP, *self.verdict.missing, *self.verdict.other]
        if self.verdict.unknown:
            lines.append(f"Columns that are known of no year, and of no schema: {', '.join(self.verdict.unknown)}.")
        if self.found is None:
            return "\n".join(lines)
        lines += [self.found.loss.words, *self._unknown(), *self._people()]
        lines += broken_lines(self.rules, self.rows)
        lines += self.lists
        return "\n".join(lines)

    def _unknown(self) -> list[str]:
        """Return a list of lines, one a column with unknown values: how many records, and its most frequent ones."""
        columns = {} if self.found is None else self.found.columns
        return [
            f"  {name} has values that the schema does not know in {each.outside:,} records: "
            f"{', '.join(f'{value!r} in {count:,}' for value, count in each.unknown.items())}"
            for name, each in columns.items()
            if each.outside
        ]

    def _people(self) -> list[str]:
        """Return a list of one line of text on people lost by weights above the largest; empty without such records."""
        weight = None if self.found is None else self.found.weight
        if weight is None or not weight.cut:
            return []
        whole = weight.total + weight.people_cut
        lacking = f"{weight.people_cut:,} of {whole:,} people ({part(weight.people_cut, whole)})"
        return [f"{weight.cut:,} records stand for more people than the largest weight: the release lacks {lacking}."]


def check(data: Data, schema: Schema, year: int) -> Checked:
    """INTERNAL. Return `Checked`: how a file's columns fit a survey year, and how many of its records break each rule.

    Args:
        data: File to check.
        schema: Schema of the file.
        year: Assumed survey year.
    """
    from stratsynth.data.draft import check as checked
    from stratsynth.data.held_codes import held_codes
    from stratsynth.data.sources import open_source

    source = open_source(data)
    verdict = judge(source.columns(), (*schema.names, *schema.beside), check_year(year))
    if verdict.missing:
        return Checked(verdict)
    asked = [str(each) for each in held_codes(source, schema) if each.suspicious]
    return Checked(verdict, checked(schema, source), tuple(asked))
