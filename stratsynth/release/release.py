"""A release: a model, its certificate and its measurements, in memory or in a folder.

Models that draw rows are released with a synthetic table, estimates with a table of themselves instead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.checks import check_seed, whole
from stratsynth.errors import ReleaseError, StratsynthError, UsageError
from stratsynth.files.whole import new_folder, write_json, write_text
from stratsynth.models import Codes, Estimate, TableModel, Where, files
from stratsynth.models.rules import draw_allowed, watching
from stratsynth.release import groups
from stratsynth.release.certificate import read_certificate, written_by
from stratsynth.release.groups import ByGroup

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.random import Generator

REPORT = "report.html"
"""The file for readers; everything in it is in the other files."""
RULES = "rules.json"
"""The file that says what the schema's rules moved in the synthetic table beside it."""
SYNTHETIC, ESTIMATES = "synthetic", "estimates"
"""The names of the table of a release that draws rows, and of one that holds estimates."""


@dataclass(frozen=True)
class Release:
    """Everything in it may be published: it was made from noisy answers and public facts alone."""

    model: TableModel | Estimate
    certificate: Mapping[str, Any]
    """What was guaranteed; `json.dumps` writes it as `certificate.json` has it."""
    measurements: pa.Table
    """Every noisy answer, with its noise."""
    declared_size: int | None = None
    """How many rows `save` writes when nobody says."""

    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: Mapping[str, str | Sequence[str]] | None = None,
        n_by_group: ByGroup | None = None,
        by: Sequence[str] | None = None,
        balance: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Exactly n synthetic rows, in random order; only rows that have the levels of `where`, if given.

        Groups come by the release's own proportions, unless something else is asked for: `n_by_group` gives each
        group its number of rows, as a mapping from levels (`{("1", "2"): 100}`, of the columns `by`, or of the
        strata), or as a frame or CSV file with the groups' columns and `rows`; `balance` gives every group of some
        columns that can occur the same number, n in all. Such samples are for training on, not for totals.

        Drawing costs no privacy. The same release and seed give the same rows.
        """
        from stratsynth.schema.codec import to_pandas

        table = self.sample_arrow(n, seed=seed, where=where, n_by_group=n_by_group, by=by, balance=balance)
        return to_pandas(table)

    def sample_arrow(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: Mapping[str, str | Sequence[str]] | None = None,
        n_by_group: ByGroup | None = None,
        by: Sequence[str] | None = None,
        balance: Sequence[str] | None = None,
    ) -> pa.Table:
        """The same as an Arrow table."""
        from stratsynth.schema.codec import decode

        if n is None and n_by_group is None:
            raise UsageError("how many rows? Give n, or n_by_group.")
        n = int(n) if isinstance(n, np.integer) else n
        whole("the number of rows", n, optional=True)
        check_seed(seed)
        if n_by_group is not None and balance is not None:
            raise UsageError("give n_by_group or balance, not both.")
        if by is not None and not isinstance(n_by_group, Mapping):
            raise UsageError("by= names the columns of n_by_group's keys; it goes with a mapping only.")
        model, rng = self.table_model, np.random.default_rng(seed)
        schema = model.schema
        allowed = groups.levels_of(schema, where or {})
        condition = {c: frozenset(schema.index(c, level) for level in levels) for c, levels in allowed.items()}
        if n_by_group is not None:
            names = by if by is not None else self.certificate.get("strata", {}).get("by", ())
            parts = groups.wanted(model, n_by_group, names, condition, n)
        elif balance is not None:
            parts = groups.balanced(model, n or 0, balance, condition, rng)
        else:
            if condition and not model.mass(condition) > 0:
                wanted = ", ".join(f"{column}={' or '.join(levels)}" for column, levels in allowed.items())
                raise UsageError(f"the model gives no weight to rows with {wanted}; there is nothing to draw.")
            parts = [(condition, n or 0)]
        drawn = [self._draw(number, rng, part) for part, number in parts or [({}, 0)]]
        codes = {column: np.concatenate([rows[column] for rows in drawn]) for column in schema.names}
        order = rng.permutation(sum(number for _, number in parts))
        return decode(schema, {column: array[order] for column, array in codes.items()}, rng)

    def rules_moved(self, n: int, *, seed: int | None = None) -> dict[str, Any]:
        """How much of a sample the schema's rules move: rows drawn again and rows mended, in all and by stratum.

        The counts for `sample(n, seed=seed)`, which is drawn for the purpose and costs nothing. A model that holds
        the rules itself draws none that must be drawn again.
        """
        with watching() as moved:
            self.sample_arrow(n, seed=seed)
        return moved.to_dict()

    def _draw(self, n: int, rng: Generator, condition: Where) -> Codes:
        """Rows that meet a condition, with no rule broken."""
        model = self.table_model
        return draw_allowed(model.schema, n, rng, lambda number: model.sample(number, rng, condition), condition)

    @property
    def table_model(self) -> TableModel:
        """The model, if it draws rows."""
        if isinstance(self.model, Estimate):
            raise UsageError("this release holds estimates and draws no rows: see `estimates()`, estimates.parquet.")
        return self.model

    def estimates(self, level: float = 0.95) -> pd.DataFrame:
        """The means of a release that holds estimates: a row for everybody and one for each group, for each column.

        `Estimate.table` says what the columns are.
        """
        if not isinstance(self.model, Estimate):
            raise UsageError("this release draws rows and holds no estimates: see `sample`.")
        return self.model.table(level)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        rows: int | None = None,
        seed: int | None = None,
        csv: bool = False,
    ) -> Path:
        """Write the release folder, whole or not at all; `rows` defaults to the declared size.

        Where the schema has structural rules, `rules.json` says how much of the synthetic table they moved.
        `report.html` shows certificate and measurements to a reader.
        """
        from stratsynth.data.sources import write_table
        from stratsynth.report.release import release_page

        target = check_new(folder)
        with watching() as moved:
            name, table = self._product(rows, seed)
        try:
            # on the disk, too, before the ledger says that the fit is done
            with new_folder(target) as parts:
                write_json(parts / "certificate.json", self.certificate)
                write_table(self.measurements, parts / "measurements.parquet")
                write_table(table, parts / f"{name}.parquet")
                if csv:
                    write_table(table, parts / f"{name}.csv")
                if name == SYNTHETIC:
                    rules = moved.to_dict() if self.model.schema.rules else None
                    if rules is not None:
                        write_json(parts / RULES, {"format": "stratsynth-rules/1", **rules})
                    page = release_page(self.certificate, self.measurements, self.model.schema, rules)
                    write_text(parts / REPORT, page)
                files.save(self.model, parts / "model")
        except OSError as error:
            raise StratsynthError(
                f"{target} cannot be written ({error.strerror or type(error).__name__}); nothing of it was kept. "
                "What was charged stays charged."
            ) from None
        return target

    def _product(self, rows: int | None, seed: int | None) -> tuple[str, pa.Table]:
        """The table that people come for, and the name of its file."""
        import pyarrow as pa

        if isinstance(self.model, Estimate):
            if rows is not None:
                raise UsageError("this release holds estimates and has no rows: leave rows out.")
            return ESTIMATES, pa.Table.from_pandas(self.estimates(), preserve_index=False).replace_schema_metadata()
        if rows is None and self.declared_size is None:
            raise UsageError("how many rows? Give rows=, or declare a size when opening the table.")
        return SYNTHETIC, self.sample_arrow(rows if rows is not None else self.declared_size or 0, seed=seed)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Release:
        """Read a release folder back."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = Path(folder)
        record = read_certificate(path)
        try:
            measurements = pq.read_table(path / "measurements.parquet")
        except (OSError, pa.ArrowException) as error:
            raise ReleaseError(
                f"{path}: measurements.parquet is damaged or missing ({type(error).__name__})."
            ) from None
        try:
            model = files.load(path / "model")
        except ReleaseError as error:
            raise ReleaseError(f"{str(error).removesuffix('.')}{written_by(record)}.") from None
        return cls(model, record, measurements)


def check_new(folder: str | os.PathLike[str]) -> Path:
    """A release never overwrites anything: refuse a path that exists, or where no folder can be made."""
    target = Path(folder)
    try:
        os.lstat(target)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # a name too long, a null character, a file where a folder should be
        raise UsageError(f"{target} cannot be made ({getattr(error, 'strerror', error)}).") from None
    else:
        raise UsageError(f"{target} exists already; a release never overwrites one. Name another with -o.")
    above = next(parent for parent in target.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(f"{target} cannot be made: {above} is no folder that can be written in.")
    return target
