"""A release: a model, its certificate and its measurements, in memory or in a folder.

Its model decides what its folder has beside these, and what it returns: see `stratsynth.models.Model`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stratsynth.checks import check_line
from stratsynth.checks import path as given_path
from stratsynth.errors import UsageError
from stratsynth.models import Model, TableModel
from stratsynth.models.rules import Moved
from stratsynth.release.allocation import RowsByGroup
from stratsynth.release.folder import read, write
from stratsynth.release.measurements import LazyTable
from stratsynth.release.predicting import predicted, predicted_table
from stratsynth.release.sampling import Drawing, SampleRequest, check_rows
from stratsynth.release.shown import CertificateRecord, release_html, release_text
from stratsynth.schema.counted_tables import CountedTables

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from stratsynth.answers import Answers
    from stratsynth.certificate import Certificate
    from stratsynth.data.sources import Data
    from stratsynth.release.controls import Benchmark, ControlTable
    from stratsynth.schema.inside import Inside
    from stratsynth.schema.where import Conditions, Value


@dataclass(frozen=True)
class Release:
    """A model, its certificate and its measurements; public, as made from noisy answers and public facts alone."""

    model: Model
    certificate: CertificateRecord
    """Certificate as in `certificate.json`; any mapping is accepted."""
    measurements: pa.Table = cast("Any", LazyTable())  # noqa: RUF009 - a descriptor: each release keeps its own
    """Every noisy answer, with its noise scale. Given a folder, the table is read when it is first asked for."""
    declared_size: int | None = None
    """Number of rows that `save` writes by default."""
    inside: Mapping[str, Inside] = field(default_factory=dict)
    """Laws of numbers within bins, by column, where they are more than the schema's."""

    def __post_init__(self) -> None:
        """Make the certificate a CertificateRecord, which notebooks show in words, if it is another mapping."""
        if not isinstance(self.certificate, CertificateRecord):
            object.__setattr__(self, "certificate", CertificateRecord(self.certificate))

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies and other processes are given: all but the answers kept for later queries."""
        return {name: value for name, value in vars(self).items() if name != "answers"}

    @property
    def statement(self) -> Certificate:
        """`Certificate` of this release, as typed sections: `release.statement.guarantee.epsilon`."""
        return self.certificate.statement

    def __repr__(self) -> str:
        """Return one line: Release(mechanism, strata, epsilon, delta; number of columns)."""
        return release_text(self.certificate, self._width)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        real: Data | None = None,
        columns: Sequence[str] | None = None,
        seed: int = 0,
    ) -> Figure:
        """Return a matplotlib figure with a picture of each column of the release, and save it if `path` is given.

        Args:
            path: A new .pdf, .svg or .png file; None to have the figure alone.
            real: Real rows to draw beside: a frame, an Arrow table or a path. The figure is INTERNAL then, says so,
                and is not written into a release.
            columns: The columns to draw; by default all.
            seed: The seed of the rows that are drawn.

        Raises:
            UsageError: The file exists, is of another kind, or lies in a release; or there is no such column.
        """
        from stratsynth.release.plots import columns_plot

        file = None if path is None else given_path("the picture", path)
        return columns_plot(self, file, real, columns, seed)

    def _repr_html_(self) -> str:
        """Return the release as HTML for a notebook: guarantee, groups and numbers, published facts only."""
        return release_html(self.certificate, self._width, self.declared_size)

    @property
    def _width(self) -> int:
        """Number of columns, of linked tables in both."""
        schema = self.model.schema
        if isinstance(schema, CountedTables):
            return len(schema.linked.parent.names) + len(schema.linked.child.names)
        return len(schema.names)

    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: Conditions | None = None,
        n_by_group: RowsByGroup | None = None,
        by: Sequence[str] | None = None,
        balance: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Return a frame of exactly n synthetic rows, in random order. Drawing costs no privacy.

        Groups come by the release's own proportions, unless `n_by_group` or `balance` asks for something else. Such
        samples are for training on, not for totals.

        Args:
            n: The number of rows; not needed with `n_by_group`.
            seed: The same release and seed give the same rows.
            where: Only rows that have these values: for some columns a level or its label, a number, a date or a
                range, or several of them: `{"SEX": 2, "AGE": range(20, 40)}`, `{"AGE": "65.."}`. Numbers are known by
                their bins, so ranges are of whole bins.
            n_by_group: Each group's number of rows: a mapping from levels, such as `{("1", "2"): 100}`, or a frame or
                CSV file with the groups' columns and `rows`.
            by: The columns of the levels in a mapping `n_by_group`; those of the strata when not given.
            balance: Columns of which every group that can occur gets the same number of rows, n in all.

        Warns:
            FewPeopleWarning: Rows are asked for, by name, of a group of very few people or a part of a merge.

        Returns:
            A frame with the columns, order, types and labels of the schema: of pandas, or of polars where the schema
            has `frame = "polars"`.

        Raises:
            UsageError: A release that draws no rows, or a request that makes no sense or that no row can meet.
        """
        from stratsynth.schema.codec import to_frame

        table = self.sample_arrow(n, seed=seed, where=where, n_by_group=n_by_group, by=by, balance=balance)
        found: pd.DataFrame = to_frame(self.model.schema, table)
        return found

    def sample_arrow(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: Conditions | None = None,
        n_by_group: RowsByGroup | None = None,
        by: Sequence[str] | None = None,
        balance: Sequence[str] | None = None,
        moved: Moved | None = None,
    ) -> pa.Table:
        """Return n rows as an Arrow table; `seed`, `where`, `n_by_group`, `by` and `balance` are those of `sample`.

        `moved`, if given, counts what rules change.
        """
        import pyarrow as pa

        wanted, model = SampleRequest(n, {} if where is None else where, n_by_group, by, balance), self.table_model
        check_rows(wanted.n or 0, model.schema)
        drawing = Drawing.of(model, self.statement, wanted, seed, self.inside)
        check_rows(drawing.rows, model.schema)
        counts = Moved() if moved is None else moved
        if not isinstance(counts, Moved):
            raise UsageError("moved counts rows: a Moved(), or None.")
        return pa.concat_tables(drawing.piece(number, counts) for number in range(drawing.pieces))

    def sample_tables(
        self, n: int | None = None, *, seed: int | None = None, where: Conditions | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return (frame of n parents, frame of their child rows) of a release of two linked tables. Costs no privacy.

        Both have the key, which is invented, and the child rows their order within their parent.

        Args:
            n: The number of parents; by default the declared one.
            seed: The same release and seed give the same rows.
            where: Only parents that have these values, as for `sample`. Of columns of the child one of its child rows
                has all of them, `{"AGEP": "..4"}`; `R_` before the name is the first child row's, `{"R_AGEP": "65.."}`.
                At most 1,000 parents are drawn for each that is kept, and 50,000 beside.

        Raises:
            UsageError: A release of no linked tables, or conditions that hardly any parent meets.
        """
        from stratsynth.release.linked_draw import linked_draw

        parents, children = (table.to_pandas() for table in linked_draw(self, n, seed, where=where).values())
        return parents, children

    def rules_moved(self, n: int, *, seed: int | None = None) -> dict[str, Any]:
        """Return a dict of numbers of rows drawn again or mended for the schema's rules, in all and by stratum.

        The counts are those of `sample(n, seed=seed)`, which is drawn for it and costs nothing. A model that holds
        the rules itself draws none that must be drawn again.

        Args:
            n: The number of rows to draw.
            seed: As for `sample`.

        Raises:
            UsageError: A release that draws no rows.
        """
        moved = Moved()
        self.sample_arrow(n, seed=seed, moved=moved)
        return moved.to_dict()

    @property
    def table_model(self) -> TableModel:
        """`TableModel` that draws this release's rows; UsageError, with the release's use, if it draws none."""
        return self.model.table_model()

    def estimates(self, level: float = 0.95) -> pd.DataFrame:
        """Return a pandas frame of the means, with intervals, of a release that holds estimates.

        Args:
            level: The confidence level of each interval.

        Returns:
            A row for everybody and one for each group, for each column; `Estimate.estimates` says what the columns are.

        Raises:
            UsageError: A release that holds no estimates.
        """
        return self.model.estimates(level)

    def query(
        self,
        columns: Sequence[str] = (),
        where: Conditions | None = None,
        by: Sequence[str] | None = None,
        statistic: str = "count",
        level: float = 0.95,
        *,
        quantile: float | None = None,
        versus: Mapping[str, Value] | None = None,
    ) -> pd.DataFrame:
        """Return a frame of estimates with intervals, from all noisy tables by least squares. Costs no privacy.

        Estimates are unbiased and unrounded, and may lie below 0; those of groups add up to those of all records.

        Args:
            columns: Columns whose cells are counted; of a mean or a quantile, one numeric column.
            where: Only rows that have these values: for some columns a level or its label, a number, a date or a
                range, or several of them: `{"SEX": 2, "AGE": range(20, 40)}`, `{"AGE": "65.."}`. Numbers are known by
                their bins, so ranges are of whole bins.
            by: Columns whose every group gets a result.
            statistic: "count"; "share", the part of all rows that meet `where`; "rate", the part of the rows of the
                same group; "mean" or "quantile", of numbers known by their bin, or of a mean by measured sums.
            level: The confidence level of each interval.
            quantile: The probability of a "quantile"; 0.5, the median, if None.
            versus: Levels of some of these columns: results are differences from the cell that has them.

        Returns:
            A row for each group and cell: the columns of `by` and of the cells, `estimate`, `noise_sd`, the interval
            for the private rows themselves (`noise_low`, `noise_high`), that for a population of which they would be a
            simple random sample (`low`, `high`), `status`, `above` (of means up to a column's `clip`: the most that
            numbers above it may add), `model` (the model's value where there is no estimate), `note`, and a
            design-based interval (`design_low`, `design_high`) of means that the release weighs by public shares with
            replicate weights: NaN for all others, since those of the private rows are not asked. Status `ok` is
            measured, and `small` measured with 0 in the noise interval: intervals hold as often as `level` says.
            `bounded` ones hold at least as often: numbers may lie anywhere in their bins, and strata that lack a table
            have from none to all of their measured records in a cell; in `assumed` ones at most twice the declared
            records. `not_estimable` has no interval.

        Raises:
            UsageError: A release without noisy tables, or a question that makes no sense.
        """
        from stratsynth.answers import Query

        conditions, reference = {} if where is None else where, {} if versus is None else versus
        asked = Query(columns, conditions, () if by is None else by, statistic, level, quantile, reference)
        return self.answers.frame(asked)

    def samples(self, m: int = 20, n: int | None = None, *, seed: int | None = None) -> list[pd.DataFrame]:
        """Return a list of m frames of synthetic rows whose differences carry the noise's uncertainty, for analyses.

        Each is drawn from a model that is fitted again, to this one's answers with fresh noise. Analyse each
        table alike and give the results to `stratsynth.answers.combine`. For `independent` and `fixed`, alone or in
        strata; and for associations that measured tables hold.

        Args:
            m: The number of tables.
            n: The number of rows of each; by default the declared size. More rows than people make drawing matter
                less: four times as many, with `combine(..., size=4)`.
            seed: The same release and seed give the same tables.

        Raises:
            Unsupported: A mechanism whose samples were not found to have coverage.
            UsageError: A release that draws no rows, or numbers that make no sense.
        """
        from stratsynth.release.samples import samples

        return samples(self, m, n, seed)

    @cached_property
    def answers(self) -> Answers:
        """`Answers` that answers queries from this release's noisy tables; `answers.frames` takes many at once."""
        from stratsynth.answers.linked import answers_of

        schema, certificate = self.model.schema, self.statement
        return answers_of(schema, certificate, lambda: self.measurements, lambda: self.model, lambda: self.inside)

    def predict(self, data: Data, *, seed: int | None = None) -> NDArray[Any]:
        """Return an array of predictions for some rows. They cost no privacy, and nothing of `data` is kept.

        Args:
            data: Rows with the columns that the model reads, `release.model.predictor().inputs`, as in the private
                table: a pandas frame, an Arrow table, or a CSV or Parquet file. Other columns are ignored.
            seed: For models that predict by chance, which need one; for all others it changes nothing.

        Returns:
            An array whose first axis has one entry per row, in the order of the rows.

        Raises:
            UsageError: A release that does not predict, or rows with a value that its schema does not admit.
            SchemaError: A column that does not exist.
        """
        return predicted(self.model.predictor(), data, seed)

    def predictions(self, data: Data, *, seed: int | None = None, keep: Sequence[str] = ()) -> pa.Table:
        """Return predictions as an Arrow table: `row`, from 0, `prediction`, and further columns of the model.

        Args:
            data: As for `predict`; or a source, as `open_source` makes of a table of a database.
            seed: As for `predict`.
            keep: Columns of `data`, such as a person's number, that stand beside the predictions instead of `row`.
        """
        return predicted_table(self.model.predictor(), data, seed, keep)

    def cite(self, format: str = "bibtex") -> str:  # noqa: A002 - the command's option
        """Return a bibliography, as text, of software, papers of the method, sources of weights and prior.

        Args:
            format: `bibtex`, `apa`, or `json`, which is CSL-JSON.

        Raises:
            UsageError: Another format.
        """
        from stratsynth.references import bibliography
        from stratsynth.release.citing import works_of

        return bibliography(works_of(self.statement), format)

    def called(self, title: str | None = None, publisher: str | None = None) -> Release:
        """Return a copy of this release with `title` and `publisher` in its certificate; itself if both are None.

        Raises:
            UsageError: A title or publisher that is no line of text.
        """
        given = {"title": title, "publisher": publisher}
        for key, value in given.items():
            check_line(key, value)
        named = {key: value for key, value in given.items() if value is not None}
        return replace(self, certificate=CertificateRecord({**self.certificate, "called": named})) if named else self

    def by_measured_sizes(self) -> Release:
        """Return a copy of this release with rows by the measured sizes of its groups, not declared shares; free.

        Its certificate says so. Groups that were not measured keep their shares; see `declared_and_measured` there.

        Raises:
            UsageError: A release whose groups have no measured sizes, or no declared shares.
        """
        from stratsynth.release.grouping import by_measured_sizes

        return by_measured_sizes(self)

    def benchmarked(self, benchmark: Benchmark | Sequence[ControlTable]) -> Release:
        """Return a copy of this release whose rows have published totals: control tables of public figures; free.

        Its model is raked to them (iterative proportional fitting), so that every sample has them but for a few rows;
        answers of `query` stay those of the measurements. The certificate lists the tables, and says what the raking
        took: see `benchmark` there.

        Args:
            benchmark: Tables of published totals, `[ControlTable("totals.csv", citation="...")]`; or a `Benchmark` of
                them, with another largest ratio of a row than 5.

        Raises:
            UsageError: A release that draws no rows or was raked before; tables that cannot be read, that contradict
                each other, or that the release is too far from; exact totals of the private rows, which belong in the
                fit.
        """
        from stratsynth.release.benchmark import benchmarked
        from stratsynth.release.controls import Benchmark

        return benchmarked(self, Benchmark.of(benchmark))

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        rows: int | None = None,
        seed: int | None = None,
        csv: bool = False,
    ) -> Path:
        """Write the release's folder, whole or not at all, and return its path.

        If the schema has structural rules, `rules.json` has the numbers of rows of the synthetic table that they moved.
        `report.html` shows certificate, measurements and model to a reader. `certificate.json` lists the SHA-256 of
        every other file, so that `stratsynth verify` and a signature over it cover them all.

        Args:
            folder: A path at which there is nothing yet.
            rows: The number of synthetic rows; the declared size by default. Only for releases that draw rows.
            seed: The same seed gives the same synthetic rows.
            csv: True to write the tables as CSV too.

        Returns:
            The folder.

        Raises:
            UsageError: The path exists, or the number of rows is unknown or not allowed here.
            StratsynthError: The disk is full or cannot be written. Nothing is left behind.
        """
        return write(self, folder, rows, seed, csv=csv)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Release:
        """Return the `Release` saved in a folder; its measurements are read when they are first asked for.

        Args:
            folder: A folder written by `save` or `stratsynth fit`, of this version or an earlier one.

        Raises:
            ReleaseError: A folder that is no release, is damaged, contradicts itself, has other files than its
                certificate lists, or a model that no installed package knows.
        """
        model, certificate, measurements, inside = read(folder)
        return cls(model, certificate, cast("Any", measurements), inside=inside)
