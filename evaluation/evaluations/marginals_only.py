"""INTERNAL. What `evaluate --marginals-only` writes and prints: the error of marginals of files larger than memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.report.groups import group_name
from stratsynth.evaluation.report.text import aligned
from stratsynth.evaluation.scores.streamed import streamed_workload_error
from stratsynth.evaluation.tables import GROUP, STAMP, By, as_schema, groups_of
from stratsynth.report.numbers import Numbers, short
from stratsynth.report.page import Cell, Column, Figure, Page, Section, Table, render
from stratsynth.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

LEFT_OUT = (
    "Only marginals were scored, from counts, so that the tables need not fit into memory: no intervals, baselines, "
    "models or matches. Score samples of both tables for these."
)
WEIGHED = "Real rows count as their %s, and synthetic rows 1 each; the numbers of real rows count rows."


@dataclass(frozen=True, eq=False)
class MarginalScores:
    """INTERNAL. The error of a release's marginals in each group, as `streamed_workload_error` gives it."""

    schema: Schema
    """The schema of both tables."""
    by: tuple[str, ...]
    """The columns whose crossing makes the groups."""
    facts: Mapping[str, Any]
    """The settings; plain values."""
    workload: pd.DataFrame
    """The mean L1 distance in each scope."""

    @classmethod
    def of(
        cls, real: Any, synthetic: Any, schema: Schema | str | Path, by: By, *, k: int, cliques: int,
        engine: str = "auto",
    ) -> MarginalScores:  # fmt: skip
        """Count both tables out of memory; `engine` is what holds the real one."""
        schema, (names, _) = as_schema(schema), groups_of(as_schema(schema), by)
        frame = streamed_workload_error(real, synthetic, schema, k, by, most=cliques, engine=engine)
        weight = schema.row_weight.column
        facts = {
            "stamp": STAMP, "left_out": LEFT_OUT, "by": list(names), "k": k, "cliques": int(frame["cliques"].iloc[-1]),
            "real_rows": int(frame["n"].iloc[-1]), "synthetic_rows": int(frame["n_synthetic"].iloc[-1]),
            "schema_sha256": schema.sha256, **({} if weight is None else {"row_weight": weight}),
        }  # fmt: skip
        return cls(schema, names, facts, frame)

    def frames(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """The one frame."""
        yield "workload", self.workload

    def page(self, name: str, certificate: Mapping[str, Any] | None) -> str:
        """The page for readers."""
        rows = [
            [Cell.words(who), Cell.figure(n), Cell.figure(made), Cell.figure(value), Cell.words(status)]
            for who, n, made, value, status in self._lines()
        ]
        heads = [Column("Group", "text"), *map(Column, ("real rows", "synthetic rows", "mean L1 distance"))]
        table = Table("Each group's error.", [*heads, Column("status", "text")], rows[:-1], rows[-1:])
        numbers = Numbers("marginals", list(COLUMNS), [list(line) for line in self._lines(none=True)], STAMP)
        what = f"{self.facts['cliques']:,} marginals of {self.facts['k']} columns"
        return render(
            Page(
                title="How far marginals are off",
                subtitle=f"{name}: {what}",
                lead=["The mean L1 distance is 0 where the tables agree and 2 where nothing does.", *self._said()],
                sections=[Section("marginals", "In each group", figures=[Figure("", table=table, numbers=numbers)])],
                internal=BANNER,
                made_with="Made by stratsynth evaluate. Every figure lies beside this file as CSV and Parquet.",
            )
        )

    def text(self) -> str:
        """A page for the terminal."""
        rows = [list(COLUMNS)]
        rows += [[who, f"{n:,}", f"{made:,}", short(value), status] for who, n, made, value, status in self._lines()]
        return "\n".join([f"{STAMP}.", *self._said(), "", *aligned(rows, 1)])

    def _said(self) -> list[str]:
        """What was left out, and what rows counted."""
        weight = self.facts.get("row_weight")
        return [LEFT_OUT] if weight is None else [LEFT_OUT, WEIGHED % weight]

    def _lines(self, *, none: bool = False) -> list[tuple[str, int, int, Any, str]]:
        """Group, rows of both tables, error and status; unknown errors are NaN, or None."""
        return [
            (
                group_name({c: row[c] for c in self.by}, self.schema)
                if self.by and row["scope"] == GROUP
                else "everybody",
                int(row["n"]),
                int(row["n_synthetic"]),
                None if none and not math.isfinite(row["value"]) else float(row["value"]),
                str(row["status"]),
            )
            for row in self.workload.to_dict("records")
        ]


COLUMNS = ("group", "real rows", "synthetic rows", "mean L1 distance", "status")
