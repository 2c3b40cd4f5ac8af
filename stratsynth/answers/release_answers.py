"""Answers of a release as tables: each result with its intervals, its status and its caveats."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from stratsynth.answers import intervals
from stratsynth.answers.ask import answers
from stratsynth.answers.assumed import ASSUMED, BOUNDED, assumed
from stratsynth.answers.estimated import DESIGN, estimated
from stratsynth.answers.modelled import modelled
from stratsynth.answers.nearest import Nearest
from stratsynth.answers.query import Query
from stratsynth.answers.squares import Functions, Squares
from stratsynth.answers.tables import conditions, of_tables, read_tables
from stratsynth.errors import UsageError
from stratsynth.models.estimate import Estimate
from stratsynth.schema.temporal import Temporal

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.answers.intervals import Answer
    from stratsynth.certificate import Certificate
    from stratsynth.models import Model
    from stratsynth.schema import Numeric, Schema
    from stratsynth.schema.inside import Inside

FIGURES = (*intervals.FIGURES, "status", "above", "model", "note")
"""Columns of a result after those that identify it."""
HIDDEN = "noise hides such rows: they are within three of its standard deviations, as measured or by their public size"
BLURRED = (
    f"{HIDDEN}; or noise hides the rows on one side of the quantile, or half of all that can be is in the interval"
)
SMALL = f"{HIDDEN}; or noise hides how large their numbers are"
BINNED = "bounds: numbers are known by their bin, and it holds wherever they are in it"
WIDE = (
    "bins leave numbers so much room that bounds would say little, and no measured sum of the column (schema: clip) "
    "tells more; model takes numbers as they are drawn within bins"
)


class Answers:
    """Answers from the noisy tables of one release; intermediate results are kept for later queries."""

    def __init__(
        self,
        schema: Schema,
        certificate: Certificate,
        measurements: Callable[[], pa.Table],
        model: Callable[[], Model],
        laws: Callable[[], Mapping[str, Inside]] = dict,
    ) -> None:
        """Keep the sources: nothing is read before the first query, the model only if tables do not answer one.

        Args:
            schema: All columns of the release.
            certificate: The certificate of the release.
            measurements: Function that loads every noisy answer.
            model: Function that loads the model.
            laws: Function that loads the laws of numbers within bins, by column.
        """
        self._schema, self._certificate, self._measurements = schema, certificate, measurements
        self._get_model, self._laws = model, laws

    @cached_property
    def squares(self) -> Squares:
        """`Squares`, least squares over all tables of this release; UsageError for a release without tables."""
        if self._tables == "none":
            raise UsageError("query: this release has no noisy tables to answer from; see what else it gives out.")
        measurements = self._measurements()
        return Squares(read_tables(self._schema, self._certificate, measurements, lambda: self._model, self._laws()))

    def _from_means(self, query: Query) -> bool:
        """True if this release's own means answer `query`: it holds that mean, or no tables at all."""
        if self._tables == "none":
            return True
        if self._tables == "alone" or query.statistic != "mean":
            return False
        model = self._model
        return isinstance(model, Estimate) and set(query.columns) <= set(model.columns)

    @cached_property
    def _tables(self) -> Literal["alone", "with sums", "none"]:
        """Kind of measurements: "none" without tables, "with sums" if noisy sums stand beside tables, else "alone"."""
        measurements = self._measurements()
        if not of_tables(measurements).num_rows:
            return "none"
        return "with sums" if "sum" in measurements.column_names else "alone"

    @cached_property
    def _model(self) -> Model:
        return self._get_model()

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """Tuple of sentences on assumptions of the intervals beside the noise's law; empty if there are none."""
        return conditions(self._certificate, tables=self._tables != "none")

    def one(self, query: Query) -> dict[str, list[Any]]:
        """Return a dict, column -> list with an entry for each cell of `query`: cells' levels, `FIGURES`, `DESIGN`."""
        (figures,) = self._figures_of([query])
        cells = list(itertools.product(*(self._schema.levels(name) for name in query.cells)))
        apart = {name: [cell[i] for cell in cells] for i, name in enumerate(query.cells)}
        return {**apart, **figures}

    def many(self, queries: Sequence[Query]) -> dict[str, list[Any]]:
        """Return a dict, column -> list: `query` (its number from 0), `cell` (text), `FIGURES` and `DESIGN`.

        It has an entry for each cell of each of the `queries`, in order.
        """
        found: dict[str, list[Any]] = {name: [] for name in ("query", "cell", *FIGURES, *DESIGN)}
        names: dict[tuple[str, ...], list[str]] = {}
        for number, (query, figures) in enumerate(zip(queries, self._figures_of(queries), strict=True)):
            if query.cells not in names:
                names[query.cells] = self._cells(query.cells)
            found["query"] += [number] * len(names[query.cells])
            found["cell"] += names[query.cells]
            for name, values in figures.items():
                found[name] += values
        return found

    def _figures_of(self, queries: Sequence[Query]) -> list[dict[str, list[Any]]]:
        """Return a list, one for each of `queries`: dict from each of `FIGURES`, `DESIGN` to a list, one entry a cell.

        Figures are from the release's means, or by least squares.

        From tables, strata are added up as measured, by no public share, and the private rows' own replicate weights
        are not asked: no such answer has a design-based interval.
        """
        found: dict[int, dict[str, list[Any]]] = {}
        rest = []
        for number, query in enumerate(queries):
            if self._from_means(query):
                found[number] = estimated(self._model, query)
            else:
                rest.append(number)
        if rest:
            squared = answers(self.squares, [queries[number] for number in rest])
            found |= {number: self._figures(queries[number], a) for number, a in zip(rest, squared, strict=True)}
        for figures in found.values():
            for name in DESIGN:
                figures.setdefault(name, [float("nan")] * len(figures["status"]))
        return [found[number] for number in range(len(queries))]

    def frame(self, query: Query) -> pd.DataFrame:
        """Return a pandas frame, a row for each cell of `query`: the cell's levels, `FIGURES` and `DESIGN`."""
        return _frame(self.one(query))

    def frames(self, queries: Sequence[Query]) -> pd.DataFrame:
        """Return one pandas frame for `queries`, a row a cell, in order: `query`, `cell`, `FIGURES`, `DESIGN`."""
        return _frame(self.many(queries))

    def _cells(self, names: tuple[str, ...]) -> list[str]:
        """Return a list of texts, one for each cell of the columns `names`, row-major: "SEX=1, AGE=0-4"."""
        levels = [[f"{name}={level}" for level in self._schema.levels(name)] for name in names]
        return [", ".join(cell) for cell in itertools.product(*levels)]

    def _figures(self, query: Query, answer: Answer) -> dict[str, list[Any]]:
        """Return a dict, figure -> list by cell, of the Answer to a query: `FIGURES`, status, above, model, note."""
        answer, taken = self._with_assumed(query, answer)
        figures = {name: getattr(answer, name).tolist() for name in intervals.FIGURES}
        unknown = ~np.isfinite(answer.estimate)
        zero = (answer.noise_low <= 0) & (answer.noise_high >= 0)
        weak = zero & (not query.numeric and not query.versus)
        known = np.where(answer.bounded, "bounded", np.where(taken, "assumed", np.where(weak, "small", "ok")))
        figures |= {"status": np.where(unknown, "not_estimable", known).tolist(), "above": answer.above.tolist()}
        notes, guessed = self._notes(query, answer, taken), answer.point
        if (rest := unknown & ~np.isfinite(guessed)).any():
            guessed = np.where(rest, self._guessed(query, rest), guessed)
        return {**figures, "model": guessed.tolist(), "note": notes}

    def _notes(self, query: Query, answer: Answer, taken: NDArray[np.bool_]) -> list[str]:
        """Return a list of texts, a note on each cell of `answer` to `query`; "" where the figures say all.

        `taken` masks cells with assumed bounds.
        """
        hidden, found = {"quantile": BLURRED, "mean": SMALL}.get(query.statistic, HIDDEN), []
        for i, estimate in enumerate(answer.estimate):
            if not np.isfinite(estimate):
                wide = WIDE if np.isfinite(answer.point[i]) else hidden
                found.append(wide if answer.measured[i] else self._uncovered(query))
            elif taken[i]:
                found.append(f"{self._uncovered(query)}; {BOUNDED if answer.bounded[i] else ASSUMED}")
            else:
                dates = "" if query.versus else self._dates(query, answer, i)
                notes = (dates, self._clipped(query, answer.above[i]), BINNED if answer.bounded[i] else "")
                found.append("; ".join(filter(None, notes)))
        return found

    def _dates(self, query: Query, answer: Answer, i: int) -> str:
        """Return text: as dates, cell `i` of `answer` to a `query` for a mean or quantile of a temporal column.

        "" for other columns and durations.
        """
        column = self._schema.column(query.columns[0]) if query.numeric else None
        if not isinstance(column, Temporal) or column.kind == "duration":
            return ""
        ends = (round(answer.estimate[i]), math.floor(answer.noise_low[i]), math.ceil(answer.noise_high[i]))
        estimate, low, high = (column.spell(min(max(end, column.lower), column.upper)) for end in ends)
        since = "midnight" if column.kind == "time" else "1970-01-01"
        return f"in {column.unit}s since {since}: {estimate}, from {low} to {high}"

    def _clipped(self, query: Query, above: float) -> str:
        """Return a note on a query's mean up to a clip, which numbers above it raise by up to `above`; "" for 0."""
        if not above > 0:
            return ""
        (name,) = query.columns
        clip = cast("Numeric", self._schema.column(name)).clip
        if query.versus:
            return f"of means of min({name}, {clip:,}); numbers above move the difference by at most {above:,.6g}"
        return f"mean of min({name}, {clip:,}); numbers above raise it by 0 to {above:,.6g}"

    def _with_assumed(self, query: Query, answer: Answer) -> tuple[Answer, NDArray[np.bool_]]:
        """Return (`answer` to `query`, with bounds where strata without a table hide it; mask of such cells)."""
        taken = ~np.isfinite(answer.estimate) & ~answer.measured
        other = assumed(self.squares, query) if taken.any() else None
        if other is None:
            return answer, np.zeros_like(taken)
        taken &= np.isfinite(other.estimate)
        return answer.where(taken, replace(other, measured=answer.measured)), taken

    def _guessed(self, query: Query, unknown: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return an array of the model's value in each cell of a query where the mask `unknown` is true; else NaN."""
        (total,), (known,) = self.squares.estimate(Functions(1, {}))
        size = float(total) if known else float("nan")
        return modelled(self._model, query, unknown, size, self.squares.tables.laws)

    def _uncovered(self, query: Query) -> str:
        """Return words on why no table covers the columns of `query`: strata that lack one, or the nearest tables."""
        return self._nearest[tuple(dict.fromkeys((*query.by, *query.columns, *query.where)))]

    @cached_property
    def _nearest(self) -> Nearest:
        return Nearest(self.squares)


def _frame(found: Mapping[str, list[Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(found)
