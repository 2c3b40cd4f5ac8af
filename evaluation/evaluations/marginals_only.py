"""INTERNAL. Output of `evaluate --marginals-only`: the error of marginals of files larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.report.groups import group_name
from stratsynth.evaluation.scores.streamed import streamed_workload_error
from stratsynth.evaluation.tables import GROUP, STAMP, By, as_schema, groups_of
from stratsynth.report.numbers import Numbers
from stratsynth.report.page import Column, Figure, Page, Section, Table
from stratsynth.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

LEFT_OUT = (
    "Only marginals were scored, from counts, so that the tables need not fit into memory: no intervals, baselines, "
    "models, matches, means or quantiles. Score samples of both tables for these."
)
WEIGHED = "Real rows count as their %s, and synthetic rows 1 each; the numbers of real rows count rows."


@dataclass(frozen=True, eq=False)
class MarginalScores:
    """INTERNAL. Error of a release's marginals in each group, from `streamed_workload_error`."""

    schema: Schema
    """Schema of both tables."""
    by: tuple[str, ...]
    """Columns whose crossing makes the groups."""
    facts: Mapping[str, Any]
    """Settings, as plain values."""
    workload: pd.DataFrame
    """Mean L1 distance, 0 to 2, in each group and for everybody."""

    @classmethod
    def of(
        cls,
        real: Any,
        synthetic: Any,
        schema: Schema | str | Path,
        by: By,
        *,
        k: int,
        cliques: int,
        engine: str = "auto",
    ) -> MarginalScores:
        """Return MarginalScores, errors of k-way marginals of the table `synthetic` against `real`, out of memory.

        Tables are paths or sources of rows of the schema; groups cross the columns `by`. At most `cliques` marginals
        are scored; `engine` names what holds the real table.
        """
        schema, (names, _) = as_schema(schema), groups_of(as_schema(schema), by)
        frame = streamed_workload_error(real, synthetic, schema, k, by, most=cliques, engine=engine)
        weight = schema.row_weight.column
        facts = {
            "stamp": STAMP,
            "left_out": LEFT_OUT,
            "by": list(names),
            "k": k,
            "cliques": int(frame["cliques"].iloc[-1]),
            "real_rows": int(frame["n"].iloc[-1]),
            "synthetic_rows": int(frame["n_synthetic"].iloc[-1]),
            "schema_sha256": schema.sha256,
            **({} if weight is None else {"row_weight": weight}),
        }
        return cls(schema, names, facts, frame)

    def frames(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield one pair: ("workload", the frame of errors of marginals)."""
        yield "workload", self.workload

    def page(self, name: str, certificate: Mapping[str, Any] | None) -> Page:
        """Return a Page with a table of each group's error, on which the release is called `name`.

        `certificate` is unused.
        """
        heads = [Column("group", "text"), *map(Column, COLUMNS[1:-1]), Column("status", "text")]
        lines = self._lines()
        numbers = Numbers("marginals", list(COLUMNS), lines)
        figure = Figure("", table=Table("Each group's error.", heads, lines[:-1], lines[-1:]), numbers=numbers)
        return Page(
            title="How far marginals are off",
            subtitle=f"{name}: {self.facts['cliques']:,} marginals of {self.facts['k']} columns",
            lead=["The mean L1 distance is 0 where the tables agree and 2 where nothing does.", *self._remarks()],
            sections=[Section("marginals", "In each group", figures=[figure])],
            internal=BANNER,
            made_with="Made by stratsynth evaluate. Every figure lies beside this file as CSV and Parquet.",
        )

    def _remarks(self) -> list[str]:
        """Return a list of sentences for the page: on omitted scores, and on row weights if there are any."""
        weight = self.facts.get("row_weight")
        return [LEFT_OUT] if weight is None else [LEFT_OUT, WEIGHED % weight]

    def _lines(self) -> list[tuple[str, int, int, float, str]]:
        """Return a list of lines, one a group, everybody last: name, rows of both tables, error (or NaN), status."""
        return [
            (
                group_name({c: row[c] for c in self.by if row["scope"] == GROUP}, self.schema),
                int(row["n"]),
                int(row["n_synthetic"]),
                float(row["value"]),
                str(row["status"]),
            )
            for row in self.workload.to_dict("records")
        ]


COLUMNS = ("group", "real rows", "synthetic rows", "mean L1 distance", "status")
